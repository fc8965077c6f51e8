//! Runs a script and prints what it did, one line per fact.

use std::fmt::Write;

use steadfast_engine::child::Answer;
use steadfast_engine::operate::Report;
use steadfast_engine::{Request, TaskChange, UpdateChange};
use steadfast_model::child::ExternalTarget;
use steadfast_model::command::Step;
use steadfast_model::event::UpdateOutcome;
use steadfast_model::{ActivityTask, Control, EventKind, Failure, Payload, RetryState, TaskState};

use crate::common::World;

/// Runs requests at virtual times against a run that begins at 0. Each request is one line,
/// `time request`; below it are the events (`number@time`), the changes of tasks, or why the
/// request was rejected.
pub(crate) fn check<const N: usize>(script: [(u64, Request); N]) -> String {
    play(&mut World::begin(0), script)
}

/// The same against a run that has a past.
pub(crate) fn play<const N: usize>(world: &mut World, script: [(u64, Request); N]) -> String {
    let mut text = String::new();
    for (at, request) in script {
        line(&mut text, format_args!("{at} {}", name(&request)));
        match world.step(at, &request) {
            Ok(decision) => {
                for event in &decision.events {
                    let (number, time, kind) = (event.number, event.time.0, fact(&event.kind));
                    line(&mut text, format_args!("  {number}@{time} {kind}"));
                }
                for change in &decision.tasks {
                    match change {
                        TaskChange::Put(task) => line(&mut text, format_args!("  {}", put(task))),
                        TaskChange::Remove(seq) => {
                            line(&mut text, format_args!("  task {seq} removed"));
                        }
                    }
                }
                for change in &decision.updates {
                    match change {
                        UpdateChange::Put(update) => line(
                            &mut text,
                            format_args!("  update {} admitted", update.number),
                        ),
                        UpdateChange::Remove(number) => {
                            line(&mut text, format_args!("  update {number} removed"));
                        }
                    }
                }
            }
            Err(rejection) => line(&mut text, format_args!("  rejected: {rejection}")),
        }
    }
    text
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    writeln!(text, "{arguments}").expect("writing to a string");
}

fn name(request: &Request) -> String {
    match request {
        Request::Signal { request_id, .. } => format!("signal {request_id}"),
        Request::Cancel { request_id, .. } => format!("cancel {request_id}"),
        Request::Terminate { .. } => "terminate".into(),
        Request::AdmitUpdate { update_id, .. } => format!("admit {update_id}"),
        Request::AcceptUpdate { number } => format!("accept {number}"),
        Request::RefuseUpdate { number } => format!("refuse {number}"),
        Request::RunDue { .. } => "run-due".into(),
        Request::TimerDue { seq } => format!("timer-due {seq}"),
        Request::ActivityDue { seq } => format!("activity-due {seq}"),
        Request::ClaimActivity { seq, .. } => format!("claim {seq}"),
        Request::ReleaseActivity { seq, worker: _ } => format!("release {seq}"),
        Request::Heartbeat { seq, attempt, .. } => format!("heartbeat {seq}/{attempt}"),
        Request::CompleteActivity { seq, attempt, .. } => format!("complete {seq}/{attempt}"),
        Request::FailActivity { seq, attempt, .. } => format!("fail {seq}/{attempt}"),
        Request::DeferActivity { seq, attempt } => format!("defer {seq}/{attempt}"),
        Request::ReportActivity {
            activity_id,
            report,
        } => {
            let what = match report {
                Report::Complete(_) => "complete",
                Report::Fail(_) => "fail",
                Report::Cancel(_) => "cancel",
                Report::Heartbeat(_) => "heartbeat",
            };
            format!("{what} by id {activity_id}")
        }
        Request::OperateActivities {
            which, operation, ..
        } => format!("{} {which:?}", operation.name()),
        Request::Answer(answer) => name_of(answer),
        Request::Yield {
            commands,
            step,
            at: _,
            closing: _,
        } => {
            let names: Vec<_> = commands
                .iter()
                .map(|issued| issued.command.name())
                .collect();
            format!("yield [{}] {}", names.join(", "), end(step))
        }
    }
}

