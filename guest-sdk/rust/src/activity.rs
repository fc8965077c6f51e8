//! Activities: side effects outside the sandbox, run at least once under a retry policy.
//!
//! An [`Activity`] is a description; awaiting it, or calling [`Activity::start`], schedules it.
//! Read next: `operation.rs`, `payload.rs`.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use crate::bindings::steadfast::workflow::activities::ActivityOptions;
use crate::failure::Failure;
use crate::operation::{Kind, Operation};
use crate::payload::{Decode, Encode, Payload};
use crate::time::to_millis;
use crate::{host, run};

/// How often and at what pace an activity is tried again. The default leaves everything to the
/// host: first interval 1 s, doubling, at most 100 times the first, no limit of attempts.
///
/// Durations are rounded up to milliseconds; zero means the default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RetryPolicy {
    initial_interval_ms: u64,
    backoff_permille: u32,
    maximum_interval_ms: u64,
    maximum_attempts: u32,
}

impl RetryPolicy {
    /// Returns the host's default policy.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a policy of one attempt.
    #[must_use]
    pub fn none() -> Self {
        Self::new().maximum_attempts(1)
    }

    /// Sets the interval before the first retry. Default: 1 s.
    #[must_use]
    pub fn initial_interval(mut self, interval: Duration) -> Self {
        self.initial_interval_ms = to_millis(interval);
        self
    }

    /// Sets the growth of the interval per attempt in thousandths, at least 1000. Default: 2000.
    #[must_use]
    pub fn backoff_permille(mut self, permille: u32) -> Self {
        self.backoff_permille = permille;
        self
    }

    /// Sets the largest interval. Default: 100 times the first.
    #[must_use]
    pub fn maximum_interval(mut self, interval: Duration) -> Self {
        self.maximum_interval_ms = to_millis(interval);
        self
    }

    /// First interval, growth, largest interval, attempts.
    pub(crate) const fn numbers(self) -> (u64, u32, u64, u32) {
        (
            self.initial_interval_ms,
            self.backoff_permille,
            self.maximum_interval_ms,
            self.maximum_attempts,
        )
    }

    /// Sets the number of attempts in total; 1 disables retries. Default: unlimited (0).
    #[must_use]
    pub fn maximum_attempts(mut self, attempts: u32) -> Self {
        self.maximum_attempts = attempts;
        self
    }
}

/// What cancelling an activity does once a worker has it. One that no worker has is cancelled at
/// once, unless it is abandoned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cancellation {
    /// The worker is asked, and the workflow waits for what it says: the activity may still
    /// complete.
    #[default]
    WaitCompleted,
    /// The workflow goes on at once; the worker is told to stop.
    TryCancel,
    /// The workflow goes on at once; the activity runs on, and its outcome is dropped.
    Abandon,
}

impl Cancellation {
    fn name(self) -> &'static str {
        match self {
            Self::WaitCompleted => "wait-completed",
            Self::TryCancel => "try-cancel",
            Self::Abandon => "abandon",
        }
    }
}

/// An activity that is not scheduled yet. Awaiting it schedules it and gives a
/// `Result<T, Failure>`.
///
/// Durations are rounded up to milliseconds; zero means the default.
#[must_use = "an activity is scheduled when it is awaited or started"]
pub struct Activity<T> {
    activity_type: Cow<'static, str>,
    input: Result<Payload, Failure>,
    options: ActivityOptions,
    kind: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for Activity<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Activity")
            .field("activity_type", &self.activity_type)
            .field("input", &self.input)
            .field("options", &self.options)
            .finish()
    }
}

impl<T: Decode> Activity<T> {
    pub(crate) fn new(activity_type: Cow<'static, str>, input: &(impl Encode + ?Sized)) -> Self {
        Self {
            activity_type,
            input: input.encode(run::spare_buffer()),
            options: ActivityOptions {
                schedule_to_close_ms: 0,
                schedule_to_start_ms: 0,
                start_to_close_ms: 0,
                heartbeat_ms: 0,
                initial_interval_ms: 0,
                backoff_permille: 0,
                maximum_interval_ms: 0,
                maximum_attempts: 0,
                settings: Vec::new(),
            },
            kind: PhantomData,
        }
    }

    /// Limits one attempt. Default: 60 s, or schedule-to-close if that is shorter.
    pub fn start_to_close(mut self, limit: Duration) -> Self {
        self.options.start_to_close_ms = to_millis(limit);
        self
    }

    /// Limits all attempts together, queueing and backoff included. Default: no limit.
    pub fn schedule_to_close(mut self, limit: Duration) -> Self {
        self.options.schedule_to_close_ms = to_millis(limit);
        self
    }

    /// Limits the wait in the task queue; this timeout is never retried. Default: no limit.
    pub fn schedule_to_start(mut self, limit: Duration) -> Self {
        self.options.schedule_to_start_ms = to_millis(limit);
        self
    }

