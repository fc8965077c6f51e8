//! The threads around the shards: it performs their outputs and brings back what comes of them.
//!
//! One thread per shard, a bounded pool for guests and reads (so that a spinning guest delays
//! nobody), and tokio for activities of this process.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use futures_util::FutureExt;
use steadfast_engine::decide::Request;
use steadfast_model::limits::{PAYLOAD_BYTES_MAX, QUERIES_PER_RUN_MAX};
use steadfast_model::{Event, Failure, RunKey, Seq, TaskQueue, Timestamp, UpdateId};
use steadfast_ports::store::{self, TaskKey, TimerKey};
use steadfast_ports::{Clock, Guests, Store};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::activation::{Job, perform};
use crate::asking::query_failed;
use crate::chain::Minter;
use crate::error::Error;
use crate::follow::{UpdateFollower, UpdateFollowers};
use crate::loading::{load, load_timers};
use crate::local::{Activities, ActivityContext};
use crate::message::{Answer, Assignment, CallError, Input, Output, ReplyId};
use crate::post::{Errand, Waiter};
use crate::query::{Copies, Gates, Question, Reply};
use crate::run_log;
use crate::shard::Shard;
use crate::task_queue::TaskQueues;

/// Most inputs that a shard takes in before it performs what they led to.
const INPUTS_PER_ROUND: usize = 256;

/// Longest sleep of an idle shard: a clock may jump.
const IDLE: Duration = Duration::from_secs(1);

/// How far a run has come, for whoever follows it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    pub(crate) last: Reached,
    pub(crate) close: Option<Arc<Event>>,
}

/// The last durable event; 0 before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Reached(pub(crate) u64);

/// Somebody who waits for a run to get on.
pub(crate) struct Follower {
    progress: Option<watch::Receiver<Progress>>,
    shared: Arc<Shared>,
    run: RunKey,
}

impl Follower {
    /// Waits until the run has come so far; `None` when the host stops.
    pub(crate) async fn wait_for(
        &mut self,
        is_there: impl FnMut(&Progress) -> bool,
    ) -> Option<Progress> {
        let progress = self.progress.as_mut()?;
        progress
            .wait_for(is_there)
            .await
            .ok()
            .map(|progress| progress.clone())
    }
}

impl Drop for Follower {
    /// The last follower of a run takes its entry away.
    fn drop(&mut self) {
        self.progress = None;
        let mut followers = lock(&self.shared.followers);
        if followers
            .get(&self.run)
            .is_some_and(|sender| sender.receiver_count() == 0)
        {
            followers.remove(&self.run);
        }
    }
}

/// Work of a pool thread.
pub(crate) enum Task {
    Load {
        run: RunKey,
        shard: usize,
    },
    LoadTimers {
        after: Option<TimerKey>,
        until: Timestamp,
        shard: usize,
    },
    Activate {
        run: RunKey,
        generation: u64,
        job: Box<Job>,
        shard: usize,
    },
    /// Ask a copy of a run.
    Query {
        question: Box<Question>,
        reply: oneshot::Sender<Result<Reply, steadfast_ports::guest::Error>>,
        /// The query's turn and its share of the pool, until the answer is there.
        turn: [OwnedSemaphorePermit; 2],
    },
    /// Carry a letter.
    Carry(Errand),
    /// End the thread that takes this.
    Stop,
}

/// Everything that threads share.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) guests: Arc<dyn Guests>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) shards: Vec<Sender<Input>>,
    pool: Sender<Task>,
    pub(crate) replies: Mutex<BTreeMap<ReplyId, Waiter>>,
    pub(crate) next_reply: AtomicU64,
    pub(crate) minter: Arc<dyn Minter>,
    pub(crate) queues: Mutex<TaskQueues>,
    pub(crate) offered: Mutex<BTreeMap<TaskQueue, Arc<Notify>>>,
    followers: Mutex<BTreeMap<RunKey, watch::Sender<Progress>>>,
    pub(crate) updates: UpdateFollowers,
    copies: Copies,
    gates: Gates,
    /// Queries on pool threads at a time: the others are for runs that make progress.
    query_slots: Arc<Semaphore>,
    activities: Activities,
    running: Mutex<BTreeMap<(RunKey, Seq, u32), CancellationToken>>,
    slots: Arc<Semaphore>,
    guest_threads: usize,
    tokio: tokio::runtime::Handle,
    pub(crate) fatal: watch::Sender<Option<store::Error>>,
    pub(crate) loads_waiting: AtomicU64,
}

