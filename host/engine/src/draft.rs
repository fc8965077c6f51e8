//! A decision in the making: what each command and each report about an activity records.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use steadfast_model::activity::TaskState;
use steadfast_model::chain::Fields;
use steadfast_model::command::{Command, Step};
use steadfast_model::limits::SIGNALS_MAX;
use steadfast_model::{
    ActivityTask, Cancellation, Control, Event, EventKind, EventNumber, Failure, FailureKind,
    Frame, Payload, Seq, Timestamp, UpdateId,
};

use crate::activity::{self, Outcome};
use crate::chain::Closing;
use crate::decide::{Decision, Execution, Issued, Rejection, Request, TaskChange, UpdateChange};
use crate::state::{Child, Pending, upsert};

mod closing;

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
    /// The memo as the commands so far leave it, if they change it.
    memo: Option<Fields>,
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
            memo: None,
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

    /// Ends an activity with its closing event. One that its workflow has given up ends without:
    /// its cancellation is recorded already.
    pub(crate) fn end_activity(&mut self, kind: EventKind, seq: Seq, at: Timestamp) {
        if !self.task(seq).is_some_and(|task| task.control.is_abandoned) {
            self.record(kind, at);
        }
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

    /// All pending activities.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = &ActivityTask> {
        self.execution
            .tasks
            .keys()
            .filter_map(|seq| self.task(*seq))
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

    pub(crate) fn take_yield(
        &mut self,
        commands: Vec<Issued>,
        step: Step,
        at: Timestamp,
        closing: Option<Box<Closing>>,
        now: Timestamp,
    ) -> Result<(), Rejection> {
        for Issued { at, command } in commands {
            self.command(command, at);
        }
        match step {
            Step::Blocked | Step::UnknownOperation(_) => {}
            Step::Completed(result) => self.close_completed(result, at, closing, now),
            Step::Failed(failure) => self.close_failed(failure, at, closing, now),
            Step::Canceled(failure) => {
                self.close(EventKind::WorkflowExecutionCanceled { failure }, at);
            }
            Step::ContinuedAsNew(next) => {
                let closing = closing.ok_or(Rejection::Unminted)?;
                self.continue_as_new(next, at, *closing, now);
            }
        }
        Ok(())
    }

    /// Takes a signal, unless it was taken before.
    pub(crate) fn signal(&mut self, request: Request, now: Timestamp) -> Result<(), Rejection> {
        let Request::Signal {
            name,
            input,
            request_id,
            identity,
        } = request
        else {
            return Ok(());
        };
        let state = &self.execution.state;
        if state.signal_ids.contains_key(&request_id) {
            return Ok(());
        }
        if state.signals >= SIGNALS_MAX {
            return Err(Rejection::TooManySignals);
        }
        let kind = EventKind::WorkflowExecutionSignaled {
            name,
            input,
            request_id,
            identity,
        };
        self.record(kind, now);
        Ok(())
    }

    #[allow(clippy::too_many_lines, reason = "one short arm for each command")]
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
                    control: Control::default(),
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
            Command::UpsertMemo { memo } => {
                let state = &self.execution.state;
                upsert(self.memo.get_or_insert_with(|| state.memo.clone()), &memo);
                self.record(EventKind::WorkflowPropertiesModified { memo }, at);
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
    /// heartbeat and ends when its worker says so, or at once if its options want that. An
    /// abandoned one runs on, but its workflow has its answer. An activity that has ended stays as
    /// it is.
    fn cancel_activity(&mut self, seq: Seq, at: Timestamp) {
        let Some(task) = self.task(seq).cloned() else {
            return;
        };
        if task.cancel_requested || task.control.is_abandoned {
            return;
        }
        self.record(EventKind::ActivityTaskCancelRequested { seq }, at);
        let is_started = matches!(task.state, TaskState::Started { .. });
        match task.options.cancellation {
            Cancellation::Abandon => self.abandon(task, at),
            Cancellation::TryCancel if is_started => {
                self.cancel_unowned(&task, "cancelled; its worker is told", at);
            }
            Cancellation::WaitCompleted if is_started => {
                let task = ActivityTask {
                    cancel_requested: true,
                    ..task
                };
                self.put(task);
            }
            Cancellation::TryCancel | Cancellation::WaitCompleted => {
                self.cancel_unowned(&task, "cancelled while no worker had it", at);
            }
        }
    }

    /// The workflow is answered; the activity runs on.
    fn abandon(&mut self, mut task: ActivityTask, at: Timestamp) {
        let failure = activity::of_activity(&task, Failure::canceled("abandoned; it runs on"));
        let seq = task.seq;
        self.record(EventKind::ActivityTaskCanceled { seq, failure }, at);
        task.control.is_abandoned = true;
        self.put(task);
    }

    /// Ends an activity whose cancellation no worker is left to answer.
    fn cancel_unowned(&mut self, task: &ActivityTask, why: &str, at: Timestamp) {
        let failure = activity::of_activity(task, Failure::canceled(why));
        let seq = task.seq;
        self.end_activity(EventKind::ActivityTaskCanceled { seq, failure }, seq, at);
    }

    pub(crate) fn put(&mut self, task: ActivityTask) {
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
                let is_ready = matches!(task.state, TaskState::Ready { .. });
                if !is_ready || task.control.paused.is_some() {
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
                    // It runs elsewhere: its worker is not needed.
                    TaskState::Started { .. } if task.control.is_deferred => {}
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
                let task = self.started_task(seq, attempt)?;
                self.beat(task, details, now);
            }
            Request::CompleteActivity {
                seq,
                attempt,
                result,
            } => {
                let task = self.started_task(seq, attempt)?;
                self.complete(&task, result, now);
            }
            Request::FailActivity {
                seq,
                attempt,
                failure,
            } => {
                let task = self.started_task(seq, attempt)?;
                self.fail(&task, failure, now);
            }
            Request::DeferActivity { seq, attempt } => self.defer(seq, attempt)?,
            Request::ReportActivity {
                activity_id,
                report,
            } => self.report(&activity_id, report, now)?,
            Request::OperateActivities {
                which,
                operation,
                identity,
                seed,
            } => self.operate(&which, &operation, &identity, seed, now)?,
            Request::Signal { .. }
            | Request::Cancel { .. }
            | Request::Terminate { .. }
            | Request::TimerDue { .. }
            | Request::AdmitUpdate { .. }
            | Request::AcceptUpdate { .. }
            | Request::RefuseUpdate { .. }
            | Request::RunDue { .. }
            | Request::Answer(_)
            | Request::Yield { .. } => {}
        }
        Ok(())
    }

    /// A sign of life. Details are kept until newer ones come.
    pub(crate) fn beat(
        &mut self,
        mut task: ActivityTask,
        details: Option<Payload>,
        now: Timestamp,
    ) {
        if let TaskState::Started { heartbeat, .. } = &mut task.state {
            *heartbeat = now.max(*heartbeat);
        }
        task.heartbeat_details = details.or(task.heartbeat_details);
        self.put(task);
    }

    pub(crate) fn complete(&mut self, task: &ActivityTask, result: Payload, now: Timestamp) {
        let started_at = match &task.state {
            TaskState::Started { since, .. } => *since,
            TaskState::Ready { .. } | TaskState::Backoff { .. } => now,
        };
        let kind = EventKind::ActivityTaskCompleted {
            seq: task.seq,
            result,
            attempt: task.shown_attempt(),
            worker: activity::worker(task),
            started_at,
        };
        self.end_activity(kind, task.seq, now);
    }

    pub(crate) fn fail(&mut self, task: &ActivityTask, failure: Failure, now: Timestamp) {
        let seq = task.seq;
        let is_canceled = failure
            .outer()
            .is_some_and(|f| f.kind == FailureKind::Canceled);
        if is_canceled && task.cancel_requested {
            let failure = activity::of_activity(task, failure);
            self.end_activity(EventKind::ActivityTaskCanceled { seq, failure }, seq, now);
        } else {
            let failure = unless_unasked_cancel(failure, is_canceled);
            self.outcome(activity::fail(task, &failure, now), seq, now);
        }
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
    pub(crate) fn started_task(&self, seq: Seq, attempt: u32) -> Result<ActivityTask, Rejection> {
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
