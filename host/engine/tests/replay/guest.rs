//! A guest that is a script: a function of the events it is told of, and of nothing else.

use std::collections::BTreeSet;

use steadfast_engine::Mismatch;
use steadfast_engine::replay::{ChildCall, Marked, Matched, Replay};
use steadfast_model::child::ChildCancellation;
use steadfast_model::command::Step;
use steadfast_model::{Event, EventKind, Failure, Millis, Payload, Seq, Timestamp};

use crate::common;

/// What a guest may call.
pub(crate) trait Calls {
    fn schedule(&mut self, name: &str, input: &str) -> Result<Seq, Mismatch>;
    fn start_timer(&mut self, ms: u64) -> Result<Seq, Mismatch>;
    fn patched(&mut self, id: &str) -> bool;
    fn side_effect(&mut self, name: &str, value: &str) -> Result<Payload, Mismatch>;
    fn child(&mut self, n: u8, input: &str) -> Result<Seq, Mismatch>;
    fn signal_out(&mut self, n: u8, input: &str) -> Result<Seq, Mismatch>;
    fn cancel_out(&mut self, n: u8) -> Result<Seq, Mismatch>;
    fn cancel(&mut self, seq: Seq, what: What) -> Result<(), Mismatch>;
    fn draw(&mut self, bytes: &mut [u8]);
    fn now(&self) -> Timestamp;
}

impl Calls for Replay {
    fn schedule(&mut self, name: &str, input: &str) -> Result<Seq, Mismatch> {
        match self.schedule_activity(name, input.as_bytes(), "")? {
            Matched::Replayed(seq) => Ok(seq),
            Matched::Live(seq) => {
                let mut command = common::schedule(name, common::options());
                if let steadfast_model::Command::ScheduleActivity { input: i, .. } = &mut command {
                    *i = Payload::json(input);
                }
                self.issue(command);
                Ok(seq)
            }
        }
    }

    fn start_timer(&mut self, ms: u64) -> Result<Seq, Mismatch> {
        match Self::start_timer(self, Millis(ms))? {
            Matched::Replayed(seq) => Ok(seq),
            Matched::Live(seq) => {
                self.issue(common::timer(ms));
                Ok(seq)
            }
        }
    }

    fn child(&mut self, n: u8, input: &str) -> Result<Seq, Mismatch> {
        let name = format!("t{n}");
        let call = ChildCall {
            workflow_type: &name,
            workflow_id: None,
            input: input.as_bytes(),
            encoding: "",
        };
        match self.start_child(call)? {
            Matched::Replayed(seq) => Ok(seq),
            Matched::Live(seq) => {
                let mut command = common::outside::child_with(&format!("c{seq}"), |options| {
                    options.cancellation = ChildCancellation::ALL[usize::from(n) % 4];
                });
                if let steadfast_model::Command::StartChild {
                    input: i,
                    workflow_type,
                    options: _,
                } = &mut command
                {
                    *i = Payload::json(input);
                    *workflow_type = steadfast_model::WorkflowType::new(name).expect("valid");
                }
                self.issue(command);
                Ok(seq)
            }
        }
    }

    fn signal_out(&mut self, n: u8, input: &str) -> Result<Seq, Mismatch> {
        let id = format!("x{n}");
        match self.signal_external(&id, "go", input.as_bytes(), "")? {
            Matched::Replayed(seq) => Ok(seq),
            Matched::Live(seq) => {
                let mut command = common::outside::signal_to(&id, "go");
                if let steadfast_model::Command::SignalExternal { input: i, .. } = &mut command {
                    *i = Payload::json(input);
                }
                self.issue(command);
                Ok(seq)
            }
        }
    }

    fn cancel_out(&mut self, n: u8) -> Result<Seq, Mismatch> {
        let id = format!("x{n}");
        match self.cancel_external(&id)? {
            Matched::Replayed(seq) => Ok(seq),
            Matched::Live(seq) => {
                self.issue(common::outside::cancel_to(&id));
                Ok(seq)
            }
        }
    }

