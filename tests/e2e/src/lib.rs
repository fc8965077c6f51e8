//! Black-box tests: the real binary, real components, a real disk, SIGKILL.
//!
//! The binary and the components are found through `STEADFAST_BIN` and `STEADFAST_GUESTS`, which
//! `cargo xtask test` sets.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::missing_errors_doc,
    reason = "test code"
)]

pub mod cli;
pub mod effects;
pub mod host;
pub mod http;
pub mod worker;
