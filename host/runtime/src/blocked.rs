//! A run whose code cannot go on.

use steadfast_model::execution::Blocked;
use steadfast_model::{Millis, Timestamp};
use steadfast_ports::guest::Error as GuestError;

use crate::run::{Run, Slot};

/// First wait before a failed activation is tried again; doubles up to [`ACTIVATION_RETRY_MAX`].
const ACTIVATION_RETRY: Millis = Millis(1000);

/// Longest wait before a failed activation is tried again.
const ACTIVATION_RETRY_MAX: Millis = Millis(600_000);
/// The run waits for somebody, or for its next try. Nothing of it is lost.
pub(crate) fn block(run: &mut Run, error: &GuestError, now: Timestamp) {
    let before = run.record.blocked.take();
    let attempts = before.as_ref().map_or(0, |b| b.attempts).saturating_add(1);
    let doublings = attempts.saturating_sub(1).min(20);
    let wait = Millis(ACTIVATION_RETRY.0 << doublings).min(ACTIVATION_RETRY_MAX);
    let message = if let GuestError::Trap { message, backtrace } = error
        && !backtrace.is_empty()
    {
        format!("{message}\n{backtrace}")
    } else {
        error.to_string()
    };
    let retry_at = error.is_retryable().then(|| now.after(wait));
    tracing::warn!(run = run.key().0, workflow_id = %run.record.workflow_id, code = error.code(),
        attempts, %message, "blocked");
    run.record.blocked = Some(Blocked {
        since: before.map_or(now, |b| b.since),
        code: error.code().to_owned(),
        message,
        attempts,
        retry_at,
    });
    run.is_record_dirty = true;
    run.slot = Slot::Absent;
    run.needs_replay = true;
    run.owed.clear();
    run.history = None;
}