    fn cancel(&mut self, seq: Seq, what: What) -> Result<(), Mismatch> {
        let command = match what {
            What::Timer => self.cancel_timer(seq)?,
            What::Activity => self.cancel_activity(seq)?,
            What::Child => self.cancel_child(seq, "enough")?,
            What::Message => None,
        };
        command.into_iter().for_each(|command| self.issue(command));
        Ok(())
    }

    fn patched(&mut self, id: &str) -> bool {
        let Marked { answer, command } = Self::patched(self, &common::marker_name(id));
        command.into_iter().for_each(|command| self.issue(command));
        answer
    }

    fn side_effect(&mut self, name: &str, value: &str) -> Result<Payload, Mismatch> {
        let name = common::marker_name(name);
        let Marked { answer, command } = Self::side_effect(self, &name, Payload::json(value))?;
        command.into_iter().for_each(|command| self.issue(command));
        Ok(answer)
    }

    fn draw(&mut self, bytes: &mut [u8]) {
        Self::draw(self, bytes);
    }

    fn now(&self) -> Timestamp {
        Self::now(self)
    }
}

/// What an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Activity,
    Timer,
    Child,
    Message,
}

impl What {
    /// Something else that can be cancelled.
    fn other(self) -> Self {
        match self {
            Self::Activity | Self::Message => Self::Timer,
            Self::Timer | Self::Child => Self::Activity,
        }
    }
}

/// One line of a script. Operations are named by the order of their start, modulo their count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Op {
    /// Schedule the activity of this number.
    Schedule(u8),
    Timer(u64),
    /// Start a child of the type of this number; its cancellation type follows from it too.
    Child(u8),
    /// Signal the execution of this number.
    SignalOut(u8),
    /// Ask the execution of this number to cancel itself.
    CancelOut(u8),
    Cancel(usize),
    /// Cancel an operation as if it were of another kind: an error of an SDK.
    CancelWrong(usize),
    /// Cancel every operation whose end has not been seen.
    CancelRest,
    AwaitSignal,
    Await(usize),
    /// Wait for the next event, whatever it is.
    AwaitAny,
    /// Skip the next line if the last event was a signal.
    SkipAfterSignal,
    Draw(u8),
    /// Skip the next line unless the patch of this number applies.
    Patched(u8),
    /// Compute the script's input and remember what was recorded.
    SideEffect(u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Complete,
    Fail,
    Cancel,
    Never,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) ops: Vec<Op>,
    pub(crate) end: End,
    /// Given to every activity.
    pub(crate) input: &'static str,
    /// Added to the duration of every timer.
    pub(crate) slower: u64,
}

impl Script {
    pub(crate) fn new(ops: Vec<Op>) -> Self {
        Self {
            ops,
            end: End::Complete,
            input: "2",
            slower: 0,
        }
    }
}

/// One instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guest {
    script: Script,
    /// The next line.
    pub(crate) pc: usize,
    /// Lines that were executed, not skipped.
    pub(crate) executed: BTreeSet<usize>,
    started: Vec<(Seq, What)>,
    over: BTreeSet<Seq>,
    signals: usize,
    events: usize,
    last_was_signal: bool,
    /// The count of events at which a wait for any event began.
    waits_since: Option<usize>,
    /// Everything that the guest learned from its calls.
    pub(crate) trace: Vec<String>,
}

impl Guest {
    pub(crate) fn new(script: &Script) -> Self {
        Self {
            script: script.clone(),
            pc: 0,
            executed: BTreeSet::new(),
            started: Vec::new(),
            over: BTreeSet::new(),
            signals: 0,
            events: 0,
            last_was_signal: false,
            waits_since: None,
            trace: Vec::new(),
        }
    }

    /// Is told of one event.
    pub(crate) fn see(&mut self, event: &Event) {
        assert!(event.kind.is_delivered(), "{event:?}");
        self.events += 1;
        self.last_was_signal = matches!(event.kind, EventKind::WorkflowExecutionSignaled { .. });
        self.signals += usize::from(self.last_was_signal);
        self.over.extend(event.kind.resolves());
        if let EventKind::StartChildWorkflowExecutionFailed { seq, .. } = event.kind {
            self.over.insert(seq.outcome());
        }
        self.trace
            .push(format!("saw {} {}", event.number, event.kind.name()));
    }

