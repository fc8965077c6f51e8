//! Waiting until something is true of the workflow's own state.
//!
//! A condition is looked at after every event, once all tasks wait. That costs one look per
//! waiting condition and event, and needs no note of what a condition depends on.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll, Waker};

use crate::run;
use crate::waiters::Waiters;

/// The conditions that tasks wait for.
pub(crate) struct Conditions {
    waiters: RefCell<Waiters>,
    /// One of them came true: its task may have made another one true.
    is_moved: Cell<bool>,
}

impl Conditions {
    pub(crate) const fn new() -> Self {
        Self {
            waiters: RefCell::new(Waiters::new()),
            is_moved: Cell::new(false),
        }
    }

    /// Wakes every task that waits for a condition, in the order in which they began to wait;
    /// returns false when there is none.
    pub(crate) fn wake_all(&self) -> bool {
        self.is_moved.set(false);
        let wakers: Vec<Waker> = std::iter::from_fn(|| self.waiters.borrow_mut().pop()).collect();
        let is_any = !wakers.is_empty();
        wakers.into_iter().for_each(Waker::wake);
        is_any
    }

    pub(crate) fn is_moved(&self) -> bool {
        self.is_moved.get()
    }

    /// Forgets every condition for the next run of the same thread.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn reset(&self) {
        drop(self.waiters.replace(Waiters::new()));
        self.is_moved.set(false);
    }
}

/// The future of a condition; see [`crate::Context::wait_until`].
#[must_use = "futures do nothing unless awaited"]
pub struct WaitUntil<C> {
    condition: C,
    ticket: u64,
}

impl<C> fmt::Debug for WaitUntil<C> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("WaitUntil").finish_non_exhaustive()
    }
}

impl<C> WaitUntil<C> {
    pub(crate) fn new(condition: C) -> Self {
        Self {
            condition,
            ticket: 0,
        }
    }

    fn leave(&mut self) {
        if self.ticket != 0 {
            let ticket = std::mem::take(&mut self.ticket);
            let left = run::try_with(|run| run.conditions.waiters.borrow_mut().leave(ticket));
            drop(left);
        }
    }
}

// The condition is called, never pinned.
impl<C> Unpin for WaitUntil<C> {}

impl<C: FnMut() -> bool> Future for WaitUntil<C> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<()> {
        let this = self.get_mut();
        if (this.condition)() {
            this.leave();
            run::with(|run| run.conditions.is_moved.set(true));
            return Poll::Ready(());
        }
        run::with(|run| {
            let mut waiters = run.conditions.waiters.borrow_mut();
            waiters.wait(&mut this.ticket, task.waker());
        });
        Poll::Pending
    }
}

impl<C> Drop for WaitUntil<C> {
    fn drop(&mut self) {
        self.leave();
    }
}
