//! Events: one flat object each, with the attributes that its type has.
//!
//! The form is lossless: [`Event::from_model`] and [`Event::to_model`] are inverse, so an exported
//! history replays like the original. The mapping is in `event_model.rs`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::wire::{
    ActivityOptions, ChainOptions, ChildCancellation, ChildOptions, ExternalTarget, FailedCause,
    Failure, Link, Parent, Payload, RetryState, Time, TimeoutScope, is_false, present,
};

/// A page of a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HistoryPage {
    /// In order.
    pub events: Vec<Event>,
    /// Where to read on (pass it as `from`); absent after the last event of a closed run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// True if the run has ended.
    pub is_closed: bool,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum EventType {
    /// The run began. Has every attribute of the start.
    WorkflowExecutionStarted,
    /// The workflow returned: `result`, `new_run_id`.
    WorkflowExecutionCompleted,
    /// The workflow returned a failure: `failure`, `new_run_id`, `retry_state`.
    WorkflowExecutionFailed,
    /// The run took longer than allowed: `scope`, `new_run_id`, `retry_state`.
    WorkflowExecutionTimedOut,
    /// The workflow goes on in a new run: `new_run_id`, `workflow_type`, `input`, `not_before`.
    WorkflowExecutionContinuedAsNew,
    /// The workflow changed its memo: `memo`.
    WorkflowPropertiesModified,
    /// An activity was scheduled: `seq`, `activity_type`, `input`, `options`.
    ActivityTaskScheduled,
    /// It returned: `seq`, `result`, `attempt`, `worker`, `started_at`.
    ActivityTaskCompleted,
    /// It failed for good: `seq`, `failure`, `attempt`, `worker`, `retry_state`.
    ActivityTaskFailed,
    /// It ran out of time for good: `seq`, `failure`, `attempt`, `retry_state`.
    ActivityTaskTimedOut,
    /// The workflow asked it to stop: `seq`.
    ActivityTaskCancelRequested,
    /// It stopped because it was asked to: `seq`, `failure`.
    ActivityTaskCanceled,
    /// A timer was started: `seq`, `duration_ms`, `fire_at`.
    TimerStarted,
    /// It fired: `seq`.
    TimerFired,
    /// The workflow cancelled it: `seq`.
    TimerCanceled,
    /// Somebody asked the workflow to cancel itself: `reason`, `identity`, `request_id`.
    WorkflowExecutionCancelRequested,
    /// The workflow accepted the request and ended: `failure`.
    WorkflowExecutionCanceled,
    /// The code recorded an answer: `marker`, `name`, `details`.
    MarkerRecorded,
    /// A signal arrived: `name`, `input`, `request_id`, `identity`.
    WorkflowExecutionSignaled,
    /// The validator let an update in: `update_id`, `name`, `input`, `identity`.
    WorkflowExecutionUpdateAccepted,
    /// The update's handler ended: `update_id`, `accepted_event`, and `result` or `failure`.
    WorkflowExecutionUpdateCompleted,
    /// The run was ended from outside: `reason`, `identity`.
    WorkflowExecutionTerminated,
    /// The workflow asked another execution, or its child, to cancel itself: `seq`, `target`, `reason`,
    /// and for a child `cancellation_type`.
    RequestCancelExternalWorkflowExecutionInitiated,
    /// The request could not be delivered: `seq`, `cause`, `failure`, `of_child`.
    RequestCancelExternalWorkflowExecutionFailed,
    /// The request was delivered: `seq`, `of_child`.
    ExternalWorkflowExecutionCancelRequested,
    /// A child is to be started: `seq`, `workflow_type`, `input`, `child_options`.
    StartChildWorkflowExecutionInitiated,
    /// It could not be: `seq`, `cause`, `failure`.
    StartChildWorkflowExecutionFailed,
    /// It was: `seq`, `run_id`.
    ChildWorkflowExecutionStarted,
    /// It returned: `seq`, `result`.
    ChildWorkflowExecutionCompleted,
    /// It failed for good: `seq`, `failure`.
    ChildWorkflowExecutionFailed,
    /// It was cancelled: `seq`, `failure`, and `is_left` if the workflow only stopped waiting for it.
    ChildWorkflowExecutionCanceled,
    /// It ran out of time: `seq`, `failure`.
    ChildWorkflowExecutionTimedOut,
    /// It was ended from outside: `seq`, `failure`.
    ChildWorkflowExecutionTerminated,
    /// Another execution is to be signalled: `seq`, `target`, `name`, `input`.
    SignalExternalWorkflowExecutionInitiated,
    /// The signal could not be delivered: `seq`, `cause`, `failure`.
    SignalExternalWorkflowExecutionFailed,
    /// The signal was delivered: `seq`.
    ExternalWorkflowExecutionSignaled,
}

