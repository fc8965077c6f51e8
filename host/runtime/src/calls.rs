//! What a running guest's calls reach: the engine's replay, behind the port's trait.

use std::any::Any;
use std::collections::VecDeque;

use steadfast_engine::child::outlives_run;
use steadfast_engine::decide::Issued;
use steadfast_engine::options::{Given, normalise};
use steadfast_engine::replay::{Completion, Marked, Matched, Mismatch, Replay};
use steadfast_model::chain::Fields;
use steadfast_model::child::Ward;
use steadfast_model::command::{Command, LogLevel, LogLine, Step};
use steadfast_model::event::Started;
use steadfast_model::limits::{
    ACTIVATION_COMMANDS_MAX, FIELDS_BYTES_MAX, HISTORY_EVENTS_MAX, PAYLOAD_BYTES_MAX,
    PENDING_OPERATIONS_MAX,
};
use steadfast_model::{
    ActivityType, Event, EventKind, EventNumber, Failure, MarkerName, Millis, Namespace, Payload,
    Seq, TaskQueue, Timestamp, UpdateId, UpdateName,
};
use steadfast_ports::guest::{
    ActivityCall, CallOptions, ChildCall, Error, HostCalls, RunInfo, Stop, TargetCall,
};

use crate::activation::nondeterminism;
use crate::recorded::Recorded;
use crate::starting::fields_bytes;

mod child;

/// Most log lines of one activation; further ones are dropped and counted.
const LOG_LINES_MAX: usize = 1000;

/// The calls of one run.
#[derive(Debug)]
pub(crate) struct Calls {
    pub(crate) replay: Replay,
    info: RunInfo,
    namespace: Namespace,
    task_queue: TaskQueue,
    /// True while what happens has happened before: log lines are dropped then.
    pub(crate) is_muted: bool,
    /// What the guest is told next, oldest first.
    pub(crate) deliveries: VecDeque<Event>,
    /// The part of the recorded history that has not been taken in yet.
    recorded: Option<Recorded>,
    /// What is being asked, while only reading calls are answered.
    pub(crate) asked: Option<String>,
    /// The update that this instance has just validated.
    pub(crate) validated: Option<UpdateId>,
    /// A part of it could not be read.
    broken: Option<Error>,
    log: Vec<LogLine>,
    log_dropped: u64,
}

impl Calls {
    pub(crate) fn new(started: &Started, at: Timestamp) -> Self {
        Self {
            replay: Replay::new(started.random_seed, at),
            info: RunInfo {
                namespace: started.namespace.as_str().to_owned(),
                workflow_id: started.workflow_id.as_str().to_owned(),
                run_id: started.run_id,
                workflow_type: started.workflow_type.as_str().to_owned(),
                task_queue: started.task_queue.as_str().to_owned(),
                attempt: started.attempt,
                started: at,
                options: started.options.clone(),
                link: started.link.clone(),
            },
            namespace: started.namespace.clone(),
            task_queue: started.task_queue.clone(),
            is_muted: false,
            deliveries: VecDeque::new(),
            recorded: None,
            asked: None,
            validated: None,
            broken: None,
            log: Vec::new(),
            log_dropped: 0,
        }
    }

    /// If the run ends, the children of earlier runs that live as long as the chain.
    pub(crate) fn wards(&self, is_over: bool) -> Vec<Ward> {
        if is_over {
            self.info.link.wards.clone()
        } else {
            Vec::new()
        }
    }

    /// Begins a replay: of `events`, then of the rest of `recorded`.
    pub(crate) fn record(&mut self, events: impl Iterator<Item = Event>, recorded: Recorded) {
        self.recorded = Some(recorded);
        self.take_in(events);
    }

    fn take_in(&mut self, events: impl Iterator<Item = Event>) {
        for event in events {
            self.deliveries.extend(self.replay.take_in(event));
        }
    }

    /// Takes in the next piece of the recorded history. False at its end.
    fn read_on(&mut self) -> Result<bool, Error> {
        let Some(recorded) = &mut self.recorded else {
            return Ok(false);
        };
        match recorded.next() {
            Ok(events) if events.is_empty() => {
                self.recorded = None;
                Ok(false)
            }
            Ok(events) => {
                self.take_in(events.into_iter());
                Ok(true)
            }
            Err(error) => Err(Error::Unavailable(format!(
                "the history cannot be read: {error}"
            ))),
        }
    }

    /// Reads on until a command is known that the guest has yet to make, or the history ends.
    fn find_command(&mut self) -> Result<(), Error> {
        while self.replay.next_command().is_none() && self.read_on()? {}
        Ok(())
    }

