//! Children: workflows that this one starts, and that end with it unless told otherwise.
//!
//! A [`Child`] is a description; awaiting it, or calling [`Child::start`], starts it.
//! Read next: `activity.rs`, whose shape this follows.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll, ready};
use std::time::Duration;

use crate::activity::RetryPolicy;
use crate::bindings::steadfast::workflow::children::ChildOptions;
use crate::failure::Failure;
use crate::operation::{Kind, Operation, Outcome};
use crate::payload::{Decode, Encode, Payload};
use crate::time::to_millis;
use crate::{host, run};

/// What happens to a child when this run ends, also by going on in a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParentClosePolicy {
    /// It is terminated.
    #[default]
    Terminate,
    /// It is asked to cancel itself.
    RequestCancel,
    /// It goes on.
    Abandon,
}

/// What cancelling a child means to this workflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChildCancellation {
    /// The child is asked, and this workflow waits for how it ends.
    #[default]
    WaitCompleted,
    /// This workflow waits until the child has been asked.
    WaitRequested,
    /// The child is asked, and this workflow goes on at once.
    TryCancel,
    /// This workflow goes on at once; the child is not told.
    Abandon,
}

/// Whether the id of a child may be used again once its last run has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdReusePolicy {
    /// Always.
    #[default]
    AllowDuplicate,
    /// Unless that run completed.
    AllowDuplicateFailedOnly,
    /// Never.
    RejectDuplicate,
}

/// A child that is not started yet. Awaiting it starts it and gives a `Result<T, Failure>`.
///
/// Durations are rounded up to milliseconds; zero means the default.
#[must_use = "a child is started when it is awaited or started"]
pub struct Child<T> {
    workflow_type: String,
    input: Result<Payload, Failure>,
    options: ChildOptions,
    kind: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for Child<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Child")
            .field("workflow_type", &self.workflow_type)
            .field("input", &self.input)
            .field("options", &self.options)
            .finish()
    }
}

impl<T: Decode> Child<T> {
    pub(crate) fn new(workflow_type: &str, input: &(impl Encode + ?Sized)) -> Self {
        Self {
            workflow_type: workflow_type.to_owned(),
            input: input.encode(run::spare_buffer()),
            options: ChildOptions {
                execution_timeout_ms: 0,
                run_timeout_ms: 0,
                initial_interval_ms: 0,
                backoff_permille: 0,
                maximum_interval_ms: 0,
                maximum_attempts: 0,
                settings: Vec::new(),
            },
            kind: PhantomData,
        }
    }

    /// Sets the child's workflow id. Default: made of this run's id and the operation.
    pub fn id(self, id: impl Into<String>) -> Self {
        self.setting("workflow-id", id.into())
    }

    /// Sets where the child's activities go. Default: this workflow's queue.
    pub fn task_queue(self, name: impl Into<String>) -> Self {
        self.setting("task-queue", name.into())
    }

    /// Sets what happens to the child when this run ends.
    pub fn parent_close_policy(self, policy: ParentClosePolicy) -> Self {
        let name = match policy {
            ParentClosePolicy::Terminate => "terminate",
            ParentClosePolicy::RequestCancel => "request-cancel",
            ParentClosePolicy::Abandon => "abandon",
        };
        self.setting("parent-close-policy", name.to_owned())
    }

    /// Lets the child live as long as this workflow's chain of runs: the parent close policy then
    /// applies when the last run ends, not when this one does. The runs that follow do not hear of
    /// the child.
    pub fn until_chain_ends(self) -> Self {
        self.setting("parent-close-scope", "chain".to_owned())
    }

    /// Sets what cancelling the child means to this workflow.
    pub fn cancellation(self, cancellation: ChildCancellation) -> Self {
        let name = match cancellation {
            ChildCancellation::WaitCompleted => "wait-cancellation-completed",
            ChildCancellation::WaitRequested => "wait-cancellation-requested",
            ChildCancellation::TryCancel => "try-cancel",
            ChildCancellation::Abandon => "abandon",
        };
        self.setting("cancellation-type", name.to_owned())
    }

    /// Sets whether the child's id may have been used before.
    pub fn id_reuse_policy(self, policy: IdReusePolicy) -> Self {
        let name = match policy {
            IdReusePolicy::AllowDuplicate => "allow-duplicate",
            IdReusePolicy::AllowDuplicateFailedOnly => "allow-duplicate-failed-only",
            IdReusePolicy::RejectDuplicate => "reject-duplicate",
        };
        self.setting("id-reuse-policy", name.to_owned())
    }

    /// Limits the child with all its runs. Default: no limit.
    pub fn execution_timeout(mut self, limit: Duration) -> Self {
        self.options.execution_timeout_ms = to_millis(limit);
        self
    }

    /// Limits one run of the child. Default: no limit.
    pub fn run_timeout(mut self, limit: Duration) -> Self {
        self.options.run_timeout_ms = to_millis(limit);
        self
    }

