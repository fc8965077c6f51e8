//! Children and messages between executions, with real threads over fakes, through crashes of the
//! host at every write.
#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

mod close;
mod crash;
mod ends;
mod fixture;
mod message;
