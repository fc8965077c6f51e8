//! Which rows of the store a run should have, and which it has: the difference is what a commit
//! writes. What comes and goes between two commits is never written.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_engine::activity::due;
use steadfast_engine::decide::Execution;
use steadfast_engine::state::Pending;
use steadfast_model::activity::TaskState;
use steadfast_model::{ActivityTask, RunKey, Seq, TaskQueue, Timestamp};
use steadfast_ports::store::{TaskKey, TimerKey, TimerKind, Write};

use crate::chain::run_timer;

/// Prefix of the names of workers inside a host. No other worker may use it.
pub const HOST_WORKER_PREFIX: &str = "host/";

/// The queue under which tasks that this process runs itself are kept on disk, so that a restart
/// finds them without loading every run.
pub const HOST_QUEUE: &str = "host/local";

/// Rows of one operation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OperationRows {
    activity: Option<Box<ActivityTask>>,
    timer: Option<TimerKey>,
    task: Option<TaskKey>,
}

impl OperationRows {
    /// Rows that an activity should have.
    fn of_activity(task: &ActivityTask, is_local: bool) -> Self {
        let (run, seq) = (task.run, task.seq);
        let timer = due(task).map(|due| TimerKey {
            due,
            run,
            kind: TimerKind::Activity,
            seq,
        });
        let waits = match &task.state {
            TaskState::Ready { .. } if task.control.paused.is_some() => None,
            TaskState::Ready { since } => Some(*since),
            // An attempt that goes on elsewhere does not.
            TaskState::Started { .. } if task.control.is_deferred => None,
            // A local attempt dies with the process: the next one must find it waiting.
            TaskState::Started { worker, since, .. } if worker.starts_with(HOST_WORKER_PREFIX) => {
                Some(*since)
            }
            TaskState::Started { .. } | TaskState::Backoff { .. } => None,
        };
        let task_key = waits.map(|ready| {
            let local = is_local.then(|| TaskQueue::new(HOST_QUEUE).ok()).flatten();
            let queue = local.unwrap_or_else(|| task.options.task_queue.clone());
            TaskKey {
                queue,
                ready,
                run,
                seq,
            }
        });
        Self {
            activity: Some(Box::new(task.clone())),
            timer,
            task: task_key,
        }
    }

    fn of_timer(run: RunKey, seq: Seq, due: Timestamp) -> Self {
        let timer = TimerKey {
            due,
            run,
            kind: TimerKind::Workflow,
            seq,
        };
        Self {
            timer: Some(timer),
            ..Self::default()
        }
    }

    fn is_empty(&self) -> bool {
        self.activity.is_none() && self.timer.is_none() && self.task.is_none()
    }
}

/// The rows that a run has on disk.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    on_disk: BTreeMap<Seq, OperationRows>,
    dirty: BTreeSet<Seq>,
    /// Admitted updates on disk, by number.
    updates_on_disk: BTreeSet<u32>,
    /// Admitted updates that the disk has not, or has no more.
    updates_dirty: BTreeSet<u32>,
    /// Due times of the run as a whole, on disk.
    of_run: BTreeMap<TimerKind, Timestamp>,
}

impl Rows {
    /// The rows of a run that was just read.
    pub(crate) fn loaded(execution: &Execution, is_local: impl Fn(&ActivityTask) -> bool) -> Self {
        let mut rows = Self {
            updates_on_disk: execution.updates.keys().copied().collect(),
            ..Self::default()
        };
        let seqs: BTreeSet<Seq> = execution.state.pending.keys().copied().collect();
        for seq in seqs.iter().chain(execution.tasks.keys()) {
            let wanted = wanted(execution, *seq, &is_local);
            if !wanted.is_empty() {
                rows.on_disk.insert(*seq, wanted);
            }
        }
        rows
    }

    /// Marks an operation as changed.
    pub(crate) fn touch(&mut self, seq: Seq) {
        self.dirty.insert(seq);
    }

