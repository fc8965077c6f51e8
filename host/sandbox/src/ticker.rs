//! The thread that lets running guests notice that their time is over.
//!
//! It advances the engines' epoch once per tick. An idle host must not wake a hundred times a
//! second, so the thread parks when no guest has been entered for longer than one may run.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use steadfast_model::Millis;
use wasmtime::{Engine, EngineWeak};

/// Handle of the ticking thread, which ends when this is dropped.
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    deadline_ticks: u64,
}

struct Shared {
    /// Some guest was entered since the last tick.
    used: AtomicBool,
    /// The thread is parked, or about to be.
    parked: AtomicBool,
    stop: AtomicBool,
    /// Ticks so far.
    ticks: AtomicU64,
    engines: Mutex<Vec<EngineWeak>>,
}

impl Ticker {
    /// Starts the thread.
    ///
    /// # Errors
    /// The operating system's, when no thread can be made.
    pub(crate) fn start(tick: Duration, limit: Millis) -> std::io::Result<Self> {
        let tick = tick.max(Duration::from_millis(1));
        let tick_us = u64::try_from(tick.as_micros()).unwrap_or(u64::MAX);
        // One more than the limit, because the first tick may come at once.
        let deadline_ticks = limit
            .0
            .saturating_mul(1000)
            .div_ceil(tick_us)
            .saturating_add(1);
        let shared = Arc::new(Shared {
            used: AtomicBool::new(false),
            parked: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            ticks: AtomicU64::new(0),
            engines: Mutex::new(Vec::new()),
        });
        let thread = std::thread::Builder::new()
            .name("steadfast-ticker".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || shared.run(tick, deadline_ticks.saturating_add(2))
            })?;
        Ok(Self {
            shared,
            thread: Some(thread),
            deadline_ticks,
        })
    }

    /// Adds an engine whose guests are to be interrupted.
    pub(crate) fn watch(&self, engine: &Engine) {
        self.shared.engines().push(engine.weak());
    }

    /// Says that a guest is about to be entered, and returns how many ticks it may take.
    pub(crate) fn enter(&self) -> u64 {
        let shared = &self.shared;
        // Either the thread sees `used` before it parks, or we see `parked`: both sides write
        // one flag and then read the other in the single order of `SeqCst`. Skipping the write
        // is fine: the flag was true, so the thread stays awake longer than a guest may run.
        if !shared.used.load(Ordering::Relaxed) {
            shared.used.store(true, Ordering::SeqCst);
        }
        if shared.parked.load(Ordering::SeqCst)
            && let Some(thread) = &self.thread
        {
            thread.thread().unpark();
        }
        self.deadline_ticks
    }

    /// Ticks so far. They stand still while no guest runs.
    pub(crate) fn ticks(&self) -> u64 {
        self.shared.ticks.load(Ordering::Relaxed)
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It cannot have panicked, and there is nothing to do about it here if it did.
            drop(thread.join());
        }
    }
}

impl Shared {
    fn engines(&self) -> std::sync::MutexGuard<'_, Vec<EngineWeak>> {
        self.engines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, tick: Duration, idle_ticks_max: u64) {
        let mut idle_ticks = 0_u64;
        while !self.stop.load(Ordering::SeqCst) {
            std::thread::sleep(tick);
            self.ticks.fetch_add(1, Ordering::Relaxed);
            for engine in self.engines().iter().filter_map(EngineWeak::upgrade) {
                engine.increment_epoch();
            }
            idle_ticks = if self.used.swap(false, Ordering::SeqCst) {
                0
            } else {
                idle_ticks + 1
            };
            if idle_ticks > idle_ticks_max {
                self.parked.store(true, Ordering::SeqCst);
                if !self.used.load(Ordering::SeqCst) && !self.stop.load(Ordering::SeqCst) {
                    std::thread::park();
                }
                self.parked.store(false, Ordering::SeqCst);
                idle_ticks = 0;
            }
        }
    }
}
