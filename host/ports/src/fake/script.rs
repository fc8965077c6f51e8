//! A workflow written as a list of operations, interpreted as a guest that can be resumed.
//!
//! A script records everything that it observes: its input, results, failures, signals, times and
//! random bytes. [`Op::Complete`] returns the record as a JSON array of strings, so an execution
//! and its replay agree if and only if their results are equal.

mod op;
mod outside;
mod text;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use steadfast_model::chain::{ContinueAsNew, UnreadSignal};
use steadfast_model::command::{LogLevel, Step};
use steadfast_model::{
    Event, EventKind, EventNumber, Failure, Millis, Payload, Seq, SignalName, Timestamp,
};

use crate::guest::{
    ActivityCall, Answered, CallOptions, ChildCall, ChildCallOptions, Driven, Error, Guest,
    HostCalls, Stop, TargetCall, no_such_handler,
};

pub use self::op::Op;
use self::text::{hex, json_array, json_string, text};

/// What the script waits for.
#[derive(Debug)]
enum Wait {
    Nothing,
    All(Vec<Seq>),
    Race { timer: Seq, activity: Seq },
    Signal(String),
    TimerOrCancel(Seq),
    Cancel,
    Updates(usize),
    Handlers,
}

/// One run of a script.
#[derive(Debug)]
pub struct ScriptedGuest {
    scripts: BTreeMap<String, Arc<[Op]>>,
    script: Arc<[Op]>,
    next: usize,
    wait: Wait,
    /// Every operation ever started, with its outcome once it has one.
    operations: BTreeMap<Seq, Option<String>>,
    /// What nobody took: the event that brought it, its name, its payload.
    signals: VecDeque<(EventNumber, SignalName, Payload)>,
    input: Payload,
    last_child: Option<Seq>,
    cancel: Option<String>,
    /// Accepted updates so far.
    updates: usize,
    /// Updates that wait for an activity, by its operation.
    handlers: BTreeMap<Seq, String>,
    observed: Vec<String>,
    /// The time of the event at hand: in the middle of a batch the host's clock is ahead.
    now: Option<Timestamp>,
    /// Differs from instance to instance: what no script may depend on.
    instance: u64,
}

/// Updates that every script handles: `echo` is completed at once with its input, `fail` with a
/// failure, `work` with the result of an activity of that type, and `never` not at all.
pub const UPDATES: [&str; 4] = ["echo", "fail", "work", "never"];

/// Queries that every script answers: `observed` gives the record so far and `now` the time;
/// `command` tries to start a timer, and `trap` traps.
pub const QUERIES: [&str; 4] = ["observed", "now", "command", "trap"];

/// The most events that a script takes at once. Not a power of two, so that batches end at odd
/// places.
pub(crate) const BATCH_MAX: u32 = 7;

impl ScriptedGuest {
    /// The instance of this number, which can start any of these scripts, by workflow type.
    #[must_use]
    pub fn new(scripts: BTreeMap<String, Arc<[Op]>>, instance: u64) -> Self {
        Self {
            scripts,
            script: Arc::new([]),
            next: 0,
            wait: Wait::Nothing,
            operations: BTreeMap::new(),
            signals: VecDeque::new(),
            input: Payload::default(),
            last_child: None,
            cancel: None,
            updates: 0,
            handlers: BTreeMap::new(),
            observed: Vec::new(),
            now: None,
            instance,
        }
    }

    /// Runs until everything waits or the script ends.
    fn run(&mut self, calls: &mut dyn HostCalls) -> Result<Step, Error> {
        loop {
            if !self.is_over(calls)? {
                return Ok(Step::Blocked);
            }
            let Some(op) = self.script.get(self.next).cloned() else {
                return Ok(Step::Completed(self.record()));
            };
            self.next += 1;
            if let Some(step) = self.begin(op, calls)? {
                return Ok(step);
            }
        }
    }

