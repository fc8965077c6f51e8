//! Who waits for a thing that is not an operation: tasks in the order in which they came.

use std::collections::BTreeMap;
use std::task::Waker;

/// A queue of wakers from which any one can leave in O(log n).
pub(crate) struct Waiters {
    next_ticket: u64,
    wakers: BTreeMap<u64, Waker>,
}

impl Waiters {
    pub(crate) const fn new() -> Self {
        Self {
            next_ticket: 1,
            wakers: BTreeMap::new(),
        }
    }

    /// Enters the queue, or renews the place of a waiter that is in it. `ticket` is 0 for a
    /// waiter that has never been in the queue.
    pub(crate) fn wait(&mut self, ticket: &mut u64, waker: &Waker) {
        if *ticket == 0 {
            *ticket = self.next_ticket;
            self.next_ticket += 1;
        }
        match self.wakers.get_mut(ticket) {
            Some(place) => place.clone_from(waker),
            None => drop(self.wakers.insert(*ticket, waker.clone())),
        }
    }

    /// Takes the waiter that came first.
    pub(crate) fn pop(&mut self) -> Option<Waker> {
        self.wakers.pop_first().map(|(_, waker)| waker)
    }

    /// Takes a waiter out.
    pub(crate) fn leave(&mut self, ticket: u64) -> Option<Waker> {
        self.wakers.remove(&ticket)
    }
}
