//! Driving workflow code.
//!
//! [`Guests`] admits components and makes instances; a [`Guest`] is one instance, and one instance
//! is one run. While a guest runs, every call it makes reaches [`HostCalls`], which knows the run's
//! history: a replayed call is compared with the recorded one, a new one is collected.

use std::any::Any;

use steadfast_model::chain::Fields;
use steadfast_model::command::{LogLevel, Step};
use steadfast_model::{
    ChainOptions, ComponentDescription, ComponentDigest, Event, EventNumber, Failure, Link, Millis,
    Payload, RunId, Seq, Timestamp,
};

/// An activity call as the guest made it: borrowed, and with nothing filled in.
#[derive(Debug, Clone, Copy)]
pub struct ActivityCall<'a> {
    /// What to run.
    pub activity_type: &'a str,
    /// The input's bytes.
    pub input: &'a [u8],
    /// The input's encoding; empty means `json/plain`.
    pub encoding: &'a str,
    /// How to run it.
    pub options: &'a CallOptions,
}

/// Activity options as the guest gave them. Zero means the default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallOptions {
    /// Limit over all attempts.
    pub schedule_to_close: Millis,
    /// Limit of waiting in the queue.
    pub schedule_to_start: Millis,
    /// Limit of one attempt.
    pub start_to_close: Millis,
    /// Longest gap between heartbeats.
    pub heartbeat: Millis,
    /// First retry interval.
    pub initial_interval: Millis,
    /// Growth of the retry interval in thousandths.
    pub backoff_permille: u32,
    /// Largest retry interval.
    pub maximum_interval: Millis,
    /// Attempts in total.
    pub maximum_attempts: u32,
    /// `task-queue`, `activity-id`, `summary`, `non-retryable-code`.
    pub settings: Vec<(String, String)>,
}

/// A child to start, as the guest asked for it: borrowed, and with nothing filled in.
#[derive(Debug, Clone, Copy)]
pub struct ChildCall<'a> {
    /// What to run.
    pub workflow_type: &'a str,
    /// The input's bytes.
    pub input: &'a [u8],
    /// The input's encoding; empty means `json/plain`.
    pub encoding: &'a str,
    /// How to run it.
    pub options: &'a ChildCallOptions,
}

/// Child options as the guest gave them. Zero means the default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChildCallOptions {
    /// Limit over all runs.
    pub execution_timeout: Millis,
    /// Limit of one run.
    pub run_timeout: Millis,
    /// First retry interval.
    pub initial_interval: Millis,
    /// Growth of the retry interval in thousandths.
    pub backoff_permille: u32,
    /// Largest retry interval.
    pub maximum_interval: Millis,
    /// Attempts in total.
    pub maximum_attempts: u32,
    /// Everything else, by name.
    pub settings: Vec<(String, String)>,
}

/// Another execution, as the guest named it. Empty means: the sender's namespace, the current run.
#[derive(Debug, Clone, Copy)]
pub struct TargetCall<'a> {
    /// The tenant.
    pub namespace: &'a str,
    /// Its name.
    pub workflow_id: &'a str,
    /// One run of it.
    pub run_id: &'a str,
    /// True if it must be a child of the sender.
    pub child_only: bool,
}

/// Facts about a run that its code may read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunInfo {
    /// The tenant.
    pub namespace: String,
    /// The user's name of the execution.
    pub workflow_id: String,
    /// The run.
    pub run_id: RunId,
    /// What runs.
    pub workflow_type: String,
    /// Where its activities go by default.
    pub task_queue: String,
    /// 1 for the first run.
    pub attempt: u32,
    /// When the run began.
    pub started: Timestamp,
    /// What was asked for when the chain began; its memo is that of the run's start.
    pub options: ChainOptions,
    /// Where the run stands in its chain.
    pub link: Link,
}

/// Why a call of the guest was not answered. The activation ends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// The code did something other than what the history records.
    #[error("{0}")]
    Nondeterminism(String),
    /// A limit was reached.
    #[error("{0}")]
    Limit(String),
    /// The call makes no sense: an unknown operation or setting, a malformed name.
    #[error("{0}")]
    Invalid(String),
}

