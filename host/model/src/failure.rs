//! Why something failed: a chain of frames, outermost first.
//!
//! The chain is a list and not a recursive type, so that hostile bytes cannot exhaust the stack
//! and every language can bind it.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use minicbor::{Decode, Encode};

use crate::limits::{FAILURE_FRAMES_MAX, FAILURE_TEXT_BYTES_MAX};
use crate::payload::Payload;
use crate::time::Millis;

/// What kind of failure a frame describes. Numbers are stored: append only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum FailureKind {
    /// Raised by user code.
    #[n(0)]
    Application,
    /// A timeout; the frame's code says which.
    #[n(1)]
    Timeout,
    /// The operation was cancelled.
    #[n(2)]
    Canceled,
    /// The execution was terminated.
    #[n(3)]
    Terminated,
    /// The host failed.
    #[n(4)]
    Server,
    /// An activity failed; the next frame says why.
    #[n(5)]
    Activity,
    /// A child workflow failed; the next frame says why.
    #[n(6)]
    ChildWorkflow,
}

impl FailureKind {
    /// The name used by the API and the CLI.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Timeout => "timeout",
            Self::Canceled => "canceled",
            Self::Terminated => "terminated",
            Self::Server => "server",
            Self::Activity => "activity",
            Self::ChildWorkflow => "child-workflow",
        }
    }

    /// The kind of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [
            Self::Application,
            Self::Timeout,
            Self::Canceled,
            Self::Terminated,
            Self::Server,
            Self::Activity,
            Self::ChildWorkflow,
        ]
        .into_iter()
        .find(|kind| kind.name() == name)
    }
}

/// Code of a timeout frame: one attempt took too long.
pub const START_TO_CLOSE: &str = "start-to-close";
/// Code of a timeout frame: the task waited too long in its queue.
pub const SCHEDULE_TO_START: &str = "schedule-to-start";
/// Code of a timeout frame: all attempts together took too long.
pub const SCHEDULE_TO_CLOSE: &str = "schedule-to-close";
/// Code of a timeout frame: the worker stopped sending heartbeats.
pub const HEARTBEAT: &str = "heartbeat";

/// One link of a failure chain.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Frame {
    /// What kind of failure this is.
    #[n(0)]
    pub kind: FailureKind,
    /// Text for people.
    #[n(1)]
    pub message: String,
    /// A stable name for programs: an application's error type, a timeout's kind, an activity's type.
    #[n(2)]
    pub code: String,
    /// True when a retry cannot help.
    #[n(3)]
    pub non_retryable: bool,
    /// Replaces the retry policy's next interval when above zero.
    #[n(4)]
    pub next_retry_delay: Millis,
    /// Where it happened, in the language's own form; may be empty.
    #[n(5)]
    pub stack_trace: String,
    /// Structured details.
    #[n(6)]
    pub details: Option<Payload>,
}

impl Frame {
    /// A frame with a message and a code, and nothing else.
    #[must_use]
    pub fn new(kind: FailureKind, code: &str, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            code: code.to_owned(),
            non_retryable: false,
            next_retry_delay: Millis::ZERO,
            stack_trace: String::new(),
            details: None,
        }
    }
}

