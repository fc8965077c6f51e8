//! What a request does to a run: events to record and pending activities to change.
//!
//! A decision is data. Its owner writes it, then applies it with [`Execution::apply`]; nothing
//! else changes an execution.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use steadfast_model::activity::TaskState;
use steadfast_model::command::{Command, Step};
use steadfast_model::event::Started;
use steadfast_model::limits::SIGNALS_MAX;
use steadfast_model::{
    ActivityTask, Event, EventKind, EventNumber, Failure, FailureKind, Frame, Payload, RequestId,
    RunKey, Seq, SignalName, Status, Timestamp,
};

use crate::activity::{self, Outcome};
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
    /// The guest ran until it blocked or ended.
    Yield {
        /// What it asked for, in order.
        commands: Vec<Issued>,
        /// How the activation ended.
        step: Step,
        /// The workflow's time at the end.
        at: Timestamp,
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
    /// The timer is not pending, or the time of the timer or activity has not come.
    #[error("operation {0} is not due")]
    NotDue(Seq),
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

/// What a request does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// Facts to record, in order.
    pub events: Vec<Event>,
    /// Pending activities to change, in order.
    pub tasks: Vec<TaskChange>,
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
        Ok(())
    }

    /// Checks what must hold after every decision; for tests and the simulator.
    ///
    /// # Panics
    /// When an invariant is broken.
    pub fn check(&self) {
        self.state.check();
        let pending = self
            .state
            .pending
            .iter()
            .filter(|(_, p)| matches!(p, Pending::Activity { .. }))
            .map(|(seq, _)| seq);
        assert!(
            pending.eq(self.tasks.keys()),
            "pending activities and their tasks differ"
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
        Request::Signal {
            name,
            input,
            request_id,
            identity,
        } => {
            if !state.signal_ids.contains(&request_id) {
                if state.signals >= SIGNALS_MAX {
                    return Err(Rejection::TooManySignals);
                }
                let kind = EventKind::WorkflowExecutionSignaled {
                    name,
                    input,
                    request_id,
                    identity,
                };
                draft.record(kind, now);
            }
        }
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
        Request::Yield { commands, step, at } => draft.take_yield(commands, step, at),
        Request::ActivityDue { .. }
        | Request::ClaimActivity { .. }
        | Request::ReleaseActivity { .. }
        | Request::Heartbeat { .. }
        | Request::CompleteActivity { .. }
        | Request::FailActivity { .. } => draft.activity(request, now)?,
    }
    Ok(draft.decision)
}

/// A decision in the making. It remembers what its own earlier events did, so that commands of one
/// activation see each other without a copy of the state.
struct Draft<'e> {
    execution: &'e Execution,
    decision: Decision,
    next: EventNumber,
    next_seq: Seq,
    last_time: Timestamp,
    /// Timers started here (`None`), and activities scheduled or changed here.
    changed: BTreeMap<Seq, Option<ActivityTask>>,
    /// Operations ended here.
    ended: BTreeSet<Seq>,
}

impl<'e> Draft<'e> {
    fn new(execution: &'e Execution) -> Self {
        Self {
            execution,
            decision: Decision::default(),
            next: execution.state.next(),
            next_seq: execution.state.next_seq,
            last_time: execution.state.last_time,
            changed: BTreeMap::new(),
            ended: BTreeSet::new(),
        }
    }

    /// Records one event. Time never runs backwards in a history, whatever the clock does.
    fn record(&mut self, kind: EventKind, at: Timestamp) -> EventNumber {
        let (number, time) = (self.next, at.max(self.last_time));
        self.next = number.plus(1);
        self.last_time = time;
        self.decision.events.push(Event { number, time, kind });
        number
    }

    /// Records the last event of a run and drops all its activities.
    fn close(&mut self, kind: EventKind, at: Timestamp) {
        self.record(kind, at);
        let changed = core::mem::take(&mut self.changed);
        let mut open: BTreeSet<Seq> = self.execution.tasks.keys().copied().collect();
        open.extend(
            changed
                .into_iter()
                .filter_map(|(seq, task)| task.map(|_| seq)),
        );
        let open = open.into_iter().filter(|seq| !self.ended.contains(seq));
        self.decision.tasks.extend(open.map(TaskChange::Remove));
    }

    /// Ends an activity with its closing event.
    fn end_activity(&mut self, kind: EventKind, seq: Seq, at: Timestamp) {
        self.record(kind, at);
        self.ended.insert(seq);
        self.decision.tasks.push(TaskChange::Remove(seq));
    }

