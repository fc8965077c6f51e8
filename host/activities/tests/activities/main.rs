//! The built-in activities over a real runtime, and over sockets of this machine.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

mod development;
mod http;
mod server;
mod world;
