//! Executions: starting them, talking to them, and what is known about them.

use serde::{Deserialize, Serialize};
use steadfast_model as model;
use steadfast_model::{EventKind, ExecutionRecord};
use steadfast_runtime::reading::Description as Known;
use utoipa::ToSchema;

use crate::wire::{
    ActivityOptions, ChainOptions, Failure, Link, Parent, ParentClosePolicy, Payload, RetryState,
    Time, is_false, present,
};

/// A started workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StartedWorkflow {
    /// Its name.
    pub workflow_id: String,
    /// Its run.
    pub run_id: String,
    /// False if the same request had started it before.
    pub is_new: bool,
    /// Only with `wait_ms`: where it stands after the wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Outcome>,
}

/// Where an execution stands, and how it ended if it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Outcome {
    /// Where it stands.
    pub status: Status,
    /// What a completed workflow returned.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub result: Option<Payload>,
    /// Why a failed or canceled one ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Why a terminated one was ended, or which limit another exceeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who terminated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Time>,
    /// The run that follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_run_id: Option<String>,
}

/// Where an execution stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Open.
    Running,
    /// Ended with a result.
    Completed,
    /// Ended with a failure.
    Failed,
    /// Ended by accepting a cancel request.
    Canceled,
    /// Ended from outside.
    Terminated,
    /// Went on in a new run.
    ContinuedAsNew,
    /// Took longer than allowed.
    TimedOut,
}

/// One run of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Execution {
    /// The tenant.
    pub namespace: String,
    /// The user's name.
    pub workflow_id: String,
    /// The run.
    pub run_id: String,
    /// What runs.
    pub workflow_type: String,
    /// Digest of the code that it is pinned to.
    pub component: String,
    /// Where its activities go by default.
    pub task_queue: String,
    /// Where it stands.
    pub status: Status,
    /// When it began.
    pub started_at: Time,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Time>,
    /// Why it cannot make progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Blocked>,
    /// Its code does not run before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delayed_until: Option<Time>,
    /// Signals that its code was never told of before it ended; they stay in its history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undelivered_signals: Option<u32>,
}

/// Why an execution cannot make progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Blocked {
    /// Since when.
    pub since: Time,
    /// `nondeterminism`, `trap`, `timeout`, `limit` or `component`.
    pub code: String,
    /// Both sides of the difference, or the trap with its backtrace.
    pub message: String,
    /// Failed activations in a row.
    pub attempts: u32,
    /// When it is tried again; absent: not by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Time>,
}

/// A page of executions, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExecutionList {
    /// The executions.
    pub executions: Vec<Execution>,
    /// Pass it as `page_token` for the next page; absent after the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// Everything known about an execution now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Description {
    /// Its summary.
    pub execution: Execution,
    /// Events so far.
    pub history_length: u64,
    /// True once somebody asked it to cancel itself.
    pub cancel_requested: bool,
    /// Activities without an outcome.
    pub activities: Vec<PendingActivity>,
    /// Timers without an outcome.
    pub timers: Vec<PendingTimer>,
    /// Updates that wait for the validator or whose handler runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub updates: Vec<PendingUpdate>,
    /// What every run of its chain carries; the memo is the present one.
    pub options: ChainOptions,
    /// Where the run stands in its chain.
    pub link: Link,
    /// Children without an outcome.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<PendingChild>,
    /// Who started it as a child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
}

/// A child without an outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PendingChild {
    /// The command that started it.
    pub seq: u32,
    /// What it runs.
    pub workflow_type: String,
    /// Its name.
    pub workflow_id: String,
    /// Its first run; absent: it has not started yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// What happens to it when this run ends.
    pub parent_close_policy: ParentClosePolicy,
}

/// An update in flight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PendingUpdate {
    /// The client's name of it.
    pub update_id: String,
    /// The handler's name.
    pub name: String,
    /// False while it waits for the validator.
    pub is_accepted: bool,
    /// Since when it stands there.
    pub since: Time,
}

