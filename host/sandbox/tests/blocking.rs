//! Guests of the world `blocking-workflow` (`workflows/blocking`), driven with recorded answers.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

mod common;

use std::path::Path;
use std::sync::LazyLock;

use common::{Call, Recorder, Started, completed, event, instantiate, sandbox_with, taken};
use steadfast_model::command::Step;
use steadfast_model::{
    ComponentDigest, EventKind, EventNumber, Failure, Millis, Payload, RequestId, RetryState, Seq,
    SignalName,
};
use steadfast_ports::guest::Error;
use steadfast_ports::{Guest, Guests};
use steadfast_sandbox::{Sandbox, build};

fn component() -> Vec<u8> {
    let path = "../../tests/fixtures/components/blocking.core.wasm";
    let core =
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("the fixture");
    build::componentize(&core).expect("it becomes a component")
}

fn admitted() -> &'static (Sandbox, ComponentDigest) {
    static ADMITTED: LazyLock<(Sandbox, ComponentDigest)> = LazyLock::new(|| {
        let sandbox = sandbox_with(|options| options.activation_time_max = Millis(300));
        let admitted = sandbox.admit(&component());
        let digest = admitted.expect("it is admitted").digest;
        (sandbox, digest)
    });
    &ADMITTED
}

/// One run at work.
struct Run {
    guest: Box<dyn Guest>,
    step: Started,
    recorder: Recorder,
    next: u64,
}

impl Run {
    fn start(workflow: &str, input: &str) -> Self {
        let &(ref sandbox, digest) = admitted();
        let mut guest = instantiate(sandbox, digest);
        let recorder = Box::new(Recorder::default());
        let (step, recorder) = taken(guest.start(workflow, &Payload::json(input), recorder));
        Self {
            guest,
            step,
            recorder,
            next: 2,
        }
    }

    fn tell(&mut self, kind: EventKind) -> &Started {
        let mut event = event(kind);
        event.number = EventNumber(self.next);
        self.next += 1;
        let recorder = Box::new(std::mem::take(&mut self.recorder));
        (self.step, self.recorder) = taken(self.guest.resume(&[event], recorder));
        &self.step
    }

    fn result(&self) -> String {
        match &self.step {
            Ok(Step::Completed(result)) => String::from_utf8(result.data.clone()).expect("JSON"),
            other => panic!("{other:?}"),
        }
    }
}

fn signal(name: &str, json: &str) -> EventKind {
    EventKind::WorkflowExecutionSignaled {
        name: SignalName::new(name).expect("a name"),
        input: Payload::json(json),
        request_id: RequestId::new("r").expect("a name"),
        identity: String::new(),
    }
}

#[test]
fn the_component_is_admitted_and_describes_itself() {
    let inspection = build::inspect(&component()).expect("a component");
    let description = inspection.verdict.expect("it is admitted").description;
    assert!(
        description
            .workflows
            .iter()
            .any(|workflow| workflow.name == "blocking-steps")
    );
    assert!(inspection.exports.contains(&"run".to_owned()));
}

#[test]
fn steps_wait_inside_their_calls() {
    let mut run = Run::start("blocking-steps", "{\"steps\":3}");
    for step in 0..3 {
        assert_eq!(run.step, Ok(Step::Blocked), "before step {step}");
        assert_eq!(run.recorder.calls.len(), step + 1);
        let seq = u32::try_from(step + 1).expect("small");
        run.tell(completed(seq, &step.to_string()).kind);
    }
    assert_eq!(run.result(), "3");
}

#[test]
fn results_are_taken_in_the_order_of_their_events() {
    let mut run = Run::start("blocking-parallel", "{\"steps\":3}");
    assert_eq!(run.recorder.calls.len(), 3);
    for seq in [3, 1, 2] {
        assert_eq!(run.step, Ok(Step::Blocked));
        run.tell(completed(seq, &(seq - 1).to_string()).kind);
    }
    assert_eq!(run.result(), "3");
}

#[test]
fn a_failed_activity_comes_out_of_take() {
    let mut run = Run::start("blocking-steps", "{\"steps\":1}");
    run.tell(EventKind::ActivityTaskFailed {
        seq: Seq(1),
        failure: Failure::application("no-money", "the account is empty"),
        attempt: 3,
        worker: String::new(),
        retry_state: RetryState::MaximumAttemptsReached,
    });
    let Ok(Step::Failed(failure)) = &run.step else {
        panic!("{:?}", run.step)
    };
    assert_eq!(failure.frames()[0].code, "no-money");
}

