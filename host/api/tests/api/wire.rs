//! The wire form of events and payloads loses nothing.

use proptest::prelude::*;
use steadfast_api::wire;
use steadfast_model::chain::Fields;
use steadfast_model::event::{Started, TimeoutScope};
use steadfast_model::{
    ActivityOptions, ActivityType, Cancellation, ChainOptions, ComponentDigest, Event, EventKind,
    EventNumber, Failure, FailureKind, Frame, Initiator, Link, Millis, Namespace, Payload,
    RequestId, RetryPolicy, RetryState, RunId, RunKey, Seq, SignalName, TaskQueue, Timestamp,
    UpdateId, UpdateName, WorkflowId, WorkflowType,
};

#[path = "wire_child.rs"]
mod child;

pub(crate) fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z/%. ]{1,20}", "\\PC{1,20}"]
}

pub(crate) fn payload() -> impl Strategy<Value = Payload> {
    let json = prop_oneof![
        Just("null".to_owned()),
        Just(" 1".to_owned()),
        Just("1\n".to_owned()),
        Just("1 2".to_owned()),
        Just(String::new()),
        Just("9007199254740993.10e+05".to_owned()),
        Just("{ \"a\" : 1 , \"a\" : 2 }".to_owned()),
        Just("{ \"$payload\": {\"encoding\": \"x\", \"data\": \"\"}}".to_owned()),
        Just("{\"\\u0024payload\": 1}".to_owned()),
        Just("\"\\ud800\"".to_owned()),
        "\\PC{0,20}",
    ];
    prop_oneof![
        4 => json.prop_map(Payload::json),
        1 => any::<Vec<u8>>().prop_map(Payload::json),
        1 => (name(), any::<Vec<u8>>()).prop_map(|(name, data)| Payload::encoded(&name, data)),
    ]
}

pub(crate) fn failure() -> impl Strategy<Value = Failure> {
    let kind = prop::sample::select(FailureKind::ALL.to_vec());
    let texts = (".*", ".*", ".*");
    let attributes = prop::collection::vec((".*", ".*"), 0..3);
    let payloads = (prop::option::of(payload()), prop::option::of(payload()));
    let rest = (any::<bool>(), any::<u64>(), payloads, attributes);
    let frame = (kind, texts, rest).prop_map(|(kind, texts, rest)| Frame {
        kind,
        message: texts.0,
        code: texts.1,
        stack_trace: texts.2,
        non_retryable: rest.0,
        next_retry_delay: Millis(rest.1),
        details: rest.2.0,
        encoded_attributes: rest.2.1,
        attributes: rest.3,
    });
    prop::collection::vec(frame, 0..4).prop_map(Failure::from_frames)
}

fn retry_state() -> impl Strategy<Value = RetryState> {
    prop::sample::select(RetryState::ALL.to_vec())
}

pub(crate) fn retry() -> impl Strategy<Value = RetryPolicy> {
    let retry = (
        any::<[u64; 2]>(),
        any::<[u32; 2]>(),
        prop::collection::vec(name(), 0..3),
    );
    retry.prop_map(|(ms, numbers, non_retryable_codes)| RetryPolicy {
        initial_interval: Millis(ms[0]),
        maximum_interval: Millis(ms[1]),
        backoff_permille: numbers[0],
        maximum_attempts: numbers[1],
        non_retryable_codes,
    })
}

fn options() -> impl Strategy<Value = ActivityOptions> {
    let limit = || prop::option::of(any::<u64>().prop_map(Millis));
    let retry = retry();
    let texts = (name(), ".*", ".*");
    (texts, limit(), limit(), any::<u64>(), limit(), retry).prop_map(
        |(texts, schedule_to_close, schedule_to_start, close, heartbeat, retry)| ActivityOptions {
            task_queue: TaskQueue::new(texts.0).expect("a name"),
            activity_id: texts.1,
            schedule_to_close,
            schedule_to_start,
            start_to_close: Millis(close),
            heartbeat,
            retry,
            summary: texts.2,
            cancellation: Cancellation::ALL[usize::from(close % 3 == 1)],
            is_local: close % 5 == 0,
            parks: close % 7 == 0,
        },
    )
}

fn run_id() -> impl Strategy<Value = Option<RunId>> {
    any::<Option<[u8; 8]>>().prop_map(|random| random.map(|r| RunId::new(RunKey(9), r)))
}

fn fields() -> impl Strategy<Value = Fields> {
    prop::collection::btree_map(".*", payload(), 0..3)
}

