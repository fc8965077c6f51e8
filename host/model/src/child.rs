//! Children and messages between executions: how a child is run, who its parent is, and why a
//! message could not be delivered.

use alloc::string::String;

use minicbor::{Decode, Encode};

pub use crate::chain::IdReusePolicy;
use crate::id::{Namespace, RunId, RunKey, Seq, TaskQueue, WorkflowId};
use crate::retry::RetryPolicy;
use crate::time::Millis;

/// What happens to a child when its parent ends. Numbers are stored and are Temporal's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
#[cbor(index_only)]
pub enum ParentClosePolicy {
    /// The child is terminated.
    #[default]
    #[n(1)]
    Terminate,
    /// The child goes on.
    #[n(2)]
    Abandon,
    /// The child is asked to cancel itself.
    #[n(3)]
    RequestCancel,
}

impl ParentClosePolicy {
    /// Every policy.
    pub const ALL: [Self; 3] = [Self::Terminate, Self::Abandon, Self::RequestCancel];

    /// The name used by guests, the API and the CLI.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Terminate => "terminate",
            Self::Abandon => "abandon",
            Self::RequestCancel => "request-cancel",
        }
    }
}

/// When the parent counts as ended. Numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
#[cbor(index_only)]
pub enum ParentCloseScope {
    /// When the run that started the child ends, also when another run follows it.
    #[default]
    #[n(0)]
    Run,
    /// When the last run of the parent's chain ends.
    #[n(1)]
    Chain,
}

impl ParentCloseScope {
    /// Every scope.
    pub const ALL: [Self; 2] = [Self::Run, Self::Chain];

    /// The name used by guests, the API and the CLI.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Chain => "chain",
        }
    }
}

/// What cancelling a child means to the parent. Numbers are stored and are Temporal's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
#[cbor(index_only)]
pub enum ChildCancellation {
    /// The parent stops waiting at once; the child is not told.
    #[n(0)]
    Abandon,
    /// The child is asked to cancel itself, and the parent stops waiting at once.
    #[n(1)]
    TryCancel,
    /// The child is asked to cancel itself, and the parent waits for how it ends.
    #[default]
    #[n(2)]
    WaitCancellationCompleted,
    /// The parent waits until the child has been asked to cancel itself.
    #[n(3)]
    WaitCancellationRequested,
}

impl ChildCancellation {
    /// Every type.
    pub const ALL: [Self; 4] = [
        Self::Abandon,
        Self::TryCancel,
        Self::WaitCancellationCompleted,
        Self::WaitCancellationRequested,
    ];

    /// The name used by guests, the API and the CLI.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Abandon => "abandon",
            Self::TryCancel => "try-cancel",
            Self::WaitCancellationCompleted => "wait-cancellation-completed",
            Self::WaitCancellationRequested => "wait-cancellation-requested",
        }
    }

    /// True if the child is asked to cancel itself.
    #[must_use]
    pub fn is_told(self) -> bool {
        self != Self::Abandon
    }

    /// True if the workflow stops waiting as soon as it cancels the child.
    #[must_use]
    pub fn is_immediate(self) -> bool {
        matches!(self, Self::Abandon | Self::TryCancel)
    }
}

/// How a child is run, with defaults filled in and checked.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct ChildOptions {
    /// Where it runs.
    #[n(0)]
    pub namespace: Namespace,
    /// Its name.
    #[n(1)]
    pub workflow_id: WorkflowId,
    /// Where its activities go by default.
    #[n(2)]
    pub task_queue: TaskQueue,
    /// What happens to it when the parent ends.
    #[n(3)]
    pub parent_close_policy: ParentClosePolicy,
    /// When the parent counts as ended.
    #[n(4)]
    pub parent_close_scope: ParentCloseScope,
    /// What cancelling it means.
    #[n(5)]
    pub cancellation: ChildCancellation,
    /// Whether its name may have been used before.
    #[n(6)]
    pub id_reuse: IdReusePolicy,
    /// Limit over all its runs; `None` means no limit.
    #[n(7)]
    pub execution_timeout: Option<Millis>,
    /// Limit of one run; `None` means no limit.
    #[n(8)]
    pub run_timeout: Option<Millis>,
    /// When a failed run is tried again; `None`: never.
    #[n(9)]
    pub retry: Option<RetryPolicy>,
    /// Its cron schedule; empty means none.
    #[n(10)]
    pub cron: String,
    /// A line for people.
    #[n(11)]
    pub summary: String,
}

