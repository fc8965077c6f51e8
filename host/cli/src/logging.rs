//! Logs of the server, on standard error.

use std::io::IsTerminal;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

use crate::error::{Error, Result};

/// What is logged when `RUST_LOG` says nothing.
const DEFAULT_FILTER: &str = "info";

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    // For people. (A document comment would make the help longer.)
    Text,
    // One JSON object a line.
    Json,
}

/// Sends everything that is logged to standard error.
pub(crate) fn start(format: LogFormat) -> Result<()> {
    let filter = match std::env::var("RUST_LOG") {
        Ok(text) if !text.is_empty() => EnvFilter::try_new(&text)
            .map_err(|error| Error::usage(format!("RUST_LOG={text:?} is no filter: {error}")))?,
        Ok(_) | Err(_) => EnvFilter::new(DEFAULT_FILTER),
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let wants_colors = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let started = match format {
        LogFormat::Json => builder.json().try_init(),
        LogFormat::Text => builder
            .with_ansi(wants_colors && std::io::stderr().is_terminal())
            .try_init(),
    };
    started.map_err(|error| Error::failure(format!("cannot start logging: {error}")))
}
