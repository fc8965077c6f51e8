//! What operators and outside systems do to pending activities: pause, reset, change, report.
//!
//! None of it is in the history, only what follows from it. An attempt keeps its number for ever,
//! so a report of an attempt from before a reset is stale, whatever number people see; and a due
//! time only makes the task be looked at, so one from before a change does nothing.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use steadfast_model::{
    ActivityTask, ActivityType, EventKind, Failure, FailureKind, Frame, Millis, Paused, Payload,
    RetryState, Seq, TaskState, Timestamp,
};

use crate::activity;
use crate::decide::Rejection;
use crate::draft::Draft;
use crate::options::{Patch, patched};
use crate::random::Stream;

/// Which pending activities of a run are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The one of this id.
    Id(String),
    /// All of this type; there may be none.
    Type(ActivityType),
    /// All; there may be none.
    All,
}

impl Which {
    /// True for an activity that is meant.
    #[must_use]
    pub fn means(&self, task: &ActivityTask) -> bool {
        match self {
            Self::Id(id) => task.activity_id() == *id,
            Self::Type(activity_type) => task.activity_type == *activity_type,
            Self::All => true,
        }
    }
}

/// What an operator does to pending activities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Start no further attempt; a running one is told with its next heartbeat.
    Pause {
        /// Why; may be empty.
        reason: String,
    },
    /// Go on with the next attempt now.
    Unpause {
        /// Count attempts from 1 again.
        reset_attempts: bool,
        /// Forget the last heartbeat's details.
        reset_heartbeat: bool,
        /// Begin after a random time up to this.
        jitter: Millis,
    },
    /// Begin again: attempts count from 1, limits from now. A running attempt goes on; if it
    /// fails, the next one is the first.
    Reset {
        /// Forget the last heartbeat's details.
        reset_heartbeat: bool,
        /// Stay paused.
        keep_paused: bool,
        /// Take back what operators changed of the options.
        restore_options: bool,
        /// Begin after a random time up to this.
        jitter: Millis,
    },
    /// Change options.
    Update {
        /// Take back earlier changes first.
        restore_options: bool,
        /// The changes.
        patch: Box<Patch>,
    },
    /// Give up: the workflow is told that the activity failed for good.
    Drop {
        /// Why; may be empty.
        reason: String,
    },
}

impl Operation {
    /// The operation's name in messages.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Pause { .. } => "pause",
            Self::Unpause { .. } => "unpause",
            Self::Reset { .. } => "reset",
            Self::Update { .. } => "update-options",
            Self::Drop { .. } => "drop",
        }
    }
}

/// What somebody who knows only an activity's id says about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// It has this result.
    Complete(Payload),
    /// Its attempt failed.
    Fail(Failure),
    /// It stopped because the workflow asked for it.
    Cancel(Option<Payload>),
    /// It is alive.
    Heartbeat(Option<Payload>),
}

impl Draft<'_> {
    /// Does `operation` to every activity meant.
    pub(crate) fn operate(
        &mut self,
        which: &Which,
        operation: &Operation,
        identity: &str,
        seed: [u8; 32],
        now: Timestamp,
    ) -> Result<(), Rejection> {
        let meant = self.meant(which)?;
        let mut random = Stream::new(seed);
        for task in meant {
            match operation {
                Operation::Pause { reason } => self.put(pause(task, reason, identity, now)),
                Operation::Unpause {
                    reset_attempts,
                    reset_heartbeat,
                    jitter,
                } => {
                    let at = now.after(within(*jitter, &mut random));
                    self.put(unpause(task, *reset_attempts, *reset_heartbeat, now, at));
                }
                Operation::Reset {
                    reset_heartbeat,
                    keep_paused,
                    restore_options,
                    jitter,
                } => {
                    let mut task = task;
                    if *restore_options {
                        restore(&mut task);
                    }
                    if *reset_heartbeat {
                        task.heartbeat_details = None;
                    }
                    let at = now.after(within(*jitter, &mut random));
                    self.put(reset(task, *keep_paused, now, at));
                }
                Operation::Update {
                    restore_options,
                    patch,
                } => {
                    let task = update(task, *restore_options, patch)?;
                    self.put(task);
                }
                Operation::Drop { reason } => self.drop_activity(&task, reason, identity, now),
            }
        }
        Ok(())
    }

    fn meant(&self, which: &Which) -> Result<Vec<ActivityTask>, Rejection> {
        let tasks = self.tasks();
        let meant: Vec<ActivityTask> = match which {
            Which::Id(id) => alloc::vec![self.by_id(id)?],
            Which::Type(_) | Which::All => tasks.filter(|t| which.means(t)).cloned().collect(),
        };
        Ok(meant)
    }

    /// The activity of that id. One that its workflow waits for is meant before one it gave up.
    fn by_id(&self, id: &str) -> Result<ActivityTask, Rejection> {
        let is_named = |task: &&ActivityTask| task.activity_id() == id;
        let found = self
            .tasks()
            .filter(is_named)
            .min_by_key(|task| task.control.is_abandoned);
        let none = || Rejection::NoSuchActivityId(id.into());
        found.cloned().ok_or_else(none)
    }

    /// Takes in what somebody says about the current attempt of an activity, running or not: who
    /// knows the outcome need not have been given the task.
    pub(crate) fn report(
        &mut self,
        activity_id: &str,
        report: Report,
        now: Timestamp,
    ) -> Result<(), Rejection> {
        let task = self.by_id(activity_id)?;
        match report {
            Report::Complete(result) => self.complete(&task, result, now),
            Report::Fail(failure) => self.fail(&task, failure, now),
            Report::Cancel(details) => {
                if !task.cancel_requested {
                    return Err(Rejection::CancelNotRequested(task.seq));
                }
                let frame = Frame {
                    details,
                    ..Frame::new(FailureKind::Canceled, "canceled", "cancelled as requested")
                };
                self.fail(&task, Failure::new(frame), now);
            }
            Report::Heartbeat(details) => {
                let (seq, attempt) = (task.seq, task.attempt);
                let task = self.started_task(seq, attempt)?;
                self.beat(task, details, now);
            }
        }
        Ok(())
    }

    /// The attempt goes on outside of its worker, which is free again.
    pub(crate) fn defer(&mut self, seq: Seq, attempt: u32) -> Result<(), Rejection> {
        let mut task = self.started_task(seq, attempt)?;
        task.control.is_deferred = true;
        self.put(task);
        Ok(())
    }

    fn drop_activity(&mut self, task: &ActivityTask, reason: &str, identity: &str, now: Timestamp) {
        let by = if identity.is_empty() {
            String::new()
        } else {
            format!(" by {identity}")
        };
        let why = if reason.is_empty() {
            String::new()
        } else {
            format!(": {reason}")
        };
        let frame = Frame {
            non_retryable: true,
            ..Frame::new(
                FailureKind::Application,
                DROPPED,
                format!("dropped{by}{why}"),
            )
        };
        let failure = match &task.last_failure {
            Some(cause) => cause.clone().wrapped(frame),
            None => Failure::new(frame),
        };
        // An attempt that waits has not been made.
        let waits = !matches!(task.state, TaskState::Started { .. });
        let task = &ActivityTask {
            attempt: task.attempt.saturating_sub(u32::from(waits)),
            ..task.clone()
        };
        let kind = EventKind::ActivityTaskFailed {
            seq: task.seq,
            failure: activity::of_activity(task, failure),
            attempt: task.shown_attempt(),
            worker: activity::worker(task),
            retry_state: RetryState::NonRetryableFailure,
        };
        self.end_activity(kind, task.seq, now);
    }
}

