//! One drive of a guest, from wake to block: the synchronous job of a pool thread.
//!
//! A live instance is resumed with the next events. Without one, an instance is made and the whole
//! history is replayed into it: that is recovery, eviction's other half, and the check of new code
//! against an old history.

use std::collections::BTreeSet;
use std::sync::Arc;

use steadfast_engine::decide::Issued;
use steadfast_engine::replay::Drift;
use steadfast_model::child::Ward;
use steadfast_model::command::{LogLine, Step};
use steadfast_model::{
    AdmittedUpdate, ComponentDigest, Event, EventKind, EventNumber, Failure, Payload, RunKey,
    Timestamp, UpdateName,
};
use steadfast_ports::Store;
use steadfast_ports::guest::{Answered, Error, Fetch, Guest, Guests, HostCalls, Stop};

use crate::calls::Calls;
use crate::courier::ended_wards;
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
    /// Ask the validator about an update.
    Validate {
        /// The instance, which waits and has been told everything.
        live: Box<Live>,
        /// The update.
        update: Box<AdmittedUpdate>,
    },
}

/// What a validator says about an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The update's number.
    pub number: u32,
    /// Why it is refused, if it is.
    pub result: Result<(), Failure>,
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
    /// Events that the guest was to be told of when it ended.
    pub left: Vec<Event>,
    /// Inputs that differ from the recorded ones, and how many.
    pub drifts: (Vec<Drift>, u64),
    /// What the validator said, if it was asked.
    pub verdict: Option<Verdict>,
    /// If it ended: children of earlier runs that live as long as the chain.
    pub wards: Vec<Ward>,
    /// The places of those of them that have ended.
    pub ended_wards: BTreeSet<usize>,
}

/// The end of a job: the instance to keep, if it can go on, and what it did.
pub type Finished = (Option<Box<Live>>, Result<Yielded, Error>);

/// Does a job. `run` is whose history is read.
pub fn perform(guests: &dyn Guests, store: &Arc<dyn Store>, run: RunKey, job: Job) -> Finished {
    let (live, result) = drive_job(guests, store, run, job);
    let result = result.map(|mut yielded| {
        yielded.ended_wards = ended_wards(&**store, &yielded.wards);
        yielded
    });
    (live, result)
}

