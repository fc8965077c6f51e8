//! What a shard does when a run is followed by another: both are written by one batch.
//!
//! The next run belongs to the same shard, so that it is in memory before anybody can know of it.

use std::collections::BTreeSet;
use std::fmt::Debug;

use steadfast_engine::chain::{Closing, Minted, Successor, deadline};
use steadfast_engine::decide::recover;
use steadfast_model::chain::CarriedSignal;
use steadfast_model::event::Started;
use steadfast_model::{Event, EventKind, ExecutionRecord, RunKey, Seq, Status, Timestamp};
use steadfast_ports::store::{TimerKey, TimerKind, Write};

use crate::cron;
use crate::message::NewRun;
use crate::run::Run;
use crate::shard::Shard;

/// Makes what new runs are known by: a counter and randomness.
pub trait Minter: Debug + Send + Sync {
    /// A number that no run has had, of shard `index` of `count`, with an id and a seed.
    fn mint(&self, index: u64, count: u64) -> Minted;
}

/// The summary of a run that begins.
#[must_use]
pub fn record(run: RunKey, started: &Started, now: Timestamp) -> ExecutionRecord {
    ExecutionRecord {
        run,
        namespace: started.namespace.clone(),
        workflow_id: started.workflow_id.clone(),
        run_id: started.run_id,
        workflow_type: started.workflow_type.clone(),
        component: started.component,
        task_queue: started.task_queue.clone(),
        status: Status::Running,
        started_at: now,
        closed_at: None,
        blocked: None,
        last_event: None,
        delayed_until: started.link.not_before,
        undelivered_signals: None,
    }
}

/// What a run that ends leaves undelivered.
#[derive(Debug, Default)]
pub(crate) struct Undelivered {
    pub(crate) signals: Vec<CarriedSignal>,
    pub(crate) cancel: Option<EventKind>,
}

impl Undelivered {
    /// What of these events the code was never told of.
    pub(crate) fn of<'e>(events: impl Iterator<Item = &'e Event>) -> Self {
        let mut undelivered = Self::default();
        for event in events {
            if let EventKind::WorkflowExecutionSignaled {
                name,
                input,
                request_id,
                identity,
            } = &event.kind
            {
                undelivered.signals.push(CarriedSignal {
                    name: name.clone(),
                    input: input.clone(),
                    request_id: request_id.clone(),
                    identity: identity.clone(),
                });
            } else if matches!(
                event.kind,
                EventKind::WorkflowExecutionCancelRequested { .. }
            ) {
                undelivered.cancel = Some(event.kind.clone());
            }
        }
        undelivered
    }
}

impl Shard {
    /// What the end of a run takes that its history does not tell.
    pub(crate) fn closing(
        &self,
        run: &Run,
        undelivered: Undelivered,
        ended_wards: BTreeSet<usize>,
        now: Timestamp,
    ) -> Box<Closing> {
        let (index, count) = (self.options.index, self.options.count);
        let schedule = &run.started.options.cron;
        // What was accepted at the start is a schedule.
        let cron_next = (!schedule.is_empty())
            .then(|| cron::next(schedule, now).ok().flatten())
            .flatten();
        Box::new(Closing {
            minted: self.options.minter.mint(index, count),
            cron_next,
            undelivered: undelivered.signals,
            undelivered_cancel: undelivered.cancel,
            ended_wards,
        })
    }

    /// Takes in the run that follows: it begins with the batch that ends the one before it.
    pub(crate) fn take_successor(run: &mut Run, successor: Successor) {
        let Successor {
            run: key,
            events,
            updates,
        } = successor;
        let Some(Event {
            kind: EventKind::WorkflowExecutionStarted { started },
            time,
            number: _,
        }) = events.first()
        else {
            return;
        };
        let record = record(key, started, *time);
        run.successor = new_run(NewRun {
            record,
            events,
            replaces: Some(run.key()),
            first: None,
        })
        .ok()
        .map(Box::new);
        if let Some(next) = &mut run.successor {
            for update in updates {
                next.rows.touch_update(update.number, true);
                next.execution.updates.insert(update.number, update);
            }
        }
    }

    /// Lets the code of a delayed run begin, if its time has come.
    pub(crate) fn wake_if_due(&mut self, run: &mut Run, now: Timestamp) {
        if run.record.delayed_until.is_some_and(|at| at <= now) {
            self.wake(run);
        }
    }

    /// Lets the code of a delayed run begin.
    pub(crate) fn wake(&mut self, run: &mut Run) {
        if let Some(due) = run.record.delayed_until.take() {
            self.timers
                .disarm(&run_timer(run.key(), TimerKind::Start, due));
            run.is_record_dirty = true;
            run.needs_replay = true;
        }
    }

    /// Arms the due times that belong to a run as a whole.
    pub(crate) fn arm_run(&mut self, run: &Run) {
        for (kind, due) in run_timers(run) {
            if let Some(due) = due {
                self.timers.arm(run_timer(run.key(), kind, due));
            }
        }
    }

    pub(crate) fn disarm_run(&mut self, run: &Run) {
        for (kind, due) in run_timers(run) {
            if let Some(due) = due {
                self.timers.disarm(&run_timer(run.key(), kind, due));
            }
        }
    }
}

/// The due times that belong to a run as a whole.
pub(crate) fn run_timers(run: &Run) -> [(TimerKind, Option<Timestamp>); 3] {
    let retry_at = run.record.blocked.as_ref().and_then(|b| b.retry_at);
    let deadline = deadline(&run.started, run.execution.state.started_at);
    [
        (TimerKind::Activation, retry_at),
        (TimerKind::Start, run.record.delayed_until),
        (TimerKind::Run, deadline.map(|(due, _)| due)),
    ]
}

/// The key of such a due time.
pub(crate) fn run_timer(run: RunKey, kind: TimerKind, due: Timestamp) -> TimerKey {
    TimerKey {
        due,
        run,
        kind,
        seq: Seq(0),
    }
}

/// A run in memory that is not on disk yet.
pub(crate) fn new_run(new: NewRun) -> Result<Run, steadfast_engine::state::Inapplicable> {
    let NewRun {
        record,
        events,
        replaces,
        first: _,
    } = new;
    let execution = recover(record.run, &events, Vec::new(), Vec::new())?;
    let mut run = Run::new(record, execution);
    run.claim = Some(Write::Claim {
        namespace: run.record.namespace.clone(),
        workflow_id: run.record.workflow_id.clone(),
        run: run.key(),
        replaces,
    });
    run.is_record_dirty = true;
    run.events = events;
    run.history = Some(Vec::new());
    run.wants_flush = true;
    Ok(run)
}
