//! What runs owe each other: a letter is a row from the batch that owes it until it is answered.
//!
//! A shard only writes letters and takes answers in; carrying them is the courier's
//! (`courier.rs`). Everything can happen twice: the receiver knows a letter that it has had.

use std::sync::Arc;

use steadfast_engine::child::Answer;
use steadfast_engine::decide::Request;
use steadfast_model::child::Ward;
use steadfast_model::event::Started;
use steadfast_model::{EventKind, LetterKey, LetterKind, Millis, RunKey, Seq, Timestamp};
use steadfast_ports::Store;
use steadfast_ports::store;

use crate::letters::{Place, cancel_kind};
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

impl Shard {
    /// Takes in what an event does to the letters of its run.
    pub(crate) fn letters_changed(run: &mut Run, kind: &EventKind) {
        run.letters.note(&run.execution.state, kind);
        run.wants_flush |= run.letters.is_dirty();
    }

    /// Gives the letters of a run to the courier that are durable and may go.
    pub(crate) fn post(&mut self, run: &mut Run) {
        if run.in_flight.is_some() {
            return;
        }
        let letters = &run.letters;
        let key = |(seq, kind): Place| LetterKey {
            run: run.key(),
            seq,
            kind,
        };
        let mut sent = Vec::new();
        for place in letters.idle() {
            let (seq, kind) = place;
            let may_go = match kind {
                LetterKind::CancelChild => !letters.is_owed((seq, LetterKind::StartChild)),
                // A start on its way may still come to something.
                LetterKind::ParentClosed => {
                    !self.in_post.contains(&key((seq, LetterKind::StartChild)))
                }
                LetterKind::Signal | LetterKind::Cancel => !letters.waits_for_start(place),
                LetterKind::StartChild | LetterKind::Outcome | LetterKind::ChainClosed => true,
            };
            // The courier may have it from before the run was read again.
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
                is_again: letters.is_again(place),
            })));
            sent.push(place);
        }
        for place in sent {
            run.letters.sent(place);
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
            // It stays the courier's until then, so that it is not sent twice.
            run.letters.returned((key.seq, key.kind));
            self.resend.insert((now.after(RESEND), key));
            return;
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
                    run.letters.settled((key.seq, key.kind));
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
                run.letters.settled((key.seq, key.kind));
                self.note_dirty(run, now);
            }
        }
        self.post(run);
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
