//! What guests give to the host. Import arguments stay in the guest's memory until they are read;
//! results of exports are owned, because the guest frees them when its call ends.

use steadfast_model::chain::{ContinueAsNew, UnreadSignal};
use steadfast_model::command::{LogLevel, Step};
use steadfast_model::component::{MessageDescription, WorkflowDescription};
use steadfast_model::id::Invalid;
use steadfast_model::{
    ComponentDescription, Failure, FailureKind, Frame, Millis, Payload, Seq, SignalName, TaskQueue,
    WorkflowType,
};
use steadfast_ports::guest::Stop;
use wasmtime::component::{ComponentType, Lift, WasmList, WasmStr};

/// `types.payload` as an import's argument.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct PayloadArg {
    pub(crate) encoding: WasmStr,
    pub(crate) data: WasmList<u8>,
}

/// `activities.activity-options`.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct OptionsArg {
    #[component(name = "schedule-to-close-ms")]
    pub(crate) schedule_to_close_ms: u64,
    #[component(name = "schedule-to-start-ms")]
    pub(crate) schedule_to_start_ms: u64,
    #[component(name = "start-to-close-ms")]
    pub(crate) start_to_close_ms: u64,
    #[component(name = "heartbeat-ms")]
    pub(crate) heartbeat_ms: u64,
    #[component(name = "initial-interval-ms")]
    pub(crate) initial_interval_ms: u64,
    #[component(name = "backoff-permille")]
    pub(crate) backoff_permille: u32,
    #[component(name = "maximum-interval-ms")]
    pub(crate) maximum_interval_ms: u64,
    #[component(name = "maximum-attempts")]
    pub(crate) maximum_attempts: u32,
    pub(crate) settings: WasmList<(WasmStr, WasmStr)>,
}

/// `children.child-options`.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct ChildOptionsArg {
    #[component(name = "execution-timeout-ms")]
    pub(crate) execution_timeout_ms: u64,
    #[component(name = "run-timeout-ms")]
    pub(crate) run_timeout_ms: u64,
    #[component(name = "initial-interval-ms")]
    pub(crate) initial_interval_ms: u64,
    #[component(name = "backoff-permille")]
    pub(crate) backoff_permille: u32,
    #[component(name = "maximum-interval-ms")]
    pub(crate) maximum_interval_ms: u64,
    #[component(name = "maximum-attempts")]
    pub(crate) maximum_attempts: u32,
    pub(crate) settings: WasmList<(WasmStr, WasmStr)>,
}

/// `executions.target`.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct TargetArg {
    pub(crate) namespace: WasmStr,
    #[component(name = "workflow-id")]
    pub(crate) workflow_id: WasmStr,
    #[component(name = "run-id")]
    pub(crate) run_id: WasmStr,
    #[component(name = "child-only")]
    pub(crate) child_only: bool,
}

/// `log.level`.
#[derive(ComponentType, Lift, Clone, Copy)]
#[component(enum)]
#[repr(u8)]
#[allow(
    dead_code,
    reason = "only the derived `Lift` makes values, out of numbers"
)]
pub(crate) enum LevelArg {
    #[component(name = "debug")]
    Debug,
    #[component(name = "info")]
    Info,
    #[component(name = "warn")]
    Warn,
    #[component(name = "error")]
    Error,
}

impl From<LevelArg> for LogLevel {
    fn from(level: LevelArg) -> Self {
        match level {
            LevelArg::Debug => Self::Debug,
            LevelArg::Info => Self::Info,
            LevelArg::Warn => Self::Warn,
            LevelArg::Error => Self::Error,
        }
    }
}

/// `types.payload` in a result.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct PayloadValue {
    encoding: String,
    data: Vec<u8>,
}

impl From<PayloadValue> for Payload {
    fn from(value: PayloadValue) -> Self {
        Self::encoded(&value.encoding, value.data)
    }
}

/// `types.failure-kind`, both ways.
#[derive(ComponentType, Lift, wasmtime::component::Lower, Clone, Copy)]
#[component(enum)]
#[repr(u8)]
pub(crate) enum KindValue {
    #[component(name = "application")]
    Application,
    #[component(name = "timeout")]
    Timeout,
    #[component(name = "canceled")]
    Canceled,
    #[component(name = "terminated")]
    Terminated,
    #[component(name = "server")]
    Server,
    #[component(name = "activity")]
    Activity,
    #[component(name = "child-workflow")]
    ChildWorkflow,
}

impl From<KindValue> for FailureKind {
    fn from(kind: KindValue) -> Self {
        match kind {
            KindValue::Application => Self::Application,
            KindValue::Timeout => Self::Timeout,
            KindValue::Canceled => Self::Canceled,
            KindValue::Terminated => Self::Terminated,
            KindValue::Server => Self::Server,
            KindValue::Activity => Self::Activity,
            KindValue::ChildWorkflow => Self::ChildWorkflow,
        }
    }
}

/// `types.failure-frame` in a result.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct FrameValue {
    kind: KindValue,
    message: String,
    code: String,
    #[component(name = "non-retryable")]
    non_retryable: bool,
    #[component(name = "next-retry-delay-ms")]
    next_retry_delay_ms: u64,
    #[component(name = "stack-trace")]
    stack_trace: String,
    details: Option<PayloadValue>,
}

impl From<FrameValue> for Frame {
    fn from(value: FrameValue) -> Self {
        Self {
            kind: value.kind.into(),
            message: value.message,
            code: value.code,
            non_retryable: value.non_retryable,
            next_retry_delay: Millis(value.next_retry_delay_ms).capped(),
            stack_trace: value.stack_trace,
            details: value.details.map(Payload::from),
            attributes: Vec::new(),
            encoded_attributes: None,
        }
    }
}

