//! Runs workflow components: the only crate that names wasmtime.
//!
//! [`Sandbox`] implements [`steadfast_ports::Guests`]. It admits components, keeps them compiled,
//! and makes instances that see nothing but what [`steadfast_ports::HostCalls`] answers. A guest
//! cannot keep a thread longer than its activation limit, cannot hold more memory than its limit,
//! and computes the same bits on every machine.
//!
//! Read `config.rs` (what is pinned) and `abi/imports.rs` (what a guest can call) next.

mod abi;
mod admit;
pub mod build;
mod cache;
mod config;
mod desk;
mod effort;
mod fault;
mod fiber;
mod instance;
mod limit;
mod loaded;
mod mailbox;
mod options;
mod sandbox;
mod shape;
mod state;
mod ticker;
mod trusted;
mod world;

pub use options::{Options, SetupError};
pub use sandbox::Sandbox;
