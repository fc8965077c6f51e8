//! One drive of a guest, from wake to block: the synchronous job of a pool thread.
//!
//! A live instance is resumed with the next events. Without one, an instance is made and the whole
//! history is replayed into it: that is recovery, eviction's other half, and the check of new code
//! against an old history.

use std::sync::Arc;

use steadfast_engine::decide::Issued;
use steadfast_engine::replay::Drift;
use steadfast_model::command::{LogLine, Step};
use steadfast_model::{ComponentDigest, Event, EventKind, EventNumber, RunKey, Timestamp};
use steadfast_ports::Store;
use steadfast_ports::guest::{Error, Fetch, Guest, Guests, HostCalls, Stop};

use crate::calls::Calls;
use crate::recorded::Recorded;

/// An instance that waits for events.
pub struct Live {
    guest: Box<dyn Guest>,
    calls: Box<dyn HostCalls>,
}

impl Live {
    /// Bytes that keeping it costs.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.guest.memory_bytes()
    }
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live")
            .field("memory_bytes", &self.memory_bytes())
            .finish()
    }
}

/// What a pool thread is asked to do for a run.
#[derive(Debug)]
pub enum Job {
    /// Make an instance and replay the history into it.
    Begin {
        /// The code.
        component: ComponentDigest,
        /// The history, if it is at hand; otherwise it is read from the store.
        history: Option<Vec<Event>>,
        /// The last durable event: nothing after it is replayed.
        until: EventNumber,
        /// True if the run may have events that its code has not answered: their log lines are new.
        is_owed: bool,
    },
    /// Deliver events.
    Resume {
        /// The instance.
        live: Box<Live>,
        /// The events, in order.
        events: Vec<Event>,
    },
}

/// What came of it.
#[derive(Debug)]
pub struct Yielded {
    /// New commands, in order.
    pub commands: Vec<Issued>,
    /// How it ended.
    pub step: Step,
    /// The workflow's time at the end.
    pub at: Timestamp,
    /// New log lines.
    pub log: Vec<LogLine>,
    /// Inputs that differ from the recorded ones, and how many.
    pub drifts: (Vec<Drift>, u64),
}

/// The end of a job: the instance to keep, if it can go on, and what it did.
pub type Finished = (Option<Box<Live>>, Result<Yielded, Error>);

/// Does a job. `run` is whose history is read.
pub fn perform(guests: &dyn Guests, store: &Arc<dyn Store>, run: RunKey, job: Job) -> Finished {
    match job {
        Job::Resume { live, events } => resume(*live, events),
        Job::Begin {
            component,
            history,
            until,
            is_owed,
        } => {
            let recorded = match history {
                Some(history) => Recorded::Memory(history),
                None => Recorded::Stored {
                    store: Arc::clone(store),
                    run,
                    next: EventNumber::FIRST,
                    until,
                },
            };
            let fetch = || {
                store
                    .component_bytes(component)
                    .map_err(|error| error.to_string())
            };
            replay(guests, component, &fetch, recorded, is_owed)
        }
    }
}

/// Makes an instance and replays a history into it.
pub fn begin(
    guests: &dyn Guests,
    component: ComponentDigest,
    fetch: Fetch<'_>,
    history: Vec<Event>,
    is_owed: bool,
) -> Finished {
    replay(guests, component, fetch, Recorded::Memory(history), is_owed)
}

fn replay(
    guests: &dyn Guests,
    component: ComponentDigest,
    fetch: Fetch<'_>,
    mut recorded: Recorded,
    is_owed: bool,
) -> Finished {
    let mut events = match recorded.next() {
        Ok(events) => events.into_iter(),
        Err(error) => return (None, Err(Error::Unavailable(error.to_string()))),
    };
    let Some(Event {
        time,
        kind: EventKind::WorkflowExecutionStarted { started },
        number: _,
    }) = events.next()
    else {
        let text = "the history does not begin with WorkflowExecutionStarted";
        return (None, Err(Error::Unavailable(text.to_owned())));
    };
    let mut guest = match guests.instantiate(component, fetch) {
        Ok(guest) => guest,
        Err(error) => return (None, Err(error)),
    };
    let mut calls = Calls::new(&started, time);
    calls.record(events, recorded);
    // The history of a run that owes nothing has been seen by its code before, to the last event.
    calls.is_muted = !is_owed || calls.is_replaying() || calls.deliveries.len() > 1;
    let (result, calls) = guest.start(
        started.workflow_type.as_str(),
        &started.input,
        Box::new(calls),
    );
    let live = Live { guest, calls };
    drive(live, result, is_owed)
}

/// A live guest is told one event at a time: the moment at which it makes a command is recorded,
/// and in the middle of a batch it would not be known.
fn resume(mut live: Live, events: Vec<Event>) -> Finished {
    if let Some(calls) = calls_of(&mut live) {
        calls.is_muted = false;
        calls.deliveries = events.into();
    }
    drive(live, Ok(Step::Blocked), true)
}

fn calls_of(live: &mut Live) -> Option<&mut Calls> {
    live.calls.as_any().downcast_mut()
}

/// Delivers events until there are none or the workflow ends.
fn drive(mut live: Live, mut result: Result<Step, Error>, is_owed: bool) -> Finished {
    // One buffer for all batches.
    let mut batch = Vec::new();
    loop {
        let batch_max = live.guest.batch_max();
        let Some(calls) = calls_of(&mut live) else {
            return (
                None,
                Err(Error::Unavailable("foreign host calls".to_owned())),
            );
        };
        let step = match (calls.take_broken(), result) {
            (Some(error), _) | (None, Err(error)) => return (None, Err(error)),
            (None, Ok(step)) => step,
        };
        if let Err(error) = calls.end(&step) {
            return (None, Err(error));
        }
        if step != Step::Blocked {
            return finish(live, step);
        }
        batch.clear();
        match calls.next_batch(batch_max, &mut batch) {
            Ok(()) if batch.is_empty() => return finish(live, step),
            Ok(()) => {}
            Err(error) => return (None, Err(error)),
        }
        calls.is_muted = !is_owed || calls.is_replaying();
        let (next, calls) = live.guest.resume(&batch, live.calls);
        live.calls = calls;
        result = next;
    }
}

fn finish(mut live: Live, step: Step) -> Finished {
    let is_over = step != Step::Blocked;
    let Some(calls) = calls_of(&mut live) else {
        return (
            None,
            Err(Error::Unavailable("foreign host calls".to_owned())),
        );
    };
    if !is_over && let Err(mismatch) = calls.replay.finish() {
        return (None, Err(nondeterminism(&mismatch)));
    }
    let (commands, log) = calls.take();
    let (drifts, count) = calls.replay.drifts();
    let yielded = Yielded {
        commands,
        step,
        at: calls.replay.now(),
        log,
        drifts: (drifts.to_vec(), count),
    };
    ((!is_over).then(|| Box::new(live)), Ok(yielded))
}

pub(crate) fn nondeterminism(mismatch: &steadfast_engine::Mismatch) -> Error {
    Error::Stopped(Stop::Nondeterminism(mismatch.to_string()))
}
