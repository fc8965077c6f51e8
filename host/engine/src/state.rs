//! The fold of a history: everything a decision needs to know about the past.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use steadfast_model::chain::Fields;
use steadfast_model::event::Started;
use steadfast_model::{
    Event, EventKind, EventNumber, RequestId, RunId, Seq, Status, Timestamp, UpdateId,
};

mod outside;

pub use outside::{Child, ChildCancel};

/// An operation that has no outcome yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pending {
    /// An activity.
    Activity {
        /// Its `ActivityTaskScheduled` event.
        scheduled: EventNumber,
        /// True once its cancellation is requested.
        cancel_requested: bool,
    },
    /// A timer.
    Timer {
        /// When it fires.
        fire_at: Timestamp,
    },
    /// A child, by the number of its start; more about it is in [`State::children`].
    Child,
    /// A signal to another execution.
    Signal,
    /// A cancel request to another execution.
    Cancel,
}

/// An update that was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// Its `WorkflowExecutionUpdateAccepted` event.
    pub accepted: EventNumber,
    /// Its `WorkflowExecutionUpdateCompleted` event, which holds the outcome.
    pub completed: Option<EventNumber>,
    /// Bytes of its input.
    pub input_bytes: usize,
}

/// Why an event cannot follow a history. A stored history that gives this is corrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Inapplicable {
    /// The number is not the next one.
    #[error("event {found} follows event {last}")]
    Gap {
        /// The number found.
        found: EventNumber,
        /// The last number.
        last: EventNumber,
    },
    /// The history does not begin with `WorkflowExecutionStarted`, or has it twice.
    #[error("event {0}: a history begins with WorkflowExecutionStarted, once")]
    Start(EventNumber),
    /// The run has ended.
    #[error("event {0} comes after the run's end")]
    AfterClose(EventNumber),
    /// The operation is not pending, or is of another kind.
    #[error("event {event} is about operation {seq}, which is not pending")]
    NotPending {
        /// The event.
        event: EventNumber,
        /// The operation.
        seq: Seq,
    },
    /// A command's number is not the next one.
    #[error("event {event} has command number {seq}, expected {expected}")]
    Sequence {
        /// The event.
        event: EventNumber,
        /// Its number.
        seq: Seq,
        /// The next number.
        expected: Seq,
    },
    /// The update was accepted before, or is not running.
    #[error("event {0} is about an update that does not stand there")]
    Update(EventNumber),
    /// Time went backwards.
    #[error("event {0} is earlier than the event before it")]
    Time(EventNumber),
}

/// A run, folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// What the run began with.
    pub started: Box<Started>,
    /// Where it stands.
    pub status: Status,
    /// The number of the last event.
    pub last: EventNumber,
    /// The time of the last event.
    pub last_time: Timestamp,
    /// The number that the next scheduling command takes.
    pub next_seq: Seq,
    /// Operations without an outcome.
    pub pending: BTreeMap<Seq, Pending>,
    /// Children that may be running, by the number of their start. Kept when the run closes, for
    /// the parent close policy.
    pub children: BTreeMap<Seq, Child>,
    /// How many pending operations are activities.
    pub pending_activities: usize,
    /// Signals received.
    pub signals: u32,
    /// Request ids of the signals received, with the events that brought them (0: a run before
    /// this one received it): the same id again is the same signal.
    pub signal_ids: BTreeMap<RequestId, EventNumber>,
    /// Events that the code is told of.
    pub delivered_events: u64,
    /// When the run began.
    pub started_at: Timestamp,
    /// The memo as it is now.
    pub memo: Fields,
    /// True once somebody asked the run to cancel itself.
    pub cancel_requested: bool,
    /// Every update that was ever accepted, finished or not.
    pub updates: BTreeMap<UpdateId, Accepted>,
    /// How many of them are not finished.
    pub updates_running: usize,
    /// Bytes of the inputs of these.
    pub updates_running_bytes: usize,
    /// The run that follows this one, which has ended.
    pub new_run_id: Option<RunId>,
}

impl State {
    /// The state after the first event.
    ///
    /// # Errors
    /// [`Inapplicable::Start`] for any other event than `WorkflowExecutionStarted` number 1.
    pub fn begin(event: &Event) -> Result<Self, Inapplicable> {
        let EventKind::WorkflowExecutionStarted { started } = &event.kind else {
            return Err(Inapplicable::Start(event.number));
        };
        if event.number != EventNumber::FIRST {
            return Err(Inapplicable::Start(event.number));
        }
        Ok(Self {
            started: started.clone(),
            status: Status::Running,
            last: event.number,
            last_time: event.time,
            next_seq: Seq(1),
            pending: BTreeMap::new(),
            children: BTreeMap::new(),
            pending_activities: 0,
            signals: 0,
            signal_ids: started
                .link
                .signal_ids
                .iter()
                .map(|id| (id.clone(), EventNumber(0)))
                .collect(),
            delivered_events: 0,
            started_at: event.time,
            memo: started.options.memo.clone(),
            cancel_requested: false,
            updates: BTreeMap::new(),
            updates_running: 0,
            updates_running_bytes: 0,
            new_run_id: None,
        })
    }

