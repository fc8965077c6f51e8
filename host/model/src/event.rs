//! Recorded facts. Names are the field's; stored numbers are those of Temporal's event types.

use alloc::string::String;

use minicbor::{Decode, Encode};

use crate::activity::ActivityOptions;
use crate::chain::{ChainOptions, Fields, Link, is_default};
use crate::child::{ChildCancellation, ChildOptions, ExternalTarget, FailedCause, Parent};
use crate::failure::{Failure, RetryState};
use crate::id::{
    ActivityType, ComponentDigest, EventNumber, Namespace, RequestId, RunId, Seq, SignalName,
    TaskQueue, UpdateId, UpdateName, WorkflowId, WorkflowType,
};
use crate::marker::Marker;
use crate::payload::Payload;
use crate::time::{Millis, Timestamp};

mod class;

/// One event of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Dense from 1.
    pub number: EventNumber,
    /// When it happened; never before the event before it.
    pub time: Timestamp,
    /// What happened.
    pub kind: EventKind,
}

/// What an update's handler answered.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum UpdateOutcome {
    /// A result.
    #[n(0)]
    Success {
        /// The result.
        #[n(0)]
        result: Payload,
    },
    /// A failure.
    #[n(1)]
    Failure {
        /// Why.
        #[n(0)]
        failure: Failure,
    },
}

impl From<Result<Payload, Failure>> for UpdateOutcome {
    fn from(result: Result<Payload, Failure>) -> Self {
        match result {
            Ok(result) => Self::Success { result },
            Err(failure) => Self::Failure { failure },
        }
    }
}

/// First event of every history.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Started {
    /// The tenant.
    #[n(0)]
    pub namespace: Namespace,
    /// The user's name of the execution.
    #[n(1)]
    pub workflow_id: WorkflowId,
    /// This run.
    #[n(2)]
    pub run_id: RunId,
    /// What runs.
    #[n(3)]
    pub workflow_type: WorkflowType,
    /// The code that it is pinned to.
    #[n(4)]
    pub component: ComponentDigest,
    /// Where its activities go unless they say otherwise.
    #[n(5)]
    pub task_queue: TaskQueue,
    /// What it was started with.
    #[n(6)]
    pub input: Payload,
    /// Seed of the run's random stream.
    #[cbor(n(7), with = "minicbor::bytes")]
    pub random_seed: [u8; 32],
    /// The request that started it.
    #[n(8)]
    pub request_id: RequestId,
    /// Who asked; may be empty.
    #[n(9)]
    pub identity: String,
    /// 1 for the first run; grows with each retry of the workflow.
    #[n(10)]
    pub attempt: u32,
    /// What was asked for, for this run and those that follow it.
    #[cbor(n(11), skip_if = "is_default")]
    pub options: ChainOptions,
    /// Where the run stands in its chain.
    #[cbor(n(12), skip_if = "is_default")]
    pub link: Link,
    /// Who started it as a child.
    #[n(13)]
    pub parent: Option<alloc::boxed::Box<Parent>>,
}

/// What a run that has ended was limited by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum TimeoutScope {
    /// The limit of one run.
    #[n(0)]
    Run,
    /// The limit over the whole chain.
    #[n(1)]
    Execution,
}

impl TimeoutScope {
    /// The name used by the API and the CLI.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Execution => "execution",
        }
    }
}