#[test]
fn the_signal_wins_and_the_timer_is_cancelled() {
    let mut run = Run::start("blocking-approval", "{\"deadline_ms\":60000}");
    assert_eq!(run.recorder.calls, [Call::StartTimer(Millis(60_000))]);
    run.tell(signal("other", "1"));
    assert_eq!(run.step, Ok(Step::Blocked));
    run.tell(signal("approve", "\"ada\""));
    assert_eq!(run.recorder.calls[1], Call::CancelTimer(Seq(1)));
    run.tell(completed(2, "{\"ok\":true}").kind);
    assert_eq!(run.result(), "{\"ok\":true}");
}

#[test]
fn the_timer_wins_when_it_fires_first() {
    let mut run = Run::start("blocking-approval", "{\"deadline_ms\":5}");
    run.tell(EventKind::TimerFired { seq: Seq(1) });
    assert_eq!(run.result(), "\"too late\"");
}

#[test]
fn signals_are_kept_until_they_are_asked_for() {
    let mut run = Run::start("blocking-signals-count", "{\"expect\":3}");
    for value in ["5", "6", "7"] {
        run.tell(signal("n", value));
    }
    assert_eq!(run.result(), "[5,6,7]");
}

#[test]
fn a_cancel_request_is_accepted_after_a_cleanup() {
    let mut run = Run::start("blocking-cancel", "null");
    run.tell(EventKind::WorkflowExecutionCancelRequested {
        reason: "enough".to_owned(),
        identity: String::new(),
        request_id: RequestId::new("r").expect("a name"),
    });
    let Call::Schedule { input, .. } = &run.recorder.calls[0] else {
        panic!("{:?}", run.recorder.calls)
    };
    assert_eq!(input, b"\"enough\"");
    run.tell(completed(1, "null").kind);
    assert!(matches!(run.step, Ok(Step::Canceled(_))), "{:?}", run.step);
}

#[test]
fn time_and_randomness_are_the_hosts_and_logs_arrive() {
    let mut run = Run::start("blocking-random-now", "null");
    run.recorder.now = steadfast_model::Timestamp(2_000);
    run.tell(EventKind::TimerFired { seq: Seq(1) });
    assert_eq!(
        run.result(),
        "{\"now_ms\":[1000,2000],\"random\":[0,1,2,3,4,5,6,7]}"
    );
    assert_eq!(run.recorder.lines.len(), 1);
}

#[test]
fn waiting_for_nothing_is_named() {
    let run = Run::start("blocking-deadlock", "null");
    let error = run.step.expect_err("it cannot go on");
    assert_eq!(error.code(), "invalid-call");
    assert!(error.to_string().contains("wait-any"), "{error}");
}

#[test]
fn a_spinning_guest_is_interrupted_also_after_a_wait() {
    let run = Run::start("blocking-spin", "null");
    assert!(
        matches!(run.step, Err(Error::Timeout { .. })),
        "{:?}",
        run.step
    );
}

#[test]
fn a_trap_after_a_wait_has_a_backtrace_and_ends_the_instance() {
    let mut run = Run::start("blocking-trap", "null");
    assert_eq!(run.step, Ok(Step::Blocked));
    run.tell(EventKind::TimerFired { seq: Seq(1) });
    let Err(Error::Trap { backtrace, .. }) = &run.step else {
        panic!("{:?}", run.step)
    };
    assert!(backtrace.contains("trap"), "{backtrace}");
    run.tell(EventKind::TimerFired { seq: Seq(1) });
    assert!(
        matches!(run.step, Err(Error::Unavailable(_))),
        "{:?}",
        run.step
    );
}

#[test]
fn many_parked_runs_are_bounded_and_can_be_dropped_while_they_wait() {
    let &(ref sandbox, digest) = admitted();
    // More than the pool has room for: the rest is allocated one by one.
    let mut guests: Vec<Box<dyn Guest>> = (0..40).map(|_| instantiate(sandbox, digest)).collect();
    for guest in &mut guests {
        let input = Payload::json("{\"steps\":1}");
        let (step, _) = taken(guest.start("blocking-steps", &input, Box::new(Recorder::default())));
        assert_eq!(step, Ok(Step::Blocked));
        let bytes = guest.memory_bytes();
        assert!((100_000..2_000_000).contains(&bytes), "{bytes}");
    }
    drop(guests);
    let run = Run::start("blocking-steps", "{\"steps\":0}");
    assert_eq!(run.result(), "0");
}