    /// Folds a history.
    ///
    /// # Errors
    /// [`Inapplicable`] names the first event that does not follow from those before it.
    pub fn fold(events: &[Event]) -> Result<Self, Inapplicable> {
        let (first, rest) = events
            .split_first()
            .ok_or(Inapplicable::Start(EventNumber::FIRST))?;
        let mut state = Self::begin(first)?;
        for event in rest {
            state.apply(event)?;
        }
        Ok(state)
    }

    /// The number of the next event.
    #[must_use]
    pub fn next(&self) -> EventNumber {
        self.last.plus(1)
    }

    /// Takes in one event. The only writer of a state, live and on recovery alike.
    ///
    /// # Errors
    /// [`Inapplicable`]; the state is unchanged then.
    #[allow(clippy::too_many_lines, reason = "one short arm for each event")]
    pub fn apply(&mut self, event: &Event) -> Result<(), Inapplicable> {
        self.check_order(event)?;
        let number = event.number;
        match &event.kind {
            EventKind::WorkflowExecutionStarted { .. } => return Err(Inapplicable::Start(number)),
            EventKind::WorkflowExecutionCompleted { .. } => self.close(Status::Completed),
            EventKind::WorkflowExecutionFailed { .. } => self.close(Status::Failed),
            EventKind::WorkflowExecutionCanceled { .. } => self.close(Status::Canceled),
            EventKind::WorkflowExecutionTerminated { .. } => self.close(Status::Terminated),
            EventKind::WorkflowExecutionTimedOut { .. } => self.close(Status::TimedOut),
            EventKind::WorkflowExecutionContinuedAsNew { .. } => self.close(Status::ContinuedAsNew),
            EventKind::WorkflowPropertiesModified { memo } => upsert(&mut self.memo, memo),
            EventKind::ActivityTaskScheduled { seq, .. } => {
                let pending = Pending::Activity {
                    scheduled: number,
                    cancel_requested: false,
                };
                self.begin_operation(number, *seq, pending)?;
                self.pending_activities += 1;
            }
            EventKind::TimerStarted {
                seq,
                fire_at,
                duration: _,
            } => {
                self.begin_operation(number, *seq, Pending::Timer { fire_at: *fire_at })?;
            }
            EventKind::StartChildWorkflowExecutionInitiated { .. }
            | EventKind::StartChildWorkflowExecutionFailed { .. }
            | EventKind::ChildWorkflowExecutionStarted { .. }
            | EventKind::ChildWorkflowExecutionCompleted { .. }
            | EventKind::ChildWorkflowExecutionFailed { .. }
            | EventKind::ChildWorkflowExecutionCanceled { .. }
            | EventKind::ChildWorkflowExecutionTimedOut { .. }
            | EventKind::ChildWorkflowExecutionTerminated { .. }
            | EventKind::SignalExternalWorkflowExecutionInitiated { .. }
            | EventKind::SignalExternalWorkflowExecutionFailed { .. }
            | EventKind::ExternalWorkflowExecutionSignaled { .. }
            | EventKind::RequestCancelExternalWorkflowExecutionInitiated { .. }
            | EventKind::RequestCancelExternalWorkflowExecutionFailed { .. }
            | EventKind::ExternalWorkflowExecutionCancelRequested { .. } => {
                self.apply_outside(event)?;
            }
            EventKind::ActivityTaskCompleted { seq, .. }
            | EventKind::ActivityTaskFailed { seq, .. }
            | EventKind::ActivityTaskTimedOut { seq, .. }
            | EventKind::ActivityTaskCanceled { seq, .. } => self.end_activity(number, *seq)?,
            EventKind::ActivityTaskCancelRequested { seq } => match self.pending.get_mut(seq) {
                Some(Pending::Activity {
                    cancel_requested, ..
                }) => *cancel_requested = true,
                _ => {
                    return Err(Inapplicable::NotPending {
                        event: number,
                        seq: *seq,
                    });
                }
            },
            EventKind::TimerFired { seq } | EventKind::TimerCanceled { seq } => {
                self.end_timer(number, *seq)?;
            }
            // Only a replay of the code asks for what a marker holds.
            EventKind::MarkerRecorded { .. } => {}
            EventKind::WorkflowExecutionCancelRequested { .. } => {
                self.cancel_requested = true;
            }
            EventKind::WorkflowExecutionSignaled { request_id, .. } => {
                self.signals = self.signals.saturating_add(1);
                self.signal_ids.insert(request_id.clone(), number);
            }
            EventKind::WorkflowExecutionUpdateAccepted {
                update_id, input, ..
            } => self.accept_update(number, update_id, input.size_bytes())?,
            EventKind::WorkflowExecutionUpdateCompleted {
                update_id,
                accepted,
                outcome: _,
            } => self.complete_update(number, update_id, *accepted)?,
        }
        if event.kind.is_delivered() {
            self.delivered_events += 1;
        }
        self.new_run_id = event.kind.new_run_id();
        self.last = number;
        self.last_time = event.time;
        Ok(())
    }

