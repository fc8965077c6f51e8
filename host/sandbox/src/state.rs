//! What the host keeps per instance while a guest runs: whom its calls reach, and its limits.

use steadfast_ports::HostCalls;
use steadfast_ports::guest::Stop;

use crate::limit::Limiter;
use crate::options::Options;

/// Data of one wasmtime store.
pub(crate) struct State {
    /// What the instance holds.
    pub(crate) limiter: Limiter,
    /// Whom its calls reach.
    pub(crate) calls: Calls,
    /// The last line of this activation that told of a panic, without its prefix.
    pub(crate) panic_line: Option<String>,
}

/// Whom a guest's calls reach.
pub(crate) enum Calls {
    /// Nobody: the guest is being made, or describes itself. Only `log` is allowed.
    Nobody,
    /// A run.
    Run(Box<dyn HostCalls>),
}

/// A call of the guest while nobody could answer it.
#[derive(Debug, thiserror::Error)]
#[error("the guest called {call} while it was being made or described itself")]
pub(crate) struct Unanswerable {
    /// The call, as `interface.function`.
    pub(crate) call: &'static str,
}

impl State {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            limiter: Limiter::new(options),
            calls: Calls::Nobody,
            panic_line: None,
        }
    }

    /// Starts an activation: calls reach this run, and nothing of the one before is remembered.
    pub(crate) fn begin(&mut self, calls: Box<dyn HostCalls>) {
        self.calls = Calls::Run(calls);
        self.panic_line = None;
        let _earlier = self.limiter.take_denied();
    }

    /// Lends the run to one import, which must put it back with [`State::put`]. Taken out, so that
    /// arguments may stay borrowed from the guest's memory meanwhile.
    ///
    /// # Errors
    /// [`Unanswerable`] when there is no run.
    pub(crate) fn take(&mut self, call: &'static str) -> Result<Box<dyn HostCalls>, Unanswerable> {
        match std::mem::replace(&mut self.calls, Calls::Nobody) {
            Calls::Run(calls) => Ok(calls),
            Calls::Nobody => Err(Unanswerable { call }),
        }
    }

    /// Puts back what [`State::take`] lent.
    pub(crate) fn put(&mut self, calls: Box<dyn HostCalls>) {
        self.calls = Calls::Run(calls);
    }

    /// Asks the run.
    ///
    /// # Errors
    /// [`Unanswerable`] when there is no run, or the [`Stop`] that it answers.
    pub(crate) fn ask<R>(
        &mut self,
        call: &'static str,
        question: impl FnOnce(&mut dyn HostCalls) -> Result<R, Stop>,
    ) -> wasmtime::Result<R> {
        match &mut self.calls {
            Calls::Run(calls) => Ok(question(calls.as_mut())?),
            Calls::Nobody => Err(Unanswerable { call }.into()),
        }
    }
}
