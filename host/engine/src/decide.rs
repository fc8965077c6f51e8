//! What a request does to a run: events to record and pending activities to change.
//!
//! A decision is data. Its owner writes it, then applies it with [`Execution::apply`]; nothing
//! else changes an execution.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use steadfast_model::command::{Command, Step};
use steadfast_model::event::Started;
use steadfast_model::limits::{
    SIGNALS_MAX, UPDATES_IN_FLIGHT_BYTES_MAX, UPDATES_IN_FLIGHT_MAX, UPDATES_MAX,
};
use steadfast_model::{
    ActivityTask, AdmittedUpdate, Event, EventKind, EventNumber, Failure, Payload, RequestId,
    RunKey, Seq, SignalName, Status, Timestamp, UpdateId, UpdateName,
};

use crate::chain::{self, Closing, Successor};
use crate::child::Answer;
use crate::draft::Draft;
use crate::operate::{Operation, Report, Which};
use crate::options::Refused;
use crate::state::{Inapplicable, Pending, State};

/// A run with its pending activities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    /// The store's number of the run.
    pub run: RunKey,
    /// The fold of its history.
    pub state: State,
    /// Its pending activities.
    pub tasks: BTreeMap<Seq, ActivityTask>,
    /// Its admitted updates, by number: in the order in which they are looked at.
    pub updates: BTreeMap<u32, AdmittedUpdate>,
}

/// A command with the workflow's time at which it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issued {
    /// The time of the event that the guest was being told of.
    pub at: Timestamp,
    /// The command.
    pub command: Command,
}

/// What may reach a run. Closed: everything that can change a run is on this screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Deliver a signal.
    Signal {
        /// Its name.
        name: SignalName,
        /// Its payload.
        input: Payload,
        /// The same id twice is the same signal.
        request_id: RequestId,
        /// Who sends it.
        identity: String,
    },
    /// Ask the workflow to cancel itself.
    Cancel {
        /// Why.
        reason: String,
        /// Who asks.
        identity: String,
        /// The same id twice is the same request.
        request_id: RequestId,
    },
    /// End the run now; no code runs.
    Terminate {
        /// Why.
        reason: String,
        /// Who asks.
        identity: String,
    },
    /// Let an update wait for the workflow's validator.
    AdmitUpdate {
        /// Within the run, the same id twice is the same update.
        update_id: UpdateId,
        /// The handler's name.
        name: UpdateName,
        /// Its input.
        input: Payload,
        /// Who sends it.
        identity: String,
    },
    /// The workflow's validator let an admitted update in.
    AcceptUpdate {
        /// The update.
        number: u32,
    },
    /// The workflow's validator refused an admitted update.
    RefuseUpdate {
        /// The update.
        number: u32,
    },
    /// The time of a workflow timer has come.
    TimerDue {
        /// The timer.
        seq: Seq,
    },
    /// The time of an activity's deadline or backoff has come.
    ActivityDue {
        /// The activity.
        seq: Seq,
    },
    /// A worker takes a task.
    ClaimActivity {
        /// The activity.
        seq: Seq,
        /// Who takes it.
        worker: String,
    },
    /// A worker will not do what it claimed: the same attempt waits again. Nothing happens if
    /// somebody else has it by now.
    ReleaseActivity {
        /// The activity.
        seq: Seq,
        /// Who claimed it.
        worker: String,
    },
    /// A worker is alive.
    Heartbeat {
        /// The activity.
        seq: Seq,
        /// The attempt it works on.
        attempt: u32,
        /// Progress, handed to the next attempt.
        details: Option<Payload>,
    },
    /// A worker finished.
    CompleteActivity {
        /// The activity.
        seq: Seq,
        /// The attempt it worked on.
        attempt: u32,
        /// The result.
        result: Payload,
    },
    /// A worker failed.
    FailActivity {
        /// The activity.
        seq: Seq,
        /// The attempt it worked on.
        attempt: u32,
        /// Why; a cancelled frame outermost means that it stopped because it was asked to.
        failure: Failure,
    },
    /// A worker's attempt goes on elsewhere and is reported by its token or id.
    DeferActivity {
        /// The activity.
        seq: Seq,
        /// The attempt it worked on.
        attempt: u32,
    },
    /// Somebody who knows only an activity's id says how its current attempt stands.
    ReportActivity {
        /// The user's name of the activity, or its number.
        activity_id: String,
        /// What is said.
        report: Report,
    },
    /// An operator does something to pending activities.
    OperateActivities {
        /// To which.
        which: Which,
        /// What.
        operation: Operation,
        /// Who; may be empty.
        identity: String,
        /// Where random delays come from.
        seed: [u8; 32],
    },
    /// Another execution answers, or tells how a child ended.
    Answer(Answer),
    /// The guest ran until it blocked or ended.
    Yield {
        /// What it asked for, in order.
        commands: Vec<Issued>,
        /// How the activation ended.
        step: Step,
        /// The workflow's time at the end.
        at: Timestamp,
        /// Needed when [`chain::may_follow`] says so.
        closing: Option<Box<Closing>>,
    },
    /// The time of the run's or the execution's limit has come.
    RunDue {
        /// Needed when [`chain::may_follow_timeout`] says so.
        closing: Option<Box<Closing>>,
    },
}