    fn task(&self, seq: Seq) -> Option<&ActivityTask> {
        if self.ended.contains(&seq) {
            return None;
        }
        match self.changed.get(&seq) {
            Some(task) => task.as_ref(),
            None => self.execution.tasks.get(&seq),
        }
    }

    fn is_timer_pending(&self, seq: Seq) -> bool {
        let begun = || matches!(self.changed.get(&seq), Some(None));
        let before = || {
            matches!(
                self.execution.state.pending.get(&seq),
                Some(Pending::Timer { .. })
            )
        };
        !self.ended.contains(&seq) && (begun() || before())
    }

    fn take_yield(&mut self, commands: Vec<Issued>, step: Step, at: Timestamp) {
        for Issued { at, command } in commands {
            self.command(command, at);
        }
        match step {
            Step::Blocked | Step::UnknownOperation(_) => {}
            Step::Completed(result) => {
                self.close(EventKind::WorkflowExecutionCompleted { result }, at);
            }
            Step::Failed(failure) => self.close(EventKind::WorkflowExecutionFailed { failure }, at),
            Step::Canceled(failure) => {
                self.close(EventKind::WorkflowExecutionCanceled { failure }, at);
            }
        }
    }

    fn command(&mut self, command: Command, at: Timestamp) {
        match command {
            Command::ScheduleActivity {
                activity_type,
                input,
                options,
            } => {
                let seq = self.take_seq();
                let kind = EventKind::ActivityTaskScheduled {
                    seq,
                    activity_type: activity_type.clone(),
                    input,
                    options: options.clone(),
                };
                let scheduled_event = self.record(kind, at);
                let task = ActivityTask {
                    run: self.execution.run,
                    seq,
                    scheduled_event,
                    scheduled_at: self.last_time,
                    activity_type,
                    options,
                    attempt: 1,
                    state: TaskState::Ready {
                        since: self.last_time,
                    },
                    last_failure: None,
                    heartbeat_details: None,
                    cancel_requested: false,
                };
                self.put(task);
            }
            Command::StartTimer { duration } => {
                let seq = self.take_seq();
                let duration = duration.capped();
                let fire_at = at.after(duration);
                self.record(
                    EventKind::TimerStarted {
                        seq,
                        duration,
                        fire_at,
                    },
                    at,
                );
                self.changed.insert(seq, None);
            }
            Command::CancelActivity { seq } => self.cancel_activity(seq, at),
            // A timer that fired before its cancellation stays fired: nothing to record.
            Command::CancelTimer { seq } => {
                if self.is_timer_pending(seq) {
                    self.record(EventKind::TimerCanceled { seq }, at);
                    self.ended.insert(seq);
                }
            }
        }
    }

    fn take_seq(&mut self) -> Seq {
        let seq = self.next_seq;
        self.next_seq = Seq(seq.0.saturating_add(1));
        seq
    }

    /// An activity that no worker has is cancelled at once; a running one is told with its next
    /// heartbeat and ends when its worker says so. An activity that has ended stays as it is.
    fn cancel_activity(&mut self, seq: Seq, at: Timestamp) {
        let Some(task) = self.task(seq).cloned() else {
            return;
        };
        if task.cancel_requested {
            return;
        }
        self.record(EventKind::ActivityTaskCancelRequested { seq }, at);
        if matches!(task.state, TaskState::Started { .. }) {
            let task = ActivityTask {
                cancel_requested: true,
                ..task
            };
            self.put(task);
        } else {
            self.cancel_unowned(&task, "cancelled while no worker had it", at);
        }
    }

    /// Ends an activity whose cancellation no worker is left to answer.
    fn cancel_unowned(&mut self, task: &ActivityTask, why: &str, at: Timestamp) {
        let failure = activity::of_activity(task, Failure::canceled(why));
        let seq = task.seq;
        self.end_activity(EventKind::ActivityTaskCanceled { seq, failure }, seq, at);
    }

    fn put(&mut self, task: ActivityTask) {
        self.changed.insert(task.seq, Some(task.clone()));
        self.decision.tasks.push(TaskChange::Put(task));
    }

