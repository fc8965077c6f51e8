//! What a blocking guest waits for: outcomes, signals and a cancel request that have been delivered
//! and not been taken yet.
//!
//! Waiting for a signal or a cancel request is an operation of its own kind, numbered apart from
//! those of the history: it makes no event, because the delivery of what it waits for is in the
//! history already, and the guest asks for it at the same place in every replay.

use std::collections::{BTreeMap, VecDeque};

use steadfast_model::{Event, EventKind, Failure, Payload};
use steadfast_ports::guest::Stop;

/// The first number of an operation that only this instance knows.
const FIRST_LOCAL: u32 = 0x8000_0000;

/// Most operations that wait for a signal or a cancel request at a time.
const RECEIVERS_MAX: usize = 10_000;

/// How an operation ended.
pub(crate) type Outcome = Result<Payload, Failure>;

/// An outcome, with the number of the event that brought it: the earlier one wins a wait.
struct Resolved {
    event: u64,
    outcome: Outcome,
    /// The signal that it was, to be given back when nobody takes it.
    signal: Option<String>,
}

/// What has been delivered to one run and not been taken.
#[derive(Default)]
pub(crate) struct Mailbox {
    resolved: BTreeMap<u32, Resolved>,
    /// Signals that nobody waits for, oldest first.
    signals: BTreeMap<String, VecDeque<(u64, Payload)>>,
    /// Operations that wait for a signal of a name, oldest first.
    receivers: BTreeMap<String, VecDeque<u32>>,
    /// The cancel request: its event and reason.
    cancel: Option<(u64, String)>,
    cancel_receivers: Vec<u32>,
    locals: u32,
    /// The largest operation number of the history that was given out.
    highest: u32,
}

impl Mailbox {
    /// Takes an event in. One that guests are not told about is the caller's mistake and changes
    /// nothing.
    pub(crate) fn deliver(&mut self, event: &Event) {
        let number = event.number.0;
        match &event.kind {
            EventKind::ActivityTaskCompleted { seq, result, .. } => {
                self.resolve(seq.0, number, Ok(result.clone()));
            }
            EventKind::ActivityTaskFailed { seq, failure, .. }
            | EventKind::ActivityTaskTimedOut { seq, failure, .. }
            | EventKind::ActivityTaskCanceled { seq, failure } => {
                self.resolve(seq.0, number, Err(failure.clone()));
            }
            EventKind::TimerFired { seq }
            | EventKind::ExternalWorkflowExecutionSignaled { seq }
            | EventKind::ExternalWorkflowExecutionCancelRequested {
                seq,
                of_child: false,
            } => self.resolve(seq.0, number, Ok(Payload::default())),
            EventKind::SignalExternalWorkflowExecutionFailed { seq, failure, .. }
            | EventKind::RequestCancelExternalWorkflowExecutionFailed {
                seq,
                failure,
                of_child: false,
                ..
            }
            | EventKind::StartChildWorkflowExecutionFailed { seq, failure, .. } => {
                self.resolve(seq.0, number, Err(failure.clone()));
            }
            EventKind::ChildWorkflowExecutionStarted { seq, run_id } => {
                self.resolve(seq.0, number, Ok(json_text(&run_id.to_string())));
            }
            EventKind::ChildWorkflowExecutionCompleted { seq, result } => {
                self.resolve(seq.outcome().0, number, Ok(result.clone()));
            }
            EventKind::ChildWorkflowExecutionFailed { seq, failure }
            | EventKind::ChildWorkflowExecutionCanceled { seq, failure, .. }
            | EventKind::ChildWorkflowExecutionTimedOut { seq, failure }
            | EventKind::ChildWorkflowExecutionTerminated { seq, failure } => {
                self.resolve(seq.outcome().0, number, Err(failure.clone()));
            }
            EventKind::WorkflowExecutionSignaled { name, input, .. } => {
                self.signal(name.as_str(), number, input.clone());
            }
            EventKind::WorkflowExecutionCancelRequested { reason, .. } => {
                self.request_cancel(number, reason);
            }
            // Nothing in this world answers updates: every one is refused before it is accepted.
            EventKind::WorkflowExecutionUpdateAccepted { .. }
            | EventKind::WorkflowExecutionUpdateCompleted { .. }
            | EventKind::WorkflowExecutionStarted { .. }
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
            | EventKind::StartChildWorkflowExecutionInitiated { .. }
            | EventKind::SignalExternalWorkflowExecutionInitiated { .. }
            | EventKind::RequestCancelExternalWorkflowExecutionInitiated { .. }
            | EventKind::RequestCancelExternalWorkflowExecutionFailed { .. }
            | EventKind::ExternalWorkflowExecutionCancelRequested { .. }
            | EventKind::MarkerRecorded { .. } => {}
        }
    }