/// What a running guest's imports reach.
pub trait HostCalls: Send {
    /// `activities.schedule`.
    ///
    /// # Errors
    /// [`Stop`] ends the activation.
    fn schedule_activity(&mut self, call: ActivityCall<'_>) -> Result<Seq, Stop>;

    /// `activities.cancel`.
    ///
    /// # Errors
    /// [`Stop`] ends the activation.
    fn cancel_activity(&mut self, seq: Seq) -> Result<(), Stop>;

    /// `timers.start`.
    ///
    /// # Errors
    /// [`Stop`] ends the activation.
    fn start_timer(&mut self, duration: Millis) -> Result<Seq, Stop>;

    /// `timers.cancel`.
    ///
    /// # Errors
    /// [`Stop`] ends the activation.
    fn cancel_timer(&mut self, seq: Seq) -> Result<(), Stop>;

    /// `markers.patched`.
    ///
    /// # Errors
    /// [`Stop`] ends the activation.
    fn patched(&mut self, id: &str) -> Result<bool, Stop>;

    /// `markers.deprecate-patch`.
    ///
    /// # Errors
    /// [`Stop`] ends the activation.
    fn deprecate_patch(&mut self, id: &str) -> Result<(), Stop>;

    /// `markers.side-effect`: the recorded value, or `value` when the call is new.
    ///
    /// # Errors
    /// [`Stop`] ends the activation.
    fn side_effect(&mut self, name: &str, value: Payload) -> Result<Payload, Stop>;
    /// `updates.complete`.
    ///
    /// # Errors
    /// [`Stop`] ends the activation.
    fn complete_update(
        &mut self,
        update_id: &str,
        outcome: Result<Payload, Failure>,
    ) -> Result<(), Stop>;
    /// `children.start`: the number of the start; the outcome has the next one.
    ///
    /// # Errors
    /// [`Stop`] ends the activation.
    fn start_child(&mut self, call: ChildCall<'_>) -> Result<Seq, Stop>;

    /// `children.cancel`, with either number of the child.
    ///
    /// # Errors
    /// [`Stop`] ends the activation.
    fn cancel_child(&mut self, seq: Seq, reason: &str) -> Result<(), Stop>;

    /// `executions.signal`.
    ///
    /// # Errors
    /// [`Stop`] ends the activation.
    fn signal_external(
        &mut self,
        target: TargetCall<'_>,
        name: &str,
        input: &[u8],
        encoding: &str,
    ) -> Result<Seq, Stop>;

    /// `executions.request-cancel`.
    ///
    /// # Errors
    /// [`Stop`] ends the activation.
    fn cancel_external(&mut self, target: TargetCall<'_>, reason: &str) -> Result<Seq, Stop>;

    /// `memo.upsert`.
    ///
    /// # Errors
    /// [`Stop`] ends the activation.
    fn upsert_memo(&mut self, memo: Fields) -> Result<(), Stop>;

    /// `workflow-info.continue-as-new-suggested`, asked while the guest works on this event.
    fn is_continue_as_new_suggested(&self, event: EventNumber) -> bool;

    /// `clock.now`: the time of the event being delivered.
    fn now(&mut self) -> Timestamp;

    /// `random.random-bytes`: the next bytes of the run's stream.
    fn random(&mut self, bytes: &mut [u8]);

    /// `log.write`; lines of a replayed part are dropped.
    fn log(&mut self, level: LogLevel, message: &str);

    /// `workflow-info.get`.
    fn info(&self) -> &RunInfo;

    /// `workflow-info.history-length`.
    fn history_length(&self) -> u64;

    /// The implementation itself, for its owner to take back.
    fn as_any(&mut self) -> &mut dyn Any;
}

/// Why an activation, or the making of an instance, failed. None of these ends a run: it is
/// blocked until something changes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The code trapped or panicked.
    #[error("trap: {message}")]
    Trap {
        /// The panic's message or the trap's kind.
        message: String,
        /// Function names, innermost first; may be empty.
        backtrace: String,
    },
    /// The activation took too long.
    #[error("activation exceeded its time limit of {limit}")]
    Timeout {
        /// The limit.
        limit: Millis,
    },
    /// A limit of the sandbox was reached.
    #[error("limit exceeded: {0}")]
    LimitExceeded(String),
    /// A call was not answered.
    #[error(transparent)]
    Stopped(#[from] Stop),
    /// The component cannot be run: it is missing, or refuses the workflow type.
    #[error("component unavailable: {0}")]
    Unavailable(String),
}

impl Error {
    /// A stable name: `trap`, `timeout`, `limit`, `nondeterminism`, `invalid-call`, `component`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Trap { .. } => "trap",
            Self::Timeout { .. } => "timeout",
            Self::LimitExceeded(_) | Self::Stopped(Stop::Limit(_)) => "limit",
            Self::Stopped(Stop::Nondeterminism(_)) => "nondeterminism",
            Self::Stopped(Stop::Invalid(_)) => "invalid-call",
            Self::Unavailable(_) => "component",
        }
    }

    /// True when the same code may do better later without anybody's help.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        !matches!(self, Self::Stopped(Stop::Nondeterminism(_)))
    }
}

