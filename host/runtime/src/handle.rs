//! The only entrance: cheap to clone, safe to use from many tasks.
//!
//! A call that returns `Ok` is durable. Calls that change something take a request id; the same id
//! again is the same request.

use std::sync::Arc;
use std::time::Duration;

use steadfast_engine::decide::{Request, start as started_event};
use steadfast_engine::options::START_TO_CLOSE_DEFAULT;
use steadfast_model::event::Started;
use steadfast_model::limits::{LONG_POLL_MAX, PAYLOAD_BYTES_MAX};
use steadfast_model::{
    ComponentDigest, ComponentRecord, EventKind, EventNumber, ExecutionRecord, Millis, Namespace,
    Payload, RequestId, RunId, RunKey, SignalName, Status, TaskQueue, WorkflowId, WorkflowType,
};
use steadfast_ports::Entropy;
use steadfast_ports::store::{self, Batch, FencingToken, Write};

use crate::driver::Shared;
use crate::error::Error;
use crate::host::{RunKeys, ShutdownGuard};
use crate::message::{CallError, Input, NewRun};
use crate::recorded::read_history;

/// The name of the only namespace of this version.
pub const DEFAULT_NAMESPACE: &str = "default";

/// Tries to start a run whose workflow id others start at the same time.
const START_TRIES: u32 = 10;

/// Which execution a call is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The tenant.
    pub namespace: Namespace,
    /// The user's name of the execution.
    pub workflow_id: WorkflowId,
    /// One run of it; `None`: the current one.
    pub run_id: Option<RunId>,
}

/// A workflow to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartWorkflow {
    /// The tenant.
    pub namespace: Namespace,
    /// The user's name; `None`: a random one.
    pub workflow_id: Option<WorkflowId>,
    /// What to run: the current version of this type.
    pub workflow_type: WorkflowType,
    /// Where its activities go; `None`: the host's default.
    pub task_queue: Option<TaskQueue>,
    /// What to start it with.
    pub input: Payload,
    /// The same id again is the same start; `None`: a random one.
    pub request_id: Option<RequestId>,
    /// Who starts it; may be empty.
    pub identity: String,
}

/// A started workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedWorkflow {
    /// Its name.
    pub workflow_id: WorkflowId,
    /// Its run.
    pub run_id: RunId,
    /// False if the same request had started it before.
    pub is_new: bool,
}

/// Who asks, and which request it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// Who asks; may be empty.
    pub identity: String,
    /// The same id again is the same request; `None`: a random one.
    pub request_id: Option<RequestId>,
}

/// An uploaded component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uploaded {
    /// What is known about it.
    pub record: ComponentRecord,
    /// False if the same bytes were there before.
    pub is_new: bool,
}

/// The entrance to a running host. The host stops when the last clone is dropped.
#[derive(Clone)]
pub struct Handle {
    pub(crate) shared: Arc<Shared>,
    _guard: Arc<ShutdownGuard>,
    entropy: Arc<dyn Entropy>,
    keys: Arc<RunKeys>,
    default_queue: TaskQueue,
    fence: FencingToken,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle")
            .field("default_queue", &self.default_queue)
            .finish_non_exhaustive()
    }
}

impl Handle {
    pub(crate) fn new(
        shared: Arc<Shared>,
        entropy: Arc<dyn Entropy>,
        last_run: RunKey,
        default_queue: TaskQueue,
        fence: FencingToken,
    ) -> Self {
        let guard = Arc::new(ShutdownGuard(shared.clone()));
        let keys = Arc::new(RunKeys::after(last_run));
        Self {
            shared,
            _guard: guard,
            entropy,
            keys,
            default_queue,
            fence,
        }
    }

