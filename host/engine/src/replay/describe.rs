//! Events as messages name them.

use alloc::format;
use alloc::string::String;

use steadfast_model::EventKind;

use super::marker;

/// A recorded command, for messages.
#[allow(clippy::too_many_lines, reason = "one short arm for each event")]
pub(super) fn describe(kind: &EventKind) -> String {
    match kind {
        EventKind::ActivityTaskScheduled {
            seq, activity_type, ..
        } => {
            format!("ActivityTaskScheduled {activity_type} (command {seq})")
        }
        EventKind::TimerStarted { seq, duration, .. } => {
            format!("TimerStarted {duration} (command {seq})")
        }
        EventKind::ActivityTaskCancelRequested { seq } | EventKind::TimerCanceled { seq } => {
            format!("{} of operation {seq}", kind.name())
        }
        EventKind::MarkerRecorded { marker } => marker::describe(marker),
        EventKind::WorkflowExecutionUpdateCompleted { update_id, .. } => {
            format!("WorkflowExecutionUpdateCompleted of update {update_id:?}")
        }
        EventKind::StartChildWorkflowExecutionInitiated {
            seq,
            workflow_type,
            options,
            ..
        } => {
            let (name, id) = (kind.name(), &options.workflow_id);
            format!("{name} {workflow_type} ({id}, command {seq})")
        }
        EventKind::SignalExternalWorkflowExecutionInitiated {
            seq, target, name, ..
        } => {
            let (kind, id) = (kind.name(), &target.workflow_id);
            format!("{kind} {name} to {id} (command {seq})")
        }
        EventKind::RequestCancelExternalWorkflowExecutionInitiated {
            seq,
            target,
            of_child,
            ..
        } => {
            let (name, id) = (kind.name(), &target.workflow_id);
            match of_child {
                Some(_) => format!("{name} of child {seq}"),
                None => format!("{name} of {id} (command {seq})"),
            }
        }
        EventKind::WorkflowExecutionStarted { .. }
        | EventKind::WorkflowExecutionUpdateAccepted { .. }
        | EventKind::WorkflowExecutionCompleted { .. }
        | EventKind::WorkflowExecutionFailed { .. }
        | EventKind::WorkflowExecutionCanceled { .. }
        | EventKind::WorkflowExecutionTerminated { .. }
        | EventKind::WorkflowExecutionTimedOut { .. }
        | EventKind::WorkflowExecutionContinuedAsNew { .. }
        | EventKind::WorkflowPropertiesModified { .. }
        | EventKind::WorkflowExecutionSignaled { .. }
        | EventKind::WorkflowExecutionCancelRequested { .. }
        | EventKind::ActivityTaskCompleted { .. }
        | EventKind::ActivityTaskFailed { .. }
        | EventKind::ActivityTaskTimedOut { .. }
        | EventKind::ActivityTaskCanceled { .. }
        | EventKind::TimerFired { .. }
        | EventKind::RequestCancelExternalWorkflowExecutionFailed { .. }
        | EventKind::ExternalWorkflowExecutionCancelRequested { .. }
        | EventKind::StartChildWorkflowExecutionFailed { .. }
        | EventKind::ChildWorkflowExecutionStarted { .. }
        | EventKind::ChildWorkflowExecutionCompleted { .. }
        | EventKind::ChildWorkflowExecutionFailed { .. }
        | EventKind::ChildWorkflowExecutionCanceled { .. }
        | EventKind::ChildWorkflowExecutionTimedOut { .. }
        | EventKind::ChildWorkflowExecutionTerminated { .. }
        | EventKind::SignalExternalWorkflowExecutionFailed { .. }
        | EventKind::ExternalWorkflowExecutionSignaled { .. } => String::from(kind.name()),
    }
}
