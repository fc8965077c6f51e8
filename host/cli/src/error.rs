//! What went wrong, as a person needs it: a kind that is the exit code, a message, hints.

use std::fmt;
use std::process::ExitCode;

/// What a script may conclude from a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Anything without a code of its own.
    Failure,
    /// The command line makes no sense.
    Usage,
    /// There is nothing of that name.
    NotFound,
    /// Already started, or already closed.
    Conflict,
    /// Refused: invalid, too large, not a component.
    Refused,
    /// The server cannot be reached or cannot answer now.
    Unavailable,
    /// A workflow ended without a result, or a history does not fit its code.
    Unsuccessful,
    /// The host must be restarted by whoever watches it.
    Fatal,
}

impl Kind {
    /// The process's exit code; documented in `docs/cli.md` and in `--help`.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Failure => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::Conflict => 4,
            Self::Refused => 5,
            Self::Unavailable => 6,
            Self::Unsuccessful => 7,
            Self::Fatal => 70,
        }
    }

    /// The kind of the server's error: of its code if that says more than its HTTP status.
    pub(crate) fn of_answer(status: u16, code: &str) -> Self {
        match status {
            _ if code == "limit-reached" => Self::Refused,
            404 => Self::NotFound,
            409 | 410 => Self::Conflict,
            400 | 403 | 413 | 415 | 422 | 429 => Self::Refused,
            408 | 502..=504 => Self::Unavailable,
            _ => Self::Failure,
        }
    }
}

/// A failed command.
#[derive(Debug)]
pub(crate) struct Error {
    pub(crate) kind: Kind,
    pub(crate) message: String,
    pub(crate) hints: Vec<String>,
    /// A stable name for programs; empty when there is none.
    pub(crate) code: String,
}

/// The result of everything that a command does.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hints: Vec::new(),
            code: String::new(),
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    pub(crate) fn failure(message: impl Into<String>) -> Self {
        Self::new(Kind::Failure, message)
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(Kind::Refused, message)
    }

    /// A file that could not be used: `what` says for what.
    pub(crate) fn file(what: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        let is_missing = error.kind() == std::io::ErrorKind::NotFound;
        let kind = if is_missing {
            Kind::NotFound
        } else {
            Kind::Failure
        };
        Self::new(kind, format!("cannot {what} {}: {error}", path.display()))
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    #[must_use]
    pub(crate) fn code(mut self, code: impl Into<String>) -> Self {
        self.code = code.into();
        self
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.kind.exit_code())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<steadfast_model::id::Invalid> for Error {
    fn from(error: steadfast_model::id::Invalid) -> Self {
        Self::new(Kind::Refused, error.to_string())
    }
}