/// What a marker records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MarkerKind {
    /// The code asked whether a patch applies, and it does.
    Patch,
    /// The same of a patch that later code need not ask for.
    DeprecatedPatch,
    /// A value that the code computed once.
    SideEffect,
}

/// One event of a history. Only the attributes of its type are there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Dense from 1.
    pub number: u64,
    /// When it happened.
    pub time: Time,
    /// What happened.
    #[serde(rename = "type")]
    pub kind: EventType,
    /// The command that made the event, or that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u32>,
    /// The tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The user's name of the execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// What runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_type: Option<String>,
    /// Digest of the code that the run is pinned to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// Where the run's activities go unless they say otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_queue: Option<String>,
    /// Seed of the run's random stream, 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub random_seed: Option<String>,
    /// What activity was scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity_type: Option<String>,
    /// What the marker records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marker: Option<MarkerKind>,
    /// The name of the signal, the id of the patch, or the name of the side effect.
    /// The client's name of the update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_id: Option<String>,
    /// The event that accepted the update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_event: Option<u64>,
    /// The name of the signal or update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Input of the run, the activity, the signal or the update.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub input: Option<Payload>,
    /// How the activity is run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<ActivityOptions>,
    /// Result of the run, the activity or the update.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub result: Option<Payload>,
    /// The value of the side effect.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub details: Option<Payload>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The attempt, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Who ran the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// When the attempt began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// Why the activity is not tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_state: Option<RetryState>,
    /// How long the timer waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// When the timer fires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fire_at: Option<Time>,
    /// Why somebody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// What every run of the chain carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<ChainOptions>,
    /// Where the run stands in its chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
    /// The run that follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_run_id: Option<String>,
    /// Which limit the run exceeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<TimeoutScope>,
    /// The code of the run that follows does not run before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
    /// New values of the memo; an encoding of `binary/null` takes a value away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memo: Option<BTreeMap<String, Payload>>,
    /// The request that caused the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Who started the run as a child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// How the child is run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_options: Option<ChildOptions>,
    /// Which execution the message is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<ExternalTarget>,
    /// Why the message was not delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<FailedCause>,
    /// What cancelling the child means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancellation_type: Option<ChildCancellation>,
    /// True if the cancel request was for a child.
    #[serde(default, skip_serializing_if = "is_false")]
    pub of_child: bool,
    /// True if the workflow only stopped waiting: the child may go on.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_left: bool,
}

impl Event {
    /// An event without attributes.
    pub(crate) fn bare(number: u64, time: Time, kind: EventType) -> Self {
        Self {
            number,
            time,
            kind,
            seq: None,
            namespace: None,
            workflow_id: None,
            run_id: None,
            workflow_type: None,
            component: None,
            task_queue: None,
            random_seed: None,
            activity_type: None,
            marker: None,
            update_id: None,
            accepted_event: None,
            name: None,
            input: None,
            options: None,
            result: None,
            details: None,
            failure: None,
            attempt: None,
            worker: None,
            started_at: None,
            retry_state: None,
            duration_ms: None,
            fire_at: None,
            reason: None,
            identity: None,
            chain: None,
            link: None,
            new_run_id: None,
            scope: None,
            not_before: None,
            memo: None,
            request_id: None,
            parent: None,
            child_options: None,
            target: None,
            cause: None,
            cancellation_type: None,
            of_child: false,
            is_left: false,
        }
    }
}