    /// Looks whether what the script waits for has come, and observes it if so.
    fn is_over(&mut self, calls: &mut dyn HostCalls) -> Result<bool, Stop> {
        match &self.wait {
            Wait::Nothing => {}
            Wait::All(seqs) => {
                let outcomes: Option<Vec<String>> =
                    seqs.iter().map(|seq| self.outcome(*seq)).collect();
                let Some(outcomes) = outcomes else {
                    return Ok(false);
                };
                self.observed.extend(outcomes);
            }
            Wait::Race { timer, activity } => {
                let (timer, activity) = (*timer, *activity);
                if let Some(outcome) = self.outcome(activity) {
                    calls.cancel_timer(timer)?;
                    self.observed.push(format!("activity:{outcome}"));
                } else if self.outcome(timer).is_some() {
                    calls.cancel_activity(activity)?;
                    self.observed.push("timer".to_owned());
                } else {
                    return Ok(false);
                }
            }
            Wait::Signal(name) => {
                let has_name = |found: &SignalName| found.as_str() == name;
                let at = self
                    .signals
                    .iter()
                    .position(|(_, found, _)| has_name(found));
                let Some(at) = at else {
                    return Ok(false);
                };
                let signal = self.signals.remove(at);
                self.observed
                    .extend(signal.map(|(_, _, payload)| text(&payload)));
            }
            Wait::TimerOrCancel(timer) => {
                let timer = *timer;
                if let Some(outcome) = self.outcome(timer) {
                    self.observed.push(outcome);
                } else if let Some(reason) = &self.cancel {
                    self.observed.push(format!("cancel:{reason}"));
                    calls.cancel_timer(timer)?;
                } else {
                    return Ok(false);
                }
            }
            Wait::Cancel => {
                let Some(reason) = self.cancel.clone() else {
                    return Ok(false);
                };
                self.observed.push(format!("cancel:{reason}"));
            }
            Wait::Updates(count) if self.updates < *count => return Ok(false),
            Wait::Handlers if !self.handlers.is_empty() => return Ok(false),
            Wait::Updates(_) | Wait::Handlers => {}
        }
        self.wait = Wait::Nothing;
        Ok(true)
    }

