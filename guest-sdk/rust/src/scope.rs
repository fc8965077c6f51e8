//! Cancellation scopes: parts of a workflow that are given up together.
//!
//! A scope owns what is started in it. Cancelled, it asks the host to cancel its timers,
//! activities and children in the order of their start, drops its code, and lets its cleanup run.
//! Scopes nest: a scope goes with the one around it, and a cancel request goes to all of them,
//! unless they are shielded.
//! Read next: `scope/tree.rs`, `operation.rs`.

use std::fmt;
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use crate::failure::Failure;
use crate::join::Elapsed;
use crate::timer::Timer;

mod tree;

pub(crate) use tree::{Node, Tree, cancel_all, current, is_cancelled_here};

type Boxed<T> = Pin<Box<dyn Future<Output = T>>>;

/// A part of a workflow that can be cancelled as a whole. Copies are the same scope.
#[derive(Clone)]
pub struct Scope(Rc<Node>);

impl fmt::Debug for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Scope")
            .field("is_cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}

impl Scope {
    pub(crate) fn open() -> Self {
        Self(Node::inside(current(), false))
    }

    /// Runs code in the scope. What the code starts belongs to the scope; so do the tasks that it
    /// spawns.
    ///
    /// The output is the code's own, or [`Failure::canceled`] once the scope is cancelled: its
    /// code is dropped then, and in a scope that is cancelled already it does not begin.
    pub fn run<F, T, E>(&self, code: F) -> ScopeRun<F, T, E>
    where
        F: Future<Output = Result<T, E>>,
        E: From<Failure>,
    {
        ScopeRun {
            node: Rc::clone(&self.0),
            code: Some(Box::pin(code)),
            limit: None,
            cleanup: None,
            is_counted: false,
            ticket: 0,
            state: State::New,
        }
    }

    /// Cancels the scope and those inside it. Does nothing to one that is cancelled already.
    pub fn cancel(&self, reason: &str) {
        self.0.cancel(&canceled_because(reason));
    }

    /// Returns true once the scope is cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cancellation().is_some()
    }
}

/// Returns the failure that a cancellation for this reason is.
pub(crate) fn canceled_because(reason: &str) -> Failure {
    if reason.is_empty() {
        Failure::canceled()
    } else {
        Failure::canceled().with_message(format!("canceled: {reason}"))
    }
}

/// Work that goes on whatever happens to the scopes around it; see [`crate::Context::shielded`].
#[must_use = "futures do nothing unless awaited"]
pub struct Shielded<F> {
    node: Rc<Node>,
    /// `None` once it has ended.
    work: Option<Pin<Box<F>>>,
    is_held: bool,
}

impl<F> fmt::Debug for Shielded<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Shielded").finish_non_exhaustive()
    }
}

impl<F: Future> Shielded<F> {
    /// What the conversion starts belongs to the shield already.
    pub(crate) fn new(work: impl IntoFuture<IntoFuture = F, Output = F::Output>) -> Self {
        let node = Node::inside(current(), true);
        let work = node.enter(|| work.into_future());
        Self::on(node, work)
    }

    fn on(node: Rc<Node>, work: F) -> Self {
        Self {
            node,
            work: Some(Box::pin(work)),
            is_held: false,
        }
    }
}

impl<F: Future> Future for Shielded<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<F::Output> {
        let this = self.get_mut();
        let Some(work) = &mut this.work else {
            return Poll::Pending;
        };
        if !this.is_held {
            this.node.hold();
            this.is_held = true;
        }
        let poll = this.node.enter(|| work.as_mut().poll(task));
        if poll.is_ready() {
            this.end();
        }
        poll
    }
}

impl<F> Shielded<F> {
    fn end(&mut self) {
        drop(self.work.take());
        if mem::take(&mut self.is_held) {
            self.node.release();
        }
    }
}

impl<F> Drop for Shielded<F> {
    fn drop(&mut self) {
        self.end();
    }
}

/// A spawned task of a scope: it ends with it.
pub(crate) struct InScope<F> {
    node: Rc<Node>,
    code: Pin<Box<F>>,
    ticket: u64,
}

impl<F> InScope<F> {
    pub(crate) fn new(node: Rc<Node>, code: F) -> Self {
        Self {
            node,
            code: Box::pin(code),
            ticket: 0,
        }
    }
}

impl<F: Future<Output = ()>> Future for InScope<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<()> {
        let this = self.get_mut();
        let code = this.code.as_mut();
        let is_ended = this.node.is_over().is_some()
            || this.node.enter(|| code.poll(task)).is_ready()
            || this.node.is_over().is_some();
        if is_ended {
            this.node.leave(this.ticket);
            return Poll::Ready(());
        }
        this.node.wait(&mut this.ticket, task.waker());
        Poll::Pending
    }
}

/// What runs when a scope is cancelled, once its code is gone.
type Cleanup = Box<dyn FnOnce(Failure) -> Boxed<()>>;

