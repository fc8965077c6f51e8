//! Two cursors rebuild a run: the *command cursor* matches each call of the guest with the next
//! recorded command, the *delivery cursor* hands out the next recorded answer or message.
//!
//! Before an event is delivered, every command recorded before it must have been made: a command
//! is never recorded before the event that caused it. When both cursors are at the end, the run is
//! live, and further calls are new commands.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use steadfast_model::command::{Command, Step};
use steadfast_model::event::UpdateOutcome;
use steadfast_model::limits::{
    HISTORY_BYTES_SUGGESTED, HISTORY_EVENTS_SUGGESTED, UPDATES_SUGGESTED,
};
use steadfast_model::{
    Event, EventKind, EventNumber, MarkerName, Millis, Seq, Timestamp, UpdateId,
};

use crate::decide::Issued;
use crate::random::Stream;

use self::describe::describe;

mod describe;
mod marker;
mod memo;

pub use marker::Marked;
mod child;

pub use child::ChildCall;

/// Code and history differ.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("nondeterminism at event {event}: the history has {expected}, the code made {actual}")]
pub struct Mismatch {
    /// Where they differ.
    pub event: EventNumber,
    /// What the history records.
    pub expected: String,
    /// What the code did.
    pub actual: String,
}

/// A replayed call whose input differs from the recorded one. Not a mismatch: the recorded input
/// is what the activity got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// The recorded command.
    pub event: EventNumber,
    /// What differs.
    pub what: String,
}

/// What became of a scheduling call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matched {
    /// It is the recorded command of this number.
    Replayed(Seq),
    /// It is new and takes this number: add it with [`Replay::issue`].
    Live(Seq),
}

/// What became of the completion of an update.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "it lives for a moment, on the stack"
)]
pub enum Completion {
    /// It is the recorded one.
    Replayed,
    /// It is new: add the command with [`Replay::issue`].
    Live(Command),
    /// The update was never accepted, or was completed before.
    NotRunning,
}

/// Most drifts that are kept; the count goes on.
const DRIFTS_KEPT: usize = 100;

/// A run being rebuilt, then driven.
#[derive(Debug)]
pub struct Replay {
    /// Recorded commands not made yet, oldest first.
    commands: VecDeque<Event>,
    /// Operations that the history resolves, by number: a cancellation of these is void.
    resolved: SeqSet,
    /// Operations whose cancellation was asked for.
    canceled: SeqSet,
    /// Operations that are timers.
    timers: SeqSet,
    /// Children and messages to other executions.
    outside: child::Outside,
    next_seq: Seq,
    now: Timestamp,
    delivered: EventNumber,
    random: Stream,
    issued: Vec<Issued>,
    drifts: Vec<Drift>,
    drift_count: u64,
    /// Operations resolved for the guest.
    ended: u64,
    /// Patches that were asked about, with the answer: the first one counts for the whole run.
    patches: BTreeMap<MarkerName, bool>,
    /// Updates that the guest was told of and has not completed.
    running: BTreeSet<UpdateId>,
    /// Bytes of what the guest was told.
    told_bytes: u64,
    /// Updates told.
    told_updates: u64,
    /// From this event on the guest is advised to continue as new.
    suggested_from: EventNumber,
}

impl Replay {
    /// A run with this seed that began at `started`, and nothing else recorded.
    #[must_use]
    pub fn new(seed: [u8; 32], started: Timestamp) -> Self {
        Self {
            commands: VecDeque::new(),
            resolved: SeqSet::default(),
            canceled: SeqSet::default(),
            timers: SeqSet::default(),
            outside: child::Outside::default(),
            next_seq: Seq(1),
            now: started,
            delivered: EventNumber::FIRST,
            random: Stream::new(seed),
            issued: Vec::new(),
            drifts: Vec::new(),
            drift_count: 0,
            ended: 0,
            patches: BTreeMap::new(),
            running: BTreeSet::new(),
            told_bytes: 0,
            told_updates: 0,
            suggested_from: EventNumber(HISTORY_EVENTS_SUGGESTED),
        }
    }

    /// Takes in the rest of the recorded history and returns the events to deliver, in order.
    /// Commands go to the command cursor.
    #[must_use]
    pub fn load(&mut self, events: Vec<Event>) -> VecDeque<Event> {
        events.into_iter().filter_map(|e| self.take_in(e)).collect()
    }

    /// Takes in the next recorded event and returns it if it is to be delivered. A history need
    /// not be taken in at once, but the commands up to an event must be before it is delivered,
    /// and all that is recorded before a new command is made.
    #[must_use]
    pub fn take_in(&mut self, event: Event) -> Option<Event> {
        self.note_resolved(&event.kind);
        if event.kind.is_command() {
            self.commands.push_back(event);
            None
        } else {
            event.kind.is_delivered().then_some(event)
        }
    }

