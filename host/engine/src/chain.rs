//! Who follows a run that has ended, and when: continue-as-new, retries of the workflow, cron.
//!
//! The arithmetic is pure: the number and the random seed of the next run, and the next time of a
//! cron schedule, come with the request.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use steadfast_model::chain::{CarriedSignal, ContinueAsNew, Fields, UnreadSignal};
use steadfast_model::child::Ward;
use steadfast_model::command::Step;
use steadfast_model::event::{Started, TimeoutScope};
use steadfast_model::limits::{IDLE_RUN_LIFE_MIN, LAST_FAILURE_BYTES_MAX, SIGNAL_IDS_CARRIED_MAX};
use steadfast_model::{
    AdmittedUpdate, Event, EventKind, EventNumber, Failure, FailureKind, Initiator, Link, Millis,
    Payload, RequestId, RetryState, RunId, RunKey, Timestamp,
};

use crate::decide::Execution;
use crate::retry;
use crate::state::State;

/// What the next run is known by. Made outside, because it takes a counter and randomness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Minted {
    /// The store's number of the run.
    pub run: RunKey,
    /// Its id.
    pub run_id: RunId,
    /// Seed of its random stream.
    pub random_seed: [u8; 32],
}

/// What a run's end takes that its history does not tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closing {
    /// The next run, if there is one.
    pub minted: Minted,
    /// The next time of the run's cron schedule, after now.
    pub cron_next: Option<Timestamp>,
    /// Signals that are recorded and that the code was never told of, in order.
    pub undelivered: Vec<CarriedSignal>,
    /// A cancel request that the code was never told of.
    pub undelivered_cancel: Option<EventKind>,
    /// Places of the children of earlier runs that have ended: the next run need not know of them.
    pub ended_wards: BTreeSet<usize>,
}

/// A run that follows another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Successor {
    /// The store's number of the run.
    pub run: RunKey,
    /// Its first events: the start, and the messages that it is handed.
    pub events: Vec<Event>,
    /// Updates that the run before it had not let in: this one's validator is asked.
    pub updates: Vec<AdmittedUpdate>,
}

/// Why a run goes on in another one.
#[derive(Debug)]
pub(crate) enum Cause {
    ContinueAsNew(Box<ContinueAsNew>),
    Retry { failure: Failure, wait: Millis },
    Cron { at: Timestamp, outcome: CronOutcome },
}

/// How the run before a cron run ended.
#[derive(Debug)]
pub(crate) enum CronOutcome {
    Completed(Payload),
    Failed(Failure),
}

/// True if a run that ends like this may be followed by another: a number must be minted for it.
#[must_use]
pub fn may_follow(started: &Started, step: &Step) -> bool {
    match step {
        Step::ContinuedAsNew(_) => true,
        Step::Completed(_) => !started.options.cron.is_empty(),
        Step::Failed(_) => may_follow_timeout(started),
        Step::Blocked | Step::Canceled(_) | Step::UnknownOperation(_) => false,
    }
}

/// True if a run that times out may be followed by another.
#[must_use]
pub fn may_follow_timeout(started: &Started) -> bool {
    started.options.retry.is_some() || !started.options.cron.is_empty()
}

/// When a run must have ended, and by which limit; `None`: it may take for ever. The limit of one
/// run counts from when its code may run.
#[must_use]
pub fn deadline(started: &Started, started_at: Timestamp) -> Option<(Timestamp, TimeoutScope)> {
    let begins = started.link.not_before.unwrap_or(started_at);
    let run = started.options.run_timeout.and_then(Millis::given);
    let run = run.map(|limit| (begins.after(limit.capped()), TimeoutScope::Run));
    let execution = started.link.expiration;
    let execution = execution.map(|at| (at, TimeoutScope::Execution));
    match (run, execution) {
        (Some(run), Some(all)) if run.0 < all.0 => Some(run),
        (run, all) => all.or(run),
    }
}

/// How long a failed run waits for its next attempt, or why there is none.
///
/// # Errors
/// The reason why there is no next attempt.
pub fn next_attempt(
    started: &Started,
    failure: &Failure,
    now: Timestamp,
) -> Result<Millis, RetryState> {
    let Some(policy) = &started.options.retry else {
        return Err(RetryState::RetryPolicyNotSet);
    };
    if !is_retryable(&policy.non_retryable_codes, failure) {
        return Err(RetryState::NonRetryableFailure);
    }
    if !retry::has_attempts_left(policy, started.attempt) {
        return Err(RetryState::MaximumAttemptsReached);
    }
    let wait = failure
        .outer()
        .and_then(|frame| frame.next_retry_delay.capped().given())
        .unwrap_or_else(|| retry::interval(policy, started.attempt));
    match started.link.expiration {
        Some(end) if now.after(wait) >= end => Err(RetryState::Timeout),
        Some(_) | None => Ok(wait),
    }
}

/// A code is looked for in the outermost frame, and in the cause of an activity's failure that the
/// workflow passed on.
fn is_retryable(non_retryable_codes: &[alloc::string::String], failure: &Failure) -> bool {
    let Some(outer) = failure.outer() else {
        return true;
    };
    let is_final = matches!(outer.kind, FailureKind::Canceled | FailureKind::Terminated);
    let cause = failure
        .frames()
        .iter()
        .find(|frame| frame.kind != FailureKind::Activity);
    let is_listed = [Some(outer), cause]
        .into_iter()
        .flatten()
        .any(|frame| non_retryable_codes.contains(&frame.code));
    !is_final && !outer.non_retryable && !is_listed
}