    /// Runs until it waits or ends.
    pub(crate) fn run(&mut self, calls: &mut dyn Calls) -> Result<Step, Mismatch> {
        while let Some(op) = self.script.ops.get(self.pc).cloned() {
            self.executed.insert(self.pc);
            if !self.perform(&op, calls)? {
                return Ok(Step::Blocked);
            }
            self.pc += 1;
        }
        Ok(match self.script.end {
            End::Complete => Step::Completed(Payload::json("5")),
            End::Fail => Step::Failed(common::boom()),
            End::Cancel => Step::Canceled(Failure::canceled("as asked")),
            End::Never => Step::Blocked,
        })
    }

    /// Does one line; false if it waits.
    fn perform(&mut self, op: &Op, calls: &mut dyn Calls) -> Result<bool, Mismatch> {
        match op {
            Op::Schedule(n) => {
                let seq = calls.schedule(&format!("a{n}"), self.script.input)?;
                self.begun(seq, What::Activity, calls.now());
            }
            Op::Timer(ms) => {
                let seq = calls.start_timer(ms + self.script.slower)?;
                self.begun(seq, What::Timer, calls.now());
            }
            Op::Child(n) => {
                let seq = calls.child(*n, self.script.input)?;
                self.begun(seq, What::Child, calls.now());
            }
            Op::SignalOut(n) => {
                let seq = calls.signal_out(*n, self.script.input)?;
                self.begun(seq, What::Message, calls.now());
            }
            Op::CancelOut(n) => {
                let seq = calls.cancel_out(*n)?;
                self.begun(seq, What::Message, calls.now());
            }
            Op::Cancel(n) => self.cancel(*n, calls)?,
            Op::CancelWrong(n) => {
                if let Some((seq, what)) = self.operation(*n) {
                    calls.cancel(seq, what.other())?;
                }
            }
            Op::CancelRest => {
                for n in 0..self.started.len() {
                    self.cancel(n, calls)?;
                }
            }
            Op::AwaitSignal => {
                let is_here = self.signals > 0;
                self.signals -= usize::from(is_here);
                return Ok(is_here);
            }
            Op::Await(n) => {
                return Ok(self
                    .operation(*n)
                    .is_none_or(|(seq, what)| self.is_over(seq, what)));
            }
            Op::AwaitAny => {
                let since = *self.waits_since.get_or_insert(self.events);
                let is_here = self.events > since;
                self.waits_since.take_if(|_| is_here);
                return Ok(is_here);
            }
            Op::SkipAfterSignal => self.pc += usize::from(self.last_was_signal),
            Op::Draw(length) => {
                let mut bytes = vec![0; usize::from(*length)];
                calls.draw(&mut bytes);
                self.trace.push(format!("drew {bytes:?}"));
            }
            Op::Patched(n) => {
                let is_patched = calls.patched(&format!("p{n}"));
                self.trace.push(format!("patched {n}: {is_patched}"));
                self.pc += usize::from(!is_patched);
            }
            Op::SideEffect(n) => {
                let value = calls.side_effect(&format!("v{n}"), self.script.input)?;
                self.trace.push(format!("computed {value:?}"));
            }
        }
        Ok(true)
    }

    /// True once the guest was told of the end of an operation: of a child, its outcome.
    fn is_over(&self, seq: Seq, what: What) -> bool {
        let end = if what == What::Child {
            seq.outcome()
        } else {
            seq
        };
        self.over.contains(&end)
    }

    fn operation(&self, n: usize) -> Option<(Seq, What)> {
        self.started.get(n % self.started.len().max(1)).copied()
    }

    fn begun(&mut self, seq: Seq, what: What, now: Timestamp) {
        self.started.push((seq, what));
        self.trace.push(format!("began {seq} at {}", now.0));
    }

    /// A cancelled timer is over at once; an activity is over when its end arrives.
    fn cancel(&mut self, n: usize, calls: &mut dyn Calls) -> Result<(), Mismatch> {
        let Some((seq, what)) = self.operation(n) else {
            return Ok(());
        };
        if !self.is_over(seq, what) {
            calls.cancel(seq, what)?;
            if what == What::Timer {
                self.over.insert(seq);
            }
        }
        Ok(())
    }
}
