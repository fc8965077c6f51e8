//! What can go wrong for a caller, by what the caller may do about it.

use steadfast_engine::Rejection;
use steadfast_model::id::Invalid;
use steadfast_model::{Failure, RunId};
use steadfast_ports::guest::Refusal;
use steadfast_ports::store;

use crate::message::CallError;

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is nothing of that name.
    #[error("{what} not found: {name}")]
    NotFound {
        /// What kind of thing.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// An open execution has this workflow id.
    #[error("an execution with this workflow id is already running (run {run_id})")]
    AlreadyStarted {
        /// The open run.
        run_id: RunId,
    },
    /// The workflow id had a run, and the start does not want to use it again.
    #[error(
        "the workflow id was used by run {run_id}, which has {status}; the reuse policy {policy} \
         forbids another run"
    )]
    IdUsed {
        /// The last run.
        run_id: RunId,
        /// How it ended.
        status: &'static str,
        /// The policy of the start.
        policy: &'static str,
    },
    /// The run has ended.
    #[error("the execution has already {status}")]
    Closed {
        /// How.
        status: &'static str,
    },
    /// The run's state is one that the query's condition rejects.
    #[error("the query is rejected: the execution is {status}")]
    QueryRejected {
        /// Where it stands.
        status: &'static str,
    },
    /// The query has no answer.
    #[error("the query failed: {0}")]
    QueryFailed(Failure),
    /// The task is no longer the caller's.
    #[error("the task is gone: {0}")]
    TaskGone(String),
    /// The request makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// Something is larger than allowed.
    #[error("{what} is {bytes} bytes; the limit is {limit}")]
    TooLarge {
        /// What.
        what: &'static str,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A limit of the run is reached.
    #[error("{0}")]
    LimitReached(String),
    /// The component was refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The host cannot answer now. Whether the request took effect may be unknown: a repetition
    /// with the same request id is safe.
    #[error("unavailable: {0}")]
    Unavailable(String),
}

/// What a caller may do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Try again later.
    Retry,
    /// The request is at fault.
    Reject,
}

impl Error {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not-found",
            Self::AlreadyStarted { .. } => "already-started",
            Self::IdUsed { .. } => "id-used",
            Self::Closed { .. } => "execution-closed",
            Self::QueryRejected { .. } => "query-rejected",
            Self::QueryFailed(_) => "query-failed",
            Self::TaskGone(_) => "task-gone",
            Self::Invalid(_) => "invalid-argument",
            Self::TooLarge { .. } => "too-large",
            Self::LimitReached(_) => "limit-reached",
            Self::Refused(refusal) => refusal.code(),
            Self::Unavailable(_) => "unavailable",
        }
    }

    /// What the caller may do.
    #[must_use]
    pub fn class(&self) -> Class {
        if matches!(self, Self::Unavailable(_)) {
            Class::Retry
        } else {
            Class::Reject
        }
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        match error {
            CallError::NoSuchRun(run) => Self::NotFound {
                what: "run",
                name: run.to_string(),
            },
            CallError::Rejected(Rejection::Closed(status)) => Self::Closed {
                status: status.name(),
            },
            CallError::Rejected(
                rejection @ (Rejection::TooManySignals
                | Rejection::TooManyUpdates
                | Rejection::TooManyUpdatesInFlight
                | Rejection::UpdatesTooLarge),
            ) => Self::LimitReached(rejection.to_string()),
            CallError::Rejected(Rejection::NoSuchActivityId(name)) => Self::NotFound {
                what: "pending activity",
                name,
            },
            CallError::Rejected(
                rejection @ (Rejection::CancelNotRequested(_) | Rejection::BadOptions(_)),
            ) => Self::Invalid(rejection.to_string()),
            CallError::Rejected(rejection) => Self::TaskGone(rejection.to_string()),
            CallError::Conflict(text) | CallError::Unavailable(text) => Self::Unavailable(text),
        }
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<Invalid> for Error {
    fn from(error: Invalid) -> Self {
        Self::Invalid(error.to_string())
    }
}