fn chain() -> impl Strategy<Value = (ChainOptions, Link)> {
    let limit = || any::<Option<u64>>().prop_map(|ms| ms.map(Millis));
    let initiator = prop::option::of(prop::sample::select(Initiator::ALL.to_vec()));
    let ids = prop::collection::vec(name(), 0..3);
    let wards = prop::collection::vec(child::ward(), 0..3);
    let texts = (".*", ".*", ".*");
    let results = (prop::option::of(payload()), prop::option::of(failure()));
    let options = (limit(), limit(), fields(), fields(), texts);
    let link = (
        run_id(),
        run_id(),
        initiator,
        any::<[Option<u64>; 2]>(),
        results,
        ids,
        wards,
    );
    (options, link).prop_map(|(options, link)| {
        let (execution_timeout, run_timeout, memo, headers, texts) = options;
        let options = ChainOptions {
            execution_timeout,
            run_timeout,
            retry: execution_timeout.map(|_| RetryPolicy::default()),
            cron: texts.0,
            memo,
            headers,
            summary: texts.1,
            details: texts.2,
        };
        let ids = link.5.into_iter();
        let link = Link {
            first_run_id: link.0,
            continued_run_id: link.1,
            initiator: link.2,
            expiration: link.3[0].map(Timestamp),
            not_before: link.3[1].map(Timestamp),
            last_completion_result: link.4.0,
            last_failure: link.4.1,
            signal_ids: ids.map(|id| RequestId::new(id).expect("a name")).collect(),
            wards: link.6,
        };
        (options, link)
    })
}

fn started() -> impl Strategy<Value = EventKind> {
    let names = (name(), name(), name(), name(), name());
    let bytes = (any::<[u8; 32]>(), any::<[u8; 32]>(), any::<[u8; 8]>());
    let family = (chain(), prop::option::of(child::parent()));
    (names, bytes, payload(), any::<u32>(), ".*", family).prop_map(
        |(names, bytes, input, attempt, identity, ((options, link), parent))| {
            EventKind::WorkflowExecutionStarted {
                started: Box::new(Started {
                    namespace: Namespace::new(names.0).expect("a name"),
                    workflow_id: WorkflowId::new(names.1).expect("a name"),
                    run_id: RunId::new(RunKey(u64::from(attempt)), bytes.2),
                    workflow_type: WorkflowType::new(names.2).expect("a name"),
                    component: ComponentDigest(bytes.0),
                    task_queue: TaskQueue::new(names.3).expect("a name"),
                    input,
                    random_seed: bytes.1,
                    request_id: RequestId::new(names.4).expect("a name"),
                    identity,
                    attempt,
                    options,
                    link,
                    parent: parent.map(Box::new),
                }),
            }
        },
    )
}

fn execution_event() -> impl Strategy<Value = EventKind> {
    let request = || name().prop_map(|name| RequestId::new(name).expect("a name"));
    prop_oneof![
        started(),
        (payload(), run_id()).prop_map(|(result, new_run_id)| {
            EventKind::WorkflowExecutionCompleted { result, new_run_id }
        }),
        (failure(), run_id(), retry_state()).prop_map(|(failure, new_run_id, state)| {
            EventKind::WorkflowExecutionFailed {
                failure,
                new_run_id,
                retry_state: Some(state),
            }
        }),
        (any::<bool>(), run_id(), retry_state()).prop_map(|(is_run, new_run_id, retry_state)| {
            EventKind::WorkflowExecutionTimedOut {
                scope: if is_run {
                    TimeoutScope::Run
                } else {
                    TimeoutScope::Execution
                },
                new_run_id,
                retry_state,
            }
        }),
        (name(), payload(), any::<[u8; 8]>(), any::<Option<u64>>()).prop_map(
            |(name, input, random, not_before)| {
                EventKind::WorkflowExecutionContinuedAsNew {
                    new_run_id: RunId::new(RunKey(7), random),
                    workflow_type: WorkflowType::new(name).expect("a name"),
                    input,
                    not_before: not_before.map(Timestamp),
                }
            }
        ),
        fields().prop_map(|memo| EventKind::WorkflowPropertiesModified { memo }),
        failure().prop_map(|failure| EventKind::WorkflowExecutionCanceled { failure }),
        (".*", ".*", request()).prop_map(|(reason, identity, request_id)| {
            EventKind::WorkflowExecutionCancelRequested {
                reason,
                identity,
                request_id,
            }
        }),
        (name(), payload(), request(), ".*").prop_map(|(name, input, request_id, identity)| {
            let name = SignalName::new(name).expect("a name");
            EventKind::WorkflowExecutionSignaled {
                name,
                input,
                request_id,
                identity,
            }
        }),
        (".*", ".*").prop_map(
            |(reason, identity)| EventKind::WorkflowExecutionTerminated { reason, identity }
        ),
    ]
}

