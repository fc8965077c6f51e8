//! Tasks that run beside the workflow's own.

use std::cell::RefCell;
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context as TaskContext, Poll, Waker};

use crate::executor::TaskFuture;
use crate::run;
use crate::scope::{self, InScope};

struct Shared<T> {
    output: Option<T>,
    waiter: Option<Waker>,
}

/// The future of a task's output. Dropping it lets the task go on.
#[must_use = "drop it with `drop(...)` to let the task go on unobserved"]
pub struct JoinHandle<T> {
    task: usize,
    shared: Rc<RefCell<Shared<T>>>,
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("JoinHandle")
            .field("task", &self.task)
            .finish()
    }
}

/// Starts a task at the end of the queue of those that can go on.
pub(crate) fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    run::with(|run| run.handlers.may_command("Context::spawn"));
    let shared = Rc::new(RefCell::new(Shared {
        output: None,
        waiter: None,
    }));
    let result = Rc::clone(&shared);
    let code = async move {
        let output = future.await;
        let waiter = {
            let mut result = result.borrow_mut();
            result.output = Some(output);
            result.waiter.take()
        };
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    };
    let code: TaskFuture = match scope::current() {
        Some(scope) => Box::pin(InScope::new(scope, code)),
        None => Box::pin(code),
    };
    let task = run::with(|run| run.executor.spawn(code));
    JoinHandle { task, shared }
}

impl<T> JoinHandle<T> {
    /// Drops the task, and with it whatever it has pending: its timers and activities are
    /// cancelled. Does nothing to a task that has ended.
    pub fn abort(self) {
        // The task's own reference is gone when it has ended; its slot may have a new owner.
        if Rc::strong_count(&self.shared) > 1 {
            run::with(|run| run.executor.abort(self.task));
        }
    }

    /// Returns true when the task has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.shared.borrow().output.is_some()
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<T> {
        let mut shared = self.shared.borrow_mut();
        if let Some(output) = shared.output.take() {
            return Poll::Ready(output);
        }
        shared.waiter = Some(task.waker().clone());
        Poll::Pending
    }
}
