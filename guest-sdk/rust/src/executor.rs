//! A single-threaded executor: a FIFO queue of tasks that were woken, nothing else.
//!
//! Invariants: a task is in the queue at most once; a wake costs O(1) whatever the number of
//! tasks; the order of polls follows from the order of wakes alone.
//! Read next: `run.rs`, `spawn.rs`.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Wake, Waker};

use crate::run;

/// A task's code.
pub(crate) type TaskFuture = Pin<Box<dyn Future<Output = ()>>>;

/// What a waker points at. Atomics only because `Waker` must be `Sync`; there is one thread.
struct Handle {
    index: usize,
    /// True while queued, and for ever once the task has ended: late wakes do nothing.
    is_queued: AtomicBool,
}

impl Wake for Handle {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_queued.swap(true, Ordering::Relaxed) {
            run::try_with(|run| run.executor.ready.borrow_mut().push_back(self.index));
        }
    }
}

struct Task {
    future: TaskFuture,
    waker: Waker,
    handle: Arc<Handle>,
}

enum Slot {
    Free,
    Idle(Task),
    Running,
    /// Running, and to be dropped as soon as it comes back.
    Aborted,
}

struct Tasks {
    slots: Vec<Slot>,
    free: Vec<usize>,
}

impl Tasks {
    fn replace(&mut self, index: usize, slot: Slot) -> Slot {
        self.slots
            .get_mut(index)
            .map_or(Slot::Free, |place| mem::replace(place, slot))
    }

    /// Empties an ended task's slot. One that is still queued is given to the next owner only
    /// when its turn comes, so that no task gets a turn that was another's.
    fn release(&mut self, index: usize, task: &Task) {
        drop(self.replace(index, Slot::Free));
        if !task.handle.is_queued.swap(true, Ordering::Relaxed) {
            self.free.push(index);
        }
    }
}

/// The tasks of a run and the queue of those that can go on.
pub(crate) struct Executor {
    tasks: RefCell<Tasks>,
    ready: RefCell<VecDeque<usize>>,
}

impl Executor {
    pub(crate) const fn new() -> Self {
        Self {
            tasks: RefCell::new(Tasks {
                slots: Vec::new(),
                free: Vec::new(),
            }),
            ready: RefCell::new(VecDeque::new()),
        }
    }

    /// Adds a task at the end of the queue and returns its index.
    pub(crate) fn spawn(&self, future: TaskFuture) -> usize {
        let mut tasks = self.tasks.borrow_mut();
        let index = tasks.free.pop().unwrap_or(tasks.slots.len());
        let handle = Arc::new(Handle {
            index,
            is_queued: AtomicBool::new(true),
        });
        let waker = Waker::from(Arc::clone(&handle));
        let slot = Slot::Idle(Task {
            future,
            waker,
            handle,
        });
        if index == tasks.slots.len() {
            tasks.slots.push(slot);
        } else {
            tasks.replace(index, slot);
        }
        self.ready.borrow_mut().push_back(index);
        index
    }

    /// Polls the task at the head of the queue; returns false when the queue is empty.
    pub(crate) fn step(&self) -> bool {
        let Some(index) = self.ready.borrow_mut().pop_front() else {
            return false;
        };
        let slot = self.tasks.borrow_mut().replace(index, Slot::Running);
        let Slot::Idle(mut task) = slot else {
            // The task ended while it was queued.
            let mut tasks = self.tasks.borrow_mut();
            tasks.replace(index, Slot::Free);
            tasks.free.push(index);
            return true;
        };
        task.handle.is_queued.store(false, Ordering::Relaxed);
        let is_ready = task
            .future
            .as_mut()
            .poll(&mut TaskContext::from_waker(&task.waker));
        self.put_back(index, task, is_ready.is_ready());
        true
    }

    fn put_back(&self, index: usize, task: Task, is_ready: bool) {
        let mut tasks = self.tasks.borrow_mut();
        let is_aborted = matches!(tasks.slots.get(index), Some(Slot::Aborted));
        if !is_ready && !is_aborted {
            tasks.replace(index, Slot::Idle(task));
            return;
        }
        tasks.release(index, &task);
        // The future's drop may cancel operations or wake tasks: let go of the table first.
        drop(tasks);
        drop(task);
    }

    /// Drops a task, at once or, when it is the one running, after this poll.
    pub(crate) fn abort(&self, index: usize) {
        let mut tasks = self.tasks.borrow_mut();
        match tasks.replace(index, Slot::Free) {
            Slot::Idle(task) => {
                tasks.release(index, &task);
                drop(tasks);
                drop(task);
            }
            Slot::Running | Slot::Aborted => drop(tasks.replace(index, Slot::Aborted)),
            Slot::Free => {}
        }
    }

    /// Drops every task for the next run of the same thread.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn reset(&self) {
        let tasks = self.tasks.replace(Tasks {
            slots: Vec::new(),
            free: Vec::new(),
        });
        drop(tasks);
        self.ready.borrow_mut().clear();
    }
}