    /// Marks everything on disk as changed: the run has ended.
    pub(crate) fn touch_all(&mut self) {
        self.dirty.extend(self.on_disk.keys().copied());
    }

    pub(crate) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty() || !self.updates_dirty.is_empty()
    }

    /// Marks an admitted update as new or gone. One that comes and goes between two commits is
    /// never written.
    pub(crate) fn touch_update(&mut self, number: u32, is_there: bool) {
        if is_there || self.updates_on_disk.contains(&number) {
            self.updates_dirty.insert(number);
        } else {
            self.updates_dirty.remove(&number);
        }
    }

    fn write_updates(&mut self, execution: &Execution, writes: &mut Vec<Write>) {
        for number in std::mem::take(&mut self.updates_dirty) {
            if let Some(update) = execution.updates.get(&number) {
                self.updates_on_disk.insert(number);
                writes.push(Write::PutUpdate(Box::new(update.clone())));
            } else if self.updates_on_disk.remove(&number) {
                writes.push(Write::DeleteUpdate(execution.run, number));
            }
        }
    }

    /// Appends the writes that bring the disk up to date.
    pub(crate) fn write(
        &mut self,
        execution: &Execution,
        is_local: impl Fn(&ActivityTask) -> bool,
        writes: &mut Vec<Write>,
    ) {
        self.write_updates(execution, writes);
        for seq in std::mem::take(&mut self.dirty) {
            let wanted = wanted(execution, seq, &is_local);
            let had = self.on_disk.remove(&seq).unwrap_or_default();
            difference(execution.run, seq, had, &wanted, writes);
            if !wanted.is_empty() {
                self.on_disk.insert(seq, wanted);
            }
        }
    }

    /// Appends the writes that move a due time of the run as a whole.
    pub(crate) fn write_of_run(
        &mut self,
        run: RunKey,
        kind: TimerKind,
        wanted: Option<Timestamp>,
        writes: &mut Vec<Write>,
    ) {
        let had = self.of_run.get(&kind).copied();
        if had == wanted {
            return;
        }
        let key = |due| run_timer(run, kind, due);
        writes.extend(had.map(|due| Write::DeleteTimer(key(due))));
        writes.extend(wanted.map(|due| Write::PutTimer(key(due))));
        self.loaded_of_run(kind, wanted);
    }

    /// Takes in that a due time of the run as a whole is on disk.
    pub(crate) fn loaded_of_run(&mut self, kind: TimerKind, due: Option<Timestamp>) {
        match due {
            Some(due) => drop(self.of_run.insert(kind, due)),
            None => drop(self.of_run.remove(&kind)),
        }
    }
}

fn wanted(
    execution: &Execution,
    seq: Seq,
    is_local: &impl Fn(&ActivityTask) -> bool,
) -> OperationRows {
    if let Some(task) = execution.tasks.get(&seq) {
        return OperationRows::of_activity(task, is_local(task));
    }
    match execution.state.pending.get(&seq) {
        Some(Pending::Timer { fire_at }) => OperationRows::of_timer(execution.run, seq, *fire_at),
        Some(Pending::Activity { .. } | Pending::Child | Pending::Signal | Pending::Cancel)
        | None => OperationRows::default(),
    }
}

fn difference(
    run: RunKey,
    seq: Seq,
    had: OperationRows,
    wanted: &OperationRows,
    writes: &mut Vec<Write>,
) {
    if had.activity != wanted.activity {
        match &wanted.activity {
            Some(task) => writes.push(Write::PutActivity(task.clone())),
            None => writes.push(Write::DeleteActivity(run, seq)),
        }
    }
    if had.timer != wanted.timer {
        writes.extend(had.timer.map(Write::DeleteTimer));
        writes.extend(wanted.timer.map(Write::PutTimer));
    }
    if had.task != wanted.task {
        writes.extend(had.task.map(Write::DeleteTask));
        writes.extend(wanted.task.clone().map(Write::PutTask));
    }
}
