//! An activity while it is pending: its options, and the record of its current attempt.
//!
//! Attempts are not in the history (only the activity's end is), so that an activity that fails a
//! thousand times costs one row, not a thousand events.

use alloc::boxed::Box;
use alloc::string::String;

use minicbor::{Decode, Encode};

use crate::failure::{Failure, RetryState};
use crate::id::{ActivityType, EventNumber, RunKey, Seq, TaskQueue};
use crate::payload::Payload;
use crate::retry::RetryPolicy;
use crate::time::{Millis, Timestamp};

/// How an activity is run, with defaults filled in and checked.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct ActivityOptions {
    /// Where its tasks go.
    #[n(0)]
    pub task_queue: TaskQueue,
    /// The user's name of this activity within the run; empty means the command's number.
    #[n(1)]
    pub activity_id: String,
    /// Limit over all attempts; `None` means no limit.
    #[n(2)]
    pub schedule_to_close: Option<Millis>,
    /// Limit of waiting in the queue; `None` means no limit. Never retried.
    #[n(3)]
    pub schedule_to_start: Option<Millis>,
    /// Limit of one attempt.
    #[n(4)]
    pub start_to_close: Millis,
    /// Longest gap between two heartbeats; `None` means that none are required.
    #[n(5)]
    pub heartbeat: Option<Millis>,
    /// When a failed attempt is tried again.
    #[n(6)]
    pub retry: RetryPolicy,
    /// A line for people.
    #[n(7)]
    pub summary: String,
    /// What a cancel request does.
    #[cbor(n(8), skip_if = "crate::codec::is_default")]
    pub cancellation: Cancellation,
    /// True for an activity that only the host's own process runs.
    #[cbor(n(9), skip_if = "crate::codec::is_default")]
    pub is_local: bool,
    /// True if the activity waits for an operator when it would otherwise fail for good.
    #[cbor(n(10), skip_if = "crate::codec::is_default")]
    pub parks: bool,
}

impl ActivityOptions {
    /// Options with every default: one attempt of 60 s at a time, no other limit.
    #[must_use]
    pub fn on(task_queue: TaskQueue) -> Self {
        Self {
            task_queue,
            activity_id: String::new(),
            schedule_to_close: None,
            schedule_to_start: None,
            start_to_close: Millis(60_000),
            heartbeat: None,
            retry: RetryPolicy::default(),
            summary: String::new(),
            cancellation: Cancellation::default(),
            is_local: false,
            parks: false,
        }
    }
}

/// What cancelling an activity does to it and to the workflow. Numbers are stored: append only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
#[cbor(index_only)]
pub enum Cancellation {
    /// The worker is asked; the workflow learns the outcome when the worker says so.
    #[default]
    #[n(0)]
    WaitCompleted,
    /// The workflow learns at once that the activity is cancelled; its worker is told.
    #[n(1)]
    TryCancel,
    /// The workflow learns at once that the activity is cancelled; the activity runs on and its
    /// outcome is dropped.
    #[n(2)]
    Abandon,
}

impl Cancellation {
    /// Every type.
    pub const ALL: [Self; 3] = [Self::WaitCompleted, Self::TryCancel, Self::Abandon];

    /// The name used in settings, by the API and the CLI.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WaitCompleted => "wait-completed",
            Self::TryCancel => "try-cancel",
            Self::Abandon => "abandon",
        }
    }

    /// The type of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Why an activity starts no further attempt.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Paused {
    /// Since when.
    #[n(0)]
    pub at: Timestamp,
    /// Why; may be empty.
    #[n(1)]
    pub reason: String,
    /// Who asked; may be empty.
    #[n(2)]
    pub identity: String,
    /// Set when the activity paused itself instead of failing for good: why it would have.
    #[n(3)]
    pub parked: Option<RetryState>,
}

