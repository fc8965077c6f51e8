//! Limits of time, retry policies and what follows when they are used up.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use steadfast_sdk::{Context, Failure, RetryPolicy, warn, workflow};

/// What to try.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Quote {
    /// How many attempts of the flaky service fail before one succeeds.
    pub failures: u32,
    /// How long the slow service takes.
    pub slow_ms: u64,
    /// How long anybody waits for it, all attempts together.
    pub patience_ms: u64,
}

/// What was found out.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quoted {
    /// The attempt of the flaky service that succeeded.
    pub attempts: u32,
    /// True if the slow service did not answer in time.
    pub is_fallback: bool,
}

#[derive(Serialize)]
struct Flaky {
    code: &'static str,
    times: u32,
}

#[derive(Serialize)]
struct Slow {
    ms: u64,
}

/// Asks a flaky service until it answers, then a slow one, and does without the slow one's answer
/// when it takes too long.
#[workflow]
async fn quote(ctx: Context, input: Quote) -> Result<Quoted, Failure> {
    let flaky = Flaky {
        code: "busy",
        times: input.failures,
    };
    let attempts = ctx
        .activity("fail", &flaky)
        .start_to_close(Duration::from_secs(5))
        .retry(
            RetryPolicy::new()
                .initial_interval(Duration::from_millis(20))
                .maximum_interval(Duration::from_secs(1))
                .maximum_attempts(5),
        )
        .non_retryable_code("bad-request")
        .await?;

    let slow = ctx
        .activity::<()>("sleep", &Slow { ms: input.slow_ms })
        .schedule_to_close(Duration::from_millis(input.patience_ms))
        .retry(RetryPolicy::none());
    let is_fallback = match slow.await {
        Ok(()) => false,
        Err(failure) if failure.is_timeout() => {
            warn!("no answer in time: {failure}");
            true
        }
        Err(failure) => return Err(failure),
    };
    Ok(Quoted {
        attempts,
        is_fallback,
    })
}

steadfast_sdk::component!(quote);

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_sdk::testing::{Step, TestRun};

    fn started() -> TestRun {
        let mut run = TestRun::start::<quote>(&Quote::default());
        run.resolve(1, &3);
        run
    }

    fn result(run: &TestRun) -> Option<Quoted> {
        run.output()
    }

    #[test]
    fn an_answer_in_time_is_used() {
        let mut run = started();
        run.resolve(2, &());
        let expected = Quoted {
            attempts: 3,
            is_fallback: false,
        };
        assert_eq!(result(&run), Some(expected));
    }

    #[test]
    fn a_timeout_is_no_failure_and_other_failures_are() {
        let mut run = started();
        run.fail(2, Failure::timeout("schedule-to-close", "too late"));
        assert!(result(&run).is_some_and(|quoted| quoted.is_fallback));
        let mut run = started();
        assert!(matches!(
            run.fail(2, Failure::application("broken", "no")),
            Step::Failed(_)
        ));
    }
}
