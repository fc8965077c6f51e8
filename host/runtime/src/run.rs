//! One run in memory: its execution, what of it is not durable yet, and its guest.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use steadfast_engine::decide::{Execution, Request};
use steadfast_model::codec::Chunk;
use steadfast_model::event::Started;
use steadfast_model::{
    ActivityTask, AdmittedUpdate, Event, EventKind, EventNumber, ExecutionRecord, Payload, RunKey,
    Seq, Timestamp, UpdateId,
};
use steadfast_ports::store::{Batch, FencingToken, TimerKey, Write};

use crate::activation::{Job, Live};
use crate::chain::run_timers;
use crate::letters::Letters;
use crate::message::{Answer, CallError, ReplyId, Ticket, UpdateProgress};
use crate::rows::Rows;

/// The run's instance.
#[derive(Debug)]
pub(crate) enum Slot {
    /// There is none: a replay makes one when it is needed.
    Absent,
    /// It waits for events.
    Idle(Box<Live>),
    /// A pool thread drives it.
    Busy,
}

/// A caller and its answer, held back until what it depends on is durable.
pub(crate) type Held = (ReplyId, Result<Answer, CallError>);

/// A commit on its way.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) ticket: Ticket,
    pub(crate) events: Vec<Event>,
    pub(crate) replies: Vec<Held>,
    /// Due times that it writes.
    pub(crate) timers: Vec<TimerKey>,
    /// What followers of updates are told.
    pub(crate) announcements: Vec<(UpdateId, UpdateProgress)>,
    /// The run that it begins.
    pub(crate) successor: Option<Box<Run>>,
    is_ready: bool,
}

/// One run in memory.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) record: ExecutionRecord,
    pub(crate) is_record_dirty: bool,
    pub(crate) execution: Execution,
    pub(crate) started: Arc<Started>,
    pub(crate) rows: Rows,
    /// What it owes other runs.
    pub(crate) letters: Letters,
    /// Decided, not yet submitted.
    pub(crate) events: Vec<Event>,
    /// The run that follows: it begins with the batch that ends this one.
    pub(crate) successor: Option<Box<Self>>,
    /// For a new run: the claim of its workflow id.
    pub(crate) claim: Option<Write>,
    /// Callers who wait for what is not submitted yet.
    pub(crate) held: Vec<Held>,
    /// Submit as soon as nothing is in flight.
    pub(crate) wants_flush: bool,
    /// Something waits to be written, but nobody waits for it.
    pub(crate) is_lazy: bool,
    pub(crate) in_flight: Option<InFlight>,
    /// The last durable event; 0 before the first.
    pub(crate) durable: EventNumber,
    pub(crate) is_ready_on_disk: bool,
    /// Durable, and not yet given to the live guest.
    pub(crate) owed: VecDeque<Event>,
    pub(crate) slot: Slot,
    pub(crate) generation: u64,
    /// There is no guest, and the code has not answered everything.
    pub(crate) needs_replay: bool,
    /// The durable history, if it was just read or is short.
    pub(crate) history: Option<Vec<Event>>,
    /// Inputs of pending activities.
    pub(crate) inputs: BTreeMap<Seq, Arc<Payload>>,
    /// Requests held back while an update waits for the validator: nothing may come between its
    /// answer and the acceptance.
    pub(crate) backlog: VecDeque<(Request, Option<ReplyId>)>,
    /// Accepted updates of which the code may not have been told.
    pub(crate) unannounced: Vec<(EventNumber, UpdateId)>,
    /// The last event that the activation at hand delivers.
    pub(crate) delivering: EventNumber,
    /// What followers of updates are told with the next commit.
    pub(crate) announcements: Vec<(UpdateId, UpdateProgress)>,
    /// Place in the order of use.
    pub(crate) touched: u64,
    /// Bytes counted for it in the cache.
    pub(crate) bytes: usize,
}

impl Run {
    /// A run around an execution, with nothing pending.
    pub(crate) fn new(record: ExecutionRecord, execution: Execution) -> Self {
        let started = Arc::new((*execution.state.started).clone());
        Self {
            record,
            is_record_dirty: false,
            execution,
            started,
            rows: Rows::default(),
            letters: Letters::default(),
            events: Vec::new(),
            successor: None,
            claim: None,
            held: Vec::new(),
            wants_flush: false,
            is_lazy: false,
            in_flight: None,
            durable: EventNumber(0),
            is_ready_on_disk: false,
            owed: VecDeque::new(),
            slot: Slot::Absent,
            generation: 0,
            needs_replay: false,
            history: None,
            inputs: BTreeMap::new(),
            backlog: VecDeque::new(),
            unannounced: Vec::new(),
            delivering: EventNumber(0),
            announcements: Vec::new(),
            touched: 0,
            bytes: 0,
        }
    }

