//! Where randomness comes from.

/// A source of unpredictable bytes: run ids and the seeds of runs' random streams.
pub trait Entropy: Send + Sync {
    /// Fills the buffer.
    fn fill(&self, bytes: &mut [u8]);
}