fn drive_job(guests: &dyn Guests, store: &Arc<dyn Store>, run: RunKey, job: Job) -> Finished {
    match job {
        Job::Resume { live, events } => resume(*live, events),
        Job::Validate { live, update } => validate(*live, &update),
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
    recorded: Recorded,
    is_owed: bool,
) -> Finished {
    match rebuild(guests, component, fetch, recorded, is_owed, usize::MAX) {
        Ok((live, Ok(step))) => finish(live, step),
        Ok((_, Err(error))) | Err(error) => (None, Err(error)),
    }
}

/// Makes an instance and replays a history into it, telling it of at most `batch_max` events at a
/// time. Gives back the instance and how the last activation ended, or why there is no instance.
pub(crate) fn rebuild(
    guests: &dyn Guests,
    component: ComponentDigest,
    fetch: Fetch<'_>,
    mut recorded: Recorded,
    is_owed: bool,
    batch_max: usize,
) -> Result<(Live, Result<Step, Error>), Error> {
    let mut events = recorded
        .next()
        .map_err(|error| Error::Unavailable(error.to_string()))?
        .into_iter();
    let Some(Event {
        time,
        kind: EventKind::WorkflowExecutionStarted { started },
        number: _,
    }) = events.next()
    else {
        let text = "the history does not begin with WorkflowExecutionStarted";
        return Err(Error::Unavailable(text.to_owned()));
    };
    let mut guest = guests.instantiate(component, fetch)?;
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
    Ok(run_on(live, result, is_owed, batch_max))
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

/// Asks the validator. A refusal is not in the history, so the instance that has seen it is
/// dropped; so is one whose validator failed, which counts as a refusal: an update must not be able
/// to block a run.
fn validate(live: Live, update: &AdmittedUpdate) -> Finished {
    let name = update.name.as_str();
    let (mut live, answer) = ask_validator(live, name, &update.input, false);
    let result = match answer {
        Ok(result) => result,
        Err(error) => Err(Failure::application(
            error.code(),
            format!("the validator of update {name:?} failed: {error}"),
        )),
    };
    let is_accepted = result.is_ok();
    let Some(calls) = calls_of(&mut live) else {
        return (None, Err(foreign()));
    };
    calls.validated = is_accepted.then(|| update.update_id.clone());
    let (_, log) = calls.take();
    let yielded = Yielded {
        commands: Vec::new(),
        step: Step::Blocked,
        at: calls.replay.now(),
        log,
        left: Vec::new(),
        drifts: (Vec::new(), 0),
        verdict: Some(Verdict {
            number: update.number,
            result,
        }),
        wards: Vec::new(),
        ended_wards: BTreeSet::new(),
    };
    (is_accepted.then(|| Box::new(live)), Ok(yielded))
}

/// Asks a guest something, with reading calls only. `what` is asked, for messages.
pub(crate) fn ask<T>(
    mut live: Live,
    what: String,
    is_muted: bool,
    question: impl FnOnce(&mut dyn Guest, Box<dyn HostCalls>) -> Answered<T>,
) -> (Live, Result<Result<T, Failure>, Error>) {
    if let Some(calls) = calls_of(&mut live) {
        calls.is_muted = is_muted;
        calls.asked = Some(what);
    }
    let (answer, calls) = question(&mut *live.guest, live.calls);
    live.calls = calls;
    if let Some(calls) = calls_of(&mut live) {
        calls.asked = None;
    }
    (live, answer)
}

fn ask_validator(
    live: Live,
    name: &str,
    input: &Payload,
    is_muted: bool,
) -> (Live, Result<Result<(), Failure>, Error>) {
    let what = format!("the validator of update {name:?}");
    ask(live, what, is_muted, |guest, calls| {
        guest.validate_update(name, input, calls)
    })
}

fn foreign() -> Error {
    Error::Unavailable("foreign host calls".to_owned())
}

pub(crate) fn calls_of(live: &mut Live) -> Option<&mut Calls> {
    live.calls.as_any().downcast_mut()
}

fn drive(live: Live, result: Result<Step, Error>, is_owed: bool) -> Finished {
    match run_on(live, result, is_owed, usize::MAX) {
        (live, Ok(step)) => finish(live, step),
        (_, Err(error)) => (None, Err(error)),
    }
}

/// Delivers events until there are none or the workflow ends, and says how it ended.
pub(crate) fn run_on(
    mut live: Live,
    mut result: Result<Step, Error>,
    is_owed: bool,
    batch_max: usize,
) -> (Live, Result<Step, Error>) {
    // One buffer for all batches.
    let mut batch = Vec::new();
    loop {
        let batch_max = live.guest.batch_max().min(batch_max);
        let update = match judge(&mut live, result) {
            Ok((step, None)) if step != Step::Blocked => return (live, Ok(step)),
            Ok((_, update)) => update,
            Err(error) => return (live, Err(error)),
        };
        if let Some((event, name, input)) = update {
            let (back, answer) = ask_validator(live, name.as_str(), &input, true);
            live = back;
            if let Err(error) = note_answer(&mut live, &event, answer) {
                return (live, Err(error));
            }
        }
        let Some(calls) = calls_of(&mut live) else {
            return (live, Err(foreign()));
        };
        batch.clear();
        match calls.next_batch(batch_max, is_owed, &mut batch) {
            Ok(()) if batch.is_empty() => return (live, Ok(Step::Blocked)),
            Ok(()) => {}
            Err(error) => return (live, Err(error)),
        }
        calls.is_muted = !is_owed || calls.is_replaying();
        let (next, calls) = live.guest.resume(&batch, live.calls);
        live.calls = calls;
        result = next;
    }
}

type NextUpdate = (Event, UpdateName, Payload);

/// Compares how a call of the guest ended with the recorded end, and looks whether an update comes
/// next that this instance has not validated.
fn judge(
    live: &mut Live,
    result: Result<Step, Error>,
) -> Result<(Step, Option<NextUpdate>), Error> {
    let calls = calls_of(live).ok_or_else(foreign)?;
    if let Some(error) = calls.take_broken() {
        return Err(error);
    }
    let step = result?;
    calls.end(&step)?;
    if step != Step::Blocked {
        return Ok((step, None));
    }
    Ok((step, calls.next_update()?))
}

/// The history has accepted the update, whatever the validator says now.
fn note_answer(
    live: &mut Live,
    event: &Event,
    answer: Result<Result<(), Failure>, Error>,
) -> Result<(), Error> {
    let calls = calls_of(live).ok_or_else(foreign)?;
    if let Err(failure) = answer? {
        calls.replay.refused(event, &failure.to_string());
    }
    Ok(())
}

fn finish(mut live: Live, step: Step) -> Finished {
    let is_over = step != Step::Blocked;
    let Some(calls) = calls_of(&mut live) else {
        return (None, Err(foreign()));
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
        left: calls.deliveries.drain(..).collect(),
        drifts: (drifts.to_vec(), count),
        verdict: None,
        wards: calls.wards(is_over),
        ended_wards: BTreeSet::new(),
    };
    ((!is_over).then(|| Box::new(live)), Ok(yielded))
}

pub(crate) fn nondeterminism(mismatch: &steadfast_engine::Mismatch) -> Error {
    Error::Stopped(Stop::Nondeterminism(mismatch.to_string()))
}