    /// Sets how often and at what pace a failed run of the child is tried again. Default: never.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        let numbers = policy.numbers();
        self.options.initial_interval_ms = numbers.0;
        self.options.backoff_permille = numbers.1;
        self.options.maximum_interval_ms = numbers.2;
        self.options.maximum_attempts = numbers.3;
        self
    }

    /// Excludes failures with this code from retries; may be called several times.
    pub fn non_retryable_code(self, code: impl Into<String>) -> Self {
        self.setting("non-retryable-code", code.into())
    }

    /// Runs the child again and again by this cron schedule.
    pub fn cron(self, schedule: impl Into<String>) -> Self {
        self.setting("cron", schedule.into())
    }

    /// Sets a line for people, shown beside the child.
    pub fn summary(self, text: impl Into<String>) -> Self {
        self.setting("summary", text.into())
    }

    fn setting(mut self, name: &str, value: String) -> Self {
        self.options.settings.push((name.to_owned(), value));
        self
    }

    /// Starts the child now and returns the future of its result. An input that does not encode
    /// starts nothing: the future is then ready with that failure.
    pub fn start(self) -> ChildHandle<T> {
        let state = match self.input {
            Ok(input) => {
                let mut first = 0;
                let started = Operation::start(Kind::Brief, || {
                    first = host::start_child(&self.workflow_type, input, &self.options);
                    first
                });
                let outcome = Operation::start(Kind::Child, || first + 1);
                State::Begun {
                    started: Some(started),
                    outcome: Some(outcome),
                }
            }
            Err(failure) => State::Refused(Some(failure)),
        };
        ChildHandle {
            state,
            run_id: None,
            kind: PhantomData,
        }
    }
}

impl<T: Decode> IntoFuture for Child<T> {
    type Output = Result<T, Failure>;
    type IntoFuture = ChildHandle<T>;

    fn into_future(self) -> ChildHandle<T> {
        self.start()
    }
}

#[derive(Debug)]
enum State {
    Begun {
        /// `None` once it is known to have started.
        started: Option<Operation>,
        /// `None` once it has been taken.
        outcome: Option<Operation>,
    },
    Refused(Option<Failure>),
}

/// A started child: the future of its result. Dropping it while the child is open cancels the
/// child; [`detach`](Self::detach) does not.
#[must_use = "a child whose handle is dropped is cancelled"]
pub struct ChildHandle<T> {
    state: State,
    run_id: Option<String>,
    kind: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for ChildHandle<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("ChildHandle")
            .field(&self.state)
            .finish()
    }
}

impl<T> ChildHandle<T> {
    /// Waits until the child has started, and returns the id of its first run.
    ///
    /// # Errors
    /// Why it could not be started; the code is `workflow-already-exists`,
    /// `workflow-type-not-found`, `namespace-not-found` or `invalid-argument`.
    pub async fn started(&mut self) -> Result<String, Failure> {
        std::future::poll_fn(|task| self.poll_started(task)).await
    }

    /// Cancels the child as its cancellation type says. The handle stays the place to learn how it
    /// ended.
    pub fn cancel(&self) {
        if let State::Begun {
            outcome: Some(outcome),
            ..
        } = &self.state
        {
            outcome.cancel();
        }
    }

    /// Lets the child go on with nobody waiting for its result. Its parent close policy still
    /// says what happens to it when this run ends.
    pub fn detach(self) {
        if let State::Begun { started, outcome } = self.state {
            for operation in [started, outcome].into_iter().flatten() {
                operation.detach();
            }
        }
    }

    fn poll_started(&mut self, task: &mut TaskContext<'_>) -> Poll<Result<String, Failure>> {
        let (started, outcome) = match &mut self.state {
            State::Begun { started, outcome } => (started, outcome),
            State::Refused(failure) => {
                let missing = || Failure::non_retryable("encode", "polled after it was ready");
                return Poll::Ready(Err(failure.take().unwrap_or_else(missing)));
            }
        };
        if let Some(operation) = started {
            let answer = ready!(operation.poll(task));
            *started = None;
            match answer.and_then(String::decode) {
                Ok(run_id) => self.run_id = Some(run_id),
                Err(failure) => {
                    // There is no child, so its outcome never comes.
                    if let Some(outcome) = outcome.take() {
                        outcome.detach();
                    }
                    self.state = State::Refused(Some(failure.clone()));
                    return Poll::Ready(Err(failure));
                }
            }
        }
        Poll::Ready(Ok(self.run_id.clone().unwrap_or_default()))
    }

    fn poll_outcome(&mut self, task: &mut TaskContext<'_>) -> Poll<Outcome> {
        if let Err(failure) = ready!(self.poll_started(task)) {
            return Poll::Ready(Err(failure));
        }
        match &mut self.state {
            State::Begun {
                outcome: Some(outcome),
                ..
            } => outcome.poll(task),
            State::Begun { outcome: None, .. } | State::Refused(_) => Poll::Pending,
        }
    }
}

impl<T: Decode> Future for ChildHandle<T> {
    type Output = Result<T, Failure>;

    fn poll(self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Self::Output> {
        self.get_mut()
            .poll_outcome(task)
            .map(|outcome| outcome.and_then(T::decode))
    }
}
