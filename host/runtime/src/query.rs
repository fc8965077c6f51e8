//! Queries: asked of a replayed copy, never of the instance that makes progress.
//!
//! What a copy does has no way into a shard: its commands are never taken, and it is dropped or kept
//! here. A copy may be asked again and told of later events, as long as everything that its code
//! has asked for was recorded.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use steadfast_model::limits::{PAYLOAD_BYTES_MAX, QUERIES_PER_RUN_MAX, QUERY_COPIES_MAX};
use steadfast_model::{ComponentDigest, EventNumber, Failure, Payload, RunKey};
use steadfast_ports::Store;
use steadfast_ports::guest::{Error, Guests};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::activation::{Live, ask, calls_of, rebuild, run_on};
use crate::driver::lock;
use crate::recorded::Recorded;
use steadfast_model::command::Step;

/// A question to a run's code.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) run: RunKey,
    pub(crate) component: ComponentDigest,
    /// The last event that the answer rests on.
    pub(crate) until: EventNumber,
    pub(crate) name: String,
    pub(crate) input: Payload,
}

/// What a run's code answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    /// The answer, or the handler's failure.
    pub(crate) answer: Result<Payload, Failure>,
    /// The last event that the code had seen.
    pub(crate) seen: EventNumber,
}

/// A replayed instance.
struct Copy {
    live: Live,
    component: ComponentDigest,
    /// It has been told of everything up to here, or up to where its code fails.
    until: EventNumber,
    seen: EventNumber,
    /// The workflow has ended: there is nothing to tell it.
    is_over: bool,
}

/// Copies that are kept for the next query, least recently used first.
#[derive(Default)]
pub(crate) struct Copies {
    kept: Mutex<Vec<(RunKey, Copy)>>,
    bytes_max: usize,
}

impl Copies {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            kept: Mutex::default(),
            bytes_max,
        }
    }

    fn take(&self, run: RunKey) -> Option<Copy> {
        let mut kept = lock(&self.kept);
        let at = kept.iter().position(|(found, _)| *found == run)?;
        Some(kept.remove(at).1)
    }

    fn put(&self, run: RunKey, copy: Copy) {
        let mut dropped = Vec::new();
        let mut kept = lock(&self.kept);
        kept.push((run, copy));
        let mut bytes: usize = kept.iter().map(|(_, copy)| copy.live.memory_bytes()).sum();
        while kept.len() > QUERY_COPIES_MAX || bytes > self.bytes_max {
            if kept.is_empty() {
                break;
            }
            let oldest = kept.remove(0);
            bytes = bytes.saturating_sub(oldest.1.live.memory_bytes());
            dropped.push(oldest);
        }
        // Taking an instance down may take a while: not under the lock.
        drop(kept);
        drop(dropped);
    }

    /// Asks a run's code, on a pool thread.
    ///
    /// # Errors
    /// The guest's, when there is no state to ask: its code fails in its first activation, or the
    /// query itself does.
    pub(crate) fn ask(
        &self,
        guests: &dyn Guests,
        store: &Arc<dyn Store>,
        question: &Question,
    ) -> Result<Reply, Error> {
        let kept = self.take(question.run);
        let kept = kept.and_then(|copy| copy.told(store, question));
        let copy = match kept {
            Some(copy) => copy,
            None => build(guests, store, question)?,
        };
        let what = format!("the query {:?}", question.name);
        let (live, answer) = ask(copy.live, what, true, |guest, calls| {
            guest.query(&question.name, &question.input, calls)
        });
        let answer = answer?;
        if let Ok(payload) = &answer
            && payload.size_bytes() > PAYLOAD_BYTES_MAX
        {
            return Err(Error::LimitExceeded(format!(
                "the answer is {} bytes; the limit is {PAYLOAD_BYTES_MAX}",
                payload.size_bytes()
            )));
        }
        let copy = Copy { live, ..copy };
        let seen = copy.seen;
        self.put(question.run, copy);
        Ok(Reply { answer, seen })
    }
}

