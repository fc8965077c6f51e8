//! A host whose workflows run one activity: the workflow type names it, the input is its input.

use std::sync::Arc;
use std::time::Duration;

use steadfast_model::command::Step;
use steadfast_model::component::WorkflowDescription;
use steadfast_model::{
    ComponentDescription, ComponentDigest, Event, EventKind, Millis, Namespace, Payload, TaskState,
    Timestamp, WorkflowId, WorkflowType,
};
use steadfast_ports::Clock;
use steadfast_ports::fake::{ManualClock, MemStore, SeededEntropy};
use steadfast_ports::guest::{
    ActivityCall, Admitted, CallOptions, Driven, Error, Fetch, Guest, Guests, HostCalls, Refusal,
};
use steadfast_runtime::handle::{Caller, StartOptions, StartWorkflow, Target};
use steadfast_runtime::{Activities, Handle, Options, World, start};

/// A workflow that runs the activity of its own name and ends as it ends.
#[derive(Debug)]
struct PassOn {
    options: CallOptions,
    seq: Option<steadfast_model::Seq>,
}

impl PassOn {
    fn begin(
        &mut self,
        name: &str,
        input: &Payload,
        calls: &mut dyn HostCalls,
    ) -> Result<Step, Error> {
        let call = ActivityCall {
            activity_type: name,
            input: &input.data,
            encoding: &input.encoding,
            options: &self.options,
        };
        self.seq = Some(calls.schedule_activity(call)?);
        Ok(Step::Blocked)
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "test code")]
    fn take(&self, event: &Event, calls: &mut dyn HostCalls) -> Result<Step, Error> {
        Ok(match event.kind.clone() {
            EventKind::ActivityTaskCompleted { result, .. } => Step::Completed(result),
            EventKind::ActivityTaskFailed { failure, .. }
            | EventKind::ActivityTaskTimedOut { failure, .. } => Step::Failed(failure),
            EventKind::ActivityTaskCanceled { failure, .. } => Step::Canceled(failure),
            EventKind::WorkflowExecutionCancelRequested { .. } => {
                calls.cancel_activity(self.seq.expect("begun"))?;
                Step::Blocked
            }
            _ => Step::Blocked,
        })
    }
}

impl Guest for PassOn {
    fn start(&mut self, name: &str, input: &Payload, mut calls: Box<dyn HostCalls>) -> Driven {
        (self.begin(name, input, &mut *calls), calls)
    }

    fn resume(&mut self, events: &[Event], mut calls: Box<dyn HostCalls>) -> Driven {
        for event in events {
            let step = self.take(event, &mut *calls);
            if step != Ok(Step::Blocked) {
                return (step, calls);
            }
        }
        (Ok(Step::Blocked), calls)
    }

    fn memory_bytes(&self) -> usize {
        100
    }
}

struct PassOns {
    names: Vec<String>,
    options: CallOptions,
}

impl Guests for PassOns {
    fn admit(&self, _bytes: &[u8]) -> Result<Admitted, Refusal> {
        let workflow = |name: &String| WorkflowDescription {
            name: name.clone(),
            doc: String::new(),
            input_schema: String::new(),
            output_schema: String::new(),
            signals: Vec::new(),
            queries: Vec::new(),
            updates: Vec::new(),
        };
        let description = ComponentDescription {
            sdk: "test/1".to_owned(),
            resume_batch_max: 1,
            workflows: self.names.iter().map(workflow).collect(),
            imports: Vec::new(),
        };
        Ok(Admitted {
            digest: ComponentDigest([1; 32]),
            description,
        })
    }

    fn instantiate(&self, _: ComponentDigest, _: Fetch<'_>) -> Result<Box<dyn Guest>, Error> {
        Ok(Box::new(PassOn {
            options: self.options.clone(),
            seq: None,
        }))
    }
}

/// A host with activities.
pub(crate) struct Host {
    pub(crate) handle: Handle,
    pub(crate) clock: Arc<ManualClock>,
}

impl Host {
    pub(crate) async fn new(activities: Activities, options: CallOptions) -> Self {
        let names = activities.types().iter().map(ToString::to_string).collect();
        let clock = Arc::new(ManualClock::new(Timestamp(1_700_000_000_000)));
        let world = World {
            store: Arc::new(MemStore::new()),
            guests: Arc::new(PassOns { names, options }),
            clock: clock.clone(),
            entropy: Arc::new(SeededEntropy::new(1)),
        };
        let options = Options {
            activities,
            ..Options::default()
        };
        let handle = start(options, world).expect("a host");
        handle.upload(b"x".to_vec()).await.expect("uploaded");
        Self { handle, clock }
    }

    /// Begins an activity.
    pub(crate) async fn begin(&self, id: &str, name: &str, input: &str) -> Target {
        let namespace = Namespace::new("default").expect("a name");
        let workflow_id = WorkflowId::new(id).expect("a name");
        let request = StartWorkflow {
            namespace: namespace.clone(),
            workflow_id: Some(workflow_id.clone()),
            workflow_type: WorkflowType::new(name).expect("a name"),
            task_queue: None,
            input: Payload::json(input),
            request_id: None,
            identity: String::new(),
            options: StartOptions::default(),
        };
        let started = self.handle.start(request).await.expect("started");
        Target {
            namespace,
            workflow_id,
            run_id: Some(started.run_id),
        }
    }

    /// Waits for the end of an activity.
    pub(crate) async fn end(&self, target: &Target) -> EventKind {
        let close = self.handle.result(target, Duration::from_secs(30)).await;
        close.expect("a result").expect("it ended").kind
    }

    /// Runs an activity.
    pub(crate) async fn run(&self, name: &str, input: &str) -> EventKind {
        let target = self.begin("a", name, input).await;
        self.end(&target).await
    }

    /// Asks an activity to stop.
    pub(crate) async fn cancel(&self, target: &Target) {
        let reason = "enough".to_owned();
        self.handle
            .cancel(target, reason, Caller::default())
            .await
            .expect("asked");
    }

    /// Waits until the pending activity is in a backoff that has not passed yet, lets it pass, and
    /// returns how long it was.
    pub(crate) async fn pass_backoff(&self, target: &Target) -> Millis {
        loop {
            let description = self.handle.describe(target).await.expect("described");
            let task = description.activities.first();
            if let Some(TaskState::Backoff { until }) = task.map(|task| &task.state)
                && *until > self.clock.now()
            {
                let pause = until.since(self.clock.now());
                self.clock.set(*until);
                return pause;
            }
            tokio::task::yield_now().await;
        }
    }
}

/// The result of a completed activity, as text.
#[allow(clippy::wildcard_enum_match_arm, reason = "test code")]
pub(crate) fn completed(end: EventKind) -> String {
    match end {
        EventKind::WorkflowExecutionCompleted { result, .. } => {
            String::from_utf8(result.data).expect("text")
        }
        other => panic!("{other:?}"),
    }
}

/// Why an activity failed: the code of the innermost frame.
#[allow(clippy::wildcard_enum_match_arm, reason = "test code")]
pub(crate) fn failed(end: EventKind) -> String {
    match end {
        EventKind::WorkflowExecutionFailed { failure, .. } => {
            failure.frames().last().expect("a frame").code.clone()
        }
        other => panic!("{other:?}"),
    }
}
