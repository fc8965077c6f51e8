//! Matching of calls about children and other executions.

use alloc::format;
use alloc::string::String;

use steadfast_model::child::ExternalTarget;
use steadfast_model::command::Command;
use steadfast_model::limits::{PENDING_CANCELS_MAX, PENDING_CHILDREN_MAX, PENDING_SIGNALS_MAX};
use steadfast_model::{Event, EventKind, Payload, Seq};

use super::{Matched, Mismatch, Replay, SeqSet};

/// What a replay knows of children and messages to other executions.
#[derive(Debug, Default)]
pub(super) struct Outside {
    /// Numbers of children's starts.
    children: SeqSet,
    /// Numbers that belong to no activity and no timer.
    numbers: SeqSet,
    /// Children that the workflow stopped waiting for, by their start.
    left: SeqSet,
    pending_children: u64,
    pending_signals: u64,
    pending_cancels: u64,
}

impl Outside {
    pub(super) fn contains(&self, seq: Seq) -> bool {
        self.numbers.contains(seq)
    }

    /// Takes in that a command took these numbers.
    pub(super) fn issued(&mut self, command: &Command, seq: Seq) {
        match command {
            Command::StartChild { .. } => self.child(seq),
            Command::SignalExternal { .. } => self.signal(seq),
            Command::RequestCancelExternal { .. } => self.cancel(seq),
            Command::ScheduleActivity { .. }
            | Command::CancelActivity { .. }
            | Command::StartTimer { .. }
            | Command::CancelTimer { .. }
            | Command::RecordMarker { .. }
            | Command::UpsertMemo { .. }
            | Command::CompleteUpdate { .. }
            | Command::CancelChild { .. } => {}
        }
    }

    fn child(&mut self, seq: Seq) {
        self.children.insert(seq);
        self.numbers.insert(seq);
        self.numbers.insert(seq.outcome());
        self.pending_children += 1;
    }

    fn signal(&mut self, seq: Seq) {
        self.numbers.insert(seq);
        self.pending_signals += 1;
    }

    fn cancel(&mut self, seq: Seq) {
        self.numbers.insert(seq);
        self.pending_cancels += 1;
    }

    /// Takes in an event that resolves a number, and returns how many it ends: a start that failed
    /// ends the outcome too, unless the workflow had stopped waiting for it.
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "most events concern no other execution"
    )]
    pub(super) fn delivered(&mut self, event: &Event) -> u64 {
        match &event.kind {
            EventKind::StartChildWorkflowExecutionFailed { seq, .. } => {
                if self.left.contains(*seq) {
                    return 1;
                }
                self.pending_children = self.pending_children.saturating_sub(1);
                return 2;
            }
            EventKind::ChildWorkflowExecutionCanceled { seq, is_left, .. } => {
                if *is_left {
                    self.left.insert(*seq);
                }
                self.pending_children = self.pending_children.saturating_sub(1);
            }
            EventKind::ChildWorkflowExecutionCompleted { .. }
            | EventKind::ChildWorkflowExecutionFailed { .. }
            | EventKind::ChildWorkflowExecutionTimedOut { .. }
            | EventKind::ChildWorkflowExecutionTerminated { .. } => {
                self.pending_children = self.pending_children.saturating_sub(1);
            }
            EventKind::SignalExternalWorkflowExecutionFailed { .. }
            | EventKind::ExternalWorkflowExecutionSignaled { .. } => {
                self.pending_signals = self.pending_signals.saturating_sub(1);
            }
            EventKind::RequestCancelExternalWorkflowExecutionFailed { .. }
            | EventKind::ExternalWorkflowExecutionCancelRequested { .. } => {
                self.pending_cancels = self.pending_cancels.saturating_sub(1);
            }
            _ => {}
        }
        1
    }
}

/// A call about a child, as the guest made it.
#[derive(Debug, Clone, Copy)]
pub struct ChildCall<'a> {
    /// What to run.
    pub workflow_type: &'a str,
    /// Its name, if the guest gave one.
    pub workflow_id: Option<&'a str>,
    /// The input's bytes.
    pub input: &'a [u8],
    /// The input's encoding.
    pub encoding: &'a str,
}

impl Replay {
    /// Matches `children.start`. The number is that of the start.
    ///
    /// # Errors
    /// [`Mismatch`] when the history records something else here.
    pub fn start_child(&mut self, call: ChildCall<'_>) -> Result<Matched, Mismatch> {
        self.skip_optional();
        let Some(recorded) = self.commands.front() else {
            return Ok(Matched::Live(self.next_seq));
        };
        let number = recorded.number;
        let ChildCall {
            workflow_type,
            workflow_id,
            input,
            encoding,
        } = call;
        if let EventKind::StartChildWorkflowExecutionInitiated {
            seq,
            workflow_type: name,
            input: old,
            options,
        } = &recorded.kind
            && *seq == self.next_seq
            && name.as_str() == workflow_type
            && workflow_id.is_none_or(|id| id == options.workflow_id.as_str())
        {
            let seq = *seq;
            let differs = differing(old, input, encoding);
            if let Some(sizes) = differs {
                self.drift(number, format!("input of child {workflow_type} ({sizes})"));
            }
            self.commands.pop_front();
            self.next_seq = seq.outcome().next();
            self.outside.child(seq);
            return Ok(Matched::Replayed(seq));
        }
        let actual = match workflow_id {
            Some(id) => format!("StartChild {workflow_type} ({id})"),
            None => format!("StartChild {workflow_type}"),
        };
        Err(self.differs(number, &recorded.kind, &actual))
    }

