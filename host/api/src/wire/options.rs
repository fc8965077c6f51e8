//! How an activity is run.

use serde::{Deserialize, Serialize};
use steadfast_model as model;
use steadfast_model::{Millis, TaskQueue};
use utoipa::ToSchema;

use crate::wire::Invalid;

/// How an activity is run, with defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActivityOptions {
    /// Where its tasks go.
    pub task_queue: String,
    /// The user's name of this activity within the run; empty means the command's number.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub activity_id: String,
    /// Limit over all attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_to_close_ms: Option<u64>,
    /// Limit of waiting in the queue. Never retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_to_start_ms: Option<u64>,
    /// Limit of one attempt.
    pub start_to_close_ms: u64,
    /// Longest gap between two heartbeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_ms: Option<u64>,
    /// When a failed attempt is tried again.
    pub retry: RetryPolicy,
    /// A line for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
}

/// When a failed attempt is tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RetryPolicy {
    /// The wait before the second attempt.
    pub initial_interval_ms: u64,
    /// Growth of the interval per attempt, in thousandths.
    pub backoff_permille: u32,
    /// Largest interval; zero means 100 times the first.
    pub maximum_interval_ms: u64,
    /// Attempts allowed in total; 1 disables retries, 0 means unlimited.
    pub maximum_attempts: u32,
    /// Failure codes that are never retried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub non_retryable_codes: Vec<String>,
}

impl ActivityOptions {
    /// The wire form of options.
    #[must_use]
    pub fn from_model(options: model::ActivityOptions) -> Self {
        let ms = |limit: Option<Millis>| limit.map(|limit| limit.0);
        Self {
            task_queue: options.task_queue.as_str().to_owned(),
            activity_id: options.activity_id,
            schedule_to_close_ms: ms(options.schedule_to_close),
            schedule_to_start_ms: ms(options.schedule_to_start),
            start_to_close_ms: options.start_to_close.0,
            heartbeat_ms: ms(options.heartbeat),
            retry: RetryPolicy::from_model(options.retry),
            summary: options.summary,
        }
    }

    /// The options that it stands for.
    ///
    /// # Errors
    /// [`Invalid`] for an empty or too long task queue.
    pub fn into_model(self) -> Result<model::ActivityOptions, Invalid> {
        let task_queue = TaskQueue::new(self.task_queue)
            .map_err(|error| Invalid::new("task_queue", error.to_string()))?;
        Ok(model::ActivityOptions {
            task_queue,
            activity_id: self.activity_id,
            schedule_to_close: self.schedule_to_close_ms.map(Millis),
            schedule_to_start: self.schedule_to_start_ms.map(Millis),
            start_to_close: Millis(self.start_to_close_ms),
            heartbeat: self.heartbeat_ms.map(Millis),
            retry: self.retry.into_model(),
            summary: self.summary,
        })
    }
}

impl RetryPolicy {
    pub(super) fn from_model(policy: model::RetryPolicy) -> Self {
        Self {
            initial_interval_ms: policy.initial_interval.0,
            backoff_permille: policy.backoff_permille,
            maximum_interval_ms: policy.maximum_interval.0,
            maximum_attempts: policy.maximum_attempts,
            non_retryable_codes: policy.non_retryable_codes,
        }
    }

    pub(super) fn into_model(self) -> model::RetryPolicy {
        model::RetryPolicy {
            initial_interval: Millis(self.initial_interval_ms),
            backoff_permille: self.backoff_permille,
            maximum_interval: Millis(self.maximum_interval_ms),
            maximum_attempts: self.maximum_attempts,
            non_retryable_codes: self.non_retryable_codes,
        }
    }
}
