//! A store in memory, with faults.
//!
//! For a simulator the store is *manual*: submitted batches wait in a queue until the simulator
//! calls [`MemStore::step`] or [`MemStore::flush`], and [`MemStore::crash`] loses those that wait.
//! `done` is called by the thread that completes the batch, while no lock is held, so it may call
//! the store again.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use steadfast_model::codec::Chunk;
use steadfast_model::{
    ActivityTask, AdmittedUpdate, ComponentDigest, ComponentRecord, EventNumber, ExecutionRecord,
    LetterKey, Namespace, RunKey, Timestamp, WorkflowId, WorkflowType,
};

use crate::Store;
use crate::fake::FaultPlan;
use crate::fake::faults::{Fault, Faults};
use crate::fake::state::State;
use crate::store::{Batch, Done, Error, FencingToken, ListQuery, TaskKey, TimerKey};

struct Waiting {
    batch: Batch,
    done: Done,
    fault: Fault,
    stall: u32,
}

struct Inner {
    state: State,
    queue: VecDeque<Waiting>,
    is_manual: bool,
    faults: Faults,
    poison: Option<String>,
}

/// A store in memory.
pub struct MemStore {
    inner: Mutex<Inner>,
}

impl Default for MemStore {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for MemStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let inner = self.lock();
        f.debug_struct("MemStore")
            .field("queued", &inner.queue.len())
            .field("poison", &inner.poison)
            .finish_non_exhaustive()
    }
}

impl MemStore {
    /// An empty store without faults that completes each batch as it is submitted.
    #[must_use]
    pub fn new() -> Self {
        Self::with_state(State::default(), false)
    }

    /// An empty store that completes batches only in [`Self::step`] and [`Self::flush`].
    ///
    /// [`Store::commit`] would wait forever for the thread that it blocks: do not call it on a
    /// manual store.
    #[must_use]
    pub fn manual() -> Self {
        Self::with_state(State::default(), true)
    }

    /// Sets what goes wrong from now on; the default plan ends all faults except a poisoning.
    pub fn set_faults(&self, plan: FaultPlan) {
        self.lock().faults = Faults::new(plan);
    }

    /// Lets one step pass for the oldest waiting batch: ends one step of its stall, or completes
    /// it. False when nothing waits.
    pub fn step(&self) -> bool {
        let mut inner = self.lock();
        if let Some(first) = inner.queue.front_mut()
            && first.stall > 0
        {
            first.stall -= 1;
            return true;
        }
        let Some(waiting) = inner.queue.pop_front() else {
            return false;
        };
        let result = complete(&mut inner, waiting.batch, waiting.fault);
        drop(inner);
        (waiting.done)(result);
        true
    }

    /// Completes up to `count` of the oldest waiting batches, stalled or not, and returns how
    /// many there were. All of them are durable before the first `done` is called, as after one
    /// flush.
    pub fn flush(&self, count: usize) -> usize {
        let mut inner = self.lock();
        let mut answers = Vec::new();
        while answers.len() < count
            && let Some(waiting) = inner.queue.pop_front()
        {
            let result = complete(&mut inner, waiting.batch, waiting.fault);
            answers.push((waiting.done, result));
        }
        drop(inner);
        let completed = answers.len();
        for (done, result) in answers {
            done(result);
        }
        completed
    }

