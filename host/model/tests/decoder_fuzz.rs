//! Decoders are total: random bytes and mutations of valid values give a value or an error, never
//! a panic, and whatever decodes encodes to something stable.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "test code"
)]

#[path = "../../../tests/fuzz/checks/decoders.rs"]
mod decoders;
#[path = "../../../tests/fuzz/checks/mutate.rs"]
mod mutate;

use decoders::decode_everything;
use mutate::Seeded;
use steadfast_model::chain::Fields;
use steadfast_model::child::{ParentClosePolicy, Ward};
use steadfast_model::codec::{Chunk, encode};
use steadfast_model::component::{MessageDescription, WorkflowDescription};
use steadfast_model::event::{Started, TimeoutScope};
use steadfast_model::execution::Blocked;
use steadfast_model::{
    ActivityOptions, ActivityTask, ActivityType, Cancellation, ChainOptions, ComponentDescription,
    ComponentDigest, ComponentRecord, Control, Event, EventKind, EventNumber, ExecutionRecord,
    Failure, FailureKind, Frame, Initiator, Link, Millis, Namespace, Paused, Payload, RequestId,
    RetryPolicy, RetryState, RunId, RunKey, Seq, SignalName, Status, TaskQueue, TaskState,
    Timestamp, WorkflowId, WorkflowType,
};

fn name<T: std::str::FromStr>(text: &str) -> T {
    text.parse().ok().expect("a valid name")
}

fn failure() -> Failure {
    let details = Some(Payload::encoded("binary/plain", vec![0, 1, 255]));
    let inner = Frame {
        details,
        ..Frame::new(FailureKind::Application, "code", "inner")
    };
    Failure::new(inner).wrapped(Frame::new(FailureKind::Activity, "charge", "outer"))
}

fn options() -> ActivityOptions {
    ActivityOptions {
        activity_id: "id".to_owned(),
        schedule_to_close: Some(Millis(1)),
        heartbeat: Some(Millis(5)),
        cancellation: Cancellation::TryCancel,
        ..ActivityOptions::on(name::<TaskQueue>("queue"))
    }
}

/// One event of several kinds, with numbers of every width.
fn fields() -> Fields {
    Fields::from([("note".to_owned(), Payload::json("1"))])
}

fn ward() -> Ward {
    Ward {
        namespace: name("default"),
        workflow_id: name("child"),
        run_id: RunId::new(RunKey(1), [3; 8]),
        seq: Seq(7),
        parent_close_policy: ParentClosePolicy::RequestCancel,
    }
}

fn started() -> Started {
    Started {
        namespace: name("default"),
        workflow_id: name("id"),
        run_id: RunId::new(RunKey(1), [3; 8]),
        workflow_type: name("order"),
        component: ComponentDigest([1; 32]),
        task_queue: name("queue"),
        input: Payload::json("{}"),
        random_seed: [5; 32],
        request_id: name("request"),
        identity: String::new(),
        attempt: 2,
        options: ChainOptions {
            execution_timeout: Some(Millis(5)),
            run_timeout: None,
            retry: Some(RetryPolicy::default()),
            cron: "* * * * *".to_owned(),
            memo: fields(),
            headers: Fields::new(),
            summary: "summary".to_owned(),
            details: String::new(),
        },
        link: Link {
            first_run_id: Some(RunId::new(RunKey(1), [3; 8])),
            initiator: Some(Initiator::Cron),
            last_failure: Some(failure()),
            signal_ids: vec![name("signal")],
            wards: vec![ward()],
            ..Link::default()
        },
        parent: None,
    }
}

fn events() -> Vec<Event> {
    let seq = Seq(70_000);
    let kinds = vec![
        EventKind::ActivityTaskScheduled {
            seq,
            activity_type: name::<ActivityType>("charge"),
            input: Payload::json("{\"a\":1}"),
            options: Box::new(options()),
        },
        EventKind::ActivityTaskCompleted {
            seq,
            result: Payload::json("1"),
            attempt: 3,
            worker: "worker".to_owned(),
            started_at: Timestamp(1_796_083_200_123),
        },
        EventKind::ActivityTaskFailed {
            seq,
            failure: failure(),
            attempt: 300,
            worker: String::new(),
            retry_state: RetryState::MaximumAttemptsReached,
        },
        EventKind::TimerStarted {
            seq,
            duration: Millis(5),
            fire_at: Timestamp(6),
        },
        EventKind::TimerFired { seq: Seq(1) },
        EventKind::WorkflowExecutionSignaled {
            name: name::<SignalName>("go"),
            input: Payload::default(),
            request_id: name::<RequestId>("request"),
            identity: "me".to_owned(),
        },
        EventKind::WorkflowExecutionCompleted {
            result: Payload::json("[]"),
            new_run_id: Some(RunId::new(RunKey(7), [4; 8])),
        },
        EventKind::WorkflowExecutionFailed {
            failure: failure(),
            new_run_id: None,
            retry_state: Some(RetryState::RetryPolicyNotSet),
        },
        EventKind::WorkflowExecutionTimedOut {
            scope: TimeoutScope::Run,
            new_run_id: Some(RunId::new(RunKey(7), [4; 8])),
            retry_state: RetryState::InProgress,
        },
        EventKind::WorkflowExecutionContinuedAsNew {
            new_run_id: RunId::new(RunKey(7), [4; 8]),
            workflow_type: name("order"),
            input: Payload::json("3"),
            not_before: Some(Timestamp(9)),
        },
        EventKind::WorkflowPropertiesModified { memo: fields() },
        EventKind::WorkflowExecutionStarted {
            started: Box::new(started()),
        },
    ];
    let numbered = (1..).zip(kinds);
    numbered
        .map(|(n, kind)| Event {
            number: EventNumber(n),
            time: Timestamp(n * 1000),
            kind,
        })
        .collect()
}

