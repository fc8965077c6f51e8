//! Why something failed: a chain of frames, outermost first, each caused by the next one.
//!
//! Read next: `payload.rs`, `workflow.rs`.

use std::any::type_name;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::payload::{Encode, Payload};
use crate::time::to_millis;

/// What kind of failure a frame describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// Raised by user code, in a workflow or an activity.
    Application,
    /// A timeout; the frame's code says of what, for example `start-to-close`.
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

/// One link of a failure chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What kind of failure this is.
    pub kind: FailureKind,
    /// Text for people.
    pub message: String,
    /// A stable name for programs: an application's error type, a timeout's kind, an activity's
    /// type. Retry policies match on it.
    pub code: String,
    /// True when a retry cannot help.
    pub is_non_retryable: bool,
    /// Replaces the retry policy's next interval when above 0, in milliseconds.
    pub next_retry_delay_ms: u64,
    /// Where it happened, in the language's own form; may be empty.
    pub stack_trace: String,
    /// Structured details.
    pub details: Option<Payload>,
}

impl Frame {
    fn new(kind: FailureKind, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            code: code.into(),
            is_non_retryable: false,
            next_retry_delay_ms: 0,
            stack_trace: String::new(),
            details: None,
        }
    }
}

/// Why a workflow, an activity or another operation failed. It has at least one frame.
///
/// Every `std::error::Error` turns into one with `?`: its message and those of its sources become
/// the frames, its type's name the code. For that reason `Failure` is not itself an `Error`.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure {
    // Boxed so that a `Result<T, Failure>` is as small as its `T`.
    outer: Box<Frame>,
    causes: Vec<Frame>,
}

impl Failure {
    fn of(frame: Frame) -> Self {
        Self {
            outer: Box::new(frame),
            causes: Vec::new(),
        }
    }

    /// Returns a failure of the application. Retry policies match on the code.
    #[must_use]
    pub fn application(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::of(Frame::new(FailureKind::Application, code, message))
    }

    /// Returns a failure of the application that no retry can help.
    #[must_use]
    pub fn non_retryable(code: impl Into<String>, message: impl Into<String>) -> Self {
        let mut failure = Self::application(code, message);
        failure.outer.is_non_retryable = true;
        failure
    }

    /// Returns the failure by which a workflow accepts a cancel request: a run that returns it
    /// ends as cancelled instead of failed.
    #[must_use]
    pub fn canceled() -> Self {
        Self::of(Frame::new(FailureKind::Canceled, "", "canceled"))
    }

    /// Returns a timeout. The host's own codes are `start-to-close`, `schedule-to-start`,
    /// `schedule-to-close` and `heartbeat`.
    #[must_use]
    pub fn timeout(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::of(Frame::new(FailureKind::Timeout, code, message))
    }

    /// Returns a failure of these frames, outermost first; of none, a failure of the host.
    #[must_use]
    pub fn from_frames(frames: Vec<Frame>) -> Self {
        let mut frames = frames.into_iter();
        match frames.next() {
            Some(outer) => Self {
                outer: Box::new(outer),
                causes: frames.collect(),
            },
            None => Self::of(Frame::new(
                FailureKind::Server,
                "",
                "failure without a frame",
            )),
        }
    }

    /// Adds structured details to the outermost frame. Details that do not encode are replaced
    /// by the encoder's message: losing them is better than losing the failure.
    #[must_use]
    pub fn with_details(self, details: &(impl Encode + ?Sized)) -> Self {
        let payload = match details.encode(Vec::new()) {
            Ok(payload) => payload,
            Err(error) => Payload {
                encoding: String::from("binary/plain"),
                data: error.outer.message.into_bytes(),
            },
        };
        self.with_payload(payload)
    }

    pub(crate) fn with_payload(mut self, payload: Payload) -> Self {
        self.outer.details = Some(payload);
        self
    }

