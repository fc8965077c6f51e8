//! In-memory, deterministic and faulty implementations of the ports.
//!
//! Nothing here reads a clock, starts a thread or draws real randomness: with the same seeds and
//! the same calls everything happens the same way. Read [`store`] and [`script`] next.

pub mod clock;
pub mod entropy;
pub mod faults;
pub mod guests;
pub mod script;
mod state;
pub mod store;

pub use clock::ManualClock;
pub use entropy::{Rng, SeededEntropy};
pub use faults::FaultPlan;
pub use guests::ScriptedGuests;
pub use script::{Op, QUERIES, ScriptedGuest, UPDATES};
pub use store::MemStore;

#[cfg(test)]
mod tests;