/// `types.failure` in a result.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct FailureValue {
    frames: Vec<FrameValue>,
}

impl From<FailureValue> for Failure {
    fn from(value: FailureValue) -> Self {
        Self::from_frames(value.frames.into_iter().map(Frame::from).collect())
    }
}

/// `events.step`.
#[derive(ComponentType, Lift)]
#[component(variant)]
pub(crate) enum StepValue {
    #[component(name = "blocked")]
    Blocked,
    #[component(name = "completed")]
    Completed(PayloadValue),
    #[component(name = "failed")]
    Failed(FailureValue),
    #[component(name = "canceled")]
    Canceled(FailureValue),
    #[component(name = "unknown-operation")]
    UnknownOperation(u32),
    #[component(name = "continued")]
    Continued(ContinueValue),
}

/// `events.unread-signal`.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct UnreadValue {
    event: u64,
    name: String,
    input: PayloadValue,
}

/// `events.continue-as-new`.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct ContinueValue {
    input: PayloadValue,
    #[component(name = "workflow-type")]
    workflow_type: String,
    #[component(name = "task-queue")]
    task_queue: String,
    memo: Option<Vec<(String, PayloadValue)>>,
    unread: Vec<UnreadValue>,
    settings: Vec<(String, String)>,
}

impl TryFrom<ContinueValue> for ContinueAsNew {
    type Error = Stop;

    /// Names and settings are the guest's: what is wrong with them stops the activation.
    fn try_from(value: ContinueValue) -> Result<Self, Stop> {
        let invalid = |error: Invalid| Stop::Invalid(format!("continue-as-new: {error}"));
        let name = |text: String| (!text.is_empty()).then_some(text);
        let fields = |list: Vec<(String, PayloadValue)>| {
            list.into_iter()
                .map(|(name, value)| (name, value.into()))
                .collect()
        };
        let mut unread = Vec::with_capacity(value.unread.len());
        for signal in value.unread {
            unread.push(UnreadSignal {
                event: signal.event,
                name: SignalName::new(signal.name).map_err(invalid)?,
                input: signal.input.into(),
            });
        }
        let mut next = Self {
            input: value.input.into(),
            workflow_type: name(value.workflow_type)
                .map(WorkflowType::new)
                .transpose()
                .map_err(invalid)?,
            task_queue: name(value.task_queue)
                .map(TaskQueue::new)
                .transpose()
                .map_err(invalid)?,
            run_timeout: None,
            memo: value.memo.map(fields),
            unread,
        };
        for (name, value) in value.settings {
            match (name.as_str(), value.parse()) {
                ("run-timeout-ms", Ok(ms)) => next.run_timeout = Some(Millis(ms).capped()),
                ("run-timeout-ms", Err(_)) => {
                    let text = format!("continue-as-new: run-timeout-ms is no number: {value:?}");
                    return Err(Stop::Invalid(text));
                }
                _ => {
                    let text = format!("continue-as-new: unknown setting {name:?}");
                    return Err(Stop::Invalid(text));
                }
            }
        }
        Ok(next)
    }
}

impl TryFrom<StepValue> for Step {
    type Error = Stop;

    fn try_from(value: StepValue) -> Result<Self, Stop> {
        Ok(match value {
            StepValue::Blocked => Self::Blocked,
            StepValue::Completed(payload) => Self::Completed(payload.into()),
            StepValue::Failed(failure) => Self::Failed(failure.into()),
            StepValue::Canceled(failure) => Self::Canceled(failure.into()),
            StepValue::UnknownOperation(operation) => Self::UnknownOperation(Seq(operation)),
            StepValue::Continued(next) => Self::ContinuedAsNew(Box::new(next.try_into()?)),
        })
    }
}

/// `description.message-description`.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct MessageValue {
    name: String,
    doc: String,
    #[component(name = "input-schema")]
    input_schema: String,
    #[component(name = "output-schema")]
    output_schema: String,
}

impl From<MessageValue> for MessageDescription {
    fn from(value: MessageValue) -> Self {
        Self {
            name: value.name,
            doc: value.doc,
            input_schema: value.input_schema,
            output_schema: value.output_schema,
        }
    }
}

/// `description.workflow-description`.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct WorkflowValue {
    name: String,
    doc: String,
    #[component(name = "input-schema")]
    input_schema: String,
    #[component(name = "output-schema")]
    output_schema: String,
    signals: Vec<MessageValue>,
    queries: Vec<MessageValue>,
    updates: Vec<MessageValue>,
}

impl From<WorkflowValue> for WorkflowDescription {
    fn from(value: WorkflowValue) -> Self {
        let messages = |list: Vec<MessageValue>| list.into_iter().map(Into::into).collect();
        Self {
            name: value.name,
            doc: value.doc,
            input_schema: value.input_schema,
            output_schema: value.output_schema,
            signals: messages(value.signals),
            queries: messages(value.queries),
            updates: messages(value.updates),
        }
    }
}

/// `description.component-description`.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct DescriptionValue {
    sdk: String,
    #[component(name = "resume-batch-max")]
    resume_batch_max: u32,
    workflows: Vec<WorkflowValue>,
}

impl DescriptionValue {
    /// The most events that one call of `resume` takes.
    pub(crate) fn batch_max(&self) -> usize {
        usize::try_from(self.resume_batch_max).unwrap_or(1)
    }

    /// The description, with the imports that the component was seen to have.
    pub(crate) fn with_imports(self, imports: Vec<String>) -> ComponentDescription {
        ComponentDescription {
            sdk: self.sdk,
            resume_batch_max: self.resume_batch_max,
            workflows: self.workflows.into_iter().map(Into::into).collect(),
            imports,
        }
    }
}
