//! The letters that one run owes. Every change costs what it changes, however many others there are:
//! a parent may wait for thousands of children.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use steadfast_engine::child::{letters, letters_of, ward};
use steadfast_engine::state::State;
use steadfast_model::{Event, EventKind, LetterKey, LetterKind, RunKey, Seq};
use steadfast_ports::store::Write;

use crate::outbox::Content;
use crate::run::Run;

/// Bytes counted for a letter beside what its command holds.
const LETTER_BYTES: usize = 320;

/// Which letter of a run.
pub(crate) type Place = (Seq, LetterKind);

/// The letters of one run.
#[derive(Debug, Default)]
pub(crate) struct Letters {
    owed: BTreeSet<Place>,
    on_disk: BTreeSet<Place>,
    /// Those that are in one of the two and not in the other.
    changed: BTreeSet<Place>,
    /// Those owed that the courier was not given, or could not carry.
    idle: BTreeSet<Place>,
    /// Those that this process has never sent, nor one before it.
    unsent: BTreeSet<Place>,
    /// The commands that asked for them, and the bytes of their payloads.
    commands: BTreeMap<Place, Arc<EventKind>>,
    payload_bytes: usize,
    /// The event that ended the run.
    close: Option<Arc<EventKind>>,
}

impl Letters {
    /// The letters of a run that was just read: `rows` are those of a closed run on disk.
    pub(crate) fn loaded(run: &Run, history: &[Event], rows: &[LetterKey]) -> Self {
        let owed: BTreeSet<Place> = if run.is_closed() {
            rows.iter().map(|key| (key.seq, key.kind)).collect()
        } else {
            letters(&run.execution.state).collect()
        };
        let mut letters = Self {
            on_disk: owed.clone(),
            idle: owed.clone(),
            owed,
            ..Self::default()
        };
        for event in history {
            if let Some(place) = place_of(&event.kind)
                && letters.owed.contains(&place)
            {
                letters.remember(place, &event.kind);
            }
            if event.kind.is_close() {
                letters.close = Some(Arc::new(event.kind.clone()));
            }
        }
        letters
    }

    pub(crate) fn is_dirty(&self) -> bool {
        !self.changed.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.owed.is_empty() && self.on_disk.is_empty()
    }

    /// Appends the writes that bring the disk up to date.
    pub(crate) fn write(&mut self, run: RunKey, writes: &mut Vec<Write>) {
        for place in std::mem::take(&mut self.changed) {
            let (seq, kind) = place;
            let key = LetterKey { run, seq, kind };
            if self.owed.contains(&place) {
                self.on_disk.insert(place);
                writes.push(Write::PutLetter(key));
            } else {
                self.on_disk.remove(&place);
                writes.push(Write::DeleteLetter(key));
            }
        }
    }

    /// Bytes that keeping them costs.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.payload_bytes + self.owed.len() * LETTER_BYTES
    }

    /// Takes in what an event does to the letters of its run.
    pub(crate) fn note(&mut self, run: &State, kind: &EventKind) {
        if let Some(place) = place_of(kind) {
            self.remember(place, kind);
            self.unsent.insert(place);
        }
        if kind.is_close() {
            self.close = Some(Arc::new(kind.clone()));
            let owed = self.owed.iter().copied().collect();
            self.replace(owed, letters(run).collect());
        } else if let Some(seq) = outside_seq(kind) {
            let kinds = LetterKind::ALL.map(|kind| (seq, kind));
            let owed = kinds.into_iter().filter(|place| self.owed.contains(place));
            let wanted = letters_of(run, seq).into_iter().map(|kind| (seq, kind));
            self.replace(owed.collect(), wanted.collect());
        }
    }

    /// Owes `wanted` in place of `owed`.
    fn replace(&mut self, owed: Vec<Place>, wanted: Vec<Place>) {
        for place in owed {
            if !wanted.contains(&place) {
                self.settled(place);
            }
        }
        for place in wanted {
            if self.owed.insert(place) {
                self.idle.insert(place);
                self.toggle(place);
            }
        }
    }

    /// A letter is not owed any more.
    pub(crate) fn settled(&mut self, place: Place) {
        if self.owed.remove(&place) {
            self.toggle(place);
        }
        self.idle.remove(&place);
        self.unsent.remove(&place);
        if let Some(command) = self.commands.remove(&place) {
            self.payload_bytes = self.payload_bytes.saturating_sub(payload_bytes(&command));
        }
    }

    fn toggle(&mut self, place: Place) {
        if !self.changed.remove(&place) {
            self.changed.insert(place);
        }
    }

    fn remember(&mut self, place: Place, command: &EventKind) {
        let before = self.commands.insert(place, Arc::new(command.clone()));
        if before.is_none() {
            self.payload_bytes += payload_bytes(command);
        }
    }

    /// Those that are durable and that the courier has not got.
    pub(crate) fn idle(&self) -> impl Iterator<Item = Place> + '_ {
        let durable = |place: &&Place| self.on_disk.contains(place);
        self.idle.iter().filter(durable).copied()
    }

    pub(crate) fn is_owed(&self, place: Place) -> bool {
        self.owed.contains(&place)
    }

    /// True if it may have been sent before.
    pub(crate) fn is_again(&self, place: Place) -> bool {
        !self.unsent.contains(&place)
    }

    /// The courier has it.
    pub(crate) fn sent(&mut self, place: Place) {
        self.idle.remove(&place);
        self.unsent.remove(&place);
    }

    /// The courier could not carry it.
    pub(crate) fn returned(&mut self, place: Place) {
        if self.owed.contains(&place) {
            self.idle.insert(place);
        }
    }

    /// What a letter says; `None` only if its command is not in the history.
    pub(crate) fn content(&self, place: Place, run: &Run) -> Option<Content> {
        let (seq, kind) = place;
        match kind {
            LetterKind::Outcome => self.close.clone().map(Content::Outcome),
            LetterKind::ParentClosed => {
                let child = run.execution.state.children.get(&seq)?;
                let ward = ward(&run.started, seq, &child.options);
                Some(Content::ParentClosed(Box::new(ward)))
            }
            LetterKind::ChainClosed => {
                let place = usize::try_from(seq.0).ok()?;
                let ward = run.started.link.wards.get(place)?;
                Some(Content::ParentClosed(Box::new(ward.clone())))
            }
            LetterKind::StartChild
            | LetterKind::CancelChild
            | LetterKind::Signal
            | LetterKind::Cancel => self.commands.get(&place).cloned().map(Content::Command),
        }
    }

    /// True for a message to a child whose start is not answered: it waits.
    pub(crate) fn waits_for_start(&self, place: Place) -> bool {
        let target = self.commands.get(&place).and_then(|kind| target_of(kind));
        let Some(target) = target else {
            return false;
        };
        let is_start_of = |kind: &EventKind| {
            matches!(kind, EventKind::StartChildWorkflowExecutionInitiated { options, .. }
                if options.workflow_id.as_str() == target)
        };
        self.commands.values().any(|kind| is_start_of(kind))
    }
}

