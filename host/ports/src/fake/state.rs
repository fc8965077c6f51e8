//! The state of a store as plain maps, and what a batch does to it: the reference for all others.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use steadfast_model::codec::Chunk;
use steadfast_model::{
    ActivityTask, AdmittedUpdate, ComponentDigest, ComponentRecord, EventNumber, ExecutionRecord,
    LetterKey, Namespace, RunKey, Seq, Timestamp, WorkflowId, WorkflowType,
};

use crate::store::{Batch, Error, FencingToken, ListQuery, TaskKey, TimerKey, Write};

/// Everything that a store holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    pub(crate) fence: FencingToken,
    executions: BTreeMap<RunKey, ExecutionRecord>,
    current: BTreeMap<(Namespace, WorkflowId), RunKey>,
    history: BTreeMap<(RunKey, EventNumber), Chunk>,
    activities: BTreeMap<(RunKey, Seq), ActivityTask>,
    updates: BTreeMap<(RunKey, u32), AdmittedUpdate>,
    timers: BTreeSet<TimerKey>,
    tasks: BTreeSet<TaskKey>,
    ready: BTreeSet<RunKey>,
    letters: BTreeSet<LetterKey>,
    components: BTreeMap<ComponentDigest, (ComponentRecord, Vec<u8>)>,
    routes: BTreeMap<(Namespace, WorkflowType), ComponentDigest>,
}

impl State {
    /// Applies a batch, or nothing of it.
    pub(crate) fn apply(&mut self, batch: Batch) -> Result<(), Error> {
        if batch.fence < self.fence {
            return Err(Error::Fenced {
                held: batch.fence,
                current: self.fence,
            });
        }
        if batch.fence > self.fence {
            let message = format!("the token {:?} was never given out", batch.fence);
            return Err(Error::Conflict(message));
        }
        self.expect(&batch.writes)?;
        for write in batch.writes {
            self.write(write);
        }
        Ok(())
    }

    /// Checks all expectations of a batch before any of it is applied.
    fn expect(&self, writes: &[Write]) -> Result<(), Error> {
        let mut tails: BTreeMap<RunKey, EventNumber> = BTreeMap::new();
        let mut claims: BTreeMap<(&Namespace, &WorkflowId), RunKey> = BTreeMap::new();
        for write in writes {
            match write {
                Write::Append { run, chunk } => {
                    let next = tails
                        .get(run)
                        .copied()
                        .unwrap_or_else(|| self.next_event(*run));
                    if chunk.first != next || chunk.count == 0 {
                        let message = format!(
                            "run {run} is at event {next}, not {} (of {})",
                            chunk.first, chunk.count
                        );
                        return Err(Error::Conflict(message));
                    }
                    tails.insert(*run, chunk.end());
                }
                Write::Claim {
                    namespace,
                    workflow_id,
                    run,
                    replaces,
                } => {
                    let known = claims.get(&(namespace, workflow_id)).copied();
                    let current = known.or_else(|| self.current_run(namespace, workflow_id));
                    if current != *replaces {
                        return Err(Error::Conflict(format!(
                            "the current run is {current:?}, not {replaces:?}"
                        )));
                    }
                    claims.insert((namespace, workflow_id), *run);
                }
                Write::PutExecution(_)
                | Write::PutActivity(_)
                | Write::DeleteActivity(..)
                | Write::PutUpdate(_)
                | Write::DeleteUpdate(..)
                | Write::PutTimer(_)
                | Write::DeleteTimer(_)
                | Write::PutTask(_)
                | Write::DeleteTask(_)
                | Write::PutReady(_)
                | Write::DeleteReady(_)
                | Write::PutLetter(_)
                | Write::DeleteLetter(_)
                | Write::PutComponent { .. }
                | Write::PutRoute { .. } => {}
            }
        }
        Ok(())
    }

    fn write(&mut self, write: Write) {
        match write {
            Write::Append { run, chunk } => drop(self.history.insert((run, chunk.first), chunk)),
            Write::Claim {
                namespace,
                workflow_id,
                run,
                replaces: _,
            } => {
                self.current.insert((namespace, workflow_id), run);
            }
            Write::PutExecution(record) => drop(self.executions.insert(record.run, *record)),
            Write::PutActivity(task) => {
                self.activities.insert((task.run, task.seq), *task);
            }
            Write::DeleteActivity(run, seq) => drop(self.activities.remove(&(run, seq))),
            Write::PutUpdate(update) => {
                self.updates.insert((update.run, update.number), *update);
            }
            Write::DeleteUpdate(run, number) => drop(self.updates.remove(&(run, number))),
            Write::PutTimer(timer) => drop(self.timers.insert(timer)),
            Write::DeleteTimer(timer) => drop(self.timers.remove(&timer)),
            Write::PutTask(task) => drop(self.tasks.insert(task)),
            Write::DeleteTask(task) => drop(self.tasks.remove(&task)),
            Write::PutReady(run) => drop(self.ready.insert(run)),
            Write::DeleteReady(run) => drop(self.ready.remove(&run)),
            Write::PutLetter(letter) => drop(self.letters.insert(letter)),
            Write::DeleteLetter(letter) => drop(self.letters.remove(&letter)),
            Write::PutComponent { record, bytes } => {
                self.components.insert(record.digest, (*record, bytes));
            }
            Write::PutRoute {
                namespace,
                workflow_type,
                component,
            } => {
                self.routes.insert((namespace, workflow_type), component);
            }
        }
    }