/// Why a request changes nothing. The caller's mistake, or a race that the caller lost.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The run has ended.
    #[error("the run has already {}", .0.name())]
    Closed(Status),
    /// There is no such pending activity: it has ended, or never was.
    #[error("activity {0} is not pending: it has ended or was never scheduled")]
    NoSuchActivity(Seq),
    /// There is no pending activity of this id.
    #[error("no activity with the id {0:?} is pending: it has ended or was never scheduled")]
    NoSuchActivityId(String),
    /// A cancellation is confirmed that the workflow did not ask for.
    #[error("activity {0} cannot be reported as cancelled: its workflow did not ask for that")]
    CancelNotRequested(Seq),
    /// Changed options make no sense.
    #[error("the activity's options: {0}")]
    BadOptions(Refused),
    /// No worker has this attempt: it timed out, was taken back, or another attempt runs now.
    #[error("attempt {given} of activity {seq} is not running (the current attempt is {current})")]
    StaleAttempt {
        /// The activity.
        seq: Seq,
        /// The attempt that the caller worked on.
        given: u32,
        /// The attempt that counts.
        current: u32,
    },
    /// The task is not waiting for a worker.
    #[error("activity {0} is not waiting for a worker")]
    NotReady(Seq),
    /// The run has all the signals it may have.
    #[error("the run has received {SIGNALS_MAX} signals, the most allowed")]
    TooManySignals,
    /// The run has all the updates that it may have at a time.
    #[error(
        "the run has {UPDATES_IN_FLIGHT_MAX} updates in flight, the most allowed: wait for one to end"
    )]
    TooManyUpdatesInFlight,
    /// The inputs of the run's unfinished updates are too large together.
    #[error(
        "the inputs of the run's updates in flight would exceed {UPDATES_IN_FLIGHT_BYTES_MAX} bytes: wait for one to end"
    )]
    UpdatesTooLarge,
    /// The run has had all the updates that it may have.
    #[error("the run has had {UPDATES_MAX} updates, the most allowed: continue it as new")]
    TooManyUpdates,
    /// There is no such admitted update.
    #[error("update number {0} is not admitted: it was accepted or refused before")]
    NoSuchUpdate(u32),
    /// The timer is not pending, or the time of the timer or activity has not come.
    #[error("operation {0} is not due")]
    NotDue(Seq),
    /// The run's time has not come, or it has no limit.
    #[error("the run is not due")]
    RunNotDue,
    /// A run that goes on in a new one was given no number for it.
    #[error("no number was given for the run that follows")]
    Unminted,
}

/// A change of a pending activity.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "most changes are the large one, and they live for a moment"
)]
pub enum TaskChange {
    /// The activity is new, or stands elsewhere now.
    Put(ActivityTask),
    /// The activity is over.
    Remove(Seq),
}

/// A change of an admitted update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateChange {
    /// It is new.
    Put(AdmittedUpdate),
    /// It was accepted or refused, or the run has ended.
    Remove(u32),
}

/// What a request does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// Facts to record, in order.
    pub events: Vec<Event>,
    /// Pending activities to change, in order.
    pub tasks: Vec<TaskChange>,
    /// Admitted updates to change, in order.
    pub updates: Vec<UpdateChange>,
    /// The run that follows, if the run ends here and one does.
    pub successor: Option<Box<Successor>>,
}

/// The first event of a run.
#[must_use]
pub fn start(started: Started, now: Timestamp) -> Event {
    let kind = EventKind::WorkflowExecutionStarted {
        started: alloc::boxed::Box::new(started),
    };
    Event {
        number: EventNumber::FIRST,
        time: now,
        kind,
    }
}

