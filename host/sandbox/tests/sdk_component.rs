//! A component built with the Rust SDK (`workflows/bench`), driven with recorded answers: it runs,
//! and runs identically again.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

mod common;

use std::path::Path;
use std::sync::LazyLock;

use common::{Call, Recorder, Started, completed, event, instantiate, sandbox, taken};
use steadfast_model::command::Step;
use steadfast_model::{
    ComponentDigest, EventKind, EventNumber, Failure, Millis, Payload, RequestId, RetryState, Seq,
    SignalName, Timestamp,
};
use steadfast_ports::guest::Error;
use steadfast_ports::{Guest, Guests};
use steadfast_sandbox::{Sandbox, build};

/// The core module as `cargo build` wrote it.
fn core_module() -> Vec<u8> {
    let path = "../../tests/fixtures/components/bench.core.wasm";
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("the fixture is there")
}

fn component() -> Vec<u8> {
    build::componentize(&core_module()).expect("it becomes a component")
}

/// One drive of a run, for comparison with another.
#[derive(Debug, PartialEq)]
struct Trace {
    steps: Vec<Started>,
    calls: Vec<Call>,
    lines: usize,
}

/// Starts a workflow and answers every activity with its own input and every timer by firing it.
fn drive(guest: &mut dyn Guest, workflow: &str, input: &str) -> Trace {
    let recorder = Recorder {
        now: Timestamp(1_000),
        ..Recorder::default()
    };
    let input = Payload::json(input);
    let (mut step, mut recorder) = taken(guest.start(workflow, &input, Box::new(recorder)));
    let mut steps = vec![step.clone()];
    let mut answered = 0;
    while step == Ok(Step::Blocked) && answered < recorder.calls.len() {
        let seq = Seq(u32::try_from(answered + 1).expect("small"));
        let kind = match &recorder.calls[answered] {
            Call::Schedule { input, .. } => {
                let text = String::from_utf8(input.clone()).expect("JSON");
                completed(seq.0, &text).kind
            }
            Call::StartTimer(_) => EventKind::TimerFired { seq },
            other @ (Call::CancelActivity(_)
            | Call::CancelTimer(_)
            | Call::StartChild { .. }
            | Call::CancelChild(..)
            | Call::SignalExternal { .. }
            | Call::CancelExternal(..)
            | Call::Patched(_)
            | Call::DeprecatePatch(_)
            | Call::SideEffect(..)
            | Call::UpsertMemo(_)
            | Call::CompleteUpdate(..)) => panic!("not expected: {other:?}"),
        };
        answered += 1;
        let mut event = event(kind);
        event.number = EventNumber(u64::try_from(answered).expect("small") * 2 + 1);
        event.time = Timestamp(1_000 + 10 * event.number.0);
        recorder.now = event.time;
        (step, recorder) = taken(guest.resume(&[event], Box::new(recorder)));
        steps.push(step.clone());
    }
    Trace {
        steps,
        calls: recorder.calls,
        lines: recorder.lines.len(),
    }
}

/// One sandbox for all tests: the component is compiled once.
fn admitted() -> &'static (Sandbox, ComponentDigest) {
    static ADMITTED: LazyLock<(Sandbox, ComponentDigest)> = LazyLock::new(|| {
        let sandbox = sandbox();
        let admitted = sandbox.admit(&component());
        let digest = admitted.expect("it is admitted").digest;
        (sandbox, digest)
    });
    &ADMITTED
}

#[test]
fn the_sdk_component_describes_itself() {
    let inspection = build::inspect(&component()).expect("it is a component");
    let description = inspection.verdict.expect("it is admitted").description;
    assert!(
        description.sdk.starts_with("steadfast-sdk"),
        "{}",
        description.sdk
    );
    assert!(
        description
            .workflows
            .iter()
            .any(|workflow| workflow.name == "steps")
    );
    assert!(inspection.exports.contains(&"resume".to_owned()));
    assert_eq!(inspection.imports, description.imports);
    assert!(
        inspection
            .imports
            .iter()
            .all(|name| name.starts_with("steadfast:workflow/"))
    );
}

#[test]
fn runs_complete_and_replay_identically() {
    let &(ref sandbox, digest) = admitted();
    for (workflow, input) in [
        ("empty", "null"),
        ("steps", "{\"steps\":50}"),
        ("parallel", "{\"steps\":200}"),
        ("wait-timer", "{\"ms\":1000}"),
        ("random-now", "null"),
    ] {
        let first = drive(instantiate(sandbox, digest).as_mut(), workflow, input);
        let last = first.steps.last().expect("it was started");
        assert!(
            matches!(last, Ok(Step::Completed(_))),
            "{workflow}: {last:?}"
        );
        let again = drive(instantiate(sandbox, digest).as_mut(), workflow, input);
        assert_eq!(first, again, "{workflow}");
    }
}

