//! The run's log. Lines of a replayed part are dropped by the host: each line appears once.

use std::fmt;

use crate::host;

/// How important a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For whoever debugs the workflow.
    Debug,
    /// What happened.
    Info,
    /// Something to look at.
    Warn,
    /// Something went wrong.
    Error,
}

/// Writes one line, at most 16 KiB; the host cuts longer ones.
pub fn write(level: Level, message: fmt::Arguments<'_>) {
    match message.as_str() {
        Some(text) => host::write_log(level, text),
        None => host::write_log(level, &message.to_string()),
    }
}

/// Writes a line of level debug, with the syntax of `format!`.
#[macro_export]
macro_rules! debug {
    ($($arguments:tt)+) => {
        $crate::log::write($crate::log::Level::Debug, ::std::format_args!($($arguments)+))
    };
}

/// Writes a line of level info, with the syntax of `format!`.
#[macro_export]
macro_rules! info {
    ($($arguments:tt)+) => {
        $crate::log::write($crate::log::Level::Info, ::std::format_args!($($arguments)+))
    };
}

/// Writes a line of level warn, with the syntax of `format!`.
#[macro_export]
macro_rules! warn {
    ($($arguments:tt)+) => {
        $crate::log::write($crate::log::Level::Warn, ::std::format_args!($($arguments)+))
    };
}

/// Writes a line of level error, with the syntax of `format!`.
#[macro_export]
macro_rules! error {
    ($($arguments:tt)+) => {
        $crate::log::write($crate::log::Level::Error, ::std::format_args!($($arguments)+))
    };
}