/// What operators and the worker said about a pending activity beside its attempts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
#[cbor(array)]
pub struct Control {
    /// Set while no further attempt starts.
    #[n(0)]
    pub paused: Option<Paused>,
    /// True if the running attempt was reset: the one after it counts as the first.
    #[cbor(n(1), skip_if = "crate::codec::is_default")]
    pub reset_requested: bool,
    /// True if the running attempt is completed from elsewhere: its worker is free again.
    #[cbor(n(2), skip_if = "crate::codec::is_default")]
    pub is_deferred: bool,
    /// Attempts that resets took out of the count.
    #[cbor(n(3), skip_if = "crate::codec::is_default")]
    pub attempts_forgotten: u32,
    /// Since when the limit over all attempts counts; `None`: since it was scheduled.
    #[n(4)]
    pub limits_since: Option<Timestamp>,
    /// When the last failed attempt ended.
    #[n(5)]
    pub last_failed_at: Option<Timestamp>,
    /// The options before an operator changed them.
    #[n(6)]
    pub original_options: Option<Box<ActivityOptions>>,
    /// True if the workflow no longer waits for the outcome.
    #[cbor(n(7), skip_if = "crate::codec::is_default")]
    pub is_abandoned: bool,
}

/// Where the current attempt of an activity stands.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum TaskState {
    /// Waits in its task queue.
    #[n(0)]
    Ready {
        /// Since when.
        #[n(0)]
        since: Timestamp,
    },
    /// Waits for the next attempt.
    #[n(1)]
    Backoff {
        /// Until when.
        #[n(0)]
        until: Timestamp,
    },
    /// A worker has it.
    #[n(2)]
    Started {
        /// Who, as the worker calls itself.
        #[n(0)]
        worker: String,
        /// Since when.
        #[n(1)]
        since: Timestamp,
        /// The time of the last heartbeat; the start of the attempt when none came.
        #[n(2)]
        heartbeat: Timestamp,
    },
}

/// One pending activity: what `describe` shows, and what is owed after a crash.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct ActivityTask {
    /// The run.
    #[n(0)]
    pub run: RunKey,
    /// The command that scheduled it.
    #[n(1)]
    pub seq: Seq,
    /// Its `ActivityTaskScheduled` event, which holds the input.
    #[n(2)]
    pub scheduled_event: EventNumber,
    /// When it was scheduled.
    #[n(3)]
    pub scheduled_at: Timestamp,
    /// What to run.
    #[n(4)]
    pub activity_type: ActivityType,
    /// How to run it.
    #[n(5)]
    pub options: ActivityOptions,
    /// The current attempt, from 1. It names the attempt, so it never goes back; what people see
    /// is [`ActivityTask::shown_attempt`].
    #[n(6)]
    pub attempt: u32,
    /// Where the attempt stands.
    #[n(7)]
    pub state: TaskState,
    /// Why the attempt before failed.
    #[n(8)]
    pub last_failure: Option<Failure>,
    /// The last heartbeat's details; kept over attempts.
    #[n(9)]
    pub heartbeat_details: Option<Payload>,
    /// True once the workflow asked for its cancellation.
    #[n(10)]
    pub cancel_requested: bool,
    /// What operators and the worker said about it.
    #[cbor(n(11), skip_if = "crate::codec::is_default")]
    pub control: Control,
}

impl ActivityTask {
    /// The current attempt as the retry policy counts it: from 1, and from 1 again after a reset.
    #[must_use]
    pub fn shown_attempt(&self) -> u32 {
        self.attempt
            .saturating_sub(self.control.attempts_forgotten)
            .max(1)
    }

    /// When the limit over all attempts is reached.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        let since = self.control.limits_since.unwrap_or(self.scheduled_at);
        self.options
            .schedule_to_close
            .map(|limit| since.after(limit))
    }

    /// The user's name of the activity, or the command's number.
    #[must_use]
    pub fn activity_id(&self) -> String {
        activity_id(&self.options, self.seq)
    }
}

/// The user's name of an activity, or the command's number.
#[must_use]
pub fn activity_id(options: &ActivityOptions, seq: Seq) -> String {
    use alloc::string::ToString;
    if options.activity_id.is_empty() {
        seq.to_string()
    } else {
        options.activity_id.clone()
    }
}
