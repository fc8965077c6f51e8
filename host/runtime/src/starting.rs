//! Starting workflows: what becomes of a workflow id that is in use, or was.

use steadfast_engine::chain::first_events;
use steadfast_engine::decide::Request;
use steadfast_model::chain::{CarriedSignal, Fields};
use steadfast_model::event::Started;
use steadfast_model::limits::{DETAILS_BYTES_MAX, FIELDS_BYTES_MAX, SUMMARY_BYTES_MAX};
use steadfast_model::{
    ChainOptions, ChildOptions, ComponentDigest, EventKind, EventNumber, ExecutionRecord,
    IdReusePolicy, Initiator, Link, Millis, Namespace, Payload, RequestId, RetryPolicy, RunId,
    RunKey, SignalName, TaskQueue, Timestamp, WorkflowId, WorkflowType,
};

use crate::chain::{Minter, record};
use crate::cron;
use crate::error::Error;
use crate::handle::{Handle, check_namespace, check_payload};
use crate::message::{CallError, Input, NewRun};
use crate::recorded::read_history;

/// Tries to start a run whose workflow id others start at the same time.
const START_TRIES: u32 = 100;

/// What becomes of a start whose workflow id has an open run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ConflictPolicy {
    /// It is refused.
    #[default]
    Fail,
    /// It starts nothing and answers with the open run.
    UseExisting,
    /// It ends the open run and starts, both or neither.
    TerminateExisting,
}

impl ConflictPolicy {
    /// Every policy.
    pub const ALL: [Self; 3] = [Self::Fail, Self::UseExisting, Self::TerminateExisting];

    /// The name used by the API and the CLI.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::UseExisting => "use-existing",
            Self::TerminateExisting => "terminate-existing",
        }
    }
}

/// How a workflow is started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartOptions {
    /// What becomes of a workflow id whose run has ended.
    pub reuse: IdReusePolicy,
    /// What becomes of a workflow id whose run is open.
    pub conflict: ConflictPolicy,
    /// How long its code waits before it runs; a signal ends the wait.
    pub delay: Millis,
    /// What every run of the chain carries.
    pub chain: ChainOptions,
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
    /// How it is started.
    pub options: StartOptions,
}

/// A started workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedWorkflow {
    /// Its name.
    pub workflow_id: WorkflowId,
    /// Its run.
    pub run_id: RunId,
    /// False if there was such a run before: of the same request, or one to be used.
    pub is_new: bool,
}

/// A start whose ids are known.
struct Attempt {
    start: StartWorkflow,
    workflow_id: WorkflowId,
    request_id: RequestId,
    component: ComponentDigest,
    signal: Option<CarriedSignal>,
    /// What reaches the run in the batch that begins it.
    first: Option<Request>,
}

/// What one look at a workflow id leads to.
enum Look {
    /// It is answered.
    Answer(StartedWorkflow),
    /// A run may begin, after this one.
    Free(Option<RunKey>),
    /// A run may begin if this one ends with the same batch.
    Replace(ExecutionRecord),
    /// The signal goes to this run.
    Signal(ExecutionRecord),
}

impl Handle {
    /// Starts a workflow.
    ///
    /// # Errors
    /// [`Error::AlreadyStarted`] when another start holds the workflow id with an open run;
    /// [`Error::IdUsed`] when the id had a run and may not be used again; [`Error::NotFound`] for
    /// an unknown workflow type; [`Error::Invalid`] and [`Error::TooLarge`] for the options.
    pub async fn start(&self, start: StartWorkflow) -> Result<StartedWorkflow, Error> {
        self.start_with(start, None).await
    }

    /// Starts a workflow; `first` reaches the run in the batch that begins it.
    pub(crate) async fn start_with(
        &self,
        start: StartWorkflow,
        first: Option<Request>,
    ) -> Result<StartedWorkflow, Error> {
        let mut attempt = self.attempt(start, None)?;
        attempt.first = first;
        self.begin(attempt).await
    }

