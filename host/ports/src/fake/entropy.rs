//! Randomness that follows from a seed.

use std::sync::{Mutex, PoisonError};

use crate::Entropy;

/// A small generator (`SplitMix64`) for tests: the same numbers on every machine, forever. Not for
/// secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rng(u64);

impl Rng {
    /// A generator. Different seeds give unrelated numbers.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 when `bound` is 0. The bias is below one in 2^32 for the bounds
    /// that tests use.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64().checked_rem(bound).unwrap_or(0)
    }

    /// An index into a list of this length; 0 when it is empty.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// True `permille` times in a thousand. A rate of 0 draws nothing, so that switching a fault
    /// on does not shift the others' numbers.
    pub fn chance(&mut self, permille: u32) -> bool {
        permille > 0 && self.below(1000) < u64::from(permille)
    }

    /// Fills the buffer.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for piece in bytes.chunks_mut(8) {
            for (to, from) in piece.iter_mut().zip(self.next_u64().to_le_bytes()) {
                *to = from;
            }
        }
    }
}

/// An [`Entropy`] that gives the same bytes for the same seed and the same calls.
#[derive(Debug)]
pub struct SeededEntropy(Mutex<Rng>);

impl SeededEntropy {
    /// A source with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(Rng::new(seed)))
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .fill(bytes);
    }
}