    /// Waits until the host can only be healed by a restart, and says why. It acknowledges
    /// nothing any more then.
    pub async fn fatal(&self) -> store::Error {
        let mut fatal = self.shared.fatal.subscribe();
        let error = fatal
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|error| error.clone());
        error.unwrap_or(store::Error::Closed)
    }

    /// Admits a component, keeps it, and makes it the current version of its workflow types.
    ///
    /// # Errors
    /// [`Error::Refused`] says what is wrong with it.
    pub async fn upload(&self, bytes: Vec<u8>) -> Result<Uploaded, Error> {
        let (shared, fence) = (self.shared.clone(), self.fence);
        blocking(move || {
            let admitted = shared.guests.admit(&bytes)?;
            let known = shared.store.components()?;
            let known = known
                .into_iter()
                .find(|record| record.digest == admitted.digest);
            let is_new = known.is_none();
            let record = known.unwrap_or_else(|| ComponentRecord {
                digest: admitted.digest,
                size_bytes: bytes.len() as u64,
                uploaded_at: shared.clock.now(),
                description: admitted.description,
            });
            let mut writes = Vec::new();
            if is_new {
                writes.push(Write::PutComponent {
                    record: Box::new(record.clone()),
                    bytes,
                });
            }
            for workflow in &record.description.workflows {
                writes.push(Write::PutRoute {
                    namespace: Namespace::new(DEFAULT_NAMESPACE)?,
                    workflow_type: WorkflowType::new(workflow.name.clone())?,
                    component: record.digest,
                });
            }
            shared.store.commit(Batch { fence, writes })?;
            Ok(Uploaded { record, is_new })
        })
        .await
    }

    /// All components.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the store cannot be read.
    pub async fn components(&self) -> Result<Vec<ComponentRecord>, Error> {
        let shared = self.shared.clone();
        blocking(move || Ok(shared.store.components()?)).await
    }

    /// The component that new runs of a workflow type take.
    ///
    /// # Errors
    /// [`Error::NotFound`] when no component has the type.
    pub fn route(
        &self,
        namespace: &Namespace,
        workflow_type: &WorkflowType,
    ) -> Result<ComponentDigest, Error> {
        let missing = || Error::NotFound {
            what: "workflow type",
            name: workflow_type.to_string(),
        };
        self.shared
            .store
            .route(namespace, workflow_type)?
            .ok_or_else(missing)
    }

    /// Starts a workflow.
    ///
    /// # Errors
    /// [`Error::AlreadyStarted`] when another start holds the workflow id with an open run;
    /// [`Error::NotFound`] for an unknown workflow type; [`Error::TooLarge`] for the input.
    pub async fn start(&self, start: StartWorkflow) -> Result<StartedWorkflow, Error> {
        self.start_with(start, None).await
    }

    /// Starts a workflow; `first` reaches the run in the batch that begins it.
    pub(crate) async fn start_with(
        &self,
        start: StartWorkflow,
        first: Option<Request>,
    ) -> Result<StartedWorkflow, Error> {
        check_namespace(&start.namespace)?;
        check_payload("input", &start.input)?;
        let component = self.route(&start.namespace, &start.workflow_type)?;
        let workflow_id = match start.workflow_id.clone() {
            Some(id) => id,
            None => WorkflowId::new(self.random_name())?,
        };
        let request_id = self.request_id(start.request_id.clone())?;
        for _ in 0..START_TRIES {
            let replaces = self
                .shared
                .store
                .current_run(&start.namespace, &workflow_id)?;
            if let Some(current) = replaces
                && let Some(outcome) = self.started_before(current, &workflow_id, &request_id)?
            {
                return outcome;
            }
            let mut new = self.new_run(&start, &workflow_id, &request_id, component, replaces)?;
            new.first.clone_from(&first);
            let (run, run_id) = (new.record.run, new.record.run_id);
            let input = |reply| Input::Start {
                new: Box::new(new),
                reply,
            };
            match self.shared.call(run, input).await {
                Ok(_) => {
                    return Ok(StartedWorkflow {
                        workflow_id,
                        run_id,
                        is_new: true,
                    });
                }
                // Somebody else started this id meanwhile: look again.
                Err(CallError::Conflict(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Unavailable(format!(
            "too many starts of {workflow_id} at the same time"
        )))
    }

    /// What a start answers when its workflow id has a run; `None`: the id is free again.
    #[allow(
        clippy::type_complexity,
        reason = "an answer that may be an error, or none"
    )]
    fn started_before(
        &self,
        current: RunKey,
        workflow_id: &WorkflowId,
        request_id: &RequestId,
    ) -> Result<Option<Result<StartedWorkflow, Error>>, Error> {
        let Some(record) = self.shared.store.execution(current)? else {
            return Ok(None);
        };
        let first = read_history(&*self.shared.store, current, EventNumber::FIRST)?;
        let is_same = first.first().is_some_and(|event| {
            matches!(&event.kind, EventKind::WorkflowExecutionStarted { started }
                if started.request_id == *request_id)
        });
        if is_same {
            let workflow_id = workflow_id.clone();
            let run_id = record.run_id;
            return Ok(Some(Ok(StartedWorkflow {
                workflow_id,
                run_id,
                is_new: false,
            })));
        }
        let is_open = !record.status.is_closed();
        Ok(is_open.then_some(Err(Error::AlreadyStarted {
            run_id: record.run_id,
        })))
    }

    fn new_run(
        &self,
        start: &StartWorkflow,
        workflow_id: &WorkflowId,
        request_id: &RequestId,
        component: ComponentDigest,
        replaces: Option<RunKey>,
    ) -> Result<NewRun, Error> {
        let run = self.keys.take();
        let mut random = [0; 8];
        self.entropy.fill(&mut random);
        let run_id = RunId::new(run, random);
        let mut random_seed = [0; 32];
        self.entropy.fill(&mut random_seed);
        let now = self.shared.clock.now();
        let task_queue = start
            .task_queue
            .clone()
            .unwrap_or_else(|| self.default_queue.clone());
        let record = ExecutionRecord {
            run,
            namespace: start.namespace.clone(),
            workflow_id: workflow_id.clone(),
            run_id,
            workflow_type: start.workflow_type.clone(),
            component,
            task_queue: task_queue.clone(),
            status: Status::Running,
            started_at: now,
            closed_at: None,
            blocked: None,
            last_event: None,
        };
        let started = Started {
            namespace: start.namespace.clone(),
            workflow_id: workflow_id.clone(),
            run_id,
            workflow_type: start.workflow_type.clone(),
            component,
            task_queue,
            input: start.input.clone(),
            random_seed,
            request_id: request_id.clone(),
            identity: start.identity.clone(),
            attempt: 1,
            parent: None,
        };
        Ok(NewRun {
            record,
            event: started_event(started, now),
            replaces,
            first: None,
        })
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::NotFound`], [`Error::LimitReached`], [`Error::TooLarge`].
    pub async fn signal(
        &self,
        target: &Target,
        name: SignalName,
        input: Payload,
        caller: Caller,
    ) -> Result<(), Error> {
        check_payload("signal input", &input)?;
        let request_id = self.request_id(caller.request_id)?;
        let identity = caller.identity;
        self.request(
            target,
            Request::Signal {
                name,
                input,
                request_id,
                identity,
            },
        )
        .await
    }

    /// Asks a workflow to cancel itself. Asking again changes nothing.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::NotFound`].
    pub async fn cancel(
        &self,
        target: &Target,
        reason: String,
        caller: Caller,
    ) -> Result<(), Error> {
        let request_id = self.request_id(caller.request_id)?;
        let identity = caller.identity;
        self.request(
            target,
            Request::Cancel {
                reason,
                identity,
                request_id,
            },
        )
        .await
    }

    /// Ends a run now; none of its code runs.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::NotFound`].
    pub async fn terminate(
        &self,
        target: &Target,
        reason: String,
        identity: String,
    ) -> Result<(), Error> {
        self.request(target, Request::Terminate { reason, identity })
            .await
    }

    async fn request(&self, target: &Target, request: Request) -> Result<(), Error> {
        let record = self.record(target)?;
        if record.status.is_closed() {
            return Err(Error::Closed {
                status: record.status.name(),
            });
        }
        let run = record.run;
        let input = |reply| Input::Request {
            run,
            request: Box::new(request),
            reply: Some(reply),
        };
        self.shared.call(run, input).await?;
        Ok(())
    }

    /// Tries a blocked run again now.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::NotFound`].
    pub async fn unblock(&self, target: &Target) -> Result<(), Error> {
        let record = self.record(target)?;
        if record.status.is_closed() {
            return Err(Error::Closed {
                status: record.status.name(),
            });
        }
        let run = record.run;
        self.shared
            .call(run, |reply| Input::Unblock { run, reply })
            .await?;
        Ok(())
    }

    /// The summary of a run as it is on disk.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn record(&self, target: &Target) -> Result<ExecutionRecord, Error> {
        check_namespace(&target.namespace)?;
        let missing = || Error::NotFound {
            what: "execution",
            name: match &target.run_id {
                Some(run_id) => format!("{} (run {run_id})", target.workflow_id),
                None => target.workflow_id.to_string(),
            },
        };
        let run = match &target.run_id {
            Some(run_id) => Some(run_id.key()),
            None => self
                .shared
                .store
                .current_run(&target.namespace, &target.workflow_id)?,
        };
        let record = run
            .map(|run| self.shared.store.execution(run))
            .transpose()?
            .flatten();
        record
            .filter(|record| {
                record.workflow_id == target.workflow_id
                    && record.namespace == target.namespace
                    && target.run_id.is_none_or(|run_id| run_id == record.run_id)
            })
            .ok_or_else(missing)
    }

    pub(crate) fn request_id(&self, given: Option<RequestId>) -> Result<RequestId, Error> {
        match given {
            Some(id) => Ok(id),
            None => Ok(RequestId::new(self.random_name())?),
        }
    }

    pub(crate) fn random_name(&self) -> String {
        let mut bytes = [0; 16];
        self.entropy.fill(&mut bytes);
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The longest wait of a long poll.
pub(crate) fn long_poll_max() -> Duration {
    Duration::from_millis(LONG_POLL_MAX.0)
}

/// The limit of one attempt when a workflow gives none.
#[must_use]
pub fn start_to_close_default() -> Millis {
    START_TO_CLOSE_DEFAULT
}

/// Runs store and sandbox calls off the async threads.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let joined = tokio::task::spawn_blocking(work).await;
    joined.unwrap_or_else(|error| Err(Error::Unavailable(format!("a task failed: {error}"))))
}

pub(crate) fn check_namespace(namespace: &Namespace) -> Result<(), Error> {
    if namespace.as_str() == DEFAULT_NAMESPACE {
        Ok(())
    } else {
        Err(Error::NotFound {
            what: "namespace",
            name: namespace.to_string(),
        })
    }
}

pub(crate) fn check_payload(what: &'static str, payload: &Payload) -> Result<(), Error> {
    let bytes = payload.size_bytes();
    if bytes > PAYLOAD_BYTES_MAX {
        return Err(Error::TooLarge {
            what,
            bytes,
            limit: PAYLOAD_BYTES_MAX,
        });
    }
    Ok(())
}