    /// Sends a signal to the open run of a workflow id; if there is none, starts one that has the
    /// signal from the beginning. One transaction: there is never a run without the signal.
    ///
    /// # Errors
    /// Those of [`Handle::start`] and [`Handle::signal`].
    pub async fn signal_with_start(
        &self,
        start: StartWorkflow,
        name: SignalName,
        input: Payload,
    ) -> Result<StartedWorkflow, Error> {
        check_payload("signal input", &input)?;
        let attempt = self.attempt(start, Some((name, input)))?;
        self.begin(attempt).await
    }

    fn attempt(
        &self,
        mut start: StartWorkflow,
        signal: Option<(SignalName, Payload)>,
    ) -> Result<Attempt, Error> {
        check_namespace(&start.namespace)?;
        check_payload("input", &start.input)?;
        normalise(&mut start.options, self.shared.clock.now())?;
        let component = self.route(&start.namespace, &start.workflow_type)?;
        let workflow_id = match start.workflow_id.clone() {
            Some(id) => id,
            None => WorkflowId::new(self.random_name())?,
        };
        let request_id = self.request_id(start.request_id.clone())?;
        let signal = signal.map(|(name, input)| CarriedSignal {
            name,
            input,
            request_id: request_id.clone(),
            identity: start.identity.clone(),
        });
        Ok(Attempt {
            start,
            workflow_id,
            request_id,
            component,
            signal,
            first: None,
        })
    }

    async fn begin(&self, attempt: Attempt) -> Result<StartedWorkflow, Error> {
        for _ in 0..START_TRIES {
            let (result, started) = match self.look(&attempt)? {
                Look::Answer(started) => return Ok(started),
                Look::Free(replaces) => {
                    let new = Box::new(self.new_run(&attempt, replaces, None));
                    let (run, started) = (new.record.run, attempt.started(new.record.run_id, true));
                    let input = |reply| Input::Start { new, reply };
                    (self.shared.call(run, input).await, started)
                }
                Look::Replace(open) => {
                    let new = Box::new(self.new_run(&attempt, None, Some(open.run)));
                    let started = attempt.started(new.record.run_id, true);
                    let input = |reply| Input::Replace {
                        run: open.run,
                        reason: format!("replaced by run {}", started.run_id),
                        identity: attempt.start.identity.clone(),
                        new,
                        reply,
                    };
                    (self.shared.call(open.run, input).await, started)
                }
                Look::Signal(open) => {
                    let Some(signal) = attempt.signal.clone() else {
                        continue;
                    };
                    let request = Box::new(Request::Signal {
                        name: signal.name,
                        input: signal.input,
                        request_id: signal.request_id,
                        identity: signal.identity,
                    });
                    let input = |reply| Input::Request {
                        run: open.run,
                        request,
                        reply: Some(reply),
                    };
                    let started = attempt.started(open.run_id, false);
                    (self.shared.call(open.run, input).await, started)
                }
            };
            match result.map_err(|error| (is_lost_race(&error), error)) {
                Ok(_) => return Ok(started),
                // Somebody else was faster, or the run has ended meanwhile: look again.
                Err((true, _)) => {}
                Err((false, error)) => return Err(error.into()),
            }
        }
        Err(Error::Unavailable(format!(
            "too many starts of {} at the same time",
            attempt.workflow_id
        )))
    }

