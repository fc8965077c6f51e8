//! Recorded facts. Names are the field's; stored numbers are those of Temporal's event types.

use alloc::string::String;

use minicbor::{Decode, Encode};

use crate::activity::ActivityOptions;
use crate::chain::{ChainOptions, Fields, Link, is_default};
use crate::failure::{Failure, RetryState};
use crate::id::{
    ActivityType, ComponentDigest, EventNumber, Namespace, RequestId, RunId, Seq, SignalName,
    TaskQueue, UpdateId, UpdateName, WorkflowId, WorkflowType,
};
use crate::marker::Marker;
use crate::payload::Payload;
use crate::time::{Millis, Timestamp};

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
}

impl EventKind {
    /// The event's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::WorkflowExecutionStarted { .. } => "WorkflowExecutionStarted",
            Self::WorkflowExecutionCompleted { .. } => "WorkflowExecutionCompleted",
            Self::WorkflowExecutionFailed { .. } => "WorkflowExecutionFailed",
            Self::ActivityTaskScheduled { .. } => "ActivityTaskScheduled",
            Self::ActivityTaskCompleted { .. } => "ActivityTaskCompleted",
            Self::ActivityTaskFailed { .. } => "ActivityTaskFailed",
            Self::ActivityTaskTimedOut { .. } => "ActivityTaskTimedOut",
            Self::ActivityTaskCancelRequested { .. } => "ActivityTaskCancelRequested",
            Self::ActivityTaskCanceled { .. } => "ActivityTaskCanceled",
            Self::TimerStarted { .. } => "TimerStarted",
            Self::TimerFired { .. } => "TimerFired",
            Self::TimerCanceled { .. } => "TimerCanceled",
            Self::WorkflowExecutionCancelRequested { .. } => "WorkflowExecutionCancelRequested",
            Self::WorkflowExecutionCanceled { .. } => "WorkflowExecutionCanceled",
            Self::MarkerRecorded { .. } => "MarkerRecorded",
            Self::WorkflowExecutionSignaled { .. } => "WorkflowExecutionSignaled",
            Self::WorkflowExecutionUpdateAccepted { .. } => "WorkflowExecutionUpdateAccepted",
            Self::WorkflowExecutionUpdateCompleted { .. } => "WorkflowExecutionUpdateCompleted",
            Self::WorkflowExecutionTerminated { .. } => "WorkflowExecutionTerminated",
            Self::WorkflowExecutionTimedOut { .. } => "WorkflowExecutionTimedOut",
            Self::WorkflowExecutionContinuedAsNew { .. } => "WorkflowExecutionContinuedAsNew",
            Self::WorkflowPropertiesModified { .. } => "WorkflowPropertiesModified",
        }
    }

    /// True for events that a command of the guest made.
    #[must_use]
    pub fn is_command(&self) -> bool {
        match self {
            Self::ActivityTaskScheduled { .. }
            | Self::ActivityTaskCancelRequested { .. }
            | Self::TimerStarted { .. }
            | Self::TimerCanceled { .. }
            | Self::MarkerRecorded { .. }
            | Self::WorkflowExecutionUpdateCompleted { .. }
            | Self::WorkflowExecutionCompleted { .. }
            | Self::WorkflowExecutionFailed { .. }
            | Self::WorkflowExecutionContinuedAsNew { .. }
            | Self::WorkflowPropertiesModified { .. }
            | Self::WorkflowExecutionCanceled { .. } => true,
            Self::WorkflowExecutionStarted { .. }
            | Self::ActivityTaskCompleted { .. }
            | Self::ActivityTaskFailed { .. }
            | Self::ActivityTaskTimedOut { .. }
            | Self::ActivityTaskCanceled { .. }
            | Self::TimerFired { .. }
            | Self::WorkflowExecutionCancelRequested { .. }
            | Self::WorkflowExecutionSignaled { .. }
            | Self::WorkflowExecutionUpdateAccepted { .. }
            | Self::WorkflowExecutionTimedOut { .. }
            | Self::WorkflowExecutionTerminated { .. } => false,
        }
    }

    /// True for events that a guest is told about, one at a time.
    #[must_use]
    pub fn is_delivered(&self) -> bool {
        match self {
            Self::ActivityTaskCompleted { .. }
            | Self::ActivityTaskFailed { .. }
            | Self::ActivityTaskTimedOut { .. }
            | Self::ActivityTaskCanceled { .. }
            | Self::TimerFired { .. }
            | Self::WorkflowExecutionCancelRequested { .. }
            | Self::WorkflowExecutionSignaled { .. }
            | Self::WorkflowExecutionUpdateAccepted { .. } => true,
            Self::WorkflowExecutionStarted { .. }
            | Self::WorkflowExecutionCompleted { .. }
            | Self::WorkflowExecutionFailed { .. }
            | Self::WorkflowExecutionCanceled { .. }
            | Self::WorkflowExecutionTerminated { .. }
            | Self::WorkflowExecutionTimedOut { .. }
            | Self::WorkflowExecutionContinuedAsNew { .. }
            | Self::WorkflowPropertiesModified { .. }
            | Self::ActivityTaskScheduled { .. }
            | Self::ActivityTaskCancelRequested { .. }
            | Self::TimerStarted { .. }
            | Self::TimerCanceled { .. }
            | Self::MarkerRecorded { .. }
            | Self::WorkflowExecutionUpdateCompleted { .. } => false,
        }
    }

    /// True for the last event of a run.
    #[must_use]
    pub fn is_close(&self) -> bool {
        matches!(
            self,
            Self::WorkflowExecutionCompleted { .. }
                | Self::WorkflowExecutionFailed { .. }
                | Self::WorkflowExecutionCanceled { .. }
                | Self::WorkflowExecutionTerminated { .. }
                | Self::WorkflowExecutionTimedOut { .. }
                | Self::WorkflowExecutionContinuedAsNew { .. }
        )
    }

    /// The operation that the event resolves for the guest, if it does.
    #[must_use]
    pub fn resolves(&self) -> Option<Seq> {
        match self {
            Self::ActivityTaskCompleted { seq, .. }
            | Self::ActivityTaskFailed { seq, .. }
            | Self::ActivityTaskTimedOut { seq, .. }
            | Self::ActivityTaskCanceled { seq, .. }
            | Self::TimerFired { seq } => Some(*seq),
            Self::WorkflowExecutionStarted { .. }
            | Self::WorkflowExecutionCompleted { .. }
            | Self::WorkflowExecutionFailed { .. }
            | Self::WorkflowExecutionCanceled { .. }
            | Self::WorkflowExecutionTerminated { .. }
            | Self::WorkflowExecutionTimedOut { .. }
            | Self::WorkflowExecutionContinuedAsNew { .. }
            | Self::WorkflowPropertiesModified { .. }
            | Self::WorkflowExecutionCancelRequested { .. }
            | Self::WorkflowExecutionSignaled { .. }
            | Self::ActivityTaskScheduled { .. }
            | Self::ActivityTaskCancelRequested { .. }
            | Self::TimerStarted { .. }
            | Self::TimerCanceled { .. }
            | Self::MarkerRecorded { .. }
            | Self::WorkflowExecutionUpdateAccepted { .. }
            | Self::WorkflowExecutionUpdateCompleted { .. } => None,
        }
    }

    /// The run that follows the one that this event ends, if one does.
    #[must_use]
    pub fn new_run_id(&self) -> Option<RunId> {
        if let Self::WorkflowExecutionCompleted { new_run_id, .. }
        | Self::WorkflowExecutionFailed { new_run_id, .. }
        | Self::WorkflowExecutionTimedOut { new_run_id, .. } = self
        {
            *new_run_id
        } else if let Self::WorkflowExecutionContinuedAsNew { new_run_id, .. } = self {
            Some(*new_run_id)
        } else {
            None
        }
    }

    /// Bytes of the payload or failure that a guest is told with the event.
    #[must_use]
    pub fn told_bytes(&self) -> usize {
        if let Self::ActivityTaskCompleted {
            result: payload, ..
        }
        | Self::WorkflowExecutionSignaled { input: payload, .. } = self
        {
            payload.size_bytes()
        } else if let Self::ActivityTaskFailed { failure, .. }
        | Self::ActivityTaskTimedOut { failure, .. }
        | Self::ActivityTaskCanceled { failure, .. } = self
        {
            failure.size_bytes()
        } else {
            0
        }
    }
}
