//! Queries and updates: questions from outside, answered by closures that the workflow registers.
//!
//! Queries and validators only read; the handlers of updates are tasks of the run.
//! Read next: `context.rs`, `component.rs`.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context as TaskContext, Poll};

use crate::failure::Failure;
use crate::operation::Outcome;
use crate::payload::{Decode, Encode, Payload};
use crate::waiters::Waiters;
use crate::{host, run};

type Query = Rc<dyn Fn(Payload) -> Outcome>;
type Validate = Rc<dyn Fn(Payload) -> Result<(), Failure>>;
type Handle = Rc<dyn Fn(Payload) -> Pin<Box<dyn Future<Output = Outcome>>>>;

#[derive(Clone)]
struct Update {
    validate: Validate,
    handle: Handle,
}

/// What is asked while only reading calls are allowed.
#[derive(Clone, Debug)]
enum Asked {
    Query(String),
    Validator(String),
}

impl fmt::Display for Asked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Query(name) => write!(formatter, "the query {name:?}"),
            Self::Validator(name) => write!(formatter, "the validator of update {name:?}"),
        }
    }
}

/// The handlers of a run.
pub(crate) struct Handlers {
    queries: RefCell<BTreeMap<String, Query>>,
    updates: RefCell<BTreeMap<String, Update>>,
    /// Updates whose handler has not ended.
    running: Cell<usize>,
    /// Who waits for the last of them.
    waiters: RefCell<Waiters>,
    asked: RefCell<Option<Asked>>,
}

impl Handlers {
    pub(crate) const fn new() -> Self {
        Self {
            queries: RefCell::new(BTreeMap::new()),
            updates: RefCell::new(BTreeMap::new()),
            running: Cell::new(0),
            waiters: RefCell::new(Waiters::new()),
            asked: RefCell::new(None),
        }
    }

    /// Forgets everything for the next run of the same thread.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn reset(&self) {
        let queries = self.queries.take();
        let updates = self.updates.take();
        self.running.set(0);
        self.waiters.replace(Waiters::new());
        self.asked.replace(None);
        drop((queries, updates));
    }

    pub(crate) fn on_query<I: Decode, R: Answer>(
        &self,
        name: &str,
        handler: impl Fn(I) -> R + 'static,
    ) {
        let query = move |input| handler(I::decode(input)?).into_answer()?.encode(Vec::new());
        self.queries
            .borrow_mut()
            .insert(name.to_owned(), Rc::new(query));
    }

    pub(crate) fn on_update<I, O, F>(
        &self,
        name: &str,
        validator: impl Fn(&I) -> Result<(), Failure> + 'static,
        handler: impl Fn(I) -> F + 'static,
    ) where
        I: Decode,
        O: Encode + 'static,
        F: Future<Output = Result<O, Failure>> + 'static,
    {
        let validate = move |input| validator(&I::decode(input)?);
        let handle = move |input| -> Pin<Box<dyn Future<Output = Outcome>>> {
            let work = I::decode(input).map(&handler);
            Box::pin(async move { work?.await?.encode(run::spare_buffer()) })
        };
        let update = Update {
            validate: Rc::new(validate),
            handle: Rc::new(handle),
        };
        self.updates.borrow_mut().insert(name.to_owned(), update);
    }

    /// Answers the export `query`.
    pub(crate) fn query(&self, name: &str, input: Payload) -> Outcome {
        let query = self.queries.borrow().get(name).cloned();
        let query = query.ok_or_else(|| unknown("query", name, &self.queries.borrow()))?;
        let _asking = self.ask(Asked::Query(name.to_owned()));
        query(input)
    }

    /// Answers the export `validate-update`.
    pub(crate) fn validate(&self, name: &str, input: Payload) -> Result<(), Failure> {
        let update = self.updates.borrow().get(name).cloned();
        let update = update.ok_or_else(|| unknown("update", name, &self.updates.borrow()))?;
        let _asking = self.ask(Asked::Validator(name.to_owned()));
        (update.validate)(input)
    }

    /// Starts the handler of an accepted update as a task.
    #[allow(
        clippy::panic,
        reason = "code that does not know what the history has accepted must block the run"
    )]
    pub(crate) fn accept(&self, update_id: String, name: &str, input: Payload) {
        let Some(update) = self.updates.borrow().get(name).cloned() else {
            panic!("the history has accepted the update {name:?}, which this code does not handle");
        };
        self.running.set(self.running.get() + 1);
        let work = (update.handle)(input);
        run::with(|run| {
            run.executor.spawn(Box::pin(async move {
                let outcome = work.await;
                host::complete_update(&update_id, outcome);
                run::with(|run| run.handlers.ended());
            }));
        });
    }

    fn ended(&self) {
        self.running.set(self.running.get().saturating_sub(1));
        if self.running.get() > 0 {
            return;
        }
        loop {
            let waker = self.waiters.borrow_mut().pop();
            match waker {
                Some(waker) => waker.wake(),
                None => return,
            }
        }
    }

    /// How many updates are accepted and not completed.
    pub(crate) fn running(&self) -> usize {
        self.running.get()
    }

    /// Notes that only reading calls are allowed, until the guard is dropped.
    fn ask(&self, asked: Asked) -> Asking<'_> {
        self.asked.replace(Some(asked));
        Asking(self)
    }

    /// Panics inside a query or a validator: these must leave no trace. The host refuses the call
    /// as well; this names the place in the code.
    #[allow(clippy::panic, reason = "a mistake of the code, told where it is made")]
    pub(crate) fn may_command(&self, call: &str) {
        if let Some(asked) = &*self.asked.borrow() {
            panic!("{asked} called {call}; it may only read");
        }
    }
}

/// Ends a question when it is dropped.
struct Asking<'a>(&'a Handlers);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.asked.replace(None);
    }
}

fn unknown<T>(what: &str, name: &str, known: &BTreeMap<String, T>) -> Failure {
    let known = if known.is_empty() {
        format!("it has no {what} handlers")
    } else {
        let names: Vec<&str> = known.keys().map(String::as_str).collect();
        format!("known: {}", names.join(", "))
    };
    let message = format!("the workflow does not handle the {what} {name:?}; {known}");
    Failure::non_retryable(format!("unknown-{what}"), message)
}

/// What a query's handler returns: a value, or a `Result` of one.
pub trait Answer {
    /// The value.
    type Output: Encode;

    /// Turns it into a result.
    ///
    /// # Errors
    ///
    /// The handler's failure.
    fn into_answer(self) -> Result<Self::Output, Failure>;
}

impl<T: Encode, E: Into<Failure>> Answer for Result<T, E> {
    type Output = T;

    fn into_answer(self) -> Result<T, Failure> {
        self.map_err(Into::into)
    }
}

/// The future of the moment when no update's handler is running; see
/// [`crate::Context::handlers_finished`].
#[derive(Debug, Default)]
#[must_use = "futures do nothing unless awaited"]
pub struct HandlersFinished {
    /// The place in the queue; 0 before the first wait.
    ticket: u64,
}

impl Future for HandlersFinished {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<()> {
        run::with(|run| {
            if run.handlers.running() == 0 {
                return Poll::Ready(());
            }
            let mut waiters = run.handlers.waiters.borrow_mut();
            waiters.wait(&mut self.ticket, task.waker());
            Poll::Pending
        })
    }
}

impl Drop for HandlersFinished {
    fn drop(&mut self) {
        if self.ticket != 0 {
            run::try_with(|run| drop(run.handlers.waiters.borrow_mut().leave(self.ticket)));
        }
    }
}
