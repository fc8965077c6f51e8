//! The operations of a run: what was started, what is waited for, what has been resolved.
//!
//! The host numbers operations 1, 2, 3, ..., so that the table is a plain window over the numbers
//! still alive and one event costs O(1). Invariant: the front slot is never `Done`.
//! Read next: `run.rs`, `activity.rs`, `timer.rs`.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::mem;
use std::rc::Rc;
use std::task::{Context as TaskContext, Poll, Waker};

use crate::failure::Failure;
use crate::payload::Payload;
use crate::scope::{self, Node};
use crate::{host, run};

/// What an operation ended with.
pub(crate) type Outcome = Result<Payload, Failure>;

/// An event names an operation that this code never started.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnknownOperation(pub(crate) u32);

enum Slot {
    /// Pending, and who waits for it.
    Waiting(Option<Waker>),
    /// Ended, not yet asked for.
    Resolved(Outcome),
    /// Taken, or given up: an event for it is ignored.
    Done,
}

struct Window {
    /// The number of the front slot.
    first: u32,
    slots: VecDeque<Slot>,
}

impl Window {
    fn slot(&mut self, number: u32) -> Option<&mut Slot> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.slots.get_mut(index)
    }

    /// Marks a slot as done and returns what it held.
    fn finish(&mut self, number: u32) -> Slot {
        let Some(slot) = self.slot(number) else {
            return Slot::Done;
        };
        let previous = mem::replace(slot, Slot::Done);
        while matches!(self.slots.front(), Some(Slot::Done)) {
            self.slots.pop_front();
            self.first += 1;
        }
        previous
    }
}

/// The table of a run's operations.
pub(crate) struct Operations(RefCell<Window>);

impl Operations {
    pub(crate) const fn new() -> Self {
        Self(RefCell::new(Window {
            first: 1,
            slots: VecDeque::new(),
        }))
    }

    fn insert(&self, number: u32) {
        let mut window = self.0.borrow_mut();
        let expected = u64::from(window.first) + window.slots.len() as u64;
        assert_eq!(
            u64::from(number),
            expected,
            "the host numbers operations densely"
        );
        window.slots.push_back(Slot::Waiting(None));
    }

    fn poll(&self, number: u32, task: &TaskContext<'_>) -> Poll<Outcome> {
        let mut window = self.0.borrow_mut();
        match window.slot(number) {
            Some(Slot::Waiting(Some(waker))) if waker.will_wake(task.waker()) => Poll::Pending,
            Some(Slot::Waiting(waker)) => {
                let previous = waker.replace(task.waker().clone());
                // A foreign waker's drop may come back here: let go of the table first.
                drop(window);
                drop(previous);
                Poll::Pending
            }
            Some(Slot::Resolved(_)) => match window.finish(number) {
                Slot::Resolved(outcome) => Poll::Ready(outcome),
                Slot::Waiting(_) | Slot::Done => Poll::Pending,
            },
            Some(Slot::Done) | None => Poll::Pending,
        }
    }

    /// Records an operation's outcome and wakes who waits for it.
    pub(crate) fn resolve(&self, number: u32, outcome: Outcome) -> Result<(), UnknownOperation> {
        let mut window = self.0.borrow_mut();
        if number == 0 || u64::from(number) >= u64::from(window.first) + window.slots.len() as u64 {
            return Err(UnknownOperation(number));
        }
        if let Some(slot @ Slot::Waiting(_)) = window.slot(number)
            && let Slot::Waiting(waker) = mem::replace(slot, Slot::Resolved(outcome))
        {
            drop(window);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
        Ok(())
    }

    /// Gives an operation up; returns true when it was still pending.
    fn forget(&self, number: u32) -> bool {
        let previous = self.0.borrow_mut().finish(number);
        matches!(previous, Slot::Waiting(_))
    }

    fn is_waiting(&self, number: u32) -> bool {
        matches!(self.0.borrow_mut().slot(number), Some(Slot::Waiting(_)))
    }

    /// Empties the table for the next run of the same thread.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn reset(&self) {
        let slots = self.0.replace(Window {
            first: 1,
            slots: VecDeque::new(),
        });
        drop(slots);
    }
}

/// Which interface of the host an operation belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Activity,
    Timer,
    /// The outcome of a child.
    Child,
    /// What ends by itself: the start of a child, a message to another execution.
    Brief,
}