    /// As `find_command`, inside a call of the guest.
    fn look_ahead(&mut self) -> Result<(), Stop> {
        self.find_command().map_err(|error| self.break_off(error))
    }

    /// Whether a cancellation is void may depend on an event far ahead.
    fn look_ahead_of_cancel(&mut self, seq: Seq) -> Result<(), Stop> {
        self.look_ahead_until(|replay| replay.can_judge_cancel(seq))
    }

    fn look_ahead_until(&mut self, is_enough: impl Fn(&Replay) -> bool) -> Result<(), Stop> {
        self.look_ahead()?;
        while !is_enough(&self.replay) {
            match self.read_on() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return Err(self.break_off(error)),
            }
        }
        Ok(())
    }

    fn break_off(&mut self, error: Error) -> Stop {
        let stop = Stop::Invalid(error.to_string());
        self.broken = Some(error);
        stop
    }

    /// Why the last call of the guest was broken off by the host, if it was.
    pub(crate) fn take_broken(&mut self) -> Option<Error> {
        self.broken.take()
    }

    /// True while recorded commands are left that the guest has yet to make.
    pub(crate) fn is_replaying(&self) -> bool {
        self.replay.is_replaying() || self.recorded.is_some()
    }

    /// Moves to the events that the guest is told next: one, or in a replay up to `max` between
    /// which no command is recorded. Told these one by one, the guest would make the same calls
    /// at the same places, so nothing that the comparison would notice is lost.
    /// `is_owed`: what comes after the recorded commands is new to the code, and a command that
    /// it makes then is recorded with the event at hand, so these events are told one by one.
    pub(crate) fn next_batch(
        &mut self,
        max: usize,
        is_owed: bool,
        batch: &mut Vec<Event>,
    ) -> Result<(), Error> {
        while self.deliveries.is_empty() && self.read_on()? {}
        self.find_command()?;
        let is_new = is_owed && !self.is_replaying();
        let max = if is_new { 1 } else { max.max(1) };
        let command = self.replay.next_command();
        while batch.len() < max
            && let Some(event) = self.deliveries.front()
        {
            let is_behind = command.is_some_and(|command| command < event.number);
            // An update's validator is asked before it is delivered.
            let is_update = matches!(
                event.kind,
                EventKind::WorkflowExecutionUpdateAccepted { .. }
            );
            if (is_behind || is_update) && !batch.is_empty() {
                break;
            }
            self.replay
                .deliver(event)
                .map_err(|mismatch| nondeterminism(&mismatch))?;
            batch.extend(self.deliveries.pop_front());
        }
        Ok(())
    }

    /// The update that is delivered next, if this instance has not validated it: a replay asks the
    /// validator where the live instance did, before the workflow's time moves on.
    pub(crate) fn next_update(&mut self) -> Result<Option<(Event, UpdateName, Payload)>, Error> {
        while self.deliveries.is_empty() && self.read_on()? {}
        let Some(event) = self.deliveries.front() else {
            return Ok(None);
        };
        let EventKind::WorkflowExecutionUpdateAccepted {
            update_id,
            name,
            input,
            identity: _,
        } = &event.kind
        else {
            return Ok(None);
        };
        if self.validated.take().as_ref() == Some(update_id) {
            return Ok(None);
        }
        Ok(Some((event.clone(), name.clone(), input.clone())))
    }

    /// Compares how a call of the guest ended with the recorded end.
    pub(crate) fn end(&mut self, step: &Step) -> Result<(), Error> {
        if *step == Step::Blocked {
            return Ok(());
        }
        self.find_command()?;
        self.replay
            .end(step)
            .map_err(|mismatch| nondeterminism(&mismatch))
    }

    /// Takes what the guest asked for and logged.
    pub(crate) fn take(&mut self) -> (Vec<Issued>, Vec<LogLine>) {
        if self.log_dropped > 0 {
            let message = format!(
                "{} log lines of this activation were dropped",
                self.log_dropped
            );
            self.log.push(LogLine {
                level: LogLevel::Warn,
                message,
            });
            self.log_dropped = 0;
        }
        (self.replay.take_issued(), std::mem::take(&mut self.log))
    }

    fn issue(&mut self, command: Command) -> Result<(), Stop> {
        let events = self.replay.delivered().0;
        let pending = self.replay.pending_count();
        let limits = [
            (
                self.replay.issued_count() as u64,
                ACTIVATION_COMMANDS_MAX,
                "commands in one activation",
            ),
            (pending, PENDING_OPERATIONS_MAX, "pending operations"),
            (events, HISTORY_EVENTS_MAX, "events in the history"),
        ];
        // Children of earlier runs count with those that live as long.
        let wards = if let Command::StartChild { options, .. } = &command
            && outlives_run(options)
        {
            self.info.link.wards.len() as u64
        } else {
            0
        };
        let outside = self.replay.pending_outside(&command);
        let outside = outside.map(|(count, limit, what)| (count + wards, limit, what));
        for (count, limit, what) in limits.into_iter().chain(outside) {
            if count >= limit {
                return Err(Stop::Limit(format!(
                    "the run has {count} {what}; the limit is {limit}"
                )));
            }
        }
        self.replay.issue(command);
        Ok(())
    }

    /// Gives the answer of a call that may record a marker.
    fn answer<T>(&mut self, marked: Marked<T>) -> Result<T, Stop> {
        if let Some(command) = marked.command {
            self.issue(command)?;
        }
        Ok(marked.answer)
    }

    /// Commands are not for questions: what asks must leave no trace.
    fn may_command(&self, call: &str) -> Result<(), Stop> {
        match &self.asked {
            None => Ok(()),
            Some(asked) => Err(Stop::Invalid(format!(
                "{asked} called {call}; it may only read: move what changes something into the \
                 workflow or an update's handler"
            ))),
        }
    }

    fn known(&self, seq: Seq) -> Result<(), Stop> {
        if self.replay.is_known(seq) {
            Ok(())
        } else {
            Err(Stop::Invalid(format!("operation {seq} was never started")))
        }
    }
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err wants"
)]
fn mismatch(mismatch: Mismatch) -> Stop {
    Stop::Nondeterminism(mismatch.to_string())
}