    fn check_order(&self, event: &Event) -> Result<(), Inapplicable> {
        if event.number != self.next() {
            return Err(Inapplicable::Gap {
                found: event.number,
                last: self.last,
            });
        }
        if self.status.is_closed() {
            return Err(Inapplicable::AfterClose(event.number));
        }
        if event.time < self.last_time {
            return Err(Inapplicable::Time(event.number));
        }
        Ok(())
    }

    fn begin_operation(
        &mut self,
        event: EventNumber,
        seq: Seq,
        pending: Pending,
    ) -> Result<(), Inapplicable> {
        if seq != self.next_seq {
            return Err(Inapplicable::Sequence {
                event,
                seq,
                expected: self.next_seq,
            });
        }
        self.next_seq = Seq(seq.0.saturating_add(1));
        self.pending.insert(seq, pending);
        Ok(())
    }

    fn end_activity(&mut self, event: EventNumber, seq: Seq) -> Result<(), Inapplicable> {
        if !matches!(self.pending.get(&seq), Some(Pending::Activity { .. })) {
            return Err(Inapplicable::NotPending { event, seq });
        }
        self.pending.remove(&seq);
        self.pending_activities = self.pending_activities.saturating_sub(1);
        Ok(())
    }

    fn end_timer(&mut self, event: EventNumber, seq: Seq) -> Result<(), Inapplicable> {
        if !matches!(self.pending.get(&seq), Some(Pending::Timer { .. })) {
            return Err(Inapplicable::NotPending { event, seq });
        }
        self.pending.remove(&seq);
        Ok(())
    }

    fn accept_update(
        &mut self,
        event: EventNumber,
        update_id: &UpdateId,
        input_bytes: usize,
    ) -> Result<(), Inapplicable> {
        if self.updates.contains_key(update_id) {
            return Err(Inapplicable::Update(event));
        }
        let accepted = Accepted {
            accepted: event,
            completed: None,
            input_bytes,
        };
        self.updates.insert(update_id.clone(), accepted);
        self.updates_running += 1;
        self.updates_running_bytes += input_bytes;
        Ok(())
    }

    fn complete_update(
        &mut self,
        event: EventNumber,
        update_id: &UpdateId,
        accepted: EventNumber,
    ) -> Result<(), Inapplicable> {
        match self.updates.get_mut(update_id) {
            Some(update) if update.accepted == accepted && update.completed.is_none() => {
                update.completed = Some(event);
                self.updates_running -= 1;
                self.updates_running_bytes -= update.input_bytes;
                Ok(())
            }
            _ => Err(Inapplicable::Update(event)),
        }
    }

    /// What a closed run still has pending is void.
    /// What a closed run still has pending is void, but for the messages that it owes others.
    fn close(&mut self, status: Status) {
        self.status = status;
        self.pending
            .retain(|_, pending| matches!(pending, Pending::Signal | Pending::Cancel));
        self.pending_activities = 0;
    }

    /// Checks what must hold after every event; for tests and the simulator.
    ///
    /// # Panics
    /// When an invariant is broken.
    pub fn check(&self) {
        let activities = self
            .pending
            .values()
            .filter(|p| matches!(p, Pending::Activity { .. }))
            .count();
        assert_eq!(
            activities, self.pending_activities,
            "the count of pending activities drifted"
        );
        let running = self.updates.values().filter(|u| u.completed.is_none());
        let (count, bytes) = running.fold((0, 0), |(n, b), u| (n + 1, b + u.input_bytes));
        assert_eq!(
            (count, bytes),
            (self.updates_running, self.updates_running_bytes),
            "the count of running updates drifted"
        );
        assert!(
            self.pending.keys().all(|seq| *seq < self.next_seq),
            "an operation has a number that was not given out"
        );
        let is_message = |p: &Pending| matches!(p, Pending::Signal | Pending::Cancel);
        assert!(
            !self.status.is_closed() || self.pending.values().all(is_message),
            "closed with work pending"
        );
        let is_child = |seq: &Seq| self.pending.get(seq) == Some(&Pending::Child);
        assert!(
            self.status.is_closed()
                || self
                    .children
                    .iter()
                    .all(|(seq, child)| child.is_awaited == is_child(seq)),
            "a child is awaited and not pending, or the other way round"
        );
        assert!(
            self.last >= EventNumber::FIRST,
            "a state begins with an event"
        );
    }

    /// Rough bytes that keeping this state costs.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + 512
            + self.pending.len() * 64
            + self.children.len() * 512
            + self
                .signal_ids
                .keys()
                .map(|r| r.as_str().len() + 48)
                .sum::<usize>()
            + self
                .updates
                .keys()
                .map(|id| id.as_str().len() + 96)
                .sum::<usize>()
            + self.started.input.size_bytes()
    }
}

/// Takes changes of a memo in: a value of the encoding `binary/null` takes the old one away.
pub(crate) fn upsert(memo: &mut Fields, changes: &Fields) {
    for (name, value) in changes {
        if value.encoding == NULL {
            memo.remove(name);
        } else {
            memo.insert(name.clone(), value.clone());
        }
    }
}

/// The encoding of no value.
const NULL: &str = "binary/null";
