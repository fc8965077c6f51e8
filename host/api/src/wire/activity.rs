//! Pending activities by their ids: reports from outside, operators' changes, those that need one.

use serde::{Deserialize, Serialize};
use steadfast_model::{ActivityType, Millis, TaskQueue};
use steadfast_runtime::reexport::Patch;
use steadfast_runtime::reexport::operate as model;
use utoipa::ToSchema;

use crate::wire::{Execution, Failure, Invalid, Payload, PendingActivity, is_false, present};

/// Says that an activity has a result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteActivity {
    /// The result; absent: `null`.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub result: Option<Payload>,
}

/// Says that the current attempt of an activity failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailActivity {
    /// Why.
    pub failure: Failure,
}

/// What an activity that is cancelled, or alive, has to say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ActivityDetails {
    /// Details, for the workflow or for the next attempt.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub details: Option<Payload>,
}

/// Does something to pending activities: to one, to those of a type, or to all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OperateActivities {
    /// Only the one of this id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity_id: Option<String>,
    /// Only those of this type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity_type: Option<String>,
    /// All of them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub all: bool,
    /// What to do.
    pub operation: ActivityOperation,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
}

/// What to do to pending activities: an object with one key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActivityOperation {
    /// Start no further attempt; a running one is told with its next heartbeat.
    Pause(Reason),
    /// Go on with the next attempt now.
    Unpause(Unpause),
    /// Begin again: attempts count from 1, limits from now. A running attempt goes on; if it
    /// fails, the next one is the first. Also what sends an activity on that waits for an operator.
    Reset(ResetActivity),
    /// Change options.
    UpdateOptions(UpdateOptions),
    /// Give up: the workflow is told that the activity failed for good.
    Drop(Reason),
}

/// Why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// A line for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// How to go on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Unpause {
    /// Count attempts from 1 again.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reset_attempts: bool,
    /// Forget the last heartbeat's details.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reset_heartbeat: bool,
    /// Begin after a random time up to this.
    #[serde(default)]
    pub jitter_ms: u64,
}

/// How to begin again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResetActivity {
    /// Forget the last heartbeat's details.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reset_heartbeat: bool,
    /// Stay paused.
    #[serde(default, skip_serializing_if = "is_false")]
    pub keep_paused: bool,
    /// Take back what operators changed of the options.
    #[serde(default, skip_serializing_if = "is_false")]
    pub restore_original_options: bool,
    /// Begin after a random time up to this.
    #[serde(default)]
    pub jitter_ms: u64,
}

/// Changed options. What is absent stays; zero takes a limit away.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateOptions {
    /// Take back earlier changes first.
    #[serde(default, skip_serializing_if = "is_false")]
    pub restore_original_options: bool,
    /// Where its tasks go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_queue: Option<String>,
    /// Limit over all attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_to_close_ms: Option<u64>,
    /// Limit of waiting in the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_to_start_ms: Option<u64>,
    /// Limit of one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_to_close_ms: Option<u64>,
    /// Longest gap between two heartbeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_ms: Option<u64>,
    /// The wait before the second attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_interval_ms: Option<u64>,
    /// Growth of the interval per attempt, in thousandths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_permille: Option<u32>,
    /// Largest interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum_interval_ms: Option<u64>,
    /// Attempts allowed in total; 0 means unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum_attempts: Option<u32>,
    /// Failure codes that are never retried, in place of those before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub non_retryable_codes: Option<Vec<String>>,
}

/// What an operation reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OperatedActivities {
    /// How many pending activities were meant.
    pub count: u32,
}

/// A page of activities that keep failing or are paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeadLetterList {
    /// The activities, by execution, newest first.
    pub activities: Vec<DeadLetter>,
    /// Pass it as `page_token` for the next page; absent after the last one. A page may be empty
    /// and not the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// An activity that keeps failing or is paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeadLetter {
    /// Whose.
    pub execution: Execution,
    /// The activity.
    pub activity: PendingActivity,
}

impl OperateActivities {
    /// Which activities are meant.
    ///
    /// # Errors
    /// [`Invalid`] unless exactly one of the three is given.
    pub fn which(&self) -> Result<model::Which, Invalid> {
        match (&self.activity_id, &self.activity_type, self.all) {
            (Some(id), None, false) => Ok(model::Which::Id(id.clone())),
            (None, Some(name), false) => {
                let name = ActivityType::new(name.clone());
                let invalid = |error: steadfast_model::id::Invalid| {
                    Invalid::new("activity_type", error.to_string())
                };
                name.map(model::Which::Type).map_err(invalid)
            }
            (None, None, true) => Ok(model::Which::All),
            _ => Err(Invalid::new(
                "activity_id",
                "give one of activity_id, activity_type and all",
            )),
        }
    }
}

impl ActivityOperation {
    /// The operation that it stands for.
    ///
    /// # Errors
    /// [`Invalid`] for a malformed task queue.
    pub fn into_model(self) -> Result<model::Operation, Invalid> {
        Ok(match self {
            Self::Pause(Reason { reason }) => model::Operation::Pause { reason },
            Self::Drop(Reason { reason }) => model::Operation::Drop { reason },
            Self::Unpause(how) => model::Operation::Unpause {
                reset_attempts: how.reset_attempts,
                reset_heartbeat: how.reset_heartbeat,
                jitter: Millis(how.jitter_ms),
            },
            Self::Reset(how) => model::Operation::Reset {
                reset_heartbeat: how.reset_heartbeat,
                keep_paused: how.keep_paused,
                restore_options: how.restore_original_options,
                jitter: Millis(how.jitter_ms),
            },
            Self::UpdateOptions(options) => model::Operation::Update {
                restore_options: options.restore_original_options,
                patch: Box::new(options.into_patch()?),
            },
        })
    }
}

impl UpdateOptions {
    fn into_patch(self) -> Result<Patch, Invalid> {
        let queue = self.task_queue.map(TaskQueue::new).transpose();
        let ms = |limit: Option<u64>| limit.map(Millis);
        Ok(Patch {
            task_queue: queue.map_err(|error| Invalid::new("task_queue", error.to_string()))?,
            schedule_to_close: ms(self.schedule_to_close_ms),
            schedule_to_start: ms(self.schedule_to_start_ms),
            start_to_close: ms(self.start_to_close_ms),
            heartbeat: ms(self.heartbeat_ms),
            initial_interval: ms(self.initial_interval_ms),
            backoff_permille: self.backoff_permille,
            maximum_interval: ms(self.maximum_interval_ms),
            maximum_attempts: self.maximum_attempts,
            non_retryable_codes: self.non_retryable_codes,
        })
    }
}