fn component() -> ComponentRecord {
    let message = |text: &str| MessageDescription {
        name: text.to_owned(),
        doc: "doc".to_owned(),
        input_schema: "{}".to_owned(),
        output_schema: String::new(),
    };
    let workflow = WorkflowDescription {
        name: "order".to_owned(),
        doc: String::new(),
        input_schema: String::new(),
        output_schema: "true".to_owned(),
        signals: vec![message("go")],
        queries: Vec::new(),
        updates: vec![message("a"), message("b")],
    };
    ComponentRecord {
        digest: ComponentDigest([9; 32]),
        size_bytes: 20_000,
        uploaded_at: Timestamp(7),
        description: ComponentDescription {
            sdk: "sdk/1".to_owned(),
            resume_batch_max: 1,
            workflows: vec![workflow],
            imports: vec!["a:b/c@0.1.0".to_owned()],
        },
    }
}

/// A valid encoding of each stored value.
#[allow(clippy::too_many_lines, reason = "one entry for each stored value")]
fn seeds() -> Vec<Vec<u8>> {
    let events = events();
    let task = ActivityTask {
        run: RunKey(300),
        seq: Seq(2),
        scheduled_event: EventNumber(3),
        scheduled_at: Timestamp(4),
        activity_type: name::<ActivityType>("charge"),
        options: options(),
        attempt: 5,
        state: TaskState::Started {
            worker: "w".to_owned(),
            since: Timestamp(6),
            heartbeat: Timestamp(7),
        },
        last_failure: Some(failure()),
        heartbeat_details: Some(Payload::json("1")),
        control: Control {
            paused: Some(Paused {
                at: Timestamp(9),
                reason: "r".to_owned(),
                identity: "i".to_owned(),
                parked: Some(RetryState::Timeout),
            }),
            reset_requested: true,
            is_deferred: true,
            attempts_forgotten: 3,
            limits_since: Some(Timestamp(8)),
            last_failed_at: Some(Timestamp(9)),
            original_options: Some(Box::new(options())),
            is_abandoned: true,
        },
        cancel_requested: true,
    };
    let execution = ExecutionRecord {
        run: RunKey(1),
        namespace: name::<Namespace>("default"),
        workflow_id: name::<WorkflowId>("id"),
        run_id: RunId::new(RunKey(1), [3; 8]),
        workflow_type: name::<WorkflowType>("order"),
        component: ComponentDigest([1; 32]),
        task_queue: name::<TaskQueue>("queue"),
        status: Status::Running,
        started_at: Timestamp(1),
        closed_at: None,
        last_event: Some(EventNumber(12)),
        delayed_until: Some(Timestamp(4)),
        undelivered_signals: None,
        blocked: Some(Blocked {
            since: Timestamp(2),
            code: "trap".to_owned(),
            message: "text".to_owned(),
            attempts: 1,
            retry_at: Some(Timestamp(3)),
        }),
    };
    let mut seeds = vec![
        Chunk::encode(&events).expect("there are events").bytes,
        encode(&task),
        encode(&execution),
        encode(&component()),
        encode(&failure()),
    ];
    for event in &events {
        seeds.push(
            Chunk::encode(std::slice::from_ref(event))
                .expect("one event")
                .bytes,
        );
        seeds.push(encode(&event.kind));
    }
    seeds
}

#[test]
fn valid_values_survive_the_checks() {
    for bytes in seeds() {
        decode_everything(&bytes);
    }
}

#[test]
fn every_prefix_of_a_valid_value_is_refused_or_decodes() {
    for bytes in seeds() {
        for end in 0..bytes.len() {
            decode_everything(&bytes[..end]);
        }
    }
}

#[test]
fn mutated_values_never_panic_a_decoder() {
    let mut random = Seeded(1);
    for seed in seeds() {
        for _ in 0..1_000 {
            decode_everything(&random.mutate(&seed));
        }
    }
}

#[test]
fn random_bytes_never_panic_a_decoder() {
    let mut random = Seeded(2);
    for _ in 0..5_000 {
        let length = random.below(200);
        let mut bytes: Vec<u8> = (0..length).map(|_| random.byte()).collect();
        // Half of them with the format byte, so that they get past it.
        if let Some(first) = bytes.first_mut()
            && random.below(2) == 0
        {
            *first = steadfast_model::codec::FORMAT;
        }
        decode_everything(&bytes);
    }
}

#[test]
fn a_length_that_promises_more_than_there_is_costs_nothing() {
    // Byte strings, texts, arrays and maps that claim 2^32 and 2^63 items.
    for major in [0x40_u8, 0x60, 0x80, 0xa0] {
        for tail in [
            &[0x1a, 0xff, 0xff, 0xff, 0xff][..],
            &[0x1b, 0x7f, 255, 255, 255, 255, 255, 255, 255],
        ] {
            for depth in 0..12 {
                let mut bytes = vec![steadfast_model::codec::FORMAT];
                bytes.extend(std::iter::repeat_n(0x81, depth));
                bytes.push(major | tail[0]);
                bytes.extend_from_slice(&tail[1..]);
                decode_everything(&bytes);
            }
        }
    }
}