    /// Batches that wait.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.lock().queue.len()
    }

    /// True once a flush has failed.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.lock().poison.is_some()
    }

    /// The store as a new process finds it: what is durable, nothing that waits, no poison and no
    /// faults. The old store is poisoned for whoever still holds it, and the batches that waited
    /// are never answered, because the process that asked is gone.
    #[must_use]
    pub fn crash(&self) -> Self {
        let mut inner = self.lock();
        inner.poison = Some("the process crashed".to_owned());
        let lost = std::mem::take(&mut inner.queue);
        let state = inner.state.clone();
        let is_manual = inner.is_manual;
        drop(inner);
        drop(lost);
        Self::with_state(state, is_manual)
    }

    fn with_state(state: State, is_manual: bool) -> Self {
        let faults = Faults::new(FaultPlan::default());
        let queue = VecDeque::new();
        Self {
            inner: Mutex::new(Inner {
                state,
                queue,
                is_manual,
                faults,
                poison: None,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, read: impl FnOnce(&State) -> T) -> Result<T, Error> {
        let mut inner = self.lock();
        inner.faults.next_read()?;
        Ok(read(&inner.state))
    }
}

fn complete(inner: &mut Inner, batch: Batch, fault: Fault) -> Result<(), Error> {
    if let Some(reason) = &inner.poison {
        return Err(Error::Poisoned(reason.clone()));
    }
    match fault {
        Fault::None => inner.state.apply(batch),
        Fault::Unavailable => Err(Error::Unavailable(
            "injected: nothing was written".to_owned(),
        )),
        Fault::LostAck => {
            inner.state.apply(batch)?;
            Err(Error::Unavailable(
                "injected: the acknowledgement was lost".to_owned(),
            ))
        }
        Fault::Poison { written } => {
            if written {
                inner.state.apply(batch)?;
            }
            inner.poison = Some("injected: a flush failed".to_owned());
            Err(Error::Unavailable("injected: the flush failed".to_owned()))
        }
    }
}

impl Drop for MemStore {
    /// Completes what waits, as closing a store does.
    fn drop(&mut self) {
        self.flush(usize::MAX);
    }
}

impl Store for MemStore {
    /// Takes ownership at once, ahead of the batches that wait: those of an older owner are then
    /// fenced off when their turn comes.
    fn acquire(&self) -> Result<FencingToken, Error> {
        let mut inner = self.lock();
        if let Some(reason) = &inner.poison {
            return Err(Error::Poisoned(reason.clone()));
        }
        inner.state.fence = FencingToken(inner.state.fence.0 + 1);
        Ok(inner.state.fence)
    }

    fn submit(&self, batch: Batch, done: Done) {
        let mut inner = self.lock();
        let (fault, stall) = inner.faults.next_write();
        if inner.is_manual {
            inner.queue.push_back(Waiting {
                batch,
                done,
                fault,
                stall,
            });
            return;
        }
        let result = complete(&mut inner, batch, fault);
        drop(inner);
        done(result);
    }

    fn last_run(&self) -> Result<RunKey, Error> {
        self.read(State::last_run)
    }

    fn execution(&self, run: RunKey) -> Result<Option<ExecutionRecord>, Error> {
        self.read(|state| state.execution(run))
    }

    fn current_run(
        &self,
        namespace: &Namespace,
        workflow_id: &WorkflowId,
    ) -> Result<Option<RunKey>, Error> {
        self.read(|state| state.current_run(namespace, workflow_id))
    }

    fn history(
        &self,
        run: RunKey,
        from: EventNumber,
        bytes_max: usize,
    ) -> Result<Vec<Chunk>, Error> {
        self.read(|state| state.history(run, from, bytes_max))
    }

    fn activities(&self, run: RunKey) -> Result<Vec<ActivityTask>, Error> {
        self.read(|state| state.activities(run))
    }

    fn updates(&self, run: RunKey) -> Result<Vec<AdmittedUpdate>, Error> {
        self.read(|state| state.updates(run))
    }

    fn last_event(&self, run: RunKey) -> Result<EventNumber, Error> {
        self.read(|state| state.last_event(run))
    }

    fn timers(
        &self,
        after: Option<TimerKey>,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<TimerKey>, Error> {
        self.read(|state| state.timers(after, until, limit))
    }

    fn ready(&self, after: Option<RunKey>, limit: usize) -> Result<Vec<RunKey>, Error> {
        self.read(|state| state.ready(after, limit))
    }

    fn letters(&self, after: Option<LetterKey>, limit: usize) -> Result<Vec<LetterKey>, Error> {
        self.read(|state| state.letters(after, limit))
    }

    fn tasks(&self, after: Option<&TaskKey>, limit: usize) -> Result<Vec<TaskKey>, Error> {
        self.read(|state| state.tasks(after, limit))
    }

    fn list(&self, query: &ListQuery) -> Result<Vec<ExecutionRecord>, Error> {
        self.read(|state| state.list(query))
    }

    fn components(&self) -> Result<Vec<ComponentRecord>, Error> {
        self.read(State::components)
    }

    fn component_bytes(&self, component: ComponentDigest) -> Result<Option<Vec<u8>>, Error> {
        self.read(|state| state.component_bytes(component))
    }

    fn route(
        &self,
        namespace: &Namespace,
        workflow_type: &WorkflowType,
    ) -> Result<Option<ComponentDigest>, Error> {
        self.read(|state| state.route(namespace, workflow_type))
    }

    fn disk_bytes(&self) -> Result<u64, Error> {
        self.read(|_| 0)
    }
}
