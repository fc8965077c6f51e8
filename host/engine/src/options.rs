//! Activity options: what the guest gave, checked and with defaults filled in.

use alloc::string::String;
use alloc::vec::Vec;

use steadfast_model::id::Invalid;
use steadfast_model::{ActivityOptions, Cancellation, Millis, RetryPolicy, TaskQueue};

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
    /// Rarely used settings by name; [`Refused::UnknownSetting`] lists them.
    pub settings: &'a [(String, String)],
}

/// Why options were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A setting that does not exist.
    #[error(
        "unknown activity setting {0:?} (known: task-queue, activity-id, summary, \
         non-retryable-code, cancellation-type, local, on-exhausted)"
    )]
    UnknownSetting(String),
    /// A setting with a value that it cannot have.
    #[error("activity setting {name} is {value:?}; it is one of: {known}")]
    BadSetting {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: String,
        /// The values it can have.
        known: &'static str,
    },
    /// A local activity runs where its workflow runs.
    #[error("a local activity has no task queue; remove the setting task-queue or local")]
    LocalQueue,
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
/// No limit exceeds the run's own, `run_timeout`.
///
/// # Errors
/// [`Refused`] names the option.
pub fn normalise(
    given: &Given<'_>,
    default_queue: &TaskQueue,
    run_timeout: Option<Millis>,
) -> Result<ActivityOptions, Refused> {
    let run_timeout = run_timeout.and_then(|limit| limit.capped().given());
    let schedule_to_close = match (given.schedule_to_close.capped().given(), run_timeout) {
        (Some(all), Some(run)) => Some(all.min(run)),
        (all, run) => all.or(run),
    };
    let cap = |limit: Millis| schedule_to_close.map_or(limit, |all| limit.min(all));
    let start_to_close = match (given.start_to_close.capped().given(), schedule_to_close) {
        (Some(one), _) => cap(one),
        // A limit over all attempts that was asked for is the limit of one; the run's is not.
        (None, Some(all)) if given.schedule_to_close > Millis::ZERO => all,
        (None, _) => cap(START_TO_CLOSE_DEFAULT),
    };
    let mut options = ActivityOptions {
        schedule_to_close,
        schedule_to_start: given.schedule_to_start.capped().given().map(cap),
        start_to_close,
        heartbeat: given
            .heartbeat
            .capped()
            .given()
            .map(|h| h.min(start_to_close)),
        retry: retry(given)?,
        ..ActivityOptions::on(default_queue.clone())
    };
    let mut has_queue = false;
    for (name, value) in given.settings {
        has_queue |= name == "task-queue";
        match name.as_str() {
            "task-queue" => options.task_queue = TaskQueue::new(value.clone())?,
            "activity-id" => {
                // An activity id obeys the rules of every other name.
                options.activity_id = TaskQueue::new(value.clone())?.as_str().into();
            }
            "summary" => options.summary.clone_from(value),
            "non-retryable-code" => options.retry.non_retryable_codes.push(value.clone()),
            "cancellation-type" => {
                options.cancellation =
                    Cancellation::from_name(value).ok_or_else(|| Refused::BadSetting {
                        name: "cancellation-type",
                        value: value.clone(),
                        known: "wait-completed, try-cancel, abandon",
                    })?;
            }
            "local" => options.is_local = choice("local", value, ["false", "true"], "false, true")?,
            "on-exhausted" => {
                options.parks = choice("on-exhausted", value, ["fail", "pause"], "fail, pause")?;
            }
            _ => return Err(Refused::UnknownSetting(name.clone())),
        }
    }
    if options.is_local && has_queue {
        return Err(Refused::LocalQueue);
    }
    Ok(options)
}

/// True for the second of two values.
fn choice(
    name: &'static str,
    value: &str,
    values: [&str; 2],
    known: &'static str,
) -> Result<bool, Refused> {
    match values.iter().position(|known| *known == value) {
        Some(index) => Ok(index == 1),
        None => Err(Refused::BadSetting {
            name,
            value: value.into(),
            known,
        }),
    }
}

