//! What a guest asks for, and how one drive of it ends.

use alloc::boxed::Box;
use alloc::string::String;

use crate::activity::ActivityOptions;
use crate::chain::{ContinueAsNew, Fields};
use crate::child::{ChildOptions, ExternalTarget};
use crate::event::UpdateOutcome;
use crate::failure::Failure;
use crate::id::{ActivityType, Seq, SignalName, UpdateId, WorkflowType};
use crate::marker::Marker;
use crate::payload::Payload;
use crate::time::Millis;

/// One intent of the guest, made inside an activation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "most commands are the large one, and they live for a moment"
)]
pub enum Command {
    /// Run an activity. Takes the next [`Seq`].
    ScheduleActivity {
        /// What to run.
        activity_type: ActivityType,
        /// Its input.
        input: Payload,
        /// How to run it.
        options: ActivityOptions,
    },
    /// Ask a pending activity to stop.
    CancelActivity {
        /// The activity.
        seq: Seq,
    },
    /// Start a timer. Takes the next [`Seq`].
    StartTimer {
        /// How long after the workflow's current time it fires.
        duration: Millis,
    },
    /// Stop a pending timer.
    CancelTimer {
        /// The timer.
        seq: Seq,
    },
    /// Record an answer. Takes no [`Seq`].
    RecordMarker {
        /// What to record.
        marker: Marker,
    },
    /// Answer an accepted update.
    CompleteUpdate {
        /// The update.
        update_id: UpdateId,
        /// What it answers.
        outcome: UpdateOutcome,
    },
    /// Change the memo.
    UpsertMemo {
        /// New values; an encoding of `binary/null` takes a value away.
        memo: Fields,
    },
    /// Start a child workflow. Takes the next two [`Seq`]s: its start, and its outcome.
    StartChild {
        /// What to run.
        workflow_type: WorkflowType,
        /// Its input.
        input: Payload,
        /// How to run it.
        options: Box<ChildOptions>,
    },
    /// Cancel a child in the way that its options say.
    CancelChild {
        /// The number of its start.
        seq: Seq,
        /// Why; may be empty.
        reason: String,
    },
    /// Signal another execution. Takes the next [`Seq`].
    SignalExternal {
        /// Which.
        target: Box<ExternalTarget>,
        /// The signal's name.
        name: SignalName,
        /// Its payload.
        input: Payload,
    },
    /// Ask another execution to cancel itself. Takes the next [`Seq`].
    RequestCancelExternal {
        /// Which.
        target: Box<ExternalTarget>,
        /// Why; may be empty.
        reason: String,
    },
}

impl Command {
    /// The command's name in messages.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::ScheduleActivity { .. } => "ScheduleActivity",
            Self::CancelActivity { .. } => "CancelActivity",
            Self::StartTimer { .. } => "StartTimer",
            Self::CancelTimer { .. } => "CancelTimer",
            Self::RecordMarker { .. } => "RecordMarker",
            Self::CompleteUpdate { .. } => "CompleteUpdate",
            Self::UpsertMemo { .. } => "UpsertMemo",
            Self::StartChild { .. } => "StartChild",
            Self::CancelChild { .. } => "CancelChild",
            Self::SignalExternal { .. } => "SignalExternal",
            Self::RequestCancelExternal { .. } => "RequestCancelExternal",
        }
    }

    /// How many numbers the command takes.
    #[must_use]
    pub fn numbers(&self) -> u32 {
        match self {
            Self::ScheduleActivity { .. }
            | Self::StartTimer { .. }
            | Self::SignalExternal { .. }
            | Self::RequestCancelExternal { .. } => 1,
            Self::StartChild { .. } => 2,
            Self::CancelActivity { .. }
            | Self::CancelTimer { .. }
            | Self::RecordMarker { .. }
            | Self::CompleteUpdate { .. }
            | Self::UpsertMemo { .. }
            | Self::CancelChild { .. } => 0,
        }
    }
}

/// How an activation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Everything waits.
    Blocked,
    /// The workflow returned a result.
    Completed(Payload),
    /// The workflow returned a failure.
    Failed(Failure),
    /// The workflow accepted a cancel request.
    Canceled(Failure),
    /// The workflow goes on in a new run.
    ContinuedAsNew(alloc::boxed::Box<ContinueAsNew>),
    /// An event resolved an operation that this code never started.
    UnknownOperation(Seq),
}

/// Severity of a line in the run's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Detail for whoever writes the workflow.
    Debug,
    /// Normal progress.
    Info,
    /// Something to look at.
    Warn,
    /// Something went wrong.
    Error,
}

/// One line of the run's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// How severe.
    pub level: LogLevel,
    /// The text, cut to [`crate::limits::LOG_LINE_BYTES_MAX`].
    pub message: String,
}
