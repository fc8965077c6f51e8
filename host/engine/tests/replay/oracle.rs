//! Says where a guest differs from a history, by another way than the machine: the guest runs to
//! its end first, against nothing, and the two lists of calls are compared afterwards.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_engine::Mismatch;
use steadfast_model::command::Step;
use steadfast_model::{Event, EventKind, EventNumber, Payload, Seq, Timestamp};

use crate::guest::{Calls, End, Guest, Script, What};

/// A call: the event that it followed, and what it was.
#[derive(Debug, Clone)]
struct Made {
    after: EventNumber,
    label: String,
}

#[derive(Debug, Default)]
struct Recorder {
    next: u32,
    calls: Vec<String>,
    timers: BTreeSet<Seq>,
    /// Numbers of children and messages.
    children: BTreeSet<Seq>,
    messages: BTreeSet<Seq>,
    canceled: BTreeSet<Seq>,
    /// What the history has, in order, and how much of it was called so far.
    recorded: Vec<String>,
    matched: usize,
    patches: BTreeMap<String, bool>,
}

impl Recorder {
    fn number(&mut self) -> Seq {
        self.next += 1;
        Seq(self.next)
    }

    /// Another call than the next recorded one is a void cancellation, or a difference that makes
    /// what follows irrelevant.
    fn call(&mut self, label: String) {
        self.matched += usize::from(self.recorded.get(self.matched) == Some(&label));
        self.calls.push(label);
    }
}

impl Calls for Recorder {
    fn schedule(&mut self, name: &str, _input: &str) -> Result<Seq, Mismatch> {
        let seq = self.number();
        self.call(format!("schedule {seq} {name}"));
        Ok(seq)
    }

    fn start_timer(&mut self, _ms: u64) -> Result<Seq, Mismatch> {
        let seq = self.number();
        self.timers.insert(seq);
        self.call(format!("timer {seq}"));
        Ok(seq)
    }

    fn child(&mut self, n: u8, _input: &str) -> Result<Seq, Mismatch> {
        let seq = self.number();
        self.number();
        self.children.insert(seq);
        self.call(format!("child {seq} t{n}"));
        Ok(seq)
    }

    fn signal_out(&mut self, n: u8, _input: &str) -> Result<Seq, Mismatch> {
        let seq = self.number();
        self.messages.insert(seq);
        self.call(format!("signal-out {seq} x{n}"));
        Ok(seq)
    }

    fn cancel_out(&mut self, n: u8) -> Result<Seq, Mismatch> {
        let seq = self.number();
        self.messages.insert(seq);
        self.call(format!("cancel-out {seq} x{n}"));
        Ok(seq)
    }

    fn cancel(&mut self, seq: Seq, what: What) -> Result<(), Mismatch> {
        let is = if self.timers.contains(&seq) {
            What::Timer
        } else if self.children.contains(&seq) {
            What::Child
        } else if self.messages.contains(&seq) {
            What::Message
        } else {
            What::Activity
        };
        if is == what && is != What::Message && self.canceled.insert(seq) {
            let name = if is == What::Child {
                "cancel-child"
            } else {
                "cancel"
            };
            self.call(format!("{name} {seq}"));
        }
        Ok(())
    }

    fn patched(&mut self, id: &str) -> bool {
        if let Some(answer) = self.patches.get(id) {
            return *answer;
        }
        let label = format!("patch {id:?}");
        let next = self.recorded.get(self.matched);
        let answer = next.is_none_or(|next| *next == label);
        self.patches.insert(id.into(), answer);
        if answer {
            self.call(label);
        }
        answer
    }

    fn side_effect(&mut self, name: &str, value: &str) -> Result<Payload, Mismatch> {
        self.call(format!("side-effect {name:?}"));
        Ok(Payload::json(value))
    }

    fn draw(&mut self, _bytes: &mut [u8]) {}

    fn now(&self) -> Timestamp {
        Timestamp(0)
    }
}

