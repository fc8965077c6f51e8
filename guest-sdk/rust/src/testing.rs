//! Runs workflows natively against a fake host, for unit tests.
//!
//! ```
//! use steadfast_sdk::testing::{Call, Step, TestRun};
//! use steadfast_sdk::{Context, Failure, workflow};
//!
//! #[workflow]
//! async fn double(ctx: Context, number: u32) -> Result<u32, Failure> {
//!     Ok(2 * ctx.activity::<u32>("next", &number).await?)
//! }
//!
//! let mut run = TestRun::start::<double>(&20);
//! run.resolve(1, &21);
//! assert_eq!(run.output::<u32>(), Some(42));
//! ```
//!
//! A thread has one run: starting another one ends the first.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::time::Duration;

use crate::bindings::steadfast::workflow::events as wire;
use crate::component;
use crate::failure::Failure;
use crate::host::WorkflowInfo;
use crate::log::Level;
use crate::payload::{Decode, Encode, Payload};
use crate::run;
use crate::time::Timestamp;
use crate::workflow::{Definition, Workflow};

pub(crate) mod fake;

/// What a run asked of the host.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// An activity was scheduled.
    ScheduleActivity {
        /// The operation that it was given.
        operation: u32,
        /// The activity type.
        activity_type: String,
        /// The input.
        input: Payload,
        /// Every option that is not the default, by its name in the WIT.
        options: Vec<(String, String)>,
    },
    /// An activity's cancellation was requested.
    CancelActivity(u32),
    /// A timer was started.
    StartTimer {
        /// The operation that it was given.
        operation: u32,
        /// How long it runs, in milliseconds.
        duration_ms: u64,
    },
    /// A timer was cancelled.
    CancelTimer(u32),
    /// The run was asked whether this patch applies.
    Patched(String),
    /// This patch was marked as deprecated.
    DeprecatePatch(String),
    /// A value was recorded under this name.
    SideEffect(String, Payload),
    /// An update was completed with this outcome.
    CompleteUpdate(String, Result<Payload, Failure>),
    /// So many random bytes were drawn.
    Random(u32),
    /// A line was logged.
    Log(Level, String),
    /// A child was started; its outcome has the next number.
    StartChild {
        /// The number of its start.
        operation: u32,
        /// What runs.
        workflow_type: String,
        /// Its input.
        input: Payload,
        /// Everything that is not the default, by its name in the WIT.
        options: Vec<(String, String)>,
    },
    /// A child was cancelled, by the number of its outcome.
    CancelChild(u32),
    /// Another execution was signalled.
    SignalExecution {
        /// Its number.
        operation: u32,
        /// Which.
        workflow_id: String,
        /// The signal's name.
        name: String,
        /// The signal's payload.
        input: Payload,
    },
    /// Another execution was asked to cancel itself.
    CancelExecution {
        /// Its number.
        operation: u32,
        /// Which.
        workflow_id: String,
        /// Why.
        reason: String,
    },
    /// Values of the memo were set or taken away.
    UpsertMemo(BTreeMap<String, Payload>),
}

/// Where a run stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Every task waits for something.
    Blocked,
    /// The workflow returned a value.
    Completed(Payload),
    /// The workflow returned a failure.
    Failed(Failure),
    /// The workflow accepted a cancel request.
    Canceled(Failure),
    /// The workflow goes on in a new run.
    Continued {
        /// What the new run is started with.
        input: Payload,
        /// What runs; empty: the same.
        workflow_type: String,
        /// Where its activities go; empty: as before.
        task_queue: String,
        /// Signals that move to the new run: the event's number, the name, the payload.
        unread: Vec<(u64, String, Payload)>,
        /// Its memo; `None`: as it is now.
        memo: Option<BTreeMap<String, Payload>>,
        /// Everything else that is not the default, by its name in the WIT.
        settings: Vec<(String, String)>,
    },
    /// An event resolves an operation that the workflow never started.
    UnknownOperation(u32),
}

/// What happens to a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// An operation ended.
    Resolved(u32, Result<Payload, Failure>),
    /// A signal arrived.
    Signaled(String, Payload),
    /// Cancellation was requested, for this reason.
    CancelRequested(String),
    /// An update was accepted: its id, its name and its input.
    UpdateAccepted(String, String, Payload),
}

