//! The last event of a run on the wire.

use steadfast_model::EventKind;

use crate::wire::{Event, Failure, Payload};

impl Event {
    #[allow(clippy::wildcard_enum_match_arm, reason = "`fill` names every event")]
    pub(super) fn fill_close(&mut self, kind: EventKind) {
        self.new_run_id = kind.new_run_id().map(|id| id.to_string());
        match kind {
            EventKind::WorkflowExecutionCompleted { result, .. } => {
                self.result = Some(Payload::from_model(result));
            }
            EventKind::WorkflowExecutionFailed {
                failure,
                retry_state,
                ..
            } => {
                self.failure = Some(Failure::from_model(&failure));
                self.retry_state = retry_state.map(Into::into);
            }
            EventKind::WorkflowExecutionTimedOut {
                scope, retry_state, ..
            } => {
                self.scope = Some(scope.into());
                self.retry_state = Some(retry_state.into());
            }
            EventKind::WorkflowExecutionContinuedAsNew {
                workflow_type,
                input,
                not_before,
                ..
            } => {
                self.workflow_type = Some(workflow_type.to_string());
                self.input = Some(Payload::from_model(input));
                self.not_before = not_before.map(Into::into);
            }
            _ => {}
        }
    }
}
