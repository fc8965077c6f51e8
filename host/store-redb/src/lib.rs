//! The embedded store: redb behind one writer thread with group commit.
//!
//! - one thread writes: it drains its queue into one transaction and one flush, then answers
//!   every caller; a batch whose expectations fail is refused alone;
//! - readers use snapshots and never wait for the writer;
//! - after a failed commit nothing is written any more, until the file is opened again;
//! - any bytes in the file give values or errors, never a panic.
//!
//! The bytes are documented in `docs/storage-format.md`. Read the modules `writer` and
//! `transaction` next.

mod fault;
mod group;
mod key;
mod listing;
mod op;
mod open;
mod queue;
mod reader;
mod schema;
mod tails;
mod transaction;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use redb::StorageBackend;
use steadfast_model::codec::Chunk;
use steadfast_model::{
    ActivityTask, AdmittedUpdate, ComponentDigest, ComponentRecord, EventNumber, ExecutionRecord,
    LetterKey, Namespace, RunKey, Timestamp, WorkflowId, WorkflowType,
};
use steadfast_ports::Store;
use steadfast_ports::store::{Batch, Done, Error, FencingToken, ListQuery, TaskKey, TimerKey};

use crate::open::Open;
use crate::queue::{Queue, Request};
use crate::reader::{Snapshot, Snapshots};

/// How a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Memory for cached pages, in bytes. Default: 32 MiB.
    pub cache_bytes: usize,
    /// Most bytes of batches that wait to be written; a batch that does not fit is refused with
    /// [`Error::Unavailable`], unless nothing else waits. Default: 256 MiB.
    pub queue_bytes_max: usize,
    /// Size of the file from which on each commit also records which pages are free. Opening
    /// after a crash then does not read the whole file, at the price of a second flush per
    /// commit; a smaller file is read in about a second. 0: always. Default: 256 MiB.
    pub quick_repair_bytes_min: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: 32 * 1024 * 1024,
            queue_bytes_max: 256 * 1024 * 1024,
            quick_repair_bytes_min: 256 * 1024 * 1024,
        }
    }
}

/// A store in one redb file.
///
/// Dropping it lets the batches that wait be written and answered, then closes the file.
pub struct RedbStore {
    /// `None` when the store is not a file.
    path: Option<PathBuf>,
    queue: Arc<Queue>,
    snapshots: Arc<Snapshots>,
    writer: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for RedbStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedbStore")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl RedbStore {
    /// Opens the store in the file `path`, or makes a new one if there is no such file. The
    /// folder must exist. The file belongs to one process at a time.
    ///
    /// # Errors
    /// [`Error::Newer`] when a newer build has written the file; [`Error::Corrupt`] when it is
    /// damaged or something else; [`Error::Unavailable`] when it cannot be opened, for example
    /// because another process has it open.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        let path = path.as_ref();
        Self::start(Some(path.to_owned()), open::file(path, &options)?, &options)
    }

    /// Opens the store in a backend of redb, or makes a new one if the backend is empty.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn with_backend(backend: impl StorageBackend, options: Options) -> Result<Self, Error> {
        Self::start(None, open::backend(backend, &options)?, &options)
    }

    fn start(path: Option<PathBuf>, database: Open, options: &Options) -> Result<Self, Error> {
        let fence = open::fence(&database)?;
        let database = Arc::new(database);
        let queue = Arc::new(Queue::new(options.queue_bytes_max));
        let snapshots = Arc::new(Snapshots::new(Arc::clone(&database)));
        let repair = writer::QuickRepair::new(path.clone(), options.quick_repair_bytes_min);
        let writer = writer::Writer::new(
            database,
            Arc::clone(&snapshots),
            Arc::clone(&queue),
            fence,
            repair,
        );
        let thread = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || writer.run())
            .map_err(|e| Error::Unavailable(format!("no thread for the writer: {e}")))?;
        Ok(Self {
            path,
            queue,
            snapshots,
            writer: Some(thread),
        })
    }

    fn read<T>(&self, read: impl FnOnce(&Snapshot) -> Result<T, Error>) -> Result<T, Error> {
        fault::guarded(|| read(&*self.snapshots.newest()?))
    }
}

