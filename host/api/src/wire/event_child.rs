//! The mapping of events about children and other executions.

use steadfast_model::EventKind;

use crate::wire::event_model::{given, missing, name, text};
use crate::wire::{ChildOptions, Event, EventType, ExternalTarget, Failure, Invalid, Payload};

#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "`event_model.rs` names every event"
)]
impl Event {
    pub(super) fn fill_child(&mut self, kind: EventKind) {
        match kind {
            EventKind::StartChildWorkflowExecutionInitiated {
                seq,
                workflow_type,
                input,
                options,
            } => {
                self.seq = Some(seq.0);
                self.workflow_type = Some(workflow_type.to_string());
                self.input = Some(Payload::from_model(input));
                self.child_options = Some(ChildOptions::from_model(*options));
            }
            EventKind::StartChildWorkflowExecutionFailed {
                seq,
                cause,
                failure,
            } => {
                self.seq = Some(seq.0);
                self.cause = Some(cause.into());
                self.failure = Some(Failure::from_model(&failure));
            }
            EventKind::ChildWorkflowExecutionStarted { seq, run_id } => {
                self.seq = Some(seq.0);
                self.run_id = Some(run_id.to_string());
            }
            EventKind::ChildWorkflowExecutionCompleted { seq, result } => {
                self.seq = Some(seq.0);
                self.result = Some(Payload::from_model(result));
            }
            EventKind::ChildWorkflowExecutionFailed { seq, failure }
            | EventKind::ChildWorkflowExecutionTimedOut { seq, failure }
            | EventKind::ChildWorkflowExecutionTerminated { seq, failure } => {
                self.seq = Some(seq.0);
                self.failure = Some(Failure::from_model(&failure));
            }
            EventKind::ChildWorkflowExecutionCanceled {
                seq,
                failure,
                is_left,
            } => {
                self.seq = Some(seq.0);
                self.failure = Some(Failure::from_model(&failure));
                self.is_left = is_left;
            }
            _ => {}
        }
    }

    pub(super) fn fill_message(&mut self, kind: EventKind) {
        match kind {
            EventKind::SignalExternalWorkflowExecutionInitiated {
                seq,
                target,
                name,
                input,
            } => {
                self.seq = Some(seq.0);
                self.target = Some(ExternalTarget::from_model(&target));
                self.name = Some(name.to_string());
                self.input = Some(Payload::from_model(input));
            }
            EventKind::SignalExternalWorkflowExecutionFailed {
                seq,
                cause,
                failure,
            } => {
                self.seq = Some(seq.0);
                self.cause = Some(cause.into());
                self.failure = Some(Failure::from_model(&failure));
            }
            EventKind::ExternalWorkflowExecutionSignaled { seq } => self.seq = Some(seq.0),
            EventKind::RequestCancelExternalWorkflowExecutionInitiated {
                seq,
                target,
                reason,
                of_child,
            } => {
                self.seq = Some(seq.0);
                self.target = Some(ExternalTarget::from_model(&target));
                self.reason = Some(reason);
                self.cancellation_type = of_child.map(Into::into);
            }
            EventKind::RequestCancelExternalWorkflowExecutionFailed {
                seq,
                cause,
                failure,
                of_child,
            } => {
                self.seq = Some(seq.0);
                self.cause = Some(cause.into());
                self.failure = Some(Failure::from_model(&failure));
                self.of_child = of_child;
            }
            EventKind::ExternalWorkflowExecutionCancelRequested { seq, of_child } => {
                self.seq = Some(seq.0);
                self.of_child = of_child;
            }
            _ => {}
        }
    }

    /// The event about a child or another execution that it stands for.
    pub(super) fn outside(&self) -> Result<EventKind, Invalid> {
        let seq = self.seq()?;
        Ok(match self.kind {
            EventType::StartChildWorkflowExecutionInitiated => {
                let options = self.child_options.clone();
                let options = options.ok_or_else(|| missing("child_options"))?;
                EventKind::StartChildWorkflowExecutionInitiated {
                    seq,
                    workflow_type: name("workflow_type", &self.workflow_type)?,
                    input: self.input()?,
                    options: Box::new(options.into_model()?),
                }
            }
            EventType::StartChildWorkflowExecutionFailed => {
                EventKind::StartChildWorkflowExecutionFailed {
                    seq,
                    cause: given("cause", self.cause)?.into(),
                    failure: self.failure()?,
                }
            }
            EventType::ChildWorkflowExecutionStarted => EventKind::ChildWorkflowExecutionStarted {
                seq,
                run_id: name("run_id", &self.run_id)?,
            },
            EventType::ChildWorkflowExecutionCompleted => {
                EventKind::ChildWorkflowExecutionCompleted {
                    seq,
                    result: self.result()?,
                }
            }
            EventType::ChildWorkflowExecutionFailed => EventKind::ChildWorkflowExecutionFailed {
                seq,
                failure: self.failure()?,
            },
            EventType::ChildWorkflowExecutionCanceled => {
                EventKind::ChildWorkflowExecutionCanceled {
                    seq,
                    failure: self.failure()?,
                    is_left: self.is_left,
                }
            }
            EventType::ChildWorkflowExecutionTimedOut => {
                EventKind::ChildWorkflowExecutionTimedOut {
                    seq,
                    failure: self.failure()?,
                }
            }
            EventType::ChildWorkflowExecutionTerminated => {
                EventKind::ChildWorkflowExecutionTerminated {
                    seq,
                    failure: self.failure()?,
                }
            }
            _ => return self.message(),
        })
    }

    fn message(&self) -> Result<EventKind, Invalid> {
        let seq = self.seq()?;
        let target = || {
            let target = self.target.as_ref().ok_or_else(|| missing("target"))?;
            target.to_model().map(Box::new)
        };
        Ok(match self.kind {
            EventType::SignalExternalWorkflowExecutionInitiated => {
                EventKind::SignalExternalWorkflowExecutionInitiated {
                    seq,
                    target: target()?,
                    name: name("name", &self.name)?,
                    input: self.input()?,
                }
            }
            EventType::SignalExternalWorkflowExecutionFailed => {
                EventKind::SignalExternalWorkflowExecutionFailed {
                    seq,
                    cause: given("cause", self.cause)?.into(),
                    failure: self.failure()?,
                }
            }
            EventType::ExternalWorkflowExecutionSignaled => {
                EventKind::ExternalWorkflowExecutionSignaled { seq }
            }
            EventType::RequestCancelExternalWorkflowExecutionInitiated => {
                EventKind::RequestCancelExternalWorkflowExecutionInitiated {
                    seq,
                    target: target()?,
                    reason: text("reason", &self.reason)?,
                    of_child: self.cancellation_type.map(Into::into),
                }
            }
            EventType::RequestCancelExternalWorkflowExecutionFailed => {
                EventKind::RequestCancelExternalWorkflowExecutionFailed {
                    seq,
                    cause: given("cause", self.cause)?.into(),
                    failure: self.failure()?,
                    of_child: self.of_child,
                }
            }
            EventType::ExternalWorkflowExecutionCancelRequested => {
                EventKind::ExternalWorkflowExecutionCancelRequested {
                    seq,
                    of_child: self.of_child,
                }
            }
            _ => return Err(Invalid::new("type", "not about another execution")),
        })
    }
}