    /// The next recorded command that the guest must make, of those taken in.
    fn note_resolved(&mut self, kind: &EventKind) {
        if let Some(seq) = kind.resolves() {
            self.resolved.insert(seq);
        }
        // A child that was not started has no outcome.
        if let EventKind::StartChildWorkflowExecutionFailed { seq, .. } = kind {
            self.resolved.insert(seq.outcome());
        }
    }

    /// The next recorded command that has not been made, of those taken in.
    #[must_use]
    pub fn next_command(&self) -> Option<EventNumber> {
        self.peek().map(|event| event.number)
    }

    /// True if what is taken in suffices to judge a cancellation of this operation.
    #[must_use]
    pub fn can_judge_cancel(&self, seq: Seq) -> bool {
        let is_recorded = self.peek().is_some_and(|event| {
            matches!(&event.kind,
                EventKind::ActivityTaskCancelRequested { seq: s } | EventKind::TimerCanceled { seq: s } if *s == seq)
        });
        is_recorded || self.resolved.contains(seq) || self.canceled.contains(seq)
    }

    /// Moves the delivery cursor to `event`, which is given to the guest next.
    ///
    /// # Errors
    /// [`Mismatch`] when a command recorded before it has not been made.
    pub fn deliver(&mut self, event: &Event) -> Result<(), Mismatch> {
        self.skip_optional();
        if let Some(missing) = self.commands.front()
            && missing.number < event.number
        {
            return Err(self.not_made(missing, "nothing (it waits)"));
        }
        self.note_resolved(&event.kind);
        if event.kind.resolves().is_some() {
            self.ended += self.outside.delivered(event);
        }
        if let EventKind::WorkflowExecutionUpdateAccepted { update_id, .. } = &event.kind {
            self.running.insert(update_id.clone());
            self.told_updates += 1;
        }
        self.told_bytes = self
            .told_bytes
            .saturating_add(event.kind.told_bytes() as u64);
        let is_much = self.told_bytes >= HISTORY_BYTES_SUGGESTED;
        if is_much || self.told_updates >= UPDATES_SUGGESTED {
            self.suggested_from = self.suggested_from.min(event.number);
        }
        self.now = event.time;
        self.delivered = event.number;
        Ok(())
    }

    fn not_made(&self, missing: &Event, actual: &str) -> Mismatch {
        Mismatch {
            event: missing.number,
            expected: describe(&missing.kind),
            actual: format!("{actual} after event {}", self.delivered),
        }
    }

    /// Matches `activities.schedule`.
    ///
    /// # Errors
    /// [`Mismatch`] when the history records something else here.
    pub fn schedule_activity(
        &mut self,
        activity_type: &str,
        input: &[u8],
        encoding: &str,
    ) -> Result<Matched, Mismatch> {
        self.skip_optional();
        let Some(recorded) = self.commands.front() else {
            return Ok(Matched::Live(self.next_seq));
        };
        let number = recorded.number;
        if let EventKind::ActivityTaskScheduled {
            seq,
            activity_type: name,
            input: recorded_input,
            options: _,
        } = &recorded.kind
            && *seq == self.next_seq
            && name.as_str() == activity_type
        {
            let seq = *seq;
            if recorded_input.data != input || recorded_input.encoding != encoding {
                let (old, new) = (recorded_input.data.len(), input.len());
                let what =
                    format!("input of activity {activity_type} ({old} bytes recorded, {new} now)");
                self.drift(number, what);
            }
            self.matched();
            return Ok(Matched::Replayed(seq));
        }
        let actual = format!("ScheduleActivity {activity_type}");
        Err(self.differs(number, &recorded.kind, &actual))
    }

    /// Matches `timers.start`.
    ///
    /// # Errors
    /// [`Mismatch`] when the history records something else here.
    pub fn start_timer(&mut self, duration: Millis) -> Result<Matched, Mismatch> {
        self.skip_optional();
        let Some(recorded) = self.commands.front() else {
            return Ok(Matched::Live(self.next_seq));
        };
        let number = recorded.number;
        if let EventKind::TimerStarted {
            seq,
            duration: old,
            fire_at: _,
        } = &recorded.kind
            && *seq == self.next_seq
        {
            let (seq, old) = (*seq, *old);
            self.timers.insert(seq);
            if old != duration.capped() {
                let what = format!("duration of timer {seq} ({old} recorded, {duration} now)");
                self.drift(number, what);
            }
            self.matched();
            return Ok(Matched::Replayed(seq));
        }
        let actual = format!("StartTimer {duration}");
        Err(self.differs(number, &recorded.kind, &actual))
    }

