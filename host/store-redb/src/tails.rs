//! The ends of histories that were appended to lately, so that appending to a busy run needs no
//! look into the table.

use std::collections::BTreeMap;

/// Runs per generation: two generations are kept.
const GENERATION: usize = 32 * 1024;

/// Number of the next event by run: a bounded cache.
#[derive(Debug, Default)]
pub(crate) struct Tails {
    young: BTreeMap<u64, u64>,
    old: BTreeMap<u64, u64>,
}

impl Tails {
    /// The number of the run's next event, if it is known.
    pub(crate) fn get(&self, run: u64) -> Option<u64> {
        self.young.get(&run).or_else(|| self.old.get(&run)).copied()
    }

    /// Remembers the number of the run's next event.
    pub(crate) fn set(&mut self, run: u64, next: u64) {
        self.young.insert(run, next);
    }

    /// Forgets the runs that were not touched for a generation. Only between transactions: a tail
    /// that is not in the table yet must not be forgotten.
    pub(crate) fn age(&mut self) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_runs_stay_and_idle_ones_go() {
        let mut tails = Tails::default();
        for round in 0..4 {
            tails.set(u64::MAX, round);
            for run in 0..GENERATION as u64 {
                tails.set(round * 1_000_000 + run, 2);
            }
            tails.age();
        }
        assert_eq!(tails.get(u64::MAX), Some(3));
        assert_eq!(tails.get(1), None);
        assert!(tails.young.len() + tails.old.len() <= 2 * (GENERATION + 1));
    }
}