    /// Begins one operation; returns how the workflow ends if it ends it.
    #[allow(clippy::too_many_lines, reason = "one short arm for each operation")]
    fn begin(&mut self, op: Op, calls: &mut dyn HostCalls) -> Result<Option<Step>, Error> {
        match op {
            Op::Activity {
                activity_type,
                input,
                options,
            } => {
                let seq = self.schedule(calls, &activity_type, &input, &options)?;
                self.wait = Wait::All(vec![seq]);
            }
            Op::Parallel {
                activity_type,
                count,
            } => {
                let options = CallOptions::default();
                let seqs = (0..count)
                    .map(|i| self.schedule(calls, &activity_type, &i.to_string(), &options));
                self.wait = Wait::All(seqs.collect::<Result<_, _>>()?);
            }
            Op::Sleep(ms) => self.wait = Wait::All(vec![self.start_timer(calls, ms)?]),
            Op::SleepOrCancel(ms) => self.wait = Wait::TimerOrCancel(self.start_timer(calls, ms)?),
            Op::StartTimerAndCancel(ms) => {
                let seq = self.start_timer(calls, ms)?;
                calls.cancel_timer(seq)?;
            }
            Op::RaceTimerActivity {
                timer_ms,
                activity_type,
                input,
            } => {
                let options = CallOptions::default();
                let activity = self.schedule(calls, &activity_type, &input, &options)?;
                let timer = self.start_timer(calls, timer_ms)?;
                self.wait = Wait::Race { timer, activity };
            }
            Op::WaitSignal(name) => self.wait = Wait::Signal(name),
            Op::Random(activity_type) => {
                let mut bytes = [0; 8];
                calls.random(&mut bytes);
                self.observe_and_run(calls, &activity_type, hex(&bytes))?;
            }
            Op::Now(activity_type) => {
                let now = self.now.unwrap_or_else(|| calls.now()).0.to_string();
                self.observe_and_run(calls, &activity_type, now)?;
            }
            Op::Patched(id, new, old) => {
                let is_patched = calls.patched(&id)?;
                let activity_type = if is_patched { new } else { old };
                self.observe_and_run(calls, &activity_type, format!("{id}:{is_patched}"))?;
            }
            Op::DeprecatePatch(id) => calls.deprecate_patch(&id)?,
            Op::SideEffect(name) => {
                let value = Payload::json(self.instance.to_string());
                let recorded = calls.side_effect(&name, value)?;
                self.observed.push(text(&recorded));
            }
            Op::WaitCancel => self.wait = Wait::Cancel,
            Op::WaitUpdates(count) => self.wait = Wait::Updates(count),
            Op::WaitHandlers => self.wait = Wait::Handlers,
            Op::Log(line) => calls.log(LogLevel::Info, &line),
            Op::Trap(message) => {
                return Err(trap(&message));
            }
            Op::Complete => return Ok(Some(Step::Completed(self.record()))),
            Op::ContinueAsNew => {
                if let Some(next) = self.continue_as_new() {
                    return Ok(Some(Step::ContinuedAsNew(Box::new(next))));
                }
            }
            Op::UpsertMemo(name, value) => {
                let value = match value {
                    Some(text) => Payload::json(json_string(&text)),
                    None => Payload::encoded("binary/null", Vec::new()),
                };
                calls.upsert_memo(BTreeMap::from([(name, value)]))?;
            }
            Op::Child(workflow_type, input, options) => {
                let seq = self.start_child(calls, &workflow_type, &input, &options)?;
                self.wait = Wait::All(vec![seq.outcome()]);
            }
            Op::StartChild(workflow_type, input, options) => {
                let seq = self.start_child(calls, &workflow_type, &input, &options)?;
                self.wait = Wait::All(vec![seq]);
            }
            Op::BeginChild(workflow_type, input, options) => {
                self.start_child(calls, &workflow_type, &input, &options)?;
            }
            Op::CancelChild => {
                if let Some(seq) = self.last_child {
                    calls.cancel_child(seq, "enough")?;
                    self.wait = Wait::All(vec![seq.outcome()]);
                }
            }
            Op::SignalExternal(workflow_id, name, input) => {
                let target = target(&workflow_id);
                let seq = calls.signal_external(target, &name, input.as_bytes(), "")?;
                self.operations.insert(seq, None);
                self.wait = Wait::All(vec![seq]);
            }
            Op::SignalChild(workflow_id, name, input) => {
                let target = TargetCall {
                    child_only: true,
                    ..target(&workflow_id)
                };
                let seq = calls.signal_external(target, &name, input.as_bytes(), "")?;
                self.operations.insert(seq, None);
                self.wait = Wait::All(vec![seq]);
            }
            Op::CancelExternal(workflow_id) => {
                let seq = calls.cancel_external(target(&workflow_id), "asked")?;
                self.operations.insert(seq, None);
                self.wait = Wait::All(vec![seq]);
            }
            Op::Fail(code) => {
                let failure = Failure::application(&code, json_array(&self.observed));
                return Ok(Some(Step::Failed(failure)));
            }
            Op::AcceptCancel => {
                let failure = Failure::canceled(json_array(&self.observed));
                return Ok(Some(Step::Canceled(failure)));
            }
        }
        Ok(None)
    }

    fn observe_and_run(
        &mut self,
        calls: &mut dyn HostCalls,
        activity_type: &str,
        observed: String,
    ) -> Result<(), Stop> {
        let seq = self.schedule(calls, activity_type, &observed, &CallOptions::default())?;
        self.observed.push(observed);
        self.wait = Wait::All(vec![seq]);
        Ok(())
    }

    fn schedule(
        &mut self,
        calls: &mut dyn HostCalls,
        activity_type: &str,
        input: &str,
        options: &CallOptions,
    ) -> Result<Seq, Stop> {
        let input = json_string(input);
        let call = ActivityCall {
            activity_type,
            input: input.as_bytes(),
            encoding: "",
            options,
        };
        let seq = calls.schedule_activity(call)?;
        self.operations.insert(seq, None);
        Ok(seq)
    }

