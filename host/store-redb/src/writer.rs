//! The one writer thread: drains its queue into one transaction and one flush, then answers
//! everyone. Throughput grows with load while latency stays about one flush.
//!
//! After a failed commit nothing is written any more: what the disk holds is unknown until the
//! file has been opened again, and a retried flush may claim success for pages that the kernel
//! has already dropped.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use redb::Durability;
use steadfast_ports::store::{Done, Error, FencingToken};

use crate::fault::{fault, guarded};
use crate::op::Encoded;
use crate::open::Open;
use crate::queue::{Acquired, Queue, Request};
use crate::reader::Snapshots;
use crate::tails::Tails;
use crate::transaction::Transaction;

/// Most changes of one transaction, so that the first caller of a long queue is answered soon. A
/// larger batch has a transaction of its own.
const GROUP_OPS_MAX: usize = 16 * 1024;
/// Most bytes of one transaction, for the same reason.
const GROUP_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Decides which commits record the free pages as well, so that a crash after them needs no look
/// at the whole file.
pub(crate) struct QuickRepair {
    path: Option<PathBuf>,
    bytes_min: u64,
}

impl QuickRepair {
    /// For a file, or for a backend whose size is not known: that one counts as empty.
    pub(crate) fn new(path: Option<PathBuf>, bytes_min: u64) -> Self {
        Self { path, bytes_min }
    }

    fn is_due(&self) -> bool {
        let bytes = self
            .path
            .as_ref()
            .and_then(|path| std::fs::metadata(path).ok());
        bytes.map_or(0, |metadata| metadata.len()) >= self.bytes_min
    }
}

/// A caller that waits, with what it will be told if the transaction commits.
enum Answer {
    Done(Done, Result<(), Error>),
    Acquired(Acquired, FencingToken),
}

impl Answer {
    /// Calls back. A callback that panics is the caller's bug and must not stop the others.
    fn give(self, outcome: &Result<(), Error>) {
        let call = move || match self {
            Self::Done(done, result) => done(outcome.clone().and(result)),
            Self::Acquired(done, token) => done(outcome.clone().map(|()| token)),
        };
        if catch_unwind(AssertUnwindSafe(call)).is_err() {
            tracing::error!("a callback of a batch panicked");
        }
    }
}

/// The writer's state; lives on its thread.
pub(crate) struct Writer {
    database: Arc<Open>,
    snapshots: Arc<Snapshots>,
    queue: Arc<Queue>,
    quick_repair: QuickRepair,
    tails: Tails,
    fence: FencingToken,
    poison: Option<String>,
}

impl Writer {
    /// A writer whose newest token is `fence`.
    pub(crate) fn new(
        database: Arc<Open>,
        snapshots: Arc<Snapshots>,
        queue: Arc<Queue>,
        fence: FencingToken,
        quick_repair: QuickRepair,
    ) -> Self {
        Self {
            database,
            snapshots,
            queue,
            quick_repair,
            tails: Tails::default(),
            fence,
            poison: None,
        }
    }

    /// Works until the queue is closed and empty.
    pub(crate) fn run(mut self) {
        while let Some(mut requests) = self.queue.take() {
            while !requests.is_empty() {
                self.write_group(&mut requests);
            }
        }
    }

    /// Writes as many requests as fit into one transaction and answers them.
    fn write_group(&mut self, requests: &mut VecDeque<Request>) {
        let mut answers = Vec::new();
        let mut outcome = match &self.poison {
            Some(reason) => {
                answers.extend(requests.drain(..).map(unwritten));
                Err(Error::Poisoned(reason.clone()))
            }
            None => guarded(|| self.transact(requests, &mut answers)),
        };
        if let (Err(error), None) = (&outcome, &self.poison) {
            tracing::error!(%error, "the store is poisoned: no more writes until it is reopened");
            let reason = error.to_string();
            // Those whose batch it was learn at once that nothing more will be written, so that
            // the owner of the store does not wait for the next write to find out.
            outcome = Err(Error::Poisoned(reason.clone()));
            self.poison = Some(reason);
        }
        for answer in answers {
            answer.give(&outcome);
        }
    }

    fn transact(
        &mut self,
        requests: &mut VecDeque<Request>,
        answers: &mut Vec<Answer>,
    ) -> Result<(), Error> {
        let database = Arc::clone(&self.database);
        let mut redb = database.database()?.begin_write().map_err(fault)?;
        // The file is an append-only promise to the callers: every commit is flushed.
        redb.set_durability(Durability::Immediate).map_err(fault)?;
        redb.set_quick_repair(self.quick_repair.is_due());
        let mut transaction = Transaction::new(&redb);
        let (mut ops, mut bytes) = (0, 0);
        while ops < GROUP_OPS_MAX && bytes < GROUP_BYTES_MAX {
            let Some(request) = requests.pop_front() else {
                break;
            };
            match request {
                Request::Commit(batch, done) => {
                    ops += batch.ops.len();
                    bytes += batch.bytes;
                    // The caller is owed an answer, whatever becomes of the transaction.
                    answers.push(Answer::Done(done, Ok(())));
                    let added = self.add(&mut transaction, batch)?;
                    if let Some(Answer::Done(_, result)) = answers.last_mut() {
                        *result = added;
                    }
                }
                Request::Refuse(done) => answers.push(Answer::Done(done, Err(queue_full()))),
                Request::Acquire(done) => {
                    self.fence = FencingToken(self.fence.0.saturating_add(1));
                    transaction.group.fence = Some(self.fence.0);
                    answers.push(Answer::Acquired(done, self.fence));
                }
            }
        }
        if transaction.group.is_empty() {
            drop(transaction);
            return redb.abort().map_err(fault);
        }
        transaction.write()?;
        redb.commit().map_err(fault)?;
        self.tails.age();
        self.snapshots.advance();
        Ok(())
    }

    fn add(
        &mut self,
        transaction: &mut Transaction<'_>,
        batch: Encoded,
    ) -> Result<Result<(), Error>, Error> {
        if batch.fence < self.fence {
            return Ok(Err(Error::Fenced {
                held: batch.fence,
                current: self.fence,
            }));
        }
        if batch.fence > self.fence {
            let message = format!("the token {:?} was never given out", batch.fence);
            return Ok(Err(Error::Conflict(message)));
        }
        transaction.add(batch, &mut self.tails)
    }
}

fn unwritten(request: Request) -> Answer {
    match request {
        Request::Commit(_, done) | Request::Refuse(done) => Answer::Done(done, Ok(())),
        Request::Acquire(done) => Answer::Acquired(done, FencingToken(0)),
    }
}

fn queue_full() -> Error {
    Error::Unavailable("too much waits to be written; nothing of this batch was".to_owned())
}
