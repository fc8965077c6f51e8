//! What guests get from the host: views that borrow from the model, so that payload bytes are
//! copied once, straight into the guest's memory.

use steadfast_model::chain::Fields;
use steadfast_model::{Event, EventKind, Failure, FailureKind, Frame, Payload, Seq};
use steadfast_ports::guest::RunInfo;
use wasmtime::component::{ComponentType, Lower};

use super::lift::KindValue;

/// `types.payload`.
#[derive(ComponentType, Lower, Clone, Copy)]
#[component(record)]
pub(crate) struct PayloadRef<'a> {
    encoding: &'a str,
    data: &'a [u8],
}

impl PayloadRef<'_> {
    /// What a timer gives when it fires.
    const EMPTY: Self = Self {
        encoding: "",
        data: &[],
    };
}

impl<'a> From<&'a Payload> for PayloadRef<'a> {
    fn from(payload: &'a Payload) -> Self {
        Self {
            encoding: &payload.encoding,
            data: &payload.data,
        }
    }
}

/// `types.payload`, owned: the result of an import.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct PayloadResult {
    encoding: String,
    data: Vec<u8>,
}

impl From<Payload> for PayloadResult {
    fn from(payload: Payload) -> Self {
        Self {
            encoding: payload.encoding,
            data: payload.data,
        }
    }
}

/// `types.failure-frame`.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct FrameRef<'a> {
    kind: KindValue,
    message: &'a str,
    code: &'a str,
    #[component(name = "non-retryable")]
    non_retryable: bool,
    #[component(name = "next-retry-delay-ms")]
    next_retry_delay_ms: u64,
    #[component(name = "stack-trace")]
    stack_trace: &'a str,
    details: Option<PayloadRef<'a>>,
}

impl<'a> From<&'a Frame> for FrameRef<'a> {
    fn from(frame: &'a Frame) -> Self {
        let kind = kind(frame.kind);
        Self {
            kind,
            message: &frame.message,
            code: &frame.code,
            non_retryable: frame.non_retryable,
            next_retry_delay_ms: frame.next_retry_delay.0,
            stack_trace: &frame.stack_trace,
            details: frame.details.as_ref().map(PayloadRef::from),
        }
    }
}

fn kind(kind: FailureKind) -> KindValue {
    match kind {
        FailureKind::Application => KindValue::Application,
        FailureKind::Timeout => KindValue::Timeout,
        FailureKind::Canceled => KindValue::Canceled,
        FailureKind::Terminated => KindValue::Terminated,
        // Guests know the kinds of their package version: what has no name there is the nearest
        // one that has. The code and the message are the frame's own.
        FailureKind::Server | FailureKind::ResetWorkflow | FailureKind::NexusHandler => {
            KindValue::Server
        }
        FailureKind::ChildWorkflow => KindValue::ChildWorkflow,
        FailureKind::Activity | FailureKind::NexusOperation => KindValue::Activity,
    }
}

/// `types.failure`.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct FailureRef<'a> {
    frames: Vec<FrameRef<'a>>,
}

impl<'a> From<&'a Failure> for FailureRef<'a> {
    fn from(failure: &'a Failure) -> Self {
        Self {
            frames: failure.frames().iter().map(FrameRef::from).collect(),
        }
    }
}

/// `events.signal`.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct SignalRef<'a> {
    name: &'a str,
    input: PayloadRef<'a>,
}

/// `events.update`.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct UpdateRef<'a> {
    id: &'a str,
    name: &'a str,
    input: PayloadRef<'a>,
}

/// `events.resolution`.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct ResolutionRef<'a> {
    operation: u32,
    outcome: Result<PayloadRef<'a>, FailureRef<'a>>,
}