#[test]
fn steps_schedules_what_it_says() {
    let &(ref sandbox, digest) = admitted();
    let trace = drive(
        instantiate(sandbox, digest).as_mut(),
        "steps",
        "{\"steps\":3}",
    );
    assert_eq!(
        trace.steps.last(),
        Some(&Ok(Step::Completed(Payload::json("3"))))
    );
    assert_eq!(trace.calls.len(), 3);
    let Call::Schedule {
        activity_type,
        input,
        ..
    } = &trace.calls[2]
    else {
        panic!("{trace:?}")
    };
    assert_eq!(
        (activity_type.as_str(), input.as_slice()),
        ("echo", b"2".as_slice())
    );
}

#[test]
fn a_failed_activity_fails_the_workflow_with_its_cause() {
    let &(ref sandbox, digest) = admitted();
    let mut guest = instantiate(sandbox, digest);
    let input = Payload::json("{\"steps\":1}");
    let (_, recorder) = taken(guest.start("steps", &input, Box::new(Recorder::default())));
    let kind = EventKind::ActivityTaskFailed {
        seq: Seq(1),
        failure: Failure::application("no-money", "the account is empty"),
        attempt: 3,
        worker: String::new(),
        retry_state: RetryState::MaximumAttemptsReached,
    };
    let (step, _) = taken(guest.resume(&[event(kind)], Box::new(recorder)));
    let Ok(Step::Failed(failure)) = step else {
        panic!("{step:?}")
    };
    assert!(
        failure
            .frames()
            .iter()
            .any(|frame| frame.code == "no-money"),
        "{failure:?}"
    );
}

#[test]
fn signals_and_cancel_requests_arrive() {
    let &(ref sandbox, digest) = admitted();
    let mut guest = instantiate(sandbox, digest);
    let input = Payload::json("{\"expect\":2}");
    let (_, mut recorder) =
        taken(guest.start("signals-count", &input, Box::new(Recorder::default())));
    let mut last = Ok(Step::Blocked);
    for value in ["5", "6"] {
        let kind = EventKind::WorkflowExecutionSignaled {
            name: SignalName::new("n").expect("valid"),
            input: Payload::json(value),
            request_id: RequestId::new("r").expect("valid"),
            identity: String::new(),
        };
        (last, recorder) = taken(guest.resume(&[event(kind)], Box::new(recorder)));
    }
    assert_eq!(last, Ok(Step::Completed(Payload::json("[5,6]"))));
}

#[test]
fn an_unknown_operation_is_reported() {
    let &(ref sandbox, digest) = admitted();
    let mut guest = instantiate(sandbox, digest);
    let input = Payload::json("{\"ms\":5}");
    let (_, recorder) = taken(guest.start("wait-timer", &input, Box::new(Recorder::default())));
    assert_eq!(recorder.calls, [Call::StartTimer(Millis(5))]);
    let fired = event(EventKind::TimerFired { seq: Seq(9) });
    let (step, _) = taken(guest.resume(&[fired], Box::new(recorder)));
    assert_eq!(step, Ok(Step::UnknownOperation(Seq(9))));
}

/// Starts a workflow that goes wrong.
fn broken(workflow: &str) -> Error {
    let &(ref sandbox, digest) = admitted();
    let mut guest = instantiate(sandbox, digest);
    let (step, _) = taken(guest.start(
        workflow,
        &Payload::json("null"),
        Box::new(Recorder::default()),
    ));
    step.expect_err("it goes wrong")
}

#[test]
fn a_panic_has_its_message_and_a_readable_backtrace() {
    let Error::Trap { message, backtrace } = broken("panic") else {
        panic!("not a trap")
    };
    assert!(
        message.starts_with("this workflow always panics, at "),
        "{message}"
    );
    let lines: Vec<&str> = backtrace.lines().collect();
    assert!(
        lines.iter().all(|line| line.starts_with("  at ")),
        "{backtrace}"
    );
    assert!(
        lines
            .iter()
            .any(|line| line.contains("core::panicking::panic")),
        "{backtrace}"
    );
    assert!(
        lines.last().is_some_and(|line| line.contains("start")),
        "{backtrace}"
    );
    assert!(
        !backtrace.contains("17h"),
        "names are demangled: {backtrace}"
    );
}

#[test]
fn memory_without_end_is_a_limit_with_figures() {
    let Error::LimitExceeded(text) = broken("grow") else {
        panic!("not a limit")
    };
    assert!(text.ends_with("the limit is 67108864"), "{text}");
}

#[test]
fn a_loop_without_end_is_a_timeout() {
    assert_eq!(broken("spin").code(), "timeout");
}

#[test]
fn an_unknown_workflow_type_traps_or_fails_with_its_name() {
    let &(ref sandbox, digest) = admitted();
    let mut guest = instantiate(sandbox, digest);
    let (step, _) = taken(guest.start("nope", &Payload::json("1"), Box::new(Recorder::default())));
    let text = format!("{:?}", step.map_err(|error| error.to_string()));
    assert!(text.contains("nope"), "{text}");
}