/// A run of a workflow against the fake host.
#[derive(Debug)]
pub struct TestRun {
    step: Step,
    /// The run lives in this thread.
    thread: PhantomData<*const ()>,
}

impl TestRun {
    /// Starts a workflow and lets it run until it waits.
    ///
    /// # Panics
    ///
    /// When the input does not encode.
    pub fn start<W: Workflow>(input: &(impl Encode + ?Sized)) -> Self {
        Self::start_with::<W>(input, WorkflowInfo::default())
    }

    /// Starts a workflow as [`start`](Self::start) does, with these facts about the run; its name
    /// is filled in.
    ///
    /// # Panics
    ///
    /// When the input does not encode.
    pub fn start_with<W: Workflow>(input: &(impl Encode + ?Sized), info: WorkflowInfo) -> Self {
        Self::begin::<W>(input, info, &[])
    }

    /// Starts a workflow as a run that had passed these patches before they were made: asked
    /// about them, it takes the old branch. Every other patch applies.
    ///
    /// # Panics
    ///
    /// When the input does not encode.
    pub fn start_before<W: Workflow>(input: &(impl Encode + ?Sized), patches: &[&str]) -> Self {
        Self::begin::<W>(input, WorkflowInfo::default(), patches)
    }

    #[allow(clippy::expect_used, reason = "a test's own value")]
    fn begin<W: Workflow>(
        input: &(impl Encode + ?Sized),
        mut info: WorkflowInfo,
        unpatched: &[&str],
    ) -> Self {
        run::with(run::Run::reset);
        W::NAME.clone_into(&mut info.workflow_type);
        fake::reset(info);
        fake::unpatch(unpatched);
        let input = input.encode(Vec::new()).expect("the input encodes");
        let step = component::start(&[Definition::of::<W>()], W::NAME, component::to_wire(input));
        Self {
            step: from_wire(step),
            thread: PhantomData,
        }
    }

    /// Returns where the run stands.
    #[must_use]
    pub fn step(&self) -> &Step {
        &self.step
    }

    /// Returns the output of a run that has completed with a `T`.
    #[must_use]
    pub fn output<T: Decode>(&self) -> Option<T> {
        match &self.step {
            Step::Completed(payload) => T::decode(payload.clone()).ok(),
            Step::Blocked
            | Step::Failed(_)
            | Step::Canceled(_)
            | Step::Continued { .. }
            | Step::UnknownOperation(_) => None,
        }
    }

