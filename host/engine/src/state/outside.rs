//! The fold of what concerns children and other executions.

use alloc::boxed::Box;

use steadfast_model::child::ChildOptions;
use steadfast_model::{Event, EventKind, EventNumber, RunId, Seq, WorkflowType};

use super::{Inapplicable, Pending, State};

/// A child that may be running: the parent close policy concerns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// Its `StartChildWorkflowExecutionInitiated` event.
    pub initiated: EventNumber,
    /// What runs.
    pub workflow_type: WorkflowType,
    /// How.
    pub options: Box<ChildOptions>,
    /// Its first run, once it is started.
    pub run_id: Option<RunId>,
    /// Where its cancellation stands.
    pub cancel: ChildCancel,
    /// True while the workflow waits for its outcome.
    pub is_awaited: bool,
}

/// Where the cancellation of a child stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildCancel {
    /// It was not asked for.
    None,
    /// The child is to be told.
    Owed,
    /// The child was told, could not be told, or need not be.
    Done,
}

#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "`State::apply` names every event"
)]
impl State {
    /// Takes in an event about a child or another execution.
    pub(super) fn apply_outside(&mut self, event: &Event) -> Result<(), Inapplicable> {
        let number = event.number;
        match &event.kind {
            EventKind::StartChildWorkflowExecutionInitiated {
                seq,
                workflow_type,
                options,
                input: _,
            } => {
                self.begin_operation(number, *seq, Pending::Child)?;
                self.next_seq = seq.outcome().next();
                let child = Child {
                    initiated: number,
                    workflow_type: workflow_type.clone(),
                    options: options.clone(),
                    run_id: None,
                    cancel: ChildCancel::None,
                    is_awaited: true,
                };
                self.children.insert(*seq, child);
            }
            EventKind::SignalExternalWorkflowExecutionInitiated { seq, .. } => {
                self.begin_operation(number, *seq, Pending::Signal)?;
            }
            EventKind::SignalExternalWorkflowExecutionFailed { seq, .. }
            | EventKind::ExternalWorkflowExecutionSignaled { seq } => {
                self.end_operation(number, *seq, &Pending::Signal)?;
            }
            EventKind::RequestCancelExternalWorkflowExecutionInitiated {
                seq, of_child, ..
            } => match of_child {
                None => self.begin_operation(number, *seq, Pending::Cancel)?,
                Some(cancellation) => {
                    let owed = if cancellation.is_told() {
                        ChildCancel::Owed
                    } else {
                        ChildCancel::Done
                    };
                    self.child_cancel(number, *seq, ChildCancel::None, owed)?;
                }
            },
            EventKind::RequestCancelExternalWorkflowExecutionFailed { seq, of_child, .. }
            | EventKind::ExternalWorkflowExecutionCancelRequested { seq, of_child } => {
                if *of_child {
                    let done = ChildCancel::Done;
                    self.child_cancel(number, *seq, ChildCancel::Owed, done)?;
                } else {
                    self.end_operation(number, *seq, &Pending::Cancel)?;
                }
            }
            _ => self.apply_child(event)?,
        }
        Ok(())
    }

    fn end_operation(
        &mut self,
        event: EventNumber,
        seq: Seq,
        kind: &Pending,
    ) -> Result<(), Inapplicable> {
        if self.pending.get(&seq) != Some(kind) {
            return Err(Inapplicable::NotPending { event, seq });
        }
        self.pending.remove(&seq);
        Ok(())
    }

    /// What a child's start and end do.
    fn apply_child(&mut self, event: &Event) -> Result<(), Inapplicable> {
        let number = event.number;
        match &event.kind {
            EventKind::StartChildWorkflowExecutionFailed { seq, .. } => {
                let child = self.children.get(seq);
                if child.is_none_or(|child| child.run_id.is_some()) {
                    return Err(Inapplicable::NotPending {
                        event: number,
                        seq: *seq,
                    });
                }
                // A workflow that stopped waiting early is not told how the start went either.
                self.pending.remove(seq);
                self.children.remove(seq);
            }
            EventKind::ChildWorkflowExecutionStarted { seq, run_id } => {
                match self.children.get_mut(seq) {
                    Some(child) if child.run_id.is_none() => child.run_id = Some(*run_id),
                    _ => {
                        return Err(Inapplicable::NotPending {
                            event: number,
                            seq: *seq,
                        });
                    }
                }
            }
            EventKind::ChildWorkflowExecutionCanceled {
                seq,
                is_left,
                failure: _,
            } => {
                self.end_operation(number, *seq, &Pending::Child)?;
                match self.children.get_mut(seq) {
                    Some(child) if *is_left => child.is_awaited = false,
                    _ => drop(self.children.remove(seq)),
                }
            }
            EventKind::ChildWorkflowExecutionCompleted { seq, .. }
            | EventKind::ChildWorkflowExecutionFailed { seq, .. }
            | EventKind::ChildWorkflowExecutionTimedOut { seq, .. }
            | EventKind::ChildWorkflowExecutionTerminated { seq, .. } => {
                self.end_operation(number, *seq, &Pending::Child)?;
                self.children.remove(seq);
            }
            _ => {}
        }
        Ok(())
    }

    fn child_cancel(
        &mut self,
        event: EventNumber,
        seq: Seq,
        from: ChildCancel,
        to: ChildCancel,
    ) -> Result<(), Inapplicable> {
        match self.children.get_mut(&seq) {
            Some(child) if child.cancel == from => {
                child.cancel = to;
                Ok(())
            }
            _ => Err(Inapplicable::NotPending { event, seq }),
        }
    }
}