/// Why a component was refused at upload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The bytes are not a WebAssembly component.
    #[error("not a component: {0}")]
    NotAComponent(String),
    /// It imports something that is not an engine interface.
    #[error("the component imports {import}, which is not available: {hint}")]
    ForbiddenImport {
        /// The import, exactly.
        import: String,
        /// What to do about it.
        hint: String,
    },
    /// It does not export what a workflow must.
    #[error("the component is not of the world steadfast:workflow/workflow@0.1.0: {0}")]
    WrongWorld(String),
    /// It is larger than allowed, or needs more than a guest may have.
    #[error("the component exceeds a limit: {0}")]
    TooLarge(String),
    /// Its description cannot be read or makes no sense.
    #[error("the component's description is invalid: {0}")]
    Description(String),
}

impl Refusal {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAComponent(_) => "not-a-component",
            Self::ForbiddenImport { .. } => "forbidden-import",
            Self::WrongWorld(_) => "wrong-world",
            Self::TooLarge(_) => "component-too-large",
            Self::Description(_) => "invalid-description",
        }
    }
}

/// What a guest answers to a query or update that it does not know. `what` is `query` or `update`.
#[must_use]
pub fn no_such_handler(what: &str, name: &str, known: &[&str]) -> Failure {
    let known = if known.is_empty() {
        format!("it has no {what} handlers")
    } else {
        format!("known: {}", known.join(", "))
    };
    Failure::application(
        &format!("unknown-{what}"),
        format!("the workflow does not handle the {what} {name:?}; {known}"),
    )
}

/// What admission found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// SHA-256 of the bytes.
    pub digest: ComponentDigest,
    /// What the component says about itself.
    pub description: ComponentDescription,
}

/// Gives a component's bytes when they are not compiled yet.
pub type Fetch<'a> = &'a dyn Fn() -> Result<Option<Vec<u8>>, String>;

/// Admits components and makes instances of them. Calls may take long: never from an async task.
pub trait Guests: Send + Sync {
    /// Checks a component, compiles it into the cache and reads its description.
    ///
    /// # Errors
    /// [`Refusal`] says what is wrong with it.
    fn admit(&self, bytes: &[u8]) -> Result<Admitted, Refusal>;

    /// Makes an instance that has not been started.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when there is no such component or no room.
    fn instantiate(
        &self,
        component: ComponentDigest,
        fetch: Fetch<'_>,
    ) -> Result<Box<dyn Guest>, Error>;
}

/// What a call of a guest gives back: how it ended, and the host calls lent to it.
pub type Driven = (Result<Step, Error>, Box<dyn HostCalls>);

/// What a question to a guest gives back: its answer or its failure, and the host calls lent to it.
pub type Answered<T> = (Result<Result<T, Failure>, Error>, Box<dyn HostCalls>);

/// One instance. After an error it must be dropped.
pub trait Guest: Send {
    /// Starts the workflow. Called once, first.
    fn start(&mut self, workflow_type: &str, input: &Payload, calls: Box<dyn HostCalls>) -> Driven;

    /// Delivers events that [`steadfast_model::EventKind::is_delivered`] accepts, in order. More
    /// than one only if the description's `resume_batch_max` allows it.
    fn resume(&mut self, events: &[Event], calls: Box<dyn HostCalls>) -> Driven;

    /// Asks a query. The calls lent answer reading ones only. Default: a guest without queries.
    fn query(
        &mut self,
        name: &str,
        _input: &Payload,
        calls: Box<dyn HostCalls>,
    ) -> Answered<Payload> {
        (Ok(Err(no_such_handler("query", name, &[]))), calls)
    }

    /// Asks whether an update may be let in. The calls lent answer reading ones only. Default: a
    /// guest without updates.
    fn validate_update(
        &mut self,
        name: &str,
        _input: &Payload,
        calls: Box<dyn HostCalls>,
    ) -> Answered<()> {
        (Ok(Err(no_such_handler("update", name, &[]))), calls)
    }

    /// The most events that [`Guest::resume`] may be given at once: the description's
    /// `resume_batch_max`.
    fn batch_max(&self) -> usize {
        1
    }

    /// Bytes that keeping the instance costs.
    fn memory_bytes(&self) -> usize;
}
