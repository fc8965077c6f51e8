//! Bringing a host up: options, recovery, shutdown.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use steadfast_engine::chain::Minted;
use steadfast_model::{RunId, RunKey, TaskQueue};
use steadfast_ports::store::{self, TaskKey};
use steadfast_ports::{Clock, Entropy, Guests, Store};

use crate::chain::Minter;
use crate::driver::{Parts, Shared, lock, spawn};
use crate::handle::Handle;
use crate::local::Activities;
use crate::message::Input;
use crate::rows::HOST_QUEUE;
use crate::shard::{Shard, ShardOptions};

/// How many rows one read of recovery asks for.
const RECOVERY_PAGE: usize = 1000;

/// How many runs may wait to be read while recovery goes on.
const RECOVERY_BACKLOG: u64 = 2000;

/// How a host runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// Shards. Default: the number of processors, at most 8.
    pub shards: usize,
    /// Threads for guests and reads. Default: twice the processors, at least 4, so that a few
    /// spinning guests leave room for the others.
    pub guest_threads: usize,
    /// Bytes that runs kept in memory may take. Default: 256 MiB.
    pub cache_bytes: usize,
    /// Activities of this process that run at a time; further ones wait. Default: 1000.
    pub local_activities_max: usize,
    /// Activities that this process runs itself.
    pub activities: Activities,
    /// Task queue of workflows that are started without one. Default: `default`.
    pub default_task_queue: String,
}

impl Default for Options {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            shards: processors.min(8),
            guest_threads: (processors * 2).max(4),
            cache_bytes: 256 * 1024 * 1024,
            local_activities_max: 1000,
            activities: Activities::new(),
            default_task_queue: "default".to_owned(),
        }
    }
}

/// Everything nondeterministic that a host needs.
#[derive(Clone)]
pub struct World {
    /// Durable state.
    pub store: Arc<dyn Store>,
    /// Workflow code.
    pub guests: Arc<dyn Guests>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
}