/// `events.event-kind`.
#[derive(ComponentType, Lower)]
#[component(variant)]
pub(crate) enum EventKindRef<'a> {
    #[component(name = "resolved")]
    Resolved(ResolutionRef<'a>),
    #[component(name = "signaled")]
    Signaled(SignalRef<'a>),
    #[component(name = "cancel-requested")]
    CancelRequested(&'a str),
    #[component(name = "update-accepted")]
    UpdateAccepted(UpdateRef<'a>),
}

/// `events.event`.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct EventRef<'a> {
    number: u64,
    #[component(name = "time-ms")]
    time_ms: u64,
    kind: EventKindRef<'a>,
}

impl<'a> EventRef<'a> {
    /// The event as the guest sees it, with the text that [`made_text`] made for it; `None` for one
    /// that guests are not told about.
    #[allow(clippy::too_many_lines, reason = "one short arm for each event")]
    pub(crate) fn new(event: &'a Event, made: &'a str) -> Option<Self> {
        let kind = match &event.kind {
            EventKind::ActivityTaskCompleted { seq, result, .. } => {
                resolved(*seq, Ok(result.into()))
            }
            EventKind::ActivityTaskFailed { seq, failure, .. }
            | EventKind::ActivityTaskTimedOut { seq, failure, .. }
            | EventKind::ActivityTaskCanceled { seq, failure } => {
                resolved(*seq, Err(failure.into()))
            }
            EventKind::TimerFired { seq }
            | EventKind::ExternalWorkflowExecutionSignaled { seq }
            | EventKind::ExternalWorkflowExecutionCancelRequested {
                seq,
                of_child: false,
            } => resolved(*seq, Ok(PayloadRef::EMPTY)),
            EventKind::StartChildWorkflowExecutionFailed { seq, failure, .. }
            | EventKind::SignalExternalWorkflowExecutionFailed { seq, failure, .. }
            | EventKind::RequestCancelExternalWorkflowExecutionFailed {
                seq,
                failure,
                of_child: false,
                ..
            } => resolved(*seq, Err(failure.into())),
            EventKind::ChildWorkflowExecutionStarted { seq, .. } => {
                let payload = PayloadRef {
                    encoding: "",
                    data: made.as_bytes(),
                };
                resolved(*seq, Ok(payload))
            }
            EventKind::ChildWorkflowExecutionCompleted { seq, result } => {
                resolved(seq.outcome(), Ok(result.into()))
            }
            EventKind::ChildWorkflowExecutionFailed { seq, failure }
            | EventKind::ChildWorkflowExecutionCanceled { seq, failure, .. }
            | EventKind::ChildWorkflowExecutionTimedOut { seq, failure }
            | EventKind::ChildWorkflowExecutionTerminated { seq, failure } => {
                resolved(seq.outcome(), Err(failure.into()))
            }
            EventKind::WorkflowExecutionSignaled { name, input, .. } => {
                EventKindRef::Signaled(SignalRef {
                    name: name.as_str(),
                    input: input.into(),
                })
            }
            EventKind::WorkflowExecutionCancelRequested { reason, .. } => {
                EventKindRef::CancelRequested(reason)
            }
            EventKind::WorkflowExecutionUpdateAccepted {
                update_id,
                name,
                input,
                identity: _,
            } => EventKindRef::UpdateAccepted(UpdateRef {
                id: update_id.as_str(),
                name: name.as_str(),
                input: input.into(),
            }),
            EventKind::WorkflowExecutionStarted { .. }
            | EventKind::WorkflowExecutionUpdateCompleted { .. }
            | EventKind::WorkflowExecutionCompleted { .. }
            | EventKind::WorkflowExecutionFailed { .. }
            | EventKind::WorkflowExecutionCanceled { .. }
            | EventKind::WorkflowExecutionTerminated { .. }
            | EventKind::WorkflowExecutionTimedOut { .. }
            | EventKind::WorkflowExecutionContinuedAsNew { .. }
            | EventKind::WorkflowPropertiesModified { .. }
            | EventKind::ActivityTaskScheduled { .. }
            | EventKind::ActivityTaskCancelRequested { .. }
            | EventKind::TimerStarted { .. }
            | EventKind::TimerCanceled { .. }
            | EventKind::MarkerRecorded { .. }
            | EventKind::StartChildWorkflowExecutionInitiated { .. }
            | EventKind::SignalExternalWorkflowExecutionInitiated { .. }
            | EventKind::RequestCancelExternalWorkflowExecutionInitiated { .. }
            | EventKind::RequestCancelExternalWorkflowExecutionFailed { .. }
            | EventKind::ExternalWorkflowExecutionCancelRequested { .. } => return None,
        };
        Some(Self {
            number: event.number.0,
            time_ms: event.time.0,
            kind,
        })
    }
}

/// The JSON text that a guest gets for an event which holds none: the run of a started child.
pub(crate) fn made_text(event: &Event) -> String {
    if let EventKind::ChildWorkflowExecutionStarted { run_id, .. } = &event.kind {
        format!("\"{run_id}\"")
    } else {
        String::new()
    }
}

fn resolved<'a>(seq: Seq, outcome: Result<PayloadRef<'a>, FailureRef<'a>>) -> EventKindRef<'a> {
    EventKindRef::Resolved(ResolutionRef {
        operation: seq.0,
        outcome,
    })
}

/// `workflow-info.info`.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct InfoValue {
    namespace: String,
    #[component(name = "workflow-id")]
    workflow_id: String,
    #[component(name = "run-id")]
    run_id: String,
    #[component(name = "workflow-type")]
    workflow_type: String,
    #[component(name = "task-queue")]
    task_queue: String,
    attempt: u32,
    #[component(name = "started-ms")]
    started_ms: u64,
}

impl From<&RunInfo> for InfoValue {
    fn from(info: &RunInfo) -> Self {
        Self {
            namespace: info.namespace.clone(),
            workflow_id: info.workflow_id.clone(),
            run_id: info.run_id.to_string(),
            workflow_type: info.workflow_type.clone(),
            task_queue: info.task_queue.clone(),
            attempt: info.attempt,
            started_ms: info.started.0,
        }
    }
}

/// `types.payload`, owned.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct PayloadOwned {
    encoding: String,
    data: Vec<u8>,
}

