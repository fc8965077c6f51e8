//! A chain of runs: the rules that every run of it carries, and the links between them.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use crate::child::Ward;
use crate::execution::Status;
use crate::failure::Failure;
use crate::id::{RequestId, RunId, SignalName, TaskQueue, WorkflowType};
use crate::payload::Payload;
use crate::retry::RetryPolicy;
use crate::time::{Millis, Timestamp};

/// Named values.
pub type Fields = BTreeMap<String, Payload>;

/// What whoever started a chain asked for. Every run of the chain carries it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
#[cbor(array)]
pub struct ChainOptions {
    /// Limit over the whole chain; `None`: no limit.
    #[n(0)]
    pub execution_timeout: Option<Millis>,
    /// Limit of one run; `None`: no limit.
    #[n(1)]
    pub run_timeout: Option<Millis>,
    /// When a failed run is followed by another attempt; `None`: never.
    #[n(2)]
    pub retry: Option<RetryPolicy>,
    /// When a run that has ended is followed by the next one; empty: never.
    #[n(3)]
    pub cron: String,
    /// Notes about the execution, shown to whoever asks. A workflow may change them.
    #[n(4)]
    pub memo: Fields,
    /// Values that travel along with calls, for tracing and the like.
    #[n(5)]
    pub headers: Fields,
    /// One line about the execution, for people.
    #[n(6)]
    pub summary: String,
    /// More about the execution, for people.
    #[n(7)]
    pub details: String,
}

/// Whether a workflow id may be used again once its last run has ended. Numbers are stored and
/// are Temporal's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
#[cbor(index_only)]
pub enum IdReusePolicy {
    /// Always.
    #[default]
    #[n(1)]
    AllowDuplicate,
    /// Unless the last run completed.
    #[n(2)]
    AllowDuplicateFailedOnly,
    /// Never.
    #[n(3)]
    RejectDuplicate,
}

impl IdReusePolicy {
    /// Every policy.
    pub const ALL: [Self; 3] = [
        Self::AllowDuplicate,
        Self::AllowDuplicateFailedOnly,
        Self::RejectDuplicate,
    ];

    /// The name used by guests, the API and the CLI.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AllowDuplicate => "allow-duplicate",
            Self::AllowDuplicateFailedOnly => "allow-duplicate-failed-only",
            Self::RejectDuplicate => "reject-duplicate",
        }
    }

    /// True if a run may follow one that ended like this.
    #[must_use]
    pub fn allows(self, status: Status) -> bool {
        match self {
            Self::AllowDuplicate => true,
            Self::RejectDuplicate => false,
            Self::AllowDuplicateFailedOnly => match status {
                Status::Failed | Status::Canceled | Status::Terminated | Status::TimedOut => true,
                Status::Running | Status::Completed | Status::ContinuedAsNew => false,
            },
        }
    }
}

/// Why a run follows another one. Numbers are stored and are Temporal's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Initiator {
    /// The workflow asked for it.
    #[n(1)]
    ContinueAsNew,
    /// The run before it failed and its policy allows another attempt.
    #[n(2)]
    Retry,
    /// Its schedule says so.
    #[n(3)]
    Cron,
}

impl Initiator {
    /// Every initiator.
    pub const ALL: [Self; 3] = [Self::ContinueAsNew, Self::Retry, Self::Cron];

    /// The name used by the API and the CLI.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ContinueAsNew => "continue-as-new",
            Self::Retry => "retry",
            Self::Cron => "cron",
        }
    }

    /// The initiator of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }
}

/// Where a run stands in its chain.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
#[cbor(array)]
pub struct Link {
    /// The first run of the chain; `None`: this one.
    #[n(0)]
    pub first_run_id: Option<RunId>,
    /// The run before this one; `None`: there is none.
    #[n(1)]
    pub continued_run_id: Option<RunId>,
    /// Why this run follows it.
    #[n(2)]
    pub initiator: Option<Initiator>,
    /// When the whole chain must have ended.
    #[n(3)]
    pub expiration: Option<Timestamp>,
    /// Its code does not run before this time.
    #[n(4)]
    pub not_before: Option<Timestamp>,
    /// What the last run that completed returned.
    #[n(5)]
    pub last_completion_result: Option<Payload>,
    /// Why the run before this one failed; `None`: it did not.
    #[n(6)]
    pub last_failure: Option<Failure>,
    /// Request ids of the newest signals of the runs before: the same id again is the same signal.
    #[n(7)]
    pub signal_ids: Vec<RequestId>,
    /// Children of the runs before that live as long as the chain.
    #[cbor(n(8), skip_if = "is_default")]
    pub wards: Vec<Ward>,
}

/// A signal that moves to the next run, because no code has read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarriedSignal {
    /// Its name.
    pub name: SignalName,
    /// Its payload.
    pub input: Payload,
    /// The request.
    pub request_id: RequestId,
    /// Who sent it.
    pub identity: String,
}

/// What a workflow asks for that ends its run and goes on in a new one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContinueAsNew {
    /// What the new run is started with.
    pub input: Payload,
    /// What runs; `None`: the same.
    pub workflow_type: Option<WorkflowType>,
    /// Where its activities go; `None`: as before.
    pub task_queue: Option<TaskQueue>,
    /// Limit of the new run and those after it; `None`: as before.
    pub run_timeout: Option<Millis>,
    /// Its memo; `None`: as before.
    pub memo: Option<Fields>,
    /// Signals that the code was told of and has not read.
    pub unread: Vec<UnreadSignal>,
}

/// A signal that a guest holds and has not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadSignal {
    /// The number of the event that brought it.
    pub event: u64,
    /// Its name.
    pub name: SignalName,
    /// Its payload.
    pub input: Payload,
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
