//! What happens to a pending activity: claims, failures, deadlines. Rules of `ActivityTask`.
//!
//! ```text
//!            claim                    complete / fail for good / cancelled / timed out
//!   Ready ----------> Started ------------------------------------------> closed
//!     ^                  |  fail, start-to-close, heartbeat
//!     |      due         v
//!     +------------- Backoff        (attempt + 1)
//! ```

use alloc::format;
use alloc::string::String;

use steadfast_model::activity::TaskState;
use steadfast_model::failure::{
    HEARTBEAT, SCHEDULE_TO_CLOSE, SCHEDULE_TO_START, START_TO_CLOSE, TIMEOUT_PREFIX,
};
use steadfast_model::limits::LAST_FAILURE_BYTES_MAX;
use steadfast_model::{
    ActivityTask, EventKind, Failure, FailureKind, Frame, Millis, Paused, RetryState, Timestamp,
};

use crate::retry;

/// What becomes of an attempt that ended badly.
#[allow(
    clippy::large_enum_variant,
    reason = "it lives for a moment, on the stack"
)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The activity goes on in this form.
    Again(ActivityTask),
    /// It is over: this event closes it.
    Closed(EventKind),
}

/// When the task must be looked at again, if ever: its nearest deadline or the end of its backoff.
#[must_use]
pub fn due(task: &ActivityTask) -> Option<Timestamp> {
    // A parked activity has used up its time: it waits for an operator.
    if is_parked(task) {
        return None;
    }
    let all = task.deadline();
    match &task.state {
        // While no attempt may start, neither the queue's limit nor the backoff counts.
        TaskState::Ready { .. } | TaskState::Backoff { .. } if task.control.paused.is_some() => all,
        TaskState::Ready { since } => earliest(
            all,
            task.options
                .schedule_to_start
                .map(|limit| since.after(limit)),
        ),
        TaskState::Backoff { until } => earliest(all, Some(*until)),
        TaskState::Started {
            since,
            heartbeat,
            worker: _,
        } => {
            let attempt = since.after(task.options.start_to_close);
            let beat = task.options.heartbeat.map(|limit| heartbeat.after(limit));
            earliest(all, earliest(Some(attempt), beat))
        }
    }
}

fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Looks at a task whose time has come; `None` when nothing is due yet.
#[must_use]
pub fn look(task: &ActivityTask, now: Timestamp) -> Option<Outcome> {
    if is_parked(task) {
        return None;
    }
    if let (Some(limit), Some(deadline)) = (task.options.schedule_to_close, task.deadline())
        && now >= deadline
    {
        return Some(expired(task, SCHEDULE_TO_CLOSE, limit, now));
    }
    match &task.state {
        TaskState::Ready { .. } | TaskState::Backoff { .. } if task.control.paused.is_some() => {
            None
        }
        TaskState::Ready { since } => {
            let limit = task.options.schedule_to_start?;
            (now >= since.after(limit)).then(|| expired(task, SCHEDULE_TO_START, limit, now))
        }
        TaskState::Backoff { until } => (now >= *until).then(|| {
            let state = TaskState::Ready { since: now };
            Outcome::Again(ActivityTask {
                state,
                ..task.clone()
            })
        }),
        TaskState::Started {
            since,
            heartbeat,
            worker: _,
        } => {
            let attempt = task.options.start_to_close;
            if now >= since.after(attempt) {
                return Some(time_out(task, START_TO_CLOSE, attempt, now));
            }
            let beat = task.options.heartbeat?;
            (now >= heartbeat.after(beat)).then(|| time_out(task, HEARTBEAT, beat, now))
        }
    }
}

/// An attempt ran out of time: tried again by the policy, or closed.
fn time_out(task: &ActivityTask, code: &str, limit: Millis, now: Timestamp) -> Outcome {
    let message = format!("{code} timeout of {limit} exceeded");
    let frame = Frame::new(FailureKind::Timeout, code, message);
    let close = |state| close_as_timeout(task, frame.clone(), state);
    end_attempt(task, &Failure::new(frame.clone()), now, close)
}

/// Closes a task whose limit over all attempts, or in the queue, has passed.
fn expired(task: &ActivityTask, code: &str, limit: Millis, now: Timestamp) -> Outcome {
    let outer = Frame::new(
        FailureKind::Timeout,
        code,
        format!(
            "{code} timeout of {limit} exceeded in attempt {}",
            task.shown_attempt()
        ),
    );
    if parks(task) {
        let failure = task.last_failure.clone();
        let failure = failure.map_or_else(
            || Failure::new(outer.clone()),
            |cause| cause.wrapped(outer.clone()),
        );
        return park(task, &failure, RetryState::Timeout, now);
    }
    close_as_timeout(task, outer, RetryState::Timeout)
}

