//! The summary of one run that the store keeps beside its history.

use alloc::string::String;

use minicbor::{Decode, Encode};

use crate::id::{
    ComponentDigest, EventNumber, Namespace, RunId, RunKey, TaskQueue, WorkflowId, WorkflowType,
};
use crate::time::Timestamp;

/// Where a run stands. Numbers are stored and are Temporal's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Status {
    /// Open.
    #[n(1)]
    Running,
    /// Ended with a result.
    #[n(2)]
    Completed,
    /// Ended with a failure.
    #[n(3)]
    Failed,
    /// Ended by accepting a cancel request.
    #[n(4)]
    Canceled,
    /// Ended from outside.
    #[n(5)]
    Terminated,
    /// Went on in a new run.
    #[n(6)]
    ContinuedAsNew,
    /// Took longer than allowed.
    #[n(7)]
    TimedOut,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 7] = [
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::Terminated,
        Self::ContinuedAsNew,
        Self::TimedOut,
    ];

    /// The name used by the API and the CLI.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::Terminated => "terminated",
            Self::ContinuedAsNew => "continued-as-new",
            Self::TimedOut => "timed-out",
        }
    }

    /// The status of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// True once the run has ended.
    #[must_use]
    pub fn is_closed(self) -> bool {
        self != Self::Running
    }
}

/// Why a run cannot make progress, until its code, its history or the operator changes something.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Blocked {
    /// Since when.
    #[n(0)]
    pub since: Timestamp,
    /// `nondeterminism`, `trap`, `timeout`, `limit` or `component`.
    #[n(1)]
    pub code: String,
    /// Both sides of the difference, or the trap with its backtrace.
    #[n(2)]
    pub message: String,
    /// Failed activations in a row.
    #[n(3)]
    pub attempts: u32,
    /// When it is tried again; `None` means not by itself.
    #[n(4)]
    pub retry_at: Option<Timestamp>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct ExecutionRecord {
    /// The store's number of the run.
    #[n(0)]
    pub run: RunKey,
    /// The tenant.
    #[n(1)]
    pub namespace: Namespace,
    /// The user's name.
    #[n(2)]
    pub workflow_id: WorkflowId,
    /// The clients' id of the run.
    #[n(3)]
    pub run_id: RunId,
    /// What runs.
    #[n(4)]
    pub workflow_type: WorkflowType,
    /// The code that it is pinned to.
    #[n(5)]
    pub component: ComponentDigest,
    /// Where its activities go by default.
    #[n(6)]
    pub task_queue: TaskQueue,
    /// Where it stands.
    #[n(7)]
    pub status: Status,
    /// When it began.
    #[n(8)]
    pub started_at: Timestamp,
    /// When it ended.
    #[n(9)]
    pub closed_at: Option<Timestamp>,
    /// Why it cannot make progress.
    #[n(10)]
    pub blocked: Option<Blocked>,
    /// Number of the last event, once the run has ended.
    #[n(11)]
    pub last_event: Option<EventNumber>,
    /// Its code has not run and does not before this time.
    #[n(12)]
    pub delayed_until: Option<Timestamp>,
    /// Signals that had arrived when the run ended and that its code was never told of.
    #[n(13)]
    pub undelivered_signals: Option<u32>,
}
