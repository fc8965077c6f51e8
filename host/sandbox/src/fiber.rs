//! An instance of the world `blocking-workflow`: its one call of `run` is a future on a stack of its
//! own, parked while the guest waits and polled after each event.
//!
//! The future is polled by hand and never wakes anybody: it is pending only inside the imports of
//! `waiting`, and only the delivery of an event can change what these wait for.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use steadfast_model::command::Step;
use steadfast_model::{Event, Failure, FailureKind, Payload};
use steadfast_ports::guest::{Driven, Error};
use steadfast_ports::{Guest, HostCalls};
use wasmtime::component::{Func, TypedFunc};
use wasmtime::{Store, UpdateDeadline};

use crate::abi::lift::{FailureValue, PayloadValue};
use crate::abi::lower::PayloadOwned;
use crate::desk::Desk;
use crate::fault;
use crate::instance::{FIXED_BYTES, Shared, UNTOUCHED_BYTES};
use crate::state::State;

/// What a parked fiber costs besides its instance: the touched part of its stack, and what wasmtime
/// keeps for it. Measured: 42 kB.
const FIBER_BYTES: usize = 48 * 1024;

/// The type of the export `run`.
pub(crate) type RunFunc = TypedFunc<(String, PayloadOwned), (Result<PayloadValue, FailureValue>,)>;

type Ended = Result<Result<Payload, Failure>, Error>;

enum Fiber {
    /// Made, not started.
    New(Box<Store<State>>, Func),
    /// Parked or running.
    Begun(Pin<Box<dyn Future<Output = Ended> + Send>>),
    /// It has ended, or failed.
    Over,
}

/// A run's instance.
pub(crate) struct BlockingGuest {
    fiber: Fiber,
    desk: Arc<Desk>,
    shared: Arc<Shared>,
}

/// Polls a future that cannot have to wait.
///
/// # Errors
/// wasmtime's; one of ours when it waits nevertheless.
pub(crate) fn at_once<T>(future: impl Future<Output = wasmtime::Result<T>>) -> wasmtime::Result<T> {
    let mut future = std::pin::pin!(future);
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(result) => result,
        Poll::Pending => Err(wasmtime::Error::msg(
            "the component waits before a run has begun",
        )),
    }
}

impl BlockingGuest {
    /// A guest around an instance that was just made.
    ///
    /// # Errors
    /// wasmtime's, when `run` is of another type.
    pub(crate) fn new(
        mut store: Store<State>,
        run: Func,
        shared: Arc<Shared>,
    ) -> wasmtime::Result<Self> {
        let _checked: RunFunc = run.typed(&store)?;
        let desk = Arc::new(Desk::default());
        store.data_mut().desk = Some(Arc::clone(&desk));
        let (clock, limits) = (Arc::clone(&shared), Arc::clone(&desk));
        // The deadline belongs to the store, which the fiber owns: it cannot be moved at the start of
        // an activation, so it asks how long that has taken.
        store.epoch_deadline_callback(move |_| {
            let took = clock.ticker.ticks().saturating_sub(limits.lock().began);
            let limit = clock.ticker.enter();
            Ok(match limit.checked_sub(took) {
                Some(left) if left > 0 => UpdateDeadline::Continue(left),
                _ => UpdateDeadline::Interrupt,
            })
        });
        Ok(Self {
            fiber: Fiber::New(Box::new(store), run),
            desk,
            shared,
        })
    }

    /// Lets the guest run until it waits or ends.
    fn poll(&mut self) -> Result<Step, Error> {
        let Fiber::Begun(future) = &mut self.fiber else {
            let text = "the instance has ended or failed before and must not be used again";
            return Err(Error::Unavailable(text.to_owned()));
        };
        let polled = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(ended) = polled else {
            return Ok(Step::Blocked);
        };
        self.fiber = Fiber::Over;
        Ok(match ended? {
            Ok(result) => Step::Completed(result),
            Err(failure) if is_cancellation(&failure) => Step::Canceled(failure),
            Err(failure) => Step::Failed(failure),
        })
    }

    /// Enters the guest with a run behind its calls.
    fn drive(
        &mut self,
        calls: Box<dyn HostCalls>,
        action: impl FnOnce(&mut Self) -> Result<Step, Error>,
    ) -> Driven {
        self.shared.ticker.enter();
        {
            let mut inner = self.desk.lock();
            inner.began = self.shared.ticker.ticks();
            inner.calls = Some(calls);
        }
        let result = action(self);
        if result.is_err() {
            self.fiber = Fiber::Over;
        }
        (result, self.taken_back())
    }

    /// The run's calls after an activation. Every import puts them back, also when it fails.
    #[allow(
        clippy::expect_used,
        reason = "an import that kept the calls is a bug of this crate"
    )]
    fn taken_back(&self) -> Box<dyn HostCalls> {
        let calls = self.desk.lock().calls.take();
        calls.expect("imports put the host calls back")
    }
}

/// A failure that accepts a cancel request: a cancellation, outermost.
fn is_cancellation(failure: &Failure) -> bool {
    let outer = failure.outer();
    outer.is_some_and(|frame| frame.kind == FailureKind::Canceled)
}

async fn run(
    mut store: Box<Store<State>>,
    run: Func,
    workflow_type: String,
    input: PayloadOwned,
    shared: Arc<Shared>,
) -> Ended {
    let called = match run.typed(&*store) as wasmtime::Result<RunFunc> {
        Ok(run) => run.call_async(&mut *store, (workflow_type, input)).await,
        Err(error) => Err(error),
    };
    match called {
        Ok((outcome,)) => Ok(outcome.map(Into::into).map_err(Into::into)),
        Err(error) => Err(fault::classify(&error, store.data_mut(), &shared.options)),
    }
}

impl Guest for BlockingGuest {
    fn start(&mut self, workflow_type: &str, input: &Payload, calls: Box<dyn HostCalls>) -> Driven {
        let (workflow_type, input) = (workflow_type.to_owned(), input.clone().into());
        self.drive(calls, |guest| {
            let Fiber::New(store, func) = std::mem::replace(&mut guest.fiber, Fiber::Over) else {
                let text = "the instance has been started before";
                return Err(Error::Unavailable(text.to_owned()));
            };
            let shared = Arc::clone(&guest.shared);
            guest.fiber = Fiber::Begun(Box::pin(run(store, func, workflow_type, input, shared)));
            guest.poll()
        })
    }

    fn resume(&mut self, events: &[Event], calls: Box<dyn HostCalls>) -> Driven {
        self.drive(calls, |guest| {
            for event in events {
                guest.desk.lock().mailbox.deliver(event);
                let step = guest.poll()?;
                if step != Step::Blocked {
                    return Ok(step);
                }
            }
            Ok(Step::Blocked)
        })
    }

    /// An estimate, as that of a reactive instance, with the fiber added.
    fn memory_bytes(&self) -> usize {
        let inner = self.desk.lock();
        inner
            .memory_bytes
            .saturating_sub(inner.initial_bytes.min(UNTOUCHED_BYTES))
            .saturating_add(inner.mailbox.memory_bytes())
            .saturating_add(FIXED_BYTES)
            .saturating_add(FIBER_BYTES)
    }
}