fn name_of(answer: &Answer) -> String {
    let how = |is_ok: bool| if is_ok { "ok" } else { "refused" };
    match answer {
        Answer::ChildStarted { seq, result } => {
            format!("child-started {seq} {}", how(result.is_ok()))
        }
        Answer::ChildClosed { seq, .. } => format!("child-closed {seq}"),
        Answer::Signaled { seq, result } => format!("signaled {seq} {}", how(result.is_ok())),
        Answer::CancelRequested {
            seq,
            of_child,
            result,
        } => {
            let what = if *of_child { "child" } else { "external" };
            format!("cancel-requested {what} {seq} {}", how(result.is_ok()))
        }
    }
}

fn end(step: &Step) -> &'static str {
    match step {
        Step::Blocked => "blocked",
        Step::Completed(_) => "completed",
        Step::Failed(_) => "failed",
        Step::Canceled(_) => "canceled",
        Step::ContinuedAsNew(_) => "continued-as-new",
        Step::UnknownOperation(_) => "unknown-operation",
    }
}

fn fact(kind: &EventKind) -> String {
    format!(
        "{}{}",
        kind.name(),
        about_activity(kind)
            .or_else(|| about_outside(kind))
            .unwrap_or_else(|| about_run(kind))
    )
}

fn about_activity(kind: &EventKind) -> Option<String> {
    Some(match kind {
        EventKind::ActivityTaskScheduled {
            seq, activity_type, ..
        } => {
            format!(" {seq} {activity_type}")
        }
        EventKind::ActivityTaskCompleted {
            seq,
            result,
            attempt,
            worker,
            started_at,
        } => {
            let from = started_at.0;
            format!(
                " {seq} {} attempt {attempt} by {worker} from {from}",
                data(result)
            )
        }
        EventKind::ActivityTaskFailed {
            seq,
            failure,
            attempt,
            worker,
            retry_state,
        } => {
            let why = retry_state.name();
            format!(
                " {seq} attempt {attempt} by {worker} {why}{}",
                chain(failure)
            )
        }
        EventKind::ActivityTaskTimedOut {
            seq,
            failure,
            attempt,
            retry_state,
        } => {
            format!(
                " {seq} attempt {attempt} {}{}",
                retry_state.name(),
                chain(failure)
            )
        }
        EventKind::ActivityTaskCanceled { seq, failure } => format!(" {seq}{}", chain(failure)),
        EventKind::ActivityTaskCancelRequested { seq } => format!(" {seq}"),
        _ => return None,
    })
}

#[allow(clippy::too_many_lines, reason = "one short arm for each event")]
fn about_outside(kind: &EventKind) -> Option<String> {
    let target = |target: &ExternalTarget| {
        let only = if target.child_only {
            " (child only)"
        } else {
            ""
        };
        format!("{}{only}", target.workflow_id)
    };
    Some(match kind {
        EventKind::StartChildWorkflowExecutionInitiated {
            seq,
            workflow_type,
            options,
            ..
        } => format!(" {seq} {workflow_type} as {}", options.workflow_id),
        EventKind::StartChildWorkflowExecutionFailed {
            seq,
            cause,
            failure,
        }
        | EventKind::SignalExternalWorkflowExecutionFailed {
            seq,
            cause,
            failure,
        } => format!(" {seq} {}{}", cause.name(), chain(failure)),
        EventKind::ChildWorkflowExecutionStarted { seq, .. }
        | EventKind::ExternalWorkflowExecutionSignaled { seq } => format!(" {seq}"),
        EventKind::ChildWorkflowExecutionCompleted { seq, result } => {
            format!(" {seq} {}", data(result))
        }
        EventKind::ChildWorkflowExecutionFailed { seq, failure }
        | EventKind::ChildWorkflowExecutionTimedOut { seq, failure }
        | EventKind::ChildWorkflowExecutionTerminated { seq, failure } => {
            format!(" {seq}{}", chain(failure))
        }
        EventKind::ChildWorkflowExecutionCanceled {
            seq,
            failure,
            is_left,
        } => {
            let left = if *is_left { " left" } else { "" };
            format!(" {seq}{left}{}", chain(failure))
        }
        EventKind::SignalExternalWorkflowExecutionInitiated {
            seq,
            target: to,
            name,
            input,
        } => format!(" {seq} {name} {} to {}", data(input), target(to)),
        EventKind::RequestCancelExternalWorkflowExecutionInitiated {
            seq,
            target: to,
            reason,
            of_child,
        } => {
            let how = of_child.map(|how| format!(" child {}", how.name()));
            format!(" {seq} {}{} {reason}", target(to), how.unwrap_or_default())
        }
        EventKind::RequestCancelExternalWorkflowExecutionFailed {
            seq,
            cause,
            failure,
            of_child,
        } => {
            let child = if *of_child { " child" } else { "" };
            format!(" {seq}{child} {}{}", cause.name(), chain(failure))
        }
        EventKind::ExternalWorkflowExecutionCancelRequested { seq, of_child } => {
            let child = if *of_child { " child" } else { "" };
            format!(" {seq}{child}")
        }
        _ => return None,
    })
}

