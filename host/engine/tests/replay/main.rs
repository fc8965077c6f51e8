//! Laws of replay: a small scripted guest is driven live to record a history, and its history is
//! then replayed whole, cut anywhere, and into guests that were changed.
#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

#[path = "../common/mod.rs"]
mod common;

mod drift;
mod faithful;
mod guest;
mod limit;
mod live;
mod lookahead;
mod mutation;
mod oracle;
mod patch;
mod scenario;
mod suggestion;
mod texts;