#[allow(
    clippy::too_many_lines,
    reason = "one short arm for each kind of event"
)]
fn command_event() -> impl Strategy<Value = EventKind> {
    let seq = || any::<u32>().prop_map(Seq);
    prop_oneof![
        (seq(), name(), payload(), options()).prop_map(|(seq, name, input, options)| {
            let activity_type = ActivityType::new(name).expect("a name");
            EventKind::ActivityTaskScheduled {
                seq,
                activity_type,
                input,
                options: Box::new(options),
            }
        }),
        (seq(), payload(), any::<u32>(), ".*", any::<u64>()).prop_map(
            |(seq, result, attempt, worker, at)| {
                let started_at = Timestamp(at);
                EventKind::ActivityTaskCompleted {
                    seq,
                    result,
                    attempt,
                    worker,
                    started_at,
                }
            }
        ),
        (seq(), failure(), any::<u32>(), ".*", retry_state()).prop_map(
            |(seq, failure, attempt, worker, retry_state)| {
                EventKind::ActivityTaskFailed {
                    seq,
                    failure,
                    attempt,
                    worker,
                    retry_state,
                }
            }
        ),
        (seq(), failure(), any::<u32>(), retry_state()).prop_map(
            |(seq, failure, attempt, retry_state)| {
                EventKind::ActivityTaskTimedOut {
                    seq,
                    failure,
                    attempt,
                    retry_state,
                }
            }
        ),
        seq().prop_map(|seq| EventKind::ActivityTaskCancelRequested { seq }),
        (seq(), failure())
            .prop_map(|(seq, failure)| EventKind::ActivityTaskCanceled { seq, failure }),
        (seq(), any::<[u64; 2]>()).prop_map(|(seq, ms)| {
            let (duration, fire_at) = (Millis(ms[0]), Timestamp(ms[1]));
            EventKind::TimerStarted {
                seq,
                duration,
                fire_at,
            }
        }),
        seq().prop_map(|seq| EventKind::TimerFired { seq }),
        seq().prop_map(|seq| EventKind::TimerCanceled { seq }),
        (update_id(), ".{1,9}", payload(), ".{0,9}").prop_map(
            |(update_id, name, input, identity)| {
                EventKind::WorkflowExecutionUpdateAccepted {
                    update_id,
                    name: UpdateName::new(name).expect("valid"),
                    input,
                    identity,
                }
            }
        ),
        (
            update_id(),
            any::<u64>(),
            payload(),
            proptest::option::of(failure())
        )
            .prop_map(|(update_id, accepted, result, failure)| {
                EventKind::WorkflowExecutionUpdateCompleted {
                    update_id,
                    accepted: EventNumber(accepted),
                    outcome: failure.map_or(Ok(result), Err).into(),
                }
            }),
    ]
}

fn update_id() -> impl Strategy<Value = UpdateId> {
    ".{1,9}".prop_map(|text| UpdateId::new(text).expect("valid"))
}

/// The event after a trip over the wire.
fn trip(event: &Event) -> Event {
    let text = serde_json::to_string(&wire::Event::from_model(event.clone())).expect("JSON");
    let read: wire::Event = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    read.to_model()
        .unwrap_or_else(|error| panic!("{error}: {text}"))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn events_read_back_equal(
        kind in prop_oneof![execution_event(), command_event(), child::event()],
        number in any::<u64>(),
        time in any::<u64>(),
    ) {
        let event = Event { number: EventNumber(number), time: Timestamp(time), kind };
        prop_assert_eq!(trip(&event), event);
    }

    #[test]
    fn payloads_read_back_equal(payload in payload()) {
        let text = serde_json::to_string(&wire::Payload::from_model(payload.clone())).expect("JSON");
        let read: wire::Payload = serde_json::from_str(&text).expect("a value");
        prop_assert_eq!(read.to_model(), Ok(payload));
    }
}

/// The property test draws every kind sooner or later; this says that none was forgotten.
#[test]
fn every_kind_of_event_is_drawn() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let strategy = prop_oneof![execution_event(), command_event(), child::event()];
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..1000 {
        let tree = strategy.new_tree(&mut runner).expect("a value");
        names.insert(tree.current().name());
    }
    assert_eq!(names.len(), 35, "{names:?}");
}

#[test]
fn json_stays_readable_and_the_rest_is_wrapped() {
    let cases = [
        (Payload::json("{\"n\":  1}"), "{\"n\":  1}"),
        (
            Payload::encoded("binary/plain", vec![0, 255]),
            "{\"$payload\":{\"encoding\":\"binary/plain\",\"data\":\"AP8=\"}}",
        ),
        (
            Payload::json("no json"),
            "{\"$payload\":{\"encoding\":\"json/plain\",\"data\":\"bm8ganNvbg==\"}}",
        ),
    ];
    for (payload, text) in cases {
        assert_eq!(wire::Payload::from_model(payload).get(), text);
    }
}

#[test]
fn a_missing_attribute_is_named() {
    let text = r#"{"number":1,"time":"2026-11-30T00:00:00Z","type":"TimerFired"}"#;
    let event: wire::Event = serde_json::from_str(text).expect("an event");
    assert_eq!(event.to_model().unwrap_err().to_string(), "seq: missing");
}