fn about_run(kind: &EventKind) -> String {
    match kind {
        EventKind::WorkflowExecutionCompleted { result, .. } => format!(" {}", data(result)),
        EventKind::WorkflowExecutionFailed { failure, .. }
        | EventKind::WorkflowExecutionCanceled { failure } => chain(failure),
        EventKind::TimerStarted {
            seq,
            duration,
            fire_at,
        } => {
            format!(" {seq} for {duration} until {}", fire_at.0)
        }
        EventKind::TimerFired { seq } | EventKind::TimerCanceled { seq } => format!(" {seq}"),
        EventKind::MarkerRecorded { marker } => format!(" {marker}"),
        EventKind::WorkflowExecutionCancelRequested {
            reason,
            identity,
            request_id,
        } => {
            format!(" {reason} by {identity} ({request_id})")
        }
        EventKind::WorkflowExecutionSignaled {
            name,
            input,
            request_id,
            identity,
        } => {
            format!(" {name} {} by {identity} ({request_id})", data(input))
        }
        EventKind::WorkflowExecutionTerminated { reason, identity } => {
            format!(" {reason} by {identity}")
        }
        EventKind::WorkflowExecutionUpdateAccepted {
            update_id,
            name,
            input,
            identity,
        } => {
            format!(" {name} {} by {identity} ({update_id})", data(input))
        }
        EventKind::WorkflowExecutionUpdateCompleted {
            update_id,
            accepted,
            outcome,
        } => match outcome {
            UpdateOutcome::Success { result } => {
                format!(" {update_id} of {accepted}: {}", data(result))
            }
            UpdateOutcome::Failure { failure } => {
                format!(" {update_id} of {accepted}{}", chain(failure))
            }
        },
        other => panic!("not printed here: {}", other.name()),
    }
}

fn put(task: &ActivityTask) -> String {
    let state = match &task.state {
        TaskState::Ready { since } => format!("ready since {}", since.0),
        TaskState::Backoff { until } => format!("backoff until {}", until.0),
        TaskState::Started {
            worker,
            since,
            heartbeat,
        } => {
            format!(
                "started by {worker} at {}, heartbeat {}",
                since.0, heartbeat.0
            )
        }
    };
    let mut text = format!("task {} attempt {}: {state}", task.seq, task.attempt);
    if let Some(details) = &task.heartbeat_details {
        write!(text, ", details {}", data(details)).expect("writing to a string");
    }
    if task.cancel_requested {
        text.push_str(", cancel requested");
    }
    if task.attempt != task.shown_attempt() {
        write!(text, ", shown as {}", task.shown_attempt()).expect("writing to a string");
    }
    control(&mut text, &task.control);
    if let Some(failure) = &task.last_failure {
        write!(text, ", last failure{}", chain(failure)).expect("writing to a string");
    }
    text
}

fn control(text: &mut String, control: &Control) {
    if let Some(paused) = &control.paused {
        let why = paused.parked.map_or("asked", RetryState::name);
        write!(text, ", paused at {} ({why})", paused.at.0).expect("writing to a string");
    }
    let flags = [
        (control.reset_requested, ", reset"),
        (control.is_deferred, ", completes later"),
        (control.is_abandoned, ", abandoned"),
        (control.original_options.is_some(), ", options changed"),
    ];
    for (_, flag) in flags.into_iter().filter(|(is_set, _)| *is_set) {
        text.push_str(flag);
    }
}

/// One frame a line, outermost first.
fn chain(failure: &Failure) -> String {
    let mut text = String::new();
    for frame in failure.frames() {
        let details = frame
            .details
            .as_ref()
            .map(|d| format!(" details {}", data(d)));
        let (kind, code, message) = (frame.kind.name(), &frame.code, &frame.message);
        write!(
            text,
            "\n    {kind} {code}: {message}{}",
            details.unwrap_or_default()
        )
        .expect("writing to a string");
    }
    text
}

fn data(payload: &Payload) -> String {
    String::from_utf8_lossy(&payload.data).into_owned()
}
