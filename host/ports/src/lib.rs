//! The seams between the runtime and the world: [`Store`], [`Guests`] and [`Guest`], [`Clock`],
//! [`Entropy`].
//!
//! Each has a real implementation in another crate, a fake one and a faulty one here (feature
//! `fake`). The law of a store is a test suite here too (feature `contract`): every store runs it.

pub mod clock;
#[cfg(feature = "contract")]
pub mod contract;
pub mod entropy;
#[cfg(feature = "fake")]
pub mod fake;
pub mod guest;
pub mod store;

pub use clock::Clock;
pub use entropy::Entropy;
pub use guest::{Guest, Guests, HostCalls};
pub use store::Store;