    /// Matches `updates.complete`.
    ///
    /// # Errors
    /// [`Mismatch`] when the history records something else here.
    pub fn complete_update(
        &mut self,
        update_id: &str,
        outcome: UpdateOutcome,
    ) -> Result<Completion, Mismatch> {
        let id = UpdateId::new(update_id)
            .ok()
            .and_then(|id| self.running.take(&id));
        let Some(id) = id else {
            return Ok(Completion::NotRunning);
        };
        self.skip_optional();
        let Some(recorded) = self.commands.front() else {
            return Ok(Completion::Live(Command::CompleteUpdate {
                update_id: id,
                outcome,
            }));
        };
        let number = recorded.number;
        if let EventKind::WorkflowExecutionUpdateCompleted {
            update_id: recorded_id,
            accepted: _,
            outcome: recorded_outcome,
        } = &recorded.kind
            && *recorded_id == id
        {
            if *recorded_outcome != outcome {
                self.drift(number, format!("outcome of update {id:?}"));
            }
            self.commands.pop_front();
            return Ok(Completion::Replayed);
        }
        let actual = format!("CompleteUpdate of update {id:?}");
        Err(self.differs(number, &recorded.kind, &actual))
    }

    /// Notes that a replayed validator refused an update that the history has accepted: the
    /// recorded answer counts.
    pub fn refused(&mut self, event: &Event, why: &str) {
        let what = format!("the validator's answer (accepted recorded, refused now: {why})");
        self.drift(event.number, what);
    }

    /// Matches `activities.cancel`. `None`: there is nothing to record.
    ///
    /// # Errors
    /// [`Mismatch`] when the history records something else here.
    pub fn cancel_activity(&mut self, seq: Seq) -> Result<Option<Command>, Mismatch> {
        let is_recorded = |kind: &EventKind| matches!(kind, EventKind::ActivityTaskCancelRequested { seq: s } if *s == seq);
        if self.timers.contains(seq) || self.outside.contains(seq) {
            return Ok(None);
        }
        self.cancel(seq, is_recorded, Command::CancelActivity { seq })
    }

    /// Matches `timers.cancel`. `None`: there is nothing to record.
    ///
    /// # Errors
    /// [`Mismatch`] when the history records something else here.
    pub fn cancel_timer(&mut self, seq: Seq) -> Result<Option<Command>, Mismatch> {
        let is_recorded =
            |kind: &EventKind| matches!(kind, EventKind::TimerCanceled { seq: s } if *s == seq);
        if !self.timers.contains(seq) {
            return Ok(None);
        }
        self.cancel(seq, is_recorded, Command::CancelTimer { seq })
    }

    fn cancel(
        &mut self,
        seq: Seq,
        is_recorded: impl Fn(&EventKind) -> bool,
        command: Command,
    ) -> Result<Option<Command>, Mismatch> {
        // Live, a cancellation of what never was, or of another kind, records nothing.
        if !self.is_known(seq) || !self.canceled.insert(seq) {
            return Ok(None);
        }
        if matches!(command, Command::CancelTimer { .. }) && !self.resolved.contains(seq) {
            self.ended += 1;
        }
        self.skip_optional();
        if self
            .commands
            .front()
            .is_some_and(|event| is_recorded(&event.kind))
        {
            self.commands.pop_front();
            return Ok(None);
        }
        // Already resolved, live or by a recorded event that the guest has not seen: void.
        if self.resolved.contains(seq) {
            return Ok(None);
        }
        match self.commands.front() {
            Some(recorded) => {
                let actual = format!("{} of operation {seq}", command.name());
                Err(self.differs(recorded.number, &recorded.kind, &actual))
            }
            None => Ok(Some(command)),
        }
    }

    /// Compares how the activation ended with the recorded end of the run, if there is one.
    ///
    /// # Errors
    /// [`Mismatch`] when the code ended where the history goes on, or otherwise than recorded.
    pub fn end(&mut self, step: &Step) -> Result<(), Mismatch> {
        let actual = match step {
            Step::Blocked => return Ok(()),
            Step::UnknownOperation(seq) => {
                return Err(Mismatch {
                    event: self.delivered,
                    expected: format!("the result of operation {seq}"),
                    actual: String::from("no such operation"),
                });
            }
            Step::Completed(_) => "WorkflowExecutionCompleted",
            Step::Failed(_) => "WorkflowExecutionFailed",
            Step::Canceled(_) => "WorkflowExecutionCanceled",
            Step::ContinuedAsNew(_) => "WorkflowExecutionContinuedAsNew",
        };
        self.skip_optional();
        match self.commands.front() {
            None => Ok(()),
            Some(recorded) if recorded.kind.name() == actual => {
                self.commands.pop_front();
                Ok(())
            }
            Some(recorded) => Err(self.not_made(recorded, actual)),
        }
    }