/// An activity without an outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PendingActivity {
    /// The command that scheduled it.
    pub seq: u32,
    /// The user's name of it, or the command's number.
    pub activity_id: String,
    /// What is run.
    pub activity_type: String,
    /// How it is run.
    pub options: ActivityOptions,
    /// When it was scheduled.
    pub scheduled_at: Time,
    /// The current attempt, from 1.
    pub attempt: u32,
    /// Where the attempt stands.
    pub state: TaskState,
    /// Since when it waits in its queue, or runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// When the next attempt may start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Time>,
    /// Who runs the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The time of the last heartbeat; the start of the attempt when none came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_heartbeat_at: Option<Time>,
    /// The last heartbeat's details.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub heartbeat_details: Option<Payload>,
    /// Why the attempt before failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<Failure>,
    /// True once the workflow asked for its cancellation.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cancel_requested: bool,
    /// Set while no further attempt starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Paused>,
    /// True once an operator reset it while an attempt ran.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reset_requested: bool,
    /// True if the running attempt is reported from elsewhere than its worker.
    #[serde(default, skip_serializing_if = "is_false")]
    pub completes_later: bool,
    /// True if its workflow no longer waits for the outcome.
    #[serde(default, skip_serializing_if = "is_false")]
    pub abandoned: bool,
    /// When the last failed attempt ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failed_at: Option<Time>,
    /// The options before an operator changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_options: Option<ActivityOptions>,
}

/// Why an activity starts no further attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Paused {
    /// Since when.
    pub at: Time,
    /// Why; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Who asked; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub identity: String,
    /// Set when the activity paused itself instead of failing for good: why it would have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_have_failed: Option<RetryState>,
}

/// Where an attempt stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Waits in its task queue.
    Ready,
    /// Waits for the next attempt.
    Backoff,
    /// A worker has it.
    Started,
}

/// A timer without an outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PendingTimer {
    /// The command that started it.
    pub seq: u32,
    /// When it fires.
    pub fire_at: Time,
}

/// Sends a signal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalWorkflow {
    /// Its payload; absent: `null`.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub input: Option<Payload>,
    /// The same id again is the same signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Who sends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
}

/// Asks a workflow to cancel itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelWorkflow {
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same id again is the same request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
}

/// Ends a workflow now; none of its code runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminateWorkflow {
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
}

/// Nothing to say: it is done, and durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Empty {}

impl From<model::Status> for Status {
    fn from(status: model::Status) -> Self {
        match status {
            model::Status::Running => Self::Running,
            model::Status::Completed => Self::Completed,
            model::Status::Failed => Self::Failed,
            model::Status::Canceled => Self::Canceled,
            model::Status::Terminated => Self::Terminated,
            model::Status::ContinuedAsNew => Self::ContinuedAsNew,
            model::Status::TimedOut => Self::TimedOut,
        }
    }
}

impl From<Status> for model::Status {
    fn from(status: Status) -> Self {
        match status {
            Status::Running => Self::Running,
            Status::Completed => Self::Completed,
            Status::Failed => Self::Failed,
            Status::Canceled => Self::Canceled,
            Status::Terminated => Self::Terminated,
            Status::ContinuedAsNew => Self::ContinuedAsNew,
            Status::TimedOut => Self::TimedOut,
        }
    }
}

impl Outcome {
    /// Where a run stands, by its last event; `None`: it is open.
    #[must_use]
    pub fn from_model(close: Option<model::Event>) -> Self {
        let mut outcome = Self {
            status: Status::Running,
            result: None,
            failure: None,
            reason: None,
            identity: None,
            closed_at: None,
            new_run_id: None,
        };
        let Some(event) = close else { return outcome };
        outcome.closed_at = Some(event.time.into());
        outcome.new_run_id = event.kind.new_run_id().map(|id| id.to_string());
        if let EventKind::WorkflowExecutionCompleted { result, .. } = event.kind {
            outcome.status = Status::Completed;
            outcome.result = Some(Payload::from_model(result));
        } else if let EventKind::WorkflowExecutionFailed { failure, .. } = &event.kind {
            outcome.status = Status::Failed;
            outcome.failure = Some(Failure::from_model(failure));
        } else if let EventKind::WorkflowExecutionCanceled { failure } = &event.kind {
            outcome.status = Status::Canceled;
            outcome.failure = Some(Failure::from_model(failure));
        } else if let EventKind::WorkflowExecutionTerminated { reason, identity } = event.kind {
            outcome.status = Status::Terminated;
            outcome.reason = Some(reason);
            outcome.identity = Some(identity);
        } else if let EventKind::WorkflowExecutionTimedOut { scope, .. } = event.kind {
            outcome.status = Status::TimedOut;
            outcome.reason = Some(format!("the {} timeout passed", scope.name()));
        } else if let EventKind::WorkflowExecutionContinuedAsNew { .. } = event.kind {
            outcome.status = Status::ContinuedAsNew;
        }
        outcome
    }
}