enum State<T, E> {
    New,
    Running(Option<Timer>),
    /// Cancelled: the output is ready once the cleanup has ended.
    Cleaning(Option<Shielded<Boxed<()>>>, Result<T, E>),
    Done,
}

/// Code that runs in a scope; see [`Scope::run`].
#[must_use = "futures do nothing unless awaited"]
pub struct ScopeRun<F, T, E> {
    node: Rc<Node>,
    /// `None` once it has ended or was dropped.
    code: Option<Pin<Box<F>>>,
    limit: Option<Duration>,
    cleanup: Option<Cleanup>,
    /// True while the scope counts on the cleanup.
    is_counted: bool,
    ticket: u64,
    state: State<T, E>,
}

impl<F, T, E> fmt::Debug for ScopeRun<F, T, E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ScopeRun")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

// The code is pinned on the heap; nothing else is ever pinned.
impl<F, T, E> Unpin for ScopeRun<F, T, E> {}

impl<F, T, E> ScopeRun<F, T, E> {
    /// Cancels the scope when `limit` has passed since the first poll, on a durable timer that
    /// belongs to the scope around it. The output is then a timeout failure with the code
    /// `elapsed`.
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Runs `cleanup` when the scope is cancelled, after its code was dropped and before the
    /// output is given. It gets the cancellation and is shielded: it may run activities and wait,
    /// and the scopes around it wait for it.
    pub fn cleanup<C>(mut self, cleanup: impl FnOnce(Failure) -> C + 'static) -> Self
    where
        C: Future<Output = ()> + 'static,
    {
        self.cleanup = Some(Box::new(|failure| Box::pin(cleanup(failure))));
        self
    }

    /// The scope counts on the cleanup from its beginning to its end.
    fn count(&mut self, is_counted: bool) {
        match (self.is_counted, is_counted) {
            (false, true) => self.node.begin_cleanup(),
            (true, false) => self.node.end_cleanup(),
            (true, true) | (false, false) => {}
        }
        self.is_counted = is_counted;
    }

    fn begin(&mut self) {
        let is_open = self.node.cancellation().is_none();
        let timer = self.limit.filter(|_| is_open).map(Timer::start);
        self.count(is_open && self.cleanup.is_some());
        self.state = State::Running(timer);
    }
}

impl<F, T, E> ScopeRun<F, T, E>
where
    F: Future<Output = Result<T, E>>,
    E: From<Failure>,
{
    /// Polls the code, unless the scope has given it up; then, the limit.
    fn run(&mut self, task: &mut TaskContext<'_>) -> Option<Result<T, E>> {
        if self.node.is_over().is_none()
            && let Some(code) = &mut self.code
            && let Poll::Ready(output) = self.node.enter(|| code.as_mut().poll(task))
        {
            return Some(output);
        }
        if let State::Running(Some(timer)) = &mut self.state
            && let Some(limit) = self.limit
            && Pin::new(timer).poll(task).is_ready()
        {
            self.state = State::Running(None);
            self.node.cancel(&Failure::from(Elapsed::new(limit)));
        }
        None
    }

    /// Drops the code. The cleanup is next, if there is one and the code had begun.
    fn give_up(&mut self, failure: Failure) {
        drop(self.code.take());
        let cleanup = self.cleanup.take().filter(|_| self.is_counted);
        let cleanup = cleanup.map(|cleanup| {
            let node = Node::inside(self.node.parent(), true);
            let work = node.enter(|| cleanup(failure.clone()));
            Shielded::on(node, work)
        });
        self.state = State::Cleaning(cleanup, Err(E::from(failure)));
    }

    /// Lets go of the scope: the code, the limit and the cleanup are over.
    fn end(&mut self) {
        self.state = State::Done;
        drop(self.code.take());
        self.count(false);
    }
}

impl<F, T, E> Future for ScopeRun<F, T, E>
where
    F: Future<Output = Result<T, E>>,
    E: From<Failure>,
{
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if matches!(this.state, State::New) {
            this.begin();
        }
        if matches!(this.state, State::Running(_)) {
            if let Some(output) = this.run(task) {
                this.end();
                return Poll::Ready(output);
            }
            match this.node.is_over() {
                Some(failure) => this.give_up(failure),
                None => this.node.wait(&mut this.ticket, task.waker()),
            }
        }
        let State::Cleaning(cleanup, _) = &mut this.state else {
            return Poll::Pending;
        };
        if let Some(cleanup) = cleanup
            && Pin::new(cleanup).poll(task).is_pending()
        {
            return Poll::Pending;
        }
        let state = mem::replace(&mut this.state, State::Done);
        this.end();
        match state {
            State::Cleaning(_, output) => Poll::Ready(output),
            State::New | State::Running(_) | State::Done => Poll::Pending,
        }
    }
}

impl<F, T, E> Drop for ScopeRun<F, T, E> {
    fn drop(&mut self) {
        self.node.leave(self.ticket);
        self.count(false);
    }
}
