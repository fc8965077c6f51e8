//! An activity while it is pending: its options, and the record of its current attempt.
//!
//! Attempts are not in the history (only the activity's end is), so that an activity that fails a
//! thousand times costs one row, not a thousand events.

use alloc::string::String;

use minicbor::{Decode, Encode};

use crate::failure::Failure;
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
    /// The current attempt, from 1.
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
}

impl ActivityTask {
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
