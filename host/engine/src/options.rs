//! Activity options: what the guest gave, checked and with defaults filled in.

use alloc::string::String;
use alloc::vec::Vec;

use steadfast_model::id::Invalid;
use steadfast_model::{ActivityOptions, Millis, RetryPolicy, TaskQueue};

/// Limit of one attempt when neither it nor a limit over all attempts is given.
pub const START_TO_CLOSE_DEFAULT: Millis = Millis(60_000);

/// Options as given: zero and empty mean "not given".
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    /// Limit over all attempts.
    pub schedule_to_close: Millis,
    /// Limit of waiting in the queue.
    pub schedule_to_start: Millis,
    /// Limit of one attempt.
    pub start_to_close: Millis,
    /// Longest gap between heartbeats.
    pub heartbeat: Millis,
    /// First retry interval.
    pub initial_interval: Millis,
    /// Growth of the retry interval in thousandths.
    pub backoff_permille: u32,
    /// Largest retry interval.
    pub maximum_interval: Millis,
    /// Attempts in total.
    pub maximum_attempts: u32,
    /// `task-queue`, `activity-id`, `summary`, `non-retryable-code`.
    pub settings: &'a [(String, String)],
}

/// Why options were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A setting that does not exist.
    #[error(
        "unknown activity setting {0:?} (known: task-queue, activity-id, summary, non-retryable-code)"
    )]
    UnknownSetting(String),
    /// A malformed name.
    #[error(transparent)]
    Name(#[from] Invalid),
    /// A coefficient below one.
    #[error("backoff coefficient {0} thousandths is below 1000")]
    Backoff(u32),
    /// A first interval above the largest one.
    #[error("maximum retry interval {maximum} is below the initial interval {initial}")]
    Interval {
        /// The first interval.
        initial: Millis,
        /// The largest interval.
        maximum: Millis,
    },
}

/// Fills in defaults (Temporal's normalisation, `chasm/lib/activity/validator.go`): one attempt is
/// limited to [`START_TO_CLOSE_DEFAULT`] or to the limit over all attempts; the queue limit and the
/// attempt's limit never exceed the limit over all; a heartbeat limit never exceeds the attempt's.
///
/// # Errors
/// [`Refused`] names the option.
pub fn normalise(given: &Given<'_>, default_queue: &TaskQueue) -> Result<ActivityOptions, Refused> {
    let schedule_to_close = given.schedule_to_close.capped().given();
    let cap = |limit: Millis| schedule_to_close.map_or(limit, |all| limit.min(all));
    let start_to_close = match (given.start_to_close.capped().given(), schedule_to_close) {
        (Some(one), _) => cap(one),
        (None, Some(all)) => all,
        (None, None) => START_TO_CLOSE_DEFAULT,
    };
    let mut options = ActivityOptions {
        task_queue: default_queue.clone(),
        activity_id: String::new(),
        schedule_to_close,
        schedule_to_start: given.schedule_to_start.capped().given().map(cap),
        start_to_close,
        heartbeat: given
            .heartbeat
            .capped()
            .given()
            .map(|h| h.min(start_to_close)),
        retry: retry(given)?,
        summary: String::new(),
    };
    for (name, value) in given.settings {
        match name.as_str() {
            "task-queue" => options.task_queue = TaskQueue::new(value.clone())?,
            "activity-id" => {
                // An activity id obeys the rules of every other name.
                options.activity_id = TaskQueue::new(value.clone())?.as_str().into();
            }
            "summary" => options.summary.clone_from(value),
            "non-retryable-code" => options.retry.non_retryable_codes.push(value.clone()),
            _ => return Err(Refused::UnknownSetting(name.clone())),
        }
    }
    Ok(options)
}

pub(crate) fn retry(given: &Given<'_>) -> Result<RetryPolicy, Refused> {
    let default = RetryPolicy::default();
    let policy = RetryPolicy {
        initial_interval: given
            .initial_interval
            .capped()
            .given()
            .unwrap_or(default.initial_interval),
        backoff_permille: if given.backoff_permille == 0 {
            default.backoff_permille
        } else {
            given.backoff_permille
        },
        maximum_interval: given.maximum_interval.capped(),
        maximum_attempts: given.maximum_attempts,
        non_retryable_codes: Vec::new(),
    };
    // With a single attempt nothing else of the policy is ever used, so nothing is checked.
    if policy.maximum_attempts != 1 {
        if policy.backoff_permille < 1000 {
            return Err(Refused::Backoff(policy.backoff_permille));
        }
        if let Some(maximum) = policy.maximum_interval.given()
            && maximum < policy.initial_interval
        {
            return Err(Refused::Interval {
                initial: policy.initial_interval,
                maximum,
            });
        }
    }
    Ok(policy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::borrow::ToOwned;
    use alloc::string::ToString;

    const NOTHING: Given<'static> = Given {
        schedule_to_close: Millis(0),
        schedule_to_start: Millis(0),
        start_to_close: Millis(0),
        heartbeat: Millis(0),
        initial_interval: Millis(0),
        backoff_permille: 0,
        maximum_interval: Millis(0),
        maximum_attempts: 0,
        settings: &[],
    };

    fn queue() -> TaskQueue {
        TaskQueue::new("default").unwrap()
    }

    #[test]
    fn nothing_given_means_the_documented_defaults() {
        let options = normalise(&NOTHING, &queue()).unwrap();
        assert_eq!(options.start_to_close, START_TO_CLOSE_DEFAULT);
        assert_eq!(options.schedule_to_close, None);
        assert_eq!(options.heartbeat, None);
        assert_eq!(options.retry, RetryPolicy::default());
        assert_eq!(options.task_queue, queue());
    }

    #[test]
    fn the_limit_over_all_attempts_caps_the_others() {
        let given = Given {
            schedule_to_close: Millis(5),
            schedule_to_start: Millis(9),
            start_to_close: Millis(7),
            heartbeat: Millis(8),
            ..NOTHING
        };
        let options = normalise(&given, &queue()).unwrap();
        assert_eq!(options.start_to_close, Millis(5));
        assert_eq!(options.schedule_to_start, Some(Millis(5)));
        assert_eq!(options.heartbeat, Some(Millis(5)));
        let given = Given {
            schedule_to_close: Millis(5),
            ..NOTHING
        };
        assert_eq!(
            normalise(&given, &queue()).unwrap().start_to_close,
            Millis(5)
        );
    }

    #[test]
    fn bad_options_name_themselves() {
        let settings = [("colour".to_owned(), "red".to_owned())];
        let error = normalise(
            &Given {
                settings: &settings,
                ..NOTHING
            },
            &queue(),
        )
        .unwrap_err();
        assert!(error.to_string().contains("\"colour\""), "{error}");
        let error = normalise(
            &Given {
                backoff_permille: 999,
                ..NOTHING
            },
            &queue(),
        )
        .unwrap_err();
        assert_eq!(error, Refused::Backoff(999));
        let given = Given {
            maximum_interval: Millis(10),
            ..NOTHING
        };
        assert!(normalise(&given, &queue()).is_err());
        let given = Given {
            maximum_attempts: 1,
            ..given
        };
        assert!(normalise(&given, &queue()).is_ok());
    }
}
