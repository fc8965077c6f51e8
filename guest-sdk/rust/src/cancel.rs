//! The request that a run cancel itself. The workflow decides what to do about it.

use std::cell::RefCell;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use crate::run;
use crate::scope;
use crate::waiters::Waiters;

struct State {
    reason: Option<String>,
    waiters: Waiters,
}

impl State {
    const fn new() -> Self {
        Self {
            reason: None,
            waiters: Waiters::new(),
        }
    }
}

/// Whether cancellation was requested, and who waits for that.
pub(crate) struct CancelRequest(RefCell<State>);

impl CancelRequest {
    pub(crate) const fn new() -> Self {
        Self(RefCell::new(State::new()))
    }

    /// Records a request and cancels the scopes of the run. The first request counts: its reason
    /// stays.
    pub(crate) fn deliver(&self, reason: &str) {
        if !self.is_requested() {
            self.0.borrow_mut().reason = Some(reason.to_owned());
            scope::cancel_all(reason);
        }
        loop {
            // One borrow per waiter: a waker may call back.
            let waker = self.0.borrow_mut().waiters.pop();
            let Some(waker) = waker else { break };
            waker.wake();
        }
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.0.borrow().reason.is_some()
    }

    pub(crate) fn reason(&self) -> Option<String> {
        self.0.borrow().reason.clone()
    }

    /// Forgets the request for the next run of the same thread.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn reset(&self) {
        drop(self.0.replace(State::new()));
    }
}

/// The future of a cancel request: ready, with the reason (which may be empty), as soon as one has
/// arrived.
#[derive(Debug, Default)]
#[must_use = "futures do nothing unless awaited"]
pub struct Cancelled {
    ticket: u64,
}

impl Future for Cancelled {
    type Output = String;

    fn poll(self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<String> {
        let this = self.get_mut();
        run::with(|run| {
            if let Some(reason) = run.cancel.reason() {
                return Poll::Ready(reason);
            }
            run.cancel
                .0
                .borrow_mut()
                .waiters
                .wait(&mut this.ticket, task.waker());
            Poll::Pending
        })
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        if self.ticket != 0 {
            let ticket = self.ticket;
            drop(run::try_with(|run| {
                run.cancel.0.borrow_mut().waiters.leave(ticket)
            }));
        }
    }
}
