//! Durable timers.

use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use crate::host;
use crate::operation::{Kind, Operation};
use crate::time::to_millis;

/// A running timer: the future of its firing. Dropping it before that cancels the timer.
#[derive(Debug)]
#[must_use = "a timer that is dropped is cancelled"]
pub struct Timer {
    operation: Operation,
}

impl Timer {
    pub(crate) fn start(duration: Duration) -> Self {
        let start = || host::start_timer(to_millis(duration));
        Self {
            operation: Operation::start(Kind::Timer, start),
        }
    }

    /// Cancels the timer; the same as dropping it.
    pub fn cancel(self) {}

    /// Lets the timer run on with nobody waiting for it.
    pub fn detach(self) {
        self.operation.detach();
    }
}

impl Future for Timer {
    type Output = ();

    fn poll(self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<()> {
        // The host resolves a timer with an empty payload, and never with a failure.
        self.get_mut().operation.poll(task).map(drop)
    }
}