/// The owner of one operation: dropping it while the operation is pending cancels it.
#[derive(Debug)]
pub(crate) struct Operation {
    /// 0 when there is nothing left to cancel.
    number: u32,
    kind: Kind,
    /// The scope that it was started in.
    scope: Option<Rc<Node>>,
    /// True for an operation of a cancelled scope, which was never started.
    is_void: bool,
}

impl Operation {
    /// Starts an operation with a call of the host that returns its number. In a scope that is
    /// cancelled the host is not asked, and the operation stays pending.
    pub(crate) fn start(kind: Kind, call: impl FnOnce() -> u32) -> Self {
        let scope = scope::current();
        let is_void = scope::is_cancelled_here();
        let number = if is_void { 0 } else { call() };
        if !is_void {
            run::with(|run| run.operations.insert(number));
            if let Some(scope) = &scope {
                scope.add(number, kind);
            }
        }
        Self {
            number,
            kind,
            scope,
            is_void,
        }
    }

    pub(crate) const fn number(&self) -> u32 {
        self.number
    }

    pub(crate) fn poll(&mut self, task: &TaskContext<'_>) -> Poll<Outcome> {
        if self.is_void {
            return Poll::Pending;
        }
        assert_ne!(
            self.number, 0,
            "a future is not polled after it has been ready"
        );
        let poll = run::with(|run| run.operations.poll(self.number, task));
        if poll.is_ready() {
            self.leave_scope();
            self.number = 0;
        }
        poll
    }

    fn leave_scope(&mut self) {
        if let Some(scope) = self.scope.take() {
            scope.remove(self.number);
        }
    }

    /// Asks the host to cancel the operation, which stays pending until the host says so.
    pub(crate) fn cancel(&self) {
        if run::with(|run| run.operations.is_waiting(self.number)) {
            request_cancel(self.number, self.kind);
        }
    }

    /// Lets the operation go on without anybody waiting for it.
    pub(crate) fn detach(mut self) {
        self.leave_scope();
        let number = mem::take(&mut self.number);
        run::with(|run| run.operations.forget(number));
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        if self.number == 0 {
            return;
        }
        self.leave_scope();
        // `try_with`: a native thread may be taking its run down already.
        give_up(self.number, self.kind);
    }
}

/// Forgets an operation that nobody will ask for any more, and cancels it if it is pending.
pub(crate) fn give_up(number: u32, kind: Kind) {
    let is_pending = run::try_with(|run| run.operations.forget(number) && run.is_open());
    if is_pending == Some(true) {
        request_cancel(number, kind);
    }
}

fn request_cancel(number: u32, kind: Kind) {
    match kind {
        Kind::Activity => host::cancel_activity(number),
        Kind::Timer => host::cancel_timer(number),
        Kind::Child => host::cancel_child(number),
        Kind::Brief => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(operations: &Operations) -> usize {
        operations.0.borrow().slots.len()
    }

    #[test]
    fn finished_prefix_is_released() {
        let operations = Operations::new();
        (1..=4).for_each(|number| operations.insert(number));
        assert!(operations.forget(2));
        assert_eq!(slots(&operations), 4);
        assert!(operations.forget(1));
        assert_eq!(slots(&operations), 2);
        assert!(!operations.forget(1));
        operations.insert(5);
        assert_eq!(slots(&operations), 3);
    }

    #[test]
    fn outcome_waits_for_its_poll() {
        let operations = Operations::new();
        operations.insert(1);
        let task = TaskContext::from_waker(Waker::noop());
        assert!(operations.poll(1, &task).is_pending());
        operations.resolve(1, Ok(Payload::default())).unwrap();
        operations
            .resolve(1, Ok(Payload::binary(Vec::new())))
            .unwrap();
        assert_eq!(
            operations.poll(1, &task),
            Poll::Ready(Ok(Payload::default()))
        );
    }

    #[test]
    fn only_numbers_never_given_out_are_unknown() {
        let operations = Operations::new();
        operations.insert(1);
        operations.forget(1);
        assert_eq!(operations.resolve(1, Ok(Payload::default())), Ok(()));
        for number in [0, 2, u32::MAX] {
            let unknown = operations.resolve(number, Ok(Payload::default()));
            assert_eq!(unknown, Err(UnknownOperation(number)));
        }
    }
}