    fn next_event(&self, run: RunKey) -> EventNumber {
        let all = (run, EventNumber(0))..=(run, EventNumber(u64::MAX));
        self.history
            .range(all)
            .next_back()
            .map_or(EventNumber::FIRST, |(_, chunk)| chunk.end())
    }

    pub(crate) fn last_run(&self) -> RunKey {
        let by_summary = self
            .executions
            .last_key_value()
            .map_or(RunKey(0), |(run, _)| *run);
        let by_history = self
            .history
            .last_key_value()
            .map_or(RunKey(0), |((run, _), _)| *run);
        by_summary.max(by_history)
    }

    pub(crate) fn execution(&self, run: RunKey) -> Option<ExecutionRecord> {
        self.executions.get(&run).cloned()
    }

    pub(crate) fn current_run(&self, namespace: &Namespace, id: &WorkflowId) -> Option<RunKey> {
        self.current.get(&(namespace.clone(), id.clone())).copied()
    }

    pub(crate) fn history(&self, run: RunKey, from: EventNumber, bytes_max: usize) -> Vec<Chunk> {
        let all = (run, EventNumber(0))..=(run, EventNumber(u64::MAX));
        let mut bytes = 0_usize;
        let mut chunks: Vec<Chunk> = Vec::new();
        for chunk in self
            .history
            .range(all)
            .map(|(_, c)| c)
            .filter(|c| c.end() > from)
        {
            bytes = bytes.saturating_add(chunk.bytes.len());
            if bytes > bytes_max && !chunks.is_empty() {
                break;
            }
            chunks.push(chunk.clone());
        }
        chunks
    }

    pub(crate) fn activities(&self, run: RunKey) -> Vec<ActivityTask> {
        let all = (run, Seq(0))..=(run, Seq(u32::MAX));
        self.activities
            .range(all)
            .map(|(_, task)| task.clone())
            .collect()
    }

    pub(crate) fn updates(&self, run: RunKey) -> Vec<AdmittedUpdate> {
        self.updates
            .range((run, 0)..=(run, u32::MAX))
            .map(|(_, update)| update.clone())
            .collect()
    }

    /// The number of the run's last event; 0 when it has none.
    pub(crate) fn last_event(&self, run: RunKey) -> EventNumber {
        EventNumber(self.next_event(run).0 - 1)
    }

    pub(crate) fn timers(
        &self,
        after: Option<TimerKey>,
        until: Timestamp,
        limit: usize,
    ) -> Vec<TimerKey> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let timers = self.timers.range((from, Bound::Unbounded));
        timers
            .take_while(|timer| timer.due <= until)
            .take(limit)
            .copied()
            .collect()
    }

    pub(crate) fn ready(&self, after: Option<RunKey>, limit: usize) -> Vec<RunKey> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.ready
            .range((from, Bound::Unbounded))
            .take(limit)
            .copied()
            .collect()
    }

    pub(crate) fn letters(&self, after: Option<LetterKey>, limit: usize) -> Vec<LetterKey> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.letters
            .range((from, Bound::Unbounded))
            .take(limit)
            .copied()
            .collect()
    }

    pub(crate) fn tasks(&self, after: Option<&TaskKey>, limit: usize) -> Vec<TaskKey> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.tasks
            .range::<TaskKey, _>((from, Bound::Unbounded))
            .take(limit)
            .cloned()
            .collect()
    }

    pub(crate) fn list(&self, query: &ListQuery) -> Vec<ExecutionRecord> {
        let end = query.before.map_or(Bound::Unbounded, Bound::Excluded);
        let newest_first = self.executions.range((Bound::Unbounded, end)).rev();
        newest_first
            .map(|(_, record)| record)
            .filter(|record| record.namespace == query.namespace)
            .filter(|record| query.status.is_none_or(|status| record.status == status))
            .filter(|r| {
                query
                    .workflow_type
                    .as_ref()
                    .is_none_or(|t| r.workflow_type == *t)
            })
            .filter(|r| {
                query
                    .workflow_id
                    .as_ref()
                    .is_none_or(|id| r.workflow_id == *id)
            })
            .filter(|record| !query.blocked || record.blocked.is_some())
            .take(query.limit)
            .cloned()
            .collect()
    }

    pub(crate) fn components(&self) -> Vec<ComponentRecord> {
        self.components
            .values()
            .map(|(record, _)| record.clone())
            .collect()
    }

    pub(crate) fn component_bytes(&self, component: ComponentDigest) -> Option<Vec<u8>> {
        self.components
            .get(&component)
            .map(|(_, bytes)| bytes.clone())
    }

    pub(crate) fn route(
        &self,
        namespace: &Namespace,
        workflow_type: &WorkflowType,
    ) -> Option<ComponentDigest> {
        self.routes
            .get(&(namespace.clone(), workflow_type.clone()))
            .copied()
    }
}