    /// What the run that a workflow id has now means for a start.
    fn look(&self, attempt: &Attempt) -> Result<Look, Error> {
        let store = &*self.shared.store;
        let options = &attempt.start.options;
        let Some(current) = store.current_run(&attempt.start.namespace, &attempt.workflow_id)?
        else {
            return Ok(Look::Free(None));
        };
        let Some(record) = store.execution(current)? else {
            return Ok(Look::Free(Some(current)));
        };
        if self.is_of_request(current, &attempt.request_id)? {
            return Ok(Look::Answer(attempt.started(record.run_id, false)));
        }
        if record.status.is_closed() {
            if options.reuse.allows(record.status) {
                return Ok(Look::Free(Some(current)));
            }
            return Err(Error::IdUsed {
                run_id: record.run_id,
                status: record.status.name(),
                policy: options.reuse.name(),
            });
        }
        match options.conflict {
            ConflictPolicy::TerminateExisting => Ok(Look::Replace(record)),
            ConflictPolicy::Fail | ConflictPolicy::UseExisting if attempt.signal.is_some() => {
                Ok(Look::Signal(record))
            }
            ConflictPolicy::UseExisting => Ok(Look::Answer(attempt.started(record.run_id, false))),
            ConflictPolicy::Fail => Err(Error::AlreadyStarted {
                run_id: record.run_id,
            }),
        }
    }

    /// True if a run, or the first of its chain, was started by this request.
    fn is_of_request(&self, run: RunKey, request_id: &RequestId) -> Result<bool, Error> {
        let first = read_history(&*self.shared.store, run, EventNumber::FIRST)?;
        Ok(first.first().is_some_and(|event| {
            matches!(&event.kind, EventKind::WorkflowExecutionStarted { started }
                if started.request_id == *request_id)
        }))
    }

    /// A run to begin; of the shard of `beside`, if that is given.
    fn new_run(
        &self,
        attempt: &Attempt,
        replaces: Option<RunKey>,
        beside: Option<RunKey>,
    ) -> NewRun {
        let count = self.shared.shards.len() as u64;
        let minted = match beside {
            Some(run) => self.mint.mint(run.0 % count, count),
            None => self.mint.mint(0, 1),
        };
        let now = self.shared.clock.now();
        let start = &attempt.start;
        let task_queue = start.task_queue.clone();
        let started = Started {
            namespace: start.namespace.clone(),
            workflow_id: attempt.workflow_id.clone(),
            run_id: minted.run_id,
            workflow_type: start.workflow_type.clone(),
            component: attempt.component,
            task_queue: task_queue.unwrap_or_else(|| self.default_queue.clone()),
            input: start.input.clone(),
            random_seed: minted.random_seed,
            request_id: attempt.request_id.clone(),
            identity: start.identity.clone(),
            attempt: 1,
            options: start.options.chain.clone(),
            link: first_link(&start.options, attempt.has_message(), now),
            parent: None,
        };
        let record = record(minted.run, &started, now);
        let signals = attempt.signal.iter().cloned().collect();
        NewRun {
            record,
            events: first_events(started, signals, None, now),
            replaces,
            first: attempt.first.clone(),
        }
    }
}

impl Attempt {
    /// A message that comes with the start ends the delay of it.
    fn has_message(&self) -> bool {
        self.signal.is_some() || self.first.is_some()
    }

    fn started(&self, run_id: RunId, is_new: bool) -> StartedWorkflow {
        StartedWorkflow {
            workflow_id: self.workflow_id.clone(),
            run_id,
            is_new,
        }
    }
}

/// True for an answer after which another look at the workflow id leads on.
fn is_lost_race(error: &CallError) -> bool {
    matches!(
        error,
        CallError::Conflict(_) | CallError::Rejected(steadfast_engine::Rejection::Closed(_))
    )
}

/// Where the first run of a chain stands in it. The limit of the chain counts from when its code
/// may run.
fn first_link(options: &StartOptions, has_message: bool, now: Timestamp) -> Link {
    let mut link = Link::default();
    if !options.chain.cron.is_empty() {
        link.initiator = Some(Initiator::Cron);
        // It has been checked, so it has a next time.
        link.not_before = cron::next(&options.chain.cron, now).ok().flatten();
    } else if options.delay > Millis::ZERO && !has_message {
        link.not_before = Some(now.after(options.delay));
    }
    let begins = link.not_before.unwrap_or(now);
    link.expiration = options
        .chain
        .execution_timeout
        .map(|limit| begins.after(limit));
    link
}

