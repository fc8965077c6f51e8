//! What follows from a decision: timers to arm, tasks to hand out, running activities to stop.
//!
//! All of it is derived from the difference that the decision makes, so it can be derived again
//! after a crash.

use std::sync::Arc;

use steadfast_engine::activity::{self, due};
use steadfast_engine::decide::{Decision, Rejection, Request, TaskChange, UpdateChange, decide};
use steadfast_engine::state::Pending;
use steadfast_model::activity::TaskState;
use steadfast_model::{ActivityTask, Event, EventKind, RunKey, Seq, Timestamp, UpdateId};
use steadfast_ports::store::{TaskKey, TimerKey, TimerKind};

use crate::message::{Assignment, Output, UpdateProgress};
use crate::rows::HOST_WORKER_PREFIX;
use crate::run::Run;
use crate::shard::Shard;

impl Shard {
    /// Decides a request and takes the decision in.
    pub(crate) fn take(
        &mut self,
        run: &mut Run,
        request: Request,
        now: Timestamp,
    ) -> Result<(), Rejection> {
        let decision = decide(&run.execution, request, now)?;
        self.apply(run, decision, now);
        Ok(())
    }

    fn apply(&mut self, run: &mut Run, decision: Decision, now: Timestamp) {
        let before: Vec<Option<ActivityTask>> = decision
            .tasks
            .iter()
            .map(|change| run.execution.tasks.get(&seq_of(change)).cloned())
            .collect();
        let admitted = admitted_ids(run, &decision);
        for event in &decision.events {
            self.before_event(run, event);
        }
        if let Err(error) = run.execution.apply(&decision) {
            // `decide` only emits what `apply` accepts; the engine's laws test it.
            debug_assert!(false, "a decision does not apply: {error}");
            tracing::error!(run = run.key().0, %error, "a decision does not apply");
            return;
        }
        updates_changed(run, &decision, admitted);
        for (change, before) in decision.tasks.into_iter().zip(before) {
            self.task_changed(run, change, before.as_ref());
        }
        if let Some(successor) = decision.successor {
            Self::take_successor(run, *successor);
        }
        for event in &decision.events {
            self.after_event(run, event);
        }
        run.events.extend(decision.events);
        self.dispatch(run, now);
        self.note_dirty(run, now);
    }