/// What happened. A variant's fields are only ever appended, as optional ones.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum EventKind {
    /// The run began.
    #[n(1)]
    WorkflowExecutionStarted {
        /// Everything the run began with. Boxed: it is ten times the size of the others.
        #[n(0)]
        started: alloc::boxed::Box<Started>,
    },
    /// The workflow returned a result.
    #[n(2)]
    WorkflowExecutionCompleted {
        /// The result.
        #[n(0)]
        result: Payload,
        /// The run that follows.
        #[n(1)]
        new_run_id: Option<RunId>,
    },
    /// The workflow returned a failure.
    #[n(3)]
    WorkflowExecutionFailed {
        /// Why.
        #[n(0)]
        failure: Failure,
        /// The run that follows: another attempt, or the next of a schedule.
        #[n(1)]
        new_run_id: Option<RunId>,
        /// Why there is no other attempt, or that there is.
        #[n(2)]
        retry_state: Option<RetryState>,
    },
    /// The run took longer than allowed; no code ran.
    #[n(4)]
    WorkflowExecutionTimedOut {
        /// Which limit.
        #[n(0)]
        scope: TimeoutScope,
        /// The run that follows: another attempt, or the next of a schedule.
        #[n(1)]
        new_run_id: Option<RunId>,
        /// Why there is no other attempt, or that there is.
        #[n(2)]
        retry_state: RetryState,
    },
    /// A command: an activity was scheduled.
    #[n(10)]
    ActivityTaskScheduled {
        /// The command's number.
        #[n(0)]
        seq: Seq,
        /// What to run.
        #[n(1)]
        activity_type: ActivityType,
        /// Its input.
        #[n(2)]
        input: Payload,
        /// How to run it.
        #[n(3)]
        options: alloc::boxed::Box<ActivityOptions>,
    },
    /// The activity returned a result.
    #[n(12)]
    ActivityTaskCompleted {
        /// The activity.
        #[n(0)]
        seq: Seq,
        /// Its result.
        #[n(1)]
        result: Payload,
        /// The attempt that succeeded.
        #[n(2)]
        attempt: u32,
        /// Who ran it.
        #[n(3)]
        worker: String,
        /// When that attempt began.
        #[n(4)]
        started_at: Timestamp,
    },
    /// The activity failed for good.
    #[n(13)]
    ActivityTaskFailed {
        /// The activity.
        #[n(0)]
        seq: Seq,
        /// Why; the outermost frame is the activity's.
        #[n(1)]
        failure: Failure,
        /// The last attempt.
        #[n(2)]
        attempt: u32,
        /// Who ran it.
        #[n(3)]
        worker: String,
        /// Why it is not tried again.
        #[n(4)]
        retry_state: RetryState,
    },
    /// The activity ran out of time for good.
    #[n(14)]
    ActivityTaskTimedOut {
        /// The activity.
        #[n(0)]
        seq: Seq,
        /// Which timeout, and the last real failure as its cause.
        #[n(1)]
        failure: Failure,
        /// The last attempt.
        #[n(2)]
        attempt: u32,
        /// Why it is not tried again.
        #[n(3)]
        retry_state: RetryState,
    },
    /// A command: the workflow asked the activity to stop.
    #[n(15)]
    ActivityTaskCancelRequested {
        /// The activity.
        #[n(0)]
        seq: Seq,
    },
    /// The activity stopped because it was asked to.
    #[n(16)]
    ActivityTaskCanceled {
        /// The activity.
        #[n(0)]
        seq: Seq,
        /// The cancellation, with the details that the worker gave.
        #[n(1)]
        failure: Failure,
    },
    /// A command: a timer was started.
    #[n(17)]
    TimerStarted {
        /// The command's number.
        #[n(0)]
        seq: Seq,
        /// How long it waits.
        #[n(1)]
        duration: Millis,
        /// When it fires.
        #[n(2)]
        fire_at: Timestamp,
    },
    /// The timer fired.
    #[n(18)]
    TimerFired {
        /// The timer.
        #[n(0)]
        seq: Seq,
    },
    /// A command: the timer was cancelled.
    #[n(19)]
    TimerCanceled {
        /// The timer.
        #[n(0)]
        seq: Seq,
    },
    /// Somebody asked the workflow to cancel itself.
    #[n(20)]
    WorkflowExecutionCancelRequested {
        /// Why; may be empty.
        #[n(0)]
        reason: String,
        /// Who asked; may be empty.
        #[n(1)]
        identity: String,
        /// The request.
        #[n(2)]
        request_id: RequestId,
    },
    /// The workflow accepted the cancel request and ended.
    #[n(21)]
    WorkflowExecutionCanceled {
        /// The cancellation, with details.
        #[n(0)]
        failure: Failure,
    },
    /// A command: an answer was recorded.
    #[n(25)]
    MarkerRecorded {
        /// The answer.
        #[n(0)]
        marker: Marker,
    },

    /// A command: the workflow asked another execution, or its child, to cancel itself.
    #[n(22)]
    RequestCancelExternalWorkflowExecutionInitiated {
        /// The command's number; for a child, the number of its start.
        #[n(0)]
        seq: Seq,
        /// Which execution.
        #[n(1)]
        target: alloc::boxed::Box<ExternalTarget>,
        /// Why; may be empty.
        #[n(2)]
        reason: String,
        /// For a child: what cancelling it means. With `abandon` it is not told.
        #[n(3)]
        of_child: Option<ChildCancellation>,
    },
    /// The cancel request could not be delivered.
    #[n(23)]
    RequestCancelExternalWorkflowExecutionFailed {
        /// The request.
        #[n(0)]
        seq: Seq,
        /// Why, for programs.
        #[n(1)]
        cause: FailedCause,
        /// Why, for the workflow.
        #[n(2)]
        failure: Failure,
        /// True if it was for a child.
        #[n(3)]
        of_child: bool,
    },
    /// The cancel request was delivered.
    #[n(24)]
    ExternalWorkflowExecutionCancelRequested {
        /// The request.
        #[n(0)]
        seq: Seq,
        /// True if it was for a child.
        #[n(1)]
        of_child: bool,
    },
    /// A signal arrived.
    #[n(26)]
    WorkflowExecutionSignaled {
        /// Its name.
        #[n(0)]
        name: SignalName,
        /// Its payload.
        #[n(1)]
        input: Payload,
        /// The request.
        #[n(2)]
        request_id: RequestId,
        /// Who sent it; may be empty.
        #[n(3)]
        identity: String,
    },
    /// The workflow's validator let an update in; its handler is told next.
    #[n(41)]
    WorkflowExecutionUpdateAccepted {
        /// The client's name of the update.
        #[n(0)]
        update_id: UpdateId,
        /// The handler's name.
        #[n(1)]
        name: UpdateName,
        /// Its input.
        #[n(2)]
        input: Payload,
        /// Who sent it; may be empty.
        #[n(3)]
        identity: String,
    },
    /// A command: the handler of an accepted update ended.
    #[n(43)]
    WorkflowExecutionUpdateCompleted {
        /// The update.
        #[n(0)]
        update_id: UpdateId,
        /// Its `WorkflowExecutionUpdateAccepted` event.
        #[n(1)]
        accepted: EventNumber,
        /// What it answers.
        #[n(2)]
        outcome: UpdateOutcome,
    },
    /// The run was ended from outside; no code ran.
    #[n(27)]
    WorkflowExecutionTerminated {
        /// Why; may be empty.
        #[n(0)]
        reason: String,
        /// Who asked; may be empty.
        #[n(1)]
        identity: String,
    },
    /// The workflow goes on in a new run.
    #[n(28)]
    WorkflowExecutionContinuedAsNew {
        /// The run that follows.
        #[n(0)]
        new_run_id: RunId,
        /// What it runs.
        #[n(1)]
        workflow_type: WorkflowType,
        /// What it is started with.
        #[n(2)]
        input: Payload,
        /// When its code may run; `None`: at once.
        #[n(3)]
        not_before: Option<Timestamp>,
    },
    /// A command: the workflow changed its memo.
    #[n(46)]
    WorkflowPropertiesModified {
        /// New values; an encoding of `binary/null` takes a value away.
        #[n(0)]
        memo: Fields,
    },
    /// A command: a child workflow is to be started.
    #[n(29)]
    StartChildWorkflowExecutionInitiated {
        /// The number of its start; its outcome has the next one.
        #[n(0)]
        seq: Seq,
        /// What to run.
        #[n(1)]
        workflow_type: WorkflowType,
        /// Its input.
        #[n(2)]
        input: Payload,
        /// How to run it.
        #[n(3)]
        options: alloc::boxed::Box<ChildOptions>,
    },
    /// The child could not be started.
    #[n(30)]
    StartChildWorkflowExecutionFailed {
        /// The number of its start.
        #[n(0)]
        seq: Seq,
        /// Why, for programs.
        #[n(1)]
        cause: FailedCause,
        /// Why, for the workflow.
        #[n(2)]
        failure: Failure,
    },
    /// The child was started.
    #[n(31)]
    ChildWorkflowExecutionStarted {
        /// The number of its start.
        #[n(0)]
        seq: Seq,
        /// Its first run.
        #[n(1)]
        run_id: RunId,
    },
    /// The child returned a result.
    #[n(32)]
    ChildWorkflowExecutionCompleted {
        /// The number of its start.
        #[n(0)]
        seq: Seq,
        /// Its result.
        #[n(1)]
        result: Payload,
    },
    /// The child failed for good.
    #[n(33)]
    ChildWorkflowExecutionFailed {
        /// The number of its start.
        #[n(0)]
        seq: Seq,
        /// Why; the outermost frame is the child's.
        #[n(1)]
        failure: Failure,
    },
    /// The child was cancelled, or the workflow stopped waiting for it.
    #[n(34)]
    ChildWorkflowExecutionCanceled {
        /// The number of its start.
        #[n(0)]
        seq: Seq,
        /// The cancellation; the outermost frame is the child's.
        #[n(1)]
        failure: Failure,
        /// True if the workflow only stopped waiting: the child may go on.
        #[n(2)]
        is_left: bool,
    },
    /// The child ran out of time.
    #[n(35)]
    ChildWorkflowExecutionTimedOut {
        /// The number of its start.
        #[n(0)]
        seq: Seq,
        /// Which timeout; the outermost frame is the child's.
        #[n(1)]
        failure: Failure,
    },
    /// The child was ended from outside.
    #[n(36)]
    ChildWorkflowExecutionTerminated {
        /// The number of its start.
        #[n(0)]
        seq: Seq,
        /// The reason; the outermost frame is the child's.
        #[n(1)]
        failure: Failure,
    },
    /// A command: another execution is to be signalled.
    #[n(37)]
    SignalExternalWorkflowExecutionInitiated {
        /// The command's number.
        #[n(0)]
        seq: Seq,
        /// Which execution.
        #[n(1)]
        target: alloc::boxed::Box<ExternalTarget>,
        /// The signal's name.
        #[n(2)]
        name: SignalName,
        /// Its payload.
        #[n(3)]
        input: Payload,
    },
    /// The signal could not be delivered.
    #[n(38)]
    SignalExternalWorkflowExecutionFailed {
        /// The signal.
        #[n(0)]
        seq: Seq,
        /// Why, for programs.
        #[n(1)]
        cause: FailedCause,
        /// Why, for the workflow.
        #[n(2)]
        failure: Failure,
    },
    /// The signal was delivered.
    #[n(39)]
    ExternalWorkflowExecutionSignaled {
        /// The signal.
        #[n(0)]
        seq: Seq,
    },
}
