//! Deterministic simulation: the real shards and the real engine under virtual time, on a store in
//! memory, with faults drawn from a seed.
//!
//! Nothing here sleeps, and nothing depends on threads: what a shard asks for goes into one queue
//! ordered by virtual time, and comes back as an input. The seed picks the workload *and* the
//! rates of the faults. Checkers look on from outside ([`check`]).
//!
//! `cargo run -p steadfast-sim -- --seed N --trace` repeats one run and prints what happened.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::wildcard_enum_match_arm,
    reason = "test code: a broken expectation must stop the run"
)]

pub mod check;
pub mod client;
pub mod courier;
pub mod family;
pub mod kin;
pub mod mint;
pub mod plan;
pub mod update;
pub mod work;
pub mod world;

pub use plan::Plan;
pub use world::{Report, World};

/// Runs one seed to its end and checks everything.
///
/// # Panics
/// When a checker finds something wrong; the message begins with the seed.
#[must_use]
pub fn run(seed: u64, trace: bool) -> Report {
    let mut world = World::new(Plan::draw(seed), trace);
    world.run();
    world.report()
}