impl From<Payload> for PayloadOwned {
    fn from(payload: Payload) -> Self {
        Self {
            encoding: payload.encoding,
            data: payload.data,
        }
    }
}

/// `types.failure-frame`, owned.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct FrameOwned {
    kind: KindValue,
    message: String,
    code: String,
    #[component(name = "non-retryable")]
    non_retryable: bool,
    #[component(name = "next-retry-delay-ms")]
    next_retry_delay_ms: u64,
    #[component(name = "stack-trace")]
    stack_trace: String,
    details: Option<PayloadOwned>,
}

/// `types.failure`, owned.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct FailureOwned {
    frames: Vec<FrameOwned>,
}

/// The answer of `waiting.take`.
pub(crate) type OutcomeOwned = Result<PayloadOwned, FailureOwned>;

/// The outcome of an operation as `waiting.take` gives it.
pub(crate) fn outcome(outcome: Result<Payload, Failure>) -> OutcomeOwned {
    outcome
        .map(Into::into)
        .map_err(|failure| failure_owned(&failure))
}

fn failure_owned(failure: &Failure) -> FailureOwned {
    FailureOwned {
        frames: failure.frames().iter().map(frame_owned).collect(),
    }
}

fn frame_owned(frame: &Frame) -> FrameOwned {
    let FrameRef {
        kind,
        message,
        code,
        non_retryable,
        next_retry_delay_ms,
        stack_trace,
        details: _,
    } = FrameRef::from(frame);
    FrameOwned {
        kind,
        message: message.to_owned(),
        code: code.to_owned(),
        non_retryable,
        next_retry_delay_ms,
        stack_trace: stack_trace.to_owned(),
        details: frame.details.clone().map(Into::into),
    }
}

/// `workflow-info.chain-info`.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct ChainValue {
    #[component(name = "first-run-id")]
    first_run_id: String,
    #[component(name = "continued-run-id")]
    continued_run_id: String,
    initiator: String,
    cron: String,
    #[component(name = "last-completion-result")]
    last_completion_result: Option<PayloadOwned>,
    #[component(name = "last-failure")]
    last_failure: Option<FailureOwned>,
    memo: Vec<(String, PayloadOwned)>,
    headers: Vec<(String, PayloadOwned)>,
}

impl From<&RunInfo> for ChainValue {
    fn from(info: &RunInfo) -> Self {
        let link = &info.link;
        let fields = |fields: &Fields| {
            fields
                .iter()
                .map(|(name, value)| (name.clone(), value.clone().into()))
                .collect()
        };
        Self {
            first_run_id: link.first_run_id.unwrap_or(info.run_id).to_string(),
            continued_run_id: link
                .continued_run_id
                .map(|id| id.to_string())
                .unwrap_or_default(),
            initiator: link
                .initiator
                .map(|i| i.name().to_owned())
                .unwrap_or_default(),
            cron: info.options.cron.clone(),
            last_completion_result: link.last_completion_result.clone().map(Into::into),
            last_failure: link.last_failure.as_ref().map(failure_owned),
            memo: fields(&info.options.memo),
            headers: fields(&info.options.headers),
        }
    }
}