    pub(crate) fn key(&self) -> RunKey {
        self.execution.run
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.execution.state.status.is_closed()
    }

    /// True if something decided is not durable yet.
    pub(crate) fn is_dirty(&self) -> bool {
        !self.events.is_empty()
            || self.claim.is_some()
            || self.is_record_dirty
            || self.rows.is_dirty()
            || self.letters.is_dirty()
            || self.wanted_ready() != self.is_ready_on_disk
    }

    /// Must the store mark the run as owed an activation, once all events here are durable?
    fn wanted_ready(&self) -> bool {
        let in_flight = self.in_flight.iter().flat_map(|f| f.events.iter());
        !self.is_closed()
            && self.record.delayed_until.is_none()
            && (self.needs_replay
                || !self.execution.updates.is_empty()
                || !self.owed.is_empty()
                || matches!(self.slot, Slot::Busy)
                || self.events.iter().chain(in_flight).any(|e| wakes(&e.kind)))
    }

    /// Takes everything that is not durable as one batch; `None` if there is nothing, or if the
    /// batch before it is still on its way.
    pub(crate) fn submit(
        &mut self,
        ticket: Ticket,
        fence: FencingToken,
        is_local: &dyn Fn(&ActivityTask) -> bool,
    ) -> Option<Batch> {
        if self.in_flight.is_some() || !(self.is_dirty() || self.wants_flush) {
            return None;
        }
        let mut writes = Vec::new();
        writes.extend(self.claim.take());
        if let Some(chunk) = Chunk::encode(&self.events) {
            writes.push(Write::Append {
                run: self.key(),
                chunk,
            });
        }
        self.rows.write(&self.execution, is_local, &mut writes);
        for (kind, due) in run_timers(self) {
            let due = due.filter(|_| !self.is_closed());
            self.rows.write_of_run(self.key(), kind, due, &mut writes);
        }
        if std::mem::take(&mut self.is_record_dirty) {
            writes.push(Write::PutExecution(Box::new(self.record.clone())));
        }
        let key = self.key();
        self.letters.write(key, &mut writes);
        let is_ready = self.wanted_ready();
        if is_ready != self.is_ready_on_disk {
            let key = self.key();
            writes.push(if is_ready {
                Write::PutReady(key)
            } else {
                Write::DeleteReady(key)
            });
        }
        let mut successor = self.successor.take();
        if let Some(next) = &mut successor
            && let Some(batch) = next.submit(ticket, fence, is_local)
        {
            writes.extend(batch.writes);
        }
        self.wants_flush = false;
        self.is_lazy = false;
        let events = std::mem::take(&mut self.events);
        let replies = std::mem::take(&mut self.held);
        let timers = writes
            .iter()
            .filter_map(|write| {
                if let Write::PutTimer(key) = write {
                    Some(*key)
                } else {
                    None
                }
            })
            .collect();
        self.in_flight = Some(InFlight {
            ticket,
            events,
            replies,
            timers,
            announcements: std::mem::take(&mut self.announcements),
            successor,
            is_ready,
        });
        Some(Batch { fence, writes })
    }

    /// Takes in that the batch on its way is durable, and returns it.
    pub(crate) fn committed(&mut self, ticket: Ticket) -> Option<InFlight> {
        let flight = self.in_flight.take_if(|flight| flight.ticket == ticket)?;
        self.is_ready_on_disk = flight.is_ready;
        if let Some(last) = flight.events.last() {
            self.durable = last.number;
        }
        let is_absent = matches!(self.slot, Slot::Absent);
        for event in &flight.events {
            if is_absent {
                self.needs_replay |= wakes(&event.kind) && !self.is_closed();
            } else if event.kind.is_delivered() {
                self.owed.push_back(event.clone());
            }
        }
        if let Some(history) = &mut self.history {
            history.extend(flight.events.iter().cloned());
        }
        Some(flight)
    }

    /// The next job for the guest, if it has one and may run now.
    pub(crate) fn next_job(&mut self, now: Timestamp) -> Option<Job> {
        if self.is_closed() || self.is_held_back(now) {
            return None;
        }
        match std::mem::replace(&mut self.slot, Slot::Absent) {
            Slot::Idle(live) if !self.owed.is_empty() => {
                self.slot = Slot::Busy;
                let events: Vec<Event> = std::mem::take(&mut self.owed).into();
                self.delivering = events.last().map_or(self.delivering, |event| event.number);
                Some(Job::Resume { live, events })
            }
            Slot::Idle(live) => match self.next_to_validate() {
                Some(update) => {
                    self.slot = Slot::Busy;
                    Some(Job::Validate { live, update })
                }
                None => {
                    self.slot = Slot::Idle(live);
                    None
                }
            },
            Slot::Absent if self.needs_replay || !self.execution.updates.is_empty() => {
                self.replay_job()
            }
            other @ (Slot::Absent | Slot::Busy) => {
                self.slot = other;
                None
            }
        }
    }