    #[allow(
        clippy::too_many_lines,
        reason = "one short arm for each request about an activity"
    )]
    fn activity(&mut self, request: Request, now: Timestamp) -> Result<(), Rejection> {
        match request {
            Request::ActivityDue { seq } => {
                let task = self.pending_task(seq)?;
                let outcome = activity::look(&task, now).ok_or(Rejection::NotDue(seq))?;
                self.outcome(outcome, seq, now);
            }
            Request::ClaimActivity { seq, worker } => {
                let task = self.pending_task(seq)?;
                if !matches!(task.state, TaskState::Ready { .. }) {
                    return Err(Rejection::NotReady(seq));
                }
                let state = TaskState::Started {
                    worker,
                    since: now,
                    heartbeat: now,
                };
                self.put(ActivityTask { state, ..task });
            }
            Request::ReleaseActivity { seq, worker } => {
                let task = self.pending_task(seq)?;
                match &task.state {
                    TaskState::Started { worker: w, .. } if *w != worker => {}
                    TaskState::Started { .. } if task.cancel_requested => {
                        self.cancel_unowned(&task, "cancelled; its worker was lost", now);
                    }
                    TaskState::Started { .. } => {
                        self.put(ActivityTask {
                            state: TaskState::Ready { since: now },
                            ..task
                        });
                    }
                    TaskState::Ready { .. } | TaskState::Backoff { .. } => {}
                }
            }
            Request::Heartbeat {
                seq,
                attempt,
                details,
            } => {
                let mut task = self.started_task(seq, attempt)?;
                if let TaskState::Started { heartbeat, .. } = &mut task.state {
                    *heartbeat = now.max(*heartbeat);
                }
                task.heartbeat_details = details.or(task.heartbeat_details);
                self.put(task);
            }
            Request::CompleteActivity {
                seq,
                attempt,
                result,
            } => {
                let task = self.started_task(seq, attempt)?;
                let started_at = match &task.state {
                    TaskState::Started { since, .. } => *since,
                    TaskState::Ready { .. } | TaskState::Backoff { .. } => now,
                };
                let worker = activity::worker(&task);
                let kind = EventKind::ActivityTaskCompleted {
                    seq,
                    result,
                    attempt,
                    worker,
                    started_at,
                };
                self.end_activity(kind, seq, now);
            }
            Request::FailActivity {
                seq,
                attempt,
                failure,
            } => {
                let task = self.started_task(seq, attempt)?;
                let is_canceled = failure
                    .outer()
                    .is_some_and(|f| f.kind == FailureKind::Canceled);
                if is_canceled && task.cancel_requested {
                    let failure = activity::of_activity(&task, failure);
                    self.end_activity(EventKind::ActivityTaskCanceled { seq, failure }, seq, now);
                } else {
                    let failure = unless_unasked_cancel(failure, is_canceled);
                    self.outcome(activity::fail(&task, &failure, now), seq, now);
                }
            }
            Request::Signal { .. }
            | Request::Cancel { .. }
            | Request::Terminate { .. }
            | Request::TimerDue { .. }
            | Request::Yield { .. } => {}
        }
        Ok(())
    }

    fn outcome(&mut self, outcome: Outcome, seq: Seq, now: Timestamp) {
        match outcome {
            Outcome::Again(task) => self.put(task),
            Outcome::Closed(kind) => self.end_activity(kind, seq, now),
        }
    }

    fn pending_task(&self, seq: Seq) -> Result<ActivityTask, Rejection> {
        self.task(seq)
            .cloned()
            .ok_or(Rejection::NoSuchActivity(seq))
    }

    /// The task, if `attempt` is the one that a worker has.
    fn started_task(&self, seq: Seq, attempt: u32) -> Result<ActivityTask, Rejection> {
        let task = self.pending_task(seq)?;
        let is_started = matches!(task.state, TaskState::Started { .. });
        if task.attempt == attempt && is_started {
            Ok(task)
        } else {
            Err(Rejection::StaleAttempt {
                seq,
                given: attempt,
                current: task.attempt,
            })
        }
    }
}

/// A worker that reports a cancellation nobody asked for has failed: its report becomes an ordinary
/// failure, so that a worker shutting down does not look like a cancelled workflow.
fn unless_unasked_cancel(failure: Failure, is_canceled: bool) -> Failure {
    if !is_canceled {
        return failure;
    }
    let message = "the worker reported a cancellation that was not requested";
    failure.wrapped(Frame::new(
        FailureKind::Application,
        "unrequested-cancel",
        message,
    ))
}

/// What a whole history and its pending activities make: for recovery.
///
/// # Errors
/// [`Inapplicable`] when the history is corrupt.
pub fn recover(
    run: RunKey,
    events: &[Event],
    tasks: Vec<ActivityTask>,
) -> Result<Execution, Inapplicable> {
    let state = State::fold(events)?;
    let tasks = tasks.into_iter().map(|task| (task.seq, task)).collect();
    Ok(Execution { run, state, tasks })
}

/// A new run.
///
/// # Errors
/// [`Inapplicable`] never for an event made by [`start`].
pub fn begin(run: RunKey, event: &Event) -> Result<Execution, Inapplicable> {
    recover(run, core::slice::from_ref(event), vec![])
}
