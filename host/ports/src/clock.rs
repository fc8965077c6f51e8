//! Where time comes from.

use steadfast_model::Timestamp;

/// A wall clock. It may jump in either direction; callers never rely on it being monotonic.
pub trait Clock: Send + Sync {
    /// Milliseconds since the Unix epoch, rounded down.
    fn now(&self) -> Timestamp;
}