    /// Returns everything that the run has asked of the host, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        fake::calls()
    }

    /// Moves the time of the next events forward.
    pub fn advance(&mut self, duration: Duration) {
        fake::advance(duration);
    }

    /// Returns the time of the next event.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        fake::now()
    }

    /// Resolves an operation with a value; see [`deliver`](Self::deliver).
    ///
    /// # Panics
    ///
    /// When the value does not encode.
    #[allow(clippy::expect_used, reason = "a test's own value")]
    pub fn resolve(&mut self, operation: u32, value: &(impl Encode + ?Sized)) -> &Step {
        let payload = value.encode(Vec::new()).expect("the value encodes");
        self.deliver(vec![Event::Resolved(operation, Ok(payload))])
    }

    /// Fires a timer; see [`deliver`](Self::deliver).
    pub fn fire(&mut self, operation: u32) -> &Step {
        self.deliver(vec![Event::Resolved(operation, Ok(Payload::default()))])
    }

    /// Resolves an operation with a failure; see [`deliver`](Self::deliver).
    pub fn fail(&mut self, operation: u32, failure: Failure) -> &Step {
        self.deliver(vec![Event::Resolved(operation, Err(failure))])
    }

    /// Sends a signal; see [`deliver`](Self::deliver).
    ///
    /// # Panics
    ///
    /// When the value does not encode.
    #[allow(clippy::expect_used, reason = "a test's own value")]
    pub fn signal(&mut self, name: &str, value: &(impl Encode + ?Sized)) -> &Step {
        let payload = value.encode(Vec::new()).expect("the value encodes");
        self.deliver(vec![Event::Signaled(name.to_owned(), payload)])
    }

    /// Asks a query, also of a run that has ended.
    ///
    /// # Errors
    ///
    /// The handler's failure, or one that names the known queries.
    ///
    /// # Panics
    ///
    /// When the input does not encode, or the answer is not a `T`.
    #[allow(clippy::expect_used, reason = "a test's own values")]
    pub fn query<T: Decode>(
        &self,
        name: &str,
        input: &(impl Encode + ?Sized),
    ) -> Result<T, Failure> {
        let input = input.encode(Vec::new()).expect("the input encodes");
        match component::query(name, component::to_wire(input)) {
            Ok(answer) => Ok(T::decode(component::from_wire(answer)).expect("the answer decodes")),
            Err(failure) => Err(component::failure_from_wire(failure)),
        }
    }

    /// Sends an update: if its validator lets it in, it is delivered as
    /// [`deliver`](Self::deliver) does. Its outcome is a [`Call::CompleteUpdate`].
    ///
    /// # Errors
    ///
    /// Why it was refused.
    ///
    /// # Panics
    ///
    /// When the input does not encode.
    #[allow(clippy::expect_used, reason = "a test's own value")]
    pub fn update(
        &mut self,
        id: &str,
        name: &str,
        input: &(impl Encode + ?Sized),
    ) -> Result<&Step, Failure> {
        let input = input.encode(Vec::new()).expect("the input encodes");
        component::validate_update(name, component::to_wire(input.clone()))
            .map_err(component::failure_from_wire)?;
        let event = Event::UpdateAccepted(id.to_owned(), name.to_owned(), input);
        Ok(self.deliver(vec![event]))
    }

    /// Returns the outcome of a completed update.
    #[must_use]
    pub fn update_outcome(&self, id: &str) -> Option<Result<Payload, Failure>> {
        self.calls().into_iter().find_map(|call| {
            if let Call::CompleteUpdate(found, outcome) = call
                && found == id
            {
                Some(outcome)
            } else {
                None
            }
        })
    }

    /// Requests cancellation; see [`deliver`](Self::deliver).
    pub fn request_cancel(&mut self, reason: &str) -> &Step {
        self.deliver(vec![Event::CancelRequested(reason.to_owned())])
    }

    /// Delivers events in one call, as a replaying host does, and returns where the run then
    /// stands. A run that has ended stays what it is.
    pub fn deliver(&mut self, events: Vec<Event>) -> &Step {
        if self.step == Step::Blocked {
            self.step = from_wire(component::resume(events.into_iter().map(to_wire).collect()));
        }
        &self.step
    }
}

fn to_wire(event: Event) -> wire::Event {
    let kind = match event {
        Event::Resolved(operation, outcome) => wire::EventKind::Resolved(wire::Resolution {
            operation,
            outcome: outcome
                .map(component::to_wire)
                .map_err(component::failure_to_wire),
        }),
        Event::Signaled(name, input) => wire::EventKind::Signaled(wire::Signal {
            name,
            input: component::to_wire(input),
        }),
        Event::CancelRequested(reason) => wire::EventKind::CancelRequested(reason),
        Event::UpdateAccepted(id, name, input) => wire::EventKind::UpdateAccepted(wire::Update {
            id,
            name,
            input: component::to_wire(input),
        }),
    };
    wire::Event {
        number: fake::next_event(),
        time_ms: fake::now().as_millis(),
        kind,
    }
}

fn from_wire(step: wire::Step) -> Step {
    match step {
        wire::Step::Blocked => Step::Blocked,
        wire::Step::Completed(payload) => Step::Completed(component::from_wire(payload)),
        wire::Step::Failed(failure) => Step::Failed(component::failure_from_wire(failure)),
        wire::Step::Canceled(failure) => Step::Canceled(component::failure_from_wire(failure)),
        wire::Step::UnknownOperation(operation) => Step::UnknownOperation(operation),
        wire::Step::Continued(next) => continued(next),
    }
}

fn continued(next: wire::ContinueAsNew) -> Step {
    let unread = next.unread.into_iter();
    let memo = next.memo.map(|list| {
        let list = list.into_iter();
        list.map(|(name, value)| (name, component::from_wire(value)))
            .collect()
    });
    Step::Continued {
        input: component::from_wire(next.input),
        workflow_type: next.workflow_type,
        task_queue: next.task_queue,
        unread: unread
            .map(|signal| {
                (
                    signal.event,
                    signal.name,
                    component::from_wire(signal.input),
                )
            })
            .collect(),
        memo,
        settings: next.settings,
    }
}
