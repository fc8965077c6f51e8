//! Failures.

use serde::{Deserialize, Serialize};
use steadfast_model as model;
use steadfast_model::Millis;
use utoipa::ToSchema;

use crate::wire::{Invalid, Payload, is_false, present};

/// Why something failed: frames, outermost first, each caused by the next.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// Outermost first.
    pub frames: Vec<Frame>,
}

/// One link of a failure chain.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Frame {
    /// What kind of failure this is.
    #[serde(default)]
    pub kind: FailureKind,
    /// Text for people.
    #[serde(default)]
    pub message: String,
    /// A stable name for programs: an application's error type, a timeout's kind, an activity's
    /// type.
    #[serde(default)]
    pub code: String,
    /// True when a retry cannot help.
    #[serde(default, skip_serializing_if = "is_false")]
    pub non_retryable: bool,
    /// Replaces the retry policy's next interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_retry_delay_ms: Option<u64>,
    /// Where it happened, in the language's own form.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stack_trace: String,
    /// Structured details.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub details: Option<Payload>,
}

/// What kind of failure a frame describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// Raised by user code.
    #[default]
    Application,
    /// A timeout; the frame's code says which.
    Timeout,
    /// The operation was cancelled.
    Canceled,
    /// The execution was terminated.
    Terminated,
    /// The host failed.
    Server,
    /// An activity failed; the next frame says why.
    Activity,
    /// A child workflow failed; the next frame says why.
    ChildWorkflow,
}

/// Why an activity is not tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RetryState {
    /// It is tried again.
    InProgress,
    /// The failure says that a retry cannot help, or the policy lists its code.
    NonRetryableFailure,
    /// No time is left.
    Timeout,
    /// The policy's attempts are used up.
    MaximumAttemptsReached,
    /// Cancellation was requested.
    CancelRequested,
}

impl Failure {
    /// A failure of one application frame.
    #[must_use]
    pub fn application(code: &str, message: impl Into<String>) -> Self {
        let frame = Frame {
            code: code.to_owned(),
            message: message.into(),
            ..Frame::default()
        };
        Self {
            frames: vec![frame],
        }
    }

    /// The wire form of a failure.
    #[must_use]
    pub fn from_model(failure: &model::Failure) -> Self {
        Self {
            frames: failure
                .frames()
                .iter()
                .cloned()
                .map(Frame::from_model)
                .collect(),
        }
    }

    /// The failure that it stands for, cut to the model's limits.
    ///
    /// # Errors
    /// [`Invalid`] for malformed details.
    pub fn to_model(&self) -> Result<model::Failure, Invalid> {
        let frames = self
            .frames
            .iter()
            .map(Frame::to_model)
            .collect::<Result<_, _>>()?;
        Ok(model::Failure::from_frames(frames))
    }
}

impl std::fmt::Display for Failure {
    /// `outer: cause: root`, for messages.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.to_model() {
            Ok(failure) => failure.fmt(f),
            Err(_) => f.write_str("a failure with malformed details"),
        }
    }
}

impl Frame {
    fn from_model(frame: model::Frame) -> Self {
        Self {
            kind: frame.kind.into(),
            message: frame.message,
            code: frame.code,
            non_retryable: frame.non_retryable,
            next_retry_delay_ms: frame.next_retry_delay.given().map(|delay| delay.0),
            stack_trace: frame.stack_trace,
            details: frame.details.map(Payload::from_model),
        }
    }

    fn to_model(&self) -> Result<model::Frame, Invalid> {
        Ok(model::Frame {
            kind: self.kind.into(),
            message: self.message.clone(),
            code: self.code.clone(),
            non_retryable: self.non_retryable,
            next_retry_delay: Millis(self.next_retry_delay_ms.unwrap_or(0)),
            stack_trace: self.stack_trace.clone(),
            details: self.details.as_ref().map(Payload::to_model).transpose()?,
        })
    }
}

impl From<model::FailureKind> for FailureKind {
    fn from(kind: model::FailureKind) -> Self {
        match kind {
            model::FailureKind::Application => Self::Application,
            model::FailureKind::Timeout => Self::Timeout,
            model::FailureKind::Canceled => Self::Canceled,
            model::FailureKind::Terminated => Self::Terminated,
            model::FailureKind::Server => Self::Server,
            model::FailureKind::Activity => Self::Activity,
            model::FailureKind::ChildWorkflow => Self::ChildWorkflow,
        }
    }
}

impl From<FailureKind> for model::FailureKind {
    fn from(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Application => Self::Application,
            FailureKind::Timeout => Self::Timeout,
            FailureKind::Canceled => Self::Canceled,
            FailureKind::Terminated => Self::Terminated,
            FailureKind::Server => Self::Server,
            FailureKind::Activity => Self::Activity,
            FailureKind::ChildWorkflow => Self::ChildWorkflow,
        }
    }
}

impl From<model::RetryState> for RetryState {
    fn from(state: model::RetryState) -> Self {
        match state {
            model::RetryState::InProgress => Self::InProgress,
            model::RetryState::NonRetryableFailure => Self::NonRetryableFailure,
            model::RetryState::Timeout => Self::Timeout,
            model::RetryState::MaximumAttemptsReached => Self::MaximumAttemptsReached,
            model::RetryState::CancelRequested => Self::CancelRequested,
        }
    }
}

impl From<RetryState> for model::RetryState {
    fn from(state: RetryState) -> Self {
        match state {
            RetryState::InProgress => Self::InProgress,
            RetryState::NonRetryableFailure => Self::NonRetryableFailure,
            RetryState::Timeout => Self::Timeout,
            RetryState::MaximumAttemptsReached => Self::MaximumAttemptsReached,
            RetryState::CancelRequested => Self::CancelRequested,
        }
    }
}
