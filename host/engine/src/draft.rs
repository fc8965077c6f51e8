//! A decision in the making: what each command and each report about an activity records.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use steadfast_model::activity::TaskState;
use steadfast_model::command::{Command, Step};
use steadfast_model::{
    ActivityTask, Event, EventKind, EventNumber, Failure, FailureKind, Frame, Seq, Timestamp,
    UpdateId,
};

use crate::activity::{self, Outcome};
use crate::decide::{Decision, Execution, Issued, Rejection, Request, TaskChange, UpdateChange};
use crate::state::{Child, Pending};

/// A decision in the making. It remembers what its own earlier events did, so that commands of one
/// activation see each other without a copy of the state.
pub(crate) struct Draft<'e> {
    pub(crate) execution: &'e Execution,
    pub(crate) decision: Decision,
    next: EventNumber,
    next_seq: Seq,
    last_time: Timestamp,
    /// Timers started here (`None`), and activities scheduled or changed here.
    changed: BTreeMap<Seq, Option<ActivityTask>>,
    /// Operations ended here.
    ended: BTreeSet<Seq>,
    /// Updates completed here.
    pub(crate) completed: BTreeSet<UpdateId>,
    /// Children started or changed here; `None`: over.
    pub(crate) children: BTreeMap<Seq, Option<Child>>,
}

impl<'e> Draft<'e> {
    pub(crate) fn new(execution: &'e Execution) -> Self {
        Self {
            execution,
            decision: Decision::default(),
            next: execution.state.next(),
            next_seq: execution.state.next_seq,
            last_time: execution.state.last_time,
            changed: BTreeMap::new(),
            ended: BTreeSet::new(),
            completed: BTreeSet::new(),
            children: BTreeMap::new(),
        }
    }

    /// The execution before the decision.
    pub(crate) fn execution(&self) -> &'e Execution {
        self.execution
    }

    /// Records one event. Time never runs backwards in a history, whatever the clock does.
    pub(crate) fn record(&mut self, kind: EventKind, at: Timestamp) -> EventNumber {
        let (number, time) = (self.next, at.max(self.last_time));
        self.next = number.plus(1);
        self.last_time = time;
        self.decision.events.push(Event { number, time, kind });
        number
    }

    /// Records the last event of a run and drops all its activities.
    pub(crate) fn close(&mut self, kind: EventKind, at: Timestamp) {
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
        let admitted = self.execution.updates.keys().copied();
        self.decision
            .updates
            .extend(admitted.map(UpdateChange::Remove));
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

    pub(crate) fn take_yield(&mut self, commands: Vec<Issued>, step: Step, at: Timestamp) {
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
            Command::CompleteUpdate { update_id, outcome } => {
                self.complete_update(update_id, outcome, at);
            }
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
                    options: Box::new(options.clone()),
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
            Command::RecordMarker { marker } => {
                self.record(EventKind::MarkerRecorded { marker }, at);
            }
            Command::StartChild {
                workflow_type,
                input,
                options,
            } => self.start_child(workflow_type, input, options, at),
            Command::CancelChild { seq, reason } => self.cancel_child(seq, reason, at),
            Command::SignalExternal {
                target,
                name,
                input,
            } => self.signal_external(target, name, input, at),
            Command::RequestCancelExternal { target, reason } => {
                self.cancel_external(target, reason, at);
            }
        }
    }

    pub(crate) fn take_seq(&mut self) -> Seq {
        let seq = self.next_seq;
        self.next_seq = seq.next();
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
    pub(crate) fn activity(&mut self, request: Request, now: Timestamp) -> Result<(), Rejection> {
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
            | Request::AdmitUpdate { .. }
            | Request::AcceptUpdate { .. }
            | Request::RefuseUpdate { .. }
            | Request::Answer(_)
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