impl Copy {
    /// The copy, told of everything that the question rests on; `None` if it cannot be.
    fn told(mut self, store: &Arc<dyn Store>, question: &Question) -> Option<Self> {
        if self.component != question.component || self.until > question.until {
            return None;
        }
        if self.until == question.until || self.is_over {
            return Some(self);
        }
        let calls = calls_of(&mut self.live)?;
        // What its code has asked for is recorded by now, but not known to it as such; and a copy
        // that stopped before an event that fails must find out whether it still does.
        if calls.replay.issued_count() > 0 || self.seen < self.until {
            return None;
        }
        let recorded = Recorded::Stored {
            store: Arc::clone(store),
            run: question.run,
            next: self.until.plus(1),
            until: question.until,
        };
        calls.record(std::iter::empty(), recorded);
        let (live, result) = run_on(self.live, Ok(Step::Blocked), false, usize::MAX);
        let step = result.ok()?;
        Some(Self {
            live,
            until: question.until,
            seen: question.until,
            is_over: step != Step::Blocked,
            ..self
        })
    }
}

/// Replays a history up to its end; if the code fails on the way, up to before the event that it
/// fails at, which is the state that the run's code was in when it last waited.
fn build(guests: &dyn Guests, store: &Arc<dyn Store>, question: &Question) -> Result<Copy, Error> {
    let (run, component) = (question.run, question.component);
    let fetch = || {
        store
            .component_bytes(component)
            .map_err(|error| error.to_string())
    };
    let attempt = |until: EventNumber, batch_max: usize| {
        let recorded = Recorded::Stored {
            store: Arc::clone(store),
            run,
            next: EventNumber::FIRST,
            until,
        };
        rebuild(guests, component, &fetch, recorded, false, batch_max)
    };
    let copy = |live, step: &Step, seen| Copy {
        live,
        component,
        until: question.until,
        seen,
        is_over: *step != Step::Blocked,
    };
    if let (live, Ok(step)) = attempt(question.until, usize::MAX)? {
        return Ok(copy(live, &step, question.until));
    }
    // One at a time, so that the event at which it fails is known.
    let (mut live, result) = attempt(question.until, 1)?;
    let error = match result {
        Ok(step) => return Ok(copy(live, &step, question.until)),
        Err(error) => error,
    };
    let failed_at =
        calls_of(&mut live).map_or(EventNumber::FIRST, |calls| calls.replay.delivered());
    drop(live);
    if failed_at == EventNumber::FIRST {
        return Err(error);
    }
    let before = EventNumber(failed_at.0 - 1);
    let (live, result) = attempt(before, 1)?;
    let step = result?;
    Ok(copy(live, &step, before))
}

/// Lets the queries of a run pass one by one, and a bounded number of them wait.
#[derive(Default)]
pub(crate) struct Gates {
    runs: Mutex<BTreeMap<RunKey, (Arc<Semaphore>, usize)>>,
}

/// A place in a run's queue; given back when it is dropped.
pub(crate) struct Place<'a> {
    gates: &'a Gates,
    run: RunKey,
    turn: Arc<Semaphore>,
}

impl Gates {
    /// A place in the queue; `None` if it is full.
    pub(crate) fn enter(&self, run: RunKey) -> Option<Place<'_>> {
        let mut runs = lock(&self.runs);
        let (turn, count) = runs
            .entry(run)
            .or_insert_with(|| (Arc::new(Semaphore::new(1)), 0));
        if *count >= QUERIES_PER_RUN_MAX {
            return None;
        }
        *count += 1;
        let turn = turn.clone();
        drop(runs);
        Some(Place {
            gates: self,
            run,
            turn,
        })
    }
}

impl Place<'_> {
    /// Waits for the turn, which lasts until what is returned is dropped.
    pub(crate) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        self.turn.clone().acquire_owned().await.ok()
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut runs = lock(&self.gates.runs);
        if let Some((_, count)) = runs.get_mut(&self.run) {
            *count -= 1;
            if *count == 0 {
                runs.remove(&self.run);
            }
        }
    }
}