impl Drop for RedbStore {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(writer) = self.writer.take() {
            // A callback may hold the last reference to the store: the writer cannot wait for
            // itself, but it does finish its queue.
            if writer.thread().id() != std::thread::current().id() && writer.join().is_err() {
                tracing::error!("the writer thread panicked");
            }
        }
    }
}

impl Store for RedbStore {
    fn acquire(&self) -> Result<FencingToken, Error> {
        let (sender, receiver) = std::sync::mpsc::channel();
        let done = Box::new(move |result| drop(sender.send(result)));
        match self.queue.push(Request::Acquire(done)) {
            Ok(()) => receiver.recv().unwrap_or(Err(Error::Closed)),
            Err(_) => Err(Error::Closed),
        }
    }

    fn submit(&self, batch: Batch, done: Done) {
        let request = Request::Commit(op::encode(batch), done);
        if let Err(Request::Commit(_, done)) = self.queue.push(request) {
            done(Err(Error::Closed));
        }
    }

    fn last_run(&self) -> Result<RunKey, Error> {
        self.read(Snapshot::last_run)
    }

    fn execution(&self, run: RunKey) -> Result<Option<ExecutionRecord>, Error> {
        self.read(|snapshot| snapshot.execution(run))
    }

    fn current_run(
        &self,
        namespace: &Namespace,
        workflow_id: &WorkflowId,
    ) -> Result<Option<RunKey>, Error> {
        self.read(|snapshot| snapshot.current_run(&key::current(namespace, workflow_id)))
    }

    fn history(
        &self,
        run: RunKey,
        from: EventNumber,
        bytes_max: usize,
    ) -> Result<Vec<Chunk>, Error> {
        self.read(|snapshot| snapshot.history(run, from, bytes_max))
    }

    fn activities(&self, run: RunKey) -> Result<Vec<ActivityTask>, Error> {
        self.read(|snapshot| snapshot.activities(run))
    }

    fn updates(&self, run: RunKey) -> Result<Vec<AdmittedUpdate>, Error> {
        self.read(|snapshot| snapshot.updates(run))
    }

    fn last_event(&self, run: RunKey) -> Result<EventNumber, Error> {
        self.read(|snapshot| snapshot.last_event(run))
    }

    fn timers(
        &self,
        after: Option<TimerKey>,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<TimerKey>, Error> {
        self.read(|snapshot| snapshot.timers(after, until, limit))
    }

    fn ready(&self, after: Option<RunKey>, limit: usize) -> Result<Vec<RunKey>, Error> {
        self.read(|snapshot| snapshot.ready(after, limit))
    }

    fn letters(&self, after: Option<LetterKey>, limit: usize) -> Result<Vec<LetterKey>, Error> {
        self.read(|snapshot| snapshot.letters(after, limit))
    }

    fn tasks(&self, after: Option<&TaskKey>, limit: usize) -> Result<Vec<TaskKey>, Error> {
        self.read(|snapshot| snapshot.tasks(after, limit))
    }

    fn list(&self, query: &ListQuery) -> Result<Vec<ExecutionRecord>, Error> {
        self.read(|snapshot| listing::list(snapshot, query))
    }

    fn components(&self) -> Result<Vec<ComponentRecord>, Error> {
        self.read(Snapshot::components)
    }

    fn component_bytes(&self, component: ComponentDigest) -> Result<Option<Vec<u8>>, Error> {
        self.read(|snapshot| snapshot.component_bytes(component))
    }

    fn route(
        &self,
        namespace: &Namespace,
        workflow_type: &WorkflowType,
    ) -> Result<Option<ComponentDigest>, Error> {
        self.read(|snapshot| snapshot.route(&key::route(namespace, workflow_type)))
    }

    fn disk_bytes(&self) -> Result<u64, Error> {
        match &self.path {
            Some(path) => std::fs::metadata(path)
                .map(|metadata| metadata.len())
                .map_err(|e| Error::Unavailable(format!("{}: {e}", path.display()))),
            None => Ok(0),
        }
    }
}