/// A lock whose holder panicked still guards consistent data: each critical section is one call.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the driver needs to run.
pub(crate) struct Parts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) guests: Arc<dyn Guests>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) activities: Activities,
    pub(crate) local_activities_max: usize,
    pub(crate) guest_threads: usize,
    pub(crate) minter: Arc<dyn Minter>,
    /// Bytes that copies of runs kept for queries may take.
    pub(crate) copies_bytes: usize,
}

/// Starts the threads. They end when the last sender to them is gone.
pub(crate) fn spawn(parts: Parts, machines: Vec<Shard>) -> std::io::Result<Arc<Shared>> {
    let (pool, tasks) = crossbeam_channel::unbounded();
    let (shards, inputs): (Vec<_>, Vec<_>) = machines
        .iter()
        .map(|_| crossbeam_channel::unbounded())
        .unzip();
    let shared = Arc::new(Shared {
        store: parts.store,
        guests: parts.guests,
        clock: parts.clock,
        shards,
        pool,
        replies: Mutex::default(),
        next_reply: AtomicU64::new(1),
        minter: parts.minter,
        queues: Mutex::default(),
        offered: Mutex::default(),
        followers: Mutex::default(),
        updates: UpdateFollowers::default(),
        copies: Copies::new(parts.copies_bytes),
        gates: Gates::default(),
        query_slots: Arc::new(Semaphore::new((parts.guest_threads / 2).max(1))),
        activities: parts.activities,
        running: Mutex::default(),
        slots: Arc::new(Semaphore::new(parts.local_activities_max)),
        guest_threads: parts.guest_threads,
        tokio: tokio::runtime::Handle::current(),
        fatal: watch::Sender::new(None),
        loads_waiting: AtomicU64::new(0),
    });
    for i in 0..parts.guest_threads {
        let (shared, tasks) = (shared.clone(), tasks.clone());
        thread::Builder::new()
            .name(format!("guest-{i}"))
            .spawn(move || pool_thread(&shared, &tasks))?;
    }
    for (index, (machine, inputs)) in machines.into_iter().zip(inputs).enumerate() {
        let shared = shared.clone();
        thread::Builder::new()
            .name(format!("shard-{index}"))
            .spawn(move || shard_thread(&shared, index, machine, &inputs))?;
    }
    Ok(shared)
}

fn shard_thread(shared: &Arc<Shared>, index: usize, mut shard: Shard, inputs: &Receiver<Input>) {
    loop {
        let now = shared.clock.now();
        // Rounded up: waking a moment early would only make another round.
        let wait = shard
            .next_wake()
            .map_or(IDLE, |at| Duration::from_millis(at.since(now).0));
        let first = match inputs.recv_timeout(wait.min(IDLE)) {
            Ok(Input::Shutdown) | Err(RecvTimeoutError::Disconnected) => return,
            Ok(input) => Some(input),
            Err(RecvTimeoutError::Timeout) => None,
        };
        let now = shared.clock.now();
        let Some(first) = first else {
            let outputs = shard.tick(now);
            perform_all(shared, index, outputs);
            continue;
        };
        let more = inputs.try_iter().take(INPUTS_PER_ROUND);
        for input in std::iter::once(first).chain(more) {
            if matches!(input, Input::Shutdown) {
                return;
            }
            let outputs = shard.handle(input, now);
            perform_all(shared, index, outputs);
        }
        if let Some(error) = shard.fatal() {
            shared
                .fatal
                .send_if_modified(|fatal| fatal.replace(error.clone()).is_none());
        }
        shared
            .loads_waiting
            .store(shard.loads_waiting() as u64, Ordering::Relaxed);
    }
}

fn perform_all(shared: &Arc<Shared>, shard: usize, outputs: Vec<Output>) {
    for output in outputs {
        shared.perform(shard, output);
    }
}

