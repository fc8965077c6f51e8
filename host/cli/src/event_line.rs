//! One event of a history as one line.

use steadfast_api::wire::{Event, EventType, MarkerKind, Payload, Time};

use crate::duration;
use crate::output::{Output, Tone, clean};
use crate::table::fit;

/// Widths of the number, the time and the name.
const WIDTHS: (usize, usize, usize) = (5, 9, 32);

/// The titles over the lines.
pub(crate) fn titles(output: &Output) -> String {
    let (number, time, name) = WIDTHS;
    let text = format!(
        "{:>number$}  {:>time$}  {:<name$}  DETAILS",
        "EVENT", "AFTER", "TYPE"
    );
    format!("{}\n", output.paint(Tone::Strong, &text))
}

/// The line of an event of a run that began at `start`.
pub(crate) fn line(event: &Event, start: Time, output: &Output) -> String {
    let (number, time, name) = WIDTHS;
    let after = format!("+{}", duration::show(event.time.0.since(start.0).0));
    let kind = format!("{:?}", event.kind);
    let head = format!("{:>number$}  {after:>time$}  ", event.number);
    let used = number + time + name.max(kind.len()) + 6;
    let details = clean(&details(event));
    let details = match output.width {
        Some(width) => fit(&details, width.saturating_sub(used).max(12)),
        None => details,
    };
    let blanks = " ".repeat(if details.is_empty() {
        0
    } else {
        (name + 2).saturating_sub(kind.len()).max(2)
    });
    format!(
        "{head}{}{blanks}{details}\n",
        output.paint(tone(event.kind), &kind)
    )
}

fn tone(kind: EventType) -> Tone {
    match kind {
        EventType::WorkflowExecutionCompleted => Tone::Good,
        EventType::WorkflowExecutionFailed
        | EventType::WorkflowExecutionTerminated
        | EventType::WorkflowExecutionTimedOut
        | EventType::ActivityTaskFailed
        | EventType::ActivityTaskTimedOut
        | EventType::StartChildWorkflowExecutionFailed
        | EventType::ChildWorkflowExecutionFailed
        | EventType::ChildWorkflowExecutionTimedOut
        | EventType::ChildWorkflowExecutionTerminated
        | EventType::SignalExternalWorkflowExecutionFailed
        | EventType::RequestCancelExternalWorkflowExecutionFailed => Tone::Bad,
        EventType::WorkflowExecutionCancelRequested
        | EventType::WorkflowExecutionCanceled
        | EventType::ActivityTaskCancelRequested
        | EventType::ActivityTaskCanceled
        | EventType::RequestCancelExternalWorkflowExecutionInitiated
        | EventType::ExternalWorkflowExecutionCancelRequested
        | EventType::ChildWorkflowExecutionCanceled => Tone::Warning,
        EventType::WorkflowExecutionStarted
        | EventType::WorkflowExecutionSignaled
        | EventType::WorkflowExecutionUpdateAccepted
        | EventType::WorkflowExecutionUpdateCompleted
        | EventType::WorkflowExecutionContinuedAsNew
        | EventType::WorkflowPropertiesModified
        | EventType::ActivityTaskScheduled
        | EventType::ActivityTaskCompleted
        | EventType::TimerStarted
        | EventType::TimerFired
        | EventType::TimerCanceled
        | EventType::MarkerRecorded
        | EventType::StartChildWorkflowExecutionInitiated
        | EventType::ChildWorkflowExecutionStarted
        | EventType::ChildWorkflowExecutionCompleted
        | EventType::SignalExternalWorkflowExecutionInitiated
        | EventType::ExternalWorkflowExecutionSignaled => Tone::Plain,
    }
}

/// The attributes that matter, in a fixed order.
fn details(event: &Event) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(event.seq.map(|seq| format!("#{seq}")));
    parts.extend(event.workflow_type.clone());
    parts.extend(event.activity_type.clone());
    parts.extend(event.marker.map(marker).map(str::to_owned));
    let child_id = event.child_options.as_ref().map(|child| &child.workflow_id);
    let target_id = event.target.as_ref().map(|target| &target.workflow_id);
    parts.extend(child_id.or(target_id).cloned());
    parts.extend(event.name.clone());
    parts.extend(event.details.as_ref().map(payload));
    parts.extend(event.update_id.as_ref().map(|id| format!("[{id}]")));
    parts.extend(event.input.as_ref().map(payload));
    parts.extend(event.result.as_ref().map(payload));
    parts.extend(event.failure.as_ref().map(ToString::to_string));
    parts.extend(event.duration_ms.map(duration::show));
    parts.extend(
        event
            .new_run_id
            .as_ref()
            .map(|run| format!("followed by run {run}")),
    );
    parts.extend(event.reason.clone().filter(|reason| !reason.is_empty()));
    let is_activity_end = event.worker.is_some() || event.retry_state.is_some();
    if let Some(attempt) = event
        .attempt
        .filter(|attempt| is_activity_end && *attempt > 1)
    {
        parts.push(format!("(attempt {attempt})"));
    }
    parts.extend(event.worker.as_ref().map(|worker| format!("by {worker}")));
    parts.join(" ")
}

fn marker(kind: MarkerKind) -> &'static str {
    match kind {
        MarkerKind::Patch => "patch",
        MarkerKind::DeprecatedPatch => "deprecated patch",
        MarkerKind::SideEffect => "side effect",
    }
}

fn payload(payload: &Payload) -> String {
    // Cutting it to the terminal comes later; this only spares a megabyte of work.
    fit(payload.get(), 500)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(text: &str) -> Event {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn events_are_one_line_each() {
        let completed = event(
            r#"{"number": 5, "time": "2026-01-31T12:00:02.500Z", "type": "ActivityTaskCompleted",
                "seq": 2, "result": "pay\n1", "attempt": 3, "worker": "w1",
                "started_at": "2026-01-31T12:00:01.000Z"}"#,
        );
        let start = "2026-01-31T12:00:00.000Z".parse().unwrap();
        let output = Output::plain(None);
        let expected = "    5      +2.5s  ActivityTaskCompleted             #2 \"pay\\n1\" (attempt 3) by w1\n";
        assert_eq!(line(&completed, start, &output), expected);
        let narrow = Output::plain(Some(60));
        assert!(line(&completed, start, &narrow).trim_end().chars().count() <= 66);
    }

    #[test]
    fn a_long_name_is_set_apart_from_its_details() {
        let started = event(
            r#"{"number": 2, "time": "2026-01-31T12:00:00Z", "seq": 1, "workflow_type": "part",
                "type": "StartChildWorkflowExecutionInitiated"}"#,
        );
        let start = "2026-01-31T12:00:00.000Z".parse().unwrap();
        let line = line(&started, start, &Output::plain(None));
        assert!(line.contains("Initiated  #1 part"), "{line}");
    }

    #[test]
    fn an_event_without_details_ends_with_its_name() {
        let fired = event(r#"{"number": 7, "time": "2026-01-31T12:00:00Z", "type": "TimerFired"}"#);
        let start = "2026-01-31T12:00:00.000Z".parse().unwrap();
        let output = Output::plain(None);
        assert!(line(&fired, start, &output).ends_with("TimerFired\n"));
    }
}