    fn resolve(&mut self, operation: u32, event: u64, outcome: Outcome) {
        let resolved = Resolved {
            event,
            outcome,
            signal: None,
        };
        // The first outcome counts: a cancelled timer stays cancelled.
        self.resolved.entry(operation).or_insert(resolved);
    }

    fn signal(&mut self, name: &str, event: u64, input: Payload) {
        let receiver = self.receivers.get_mut(name).and_then(VecDeque::pop_front);
        match receiver {
            Some(operation) => self.hand_over(operation, name, event, input),
            None => self
                .signals
                .entry(name.to_owned())
                .or_default()
                .push_back((event, input)),
        }
    }

    fn hand_over(&mut self, operation: u32, name: &str, event: u64, input: Payload) {
        let resolved = Resolved {
            event,
            outcome: Ok(input),
            signal: Some(name.to_owned()),
        };
        self.resolved.insert(operation, resolved);
    }

    fn request_cancel(&mut self, event: u64, reason: &str) {
        if self.cancel.is_some() {
            return;
        }
        self.cancel = Some((event, reason.to_owned()));
        for operation in std::mem::take(&mut self.cancel_receivers) {
            self.resolve(operation, event, Ok(json_text(reason)));
        }
    }

    /// Notes that an operation of the history was given to the guest.
    pub(crate) fn given(&mut self, operation: u32) {
        self.highest = self.highest.max(operation);
    }

    /// A timer that the guest cancelled fires no more; waiting for it ends with a cancellation.
    pub(crate) fn timer_canceled(&mut self, operation: u32, event: u64) {
        if operation <= self.highest {
            self.resolve(operation, event, Err(Failure::canceled("cancelled")));
        }
    }

    /// `waiting.receive-signal`.
    ///
    /// # Errors
    /// [`Stop::Limit`] when too many operations wait.
    pub(crate) fn receive_signal(&mut self, name: &str) -> Result<u32, Stop> {
        let operation = self.local()?;
        let waiting = self.signals.get_mut(name);
        if let Some((event, input)) = waiting.and_then(VecDeque::pop_front) {
            self.hand_over(operation, name, event, input);
        } else {
            let receivers = self.receivers.entry(name.to_owned()).or_default();
            receivers.push_back(operation);
        }
        Ok(operation)
    }

    /// `waiting.receive-cancel`.
    ///
    /// # Errors
    /// [`Stop::Limit`] when too many operations wait.
    pub(crate) fn receive_cancel(&mut self) -> Result<u32, Stop> {
        let operation = self.local()?;
        match &self.cancel {
            Some((event, reason)) => {
                let (event, reason) = (*event, json_text(reason));
                self.resolve(operation, event, Ok(reason));
            }
            None => self.cancel_receivers.push(operation),
        }
        Ok(operation)
    }

    fn local(&mut self) -> Result<u32, Stop> {
        let waiting =
            self.receivers.values().map(VecDeque::len).sum::<usize>() + self.cancel_receivers.len();
        if waiting >= RECEIVERS_MAX {
            return Err(Stop::Limit(format!(
                "the run waits for {waiting} signals and cancel requests at a time; \
                 the limit is {RECEIVERS_MAX}"
            )));
        }
        let operation = FIRST_LOCAL.saturating_add(self.locals);
        self.locals = self.locals.saturating_add(1);
        Ok(operation)
    }