    /// Replaces the outermost frame's message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.outer.message = message.into();
        self
    }

    /// Sets the delay before the next retry of this run, instead of the policy's interval.
    #[must_use]
    pub fn with_retry_delay(mut self, delay: Duration) -> Self {
        self.outer.next_retry_delay_ms = to_millis(delay);
        self
    }

    /// Appends another failure's frames as the cause of this one.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<Self>) -> Self {
        let cause = cause.into();
        self.causes.push(*cause.outer);
        self.causes.extend(cause.causes);
        self
    }

    /// Returns the frames, outermost first.
    pub fn frames(&self) -> impl Iterator<Item = &Frame> {
        std::iter::once(&*self.outer).chain(&self.causes)
    }

    /// Returns the frames as a list, outermost first.
    #[must_use]
    pub fn into_frames(self) -> Vec<Frame> {
        let mut frames = Vec::with_capacity(1 + self.causes.len());
        frames.push(*self.outer);
        frames.extend(self.causes);
        frames
    }

    /// Returns the outermost frame's kind.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        self.outer.kind
    }

    /// Returns the outermost frame's message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.outer.message
    }

    /// Returns the innermost frame.
    #[must_use]
    pub fn root_cause(&self) -> &Frame {
        self.causes.last().unwrap_or(&self.outer)
    }

    /// Returns the first frame that is not the mere statement that an activity failed.
    #[must_use]
    pub fn cause(&self) -> &Frame {
        self.frames()
            .find(|frame| {
                !matches!(
                    frame.kind,
                    FailureKind::Activity | FailureKind::ChildWorkflow
                )
            })
            .unwrap_or_else(|| self.root_cause())
    }

    /// Returns the code of [`cause`](Self::cause): for a failed activity, the one its code gave.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.cause().code
    }

    /// Returns the details of [`cause`](Self::cause); read them with [`crate::Decode`].
    #[must_use]
    pub fn details(&self) -> Option<&Payload> {
        self.cause().details.as_ref()
    }

    /// Returns true when [`cause`](Self::cause) is a timeout.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.cause().kind == FailureKind::Timeout
    }

    /// Returns true when [`cause`](Self::cause) is a cancellation.
    #[must_use]
    pub fn is_canceled(&self) -> bool {
        self.cause().kind == FailureKind::Canceled
    }

    /// Returns true when a retry cannot help.
    #[must_use]
    pub fn is_non_retryable(&self) -> bool {
        self.cause().is_non_retryable
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.outer.message)?;
        self.causes
            .iter()
            .try_for_each(|frame| write!(formatter, ": {}", frame.message))
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.frames()).finish()
    }
}

impl<E: Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut failure = Self::application(short_type_name::<E>(), error.to_string());
        let mut source = error.source();
        while let Some(cause) = source {
            failure
                .causes
                .push(Frame::new(FailureKind::Application, "", cause.to_string()));
            source = cause.source();
        }
        failure
    }
}

/// Returns a type's name without its path and parameters: `ParseIntError`.
fn short_type_name<T>() -> &'static str {
    let name = type_name::<T>();
    let name = name.split_once('<').map_or(name, |(name, _)| name);
    name.rsplit_once("::").map_or(name, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<u32, Failure> {
        Ok(text.parse::<u32>()?)
    }

    #[test]
    fn question_mark_turns_an_error_into_a_failure() {
        let failure = parse("x").unwrap_err();
        assert_eq!(failure.code(), "ParseIntError");
        assert_eq!(failure.to_string(), "invalid digit found in string");
        assert!(!failure.is_non_retryable());
    }

    #[test]
    fn code_looks_through_activity_frames() {
        let failure = Failure::of(Frame::new(
            FailureKind::Activity,
            "charge",
            "activity failed",
        ))
        .caused_by(
            Failure::non_retryable("card-declined", "declined")
                .with_details(&7)
                .caused_by(Failure::timeout("start-to-close", "no answer")),
        );
        assert_eq!(failure.kind(), FailureKind::Activity);
        assert_eq!(failure.code(), "card-declined");
        assert!(failure.is_non_retryable());
        assert!(!failure.is_timeout());
        assert_eq!(failure.details().unwrap().data, b"7");
        assert_eq!(failure.root_cause().code, "start-to-close");
        assert_eq!(failure.to_string(), "activity failed: declined: no answer");
        assert_eq!(Failure::from_frames(failure.clone().into_frames()), failure);
    }

    #[test]
    fn no_frames_become_a_host_failure() {
        assert_eq!(Failure::from_frames(Vec::new()).kind(), FailureKind::Server);
    }
}