/// What a child carries, and where it stands in its chain.
///
/// # Errors
/// What is wrong with its options.
pub(crate) fn child_link(
    options: &ChildOptions,
    now: Timestamp,
) -> Result<(ChainOptions, Link), String> {
    let mut start = StartOptions {
        chain: ChainOptions {
            execution_timeout: options.execution_timeout,
            run_timeout: options.run_timeout,
            retry: options.retry.clone(),
            cron: options.cron.clone(),
            summary: options.summary.clone(),
            ..ChainOptions::default()
        },
        ..StartOptions::default()
    };
    normalise(&mut start, now).map_err(|error| error.to_string())?;
    let link = first_link(&start, false, now);
    Ok((start.chain, link))
}

/// Checks options and fills in what follows from them.
fn normalise(options: &mut StartOptions, now: Timestamp) -> Result<(), Error> {
    let chain = &mut options.chain;
    let given = |limit: Option<Millis>| limit.and_then(Millis::given).map(Millis::capped);
    chain.execution_timeout = given(chain.execution_timeout);
    chain.run_timeout = match (given(chain.run_timeout), chain.execution_timeout) {
        (Some(run), Some(all)) => Some(run.min(all)),
        (run, _) => run,
    };
    options.delay = options.delay.capped();
    if let Some(policy) = &mut chain.retry {
        normalise_retry(policy)?;
    }
    if !chain.cron.is_empty() {
        if options.delay > Millis::ZERO {
            let text = "a workflow with a cron schedule cannot have a start delay";
            return Err(Error::Invalid(text.to_owned()));
        }
        cron::check(&chain.cron, now).map_err(|refused| Error::Invalid(refused.to_string()))?;
    }
    if options.conflict == ConflictPolicy::TerminateExisting
        && options.reuse == IdReusePolicy::RejectDuplicate
    {
        let text = "the conflict policy terminate-existing cannot be used with the reuse policy \
                    reject-duplicate: the terminated run would forbid the new one";
        return Err(Error::Invalid(text.to_owned()));
    }
    check_size("memo", fields_bytes(&chain.memo), FIELDS_BYTES_MAX)?;
    check_size("headers", fields_bytes(&chain.headers), FIELDS_BYTES_MAX)?;
    check_size("summary", chain.summary.len(), SUMMARY_BYTES_MAX)?;
    check_size("details", chain.details.len(), DETAILS_BYTES_MAX)
}

/// Unset fields are Temporal's defaults; with a single attempt nothing else is ever used.
fn normalise_retry(policy: &mut RetryPolicy) -> Result<(), Error> {
    let default = RetryPolicy::default();
    policy.initial_interval = match policy.initial_interval.capped().given() {
        Some(interval) => interval,
        None => default.initial_interval,
    };
    if policy.backoff_permille == 0 {
        policy.backoff_permille = default.backoff_permille;
    }
    policy.maximum_interval = policy.maximum_interval.capped();
    if policy.maximum_attempts == 1 {
        return Ok(());
    }
    if policy.backoff_permille < 1000 {
        return Err(Error::Invalid(format!(
            "retry policy: the backoff coefficient is {} thousandths; it must be at least 1000",
            policy.backoff_permille
        )));
    }
    match policy.maximum_interval.given() {
        Some(maximum) if maximum < policy.initial_interval => Err(Error::Invalid(format!(
            "retry policy: the maximum interval {maximum} is below the initial interval {}",
            policy.initial_interval
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Bytes of named values, names included.
pub(crate) fn fields_bytes(fields: &Fields) -> usize {
    let sizes = fields
        .iter()
        .map(|(name, value)| name.len() + value.size_bytes());
    sizes.sum()
}

fn check_size(what: &'static str, bytes: usize, limit: usize) -> Result<(), Error> {
    if bytes > limit {
        return Err(Error::TooLarge { what, bytes, limit });
    }
    Ok(())
}
