//! What kind of a fact an event is: who made it, who is told of it, what it resolves.

use super::EventKind;
use crate::id::{RunId, Seq};

impl EventKind {
    /// The event's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::WorkflowExecutionStarted { .. } => "WorkflowExecutionStarted",
            Self::WorkflowExecutionCompleted { .. } => "WorkflowExecutionCompleted",
            Self::WorkflowExecutionFailed { .. } => "WorkflowExecutionFailed",
            Self::ActivityTaskScheduled { .. } => "ActivityTaskScheduled",
            Self::ActivityTaskCompleted { .. } => "ActivityTaskCompleted",
            Self::ActivityTaskFailed { .. } => "ActivityTaskFailed",
            Self::ActivityTaskTimedOut { .. } => "ActivityTaskTimedOut",
            Self::ActivityTaskCancelRequested { .. } => "ActivityTaskCancelRequested",
            Self::ActivityTaskCanceled { .. } => "ActivityTaskCanceled",
            Self::TimerStarted { .. } => "TimerStarted",
            Self::TimerFired { .. } => "TimerFired",
            Self::TimerCanceled { .. } => "TimerCanceled",
            Self::WorkflowExecutionCancelRequested { .. } => "WorkflowExecutionCancelRequested",
            Self::WorkflowExecutionCanceled { .. } => "WorkflowExecutionCanceled",
            Self::MarkerRecorded { .. } => "MarkerRecorded",
            Self::WorkflowExecutionSignaled { .. } => "WorkflowExecutionSignaled",
            Self::WorkflowExecutionUpdateAccepted { .. } => "WorkflowExecutionUpdateAccepted",
            Self::WorkflowExecutionUpdateCompleted { .. } => "WorkflowExecutionUpdateCompleted",
            Self::WorkflowExecutionTerminated { .. } => "WorkflowExecutionTerminated",
            Self::WorkflowExecutionTimedOut { .. } => "WorkflowExecutionTimedOut",
            Self::WorkflowExecutionContinuedAsNew { .. } => "WorkflowExecutionContinuedAsNew",
            Self::WorkflowPropertiesModified { .. } => "WorkflowPropertiesModified",
            Self::RequestCancelExternalWorkflowExecutionInitiated { .. } => {
                "RequestCancelExternalWorkflowExecutionInitiated"
            }
            Self::RequestCancelExternalWorkflowExecutionFailed { .. } => {
                "RequestCancelExternalWorkflowExecutionFailed"
            }
            Self::ExternalWorkflowExecutionCancelRequested { .. } => {
                "ExternalWorkflowExecutionCancelRequested"
            }
            Self::StartChildWorkflowExecutionInitiated { .. } => {
                "StartChildWorkflowExecutionInitiated"
            }
            Self::StartChildWorkflowExecutionFailed { .. } => "StartChildWorkflowExecutionFailed",
            Self::ChildWorkflowExecutionStarted { .. } => "ChildWorkflowExecutionStarted",
            Self::ChildWorkflowExecutionCompleted { .. } => "ChildWorkflowExecutionCompleted",
            Self::ChildWorkflowExecutionFailed { .. } => "ChildWorkflowExecutionFailed",
            Self::ChildWorkflowExecutionCanceled { .. } => "ChildWorkflowExecutionCanceled",
            Self::ChildWorkflowExecutionTimedOut { .. } => "ChildWorkflowExecutionTimedOut",
            Self::ChildWorkflowExecutionTerminated { .. } => "ChildWorkflowExecutionTerminated",
            Self::SignalExternalWorkflowExecutionInitiated { .. } => {
                "SignalExternalWorkflowExecutionInitiated"
            }
            Self::SignalExternalWorkflowExecutionFailed { .. } => {
                "SignalExternalWorkflowExecutionFailed"
            }
            Self::ExternalWorkflowExecutionSignaled { .. } => "ExternalWorkflowExecutionSignaled",
        }
    }

    /// True for events that a command of the guest made.
    #[must_use]
    pub fn is_command(&self) -> bool {
        match self {
            Self::ActivityTaskScheduled { .. }
            | Self::ActivityTaskCancelRequested { .. }
            | Self::TimerStarted { .. }
            | Self::TimerCanceled { .. }
            | Self::MarkerRecorded { .. }
            | Self::WorkflowExecutionUpdateCompleted { .. }
            | Self::WorkflowExecutionCompleted { .. }
            | Self::WorkflowExecutionFailed { .. }
            | Self::WorkflowExecutionCanceled { .. }
            | Self::WorkflowExecutionContinuedAsNew { .. }
            | Self::WorkflowPropertiesModified { .. }
            | Self::RequestCancelExternalWorkflowExecutionInitiated { .. }
            | Self::StartChildWorkflowExecutionInitiated { .. }
            | Self::SignalExternalWorkflowExecutionInitiated { .. } => true,
            Self::WorkflowExecutionStarted { .. }
            | Self::ActivityTaskCompleted { .. }
            | Self::ActivityTaskFailed { .. }
            | Self::ActivityTaskTimedOut { .. }
            | Self::ActivityTaskCanceled { .. }
            | Self::TimerFired { .. }
            | Self::WorkflowExecutionCancelRequested { .. }
            | Self::WorkflowExecutionSignaled { .. }
            | Self::WorkflowExecutionUpdateAccepted { .. }
            | Self::WorkflowExecutionTerminated { .. }
            | Self::WorkflowExecutionTimedOut { .. }
            | Self::RequestCancelExternalWorkflowExecutionFailed { .. }
            | Self::ExternalWorkflowExecutionCancelRequested { .. }
            | Self::StartChildWorkflowExecutionFailed { .. }
            | Self::ChildWorkflowExecutionStarted { .. }
            | Self::ChildWorkflowExecutionCompleted { .. }
            | Self::ChildWorkflowExecutionFailed { .. }
            | Self::ChildWorkflowExecutionCanceled { .. }
            | Self::ChildWorkflowExecutionTimedOut { .. }
            | Self::ChildWorkflowExecutionTerminated { .. }
            | Self::SignalExternalWorkflowExecutionFailed { .. }
            | Self::ExternalWorkflowExecutionSignaled { .. } => false,
        }
    }

    /// True for events that a guest is told about, one at a time.
    #[must_use]
    pub fn is_delivered(&self) -> bool {
        match self {
            Self::ActivityTaskCompleted { .. }
            | Self::ActivityTaskFailed { .. }
            | Self::ActivityTaskTimedOut { .. }
            | Self::ActivityTaskCanceled { .. }
            | Self::TimerFired { .. }
            | Self::WorkflowExecutionCancelRequested { .. }
            | Self::WorkflowExecutionSignaled { .. }
            | Self::WorkflowExecutionUpdateAccepted { .. }
            | Self::StartChildWorkflowExecutionFailed { .. }
            | Self::ChildWorkflowExecutionStarted { .. }
            | Self::ChildWorkflowExecutionCompleted { .. }
            | Self::ChildWorkflowExecutionFailed { .. }
            | Self::ChildWorkflowExecutionCanceled { .. }
            | Self::ChildWorkflowExecutionTimedOut { .. }
            | Self::ChildWorkflowExecutionTerminated { .. }
            | Self::SignalExternalWorkflowExecutionFailed { .. }
            | Self::ExternalWorkflowExecutionSignaled { .. } => true,
            // A child's cancellation has no number of its own: how it ends says it all.
            Self::RequestCancelExternalWorkflowExecutionFailed { of_child, .. }
            | Self::ExternalWorkflowExecutionCancelRequested { of_child, .. } => !of_child,
            Self::WorkflowExecutionStarted { .. }
            | Self::WorkflowExecutionCompleted { .. }
            | Self::WorkflowExecutionFailed { .. }
            | Self::WorkflowExecutionCanceled { .. }
            | Self::WorkflowExecutionTerminated { .. }
            | Self::WorkflowExecutionTimedOut { .. }
            | Self::WorkflowExecutionContinuedAsNew { .. }
            | Self::WorkflowPropertiesModified { .. }
            | Self::ActivityTaskScheduled { .. }
            | Self::ActivityTaskCancelRequested { .. }
            | Self::TimerStarted { .. }
            | Self::TimerCanceled { .. }
            | Self::MarkerRecorded { .. }
            | Self::WorkflowExecutionUpdateCompleted { .. }
            | Self::RequestCancelExternalWorkflowExecutionInitiated { .. }
            | Self::StartChildWorkflowExecutionInitiated { .. }
            | Self::SignalExternalWorkflowExecutionInitiated { .. } => false,
        }
    }

    /// True for the last event of a run.
    #[must_use]
    pub fn is_close(&self) -> bool {
        matches!(
            self,
            Self::WorkflowExecutionCompleted { .. }
                | Self::WorkflowExecutionFailed { .. }
                | Self::WorkflowExecutionCanceled { .. }
                | Self::WorkflowExecutionTerminated { .. }
                | Self::WorkflowExecutionTimedOut { .. }
                | Self::WorkflowExecutionContinuedAsNew { .. }
        )
    }

    /// The operation that the event resolves for the guest, if it does.
    #[must_use]
    pub fn resolves(&self) -> Option<Seq> {
        match self {
            Self::ActivityTaskCompleted { seq, .. }
            | Self::ActivityTaskFailed { seq, .. }
            | Self::ActivityTaskTimedOut { seq, .. }
            | Self::ActivityTaskCanceled { seq, .. }
            | Self::TimerFired { seq }
            | Self::StartChildWorkflowExecutionFailed { seq, .. }
            | Self::ChildWorkflowExecutionStarted { seq, .. }
            | Self::SignalExternalWorkflowExecutionFailed { seq, .. }
            | Self::ExternalWorkflowExecutionSignaled { seq } => Some(*seq),
            Self::ChildWorkflowExecutionCompleted { seq, .. }
            | Self::ChildWorkflowExecutionFailed { seq, .. }
            | Self::ChildWorkflowExecutionCanceled { seq, .. }
            | Self::ChildWorkflowExecutionTimedOut { seq, .. }
            | Self::ChildWorkflowExecutionTerminated { seq, .. } => Some(seq.outcome()),
            Self::RequestCancelExternalWorkflowExecutionFailed { seq, of_child, .. }
            | Self::ExternalWorkflowExecutionCancelRequested { seq, of_child } => {
                (!of_child).then_some(*seq)
            }
            Self::WorkflowExecutionStarted { .. }
            | Self::WorkflowExecutionCompleted { .. }
            | Self::WorkflowExecutionFailed { .. }
            | Self::WorkflowExecutionCanceled { .. }
            | Self::WorkflowExecutionTerminated { .. }
            | Self::WorkflowExecutionTimedOut { .. }
            | Self::WorkflowExecutionContinuedAsNew { .. }
            | Self::WorkflowPropertiesModified { .. }
            | Self::WorkflowExecutionCancelRequested { .. }
            | Self::WorkflowExecutionSignaled { .. }
            | Self::ActivityTaskScheduled { .. }
            | Self::ActivityTaskCancelRequested { .. }
            | Self::TimerStarted { .. }
            | Self::TimerCanceled { .. }
            | Self::MarkerRecorded { .. }
            | Self::WorkflowExecutionUpdateAccepted { .. }
            | Self::WorkflowExecutionUpdateCompleted { .. }
            | Self::RequestCancelExternalWorkflowExecutionInitiated { .. }
            | Self::StartChildWorkflowExecutionInitiated { .. }
            | Self::SignalExternalWorkflowExecutionInitiated { .. } => None,
        }
    }

    /// The run that follows the one that this event ends, if one does.
    #[must_use]
    pub fn new_run_id(&self) -> Option<RunId> {
        if let Self::WorkflowExecutionCompleted { new_run_id, .. }
        | Self::WorkflowExecutionFailed { new_run_id, .. }
        | Self::WorkflowExecutionTimedOut { new_run_id, .. } = self
        {
            *new_run_id
        } else if let Self::WorkflowExecutionContinuedAsNew { new_run_id, .. } = self {
            Some(*new_run_id)
        } else {
            None
        }
    }

    /// Bytes of the payload or failure that a guest is told with the event.
    #[must_use]
    pub fn told_bytes(&self) -> usize {
        if let Self::ActivityTaskCompleted {
            result: payload, ..
        }
        | Self::WorkflowExecutionSignaled { input: payload, .. } = self
        {
            payload.size_bytes()
        } else if let Self::ActivityTaskFailed { failure, .. }
        | Self::ActivityTaskTimedOut { failure, .. }
        | Self::ActivityTaskCanceled { failure, .. } = self
        {
            failure.size_bytes()
        } else {
            0
        }
    }
}
