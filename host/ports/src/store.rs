//! Durable state: one write, a few reads.
//!
//! A [`Batch`] is atomic. [`Store::submit`] queues it; batches become durable in the order of
//! submission, many of them with one flush. A batch that fails leaves nothing behind. After a
//! failed flush the store is *poisoned*: every later write fails with [`Error::Poisoned`], because
//! what is on disk is unknown until it has been read again by a new process.

use steadfast_model::codec::Chunk;
use steadfast_model::{
    ActivityTask, AdmittedUpdate, ComponentDigest, ComponentRecord, EventNumber, ExecutionRecord,
    LetterKey, Namespace, RunKey, Seq, Status, TaskQueue, Timestamp, WorkflowId, WorkflowType,
};

/// Proof of ownership. A store counts them up; only the newest may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct FencingToken(pub u64);

/// What a due time is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimerKind {
    /// A timer of the workflow: fires.
    Workflow,
    /// An activity's nearest deadline or end of backoff: looked at again.
    Activity,
    /// The next try of a failed activation; its `seq` is 0.
    Activation,
    /// The first activation of a run that was to begin later; its `seq` is 0.
    Start,
    /// The limit of a run or of its chain; its `seq` is 0.
    Run,
}

impl TimerKind {
    /// The stored number.
    #[must_use]
    pub fn to_byte(self) -> u8 {
        match self {
            Self::Workflow => 1,
            Self::Activity => 2,
            Self::Activation => 3,
            Self::Start => 4,
            Self::Run => 5,
        }
    }

    /// The kind of a stored number.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Workflow),
            2 => Some(Self::Activity),
            3 => Some(Self::Activation),
            4 => Some(Self::Start),
            5 => Some(Self::Run),
            _ => None,
        }
    }
}

/// One due time. Ordered by time first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerKey {
    /// Not before this.
    pub due: Timestamp,
    /// Whose.
    pub run: RunKey,
    /// What for.
    pub kind: TimerKind,
    /// Which operation of the run.
    pub seq: Seq,
}

/// One task that waits for a worker, in the order of its queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskKey {
    /// The queue.
    pub queue: TaskQueue,
    /// When the task became ready: the order within the queue.
    pub ready: Timestamp,
    /// Whose.
    pub run: RunKey,
    /// Which activity.
    pub seq: Seq,
}

/// One change. Within a batch, changes apply in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Appends events. The batch conflicts unless `chunk.first` is the number after the run's last
    /// event (1 for a run without any).
    Append {
        /// The run.
        run: RunKey,
        /// The events.
        chunk: Chunk,
    },
    /// Makes a new run the current one of its workflow id. The batch conflicts unless the current
    /// run is `replaces` (`None`: there is no run of this id yet).
    Claim {
        /// The tenant.
        namespace: Namespace,
        /// The id.
        workflow_id: WorkflowId,
        /// The new run.
        run: RunKey,
        /// The run before it.
        replaces: Option<RunKey>,
    },
    /// Writes a run's summary.
    PutExecution(Box<ExecutionRecord>),
    /// Writes a pending activity.
    PutActivity(Box<ActivityTask>),
    /// Removes a pending activity; removing what is not there is allowed, here and below.
    DeleteActivity(RunKey, Seq),
    /// Writes an admitted update.
    PutUpdate(Box<AdmittedUpdate>),
    /// Removes an admitted update, by its number.
    DeleteUpdate(RunKey, u32),
    /// Adds a due time.
    PutTimer(TimerKey),
    /// Removes a due time.
    DeleteTimer(TimerKey),
    /// Adds a task to its queue.
    PutTask(TaskKey),
    /// Removes a task from its queue.
    DeleteTask(TaskKey),
    /// Marks a run as owed an activation: it has events that its code may not have answered.
    PutReady(RunKey),
    /// Clears that mark.
    DeleteReady(RunKey),
    /// Adds a letter to the outbox: a run owes another one a message.
    PutLetter(LetterKey),
    /// Removes a letter from the outbox.
    DeleteLetter(LetterKey),
    /// Writes a component with its bytes.
    PutComponent {
        /// What is known about it.
        record: Box<ComponentRecord>,
        /// The component.
        bytes: Vec<u8>,
    },
    /// Makes a component the current version of a workflow type.
    PutRoute {
        /// The tenant.
        namespace: Namespace,
        /// The type.
        workflow_type: WorkflowType,
        /// The component.
        component: ComponentDigest,
    },
}

/// Changes that become durable together or not at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The writer's proof of ownership.
    pub fence: FencingToken,
    /// The changes.
    pub writes: Vec<Write>,
}

/// Why the store did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An expectation of the batch does not hold. Nothing was written.
    #[error("conflict: {0}")]
    Conflict(String),
    /// Somebody else owns the store now. Nothing was written.
    #[error("fenced: the token {held:?} is older than {current:?}")]
    Fenced {
        /// The writer's token.
        held: FencingToken,
        /// The newest token.
        current: FencingToken,
    },
    /// A stored value cannot be read.
    #[error("corrupt: {0}")]
    Corrupt(String),
    /// The data was written by a newer build.
    #[error("the data has format {found}; this build reads up to {supported}")]
    Newer {
        /// The data's format.
        found: u64,
        /// The newest format this build reads.
        supported: u64,
    },
    /// The disk or database failed. Whether a batch was written is unknown unless stated.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// A flush failed, this one or an earlier one: restart and recover. Whether a batch of the
    /// failed flush was written is unknown.
    #[error("the store is poisoned by a failed flush: {0}")]
    Poisoned(String),
    /// The store is shut down.
    #[error("the store is closed")]
    Closed,
}

