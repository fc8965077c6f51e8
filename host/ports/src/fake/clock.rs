//! A clock that stands still until it is told otherwise.

use std::sync::atomic::{AtomicU64, Ordering};

use steadfast_model::{Millis, Timestamp};

use crate::Clock;

/// A clock moved by hand.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock that shows `now`.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self(AtomicU64::new(now.0))
    }

    /// Sets the time, in either direction.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.0, Ordering::SeqCst);
    }

    /// Moves the time forward and returns the new one.
    pub fn advance(&self, by: Millis) -> Timestamp {
        let before = Timestamp(self.0.fetch_add(by.0, Ordering::SeqCst));
        before.after(by)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}
