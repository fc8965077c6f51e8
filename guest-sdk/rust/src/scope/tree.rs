//! The scopes of a run: who is inside whom, what each one started, and who waits for its end.
//!
//! Invariants: a scope that is not shielded is cancelled no later than the one around it; what is
//! cancelled together is cancelled in the order of its start. The workflow itself is not a scope:
//! it owns nothing, and only its scopes hear of a cancel request without asking.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::{Rc, Weak};
use std::task::Waker;

use crate::failure::Failure;
use crate::operation::{self, Kind};
use crate::run;
use crate::waiters::Waiters;

use super::canceled_because;

/// One scope, a shield included.
pub(crate) struct Node {
    /// Its place in the order of all scopes.
    serial: u64,
    parent: Option<Rc<Self>>,
    state: RefCell<State>,
}

struct State {
    cancellation: Option<Failure>,
    /// What was started here and is pending.
    operations: BTreeMap<u32, Kind>,
    /// Scopes inside that go with this one.
    children: BTreeMap<u64, Weak<Node>>,
    /// Runs with a cleanup that has not ended.
    cleanups: usize,
    /// Shields and cleanups inside that the code must not be dropped under.
    holds: usize,
    waiters: Waiters,
}

impl fmt::Debug for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Node")
            .field("serial", &self.serial)
            .finish_non_exhaustive()
    }
}

/// The scopes of a run that are inside no other, and the one whose code runs now.
pub(crate) struct Tree {
    tops: RefCell<BTreeMap<u64, Weak<Node>>>,
    current: RefCell<Option<Rc<Node>>>,
    serials: Cell<u64>,
}

impl Tree {
    pub(crate) const fn new() -> Self {
        Self {
            tops: RefCell::new(BTreeMap::new()),
            current: RefCell::new(None),
            serials: Cell::new(0),
        }
    }

    /// Forgets every scope for the next run of the same thread.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn reset(&self) {
        drop(self.tops.take());
        drop(self.current.take());
        self.serials.set(0);
    }
}

/// Returns the scope whose code runs now; `None` in the workflow itself.
pub(crate) fn current() -> Option<Rc<Node>> {
    run::with(|run| run.scopes.current.borrow().clone())
}

/// Returns true in the code of a scope that is cancelled: nothing new is started there.
pub(crate) fn is_cancelled_here() -> bool {
    current().is_some_and(|node| node.cancellation().is_some())
}

/// Cancels every scope that is not shielded: somebody asked the run to cancel itself.
pub(crate) fn cancel_all(reason: &str) {
    let tops: Vec<_> = run::with(|run| run.scopes.tops.borrow().values().cloned().collect());
    let tops = tops.iter().filter_map(Weak::upgrade);
    cancel_together(tops, &canceled_because(reason));
}

fn cancel_together(nodes: impl Iterator<Item = Rc<Node>>, failure: &Failure) {
    let mut hit = Vec::new();
    nodes.for_each(|node| node.mark(failure, &mut hit));
    let mut operations = BTreeMap::new();
    for node in &hit {
        operations.append(&mut node.state.borrow_mut().operations);
        let cleanups = node.state.borrow().cleanups;
        node.ancestors(|ancestor| ancestor.state.borrow_mut().holds += cleanups);
    }
    for (number, kind) in operations {
        operation::give_up(number, kind);
    }
    hit.iter().for_each(|node| node.wake());
}

impl Node {
    /// Returns a new scope. One that is not shielded begins as cancelled if the one around it is,
    /// or the run.
    pub(crate) fn inside(parent: Option<Rc<Self>>, is_shielded: bool) -> Rc<Self> {
        let cancellation = match &parent {
            _ if is_shielded => None,
            Some(parent) => parent.cancellation(),
            None => run::with(|run| run.cancel.reason()).map(|reason| canceled_because(&reason)),
        };
        let serial = run::with(|run| {
            run.scopes.serials.set(run.scopes.serials.get() + 1);
            run.scopes.serials.get()
        });
        let node = Rc::new(Self {
            serial,
            parent,
            state: RefCell::new(State {
                cancellation,
                operations: BTreeMap::new(),
                children: BTreeMap::new(),
                cleanups: 0,
                holds: 0,
                waiters: Waiters::new(),
            }),
        });
        if !is_shielded {
            let child = Rc::downgrade(&node);
            node.siblings(|siblings| drop(siblings.insert(serial, child)));
        }
        node
    }

