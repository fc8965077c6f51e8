//! Activities to try workflows out with.

use std::time::Duration;

use serde::Deserialize;
use steadfast_model::{Failure, FailureKind, Frame, Payload};
use steadfast_runtime::{Activities, ActivityContext};

use crate::register;

/// How often a sleeping activity says that it is alive.
const BEAT: Duration = Duration::from_millis(100);

/// Registers `echo`, `fail` and `sleep`:
///
/// - `echo` returns its input.
/// - `fail` fails with the `code`, `message` and `non_retryable` of its input; with `times`, only
///   the first so many attempts, and the next returns the number of the attempt.
/// - `sleep` takes `ms` milliseconds, sends a heartbeat with the milliseconds that have passed
///   every 100, and returns `null`.
///
/// They are for development only: any workflow can keep them busy.
#[must_use]
pub fn dev(activities: Activities) -> Activities {
    let activities = register(activities, "echo", |_, input| async { Ok(input) });
    let activities = register(activities, "fail", fail);
    register(activities, "sleep", sleep)
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct FailInput {
    code: String,
    message: String,
    non_retryable: bool,
    times: u32,
}

impl Default for FailInput {
    fn default() -> Self {
        let (code, message) = ("dev.failure".to_owned(), "failed as asked".to_owned());
        Self {
            code,
            message,
            non_retryable: false,
            times: u32::MAX,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SleepInput {
    ms: u64,
}

fn read<T: for<'de> Deserialize<'de>>(input: &Payload) -> Result<T, Failure> {
    serde_json::from_slice(&input.data).map_err(|error| {
        let mut frame = Frame::new(
            FailureKind::Application,
            "dev.invalid-input",
            error.to_string(),
        );
        frame.non_retryable = true;
        Failure::new(frame)
    })
}

async fn fail(context: ActivityContext, input: Payload) -> Result<Payload, Failure> {
    let input: FailInput = read(&input)?;
    if context.attempt() > input.times {
        return Ok(Payload::json(context.attempt().to_string()));
    }
    let mut frame = Frame::new(FailureKind::Application, &input.code, input.message);
    frame.non_retryable = input.non_retryable;
    Err(Failure::new(frame))
}

async fn sleep(context: ActivityContext, input: Payload) -> Result<Payload, Failure> {
    let SleepInput { ms } = read(&input)?;
    let begin = tokio::time::Instant::now();
    let end = begin + Duration::from_millis(ms);
    while tokio::time::Instant::now() < end {
        let beat = end.min(tokio::time::Instant::now() + BEAT);
        if tokio::time::timeout_at(beat, context.cancelled())
            .await
            .is_ok()
        {
            return Err(Failure::canceled("asked to stop"));
        }
        let passed = begin.elapsed().as_millis();
        context.heartbeat(Some(Payload::json(passed.to_string())));
    }
    Ok(Payload::json("null"))
}
