//! Thin helpers over the calls of the host: JSON in and out.

use serde_json::Value;

use crate::bindings::steadfast::workflow::activities::{self, ActivityOptions};
use crate::bindings::steadfast::workflow::types::{Failure, FailureFrame, FailureKind, Payload};
use crate::bindings::steadfast::workflow::waiting;

/// A JSON payload.
pub fn payload(value: &Value) -> Payload {
    Payload {
        encoding: String::new(),
        data: value.to_string().into_bytes(),
    }
}

/// A payload's JSON; `null` for what is none.
pub fn json(payload: &Payload) -> Value {
    serde_json::from_slice(&payload.data).unwrap_or(Value::Null)
}

/// A failure of the workflow itself.
pub fn failure(code: &str, message: &str) -> Failure {
    frame(FailureKind::Application, code, message)
}

/// The failure that accepts a cancel request.
pub fn canceled() -> Failure {
    frame(FailureKind::Canceled, "", "cancelled")
}

fn frame(kind: FailureKind, code: &str, message: &str) -> Failure {
    Failure {
        frames: vec![FailureFrame {
            kind,
            message: message.to_owned(),
            code: code.to_owned(),
            non_retryable: false,
            next_retry_delay_ms: 0,
            stack_trace: String::new(),
            details: None,
        }],
    }
}

/// Schedules an activity with default options and returns its operation.
pub fn schedule(activity_type: &str, input: &Value) -> u32 {
    let options = ActivityOptions {
        schedule_to_close_ms: 0,
        schedule_to_start_ms: 0,
        start_to_close_ms: 0,
        heartbeat_ms: 0,
        initial_interval_ms: 0,
        backoff_permille: 0,
        maximum_interval_ms: 0,
        maximum_attempts: 0,
        settings: Vec::new(),
    };
    activities::schedule(activity_type, &payload(input), &options)
}

/// Waits for an operation and returns its JSON.
///
/// # Errors
/// The operation's failure.
pub fn take(operation: u32) -> Result<Value, Failure> {
    waiting::take(operation).map(|payload| json(&payload))
}

/// Runs an activity and waits for it.
///
/// # Errors
/// The activity's failure.
pub fn activity(activity_type: &str, input: &Value) -> Result<Value, Failure> {
    take(schedule(activity_type, input))
}