    /// Timers that an event ends are known only before it is applied.
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "most events concern no timer, task or record"
    )]
    fn before_event(&mut self, run: &Run, event: &Event) {
        let key = run.key();
        match &event.kind {
            EventKind::TimerFired { seq } | EventKind::TimerCanceled { seq } => {
                if let Some(Pending::Timer { fire_at }) = run.execution.state.pending.get(seq) {
                    self.timers.disarm(&workflow_timer(key, *seq, *fire_at));
                }
            }
            kind if kind.is_close() => {
                for (seq, pending) in &run.execution.state.pending {
                    if let Pending::Timer { fire_at } = pending {
                        self.timers.disarm(&workflow_timer(key, *seq, *fire_at));
                    }
                }
            }
            _ => {}
        }
    }

    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "most events concern no timer, task or record"
    )]
    fn after_event(&mut self, run: &mut Run, event: &Event) {
        match &event.kind {
            EventKind::ActivityTaskScheduled { seq, input, .. } => {
                run.inputs.insert(*seq, Arc::new(input.clone()));
            }
            EventKind::TimerStarted { seq, fire_at, .. } => {
                run.rows.touch(*seq);
                self.timers.arm(workflow_timer(run.key(), *seq, *fire_at));
            }
            EventKind::TimerFired { seq } | EventKind::TimerCanceled { seq } => {
                run.rows.touch(*seq);
            }
            _ => {}
        }
        Self::letters_changed(run, &event.kind);
        if event.kind.is_delivered() {
            run.wants_flush = true;
            self.message_wakes(run, &event.kind);
        }
        if event.kind.is_close() {
            run.wants_flush = true;
            run.rows.touch_all();
            run.record.status = run.execution.state.status;
            run.record.closed_at = Some(event.time);
            run.record.last_event = Some(event.number);
            self.disarm_run(run);
            run.record.blocked = None;
            run.record.delayed_until = None;
            run.is_record_dirty = true;
        }
    }

    /// A message ends the delay that whoever started the run asked for; a cancel request ends any.
    fn message_wakes(&mut self, run: &mut Run, kind: &EventKind) {
        let is_cancel = matches!(kind, EventKind::WorkflowExecutionCancelRequested { .. });
        if is_cancel || run.started.link.initiator.is_none() {
            self.wake(run);
        }
    }

    fn task_changed(&mut self, run: &mut Run, change: TaskChange, before: Option<&ActivityTask>) {
        let seq = seq_of(&change);
        run.rows.touch(seq);
        let after = match change {
            TaskChange::Put(task) => Some(task),
            TaskChange::Remove(_) => None,
        };
        if let Some(task) = before {
            if let Some(due) = due(task) {
                self.timers.disarm(&activity_timer(task, due));
            }
            if let TaskState::Ready { since } = &task.state
                && !self.is_local(task)
            {
                self.outputs.push(Output::Withdraw(task_key(task, *since)));
            }
            self.stop_local(task, after.as_ref());
        }
        match &after {
            Some(task) => {
                if let Some(due) = due(task) {
                    self.timers.arm(activity_timer(task, due));
                }
                if matches!(task.state, TaskState::Ready { .. }) {
                    self.undispatched.push(seq);
                }
            }
            None => drop(run.inputs.remove(&seq)),
        }
    }

    /// An attempt inside this process stops when it no longer counts, or is asked to.
    fn stop_local(&mut self, before: &ActivityTask, after: Option<&ActivityTask>) {
        let is_asked = after.is_some_and(|task| task.cancel_requested && !before.cancel_requested);
        let is_over = after.is_none_or(|task| task.attempt != before.attempt);
        let id = (before.run, before.seq, before.attempt);
        if (is_asked || is_over) && self.running.contains(&id) {
            if is_over {
                self.running.remove(&id);
            }
            let (run, seq, attempt) = id;
            self.outputs
                .push(Output::StopActivity { run, seq, attempt });
        }
    }

    /// Hands out the tasks that became ready.
    pub(crate) fn dispatch(&mut self, run: &mut Run, now: Timestamp) {
        for seq in std::mem::take(&mut self.undispatched) {
            let Some(task) = run.execution.tasks.get(&seq) else {
                continue;
            };
            let TaskState::Ready { since } = &task.state else {
                continue;
            };
            if task.control.paused.is_some() {
                continue;
            }
            if self.is_local(task) {
                let worker = self.worker.clone();
                if let Some(assignment) = self.claim(run, seq, worker, now) {
                    self.running
                        .insert((run.key(), seq, assignment.task.attempt));
                    self.outputs.push(Output::RunActivity(Box::new(assignment)));
                }
            } else {
                self.outputs.push(Output::Offer(task_key(task, *since)));
            }
        }
    }

    /// Gives a ready task to a worker. `None` if it is not ready.
    pub(crate) fn claim(
        &mut self,
        run: &mut Run,
        seq: Seq,
        worker: String,
        now: Timestamp,
    ) -> Option<Assignment> {
        let input = run.inputs.get(&seq).cloned()?;
        let request = Request::ClaimActivity { seq, worker };
        let decision = decide(&run.execution, request, now).ok()?;
        let mut undispatched = std::mem::take(&mut self.undispatched);
        self.apply(run, decision, now);
        self.undispatched.append(&mut undispatched);
        let task = run.execution.tasks.get(&seq).cloned()?;
        Some(Assignment {
            task,
            input,
            started: run.started.clone(),
        })
    }

    /// True for a task that this process runs itself.
    pub(crate) fn is_local(&self, task: &ActivityTask) -> bool {
        task.options.is_local || self.options.local_activities.contains(&task.activity_type)
    }

    /// Attempts of a process that is gone wait again; attempts of this one that are not known to
    /// run any more, too.
    pub(crate) fn release_lost(&mut self, run: &mut Run, now: Timestamp) {
        let lost: Vec<(Seq, String)> = run
            .execution
            .tasks
            .values()
            .filter(|task| match &task.state {
                // It goes on elsewhere, whatever became of its worker.
                TaskState::Started { .. } if task.control.is_deferred => false,
                TaskState::Started { worker, .. } => {
                    let id = (task.run, task.seq, task.attempt);
                    let is_running = *worker == self.worker && self.running.contains(&id);
                    worker.starts_with(HOST_WORKER_PREFIX) && !is_running
                }
                TaskState::Ready { .. } | TaskState::Backoff { .. } => false,
            })
            .map(|task| (task.seq, activity::worker(task)))
            .collect();
        for (seq, worker) in lost {
            // It is pending and started, so nothing can be rejected.
            drop(self.take(run, Request::ReleaseActivity { seq, worker }, now));
        }
    }
}