/// A failure: frames, outermost first, each caused by the next. Never empty when made by
/// [`Failure::new`] or [`Failure::from_frames`]; a stored empty list reads as a failure without
/// text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
#[cbor(transparent)]
pub struct Failure(#[n(0)] Vec<Frame>);

impl Failure {
    /// A failure of one frame.
    #[must_use]
    pub fn new(frame: Frame) -> Self {
        Self::from_frames(vec![frame])
    }

    /// A failure of frames, outermost first, cut to the limits: texts at
    /// [`FAILURE_TEXT_BYTES_MAX`]; of more than [`FAILURE_FRAMES_MAX`] frames the outer ones and
    /// the innermost are kept.
    #[must_use]
    pub fn from_frames(mut frames: Vec<Frame>) -> Self {
        if frames.len() > FAILURE_FRAMES_MAX
            && let Some(root) = frames.pop()
        {
            frames.truncate(FAILURE_FRAMES_MAX - 1);
            frames.push(root);
        }
        for frame in &mut frames {
            cut(&mut frame.message);
            cut(&mut frame.code);
            cut(&mut frame.stack_trace);
        }
        Self(frames)
    }

    /// An application failure.
    #[must_use]
    pub fn application(code: &str, message: impl Into<String>) -> Self {
        Self::new(Frame::new(FailureKind::Application, code, message))
    }

    /// A cancellation.
    #[must_use]
    pub fn canceled(message: impl Into<String>) -> Self {
        Self::new(Frame::new(FailureKind::Canceled, "canceled", message))
    }

    /// The same failure as the cause of a new outer frame.
    #[must_use]
    pub fn wrapped(self, outer: Frame) -> Self {
        let mut frames = Vec::with_capacity(self.0.len() + 1);
        frames.push(outer);
        frames.extend(self.0);
        Self::from_frames(frames)
    }

    /// The frames, outermost first.
    #[must_use]
    pub fn frames(&self) -> &[Frame] {
        &self.0
    }

    /// The outermost frame.
    #[must_use]
    pub fn outer(&self) -> Option<&Frame> {
        self.0.first()
    }

    /// Bytes that the failure adds to whatever holds it.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.0
            .iter()
            .map(|f| {
                f.message.len()
                    + f.code.len()
                    + f.stack_trace.len()
                    + f.details.as_ref().map_or(0, Payload::size_bytes)
            })
            .sum()
    }

    /// The failure without details and with texts cut to `bytes` in all, for records that keep
    /// only a reminder of it.
    #[must_use]
    pub fn truncated(&self, bytes: usize) -> Self {
        if self.size_bytes() <= bytes {
            return self.clone();
        }
        let each = bytes / (self.0.len().max(1) * 3);
        let mut frames = self.0.clone();
        for frame in &mut frames {
            frame.details = None;
            cut_to(&mut frame.message, each);
            cut_to(&mut frame.code, each);
            cut_to(&mut frame.stack_trace, each);
        }
        Self(frames)
    }
}

impl fmt::Display for Failure {
    /// `outer: cause: root`, for messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, frame) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(": ")?;
            }
            if frame.message.is_empty() {
                f.write_str(frame.kind.name())?;
            } else {
                f.write_str(&frame.message)?;
            }
        }
        Ok(())
    }
}

fn cut(text: &mut String) {
    cut_to(text, FAILURE_TEXT_BYTES_MAX);
}

fn cut_to(text: &mut String, bytes: usize) {
    if text.len() > bytes {
        let end = (0..=bytes)
            .rev()
            .find(|&i| text.is_char_boundary(i))
            .unwrap_or(0);
        text.truncate(end);
    }
}

/// Why an activity is not tried again. Numbers are stored and are Temporal's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum RetryState {
    /// It is tried again.
    #[n(1)]
    InProgress,
    /// The failure says that a retry cannot help, or the policy lists its code.
    #[n(2)]
    NonRetryableFailure,
    /// No time is left.
    #[n(3)]
    Timeout,
    /// The policy's attempts are used up.
    #[n(4)]
    MaximumAttemptsReached,
    /// Cancellation was requested.
    #[n(7)]
    CancelRequested,
}

impl RetryState {
    /// The name used by the API and the CLI.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::InProgress => "in-progress",
            Self::NonRetryableFailure => "non-retryable-failure",
            Self::Timeout => "timeout",
            Self::MaximumAttemptsReached => "maximum-attempts-reached",
            Self::CancelRequested => "cancel-requested",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn deep_chains_keep_their_ends_and_texts_are_cut_at_characters() {
        let frames = (0..100)
            .map(|i| Frame::new(FailureKind::Application, "e", alloc::format!("{i}")))
            .collect();
        let failure = Failure::from_frames(frames);
        assert_eq!(failure.frames().len(), FAILURE_FRAMES_MAX);
        assert_eq!(failure.frames().last().unwrap().message, "99");
        let long = Failure::application("e", "\u{e9}".repeat(FAILURE_TEXT_BYTES_MAX));
        assert!(long.frames()[0].message.len() <= FAILURE_TEXT_BYTES_MAX);
        assert!(long.truncated(100).size_bytes() <= 100);
    }

    #[test]
    fn chains_print_outermost_first() {
        let failure = Failure::application("boom", "no money").wrapped(Frame::new(
            FailureKind::Activity,
            "charge",
            "activity charge failed",
        ));
        assert_eq!(failure.to_string(), "activity charge failed: no money");
    }
}