/// True for an activity that waits for an operator instead of having failed for good.
#[must_use]
pub fn is_parked(task: &ActivityTask) -> bool {
    let paused = task.control.paused.as_ref();
    paused.is_some_and(|paused| paused.parked.is_some())
}

/// True if the activity waits for an operator when its attempts are used up. One that its workflow
/// has cancelled does not: nobody would look for it.
fn parks(task: &ActivityTask) -> bool {
    task.options.parks && !task.cancel_requested && !task.control.is_abandoned
}

/// The activity would fail for good; it waits for an operator instead.
fn park(task: &ActivityTask, failure: &Failure, state: RetryState, now: Timestamp) -> Outcome {
    let reason = format!("{} attempt(s) failed: {failure}", task.shown_attempt());
    let paused = Paused {
        at: now,
        reason: cut(reason),
        identity: String::new(),
        parked: Some(state),
    };
    let mut next = next_attempt(task, failure, TaskState::Ready { since: now }, now);
    next.control.paused = Some(paused);
    Outcome::Again(next)
}

/// Long enough for people, short enough for a row.
fn cut(mut text: String) -> String {
    const MAX: usize = 500;
    if let Some((end, _)) = text.char_indices().find(|(at, _)| *at >= MAX) {
        text.truncate(end);
    }
    text
}

/// The task after a failed attempt. A reset that came during the attempt takes effect here.
fn next_attempt(
    task: &ActivityTask,
    failure: &Failure,
    state: TaskState,
    now: Timestamp,
) -> ActivityTask {
    let mut next = ActivityTask {
        attempt: task.attempt.saturating_add(1),
        state,
        last_failure: Some(failure.truncated(LAST_FAILURE_BYTES_MAX)),
        ..task.clone()
    };
    next.control.last_failed_at = Some(now);
    next.control.is_deferred = false;
    if core::mem::take(&mut next.control.reset_requested) {
        next.control.attempts_forgotten = task.attempt;
        next.control.limits_since = Some(now);
    }
    next
}

/// The last real failure stays visible as the cause, and the last heartbeat's details as the
/// timeout's.
fn close_as_timeout(task: &ActivityTask, outer: Frame, retry_state: RetryState) -> Outcome {
    let outer = Frame {
        details: task.heartbeat_details.clone(),
        ..outer
    };
    let failure = match &task.last_failure {
        Some(cause) => cause.clone().wrapped(outer),
        None => Failure::new(outer),
    };
    Outcome::Closed(EventKind::ActivityTaskTimedOut {
        seq: task.seq,
        failure: of_activity(task, failure),
        attempt: task.shown_attempt(),
        retry_state,
    })
}

/// A worker says that an attempt failed: tried again by the policy, or closed with the reason why
/// not.
#[must_use]
pub fn fail(task: &ActivityTask, failure: &Failure, now: Timestamp) -> Outcome {
    end_attempt(task, failure, now, |state| {
        close_failed(task, failure.clone(), state)
    })
}

fn end_attempt(
    task: &ActivityTask,
    failure: &Failure,
    now: Timestamp,
    close: impl Fn(RetryState) -> Outcome,
) -> Outcome {
    let policy = &task.options.retry;
    let close = |state| {
        if parks(task) && !is_asked_to_stop(failure) {
            park(task, failure, state, now)
        } else {
            close(state)
        }
    };
    if !is_retryable(task, failure) {
        return close(RetryState::NonRetryableFailure);
    }
    if task.cancel_requested {
        return close(RetryState::CancelRequested);
    }
    if task.control.reset_requested {
        let state = TaskState::Ready { since: now };
        return Outcome::Again(next_attempt(task, failure, state, now));
    }
    if !retry::has_attempts_left(policy, task.shown_attempt()) {
        return close(RetryState::MaximumAttemptsReached);
    }
    let wait = wait(task, failure);
    let until = now.after(wait);
    if let (Some(limit), Some(deadline)) = (task.options.schedule_to_close, task.deadline())
        && until >= deadline
    {
        if parks(task) {
            return park(task, failure, RetryState::Timeout, now);
        }
        return too_late(task, failure.clone(), now, wait, limit);
    }
    let state = if wait == Millis::ZERO {
        TaskState::Ready { since: now }
    } else {
        TaskState::Backoff { until }
    };
    Outcome::Again(next_attempt(task, failure, state, now))
}

