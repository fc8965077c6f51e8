//! Every request in every state, as tables: a script of requests at virtual times, and what the
//! machine did, line by line. `World::step` checks the laws of the engine behind every line.
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

mod attempt;
mod cancel;
mod child;
mod close;
mod corrupt;
mod lease;
mod message;
mod operate;
mod print;
mod retry;
mod timeout;
mod timer;
mod update;