    /// Matches `children.cancel`, for either number of a child. `None`: there is nothing to record.
    ///
    /// # Errors
    /// [`Mismatch`] when the history records something else here.
    pub fn cancel_child(
        &mut self,
        operation: Seq,
        reason: &str,
    ) -> Result<Option<Command>, Mismatch> {
        let Some(seq) = self.child_of(operation) else {
            return Ok(None);
        };
        if !self.canceled.insert(seq) {
            return Ok(None);
        }
        self.skip_optional();
        if self.commands.front().is_some_and(|e| is_cancel_of(e, seq)) {
            self.commands.pop_front();
            return Ok(None);
        }
        if self.resolved.contains(seq.outcome()) {
            return Ok(None);
        }
        match self.commands.front() {
            Some(recorded) => {
                let actual = format!("CancelChild of operation {seq}");
                Err(self.differs(recorded.number, &recorded.kind, &actual))
            }
            None => Ok(Some(Command::CancelChild {
                seq,
                reason: String::from(reason),
            })),
        }
    }

    /// True if what is taken in suffices to judge a cancellation of this child.
    #[must_use]
    pub fn can_judge_cancel_child(&self, operation: Seq) -> bool {
        let Some(seq) = self.child_of(operation) else {
            return true;
        };
        self.peek().is_some_and(|e| is_cancel_of(e, seq))
            || self.resolved.contains(seq.outcome())
            || self.canceled.contains(seq)
    }

    /// The number of the start of the child that an operation belongs to.
    fn child_of(&self, operation: Seq) -> Option<Seq> {
        let before = Seq(operation.0.saturating_sub(1));
        [operation, before]
            .into_iter()
            .find(|seq| self.outside.children.contains(*seq))
    }

    /// Matches `executions.signal`.
    ///
    /// # Errors
    /// [`Mismatch`] when the history records something else here.
    pub fn signal_external(
        &mut self,
        workflow_id: &str,
        name: &str,
        input: &[u8],
        encoding: &str,
    ) -> Result<Matched, Mismatch> {
        self.skip_optional();
        let Some(recorded) = self.commands.front() else {
            return Ok(Matched::Live(self.next_seq));
        };
        let number = recorded.number;
        if let EventKind::SignalExternalWorkflowExecutionInitiated {
            seq,
            target,
            name: old_name,
            input: old,
        } = &recorded.kind
            && *seq == self.next_seq
            && is_for(target, workflow_id)
            && old_name.as_str() == name
        {
            let seq = *seq;
            let differs = differing(old, input, encoding);
            if let Some(sizes) = differs {
                let what = format!("payload of signal {name} to {workflow_id} ({sizes})");
                self.drift(number, what);
            }
            self.matched();
            self.outside.signal(seq);
            return Ok(Matched::Replayed(seq));
        }
        let actual = format!("SignalExternal {name} to {workflow_id}");
        Err(self.differs(number, &recorded.kind, &actual))
    }

    /// Matches `executions.request-cancel`.
    ///
    /// # Errors
    /// [`Mismatch`] when the history records something else here.
    pub fn cancel_external(&mut self, workflow_id: &str) -> Result<Matched, Mismatch> {
        self.skip_optional();
        let Some(recorded) = self.commands.front() else {
            return Ok(Matched::Live(self.next_seq));
        };
        let number = recorded.number;
        if let EventKind::RequestCancelExternalWorkflowExecutionInitiated {
            seq,
            target,
            of_child: None,
            reason: _,
        } = &recorded.kind
            && *seq == self.next_seq
            && is_for(target, workflow_id)
        {
            let seq = *seq;
            self.matched();
            self.outside.cancel(seq);
            return Ok(Matched::Replayed(seq));
        }
        let actual = format!("RequestCancelExternal of {workflow_id}");
        Err(self.differs(number, &recorded.kind, &actual))
    }

    /// What the run waits for of the kind that the command starts, its limit, and its name; `None`
    /// for commands without a limit of their own.
    #[must_use]
    pub fn pending_outside(&self, command: &Command) -> Option<(u64, u64, &'static str)> {
        let outside = &self.outside;
        match command {
            Command::StartChild { .. } => Some((
                outside.pending_children,
                PENDING_CHILDREN_MAX,
                "pending children",
            )),
            Command::SignalExternal { .. } => Some((
                outside.pending_signals,
                PENDING_SIGNALS_MAX,
                "pending signals to other executions",
            )),
            Command::RequestCancelExternal { .. } => Some((
                outside.pending_cancels,
                PENDING_CANCELS_MAX,
                "pending cancel requests to other executions",
            )),
            Command::ScheduleActivity { .. }
            | Command::CancelActivity { .. }
            | Command::StartTimer { .. }
            | Command::CancelTimer { .. }
            | Command::RecordMarker { .. }
            | Command::UpsertMemo { .. }
            | Command::CompleteUpdate { .. }
            | Command::CancelChild { .. } => None,
        }
    }
}

fn is_for(target: &ExternalTarget, workflow_id: &str) -> bool {
    target.workflow_id.as_str() == workflow_id
}

fn is_cancel_of(event: &Event, seq: Seq) -> bool {
    matches!(&event.kind, EventKind::RequestCancelExternalWorkflowExecutionInitiated {
        seq: s, of_child: Some(_), ..
    } if *s == seq)
}

/// How a recorded payload differs from the one given now, if it does.
fn differing(old: &Payload, data: &[u8], encoding: &str) -> Option<String> {
    (old.data != data || old.encoding != encoding)
        .then(|| format!("{} bytes recorded, {} now", old.data.len(), data.len()))
}