/// What an operator changes of a pending activity's options. `None` leaves an option as it is;
/// zero takes a limit away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Patch {
    /// Where its tasks go.
    pub task_queue: Option<TaskQueue>,
    /// Limit over all attempts.
    pub schedule_to_close: Option<Millis>,
    /// Limit of waiting in the queue.
    pub schedule_to_start: Option<Millis>,
    /// Limit of one attempt; it cannot be taken away.
    pub start_to_close: Option<Millis>,
    /// Longest gap between heartbeats.
    pub heartbeat: Option<Millis>,
    /// First retry interval.
    pub initial_interval: Option<Millis>,
    /// Growth of the retry interval in thousandths.
    pub backoff_permille: Option<u32>,
    /// Largest retry interval.
    pub maximum_interval: Option<Millis>,
    /// Attempts in total; 0 means unlimited.
    pub maximum_attempts: Option<u32>,
    /// Failure codes that are never retried, in place of those before.
    pub non_retryable_codes: Option<Vec<String>>,
}

/// The options with the changes of `patch`, normalised as new ones are.
///
/// # Errors
/// [`Refused`] names the option.
pub fn patched(options: &ActivityOptions, patch: &Patch) -> Result<ActivityOptions, Refused> {
    let keep = |limit: Option<Millis>| limit.unwrap_or(Millis::ZERO);
    let retry = &options.retry;
    let given = Given {
        schedule_to_close: patch
            .schedule_to_close
            .unwrap_or_else(|| keep(options.schedule_to_close)),
        schedule_to_start: patch
            .schedule_to_start
            .unwrap_or_else(|| keep(options.schedule_to_start)),
        start_to_close: patch.start_to_close.unwrap_or(options.start_to_close),
        heartbeat: patch.heartbeat.unwrap_or_else(|| keep(options.heartbeat)),
        initial_interval: patch.initial_interval.unwrap_or(retry.initial_interval),
        backoff_permille: patch.backoff_permille.unwrap_or(retry.backoff_permille),
        maximum_interval: patch.maximum_interval.unwrap_or(retry.maximum_interval),
        maximum_attempts: patch.maximum_attempts.unwrap_or(retry.maximum_attempts),
        settings: &[],
    };
    let task_queue = patch.task_queue.as_ref().unwrap_or(&options.task_queue);
    let mut changed = normalise(&given, task_queue, None)?;
    changed.retry.non_retryable_codes = patch
        .non_retryable_codes
        .clone()
        .unwrap_or_else(|| retry.non_retryable_codes.clone());
    Ok(ActivityOptions {
        activity_id: options.activity_id.clone(),
        summary: options.summary.clone(),
        cancellation: options.cancellation,
        is_local: options.is_local,
        parks: options.parks,
        ..changed
    })
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
        let options = normalise(&NOTHING, &queue(), None).unwrap();
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
        let options = normalise(&given, &queue(), None).unwrap();
        assert_eq!(options.start_to_close, Millis(5));
        assert_eq!(options.schedule_to_start, Some(Millis(5)));
        assert_eq!(options.heartbeat, Some(Millis(5)));
        let given = Given {
            schedule_to_close: Millis(5),
            ..NOTHING
        };
        assert_eq!(
            normalise(&given, &queue(), None).unwrap().start_to_close,
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
            None,
        )
        .unwrap_err();
        assert!(error.to_string().contains("\"colour\""), "{error}");
        let error = normalise(
            &Given {
                backoff_permille: 999,
                ..NOTHING
            },
            &queue(),
            None,
        )
        .unwrap_err();
        assert_eq!(error, Refused::Backoff(999));
        let given = Given {
            maximum_interval: Millis(10),
            ..NOTHING
        };
        assert!(normalise(&given, &queue(), None).is_err());
        let given = Given {
            maximum_attempts: 1,
            ..given
        };
        assert!(normalise(&given, &queue(), None).is_ok());
    }
}
