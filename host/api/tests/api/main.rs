//! The interface as a client sees it, over a real runtime with fake store and guests.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

mod activity;
mod asking;
mod component;
mod document;
mod error;
mod execution;
mod message;
mod socket;
mod start;
mod task;
mod wire;
mod world;