    /// `waiting.release`: gives up waiting. A signal that nobody took goes back to where it came
    /// from.
    pub(crate) fn release(&mut self, operation: u32) {
        if operation < FIRST_LOCAL {
            return;
        }
        for receivers in self.receivers.values_mut() {
            receivers.retain(|receiver| *receiver != operation);
        }
        self.receivers.retain(|_, receivers| !receivers.is_empty());
        self.cancel_receivers
            .retain(|receiver| *receiver != operation);
        let Some(resolved) = self.resolved.remove(&operation) else {
            return;
        };
        if let (Some(name), Ok(input)) = (resolved.signal, resolved.outcome) {
            let waiting = self.signals.entry(name.clone()).or_default();
            let at = waiting.partition_point(|(event, _)| *event < resolved.event);
            waiting.insert(at, (resolved.event, input));
            // Somebody else may have begun to wait for it meanwhile.
            self.match_receivers(&name);
        }
    }

    fn match_receivers(&mut self, name: &str) {
        let Some(receiver) = self.receivers.get_mut(name).and_then(VecDeque::pop_front) else {
            return;
        };
        match self.signals.get_mut(name).and_then(VecDeque::pop_front) {
            Some((event, input)) => self.hand_over(receiver, name, event, input),
            None => self
                .receivers
                .entry(name.to_owned())
                .or_default()
                .push_front(receiver),
        }
    }

    /// `waiting.is-cancel-requested`.
    pub(crate) fn is_cancel_requested(&self) -> bool {
        self.cancel.is_some()
    }

    /// The place in the list of the operation that was resolved first; `None` while all wait.
    ///
    /// # Errors
    /// [`Stop::Invalid`] for an empty list, or an operation that never was.
    pub(crate) fn first_of(&self, operations: &[u32]) -> Result<Option<u32>, Stop> {
        if operations.is_empty() {
            let text = "wait-any was given no operation: it would wait for ever";
            return Err(Stop::Invalid(text.to_owned()));
        }
        for operation in operations {
            self.check_known(*operation)?;
        }
        let first = operations
            .iter()
            .enumerate()
            .filter_map(|(index, operation)| {
                let resolved = self.resolved.get(operation)?;
                Some((resolved.event, index))
            })
            .min();
        Ok(first.and_then(|(_, index)| u32::try_from(index).ok()))
    }

    fn check_known(&self, operation: u32) -> Result<(), Stop> {
        let is_known = if operation >= FIRST_LOCAL {
            operation - FIRST_LOCAL < self.locals
        } else {
            (1..=self.highest).contains(&operation)
        };
        if is_known {
            Ok(())
        } else {
            Err(Stop::Invalid(format!(
                "operation {operation} was never started"
            )))
        }
    }

    /// Takes an outcome, once; `None` while the operation waits.
    ///
    /// # Errors
    /// [`Stop::Invalid`] for an operation that never was.
    pub(crate) fn take(&mut self, operation: u32) -> Result<Option<Outcome>, Stop> {
        self.check_known(operation)?;
        Ok(self
            .resolved
            .remove(&operation)
            .map(|resolved| resolved.outcome))
    }

    /// Rough bytes that what waits here takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let resolved: usize = self
            .resolved
            .values()
            .map(|resolved| match &resolved.outcome {
                Ok(payload) => payload.size_bytes() + 96,
                Err(_) => 512,
            })
            .sum();
        let signals: usize = self
            .signals
            .values()
            .flatten()
            .map(|(_, input)| input.size_bytes() + 96)
            .sum();
        resolved + signals
    }
}

fn json_text(text: &str) -> Payload {
    Payload::json(serde_json::Value::from(text).to_string())
}

#[cfg(test)]
#[path = "mailbox_tests.rs"]
mod tests;
