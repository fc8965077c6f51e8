//! Activity tasks and what workers say about them.

use serde::{Deserialize, Serialize};
use steadfast_model::{Millis, Payload as ModelPayload, TaskState};
use steadfast_runtime::TaskToken;
use steadfast_runtime::message::{Assignment, Beat};
use utoipa::ToSchema;

use crate::wire::{Failure, Payload, Problem, Time, is_false, present};

/// Takes tasks of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PollTasks {
    /// What the worker calls itself; shown to people.
    pub worker: String,
    /// Most tasks to take, at most 256. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tasks: Option<u32>,
    /// How long to wait for the first task, at most 60000. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

/// Tasks that are the worker's now. Empty when none came in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolledTasks {
    /// The tasks.
    pub tasks: Vec<Task>,
}

/// One attempt of an activity, in the hands of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Task {
    /// Proof that the attempt is the worker's own. Opaque.
    pub token: String,
    /// What to run.
    pub activity_type: String,
    /// The user's name of the activity within its run, or its number.
    pub activity_id: String,
    /// Its input.
    pub input: Payload,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The same for every attempt of this activity and for no other: what an external service
    /// should deduplicate by.
    pub idempotency_key: String,
    /// The tenant.
    pub namespace: String,
    /// The execution.
    pub workflow_id: String,
    /// Its run.
    pub run_id: String,
    /// What runs there.
    pub workflow_type: String,
    /// When the activity was scheduled.
    pub scheduled_at: Time,
    /// When the attempt is given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Time>,
    /// Longest gap between two heartbeats; absent when none are required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_timeout_ms: Option<u64>,
    /// Details of the last heartbeat of an earlier attempt.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub heartbeat_details: Option<Payload>,
    /// Why the attempt before failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<Failure>,
}

/// Says that a worker is alive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatTask {
    /// The task's token.
    pub token: String,
    /// Where the work stands; the next attempt gets it.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub details: Option<Payload>,
}

/// The answer to a heartbeat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatAnswer {
    /// True if the activity should stop; confirm with a failure of the kind `canceled`.
    pub cancel_requested: bool,
    /// True while an operator wants no further attempt; this one may go on.
    #[serde(default, skip_serializing_if = "is_false")]
    pub paused: bool,
    /// True once an operator reset the activity: if this attempt fails, the next is the first.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reset: bool,
}

impl HeartbeatAnswer {
    /// The wire form of what a worker learns.
    #[must_use]
    pub fn from_model(beat: Beat) -> Self {
        Self {
            cancel_requested: beat.cancel_requested,
            paused: beat.paused,
            reset: beat.reset,
        }
    }
}

/// Hands in a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteTask {
    /// The task's token.
    pub token: String,
    /// The result; absent: `null`.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub result: Option<Payload>,
}

/// Hands in an attempt's failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailTask {
    /// The task's token.
    pub token: String,
    /// Why. An outermost frame of the kind `canceled` confirms a cancel request.
    pub failure: Failure,
}

/// Says that an attempt is reported later and from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeferTask {
    /// The task's token; it stays good.
    pub token: String,
}

/// Many messages at once; they share one flush of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskBatch {
    /// At most 1000 messages about different tasks.
    pub items: Vec<TaskBatchItem>,
}

/// One message of a batch: an object with one key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskBatchItem {
    /// A result.
    Complete(CompleteTask),
    /// A failure.
    Fail(FailTask),
    /// A sign of life.
    Heartbeat(HeartbeatTask),
}

/// What came of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskBatchResults {
    /// One per item, in the order of the items.
    pub results: Vec<TaskBatchResult>,
}

/// What came of one message: an object with one key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskBatchResult {
    /// It is done. Heartbeats tell here whether the activity should stop.
    Ok(HeartbeatAnswer),
    /// It failed; the other items are not affected.
    Error(Problem),
}

impl Task {
    /// The wire form of an assignment.
    #[must_use]
    pub fn from_model(assignment: Assignment) -> Self {
        let token = TaskToken::of(&assignment).to_string();
        let idempotency_key = assignment.idempotency_key();
        let Assignment {
            task,
            input,
            started,
        } = assignment;
        let deadline_at = deadline(&task).map(Time);
        Self {
            token,
            idempotency_key,
            deadline_at,
            activity_type: task.activity_type.as_str().to_owned(),
            activity_id: task.activity_id(),
            input: Payload::from_model(ModelPayload::clone(&input)),
            attempt: task.shown_attempt(),
            namespace: started.namespace.as_str().to_owned(),
            workflow_id: started.workflow_id.as_str().to_owned(),
            run_id: started.run_id.to_string(),
            workflow_type: started.workflow_type.as_str().to_owned(),
            scheduled_at: task.scheduled_at.into(),
            heartbeat_timeout_ms: task.options.heartbeat.map(|Millis(ms)| ms),
            heartbeat_details: task.heartbeat_details.map(Payload::from_model),
            last_failure: task.last_failure.as_ref().map(Failure::from_model),
        }
    }
}

/// When the running attempt times out: its own limit, or that of all attempts if it is nearer.
fn deadline(task: &steadfast_model::ActivityTask) -> Option<steadfast_model::Timestamp> {
    let TaskState::Started { since, .. } = &task.state else {
        return None;
    };
    let attempt = since.after(task.options.start_to_close);
    let all = task.deadline();
    Some(all.map_or(attempt, |all| all.min(attempt)))
}