impl Shared {
    /// The shard of a run.
    pub(crate) fn shard_of(&self, run: RunKey) -> &Sender<Input> {
        let index = usize::try_from(run.0 % self.shards.len() as u64).unwrap_or(0);
        #[allow(
            clippy::indexing_slicing,
            reason = "the index is taken modulo the length"
        )]
        &self.shards[index]
    }

    /// Sends an input to a run's shard.
    pub(crate) fn send(&self, run: RunKey, input: Input) {
        // The shard is gone only when the host is shutting down.
        drop(self.shard_of(run).send(input));
    }

    /// Sends an input that is answered, and waits for the answer.
    pub(crate) async fn call(
        &self,
        run: RunKey,
        input: impl FnOnce(ReplyId) -> Input,
    ) -> Result<Answer, CallError> {
        let (sender, receiver) = oneshot::channel();
        let id = ReplyId(self.next_reply.fetch_add(1, Ordering::Relaxed));
        lock(&self.replies).insert(id, Waiter::Caller(sender));
        self.send(run, input(id));
        let closed = |_| CallError::Unavailable("the host is shutting down".to_owned());
        receiver.await.map_err(closed)?
    }

    /// Follows a run from now on, until the follower is dropped.
    pub(crate) fn follow(self: &Arc<Self>, run: RunKey) -> Follower {
        let mut followers = lock(&self.followers);
        let sender = followers
            .entry(run)
            .or_insert_with(|| watch::Sender::new(Progress::default()));
        Follower {
            progress: Some(sender.subscribe()),
            shared: self.clone(),
            run,
        }
    }

    fn perform(self: &Arc<Self>, shard: usize, output: Output) {
        match output {
            Output::Commit { ticket, batch } => {
                let sender = self.shards.get(shard).cloned();
                let done = move |result| {
                    if let Some(sender) = sender {
                        drop(sender.send(Input::Committed { ticket, result }));
                    }
                };
                self.store.submit(batch, Box::new(done));
            }
            Output::Touch { run } => self.send(run, Input::Touch { run }),
            Output::Load { run } => self.give(Task::Load { run, shard }),
            Output::LoadTimers { after, until } => {
                self.give(Task::LoadTimers {
                    after,
                    until,
                    shard,
                });
            }
            Output::Activate {
                run,
                generation,
                job,
            } => {
                self.give(Task::Activate {
                    run,
                    generation,
                    job,
                    shard,
                });
            }
            Output::Send(letter) => self.give(Task::Carry(Errand::new(letter))),
            Output::RunActivity(assignment) => self.run_activity(shard, *assignment),
            Output::StopActivity { run, seq, attempt } => {
                if let Some(token) = lock(&self.running).get(&(run, seq, attempt)) {
                    token.cancel();
                }
            }
            Output::Offer(key) => self.offer(key),
            Output::Withdraw(key) => lock(&self.queues).withdraw(&key),
            Output::Reply(id, result) => {
                let waiter = lock(&self.replies).remove(&id);
                match waiter {
                    // A caller that gave up waiting is no longer there to be told.
                    Some(Waiter::Caller(sender)) => drop(sender.send(result)),
                    Some(Waiter::Courier(errand)) => self.heard(*errand, &result),
                    None => {}
                }
            }
            Output::Advanced { run, last, close } => {
                if let Some(sender) = lock(&self.followers).get(&run) {
                    sender.send_replace(Progress {
                        last: Reached(last.0),
                        close,
                    });
                }
            }
            Output::UpdateAdvanced {
                run,
                update_id,
                progress,
            } => self.updates.advanced(run, &update_id, progress),
            Output::UpdatesUnknown { run } => self.updates.unknown(run),
            Output::Log { run, lines } => run_log::log(run, &lines),
        }
    }

    /// Asks a copy of a run, when its turn comes.
    pub(crate) async fn ask(&self, question: Question) -> Result<Reply, Error> {
        let place = self.gates.enter(question.run).ok_or_else(|| {
            Error::LimitReached(format!(
                "{QUERIES_PER_RUN_MAX} queries of this run wait already, the most allowed"
            ))
        })?;
        let stopping = || Error::Unavailable("the host is shutting down".to_owned());
        let turn = place.turn().await.ok_or_else(stopping)?;
        let slot = self.query_slots.clone().acquire_owned().await;
        let slot = slot.map_err(|_closed| stopping())?;
        let (reply, answer) = oneshot::channel();
        self.give(Task::Query {
            question: Box::new(question),
            reply,
            turn: [turn, slot],
        });
        let answer = answer.await.map_err(|_gone| stopping())?;
        answer.map_err(|error| query_failed(&error))
    }

    /// Follows an update from now on, until the follower is dropped.
    pub(crate) fn follow_update(
        self: &Arc<Self>,
        run: RunKey,
        update_id: &UpdateId,
    ) -> UpdateFollower {
        UpdateFollower::new(self.clone(), run, update_id.clone())
    }

    /// Puts a task into its queue and wakes a poller.
    pub(crate) fn offer(&self, key: TaskKey) {
        let notify = lock(&self.offered).get(&key.queue).cloned();
        lock(&self.queues).offer(key);
        if let Some(notify) = notify {
            notify.notify_one();
        }
    }

    /// Ends the threads and stops the activities of this process. What they were doing is owed
    /// again at the next start.
    pub(crate) fn stop(&self) {
        for shard in &self.shards {
            drop(shard.send(Input::Shutdown));
        }
        for _ in 0..self.guest_threads {
            self.give(Task::Stop);
        }
        for token in lock(&self.running).values() {
            token.cancel();
        }
    }

    pub(crate) fn give(&self, task: Task) {
        drop(self.pool.send(task));
    }

    fn run_activity(self: &Arc<Self>, shard: usize, assignment: Assignment) {
        let (run, seq, attempt) = (
            assignment.task.run,
            assignment.task.seq,
            assignment.task.attempt,
        );
        let Some(sender) = self.shards.get(shard).cloned() else {
            return;
        };
        let cancellation = CancellationToken::new();
        lock(&self.running).insert((run, seq, attempt), cancellation.clone());
        let shared = self.clone();
        let is_deferred = Arc::new(AtomicBool::new(false));
        self.tokio.spawn(async move {
            let context = ActivityContext {
                assignment: Arc::new(assignment),
                cancellation: cancellation.clone(),
                shard: sender.clone(),
                is_deferred: is_deferred.clone(),
            };
            let result = tokio::select! {
                biased;
                () = cancellation.cancelled() => Err(Failure::canceled("cancelled")),
                result = shared.run_function(context) => result,
            };
            lock(&shared.running).remove(&(run, seq, attempt));
            let request = Box::new(match result {
                _ if is_deferred.load(Ordering::Acquire) => Request::DeferActivity { seq, attempt },
                Ok(result) => Request::CompleteActivity {
                    seq,
                    attempt,
                    result,
                },
                Err(failure) => Request::FailActivity {
                    seq,
                    attempt,
                    failure,
                },
            });
            drop(sender.send(Input::ActivityEnded {
                run,
                seq,
                attempt,
                request,
            }));
        });
    }

    async fn run_function(
        &self,
        context: ActivityContext,
    ) -> Result<steadfast_model::Payload, Failure> {
        // The semaphore is never closed; without a permit the activity would only run unbounded.
        let _permit = self.slots.acquire().await;
        let assignment = context.assignment.clone();
        let activity_type = &assignment.task.activity_type;
        let Some(function) = self.activities.function(activity_type) else {
            let text = format!("activity type {activity_type} is not registered");
            return Err(Failure::application("not-registered", text));
        };
        let input = (*assignment.input).clone();
        let result = AssertUnwindSafe(async move { function(context, input).await })
            .catch_unwind()
            .await
            .unwrap_or_else(|panic| Err(Failure::application("panic", panic_text(&*panic))))?;
        if result.size_bytes() > PAYLOAD_BYTES_MAX {
            let mut frame = steadfast_model::Frame::new(
                steadfast_model::FailureKind::Application,
                "payload-too-large",
                format!(
                    "the result is {} bytes; the limit is {PAYLOAD_BYTES_MAX}",
                    result.size_bytes()
                ),
            );
            frame.non_retryable = true;
            return Err(Failure::new(frame));
        }
        Ok(result)
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    format!(
        "the activity panicked: {}",
        text.as_deref().unwrap_or("no message")
    )
}

fn pool_thread(shared: &Arc<Shared>, tasks: &Receiver<Task>) {
    while let Ok(task) = tasks.recv() {
        let (shard, input) = match task {
            Task::Load { run, shard } => {
                let result = load(&*shared.store, run);
                (shard, Input::Loaded { run, result })
            }
            Task::LoadTimers {
                after,
                until,
                shard,
            } => (shard, load_timers(&*shared.store, after, until)),
            Task::Query {
                question,
                reply,
                turn,
            } => {
                let answer = shared.copies.ask(&*shared.guests, &shared.store, &question);
                // A caller that gave up waiting is no longer there to be told.
                drop(reply.send(answer));
                drop(turn);
                continue;
            }
            Task::Carry(errand) => {
                shared.carry(errand);
                continue;
            }
            Task::Stop => return,
            Task::Activate {
                run,
                generation,
                job,
                shard,
            } => {
                let finished = Box::new(perform(&*shared.guests, &shared.store, run, *job));
                (
                    shard,
                    Input::Finished {
                        run,
                        generation,
                        finished,
                    },
                )
            }
        };
        if let Some(sender) = shared.shards.get(shard) {
            drop(sender.send(input));
        }
    }
}
