//! What goes over the wire, and the only mapping between it and the model.
//!
//! These types are also the client's: the CLI sends and reads them. Field names are snake_case,
//! times are RFC 3339 in UTC, durations are whole milliseconds, and user data keeps its bytes (see
//! [`payload`]). Fields may be added to answers at any time, so readers ignore what they do not
//! know; requests with unknown fields are refused, because they are typing errors.

pub mod activity;
pub mod asking;
pub mod chain;
pub mod child;
pub mod component;
pub mod event;
mod event_child;
mod event_close;
pub mod event_model;
pub mod execution;
pub mod failure;
pub mod options;
pub mod payload;
pub mod problem;
pub mod start;
pub mod task;
pub mod time;

pub use activity::{
    ActivityDetails, ActivityOperation, CompleteActivity, DeadLetter, DeadLetterList, FailActivity,
    OperateActivities, OperatedActivities, Reason, ResetActivity, Unpause, UpdateOptions,
};
pub use asking::{
    QueryAnswer, QueryWorkflow, RejectCondition, UpdateStage, UpdateStatus, UpdateWithStart,
    UpdateWorkflow, UpdatedWithStart, WaitFor,
};
pub use chain::{ChainOptions, Initiator, Link, TimeoutScope};
pub use child::{
    ChildCancellation, ChildOptions, ExternalTarget, FailedCause, IdReusePolicy, Parent,
    ParentClosePolicy, ParentCloseScope, Ward,
};
pub use component::{Component, ComponentBytes, ComponentList, Message, WorkflowType};
pub use event::{Event, EventType, HistoryPage, MarkerKind};
pub use execution::{
    Blocked, CancelWorkflow, Description, Empty, Execution, ExecutionList, Outcome, Paused,
    PendingActivity, PendingChild, PendingTimer, PendingUpdate, SignalWorkflow, StartedWorkflow,
    Status, TaskState, TerminateWorkflow,
};
pub use failure::{Attribute, Failure, FailureKind, Frame, RetryState};
pub use options::{ActivityOptions, Cancellation, RetryPolicy};
pub use payload::{Json, Payload};
pub use problem::Problem;
pub use start::{IdConflictPolicy, SignalWithStart, StartWorkflow};
pub use task::{
    CompleteTask, DeferTask, FailTask, HeartbeatAnswer, HeartbeatTask, PollTasks, PolledTasks,
    Task, TaskBatch, TaskBatchItem, TaskBatchResult, TaskBatchResults,
};
pub use time::Time;

/// Why a value from the wire has no counterpart in the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {text}")]
pub struct Invalid {
    /// The field at fault.
    pub field: &'static str,
    /// What is wrong with it.
    pub text: String,
}

impl Invalid {
    /// An error about one field.
    pub(crate) fn new(field: &'static str, text: impl Into<String>) -> Self {
        Self {
            field,
            text: text.into(),
        }
    }
}

/// Reads a field that may be absent, but takes `null` for a value like any other: user data may
/// well be `null`.
pub(crate) fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// For `skip_serializing_if`.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(crate) fn is_false(value: &bool) -> bool {
    !value
}
