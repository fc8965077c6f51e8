//! The state of the one run that a component instance holds.
//!
//! It lives in a thread local: an instance is one run and has one thread, and natively every test
//! thread has a run of its own. Read next: `executor.rs`, `operation.rs`, `component.rs`.

use std::cell::{Cell, RefCell};
use std::mem;

use crate::cancel::CancelRequest;
use crate::condition::Conditions;
use crate::continue_as_new::Continued;
use crate::executor::Executor;
use crate::failure::{Failure, FailureKind};
use crate::handler::Handlers;
use crate::operation::{Operations, Outcome};
use crate::payload::Payload;
use crate::scope::Tree;
use crate::signal::Signals;

/// The largest buffer kept for the next payload, so that one big result is not held for ever.
const SPARE_BYTES_MAX: usize = 64 * 1024;

/// How a run ended.
#[derive(Debug, PartialEq)]
pub(crate) enum End {
    Completed(Payload),
    Failed(Failure),
    Canceled(Failure),
    Continued(Box<Continued>),
}

/// Where a run stands.
enum Phase {
    NotStarted,
    Open,
    Ended(End),
    Reported,
}

pub(crate) struct Run {
    /// The time of the event being delivered, in milliseconds since the Unix epoch.
    pub(crate) now_ms: Cell<u64>,
    /// The number of the event being delivered; 1 before the first. Kept here, as the time is: the
    /// host would tell the number of the last event of a batch.
    pub(crate) event: Cell<u64>,
    pub(crate) executor: Executor,
    pub(crate) operations: Operations,
    pub(crate) signals: Signals,
    pub(crate) cancel: CancelRequest,
    pub(crate) conditions: Conditions,
    pub(crate) scopes: Tree,
    pub(crate) handlers: Handlers,
    phase: RefCell<Phase>,
    /// Memory of the last decoded payload, for the next encoded one.
    spare: Cell<Vec<u8>>,
}

thread_local! {
    static RUN: Run = const {
        Run {
            now_ms: Cell::new(0),
            event: Cell::new(1),
            executor: Executor::new(),
            operations: Operations::new(),
            signals: Signals::new(),
            cancel: CancelRequest::new(),
            conditions: Conditions::new(),
            scopes: Tree::new(),
            handlers: Handlers::new(),
            phase: RefCell::new(Phase::NotStarted),
            spare: Cell::new(Vec::new()),
        }
    };
}

/// Calls `action` with this thread's run.
pub(crate) fn with<R>(action: impl FnOnce(&Run) -> R) -> R {
    RUN.with(action)
}

/// Calls `action` with this thread's run, unless the thread is already taking it down.
pub(crate) fn try_with<R>(action: impl FnOnce(&Run) -> R) -> Option<R> {
    RUN.try_with(action).ok()
}

/// Returns an empty buffer, with memory when there is some to reuse.
pub(crate) fn spare_buffer() -> Vec<u8> {
    with(|run| run.spare.take())
}

/// Gives a buffer back for the next payload.
pub(crate) fn recycle(mut buffer: Vec<u8>) {
    if buffer.capacity() == 0 || buffer.capacity() > SPARE_BYTES_MAX {
        return;
    }
    buffer.clear();
    with(|run| drop(run.spare.replace(buffer)));
}

impl Run {
    /// Returns true from the start until the workflow has ended.
    pub(crate) fn is_open(&self) -> bool {
        matches!(*self.phase.borrow(), Phase::Open)
    }

    /// Starts the run with the workflow's code.
    pub(crate) fn start(&self, workflow: impl Future<Output = Outcome> + 'static) {
        let previous = self.phase.replace(Phase::Open);
        assert!(
            matches!(previous, Phase::NotStarted),
            "an instance is started once"
        );
        self.executor.spawn(Box::pin(async move {
            let outcome = workflow.await;
            with(|run| run.end(outcome));
        }));
    }

    fn end(&self, outcome: Outcome) {
        let end = match outcome {
            Ok(payload) => End::Completed(payload),
            Err(failure) if self.accepts_cancel(&failure) => End::Canceled(failure),
            Err(failure) => End::Failed(failure),
        };
        self.phase.replace(Phase::Ended(end));
    }

    /// Ends the run from any of its tasks; the first end counts.
    pub(crate) fn end_now(&self, end: End) {
        if self.is_open() {
            self.phase.replace(Phase::Ended(end));
        }
    }

    /// Returns true for a failure that accepts a cancel request: one made by
    /// [`Failure::canceled`], or an activity's cancellation passed on after such a request.
    fn accepts_cancel(&self, failure: &Failure) -> bool {
        failure.kind() == FailureKind::Canceled
            || (failure.is_canceled() && self.cancel.is_requested())
    }

    /// Lets every task go on until all of them wait or the workflow has ended.
    pub(crate) fn run_until_blocked(&self) {
        let mut is_moved = true;
        loop {
            while self.is_open() && self.executor.step() {}
            // Conditions are looked at once, and again whenever one of them came true.
            if !self.is_open() || !is_moved || !self.conditions.wake_all() {
                return;
            }
            while self.is_open() && self.executor.step() {}
            is_moved = self.conditions.is_moved();
        }
    }

    /// Returns how the workflow ended, once.
    pub(crate) fn take_end(&self) -> Option<End> {
        if self.is_open() {
            return None;
        }
        match mem::replace(&mut *self.phase.borrow_mut(), Phase::Reported) {
            Phase::Ended(end) => Some(end),
            Phase::NotStarted | Phase::Open | Phase::Reported => None,
        }
    }

    /// Makes room for the next run of the same thread.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn reset(&self) {
        // Not open: futures dropped below cancel nothing.
        self.phase.replace(Phase::NotStarted);
        self.executor.reset();
        self.operations.reset();
        self.signals.reset();
        self.cancel.reset();
        self.conditions.reset();
        self.scopes.reset();
        self.handlers.reset();
        self.now_ms.set(0);
        self.event.set(1);
    }
}