/// Code of the failure of an activity that an operator gave up.
pub const DROPPED: &str = "dropped";

/// A random duration, at most `jitter`.
fn within(jitter: Millis, random: &mut Stream) -> Millis {
    let mut bytes = [0; 8];
    random.draw(&mut bytes);
    let range = u128::from(jitter.capped().0) + 1;
    // Scaled, not taken modulo: every duration is as likely as the others.
    let scaled = (u128::from(u64::from_le_bytes(bytes)) * range) >> 64;
    Millis(u64::try_from(scaled).unwrap_or(jitter.0))
}

fn pause(mut task: ActivityTask, reason: &str, identity: &str, now: Timestamp) -> ActivityTask {
    task.control.paused.get_or_insert_with(|| Paused {
        at: now,
        reason: reason.into(),
        identity: identity.into(),
        parked: None,
    });
    task
}

#[allow(
    clippy::fn_params_excessive_bools,
    reason = "the two options of the operation, by their names"
)]
fn unpause(
    mut task: ActivityTask,
    reset_attempts: bool,
    reset_heartbeat: bool,
    now: Timestamp,
    at: Timestamp,
) -> ActivityTask {
    let is_parked = activity::is_parked(&task);
    if task.control.paused.take().is_none() {
        return task;
    }
    if reset_heartbeat {
        task.heartbeat_details = None;
    }
    let is_started = matches!(task.state, TaskState::Started { .. });
    if is_parked || reset_attempts {
        if is_started {
            task.control.reset_requested = true;
        } else {
            forget_attempts(&mut task);
        }
    }
    if is_parked {
        task.control.limits_since = Some(now);
    }
    if !is_started {
        task.state = begin(now, at);
    }
    task
}

fn reset(mut task: ActivityTask, keep_paused: bool, now: Timestamp, at: Timestamp) -> ActivityTask {
    if keep_paused {
        if let Some(paused) = &mut task.control.paused {
            paused.parked = None;
        }
    } else {
        task.control.paused = None;
    }
    if matches!(task.state, TaskState::Started { .. }) {
        task.control.reset_requested = true;
        return task;
    }
    forget_attempts(&mut task);
    task.control.limits_since = Some(now);
    task.state = begin(now, at);
    task
}

/// The attempt that waits becomes the first.
fn forget_attempts(task: &mut ActivityTask) {
    task.control.attempts_forgotten = task.attempt.saturating_sub(1);
}

fn begin(now: Timestamp, at: Timestamp) -> TaskState {
    if at > now {
        TaskState::Backoff { until: at }
    } else {
        TaskState::Ready { since: now }
    }
}

fn restore(task: &mut ActivityTask) {
    if let Some(original) = task.control.original_options.take() {
        task.options = *original;
    }
}

fn update(
    mut task: ActivityTask,
    restore_options: bool,
    patch: &Patch,
) -> Result<ActivityTask, Rejection> {
    if restore_options {
        restore(&mut task);
    }
    let options = patched(&task.options, patch).map_err(Rejection::BadOptions)?;
    if options == task.options {
        return Ok(task);
    }
    let is_retry_changed = options.retry != task.options.retry;
    let before = core::mem::replace(&mut task.options, options);
    task.control
        .original_options
        .get_or_insert_with(|| Box::new(before));
    if is_retry_changed
        && matches!(task.state, TaskState::Backoff { .. })
        && let Some(until) = activity::backoff_until(&task)
    {
        task.state = TaskState::Backoff { until };
    }
    Ok(task)
}