pub(crate) fn cancel_kind(of_child: bool) -> LetterKind {
    if of_child {
        LetterKind::CancelChild
    } else {
        LetterKind::Cancel
    }
}

/// The letter that a command asks for.
fn place_of(kind: &EventKind) -> Option<Place> {
    if let EventKind::StartChildWorkflowExecutionInitiated { seq, .. } = kind {
        Some((*seq, LetterKind::StartChild))
    } else if let EventKind::SignalExternalWorkflowExecutionInitiated { seq, .. } = kind {
        Some((*seq, LetterKind::Signal))
    } else if let EventKind::RequestCancelExternalWorkflowExecutionInitiated {
        seq, of_child, ..
    } = kind
    {
        Some((*seq, cancel_kind(of_child.is_some())))
    } else {
        None
    }
}

/// The number that an event about another execution is about.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "few events are about other executions"
)]
fn outside_seq(kind: &EventKind) -> Option<Seq> {
    match kind {
        EventKind::StartChildWorkflowExecutionInitiated { seq, .. }
        | EventKind::StartChildWorkflowExecutionFailed { seq, .. }
        | EventKind::ChildWorkflowExecutionStarted { seq, .. }
        | EventKind::ChildWorkflowExecutionCompleted { seq, .. }
        | EventKind::ChildWorkflowExecutionFailed { seq, .. }
        | EventKind::ChildWorkflowExecutionCanceled { seq, .. }
        | EventKind::ChildWorkflowExecutionTimedOut { seq, .. }
        | EventKind::ChildWorkflowExecutionTerminated { seq, .. }
        | EventKind::SignalExternalWorkflowExecutionInitiated { seq, .. }
        | EventKind::SignalExternalWorkflowExecutionFailed { seq, .. }
        | EventKind::ExternalWorkflowExecutionSignaled { seq }
        | EventKind::RequestCancelExternalWorkflowExecutionInitiated { seq, .. }
        | EventKind::RequestCancelExternalWorkflowExecutionFailed { seq, .. }
        | EventKind::ExternalWorkflowExecutionCancelRequested { seq, .. } => Some(*seq),
        _ => None,
    }
}

/// The name of the execution that a message is for.
fn target_of(kind: &EventKind) -> Option<&str> {
    if let EventKind::SignalExternalWorkflowExecutionInitiated { target, .. }
    | EventKind::RequestCancelExternalWorkflowExecutionInitiated { target, .. } = kind
    {
        Some(target.workflow_id.as_str())
    } else {
        None
    }
}

fn payload_bytes(command: &EventKind) -> usize {
    if let EventKind::StartChildWorkflowExecutionInitiated { input, .. }
    | EventKind::SignalExternalWorkflowExecutionInitiated { input, .. } = command
    {
        input.size_bytes()
    } else {
        0
    }
}