impl Execution {
    /// Takes in a decision: the only way that an execution changes.
    ///
    /// # Errors
    /// [`Inapplicable`] when the decision was made for another state.
    pub fn apply(&mut self, decision: &Decision) -> Result<(), Inapplicable> {
        for event in &decision.events {
            self.state.apply(event)?;
        }
        for change in &decision.tasks {
            match change {
                TaskChange::Put(task) => drop(self.tasks.insert(task.seq, task.clone())),
                TaskChange::Remove(seq) => drop(self.tasks.remove(seq)),
            }
        }
        for change in &decision.updates {
            match change {
                UpdateChange::Put(update) => {
                    self.updates.insert(update.number, update.clone());
                }
                UpdateChange::Remove(number) => drop(self.updates.remove(number)),
            }
        }
        Ok(())
    }

    /// Checks what must hold after every decision; for tests and the simulator.
    ///
    /// # Panics
    /// When an invariant is broken.
    pub fn check(&self) {
        self.state.check();
        let owned = self.tasks.values().filter(|t| !t.control.is_abandoned);
        let pending = self
            .state
            .pending
            .iter()
            .filter(|(_, p)| matches!(p, Pending::Activity { .. }))
            .map(|(seq, _)| seq);
        assert!(
            pending.eq(owned.map(|task| &task.seq)),
            "pending activities and their tasks differ"
        );
        assert!(
            !self.state.status.is_closed() || self.updates.is_empty(),
            "closed with admitted updates"
        );
        let known = |update: &&AdmittedUpdate| self.state.updates.contains_key(&update.update_id);
        assert!(
            self.updates.values().find(known).is_none(),
            "an accepted update is still admitted"
        );
    }
}

/// Decides what `request` does to `execution` at `now`.
///
/// # Errors
/// [`Rejection`] when it does nothing because the caller is mistaken or late. A request that was
/// answered before (same request id) is accepted with an empty decision.
pub fn decide(
    execution: &Execution,
    request: Request,
    now: Timestamp,
) -> Result<Decision, Rejection> {
    let state = &execution.state;
    if state.status.is_closed() {
        return Err(Rejection::Closed(state.status));
    }
    let mut draft = Draft::new(execution);
    match request {
        Request::Signal { .. } => draft.signal(request, now)?,
        Request::Cancel {
            reason,
            identity,
            request_id,
        } => {
            if !state.cancel_requested {
                let kind = EventKind::WorkflowExecutionCancelRequested {
                    reason,
                    identity,
                    request_id,
                };
                draft.record(kind, now);
            }
        }
        Request::Terminate { reason, identity } => {
            draft.close(
                EventKind::WorkflowExecutionTerminated { reason, identity },
                now,
            );
        }
        Request::TimerDue { seq } => match state.pending.get(&seq) {
            Some(Pending::Timer { fire_at }) if *fire_at <= now => {
                draft.record(EventKind::TimerFired { seq }, now);
            }
            _ => return Err(Rejection::NotDue(seq)),
        },
        Request::AdmitUpdate { .. }
        | Request::AcceptUpdate { .. }
        | Request::RefuseUpdate { .. } => draft.update(request, now)?,
        Request::Answer(answer) => draft.answer(answer, now),
        Request::Yield {
            commands,
            step,
            at,
            closing,
        } => {
            if closing.is_none() && chain::may_follow(&state.started, &step) {
                return Err(Rejection::Unminted);
            }
            draft.take_yield(commands, step, at, closing, now)?;
        }
        Request::RunDue { closing } => draft.run_due(closing, now)?,
        Request::ActivityDue { .. }
        | Request::ClaimActivity { .. }
        | Request::ReleaseActivity { .. }
        | Request::Heartbeat { .. }
        | Request::CompleteActivity { .. }
        | Request::FailActivity { .. }
        | Request::DeferActivity { .. }
        | Request::ReportActivity { .. }
        | Request::OperateActivities { .. } => draft.activity(request, now)?,
    }
    Ok(draft.decision)
}

/// What a whole history, its pending activities and its admitted updates make: for recovery.
///
/// # Errors
/// [`Inapplicable`] when the history is corrupt.
pub fn recover(
    run: RunKey,
    events: &[Event],
    tasks: Vec<ActivityTask>,
    updates: Vec<AdmittedUpdate>,
) -> Result<Execution, Inapplicable> {
    let state = State::fold(events)?;
    let tasks = tasks.into_iter().map(|task| (task.seq, task)).collect();
    let updates = updates.into_iter().map(|u| (u.number, u)).collect();
    Ok(Execution {
        run,
        state,
        tasks,
        updates,
    })
}

/// A new run.
///
/// # Errors
/// [`Inapplicable`] never for an event made by [`start`].
pub fn begin(run: RunKey, event: &Event) -> Result<Execution, Inapplicable> {
    recover(run, core::slice::from_ref(event), vec![], vec![])
}
