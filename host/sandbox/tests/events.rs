//! What guests are told: every event, failure and payload arrives as it was recorded.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

mod common;

use common::{Guestlet, Recorder, completed, event, instance, sandbox, start, taken};
use steadfast_model::child::FailedCause;
use steadfast_model::command::Step;
use steadfast_model::{
    EventKind, Failure, FailureKind, Frame, Millis, Payload, RequestId, RetryState, RunId, Seq,
    SignalName,
};

/// A guest whose `resume` completes with the bytes of the first event as it sees them.
fn mirror() -> Guestlet {
    Guestlet {
        resume: "(i32.store8 (i32.const 4096) (i32.const 1))
                 (i32.store (i32.const 4108) (local.get 0))
                 (i32.store (i32.const 4112) (i32.mul (local.get 1) (i32.const 56)))
                 (i32.const 4096)"
            .to_owned(),
        ..Guestlet::default()
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Every way in which an operation ends, with whether it is an error.
fn endings(seq: Seq) -> Vec<(EventKind, u8)> {
    let failure = || Failure::application("code", "message");
    let failed = EventKind::ActivityTaskFailed {
        seq,
        failure: failure(),
        attempt: 2,
        worker: String::new(),
        retry_state: RetryState::Timeout,
    };
    let timed_out = EventKind::ActivityTaskTimedOut {
        seq,
        failure: failure(),
        attempt: 2,
        retry_state: RetryState::Timeout,
    };
    let canceled = EventKind::ActivityTaskCanceled {
        seq,
        failure: failure(),
    };
    vec![
        (completed(seq.0, "1").kind, 0),
        (failed, 1),
        (timed_out, 1),
        (canceled, 1),
        (EventKind::TimerFired { seq }, 0),
        (EventKind::ExternalWorkflowExecutionSignaled { seq }, 0),
        (
            EventKind::SignalExternalWorkflowExecutionFailed {
                seq,
                cause: FailedCause::ExternalWorkflowExecutionNotFound,
                failure: failure(),
            },
            1,
        ),
        (
            EventKind::ExternalWorkflowExecutionCancelRequested {
                seq,
                of_child: false,
            },
            0,
        ),
        (
            EventKind::ChildWorkflowExecutionCompleted {
                seq: Seq(seq.0 - 1),
                result: Payload::json("1"),
            },
            0,
        ),
        (
            EventKind::ChildWorkflowExecutionTerminated {
                seq: Seq(seq.0 - 1),
                failure: failure(),
            },
            1,
        ),
    ]
}

/// The bytes of one event as the guest sees them.
fn mirrored(kind: EventKind) -> Vec<u8> {
    let sandbox = sandbox();
    let mut guest = instance(&sandbox, &mirror().component());
    let (_, recorder) = start(guest.as_mut(), Recorder::default());
    let name = kind.name();
    let (result, _) = taken(guest.resume(&[event(kind)], Box::new(recorder)));
    let Ok(Step::Completed(payload)) = result else {
        panic!("{name}: {result:?}")
    };
    let bytes = payload.data;
    assert_eq!(bytes.len(), 56);
    assert_eq!(
        (word(&bytes, 0), word(&bytes, 8)),
        (7, 2000),
        "{name}: number and time"
    );
    bytes
}

#[test]
fn resolved_operations_have_their_number_and_outcome() {
    for (kind, outcome) in endings(Seq(70_000)) {
        let name = kind.name();
        let bytes = mirrored(kind);
        assert_eq!(bytes[16], 0, "{name}: resolved");
        assert_eq!(word(&bytes, 20), 70_000, "{name}: operation");
        assert_eq!(bytes[24], outcome, "{name}: outcome");
    }
}

#[test]
fn a_started_child_gives_its_run_as_json() {
    let run_id = RunId::from_bytes([7; 16]);
    let bytes = mirrored(EventKind::ChildWorkflowExecutionStarted {
        seq: Seq(3),
        run_id,
    });
    assert_eq!((bytes[16], word(&bytes, 20), bytes[24]), (0, 3, 0));
    let length = u32::try_from(run_id.to_string().len() + 2).expect("short");
    assert_eq!(word(&bytes, 40), length, "a run id in quotes");
}

#[test]
fn signals_and_cancel_requests_have_their_kind() {
    let request = || RequestId::new("r").expect("valid");
    let signaled = EventKind::WorkflowExecutionSignaled {
        name: SignalName::new("go").expect("valid"),
        input: Payload::encoded("x/y", b"12345".to_vec()),
        request_id: request(),
        identity: String::new(),
    };
    let bytes = mirrored(signaled);
    assert_eq!(bytes[16], 1, "signaled");
    assert_eq!(
        (word(&bytes, 24), word(&bytes, 32), word(&bytes, 40)),
        (2, 3, 5),
        "lengths"
    );
    let requested = EventKind::WorkflowExecutionCancelRequested {
        reason: "enough".to_owned(),
        identity: String::new(),
        request_id: request(),
    };
    let bytes = mirrored(requested);
    assert_eq!(bytes[16], 2, "cancel-requested");
    assert_eq!(word(&bytes, 24), 6, "length of the reason");
}

#[test]
fn several_events_are_delivered_together() {
    let sandbox = sandbox();
    let mut guest = instance(&sandbox, &mirror().component());
    let (_, recorder) = start(guest.as_mut(), Recorder::default());
    let events = [completed(1, "1"), completed(2, "2"), completed(3, "3")];
    let (result, recorder) = taken(guest.resume(&events, Box::new(recorder)));
    let Ok(Step::Completed(payload)) = result else {
        panic!("{result:?}")
    };
    let operations: Vec<u32> = payload
        .data
        .chunks(56)
        .map(|bytes| word(bytes, 20))
        .collect();
    assert_eq!(operations, [1, 2, 3]);
    let (result, _) = taken(guest.resume(&[], Box::new(recorder)));
    assert_eq!(result, Ok(Step::Completed(Payload::json(""))));
}

#[test]
fn an_event_that_guests_are_not_told_about_is_a_bug_of_the_caller() {
    let sandbox = sandbox();
    let mut guest = instance(&sandbox, &mirror().component());
    let kind = EventKind::ActivityTaskCancelRequested { seq: Seq(1) };
    let (result, _) = taken(guest.resume(&[event(kind)], Box::new(Recorder::default())));
    let error = result.expect_err("not delivered");
    assert_eq!(error.code(), "component");
    assert!(
        error
            .to_string()
            .contains("event 7 (ActivityTaskCancelRequested)"),
        "{error}"
    );
}

#[test]
fn failures_keep_every_field_on_the_way_in_and_out() {
    // The failure that arrives with the event is what `resume` fails with: the frames' memory is
    // simply handed back.
    let guest = Guestlet {
        resume: "(i32.store8 (i32.const 4096) (i32.const 2))
                 (i32.store (i32.const 4100) (i32.load offset=28 (local.get 0)))
                 (i32.store (i32.const 4104) (i32.load offset=32 (local.get 0)))
                 (i32.const 4096)"
            .to_owned(),
        ..Guestlet::default()
    };
    let kinds = [
        FailureKind::Application,
        FailureKind::Timeout,
        FailureKind::Canceled,
        FailureKind::Terminated,
        FailureKind::Server,
        FailureKind::Activity,
        FailureKind::ChildWorkflow,
    ];
    let frames = kinds.map(|kind| Frame {
        kind,
        message: format!("a {} failed \u{e9}", kind.name()),
        code: "code".to_owned(),
        non_retryable: kind == FailureKind::Server,
        next_retry_delay: Millis(77),
        stack_trace: "at main".to_owned(),
        details: (kind != FailureKind::Timeout)
            .then(|| Payload::encoded("binary/plain", vec![0, 255])),
        attributes: Vec::new(),
        encoded_attributes: None,
    });
    let failure = Failure::from_frames(frames.to_vec());
    let sandbox = sandbox();
    let mut guest = instance(&sandbox, &guest.component());
    let kind = EventKind::ActivityTaskCanceled {
        seq: Seq(1),
        failure: failure.clone(),
    };
    let (result, _) = taken(guest.resume(&[event(kind)], Box::new(Recorder::default())));
    assert_eq!(result, Ok(Step::Failed(failure)));
}