/// The ids of the admitted updates that a decision ends.
fn admitted_ids(run: &Run, decision: &Decision) -> Vec<UpdateId> {
    decision
        .updates
        .iter()
        .filter_map(|change| match change {
            UpdateChange::Put(_) => None,
            UpdateChange::Remove(number) => run.execution.updates.get(number),
        })
        .map(|update| update.update_id.clone())
        .collect()
}

/// Notes which rows change, and what followers are told. `admitted` are those that were ended.
fn updates_changed(run: &mut Run, decision: &Decision, admitted: Vec<UpdateId>) {
    for change in &decision.updates {
        match change {
            UpdateChange::Put(update) => run.rows.touch_update(update.number, true),
            UpdateChange::Remove(number) => run.rows.touch_update(*number, false),
        }
    }
    for event in &decision.events {
        if let EventKind::WorkflowExecutionUpdateAccepted { update_id, .. } = &event.kind {
            run.unannounced.push((event.number, update_id.clone()));
        }
        if let EventKind::WorkflowExecutionUpdateCompleted { .. } = &event.kind {
            // Somebody waits for it.
            run.wants_flush = true;
        }
    }
    if !run.is_closed() || !decision.events.iter().any(|event| event.kind.is_close()) {
        return;
    }
    let status = run.execution.state.status;
    let next = decision.successor.as_ref().map(|next| next.run);
    let ended = next.map_or(UpdateProgress::Closed(status), UpdateProgress::Moved);
    let admitted = admitted.into_iter().map(|id| (id, ended.clone()));
    run.announcements.extend(admitted);
    run.unannounced.clear();
    let updates = run.execution.state.updates.iter();
    let unfinished: Vec<_> = updates
        .filter(|(_, update)| update.completed.is_none())
        .map(|(id, _)| (id.clone(), UpdateProgress::Abandoned))
        .collect();
    if !unfinished.is_empty() {
        let first = unfinished.first().map(|(id, _)| id);
        tracing::warn!(run = run.key().0, workflow_id = %run.record.workflow_id,
            count = unfinished.len(), ?first,
            "the run ended before the handlers of its accepted updates: wait for them with \
             `all_handlers_finished`");
    }
    run.announcements.extend(unfinished);
}

fn seq_of(change: &TaskChange) -> Seq {
    match change {
        TaskChange::Put(task) => task.seq,
        TaskChange::Remove(seq) => *seq,
    }
}

pub(crate) fn workflow_timer(run: RunKey, seq: Seq, due: Timestamp) -> TimerKey {
    TimerKey {
        due,
        run,
        kind: TimerKind::Workflow,
        seq,
    }
}

pub(crate) fn activity_timer(task: &ActivityTask, due: Timestamp) -> TimerKey {
    TimerKey {
        due,
        run: task.run,
        kind: TimerKind::Activity,
        seq: task.seq,
    }
}

pub(crate) fn task_key(task: &ActivityTask, ready: Timestamp) -> TaskKey {
    TaskKey {
        queue: task.options.task_queue.clone(),
        ready,
        run: task.run,
        seq: task.seq,
    }
}