/// Who started a child.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Parent {
    /// The parent's tenant.
    #[n(0)]
    pub namespace: Namespace,
    /// The parent's name.
    #[n(1)]
    pub workflow_id: WorkflowId,
    /// The run that started the child.
    #[n(2)]
    pub run_id: RunId,
    /// The first run of the parent's chain.
    #[n(3)]
    pub first_run_id: RunId,
    /// The command that started the child.
    #[n(4)]
    pub seq: Seq,
    /// The name of the execution that nobody started, at the top of the tree.
    #[n(5)]
    pub root_workflow_id: WorkflowId,
    /// Its run.
    #[n(6)]
    pub root_run_id: RunId,
}

/// A child as the end of its parent needs it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Ward {
    /// The child's tenant.
    #[n(0)]
    pub namespace: Namespace,
    /// The child's name.
    #[n(1)]
    pub workflow_id: WorkflowId,
    /// The run that started it.
    #[n(2)]
    pub run_id: RunId,
    /// The command that started it.
    #[n(3)]
    pub seq: Seq,
    /// What happens to it.
    #[n(4)]
    pub parent_close_policy: ParentClosePolicy,
}

/// Which execution a message of a workflow is for.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct ExternalTarget {
    /// The tenant.
    #[n(0)]
    pub namespace: Namespace,
    /// Its name.
    #[n(1)]
    pub workflow_id: WorkflowId,
    /// One run of it; `None`: the current one.
    #[n(2)]
    pub run_id: Option<RunId>,
    /// True if it must be a child of the sender.
    #[n(3)]
    pub child_only: bool,
}

/// Why a message between executions was not delivered. Numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum FailedCause {
    /// The workflow id of the child is taken.
    #[n(1)]
    WorkflowAlreadyExists,
    /// There is no such namespace.
    #[n(2)]
    NamespaceNotFound,
    /// There is no such open execution.
    #[n(3)]
    ExternalWorkflowExecutionNotFound,
    /// The receiver has all the signals it may have.
    #[n(4)]
    SignalCountLimitExceeded,
    /// No component has the child's workflow type.
    #[n(5)]
    WorkflowTypeNotFound,
    /// The child cannot be started as asked: its options are refused.
    #[n(6)]
    InvalidArgument,
}

impl FailedCause {
    /// The name used by guests, the API and the CLI.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WorkflowAlreadyExists => "workflow-already-exists",
            Self::NamespaceNotFound => "namespace-not-found",
            Self::ExternalWorkflowExecutionNotFound => "external-workflow-execution-not-found",
            Self::SignalCountLimitExceeded => "signal-count-limit-exceeded",
            Self::WorkflowTypeNotFound => "workflow-type-not-found",
            Self::InvalidArgument => "invalid-argument",
        }
    }
}

/// What one run owes another. Numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LetterKind {
    /// A parent starts a child.
    StartChild,
    /// A parent asks its child to cancel itself.
    CancelChild,
    /// A signal to another execution.
    Signal,
    /// A cancel request to another execution.
    Cancel,
    /// A child tells its parent how it ended; its `seq` is 0.
    Outcome,
    /// A parent has ended: its child is treated by the parent close policy.
    ParentClosed,
    /// A parent's chain has ended, and so do the children of its earlier runs that live as long;
    /// its `seq` is the place among [`crate::Link::wards`].
    ChainClosed,
}

impl LetterKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::StartChild,
        Self::CancelChild,
        Self::Signal,
        Self::Cancel,
        Self::Outcome,
        Self::ParentClosed,
        Self::ChainClosed,
    ];

    /// The stored number.
    #[must_use]
    pub fn to_byte(self) -> u8 {
        match self {
            Self::StartChild => 1,
            Self::CancelChild => 2,
            Self::Signal => 3,
            Self::Cancel => 4,
            Self::Outcome => 5,
            Self::ParentClosed => 6,
            Self::ChainClosed => 7,
        }
    }

    /// The kind of a stored number.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::StartChild),
            2 => Some(Self::CancelChild),
            3 => Some(Self::Signal),
            4 => Some(Self::Cancel),
            5 => Some(Self::Outcome),
            6 => Some(Self::ParentClosed),
            7 => Some(Self::ChainClosed),
            _ => None,
        }
    }
}

/// Names a letter: a message that one run owes another until it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LetterKey {
    /// The sender.
    pub run: RunKey,
    /// The command that asked for it, or the child that it is about.
    pub seq: Seq,
    /// What it is.
    pub kind: LetterKind,
}
