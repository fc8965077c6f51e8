//! The only entrance: cheap to clone, safe to use from many tasks.
//!
//! A call that returns `Ok` is durable. Calls that change something take a request id; the same id
//! again is the same request.

use std::sync::Arc;
use std::time::Duration;

use steadfast_engine::Rejection;
use steadfast_engine::decide::Request;
use steadfast_engine::options::START_TO_CLOSE_DEFAULT;
use steadfast_model::limits::{LONG_POLL_MAX, PAYLOAD_BYTES_MAX};
use steadfast_model::{
    ComponentDigest, ComponentRecord, ExecutionRecord, Millis, Namespace, Payload, RequestId,
    RunId, SignalName, TaskQueue, WorkflowId, WorkflowType,
};
use steadfast_ports::store::{self, Batch, FencingToken, Write};

use crate::driver::Shared;
use crate::error::Error;
use crate::host::{Mint, ShutdownGuard};
use crate::message::{CallError, Input};

pub use crate::starting::{ConflictPolicy, StartOptions, StartWorkflow, StartedWorkflow};

/// The name of the only namespace of this version.
pub const DEFAULT_NAMESPACE: &str = "default";

/// Most steps of a chain that one request is taken along.
const CHAIN_STEPS_MAX: u32 = 10_000;

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
    pub(crate) mint: Arc<Mint>,
    pub(crate) default_queue: TaskQueue,
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
        mint: Arc<Mint>,
        default_queue: TaskQueue,
        fence: FencingToken,
    ) -> Self {
        let guard = Arc::new(ShutdownGuard(shared.clone()));
        Self {
            shared,
            _guard: guard,
            mint,
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

    /// A request that names no run goes to the one that is current, and along the chain if that
    /// run ends meanwhile.
    async fn request(&self, target: &Target, request: Request) -> Result<(), Error> {
        let mut record = self.record(target)?;
        for _ in 0..CHAIN_STEPS_MAX {
            if record.status.is_closed() {
                return Err(Error::Closed {
                    status: record.status.name(),
                });
            }
            let run = record.run;
            let input = |reply| Input::Request {
                run,
                request: Box::new(request.clone()),
                reply: Some(reply),
            };
            match self.shared.call(run, input).await {
                Ok(_) => return Ok(()),
                Err(CallError::Rejected(Rejection::Closed(status))) => {
                    let closed = Error::Closed {
                        status: status.name(),
                    };
                    record = self.record(target)?;
                    if record.run == run {
                        return Err(closed);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Unavailable(format!(
            "the runs of {} end faster than a request can follow",
            target.workflow_id
        )))
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

    /// What random choices of one request follow from.
    pub(crate) fn seed(&self) -> [u8; 32] {
        let mut seed = [0; 32];
        self.mint.fill(&mut seed);
        seed
    }

    pub(crate) fn random_name(&self) -> String {
        let mut bytes = [0; 16];
        self.mint.fill(&mut bytes);
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
