//! Laws of the machine over random scripts. `World::step` checks most of them after every step:
//! the fold of the history is the live state, a decision is a function of its input, `apply` takes
//! what `decide` emits, numbers are dense, time never runs backwards, stored forms read back.
#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::needless_pass_by_value,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

#[path = "../common/mod.rs"]
mod common;

mod arithmetic;
mod deadline;
mod fan_out;
mod generate;
mod script;