/// Why a host did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store cannot be used.
    #[error("the store cannot be used: {0}")]
    Store(#[from] store::Error),
    /// A thread could not be started.
    #[error("a thread could not be started: {0}")]
    Thread(#[from] std::io::Error),
    /// An option makes no sense.
    #[error("option {option}: {text}")]
    Option {
        /// Which.
        option: &'static str,
        /// What is wrong with it.
        text: String,
    },
}

/// Takes ownership of the store, starts the threads and recovers: what was owed when the last
/// process ended is done, what is not due costs nothing. Must be called inside a tokio runtime.
///
/// # Errors
/// [`StartError`] says what is in the way.
pub fn start(options: Options, world: World) -> Result<Handle, StartError> {
    let default_queue =
        TaskQueue::new(options.default_task_queue.clone()).map_err(|error| StartError::Option {
            option: "default_task_queue",
            text: error.to_string(),
        })?;
    let fence = world.store.acquire()?;
    let last_run = world.store.last_run()?;
    let count = options.shards.clamp(1, 64) as u64;
    let local = Arc::new(options.activities.types());
    let mint = Arc::new(Mint::after(last_run, world.entropy));
    let machines = (0..count)
        .map(|index| {
            Shard::new(ShardOptions {
                index,
                count,
                fence,
                process: fence.0.to_string(),
                local_activities: local.clone(),
                cache_bytes: options.cache_bytes / usize::try_from(count).unwrap_or(1),
                minter: mint.clone(),
            })
        })
        .collect();
    let parts = Parts {
        store: world.store.clone(),
        guests: world.guests,
        clock: world.clock,
        activities: options.activities,
        local_activities_max: options.local_activities_max.max(1),
        guest_threads: options.guest_threads.max(1),
        minter: mint.clone(),
        copies_bytes: options.cache_bytes / 4,
    };
    let shared = spawn(parts, machines)?;
    // Threads of a dropped handle must end, so only this one keeps the shards alive.
    let recovery = Arc::downgrade(&shared);
    std::thread::Builder::new()
        .name("recovery".to_owned())
        .spawn(move || {
            if let Some(shared) = recovery.upgrade() {
                recover(&shared);
            }
        })?;
    Ok(Handle::new(shared, mint, default_queue, fence))
}

/// Wakes the runs that are owed something and offers the tasks that wait, in pages and no faster
/// than the runs can be read. Due timers find their runs by themselves.
fn recover(shared: &Arc<Shared>) {
    if let Err(error) = recover_ready(shared)
        .and_then(|()| recover_tasks(shared))
        .and_then(|()| recover_letters(shared))
    {
        tracing::error!(%error, "recovery could not read the store; restart the host");
        shared.fatal.send_replace(Some(error));
    }
}

fn recover_ready(shared: &Arc<Shared>) -> Result<(), store::Error> {
    let mut after = None;
    loop {
        let runs = shared.store.ready(after, RECOVERY_PAGE)?;
        let Some(last) = runs.last() else {
            return Ok(());
        };
        after = Some(*last);
        wake(shared, &runs);
    }
}

fn recover_tasks(shared: &Arc<Shared>) -> Result<(), store::Error> {
    let mut after: Option<TaskKey> = None;
    loop {
        let tasks = shared.store.tasks(after.as_ref(), RECOVERY_PAGE)?;
        let Some(last) = tasks.last() else {
            return Ok(());
        };
        after = Some(last.clone());
        let (local, remote): (Vec<_>, Vec<_>) = tasks
            .into_iter()
            .partition(|key| key.queue.as_str() == HOST_QUEUE);
        let mut runs: Vec<RunKey> = local.into_iter().map(|key| key.run).collect();
        runs.dedup();
        wake(shared, &runs);
        for key in remote {
            shared.offer(key);
        }
    }
}

/// Wakes the runs that owe others a letter.
fn recover_letters(shared: &Arc<Shared>) -> Result<(), store::Error> {
    let mut after = None;
    loop {
        let letters = shared.store.letters(after, RECOVERY_PAGE)?;
        let Some(last) = letters.last() else {
            return Ok(());
        };
        after = Some(*last);
        let mut runs: Vec<RunKey> = letters.into_iter().map(|key| key.run).collect();
        runs.dedup();
        wake(shared, &runs);
    }
}

fn wake(shared: &Arc<Shared>, runs: &[RunKey]) {
    for run in runs {
        shared.send(*run, Input::Touch { run: *run });
    }
    while shared.loads_waiting.load(Ordering::Relaxed) > RECOVERY_BACKLOG {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Ends the threads when the last handle is gone.
pub(crate) struct ShutdownGuard(pub(crate) Arc<Shared>);

impl Drop for ShutdownGuard {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Makes what new runs are known by.
pub(crate) struct Mint {
    last: Mutex<u64>,
    entropy: Arc<dyn Entropy>,
}

impl std::fmt::Debug for Mint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mint")
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}

impl Mint {
    fn after(last: RunKey, entropy: Arc<dyn Entropy>) -> Self {
        Self {
            last: Mutex::new(last.0),
            entropy,
        }
    }
}

impl Mint {
    pub(crate) fn fill(&self, bytes: &mut [u8]) {
        self.entropy.fill(bytes);
    }
}

impl Minter for Mint {
    /// The next number of the shard: numbers of others in between are left out.
    fn mint(&self, index: u64, count: u64) -> Minted {
        let run = {
            let mut last = lock(&self.last);
            let next = *last + 1;
            *last = next + (index + count - next % count) % count;
            RunKey(*last)
        };
        let mut random = [0; 8];
        self.entropy.fill(&mut random);
        let mut random_seed = [0; 32];
        self.entropy.fill(&mut random_seed);
        Minted {
            run,
            run_id: RunId::new(run, random),
            random_seed,
        }
    }
}
