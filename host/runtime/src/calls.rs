//! What a running guest's calls reach: the engine's replay, behind the port's trait.

use std::any::Any;

use steadfast_engine::decide::Issued;
use steadfast_engine::options::{Given, normalise};
use steadfast_engine::replay::{Matched, Mismatch, Replay};
use steadfast_model::command::{Command, LogLevel, LogLine, Step};
use steadfast_model::event::Started;
use steadfast_model::limits::{
    ACTIVATION_COMMANDS_MAX, HISTORY_EVENTS_MAX, PAYLOAD_BYTES_MAX, PENDING_OPERATIONS_MAX,
};
use steadfast_model::{ActivityType, Event, Millis, Payload, Seq, TaskQueue, Timestamp};
use steadfast_ports::guest::{ActivityCall, CallOptions, HostCalls, RunInfo, Stop};

/// Most log lines of one activation; further ones are dropped and counted.
const LOG_LINES_MAX: usize = 1000;

/// The calls of one run.
#[derive(Debug)]
pub(crate) struct Calls {
    pub(crate) replay: Replay,
    info: RunInfo,
    task_queue: TaskQueue,
    /// True while what happens has happened before: log lines are dropped then.
    pub(crate) is_muted: bool,
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
            },
            task_queue: started.task_queue.clone(),
            is_muted: false,
            log: Vec::new(),
            log_dropped: 0,
        }
    }

    /// Moves to the event that the guest is told next.
    pub(crate) fn deliver(&mut self, event: &Event) -> Result<(), Mismatch> {
        self.replay.deliver(event)
    }

    /// Compares how a call of the guest ended with the recorded end.
    pub(crate) fn end(&mut self, step: &Step) -> Result<(), Mismatch> {
        self.replay.end(step)
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
            (
                pending,
                PENDING_OPERATIONS_MAX,
                "pending activities and timers",
            ),
            (events, HISTORY_EVENTS_MAX, "events in the history"),
        ];
        for (count, limit, what) in limits {
            if count >= limit {
                return Err(Stop::Limit(format!(
                    "the run has {count} {what}; the limit is {limit}"
                )));
            }
        }
        self.replay.issue(command);
        Ok(())
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
        let options = normalise(&given(call.options), &self.task_queue).map_err(|error| {
            Stop::Invalid(format!("options of activity {activity_type}: {error}"))
        })?;
        let input = Payload::encoded(call.encoding, call.input.to_vec());
        self.issue(Command::ScheduleActivity {
            activity_type,
            input,
            options,
        })?;
        Ok(seq)
    }

    fn cancel_activity(&mut self, seq: Seq) -> Result<(), Stop> {
        self.known(seq)?;
        match self.replay.cancel_activity(seq).map_err(mismatch)? {
            Some(command) => self.issue(command),
            None => Ok(()),
        }
    }

    fn start_timer(&mut self, duration: Millis) -> Result<Seq, Stop> {
        match self.replay.start_timer(duration).map_err(mismatch)? {
            Matched::Replayed(seq) => Ok(seq),
            Matched::Live(seq) => {
                self.issue(Command::StartTimer { duration })?;
                Ok(seq)
            }
        }
    }

    fn cancel_timer(&mut self, seq: Seq) -> Result<(), Stop> {
        self.known(seq)?;
        match self.replay.cancel_timer(seq).map_err(mismatch)? {
            Some(command) => self.issue(command),
            None => Ok(()),
        }
    }

    fn now(&mut self) -> Timestamp {
        self.replay.now()
    }

    fn random(&mut self, bytes: &mut [u8]) {
        self.replay.draw(bytes);
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