    fn start_timer(&mut self, calls: &mut dyn HostCalls, ms: u64) -> Result<Seq, Stop> {
        let seq = calls.start_timer(Millis(ms))?;
        self.operations.insert(seq, None);
        Ok(seq)
    }

    fn outcome(&self, seq: Seq) -> Option<String> {
        self.operations.get(&seq).cloned().flatten()
    }

    /// Takes one event in; `UnknownOperation` when it resolves what the script never started.
    #[allow(
        clippy::too_many_lines,
        reason = "one short arm for each kind of event"
    )]
    fn take(&mut self, event: &Event, calls: &mut dyn HostCalls) -> Result<Option<Step>, Error> {
        let (seq, outcome) = match &event.kind {
            EventKind::ActivityTaskCompleted { seq, result, .. } => (*seq, text(result)),
            EventKind::ActivityTaskFailed { seq, failure, .. } => {
                (*seq, format!("failed:{failure}"))
            }
            EventKind::ActivityTaskTimedOut { seq, failure, .. } => {
                (*seq, format!("timed-out:{failure}"))
            }
            EventKind::ActivityTaskCanceled { seq, failure } => {
                (*seq, format!("canceled:{failure}"))
            }
            EventKind::TimerFired { seq } => (*seq, "fired".to_owned()),
            outside @ (EventKind::ChildWorkflowExecutionStarted { .. }
            | EventKind::ChildWorkflowExecutionCompleted { .. }
            | EventKind::ChildWorkflowExecutionFailed { .. }
            | EventKind::ChildWorkflowExecutionTimedOut { .. }
            | EventKind::ChildWorkflowExecutionTerminated { .. }
            | EventKind::ChildWorkflowExecutionCanceled { .. }
            | EventKind::StartChildWorkflowExecutionFailed { .. }
            | EventKind::ExternalWorkflowExecutionSignaled { .. }
            | EventKind::ExternalWorkflowExecutionCancelRequested { .. }
            | EventKind::SignalExternalWorkflowExecutionFailed { .. }
            | EventKind::RequestCancelExternalWorkflowExecutionFailed { .. }) => {
                self.outside(outside)?
            }
            EventKind::WorkflowExecutionSignaled { name, input, .. } => {
                self.signals
                    .push_back((event.number, name.clone(), input.clone()));
                return Ok(None);
            }
            EventKind::WorkflowExecutionCancelRequested { reason, .. } => {
                self.cancel.get_or_insert_with(|| reason.clone());
                return Ok(None);
            }
            EventKind::WorkflowExecutionUpdateAccepted {
                update_id,
                name,
                input,
                identity: _,
            } => {
                self.handle(update_id.as_str(), name.as_str(), input, calls)?;
                return Ok(None);
            }
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
            | EventKind::RequestCancelExternalWorkflowExecutionInitiated { .. } => {
                let (number, name) = (event.number, event.kind.name());
                let message = format!("event {number} ({name}) is not for guests");
                return Err(Stop::Invalid(message).into());
            }
        };
        match self.operations.get_mut(&seq) {
            Some(slot) => *slot = Some(outcome.clone()),
            None => return Ok(Some(Step::UnknownOperation(seq))),
        }
        if let Some(update_id) = self.handlers.remove(&seq) {
            calls.complete_update(&update_id, Ok(Payload::json(json_string(&outcome))))?;
        }
        Ok(None)
    }

    /// Runs the handler of an accepted update; see [`UPDATES`].
    fn handle(
        &mut self,
        update_id: &str,
        name: &str,
        input: &Payload,
        calls: &mut dyn HostCalls,
    ) -> Result<(), Stop> {
        self.updates += 1;
        let text = text(input);
        self.observed.push(format!("update:{name}:{text}"));
        match name {
            "echo" => calls.complete_update(update_id, Ok(input.clone())),
            "fail" => calls.complete_update(update_id, Err(Failure::application("refused", text))),
            "work" => {
                let seq = self.schedule(calls, "work", &text, &CallOptions::default())?;
                self.handlers.insert(seq, update_id.to_owned());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// What the next run is started with, if there is to be one.
    fn continue_as_new(&mut self) -> Option<ContinueAsNew> {
        let left: u64 = text(&self.input).parse().ok()?;
        let left = left.checked_sub(1)?;
        let unread = self.signals.drain(..);
        Some(ContinueAsNew {
            input: Payload::json(left.to_string()),
            unread: unread
                .map(|(event, name, input)| UnreadSignal {
                    event: event.0,
                    name,
                    input,
                })
                .collect(),
            ..ContinueAsNew::default()
        })
    }

    fn start_child(
        &mut self,
        calls: &mut dyn HostCalls,
        workflow_type: &str,
        input: &str,
        options: &ChildCallOptions,
    ) -> Result<Seq, Stop> {
        let seq = calls.start_child(ChildCall {
            workflow_type,
            input: input.as_bytes(),
            encoding: "",
            options,
        })?;
        self.operations.insert(seq, None);
        self.operations.insert(seq.outcome(), None);
        self.last_child = Some(seq);
        Ok(seq)
    }

    fn record(&self) -> Payload {
        Payload::json(json_array(&self.observed))
    }
}

impl Guest for ScriptedGuest {
    fn start(
        &mut self,
        workflow_type: &str,
        input: &Payload,
        mut calls: Box<dyn HostCalls>,
    ) -> Driven {
        let Some(script) = self.scripts.get(workflow_type) else {
            let message = format!("there is no script for the workflow type {workflow_type:?}");
            return (Err(Error::Unavailable(message)), calls);
        };
        self.script = Arc::clone(script);
        self.observed.push(text(input));
        self.input = input.clone();
        (self.run(&mut *calls), calls)
    }

    fn resume(&mut self, events: &[Event], mut calls: Box<dyn HostCalls>) -> Driven {
        for event in events {
            self.now = Some(event.time);
            let step = match self.take(event, &mut *calls) {
                Ok(Some(step)) => Ok(step),
                Ok(None) => self.run(&mut *calls),
                Err(error) => Err(error),
            };
            if step != Ok(Step::Blocked) {
                return (step, calls);
            }
        }
        (Ok(Step::Blocked), calls)
    }

    /// See [`QUERIES`].
    fn query(
        &mut self,
        name: &str,
        _input: &Payload,
        mut calls: Box<dyn HostCalls>,
    ) -> Answered<Payload> {
        let answer = match name {
            "observed" => Ok(Ok(self.record())),
            "now" => Ok(Ok(Payload::json(calls.now().0.to_string()))),
            "command" => self
                .start_timer(&mut *calls, 1)
                .map(|_| Ok(self.record()))
                .map_err(Error::from),
            "trap" => Err(trap("the query trapped")),
            _ => Ok(Err(no_such_handler("query", name, &QUERIES))),
        };
        (answer, calls)
    }

    /// Refuses the input `"bad"`, traps at `"trap"`, makes a command at `"command"`.
    fn validate_update(
        &mut self,
        name: &str,
        input: &Payload,
        mut calls: Box<dyn HostCalls>,
    ) -> Answered<()> {
        let answer = match text(input).as_str() {
            _ if !UPDATES.contains(&name) => Ok(Err(no_such_handler("update", name, &UPDATES))),
            "\"bad\"" => Ok(Err(Failure::application("bad", "the input is bad"))),
            "\"trap\"" => Err(trap("the validator trapped")),
            "\"command\"" => self
                .start_timer(&mut *calls, 1)
                .map(|_| Ok(()))
                .map_err(Error::from),
            _ => Ok(Ok(())),
        };
        (answer, calls)
    }

    fn batch_max(&self) -> usize {
        BATCH_MAX as usize
    }

    fn memory_bytes(&self) -> usize {
        let observed: usize = self.observed.iter().map(|text| text.len() + 24).sum();
        1024 + observed + self.operations.len() * 64
    }
}

fn target(workflow_id: &str) -> TargetCall<'_> {
    TargetCall {
        namespace: "",
        workflow_id,
        run_id: "",
        child_only: false,
    }
}

fn trap(message: &str) -> Error {
    Error::Trap {
        message: message.to_owned(),
        backtrace: String::new(),
    }
}
