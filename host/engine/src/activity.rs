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

use steadfast_model::activity::TaskState;
use steadfast_model::failure::{HEARTBEAT, SCHEDULE_TO_CLOSE, SCHEDULE_TO_START, START_TO_CLOSE};
use steadfast_model::limits::LAST_FAILURE_BYTES_MAX;
use steadfast_model::{
    ActivityTask, EventKind, Failure, FailureKind, Frame, Millis, RetryState, Timestamp,
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
    let all = task
        .options
        .schedule_to_close
        .map(|limit| task.scheduled_at.after(limit));
    match &task.state {
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
    if let Some(limit) = task.options.schedule_to_close
        && now >= task.scheduled_at.after(limit)
    {
        return Some(expired(task, SCHEDULE_TO_CLOSE, limit));
    }
    match &task.state {
        TaskState::Ready { since } => {
            let limit = task.options.schedule_to_start?;
            (now >= since.after(limit)).then(|| expired(task, SCHEDULE_TO_START, limit))
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
fn expired(task: &ActivityTask, code: &str, limit: Millis) -> Outcome {
    let outer = Frame::new(
        FailureKind::Timeout,
        code,
        format!(
            "{code} timeout of {limit} exceeded in attempt {}",
            task.attempt
        ),
    );
    close_as_timeout(task, outer, RetryState::Timeout)
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
        attempt: task.attempt,
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
    if !is_retryable(task, failure) {
        return close(RetryState::NonRetryableFailure);
    }
    if task.cancel_requested {
        return close(RetryState::CancelRequested);
    }
    if !retry::has_attempts_left(policy, task.attempt) {
        return close(RetryState::MaximumAttemptsReached);
    }
    let wait = failure
        .outer()
        .and_then(|frame| frame.next_retry_delay.capped().given())
        .unwrap_or_else(|| retry::interval(policy, task.attempt));
    let until = now.after(wait);
    if let Some(limit) = task.options.schedule_to_close
        && until >= task.scheduled_at.after(limit)
    {
        return too_late(task, failure.clone(), now, wait, limit);
    }
    let state = if wait == Millis::ZERO {
        TaskState::Ready { since: now }
    } else {
        TaskState::Backoff { until }
    };
    Outcome::Again(ActivityTask {
        attempt: task.attempt.saturating_add(1),
        state,
        last_failure: Some(failure.truncated(LAST_FAILURE_BYTES_MAX)),
        ..task.clone()
    })
}

/// No room for another attempt: closed now instead of at the deadline, and says so.
fn too_late(
    task: &ActivityTask,
    failure: Failure,
    now: Timestamp,
    wait: Millis,
    limit: Millis,
) -> Outcome {
    let left = task.scheduled_at.after(limit).since(now);
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
        attempt: task.attempt,
        worker: worker(task),
        retry_state,
    })
}

/// Who has the task.
#[must_use]
pub fn worker(task: &ActivityTask) -> alloc::string::String {
    match &task.state {
        TaskState::Started { worker, .. } => worker.clone(),
        TaskState::Ready { .. } | TaskState::Backoff { .. } => alloc::string::String::new(),
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
        format!("activity {code} failed after {} attempt(s)", task.attempt)
    };
    cause.wrapped(Frame::new(FailureKind::Activity, code, message))
}

/// Cancellations, terminations, failures that say so, and codes that the policy lists are final.
fn is_retryable(task: &ActivityTask, failure: &Failure) -> bool {
    let Some(frame) = failure.outer() else {
        return true;
    };
    let final_kind = matches!(frame.kind, FailureKind::Canceled | FailureKind::Terminated);
    !final_kind
        && !frame.non_retryable
        && !task.options.retry.non_retryable_codes.contains(&frame.code)
}