    /// Checks that nothing recorded is left when every event has been delivered and the guest
    /// waits.
    ///
    /// # Errors
    /// [`Mismatch`] names the first command that the code did not make.
    pub fn finish(&self) -> Result<(), Mismatch> {
        match self.peek() {
            Some(missing) => Err(self.not_made(missing, "nothing (it waits)")),
            None => Ok(()),
        }
    }

    /// Adds a new command; for scheduling ones, after [`Matched::Live`].
    pub fn issue(&mut self, command: Command) {
        if matches!(command, Command::StartTimer { .. }) {
            self.timers.insert(self.next_seq);
        }
        self.outside.issued(&command, self.next_seq);
        self.next_seq = Seq(self.next_seq.0.saturating_add(command.numbers()));
        self.issued.push(Issued {
            at: self.now,
            command,
        });
    }

    /// Takes the new commands made so far.
    #[must_use]
    pub fn take_issued(&mut self) -> Vec<Issued> {
        core::mem::take(&mut self.issued)
    }

    /// How many new commands wait to be taken.
    #[must_use]
    pub fn issued_count(&self) -> usize {
        self.issued.len()
    }

    /// True while recorded commands are left: calls are replayed, logs are not repeated.
    #[must_use]
    pub fn is_replaying(&self) -> bool {
        !self.commands.is_empty()
    }

    /// The workflow's time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The event being delivered.
    #[must_use]
    pub fn delivered(&self) -> EventNumber {
        self.delivered
    }

    /// True if a guest that works on this event is advised to continue as new: its history is
    /// long. It follows from what was delivered up to that event, so a replay answers the same.
    #[must_use]
    pub fn is_continue_as_new_suggested(&self, event: EventNumber) -> bool {
        event >= self.suggested_from
    }

    /// How many operations the guest waits for: those started and not resolved. Cancelled timers
    /// count as resolved.
    #[must_use]
    pub fn pending_count(&self) -> u64 {
        u64::from(self.next_seq.0 - 1).saturating_sub(self.ended)
    }

    /// True if the number was given to an operation.
    #[must_use]
    pub fn is_known(&self, seq: Seq) -> bool {
        seq.0 >= 1 && seq < self.next_seq
    }

    /// Draws from the run's random stream.
    pub fn draw(&mut self, bytes: &mut [u8]) {
        self.random.draw(bytes);
    }

    /// What [`Self::draw`] would give, without moving the stream.
    pub fn foresee(&self, bytes: &mut [u8]) {
        self.random.clone().draw(bytes);
    }

    /// Differences in inputs met so far (the first hundred), and how many there were.
    #[must_use]
    pub fn drifts(&self) -> (&[Drift], u64) {
        (&self.drifts, self.drift_count)
    }

    fn matched(&mut self) {
        self.commands.pop_front();
        self.next_seq = Seq(self.next_seq.0.saturating_add(1));
    }

    fn drift(&mut self, event: EventNumber, what: String) {
        self.drift_count += 1;
        if self.drifts.len() < DRIFTS_KEPT {
            self.drifts.push(Drift { event, what });
        }
    }

    fn differs(&self, event: EventNumber, recorded: &EventKind, actual: &str) -> Mismatch {
        Mismatch {
            event,
            expected: describe(recorded),
            actual: format!(
                "{actual} (command {}) after event {}",
                self.next_seq, self.delivered
            ),
        }
    }
}

/// A set of operation numbers: one bit each, because they are dense.
#[derive(Debug, Default)]
struct SeqSet(Vec<u64>);

impl SeqSet {
    /// Adds a number; false if it was there.
    fn insert(&mut self, seq: Seq) -> bool {
        let (word, bit) = Self::place(seq);
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        match self.0.get_mut(word) {
            Some(bits) => {
                let is_new = *bits & bit == 0;
                *bits |= bit;
                is_new
            }
            None => false,
        }
    }

    fn contains(&self, seq: Seq) -> bool {
        let (word, bit) = Self::place(seq);
        self.0.get(word).is_some_and(|bits| bits & bit != 0)
    }

    fn place(seq: Seq) -> (usize, u64) {
        let index = usize::try_from(seq.0).unwrap_or(usize::MAX);
        (index / 64, 1 << (index % 64))
    }
}
