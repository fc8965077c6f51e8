//! The wire types and host functions of the world `blocking-workflow`, generated from its WIT.
#![allow(
    missing_docs,
    reason = "generated from the WIT, which has its own comments"
)]
#![allow(unsafe_code, reason = "generated: the canonical ABI is raw memory")]
#![allow(clippy::all, reason = "generated")]

wit_bindgen::generate!({
    path: "../../../wit/steadfast-workflow@0.1.0",
    world: "blocking-workflow",
    default_bindings_module: "crate::bindings",
});

use crate::Component;

export!(Component);
