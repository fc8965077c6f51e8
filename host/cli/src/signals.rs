//! The signals that stop a server.

use crate::error::{Error, Result};

/// SIGINT and SIGTERM; elsewhere than on Unix, Ctrl-C.
#[derive(Debug)]
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// Takes the signals over; without a waiting [`Signals::next`] they do nothing from now on.
    #[cfg(unix)]
    pub(crate) fn new() -> Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let failed = |error| Error::failure(format!("cannot wait for signals: {error}"));
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
        })
    }

    /// Waits for a signal and returns its name.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }

    /// Ctrl-C needs no preparation.
    #[cfg(not(unix))]
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {})
    }

    /// Waits for Ctrl-C; for ever, if it cannot be waited for.
    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) -> &'static str {
        match tokio::signal::ctrl_c().await {
            Ok(()) => "Ctrl-C",
            Err(_) => std::future::pending().await,
        }
    }
}