/// The wait after the task's current attempt failed so. Only code that raises the failure itself
/// may name another one than the policy's; it may exceed the policy's maximum.
fn wait(task: &ActivityTask, failure: &Failure) -> Millis {
    let own = failure
        .outer()
        .filter(|frame| frame.kind == FailureKind::Application)
        .and_then(|frame| frame.next_retry_delay.capped().given());
    own.unwrap_or_else(|| retry::interval(&task.options.retry, task.shown_attempt()))
}

/// No room for another attempt: closed now instead of at the deadline, and says so.
fn too_late(
    task: &ActivityTask,
    failure: Failure,
    now: Timestamp,
    wait: Millis,
    limit: Millis,
) -> Outcome {
    let deadline = task.deadline().unwrap_or(now);
    let left = deadline.since(now);
    let outer = Frame::new(
        FailureKind::Timeout,
        SCHEDULE_TO_CLOSE,
        format!(
            "the next attempt would start in {wait}, but only {left} of the schedule-to-close \
             limit of {limit} are left"
        ),
    );
    let task = ActivityTask {
        last_failure: Some(failure),
        ..task.clone()
    };
    close_as_timeout(&task, outer, RetryState::Timeout)
}

fn close_failed(task: &ActivityTask, failure: Failure, retry_state: RetryState) -> Outcome {
    Outcome::Closed(EventKind::ActivityTaskFailed {
        seq: task.seq,
        failure: of_activity(task, failure),
        attempt: task.shown_attempt(),
        worker: worker(task),
        retry_state,
    })
}

/// Who has the task.
#[must_use]
pub fn worker(task: &ActivityTask) -> String {
    match &task.state {
        TaskState::Started { worker, .. } => worker.clone(),
        TaskState::Ready { .. } | TaskState::Backoff { .. } => String::new(),
    }
}

/// The failure as the workflow sees it: an outermost frame that names the activity.
#[must_use]
pub fn of_activity(task: &ActivityTask, cause: Failure) -> Failure {
    let code = task.activity_type.as_str();
    let is_canceled = cause
        .outer()
        .is_some_and(|frame| frame.kind == FailureKind::Canceled);
    let message = if is_canceled {
        format!("activity {code} was cancelled")
    } else {
        format!(
            "activity {code} failed after {} attempt(s)",
            task.shown_attempt()
        )
    };
    cause.wrapped(Frame::new(FailureKind::Activity, code, message))
}

/// True for a failure that says that the attempt stopped because it was told to.
fn is_asked_to_stop(failure: &Failure) -> bool {
    failure
        .outer()
        .is_some_and(|frame| matches!(frame.kind, FailureKind::Canceled | FailureKind::Terminated))
}

/// Cancellations, terminations, failures that say so, and codes that the policy lists are final.
/// A timeout is listed as `timeout:<its code>`, so that an application's own code of the same name
/// is not meant; of the four, only those of one attempt are ever tried again.
fn is_retryable(task: &ActivityTask, failure: &Failure) -> bool {
    let Some(frame) = failure.outer() else {
        return true;
    };
    let codes = &task.options.retry.non_retryable_codes;
    let is_listed = |prefix: &str| {
        let mut codes = codes.iter();
        codes.any(|code| code.strip_prefix(prefix) == Some(frame.code.as_str()))
    };
    let is_final = match frame.kind {
        FailureKind::Canceled | FailureKind::Terminated => true,
        FailureKind::Timeout => {
            matches!(frame.code.as_str(), SCHEDULE_TO_CLOSE | SCHEDULE_TO_START)
                || is_listed(TIMEOUT_PREFIX)
        }
        FailureKind::Application
        | FailureKind::Server
        | FailureKind::Activity
        | FailureKind::ChildWorkflow
        | FailureKind::ResetWorkflow
        | FailureKind::NexusOperation
        | FailureKind::NexusHandler => is_listed(""),
    };
    !is_final && !frame.non_retryable
}

/// When the attempt after the last failure may start, by the options as they are now.
pub(crate) fn backoff_until(task: &ActivityTask) -> Option<Timestamp> {
    let (failed_at, failure) = (task.control.last_failed_at?, task.last_failure.as_ref()?);
    let before = ActivityTask {
        attempt: task.attempt.saturating_sub(1),
        ..task.clone()
    };
    Some(failed_at.after(wait(&before, failure)))
}