/// The next run of a schedule, unless the chain has ended by then.
pub(crate) fn next_cron(started: &Started, closing: Option<&Closing>) -> Option<Timestamp> {
    if started.options.cron.is_empty() {
        return None;
    }
    let at = closing?.cron_next?;
    let expires = started.link.expiration;
    expires.is_none_or(|end| at < end).then_some(at)
}

/// A run that continues as new before it was told anything but the signals that it hands on would
/// do so again and again: the next one waits.
#[must_use]
pub fn not_before(state: &State, carried: u64, now: Timestamp) -> Option<Timestamp> {
    let is_idle = state.delivered_events <= carried;
    let earliest = state.started_at.after(IDLE_RUN_LIFE_MIN);
    (is_idle && earliest > now).then_some(earliest)
}

/// Makes the next run.
pub(crate) fn successor(
    execution: &Execution,
    memo: Fields,
    wards: Vec<Ward>,
    cause: Cause,
    closing: Closing,
    now: Timestamp,
) -> Successor {
    let state = &execution.state;
    let before = &*state.started;
    let mut started = before.clone();
    let Closing {
        minted,
        undelivered,
        undelivered_cancel,
        cron_next: _,
        ended_wards: _,
    } = closing;
    started.run_id = minted.run_id;
    started.random_seed = minted.random_seed;
    started.options.memo = memo;
    started.attempt = 1;
    started.link = next_link(before, wards);
    let mut carried = Vec::new();
    match cause {
        Cause::ContinueAsNew(next) => {
            started.link.initiator = Some(Initiator::ContinueAsNew);
            let next = *next;
            started.input = next.input;
            started.workflow_type = next.workflow_type.unwrap_or(started.workflow_type);
            started.task_queue = next.task_queue.unwrap_or(started.task_queue);
            started.options.run_timeout = next.run_timeout.or(started.options.run_timeout);
            started.options.memo = next.memo.unwrap_or(started.options.memo);
            carried.extend(unread(state, next.unread));
        }
        Cause::Retry { failure, wait } => {
            started.link.initiator = Some(Initiator::Retry);
            started.attempt = before.attempt.saturating_add(1);
            started.link.last_failure = Some(failure.truncated(LAST_FAILURE_BYTES_MAX));
            started.link.not_before = (wait > Millis::ZERO).then(|| now.after(wait));
        }
        Cause::Cron { at, outcome } => {
            started.link.initiator = Some(Initiator::Cron);
            started.link.not_before = Some(at);
            match outcome {
                CronOutcome::Completed(result) => {
                    started.link.last_completion_result = Some(result);
                }
                CronOutcome::Failed(failure) => {
                    started.link.last_failure = Some(failure.truncated(LAST_FAILURE_BYTES_MAX));
                }
            }
        }
    }
    let is_continued = started.link.initiator == Some(Initiator::ContinueAsNew);
    carried.extend(undelivered);
    if is_continued {
        started.link.not_before = not_before(state, carried.len() as u64, now);
    }
    started.link.signal_ids = newest_ids(state, &carried);
    let events = first_events(started, carried, undelivered_cancel, now);
    let updates = execution.updates.values().map(|update| AdmittedUpdate {
        run: minted.run,
        ..update.clone()
    });
    Successor {
        run: minted.run,
        events,
        updates: updates.collect(),
    }
}

/// Where the run after this one stands.
fn next_link(before: &Started, wards: Vec<Ward>) -> Link {
    Link {
        first_run_id: Some(before.link.first_run_id.unwrap_or(before.run_id)),
        continued_run_id: Some(before.run_id),
        initiator: None,
        expiration: before.link.expiration,
        not_before: None,
        last_completion_result: before.link.last_completion_result.clone(),
        last_failure: None,
        signal_ids: Vec::new(),
        wards,
    }
}

/// Signals that the code holds, with the request ids that its history knows. What the history does
/// not know was never a signal: it is left out.
fn unread(state: &State, unread: Vec<UnreadSignal>) -> impl Iterator<Item = CarriedSignal> + '_ {
    unread.into_iter().filter_map(|signal| {
        let number = EventNumber(signal.event);
        let (request_id, _) = state.signal_ids.iter().find(|(_, at)| **at == number)?;
        Some(CarriedSignal {
            name: signal.name,
            input: signal.input,
            request_id: request_id.clone(),
            identity: alloc::string::String::new(),
        })
    })
}

/// The newest request ids, of those that do not move as signals.
fn newest_ids(state: &State, carried: &[CarriedSignal]) -> Vec<RequestId> {
    let before = &state.started.link.signal_ids;
    let mut own: Vec<_> = state
        .signal_ids
        .iter()
        .filter(|(id, at)| at.0 > 0 && carried.iter().all(|signal| signal.request_id != **id))
        .collect();
    own.sort_unstable_by_key(|(_, at)| **at);
    let mut ids: Vec<RequestId> = before.clone();
    ids.extend(own.into_iter().map(|(id, _)| id.clone()));
    let excess = ids.len().saturating_sub(SIGNAL_IDS_CARRIED_MAX);
    ids.drain(..excess);
    ids
}

/// The first events of a run: its start, and what it is handed.
#[must_use]
pub fn first_events(
    started: Started,
    signals: Vec<CarriedSignal>,
    cancel: Option<EventKind>,
    now: Timestamp,
) -> Vec<Event> {
    let start = EventKind::WorkflowExecutionStarted {
        started: Box::new(started),
    };
    let signals = signals
        .into_iter()
        .map(|signal| EventKind::WorkflowExecutionSignaled {
            name: signal.name,
            input: signal.input,
            request_id: signal.request_id,
            identity: signal.identity,
        });
    let kinds = core::iter::once(start).chain(cancel).chain(signals);
    (1..)
        .zip(kinds)
        .map(|(number, kind)| Event {
            number: EventNumber(number),
            time: now,
            kind,
        })
        .collect()
}
