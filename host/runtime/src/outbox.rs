//! What runs owe each other: a letter is a row from the batch that owes it until it is answered.
//!
//! A shard only writes letters and takes answers in; carrying them is the courier's
//! (`courier.rs`). Everything can happen twice: the receiver knows a letter that it has had.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use steadfast_engine::child::{Answer, letters, letters_of as owed_of, ward};
use steadfast_engine::decide::Request;
use steadfast_model::child::Ward;
use steadfast_model::event::Started;
use steadfast_model::{Event, EventKind, LetterKey, LetterKind, Millis, RunKey, Seq, Timestamp};
use steadfast_ports::Store;
use steadfast_ports::store::{self, Write};

use crate::message::Output;
use crate::run::Run;
use crate::shard::Shard;

/// Wait before a letter that could not be carried is carried again.
pub(crate) const RESEND: Millis = Millis(100);

/// A letter on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// Which.
    pub key: LetterKey,
    /// Who sends it.
    pub sender: Arc<Started>,
    /// What it says.
    pub content: Content,
    /// True if it may have been carried before, and its answer lost.
    pub is_again: bool,
}

/// What a letter says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// The command that asked for it: a child's start, a signal or a cancel request.
    Command(Arc<EventKind>),
    /// How the sender ended.
    Outcome(Arc<EventKind>),
    /// The sender has ended, or its chain; its child is told.
    ParentClosed(Box<Ward>),
}

/// What became of a letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Carried {
    /// It was answered; what the sender is told, if anything.
    Answered(Option<Box<Answer>>),
    /// The receiver cannot be reached now.
    Later,
}

type Place = (Seq, LetterKind);

/// The letters of one run.
#[derive(Debug, Default)]
pub(crate) struct Letters {
    owed: BTreeSet<Place>,
    on_disk: BTreeSet<Place>,
    /// The commands that asked for them.
    commands: BTreeMap<Place, Arc<EventKind>>,
    /// Those that this process has never sent, nor one before it.
    unsent: BTreeSet<Place>,
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
            owed,
            ..Self::default()
        };
        for event in history {
            if let Some(place) = place_of(&event.kind)
                && letters.owed.contains(&place)
            {
                letters.commands.insert(place, Arc::new(event.kind.clone()));
            }
            if event.kind.is_close() {
                letters.close = Some(Arc::new(event.kind.clone()));
            }
        }
        letters
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.owed != self.on_disk
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.owed.is_empty() && self.on_disk.is_empty()
    }

    /// Appends the writes that bring the disk up to date.
    pub(crate) fn write(&mut self, run: RunKey, writes: &mut Vec<Write>) {
        let key = |(seq, kind): &Place| LetterKey {
            run,
            seq: *seq,
            kind: *kind,
        };
        let new = self.owed.difference(&self.on_disk);
        writes.extend(new.map(|place| Write::PutLetter(key(place))));
        let over = self.on_disk.difference(&self.owed);
        writes.extend(over.map(|place| Write::DeleteLetter(key(place))));
        self.on_disk.clone_from(&self.owed);
    }

    /// Bytes that keeping them costs.
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "few events hold what a letter says"
    )]
    pub(crate) fn memory_bytes(&self) -> usize {
        let payload = |kind: &EventKind| match kind {
            EventKind::StartChildWorkflowExecutionInitiated { input, .. }
            | EventKind::SignalExternalWorkflowExecutionInitiated { input, .. } => {
                input.size_bytes()
            }
            _ => 0,
        };
        let commands = self.commands.values().map(|kind| payload(kind) + 256);
        commands.sum::<usize>() + (self.owed.len() + self.on_disk.len()) * 32
    }
}

