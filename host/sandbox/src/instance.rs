//! One instance of a guest, driven by activations.

use std::sync::Arc;

use steadfast_model::command::Step;
use steadfast_model::{Event, Payload};
use steadfast_ports::guest::{Answered, Driven, Error};
use steadfast_ports::{Guest, HostCalls};
use wasmtime::Store;

use crate::abi::exports::Exports;
use crate::fault;
use crate::options::Options;
use crate::state::{Calls, State};
use crate::ticker::Ticker;

/// What an instance costs besides the memory that it grows by: wasmtime's store and instance data,
/// page tables, and those pages of its first memory that it touches. Measured for a Rust guest
/// with one pending activity: 55 to 70 KiB.
pub(crate) const FIXED_BYTES: usize = 96 * 1024;

/// The part of the initial memory that is taken as hardly touched: the 1 MiB that the linkers of
/// Rust and C set aside for the stack, and static data, which is mapped from the compiled code.
pub(crate) const UNTOUCHED_BYTES: usize = (1024 + 256) * 1024;

/// What every instance shares.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) ticker: Ticker,
}

/// A run's instance.
pub(crate) struct SandboxedGuest {
    store: Store<State>,
    exports: Exports,
    shared: Arc<Shared>,
    batch_max: usize,
    /// An activation failed; wasmtime would refuse to enter the instance again.
    is_failed: bool,
}

impl SandboxedGuest {
    pub(crate) fn new(
        store: Store<State>,
        exports: Exports,
        shared: Arc<Shared>,
        batch_max: usize,
    ) -> Self {
        Self {
            store,
            exports,
            shared,
            batch_max,
            is_failed: false,
        }
    }

    /// Enters the guest with a run behind its calls.
    fn drive<T>(
        &mut self,
        calls: Box<dyn HostCalls>,
        enter: impl FnOnce(&Exports, &mut Store<State>) -> wasmtime::Result<T>,
    ) -> (Result<T, Error>, Box<dyn HostCalls>) {
        if self.is_failed {
            let text = "the instance failed before and must not be used again";
            return (Err(Error::Unavailable(text.to_owned())), calls);
        }
        self.store.set_epoch_deadline(self.shared.ticker.enter());
        let state = self.store.data_mut();
        state.begin(calls);
        let result = enter(&self.exports, &mut self.store);
        let state = self.store.data_mut();
        let result = result.map_err(|error| {
            self.is_failed = true;
            fault::classify(&error, state, &self.shared.options)
        });
        (result, taken_back(state))
    }
}

/// The run's calls after an activation. Every import puts them back, also when it fails.
#[allow(
    clippy::expect_used,
    reason = "an import that kept the calls is a bug of this crate"
)]
fn taken_back(state: &mut State) -> Box<dyn HostCalls> {
    match std::mem::replace(&mut state.calls, Calls::Nobody) {
        Calls::Run(calls) => Some(calls),
        Calls::Nobody => None,
    }
    .expect("imports put the host calls back")
}

impl Guest for SandboxedGuest {
    fn start(&mut self, workflow_type: &str, input: &Payload, calls: Box<dyn HostCalls>) -> Driven {
        self.drive(calls, |exports, store| {
            Ok(Step::try_from(exports.start(
                store,
                workflow_type,
                input,
            )?)?)
        })
    }

    fn resume(&mut self, events: &[Event], calls: Box<dyn HostCalls>) -> Driven {
        self.drive(calls, |exports, store| {
            Ok(Step::try_from(exports.resume(store, events)?)?)
        })
    }

    fn query(
        &mut self,
        name: &str,
        input: &Payload,
        calls: Box<dyn HostCalls>,
    ) -> Answered<Payload> {
        self.drive(calls, |exports, store| exports.query(store, name, input))
    }

    fn validate_update(
        &mut self,
        name: &str,
        input: &Payload,
        calls: Box<dyn HostCalls>,
    ) -> Answered<()> {
        self.drive(calls, |exports, store| {
            exports.validate_update(store, name, input)
        })
    }

    fn batch_max(&self) -> usize {
        self.batch_max
    }

    /// An estimate of the resident bytes: the memory that the guest grew by, what it began with
    /// beyond the first 1.25 MiB, and a fixed 96 KiB for everything else. Right for guests that
    /// leave most of their initial stack and static data alone, which is all but the strange ones;
    /// for these it is up to 1.16 MiB too low.
    fn memory_bytes(&self) -> usize {
        let limiter = &self.store.data().limiter;
        let untouched = limiter.initial_bytes().min(UNTOUCHED_BYTES);
        limiter
            .memory_bytes()
            .saturating_sub(untouched)
            .saturating_add(FIXED_BYTES)
    }
}
