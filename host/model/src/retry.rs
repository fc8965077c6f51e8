//! When a failed attempt is tried again: the policy's data. The arithmetic is the engine's.

use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use crate::time::Millis;

/// A retry policy. Defaults are Temporal's server defaults: 1 s, doubling, at most 100 times the
/// first interval, unlimited attempts.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct RetryPolicy {
    /// The wait before the second attempt.
    #[n(0)]
    pub initial_interval: Millis,
    /// Growth of the interval per attempt, in thousandths; at least 1000.
    #[n(1)]
    pub backoff_permille: u32,
    /// Largest interval; zero means 100 times the first.
    #[n(2)]
    pub maximum_interval: Millis,
    /// Attempts allowed in total; 1 disables retries, 0 means unlimited.
    #[n(3)]
    pub maximum_attempts: u32,
    /// Failure codes that are never retried (exact match).
    #[n(4)]
    pub non_retryable_codes: Vec<String>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            initial_interval: Millis(1000),
            backoff_permille: 2000,
            maximum_interval: Millis::ZERO,
            maximum_attempts: 0,
            non_retryable_codes: Vec::new(),
        }
    }
}
