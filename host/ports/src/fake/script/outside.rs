//! What a script learns of other executions.

use steadfast_model::{EventKind, Seq};

use super::ScriptedGuest;
use super::text::text;
use crate::guest::Stop;

impl ScriptedGuest {
    /// The outcome of what concerns other executions.
    #[allow(clippy::wildcard_enum_match_arm, reason = "`take` names every event")]
    pub(super) fn outside(&mut self, kind: &EventKind) -> Result<(Seq, String), Stop> {
        Ok(match kind {
            EventKind::ChildWorkflowExecutionStarted { seq, .. } => (*seq, "started".to_owned()),
            EventKind::ChildWorkflowExecutionCompleted { seq, result } => {
                (seq.outcome(), text(result))
            }
            EventKind::ChildWorkflowExecutionFailed { seq, failure }
            | EventKind::ChildWorkflowExecutionTimedOut { seq, failure }
            | EventKind::ChildWorkflowExecutionTerminated { seq, failure }
            | EventKind::ChildWorkflowExecutionCanceled { seq, failure, .. } => {
                (seq.outcome(), format!("{}:{failure}", kind.name()))
            }
            EventKind::StartChildWorkflowExecutionFailed { seq, failure, .. } => {
                // A child that was not started has no outcome of its own.
                let outcome = format!("not-started:{failure}");
                if let Some(slot) = self.operations.get_mut(&seq.outcome()) {
                    slot.get_or_insert_with(|| outcome.clone());
                }
                (*seq, outcome)
            }
            EventKind::ExternalWorkflowExecutionSignaled { seq } => (*seq, "signaled".to_owned()),
            EventKind::ExternalWorkflowExecutionCancelRequested { seq, .. } => {
                (*seq, "cancel-requested".to_owned())
            }
            EventKind::SignalExternalWorkflowExecutionFailed { seq, failure, .. }
            | EventKind::RequestCancelExternalWorkflowExecutionFailed { seq, failure, .. } => {
                (*seq, format!("undelivered:{failure}"))
            }
            other => {
                let name = other.name();
                return Err(Stop::Invalid(format!("{name} is about no other execution")));
            }
        })
    }
}