    pub(crate) fn parent(&self) -> Option<Rc<Self>> {
        self.parent.clone()
    }

    /// Calls `action` with the scopes that are beside this one.
    fn siblings(&self, action: impl FnOnce(&mut BTreeMap<u64, Weak<Self>>)) {
        match &self.parent {
            Some(parent) => action(&mut parent.state.borrow_mut().children),
            None => drop(run::try_with(|run| {
                action(&mut run.scopes.tops.borrow_mut());
            })),
        }
    }

    fn ancestors(&self, mut action: impl FnMut(&Self)) {
        let mut next = self.parent.as_deref();
        while let Some(node) = next {
            action(node);
            next = node.parent.as_deref();
        }
    }

    /// Runs `action` as code of this scope.
    pub(crate) fn enter<R>(self: &Rc<Self>, action: impl FnOnce() -> R) -> R {
        let swap = |node| run::with(|run| run.scopes.current.replace(node));
        let around = swap(Some(Rc::clone(self)));
        let result = action();
        drop(swap(around));
        result
    }

    pub(crate) fn cancellation(&self) -> Option<Failure> {
        self.state.borrow().cancellation.clone()
    }

    /// Returns why the code must be dropped now, if it must.
    pub(crate) fn is_over(&self) -> Option<Failure> {
        let state = self.state.borrow();
        state.cancellation.clone().filter(|_| state.holds == 0)
    }

    pub(crate) fn cancel(self: &Rc<Self>, failure: &Failure) {
        cancel_together(std::iter::once(Rc::clone(self)), failure);
    }

    /// Marks this scope and those inside it, and lists those that were not marked before.
    fn mark(self: &Rc<Self>, failure: &Failure, hit: &mut Vec<Rc<Self>>) {
        let children: Vec<_> = {
            let mut state = self.state.borrow_mut();
            if state.cancellation.is_some() {
                return;
            }
            state.cancellation = Some(failure.clone());
            state.children.values().filter_map(Weak::upgrade).collect()
        };
        hit.push(Rc::clone(self));
        children.iter().for_each(|child| child.mark(failure, hit));
    }

    fn wake(&self) {
        loop {
            // One borrow per waiter: a waker may call back.
            let waker = self.state.borrow_mut().waiters.pop();
            let Some(waker) = waker else { break };
            waker.wake();
        }
    }

    /// Waits for a cancellation, or for the last hold to go.
    pub(crate) fn wait(&self, ticket: &mut u64, waker: &Waker) {
        self.state.borrow_mut().waiters.wait(ticket, waker);
    }

    pub(crate) fn leave(&self, ticket: u64) {
        let waker = self.state.borrow_mut().waiters.leave(ticket);
        drop(waker);
    }

    pub(crate) fn add(&self, number: u32, kind: Kind) {
        self.state.borrow_mut().operations.insert(number, kind);
    }

    pub(crate) fn remove(&self, number: u32) {
        self.state.borrow_mut().operations.remove(&number);
    }

    /// Keeps the scopes around this one from dropping their code.
    pub(crate) fn hold(&self) {
        self.ancestors(|node| node.state.borrow_mut().holds += 1);
    }

    /// Takes back one [`hold`](Self::hold).
    pub(crate) fn release(&self) {
        self.ancestors(|node| {
            node.state.borrow_mut().holds -= 1;
            if node.is_over().is_some() {
                node.wake();
            }
        });
    }

    /// Counts a run that will clean up: from a cancellation on, it is a hold.
    pub(crate) fn begin_cleanup(&self) {
        self.state.borrow_mut().cleanups += 1;
    }

    pub(crate) fn end_cleanup(&self) {
        self.state.borrow_mut().cleanups -= 1;
        if self.cancellation().is_some() {
            self.release();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let serial = self.serial;
        self.siblings(|siblings| drop(siblings.remove(&serial)));
    }
}