fn marker_name(what: &str, text: &str) -> Result<MarkerName, Stop> {
    MarkerName::new(text).map_err(|error| Stop::Invalid(format!("{what}: {error}")))
}

fn given(options: &CallOptions) -> Given<'_> {
    Given {
        schedule_to_close: options.schedule_to_close,
        schedule_to_start: options.schedule_to_start,
        start_to_close: options.start_to_close,
        heartbeat: options.heartbeat,
        initial_interval: options.initial_interval,
        backoff_permille: options.backoff_permille,
        maximum_interval: options.maximum_interval,
        maximum_attempts: options.maximum_attempts,
        settings: &options.settings,
    }
}

impl HostCalls for Calls {
    fn schedule_activity(&mut self, call: ActivityCall<'_>) -> Result<Seq, Stop> {
        self.may_command("activities.schedule")?;
        self.look_ahead()?;
        let matched = self
            .replay
            .schedule_activity(call.activity_type, call.input, call.encoding)
            .map_err(mismatch)?;
        let seq = match matched {
            Matched::Replayed(seq) => return Ok(seq),
            Matched::Live(seq) => seq,
        };
        if call.input.len() > PAYLOAD_BYTES_MAX {
            return Err(Stop::Limit(format!(
                "input of activity {} is {} bytes; the limit is {PAYLOAD_BYTES_MAX}",
                call.activity_type,
                call.input.len()
            )));
        }
        let activity_type = ActivityType::new(call.activity_type)
            .map_err(|error| Stop::Invalid(error.to_string()))?;
        let options = normalise(
            &given(call.options),
            &self.task_queue,
            self.info.options.run_timeout,
        )
        .map_err(|error| Stop::Invalid(format!("options of activity {activity_type}: {error}")))?;
        let input = Payload::encoded(call.encoding, call.input.to_vec());
        self.issue(Command::ScheduleActivity {
            activity_type,
            input,
            options,
        })?;
        Ok(seq)
    }

    fn cancel_activity(&mut self, seq: Seq) -> Result<(), Stop> {
        self.may_command("activities.cancel")?;
        self.known(seq)?;
        self.look_ahead_of_cancel(seq)?;
        match self.replay.cancel_activity(seq).map_err(mismatch)? {
            Some(command) => self.issue(command),
            None => Ok(()),
        }
    }

    fn start_timer(&mut self, duration: Millis) -> Result<Seq, Stop> {
        self.may_command("timers.start")?;
        self.look_ahead()?;
        match self.replay.start_timer(duration).map_err(mismatch)? {
            Matched::Replayed(seq) => Ok(seq),
            Matched::Live(seq) => {
                self.issue(Command::StartTimer { duration })?;
                Ok(seq)
            }
        }
    }

