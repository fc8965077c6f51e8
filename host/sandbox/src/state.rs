//! What the host keeps per instance while a guest runs: whom its calls reach, and its limits.

use std::sync::Arc;

use steadfast_ports::HostCalls;
use steadfast_ports::guest::Stop;

use crate::desk::Desk;
use crate::limit::Limiter;
use crate::mailbox::Mailbox;
use crate::options::Options;

/// Data of one wasmtime store.
pub(crate) struct State {
    /// What the instance holds.
    pub(crate) limiter: Limiter,
    /// Whom its calls reach.
    pub(crate) calls: Calls,
    /// For a guest that waits inside its calls: where those who drive it leave what it waits for,
    /// and whom its calls reach.
    pub(crate) desk: Option<Arc<Desk>>,
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
            desk: None,
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
        match self.lend() {
            Calls::Run(calls) => Ok(calls),
            Calls::Nobody => Err(Unanswerable { call }),
        }
    }

    /// Puts back what [`State::take`] lent.
    pub(crate) fn put(&mut self, calls: Box<dyn HostCalls>) {
        self.put_back(Calls::Run(calls));
    }

    /// Takes out whom the calls reach, whoever that is.
    pub(crate) fn lend(&mut self) -> Calls {
        match &self.desk {
            Some(desk) => desk.lock().calls.take().map_or(Calls::Nobody, Calls::Run),
            None => std::mem::replace(&mut self.calls, Calls::Nobody),
        }
    }

    /// Puts back what [`State::lend`] took out.
    pub(crate) fn put_back(&mut self, calls: Calls) {
        match (&self.desk, calls) {
            (Some(desk), Calls::Run(calls)) => desk.lock().calls = Some(calls),
            (Some(_), Calls::Nobody) => {}
            (None, calls) => self.calls = calls,
        }
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
        if self.desk.is_some() {
            let mut calls = self.take(call)?;
            let answer = question(calls.as_mut());
            self.put(calls);
            return Ok(answer?);
        }
        match &mut self.calls {
            Calls::Run(calls) => Ok(question(calls.as_mut())?),
            Calls::Nobody => Err(Unanswerable { call }.into()),
        }
    }

    /// The mailbox of a guest that waits inside its calls.
    ///
    /// # Errors
    /// [`Unanswerable`] for one that does not, or while there is no run.
    pub(crate) fn mailbox<R>(
        &mut self,
        call: &'static str,
        action: impl FnOnce(&mut Mailbox) -> Result<R, Stop>,
    ) -> wasmtime::Result<R> {
        let mut inner = match &self.desk {
            Some(desk) => desk.lock(),
            None => return Err(Unanswerable { call }.into()),
        };
        if inner.calls.is_none() {
            return Err(Unanswerable { call }.into());
        }
        Ok(action(&mut inner.mailbox)?)
    }

    /// Tells the one who drives a waiting guest how much memory it holds.
    pub(crate) fn note_memory(&self) {
        if let Some(desk) = &self.desk {
            let mut inner = desk.lock();
            inner.memory_bytes = self.limiter.memory_bytes();
            inner.initial_bytes = self.limiter.initial_bytes();
        }
    }

    /// Notes an operation that a call gave out.
    pub(crate) fn given(&mut self, operation: u32) {
        if let Some(desk) = &self.desk {
            desk.lock().mailbox.given(operation);
        }
    }

    /// Notes that the guest cancelled a timer.
    pub(crate) fn timer_canceled(&mut self, operation: u32) {
        if let Some(desk) = &self.desk {
            let mut inner = desk.lock();
            let event = inner
                .calls
                .as_ref()
                .map_or(0, |calls| calls.history_length());
            inner.mailbox.timer_canceled(operation, event);
        }
    }
}
