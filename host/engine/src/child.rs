//! What happens to children and to messages between executions: what each command records, what
//! each answer records, and which letters a run owes.
//!
//! ```text
//!   initiated --start answered--> started --outcome--> over
//!       |                            |
//!       |  refused                   |  cancelled, and the parent stops waiting
//!       v                            v
//!     over                         left: it may go on, the parent close policy concerns it
//! ```

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use steadfast_model::child::{
    ChildCancellation, ChildOptions, ExternalTarget, FailedCause, LetterKind, ParentClosePolicy,
    ParentCloseScope, Ward,
};
use steadfast_model::event::Started;
use steadfast_model::failure::START_TO_CLOSE;
use steadfast_model::{
    EventKind, Failure, FailureKind, Frame, Payload, RunId, Seq, Timestamp, WorkflowType,
};

use crate::draft::Draft;
use crate::state::{Child, ChildCancel, Pending, State};

/// How a child ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildOutcome {
    /// It returned a result.
    Completed(Payload),
    /// It returned a failure.
    Failed(Failure),
    /// It accepted a cancel request.
    Canceled(Failure),
    /// It ran out of time.
    TimedOut(Failure),
    /// It was ended from outside.
    Terminated {
        /// Why; may be empty.
        reason: String,
    },
}

/// Why a message was not delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undeliverable {
    /// For programs.
    pub cause: FailedCause,
    /// For people.
    pub message: String,
}

impl Undeliverable {
    fn failure(&self) -> Failure {
        let mut frame = Frame::new(
            FailureKind::Application,
            self.cause.name(),
            self.message.clone(),
        );
        frame.non_retryable = true;
        Failure::new(frame)
    }
}

/// What the last event of a run tells the run's parent; `None` if it is not a last event, or if
/// another run follows: a child is one child over all its runs.
#[must_use]
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "only the last events of runs have an outcome"
)]
pub fn outcome(close: &EventKind) -> Option<ChildOutcome> {
    if close.new_run_id().is_some() {
        return None;
    }
    match close {
        EventKind::WorkflowExecutionCompleted { result, .. } => {
            Some(ChildOutcome::Completed(result.clone()))
        }
        EventKind::WorkflowExecutionFailed { failure, .. } => {
            Some(ChildOutcome::Failed(failure.clone()))
        }
        EventKind::WorkflowExecutionTimedOut { scope, .. } => {
            let message = format!("the limit of its {} is over", scope.name());
            let frame = Frame::new(FailureKind::Timeout, START_TO_CLOSE, message);
            Some(ChildOutcome::TimedOut(Failure::new(frame)))
        }
        EventKind::WorkflowExecutionCanceled { failure } => {
            Some(ChildOutcome::Canceled(failure.clone()))
        }
        EventKind::WorkflowExecutionTerminated { reason, .. } => Some(ChildOutcome::Terminated {
            reason: reason.clone(),
        }),
        _ => None,
    }
}

/// The letters that a run owes on account of one of its numbers, in the order of sending. Those of
/// a closed run are the ones that it owed when it closed.
#[must_use]
pub fn letters_of(state: &State, seq: Seq) -> Vec<LetterKind> {
    let mut letters = Vec::new();
    match state.pending.get(&seq) {
        Some(Pending::Signal) => letters.push(LetterKind::Signal),
        Some(Pending::Cancel) => letters.push(LetterKind::Cancel),
        Some(Pending::Child | Pending::Activity { .. } | Pending::Timer { .. }) | None => {}
    }
    let Some(child) = state.children.get(&seq) else {
        return letters;
    };
    // A closed run tells its children once, and what was asked of them before is void then. A
    // child that was not started yet is started only if it is to outlive its parent.
    let goes_on = child.options.parent_close_policy == ParentClosePolicy::Abandon
        || (state.new_run_id.is_some() && outlives_run(&child.options));
    if state.status.is_closed() && !goes_on {
        letters.push(LetterKind::ParentClosed);
        return letters;
    }
    if child.run_id.is_none() {
        letters.push(LetterKind::StartChild);
    }
    if child.cancel == ChildCancel::Owed {
        letters.push(LetterKind::CancelChild);
    }
    letters
}

/// All letters that a run owes.
pub fn letters(state: &State) -> impl Iterator<Item = (Seq, LetterKind)> + '_ {
    let messages = state.pending.iter().filter_map(|(seq, pending)| {
        matches!(pending, Pending::Signal | Pending::Cancel).then_some(*seq)
    });
    let is_last = state.status.is_closed() && state.new_run_id.is_none();
    let is_owed = is_last && state.started.parent.is_some();
    let wards = if is_last {
        &state.started.link.wards[..]
    } else {
        &[]
    };
    let wards = (0..).zip(wards);
    messages
        .chain(state.children.keys().copied())
        .flat_map(|seq| {
            letters_of(state, seq)
                .into_iter()
                .map(move |kind| (seq, kind))
        })
        .chain(wards.map(|(place, _)| (Seq(place), LetterKind::ChainClosed)))
        .chain(is_owed.then_some((Seq(0), LetterKind::Outcome)))
}