fn cancel_kind(of_child: bool) -> LetterKind {
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

impl Letters {
    /// Takes in what an event does to the letters of its run.
    fn note(&mut self, run: &steadfast_engine::State, kind: &EventKind) {
        if let Some(place) = place_of(kind) {
            self.commands.insert(place, Arc::new(kind.clone()));
            self.unsent.insert(place);
        }
        if kind.is_close() {
            self.close = Some(Arc::new(kind.clone()));
            self.owed = letters(run).collect();
        } else if let Some(seq) = outside_seq(kind) {
            self.owed.retain(|(number, _)| *number != seq);
            let kinds = owed_of(run, seq).into_iter();
            self.owed.extend(kinds.map(|kind| (seq, kind)));
        } else {
            return;
        }
        let owed = &self.owed;
        self.commands.retain(|place, _| owed.contains(place));
        self.unsent.retain(|place| owed.contains(place));
    }

    /// What a letter says; `None` only if its command is not in the history.
    fn content(&self, place: Place, run: &Run) -> Option<Content> {
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

    /// Names of children whose start is not answered: messages to them wait.
    fn unstarted(&self) -> BTreeSet<&str> {
        let starts = self.commands.values().filter_map(|kind| {
            if let EventKind::StartChildWorkflowExecutionInitiated { options, .. } = &**kind {
                Some(options.workflow_id.as_str())
            } else {
                None
            }
        });
        starts.collect()
    }
}

impl Shard {
    /// Takes in what an event does to the letters of its run.
    pub(crate) fn letters_changed(run: &mut Run, kind: &EventKind) {
        run.letters.note(&run.execution.state, kind);
        run.wants_flush |= run.letters.is_dirty();
    }

    /// Gives the letters of a run to the courier that are durable and may go.
    pub(crate) fn post(&mut self, run: &mut Run) {
        let letters = &run.letters;
        if letters.owed.is_empty() || run.in_flight.is_some() {
            return;
        }
        let mut sent = Vec::new();
        let unstarted = letters.unstarted();
        let key = |(seq, kind): Place| LetterKey {
            run: run.key(),
            seq,
            kind,
        };
        for place in letters.owed.intersection(&letters.on_disk).copied() {
            let (seq, kind) = place;
            let may_go = match kind {
                LetterKind::CancelChild => !letters.owed.contains(&(seq, LetterKind::StartChild)),
                // A start on its way may still come to something.
                LetterKind::ParentClosed => {
                    !self.in_post.contains(&key((seq, LetterKind::StartChild)))
                }
                LetterKind::Signal | LetterKind::Cancel => letters
                    .commands
                    .get(&place)
                    .and_then(|kind| target_of(kind))
                    .is_none_or(|id| !unstarted.contains(id)),
                LetterKind::StartChild | LetterKind::Outcome | LetterKind::ChainClosed => true,
            };
            if !may_go || self.in_post.contains(&key(place)) {
                continue;
            }
            let Some(content) = letters.content(place, run) else {
                tracing::error!(run = run.key().0, ?place, "a letter without its command");
                continue;
            };
            self.in_post.insert(key(place));
            self.outputs.push(Output::Send(Box::new(Letter {
                key: key(place),
                sender: run.started.clone(),
                content,
                is_again: !letters.unsent.contains(&place),
            })));
            sent.push(place);
        }
        for place in sent {
            run.letters.unsent.remove(&place);
        }
    }

    /// A letter was carried: its sender is told, and what waited for it may go.
    pub(crate) fn carried(
        &mut self,
        run: &mut Run,
        key: LetterKey,
        carried: Carried,
        now: Timestamp,
    ) {
        let Carried::Answered(answer) = carried else {
            return self.carry_later(key, now);
        };
        let answer = answer.filter(|_| !run.is_closed());
        match answer {
            // The code must not be told of it now. The letter stays the courier's: sent again, it
            // might be answered otherwise.
            Some(answer) if run.holds_back() => {
                run.backlog.push_back((Request::Answer(*answer), None));
            }
            Some(answer) => self.answered(run, *answer, now),
            None => {
                self.in_post.remove(&key);
                if run.is_closed() {
                    run.letters.owed.remove(&(key.seq, key.kind));
                    run.letters.commands.remove(&(key.seq, key.kind));
                }
                self.note_dirty(run, now);
                self.post(run);
            }
        }
    }

    /// Another execution has answered, or tells how a child ended.
    pub(crate) fn answered(&mut self, run: &mut Run, answer: Answer, now: Timestamp) {
        let key = answered_key(run.key(), &answer);
        // Rejected only if the run is closed.
        drop(self.take(run, Request::Answer(answer), now));
        if let Some(key) = key {
            self.in_post.remove(&key);
            if run.is_closed() {
                run.letters.owed.remove(&(key.seq, key.kind));
                run.letters.commands.remove(&(key.seq, key.kind));
                self.note_dirty(run, now);
            }
        }
        self.post(run);
    }

    /// A letter could not be carried now. It stays the courier's, so that it is not sent twice.
    fn carry_later(&mut self, key: LetterKey, now: Timestamp) {
        self.resend.insert((now.after(RESEND), key));
    }

    /// Sends the letters whose time has come again.
    pub(crate) fn resend_due(&mut self, now: Timestamp) {
        while let Some((at, key)) = self.resend.first().copied() {
            // Far in the future means that the clock jumped back: do not wait for it.
            if at > now && at.since(now) <= RESEND {
                break;
            }
            self.resend.pop_first();
            self.in_post.remove(&key);
            let run = key.run;
            self.give(run, crate::message::Input::Touch { run }, now);
        }
    }
}

/// The letter that was answered; `None`: what a child tells by itself.
fn answered_key(run: RunKey, answer: &Answer) -> Option<LetterKey> {
    let (seq, kind) = match answer {
        Answer::ChildStarted { seq, .. } => (*seq, LetterKind::StartChild),
        Answer::Signaled { seq, .. } => (*seq, LetterKind::Signal),
        Answer::CancelRequested { seq, of_child, .. } => (*seq, cancel_kind(*of_child)),
        Answer::ChildClosed { .. } => return None,
    };
    Some(LetterKey { run, seq, kind })
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

/// Letters that are read at once.
const LETTERS_PAGE: usize = 1000;

/// The letters on disk that a run owes.
///
/// # Errors
/// Any [`store::Error`] of a read.
pub fn letters_of(store: &dyn Store, run: RunKey) -> Result<Vec<LetterKey>, store::Error> {
    let mut letters = Vec::new();
    let mut after = run.0.checked_sub(1).map(|before| LetterKey {
        run: RunKey(before),
        seq: Seq(u32::MAX),
        kind: LetterKind::ChainClosed,
    });
    loop {
        let page = store.letters(after, LETTERS_PAGE)?;
        after = page.last().copied();
        let is_last = page.len() < LETTERS_PAGE || after.is_none_or(|key| key.run != run);
        letters.extend(page.into_iter().filter(|key| key.run == run));
        if is_last {
            return Ok(letters);
        }
    }
}