    /// A replay sees only what is durable: commands that are decided but not written would be made
    /// a second time, so they are written first.
    fn replay_job(&mut self) -> Option<Job> {
        let in_flight = self.in_flight.iter().flat_map(|f| f.events.iter());
        if self.durable.0 == 0
            || self
                .events
                .iter()
                .chain(in_flight)
                .any(|e| e.kind.is_command())
        {
            self.wants_flush = true;
            return None;
        }
        let is_owed = std::mem::take(&mut self.needs_replay);
        self.owed.clear();
        self.slot = Slot::Busy;
        self.delivering = self.durable;
        Some(Job::Begin {
            component: self.record.component,
            history: self.history.take(),
            until: self.durable,
            is_owed,
        })
    }

    /// The admitted update to look at, once the guest has been told everything that comes before.
    fn next_to_validate(&self) -> Option<Box<AdmittedUpdate>> {
        let in_flight = self.in_flight.iter().flat_map(|f| f.events.iter());
        let is_behind = in_flight
            .chain(&self.events)
            .any(|event| event.kind.is_delivered());
        let (_, update) = self.execution.updates.first_key_value()?;
        (!is_behind).then(|| Box::new(update.clone()))
    }

    /// True while what reaches the run must wait for the validator.
    pub(crate) fn holds_back(&self) -> bool {
        !self.is_closed() && self.record.blocked.is_none() && !self.execution.updates.is_empty()
    }

    /// Where an update stands; `None`: the run does not know it.
    pub(crate) fn update_progress(&self, update_id: &UpdateId) -> Option<UpdateProgress> {
        let is_admitted = |update: &AdmittedUpdate| update.update_id == *update_id;
        if self.execution.updates.values().any(is_admitted) {
            return Some(UpdateProgress::Admitted);
        }
        let accepted = self.execution.state.updates.get(update_id)?;
        let is_unannounced = self.unannounced.iter().any(|(_, id)| id == update_id);
        Some(match accepted.completed {
            Some(completed) => UpdateProgress::CompletedAt(completed),
            None if self.is_closed() => UpdateProgress::Abandoned,
            None if is_unannounced => UpdateProgress::Admitted,
            None => UpdateProgress::Accepted,
        })
    }

    /// Events that the guest, which a thread drives, has not been given.
    pub(crate) fn undelivered(&self) -> impl Iterator<Item = &Event> {
        let in_flight = self.in_flight.iter().flat_map(|f| f.events.iter());
        self.owed.iter().chain(in_flight).chain(&self.events)
    }

    /// A blocked run waits for its next try.
    fn is_held_back(&self, now: Timestamp) -> bool {
        if self.record.delayed_until.is_some() {
            return true;
        }
        match &self.record.blocked {
            Some(blocked) => blocked.retry_at.is_none_or(|at| at > now),
            None => false,
        }
    }

    /// True if dropping the run from memory loses nothing.
    pub(crate) fn is_evictable(&self) -> bool {
        let is_quiet = !matches!(self.slot, Slot::Busy) && self.owed.is_empty();
        is_quiet
            && self.in_flight.is_none()
            && self.held.is_empty()
            && !self.is_dirty()
            && self.backlog.is_empty()
            && self.announcements.is_empty()
            && !(self.needs_replay
                && self.record.blocked.is_none()
                && self.record.delayed_until.is_none())
            && !self.holds_back()
    }

    /// Bytes that keeping the run costs.
    pub(crate) fn memory_bytes(&self) -> usize {
        let live = match &self.slot {
            Slot::Idle(live) => live.memory_bytes(),
            Slot::Absent | Slot::Busy => 0,
        };
        let inputs: usize = self
            .inputs
            .values()
            .map(|input| input.size_bytes() + 64)
            .sum();
        let history = self
            .history
            .as_ref()
            .map_or(0, |h| h.len() * size_of::<Event>() * 2);
        size_of::<Self>()
            + live
            + inputs
            + history
            + self.letters.memory_bytes()
            + self.execution.state.memory_bytes()
            + self.execution.tasks.len() * 1024
            + self
                .execution
                .updates
                .values()
                .map(AdmittedUpdate::size_bytes)
                .sum::<usize>()
    }
}

/// True for events after which the code has something to do.
pub(crate) fn wakes(kind: &EventKind) -> bool {
    kind.is_delivered() || matches!(kind, EventKind::WorkflowExecutionStarted { .. })
}