    fn cancel_timer(&mut self, seq: Seq) -> Result<(), Stop> {
        self.may_command("timers.cancel")?;
        self.known(seq)?;
        self.look_ahead_of_cancel(seq)?;
        match self.replay.cancel_timer(seq).map_err(mismatch)? {
            Some(command) => self.issue(command),
            None => Ok(()),
        }
    }

    fn patched(&mut self, id: &str) -> Result<bool, Stop> {
        let id = marker_name("patch id", id)?;
        if let Some(answer) = self.replay.patch_answer(&id) {
            return Ok(answer);
        }
        self.may_command("markers.patched for the first time")?;
        self.look_ahead()?;
        let marked = self.replay.patched(&id);
        self.answer(marked)
    }

    fn deprecate_patch(&mut self, id: &str) -> Result<(), Stop> {
        self.may_command("markers.deprecate-patch")?;
        let id = marker_name("patch id", id)?;
        self.look_ahead()?;
        let marked = self.replay.deprecate_patch(&id);
        self.answer(marked)
    }

    fn side_effect(&mut self, name: &str, value: Payload) -> Result<Payload, Stop> {
        self.may_command("markers.side-effect")?;
        let name = marker_name("name of a side effect", name)?;
        if value.data.len() > PAYLOAD_BYTES_MAX {
            return Err(Stop::Limit(format!(
                "value of side effect {name} is {} bytes; the limit is {PAYLOAD_BYTES_MAX}",
                value.data.len()
            )));
        }
        self.look_ahead()?;
        let marked = self.replay.side_effect(&name, value).map_err(mismatch)?;
        self.answer(marked)
    }

    fn complete_update(
        &mut self,
        update_id: &str,
        outcome: Result<Payload, Failure>,
    ) -> Result<(), Stop> {
        self.may_command("updates.complete")?;
        self.look_ahead()?;
        if let Ok(result) = &outcome
            && result.size_bytes() > PAYLOAD_BYTES_MAX
        {
            return Err(Stop::Limit(format!(
                "the result of update {update_id:?} is {} bytes; the limit is {PAYLOAD_BYTES_MAX}",
                result.size_bytes()
            )));
        }
        let completion = self
            .replay
            .complete_update(update_id, outcome.into())
            .map_err(mismatch)?;
        match completion {
            Completion::Replayed => Ok(()),
            Completion::Live(command) => self.issue(command),
            Completion::NotRunning => Err(Stop::Invalid(format!(
                "update {update_id:?} was completed, but it was never accepted or is completed \
                 already"
            ))),
        }
    }

    fn upsert_memo(&mut self, memo: Fields) -> Result<(), Stop> {
        self.look_ahead()?;
        let command = self.replay.upsert_memo(&memo).map_err(mismatch)?;
        let Some(command) = command else {
            return Ok(());
        };
        let bytes = fields_bytes(&memo);
        if bytes > FIELDS_BYTES_MAX {
            return Err(Stop::Limit(format!(
                "the memo is {bytes} bytes; the limit is {FIELDS_BYTES_MAX}"
            )));
        }
        self.issue(command)
    }

    fn is_continue_as_new_suggested(&self, event: EventNumber) -> bool {
        self.replay.is_continue_as_new_suggested(event)
    }

    fn start_child(&mut self, call: ChildCall<'_>) -> Result<Seq, Stop> {
        self.start_child_call(call)
    }

    fn cancel_child(&mut self, seq: Seq, reason: &str) -> Result<(), Stop> {
        self.cancel_child_call(seq, reason)
    }

    fn signal_external(
        &mut self,
        target: TargetCall<'_>,
        name: &str,
        input: &[u8],
        encoding: &str,
    ) -> Result<Seq, Stop> {
        self.signal_call(target, name, input, encoding)
    }

    fn cancel_external(&mut self, target: TargetCall<'_>, reason: &str) -> Result<Seq, Stop> {
        self.cancel_external_call(target, reason)
    }

    fn now(&mut self) -> Timestamp {
        self.replay.now()
    }

    fn random(&mut self, bytes: &mut [u8]) {
        // What asks must not move the stream of what goes on after it.
        if self.asked.is_some() {
            self.replay.foresee(bytes);
        } else {
            self.replay.draw(bytes);
        }
    }

    fn log(&mut self, level: LogLevel, message: &str) {
        if self.is_muted {
            return;
        }
        if self.log.len() < LOG_LINES_MAX {
            self.log.push(LogLine {
                level,
                message: message.to_owned(),
            });
        } else {
            self.log_dropped += 1;
        }
    }

    fn info(&self) -> &RunInfo {
        &self.info
    }

    fn history_length(&self) -> u64 {
        self.replay.delivered().0
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