/// What a recorded command would be called.
fn label(kind: &EventKind) -> Option<String> {
    match kind {
        EventKind::ActivityTaskScheduled {
            seq, activity_type, ..
        } => Some(format!("schedule {seq} {activity_type}")),
        EventKind::TimerStarted { seq, .. } => Some(format!("timer {seq}")),
        EventKind::ActivityTaskCancelRequested { seq } | EventKind::TimerCanceled { seq } => {
            Some(format!("cancel {seq}"))
        }
        EventKind::MarkerRecorded { marker } => Some(marker.to_string()),
        EventKind::StartChildWorkflowExecutionInitiated {
            seq, workflow_type, ..
        } => Some(format!("child {seq} {workflow_type}")),
        EventKind::SignalExternalWorkflowExecutionInitiated { seq, target, .. } => {
            Some(format!("signal-out {seq} {}", target.workflow_id))
        }
        EventKind::RequestCancelExternalWorkflowExecutionInitiated {
            seq,
            target,
            of_child,
            ..
        } => Some(match of_child {
            Some(_) => format!("cancel-child {seq}"),
            None => format!("cancel-out {seq} {}", target.workflow_id),
        }),
        EventKind::WorkflowExecutionCompleted { .. } => Some("completed".into()),
        EventKind::WorkflowExecutionFailed { .. } => Some("failed".into()),
        EventKind::WorkflowExecutionCanceled { .. } => Some("canceled".into()),
        _ => None,
    }
}

fn recorded(history: &[Event]) -> Vec<(EventNumber, String)> {
    history
        .iter()
        .filter_map(|e| Some((e.number, label(&e.kind)?)))
        .collect()
}

/// Runs a guest over the events of a history and lists its calls.
fn calls(history: &[Event], script: &Script) -> (Vec<Made>, Guest) {
    let mut deliveries = history.iter().filter(|e| e.kind.is_delivered());
    let mut guest = Guest::new(script);
    let mut recorder = Recorder {
        recorded: recorded(history)
            .into_iter()
            .map(|(_, label)| label)
            .collect(),
        ..Recorder::default()
    };
    let (mut made, mut after) = (Vec::new(), EventNumber::FIRST);
    loop {
        let step = guest.run(&mut recorder).expect("nothing to differ from");
        made.extend(recorder.calls.drain(..).map(|label| Made { after, label }));
        let end = match step {
            Step::Completed(_) => "completed",
            Step::Failed(_) => "failed",
            Step::Canceled(_) => "canceled",
            Step::ContinuedAsNew(_) => "continued as new",
            Step::Blocked | Step::UnknownOperation(_) => {
                let Some(event) = deliveries.next() else {
                    return (made, guest);
                };
                guest.see(event);
                after = event.number;
                continue;
            }
        };
        made.push(Made {
            after,
            label: end.into(),
        });
        return (made, guest);
    }
}

/// The recorded command that comes next when the code reaches a line; `None` if it never does.
pub(crate) fn next_at(
    history: &[Event],
    script: &Script,
    line: usize,
) -> Option<(EventNumber, String)> {
    let (_, guest) = calls(history, script);
    if line < script.ops.len() && !guest.executed.contains(&line) {
        return None;
    }
    let before = Script {
        ops: script.ops[..line].to_vec(),
        end: End::Never,
        ..script.clone()
    };
    let recorded = recorded(history);
    let is_recorded = |made: &&Made| recorded.iter().any(|(_, label)| *label == made.label);
    let count = calls(history, &before).0.iter().filter(is_recorded).count();
    recorded.get(count).cloned()
}

/// The event at which a guest differs from a history.
pub(crate) fn difference(history: &[Event], script: &Script) -> Option<EventNumber> {
    let mut resolved: BTreeSet<Seq> = history.iter().filter_map(|e| e.kind.resolves()).collect();
    for event in history {
        if let EventKind::StartChildWorkflowExecutionFailed { seq, .. } = event.kind {
            resolved.insert(seq.outcome());
        }
    }
    let recorded = recorded(history);
    let (made, _) = calls(history, script);
    let mut left = recorded.iter().peekable();
    for call in &made {
        let (number, expected) = left.peek()?;
        // The event that woke the guest for this call came after a command that it did not make.
        if *number < call.after {
            return Some(*number);
        }
        if *expected == call.label {
            left.next();
            continue;
        }
        let seq = |text: &str| Seq(text.parse().expect("a number"));
        let ends = call.label.strip_prefix("cancel ").map(seq);
        let child = call.label.strip_prefix("cancel-child ").map(seq);
        let is_void = ends
            .or(child.map(Seq::outcome))
            .is_some_and(|seq| resolved.contains(&seq));
        if !is_void {
            return Some(*number);
        }
    }
    // The guest waits for ever.
    left.peek().map(|(number, _)| *number)
}
