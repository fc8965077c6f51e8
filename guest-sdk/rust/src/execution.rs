//! Other executions: signals and cancel requests to them.
//! Read next: `child.rs`.

use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use crate::bindings::steadfast::workflow::executions::Target;
use crate::failure::Failure;
use crate::operation::{Kind, Operation};
use crate::payload::Encode;
use crate::{host, run};

/// Another execution, by its workflow id.
#[derive(Clone, Debug)]
pub struct Execution {
    target: Target,
}

impl Execution {
    pub(crate) fn new(workflow_id: String) -> Self {
        Self {
            target: Target {
                namespace: String::new(),
                workflow_id,
                run_id: String::new(),
                child_only: false,
            },
        }
    }

    /// Means one run of it. Default: the run that is current when the message arrives.
    #[must_use]
    pub fn run(mut self, run_id: impl Into<String>) -> Self {
        self.target.run_id = run_id.into();
        self
    }

    /// Means it only if it is a child of this workflow.
    #[must_use]
    pub fn child_only(mut self) -> Self {
        self.target.child_only = true;
        self
    }

    /// Sends it a signal now. The future is ready when the signal is in its history, or fails with
    /// the code `external-workflow-execution-not-found`, `namespace-not-found` or
    /// `signal-count-limit-exceeded`.
    pub fn signal(&self, name: &str, input: &(impl Encode + ?Sized)) -> Message {
        let state = input.encode(run::spare_buffer()).map(|input| {
            Operation::start(Kind::Brief, || {
                host::signal_execution(&self.target, name, input)
            })
        });
        Message { state: Some(state) }
    }

    /// Asks it now to cancel itself. The future is ready when the request is in its history, or
    /// fails with the code `external-workflow-execution-not-found` or `namespace-not-found`.
    pub fn request_cancel(&self, reason: &str) -> Message {
        let operation =
            Operation::start(Kind::Brief, || host::cancel_execution(&self.target, reason));
        Message {
            state: Some(Ok(operation)),
        }
    }
}

/// A message on its way. Dropping it does not call it back.
#[derive(Debug)]
pub struct Message {
    state: Option<Result<Operation, Failure>>,
}

impl Future for Message {
    type Output = Result<(), Failure>;

    fn poll(self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match this.state.take() {
            Some(Ok(mut operation)) => match operation.poll(task) {
                Poll::Ready(outcome) => Poll::Ready(outcome.map(drop)),
                Poll::Pending => {
                    this.state = Some(Ok(operation));
                    Poll::Pending
                }
            },
            Some(Err(failure)) => Poll::Ready(Err(failure)),
            None => Poll::Pending,
        }
    }
}
