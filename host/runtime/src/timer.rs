//! Due times in memory: those of the near future. The far ones are only in the store, so a million
//! sleeping runs cost no memory.

use std::collections::BTreeSet;

use steadfast_model::{Millis, Timestamp};
use steadfast_ports::store::TimerKey;

/// How far ahead due times are read.
pub(crate) const HORIZON: Millis = Millis(60_000);

/// Most due times that one read asks for.
pub(crate) const READ_MAX: usize = 10_000;

/// The due times of one shard.
#[derive(Debug)]
pub(crate) struct Timers {
    armed: BTreeSet<TimerKey>,
    /// Every due time up to here is in memory, or is being read.
    covered: Timestamp,
    /// A read is on its way.
    is_reading: bool,
    /// Where the last read stopped early.
    more_after: Option<TimerKey>,
}

/// What to read next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) after: Option<TimerKey>,
    pub(crate) until: Timestamp,
}

impl Timers {
    pub(crate) fn new() -> Self {
        Self {
            armed: BTreeSet::new(),
            covered: Timestamp(0),
            is_reading: false,
            more_after: None,
        }
    }

    /// Keeps a due time if it is near. A far one must be in the store, or get there.
    pub(crate) fn arm(&mut self, key: TimerKey) {
        if key.due <= self.covered {
            self.armed.insert(key);
        }
    }

    pub(crate) fn disarm(&mut self, key: &TimerKey) {
        self.armed.remove(key);
    }

    /// The next time at which something must be done.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        let first = self.armed.first().map(|key| key.due);
        let read = (!self.is_reading).then(|| {
            // Half a horizon before the covered part ends there is time to read the next.
            Timestamp(self.covered.0.saturating_sub(HORIZON.0 / 2))
        });
        match (first, read) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Takes the due times up to `now`, at most `limit`.
    pub(crate) fn take_due(&mut self, now: Timestamp, limit: usize) -> Vec<TimerKey> {
        let mut due = Vec::new();
        while due.len() < limit
            && let Some(first) = self.armed.first()
            && first.due <= now
        {
            due.extend(self.armed.pop_first());
        }
        due
    }

    /// What to read now, if anything.
    pub(crate) fn read(&mut self, now: Timestamp) -> Option<Read> {
        if self.is_reading {
            return None;
        }
        if let Some(after) = self.more_after {
            // The rest of an interval that held too many: when there is room.
            if self.armed.len() < READ_MAX / 2 {
                self.is_reading = true;
                return Some(Read {
                    after: Some(after),
                    until: self.covered,
                });
            }
            return None;
        }
        let half = Millis(HORIZON.0 / 2);
        if now.after(half) < self.covered {
            return None;
        }
        self.is_reading = true;
        // From the beginning: what is overdue may lie anywhere before. Due times that were fired
        // have no rows any more, and those in memory are only seen twice.
        self.covered = now.after(HORIZON);
        Some(Read {
            after: None,
            until: self.covered,
        })
    }

    /// Takes in what was read.
    pub(crate) fn loaded(
        &mut self,
        keys: impl Iterator<Item = TimerKey>,
        more_after: Option<TimerKey>,
    ) {
        self.is_reading = false;
        self.more_after = more_after;
        self.armed.extend(keys);
    }

    /// The read failed: the same again, a second later.
    pub(crate) fn failed(&mut self, after: Option<TimerKey>, now: Timestamp) {
        self.is_reading = false;
        match after {
            Some(after) => self.more_after = Some(after),
            None => self.covered = now.after(Millis(HORIZON.0 / 2 + 1000)),
        }
    }
}