impl Execution {
    /// The wire form of a run's summary.
    #[must_use]
    pub fn from_model(record: ExecutionRecord) -> Self {
        Self {
            namespace: record.namespace.to_string(),
            workflow_id: record.workflow_id.to_string(),
            run_id: record.run_id.to_string(),
            workflow_type: record.workflow_type.to_string(),
            component: record.component.to_string(),
            task_queue: record.task_queue.to_string(),
            status: record.status.into(),
            started_at: record.started_at.into(),
            closed_at: record.closed_at.map(Time),
            delayed_until: record.delayed_until.map(Into::into),
            undelivered_signals: record.undelivered_signals,
            blocked: record.blocked.map(|blocked| Blocked {
                since: blocked.since.into(),
                code: blocked.code,
                message: blocked.message,
                attempts: blocked.attempts,
                retry_at: blocked.retry_at.map(Time),
            }),
        }
    }
}

impl Description {
    /// The wire form of a description.
    #[must_use]
    pub fn from_model(description: Known) -> Self {
        let activities = description.activities.into_iter();
        let timers = description.timers.into_iter();
        let updates = description.updates.into_iter();
        let children = description.children.into_iter();
        Self {
            options: ChainOptions::from_model(description.options),
            link: Link::from_model(description.link),
            children: children
                .map(|child| PendingChild {
                    seq: child.seq.0,
                    workflow_type: child.workflow_type.to_string(),
                    workflow_id: child.workflow_id.to_string(),
                    run_id: child.run_id.map(|run_id| run_id.to_string()),
                    parent_close_policy: child.parent_close_policy.into(),
                })
                .collect(),
            parent: description.parent.as_deref().map(Parent::from_model),
            execution: Execution::from_model(description.record),
            history_length: description.history_length,
            cancel_requested: description.cancel_requested,
            activities: activities.map(PendingActivity::from_model).collect(),
            timers: timers
                .map(|(seq, fire_at)| PendingTimer {
                    seq,
                    fire_at: fire_at.into(),
                })
                .collect(),
            updates: updates
                .map(|update| PendingUpdate {
                    update_id: update.update_id.to_string(),
                    name: update.name.to_string(),
                    is_accepted: update.is_accepted,
                    since: update.since.into(),
                })
                .collect(),
        }
    }
}

impl PendingActivity {
    /// The wire form of a pending activity.
    #[must_use]
    pub fn from_model(task: model::ActivityTask) -> Self {
        let (activity_id, attempt) = (task.activity_id(), task.shown_attempt());
        let original = task.control.original_options;
        let original = original.map(|options| ActivityOptions::from_model(*options));
        let mut pending = Self {
            seq: task.seq.0,
            activity_id,
            activity_type: task.activity_type.to_string(),
            options: ActivityOptions::from_model(task.options),
            scheduled_at: task.scheduled_at.into(),
            attempt,
            state: TaskState::Ready,
            since: None,
            next_attempt_at: None,
            worker: None,
            last_heartbeat_at: None,
            heartbeat_details: task.heartbeat_details.map(Payload::from_model),
            last_failure: task.last_failure.as_ref().map(Failure::from_model),
            cancel_requested: task.cancel_requested,
            paused: task.control.paused.map(|paused| Paused {
                at: paused.at.into(),
                reason: paused.reason,
                identity: paused.identity,
                would_have_failed: paused.parked.map(RetryState::from),
            }),
            reset_requested: task.control.reset_requested,
            completes_later: task.control.is_deferred,
            abandoned: task.control.is_abandoned,
            last_failed_at: task.control.last_failed_at.map(Time),
            original_options: original,
        };
        match task.state {
            model::TaskState::Ready { since } => pending.since = Some(since.into()),
            model::TaskState::Backoff { until } => {
                pending.state = TaskState::Backoff;
                pending.next_attempt_at = Some(until.into());
            }
            model::TaskState::Started {
                worker,
                since,
                heartbeat,
            } => {
                pending.state = TaskState::Started;
                pending.worker = Some(worker);
                pending.since = Some(since.into());
                pending.last_heartbeat_at = Some(heartbeat.into());
            }
        }
        pending
    }
}