/// Called once, from the store's own thread, when a batch is durable or has failed.
pub type Done = Box<dyn FnOnce(Result<(), Error>) + Send>;

/// Which runs to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery {
    /// The tenant.
    pub namespace: Namespace,
    /// Only runs of this status.
    pub status: Option<Status>,
    /// Only runs of this type.
    pub workflow_type: Option<WorkflowType>,
    /// Only runs of this workflow id.
    pub workflow_id: Option<WorkflowId>,
    /// Only blocked runs.
    pub blocked: bool,
    /// Only runs before this one: the last of the page before.
    pub before: Option<RunKey>,
    /// Most rows to return.
    pub limit: usize,
}

/// Durable state.
///
/// Reads see every batch whose `done` has been called with `Ok`, and never a part of a batch.
pub trait Store: Send + Sync {
    /// Takes ownership: returns a token newer than all before it and fences the others off.
    ///
    /// # Errors
    /// Any [`Error`] of a write.
    fn acquire(&self) -> Result<FencingToken, Error>;

    /// Queues a batch. `done` learns its fate; when it is told `Ok` the batch is durable.
    fn submit(&self, batch: Batch, done: Done);

    /// Writes a batch and waits until it is durable.
    ///
    /// # Errors
    /// Any [`Error`].
    fn commit(&self, batch: Batch) -> Result<(), Error> {
        let (sender, receiver) = std::sync::mpsc::channel();
        self.submit(batch, Box::new(move |result| drop(sender.send(result))));
        receiver.recv().unwrap_or(Err(Error::Closed))
    }

    /// The largest run key in use; `RunKey(0)` when there is none.
    ///
    /// # Errors
    /// Any [`Error`] of a read, here and below.
    fn last_run(&self) -> Result<RunKey, Error>;

    /// A run's summary.
    #[allow(missing_docs, clippy::missing_errors_doc, reason = "stated once above")]
    fn execution(&self, run: RunKey) -> Result<Option<ExecutionRecord>, Error>;

    /// The current run of a workflow id: the open one, or the last that was.
    #[allow(missing_docs, clippy::missing_errors_doc, reason = "stated once above")]
    fn current_run(
        &self,
        namespace: &Namespace,
        workflow_id: &WorkflowId,
    ) -> Result<Option<RunKey>, Error>;

    /// Chunks of a history in order, from the one that holds event `from`, until `bytes_max` is
    /// reached (at least one chunk, if there is any).
    #[allow(clippy::missing_errors_doc, reason = "stated once above")]
    fn history(
        &self,
        run: RunKey,
        from: EventNumber,
        bytes_max: usize,
    ) -> Result<Vec<Chunk>, Error>;

    /// The number of the last event of a run's history; 0 when it has none.
    #[allow(clippy::missing_errors_doc, reason = "stated once above")]
    fn last_event(&self, run: RunKey) -> Result<EventNumber, Error>;

    /// Pending activities of a run, by number.
    #[allow(clippy::missing_errors_doc, reason = "stated once above")]
    fn activities(&self, run: RunKey) -> Result<Vec<ActivityTask>, Error>;

    /// Admitted updates of a run, by number.
    #[allow(clippy::missing_errors_doc, reason = "stated once above")]
    fn updates(&self, run: RunKey) -> Result<Vec<AdmittedUpdate>, Error>;

    /// Due times after `after` (exclusive; `None`: from the first) up to `until` (inclusive), in
    /// order, at most `limit`.
    #[allow(clippy::missing_errors_doc, reason = "stated once above")]
    fn timers(
        &self,
        after: Option<TimerKey>,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<TimerKey>, Error>;

    /// Runs marked ready after `after` (exclusive), in order, at most `limit`.
    #[allow(clippy::missing_errors_doc, reason = "stated once above")]
    fn ready(&self, after: Option<RunKey>, limit: usize) -> Result<Vec<RunKey>, Error>;

    /// Letters of the outbox after `after` (exclusive), by sender, number and kind, at most `limit`.
    #[allow(clippy::missing_errors_doc, reason = "stated once above")]
    fn letters(&self, after: Option<LetterKey>, limit: usize) -> Result<Vec<LetterKey>, Error>;

    /// Tasks waiting for a worker after `after` (exclusive), in order, at most `limit`.
    #[allow(clippy::missing_errors_doc, reason = "stated once above")]
    fn tasks(&self, after: Option<&TaskKey>, limit: usize) -> Result<Vec<TaskKey>, Error>;

    /// Runs, newest first.
    #[allow(clippy::missing_errors_doc, reason = "stated once above")]
    fn list(&self, query: &ListQuery) -> Result<Vec<ExecutionRecord>, Error>;

    /// All components, in the order of their digests.
    #[allow(clippy::missing_errors_doc, reason = "stated once above")]
    fn components(&self) -> Result<Vec<ComponentRecord>, Error>;

    /// A component's bytes.
    #[allow(clippy::missing_errors_doc, reason = "stated once above")]
    fn component_bytes(&self, component: ComponentDigest) -> Result<Option<Vec<u8>>, Error>;

    /// The current version of a workflow type.
    #[allow(clippy::missing_errors_doc, reason = "stated once above")]
    fn route(
        &self,
        namespace: &Namespace,
        workflow_type: &WorkflowType,
    ) -> Result<Option<ComponentDigest>, Error>;

    /// Bytes the store takes on disk; 0 when it has no disk.
    #[allow(clippy::missing_errors_doc, reason = "stated once above")]
    fn disk_bytes(&self) -> Result<u64, Error>;
}
