//! The wire types and host functions generated from `wit/steadfast-workflow@0.1.0`.
//!
//! Only `host` and `component` look in here; everything public has a type of its own.
#![allow(
    missing_docs,
    reason = "generated from the WIT, which has its own comments"
)]
#![allow(unsafe_code, reason = "generated: the canonical ABI is raw memory")]
#![allow(unreachable_pub, reason = "generated")]
#![allow(clippy::all, reason = "generated")]
#![allow(clippy::str_to_string, reason = "generated")]
#![allow(clippy::cast_possible_truncation, reason = "generated")]
#![allow(clippy::cast_possible_wrap, reason = "generated")]
#![allow(clippy::cast_sign_loss, reason = "generated")]
#![allow(clippy::cast_lossless, reason = "generated")]
#![allow(clippy::mem_forget, reason = "generated")]
#![allow(clippy::panic, reason = "generated")]
#![allow(clippy::indexing_slicing, reason = "generated")]
#![allow(clippy::semicolon_if_nothing_returned, reason = "generated")]
#![allow(clippy::use_self, reason = "generated")]
#![allow(clippy::undocumented_unsafe_blocks, reason = "generated")]
#![allow(clippy::allow_attributes_without_reason, reason = "generated")]
#![allow(clippy::uninlined_format_args, reason = "generated")]
#![allow(clippy::needless_pass_by_value, reason = "generated")]
#![allow(clippy::collection_is_never_read, reason = "generated")]

wit_bindgen::generate!({
    path: "../../wit/steadfast-workflow@0.1.0",
    world: "workflow",
    pub_export_macro: true,
    default_bindings_module: "steadfast_sdk::bindings",
    additional_derives: [PartialEq],
});
