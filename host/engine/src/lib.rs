//! The pure machine: what a run does next, given what it has done.
//!
//! - [`decide`](decide::decide): state and request in, [`Decision`] out: events to record, pending
//!   activities to change. Same input, same output, always.
//! - [`State::apply`](state::State::apply): the only writer of a run's state, live and on recovery.
//! - [`Replay`]: matches a guest's calls with the recorded ones.
//!
//! No I/O, clock, randomness or async: time comes with the request, randomness with the first
//! event. Read `state.rs`, then `decide.rs`.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod activity;
pub mod chain;
pub mod child;
pub mod child_options;
pub mod decide;
mod draft;
pub mod operate;
pub mod options;
pub mod random;
pub mod replay;
pub mod retry;
pub mod state;
mod update;

pub use decide::{Decision, Rejection, Request, TaskChange, UpdateChange, decide, start};
pub use replay::{Mismatch, Replay};
pub use state::State;