    /// Limits the gap between two heartbeats of an attempt. Default: heartbeats not required.
    pub fn heartbeat(mut self, limit: Duration) -> Self {
        self.options.heartbeat_ms = to_millis(limit);
        self
    }

    /// Sets how often and at what pace the activity is tried again.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.options.initial_interval_ms = policy.initial_interval_ms;
        self.options.backoff_permille = policy.backoff_permille;
        self.options.maximum_interval_ms = policy.maximum_interval_ms;
        self.options.maximum_attempts = policy.maximum_attempts;
        self
    }

    /// Excludes failures with this code from retries; may be called several times. A timeout of
    /// one attempt is `timeout:start-to-close` or `timeout:heartbeat`.
    pub fn non_retryable_code(self, code: impl Into<String>) -> Self {
        self.setting("non-retryable-code", code.into())
    }

    /// Sets the queue whose workers run the activity. Default: the workflow's own.
    pub fn task_queue(self, name: impl Into<String>) -> Self {
        self.setting("task-queue", name.into())
    }

    /// Sets the activity's id, unique among the run's open activities. Default: made by the host.
    pub fn id(self, id: impl Into<String>) -> Self {
        self.setting("activity-id", id.into())
    }

    /// Sets a line for people, shown beside the activity.
    pub fn summary(self, text: impl Into<String>) -> Self {
        self.setting("summary", text.into())
    }

    /// Sets what cancelling the activity does once a worker has it. Default:
    /// [`Cancellation::WaitCompleted`].
    pub fn cancellation(self, cancellation: Cancellation) -> Self {
        self.setting("cancellation-type", String::from(cancellation.name()))
    }

    /// Runs the activity in the host's own process, without a task queue: for short functions
    /// that the host was built with. An attempt that a crash interrupts is run again.
    pub fn local(self) -> Self {
        self.setting("local", String::from("true"))
    }

    /// Makes the activity wait for an operator when it would otherwise fail for good.
    pub fn pause_when_exhausted(self) -> Self {
        self.setting("on-exhausted", String::from("pause"))
    }

    fn setting(mut self, name: &str, value: String) -> Self {
        self.options.settings.push((name.to_owned(), value));
        self
    }

    /// Schedules the activity now and returns the future of its result. An input that does not
    /// encode schedules nothing: the future is then ready with that failure.
    pub fn start(self) -> ActivityHandle<T> {
        let state = match self.input {
            Ok(input) => State::Scheduled(Operation::start(Kind::Activity, || {
                host::schedule_activity(&self.activity_type, input, &self.options)
            })),
            Err(failure) => State::Refused(Some(failure)),
        };
        ActivityHandle {
            state,
            kind: PhantomData,
        }
    }
}

impl<T: Decode> IntoFuture for Activity<T> {
    type Output = Result<T, Failure>;
    type IntoFuture = ActivityHandle<T>;

    fn into_future(self) -> ActivityHandle<T> {
        self.start()
    }
}

#[derive(Debug)]
enum State {
    Scheduled(Operation),
    Refused(Option<Failure>),
}

/// A scheduled activity: the future of its result. Dropping it while the activity is open
/// requests the activity's cancellation; [`detach`](Self::detach) does not.
#[must_use = "an activity whose handle is dropped is cancelled"]
pub struct ActivityHandle<T> {
    state: State,
    kind: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for ActivityHandle<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("ActivityHandle")
            .field(&self.state)
            .finish()
    }
}

impl<T> ActivityHandle<T> {
    /// Requests the activity's cancellation. The handle stays the place to learn how it ended: as
    /// cancelled (see [`Failure::is_canceled`]), or completed if it was faster.
    pub fn cancel(&self) {
        if let State::Scheduled(operation) = &self.state {
            operation.cancel();
        }
    }

    /// Lets the activity run on with nobody waiting for its result.
    pub fn detach(self) {
        if let State::Scheduled(operation) = self.state {
            operation.detach();
        }
    }

    /// Returns the operation's number in this run, from 1; 0 once the result has been taken or
    /// when nothing was scheduled.
    #[must_use]
    pub fn operation(&self) -> u32 {
        match &self.state {
            State::Scheduled(operation) => operation.number(),
            State::Refused(_) => 0,
        }
    }
}

impl<T: Decode> Future for ActivityHandle<T> {
    type Output = Result<T, Failure>;

    fn poll(self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Self::Output> {
        match &mut self.get_mut().state {
            State::Scheduled(operation) => operation
                .poll(task)
                .map(|outcome| outcome.and_then(T::decode)),
            State::Refused(failure) => {
                let missing = || Failure::non_retryable("encode", "polled after it was ready");
                Poll::Ready(Err(failure.take().unwrap_or_else(missing)))
            }
        }
    }
}