/// True for a child that ends with the chain of its parent, not with the run that started it.
#[must_use]
pub fn outlives_run(options: &ChildOptions) -> bool {
    options.parent_close_scope == ParentCloseScope::Chain
        && options.parent_close_policy != ParentClosePolicy::Abandon
}

/// What the end of a run, or of its chain, needs to know of a child of the run.
#[must_use]
pub fn ward(parent: &Started, seq: Seq, options: &ChildOptions) -> Ward {
    Ward {
        namespace: options.namespace.clone(),
        workflow_id: options.workflow_id.clone(),
        run_id: parent.run_id,
        seq,
        parent_close_policy: options.parent_close_policy,
    }
}

/// The child's outermost frame around why it ended.
fn of_child(child: &Child, what: &str, cause: Failure) -> Failure {
    let code = child.workflow_type.as_str();
    let id = &child.options.workflow_id;
    let message = format!("child workflow {code} ({id}) {what}");
    cause.wrapped(Frame::new(FailureKind::ChildWorkflow, code, message))
}

impl Draft<'_> {
    /// A child as the events recorded so far leave it.
    fn child(&self, seq: Seq) -> Option<&Child> {
        match self.children.get(&seq) {
            Some(child) => child.as_ref(),
            None => self.execution().state.children.get(&seq),
        }
    }

    pub(crate) fn start_child(
        &mut self,
        workflow_type: WorkflowType,
        input: Payload,
        options: Box<ChildOptions>,
        at: Timestamp,
    ) {
        let seq = self.take_seq();
        self.take_seq();
        let kind = EventKind::StartChildWorkflowExecutionInitiated {
            seq,
            workflow_type: workflow_type.clone(),
            input,
            options: options.clone(),
        };
        let initiated = self.record(kind, at);
        let child = Child {
            initiated,
            workflow_type,
            options,
            run_id: None,
            cancel: ChildCancel::None,
            is_awaited: true,
        };
        self.children.insert(seq, Some(child));
    }

    /// Cancels a child as its options say. A child that is over, or was cancelled before, stays as
    /// it is.
    pub(crate) fn cancel_child(&mut self, seq: Seq, reason: String, at: Timestamp) {
        let Some(child) = self.child(seq).cloned() else {
            return;
        };
        if child.cancel != ChildCancel::None || !child.is_awaited {
            return;
        }
        let cancellation = child.options.cancellation;
        let target = ExternalTarget {
            namespace: child.options.namespace.clone(),
            workflow_id: child.options.workflow_id.clone(),
            run_id: child.run_id,
            child_only: true,
        };
        let kind = EventKind::RequestCancelExternalWorkflowExecutionInitiated {
            seq,
            target: Box::new(target),
            reason,
            of_child: Some(cancellation),
        };
        self.record(kind, at);
        let cancel = if cancellation.is_told() {
            ChildCancel::Owed
        } else {
            ChildCancel::Done
        };
        let child = Child { cancel, ..child };
        if cancellation.is_immediate() {
            self.leave(seq, child, at);
        } else {
            self.children.insert(seq, Some(child));
        }
    }

    /// The workflow stops waiting for a child that may go on.
    fn leave(&mut self, seq: Seq, child: Child, at: Timestamp) {
        let why = Failure::canceled("the parent does not wait for it any longer");
        let failure = of_child(&child, "was cancelled", why);
        self.record(
            EventKind::ChildWorkflowExecutionCanceled {
                seq,
                failure,
                is_left: true,
            },
            at,
        );
        let is_awaited = false;
        let child = Child {
            is_awaited,
            ..child
        };
        self.children.insert(seq, Some(child));
    }

    /// The start of a child was answered. An answer that came before changes nothing.
    pub(crate) fn child_started(
        &mut self,
        seq: Seq,
        result: Result<RunId, Undeliverable>,
        now: Timestamp,
    ) {
        let Some(child) = self.child(seq).cloned() else {
            return;
        };
        if child.run_id.is_some() {
            return;
        }
        match result {
            Ok(run_id) => {
                self.record(
                    EventKind::ChildWorkflowExecutionStarted { seq, run_id },
                    now,
                );
                let run_id = Some(run_id);
                self.children.insert(seq, Some(Child { run_id, ..child }));
            }
            Err(refusal) => {
                let kind = EventKind::StartChildWorkflowExecutionFailed {
                    seq,
                    cause: refusal.cause,
                    failure: of_child(&child, "could not be started", refusal.failure()),
                };
                self.record(kind, now);
                self.children.insert(seq, None);
            }
        }
    }

    /// A child ended. What the workflow does not wait for changes nothing.
    pub(crate) fn child_closed(
        &mut self,
        seq: Seq,
        run_id: RunId,
        outcome: ChildOutcome,
        now: Timestamp,
    ) {
        // A child may end before the answer to its start has come back.
        self.child_started(seq, Ok(run_id), now);
        let Some(child) = self.child(seq).cloned() else {
            return;
        };
        if !child.is_awaited || child.run_id != Some(run_id) {
            return;
        }
        let kind = match outcome {
            ChildOutcome::Completed(result) => {
                EventKind::ChildWorkflowExecutionCompleted { seq, result }
            }
            ChildOutcome::Failed(cause) => EventKind::ChildWorkflowExecutionFailed {
                seq,
                failure: of_child(&child, "failed", cause),
            },
            ChildOutcome::Canceled(cause) => EventKind::ChildWorkflowExecutionCanceled {
                seq,
                failure: of_child(&child, "was cancelled", cause),
                is_left: false,
            },
            ChildOutcome::TimedOut(cause) => EventKind::ChildWorkflowExecutionTimedOut {
                seq,
                failure: of_child(&child, "timed out", cause),
            },
            ChildOutcome::Terminated { reason } => EventKind::ChildWorkflowExecutionTerminated {
                seq,
                failure: of_child(
                    &child,
                    "was terminated",
                    Failure::new(Frame::new(FailureKind::Terminated, "terminated", reason)),
                ),
            },
        };
        self.record(kind, now);
        self.children.insert(seq, None);
    }

    pub(crate) fn signal_external(
        &mut self,
        target: Box<ExternalTarget>,
        name: steadfast_model::SignalName,
        input: Payload,
        at: Timestamp,
    ) {
        let seq = self.take_seq();
        let kind = EventKind::SignalExternalWorkflowExecutionInitiated {
            seq,
            target,
            name,
            input,
        };
        self.record(kind, at);
    }

    pub(crate) fn cancel_external(
        &mut self,
        target: Box<ExternalTarget>,
        reason: String,
        at: Timestamp,
    ) {
        let seq = self.take_seq();
        let kind = EventKind::RequestCancelExternalWorkflowExecutionInitiated {
            seq,
            target,
            reason,
            of_child: None,
        };
        self.record(kind, at);
    }

    /// A signal to another execution was answered. Answered before: nothing.
    pub(crate) fn signal_answered(
        &mut self,
        seq: Seq,
        result: Result<(), Undeliverable>,
        now: Timestamp,
    ) {
        if self.execution().state.pending.get(&seq) != Some(&Pending::Signal) {
            return;
        }
        let kind = match result {
            Ok(()) => EventKind::ExternalWorkflowExecutionSignaled { seq },
            Err(refusal) => EventKind::SignalExternalWorkflowExecutionFailed {
                seq,
                cause: refusal.cause,
                failure: refusal.failure(),
            },
        };
        self.record(kind, now);
    }

    /// A cancel request to another execution, or to a child, was answered. Answered before:
    /// nothing.
    pub(crate) fn cancel_answered(
        &mut self,
        seq: Seq,
        of_child: bool,
        result: Result<(), Undeliverable>,
        now: Timestamp,
    ) {
        let is_owed = if of_child {
            self.child(seq)
                .is_some_and(|child| child.cancel == ChildCancel::Owed)
        } else {
            self.execution().state.pending.get(&seq) == Some(&Pending::Cancel)
        };
        if !is_owed {
            return;
        }
        let is_told = result.is_ok();
        let kind = match result {
            Ok(()) => EventKind::ExternalWorkflowExecutionCancelRequested { seq, of_child },
            Err(refusal) => EventKind::RequestCancelExternalWorkflowExecutionFailed {
                seq,
                cause: refusal.cause,
                failure: refusal.failure(),
                of_child,
            },
        };
        self.record(kind, now);
        if let Some(child) = self.child(seq).cloned()
            && of_child
        {
            let child = Child {
                cancel: ChildCancel::Done,
                ..child
            };
            let waits_for_this =
                child.options.cancellation == ChildCancellation::WaitCancellationRequested;
            if is_told && waits_for_this && child.is_awaited {
                self.leave(seq, child, now);
            } else {
                self.children.insert(seq, Some(child));
            }
        }
    }

    pub(crate) fn answer(&mut self, answer: Answer, now: Timestamp) {
        match answer {
            Answer::ChildStarted { seq, result } => self.child_started(seq, result, now),
            Answer::ChildClosed {
                seq,
                run_id,
                outcome,
            } => self.child_closed(seq, run_id, outcome, now),
            Answer::Signaled { seq, result } => self.signal_answered(seq, result, now),
            Answer::CancelRequested {
                seq,
                of_child,
                result,
            } => self.cancel_answered(seq, of_child, result, now),
        }
    }
}

/// What comes back from another execution. The same answer again changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A child was started, as the run named, or could not be.
    ChildStarted {
        /// The number of its start.
        seq: Seq,
        /// Its first run, or why not.
        result: Result<RunId, Undeliverable>,
    },
    /// A child ended.
    ChildClosed {
        /// The number of its start.
        seq: Seq,
        /// Its first run.
        run_id: RunId,
        /// How.
        outcome: ChildOutcome,
    },
    /// A signal was delivered, or could not be.
    Signaled {
        /// The signal.
        seq: Seq,
        /// Why not.
        result: Result<(), Undeliverable>,
    },
    /// A cancel request was delivered, or could not be.
    CancelRequested {
        /// The request; for a child, the number of its start.
        seq: Seq,
        /// True if it was for a child.
        of_child: bool,
        /// Why not.
        result: Result<(), Undeliverable>,
    },
}
