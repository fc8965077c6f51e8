//! Queries and updates against the whole host, over fakes. The numbers in names are those of the
//! faults of other engines that a test guards against.
#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

use std::sync::Arc;
use std::time::Duration;

use steadfast_model::execution::Blocked;
use steadfast_model::{
    EventKind, EventNumber, Failure, Millis, Namespace, Payload, QueryName, SignalName, Status,
    UpdateId, UpdateName, WorkflowId, WorkflowType,
};
use steadfast_ports::fake::{ManualClock, MemStore, Op, ScriptedGuests, SeededEntropy};
use steadfast_ports::{Clock, Entropy, Guests, Store};
use steadfast_runtime::asking::{
    ABANDONED, METADATA_QUERY, QueryAnswer, RejectCondition, SendUpdate, UpdateStage, UpdateStatus,
    WaitFor,
};
use steadfast_runtime::handle::{Caller, StartOptions, StartWorkflow, Target};
use steadfast_runtime::{Error, Handle, Options, World, start};

const WAIT: Duration = Duration::from_secs(30);

struct Fixture {
    store: Arc<MemStore>,
    guests: Arc<ScriptedGuests>,
    clock: Arc<ManualClock>,
}

impl Fixture {
    fn new(script: Vec<Op>) -> Self {
        let guests = Arc::new(ScriptedGuests::new());
        guests.bind(b"component", "w", script);
        let now = steadfast_model::Timestamp(1_700_000_000_000);
        Self {
            store: Arc::new(MemStore::new()),
            guests,
            clock: Arc::new(ManualClock::new(now)),
        }
    }

    fn host(&self, cache_bytes: usize) -> Handle {
        let (store, guests): (Arc<dyn Store>, Arc<dyn Guests>) =
            (self.store.clone(), self.guests.clone());
        let clock: Arc<dyn Clock> = self.clock.clone();
        let entropy: Arc<dyn Entropy> = Arc::new(SeededEntropy::new(7));
        let options = Options {
            cache_bytes,
            ..Options::default()
        };
        let world = World {
            store,
            guests,
            clock,
            entropy,
        };
        start(options, world).expect("a host")
    }

    /// A host with one run of the script.
    async fn begun(&self) -> Handle {
        let handle = self.host(256 * 1024 * 1024);
        let uploaded = handle.upload(b"component".to_vec()).await;
        uploaded.expect("uploaded");
        handle.start(workflow("a")).await.expect("started");
        handle
    }
}

fn workflow(id: &str) -> StartWorkflow {
    StartWorkflow {
        namespace: Namespace::new("default").expect("a name"),
        workflow_id: Some(WorkflowId::new(id).expect("a name")),
        workflow_type: WorkflowType::new("w").expect("a name"),
        task_queue: None,
        input: Payload::json("null"),
        request_id: None,
        identity: String::new(),
        options: StartOptions::default(),
    }
}

fn target(id: &str) -> Target {
    Target {
        namespace: Namespace::new("default").expect("a name"),
        workflow_id: WorkflowId::new(id).expect("a name"),
        run_id: None,
    }
}

fn send(id: &str, name: &str, input: &str) -> SendUpdate {
    SendUpdate {
        name: UpdateName::new(name).expect("a name"),
        input: Payload::json(input),
        update_id: Some(UpdateId::new(id).expect("a name")),
        wait_for: WaitFor::Completed,
        wait: WAIT,
        identity: String::new(),
    }
}

async fn update(handle: &Handle, id: &str, name: &str, input: &str) -> UpdateStage {
    let status = handle.update(&target("a"), send(id, name, input)).await;
    status.expect("an answer").stage
}

async fn query(handle: &Handle, name: &str) -> Result<QueryAnswer, Error> {
    let name = QueryName::new(name).expect("a name");
    handle
        .query(
            &target("a"),
            name,
            Payload::json("null"),
            RejectCondition::None,
        )
        .await
}

async fn observed(handle: &Handle) -> String {
    let answer = query(handle, "observed").await.expect("an answer");
    String::from_utf8(answer.result.data).expect("text")
}

async fn signal(handle: &Handle, text: &str) {
    let name = SignalName::new("go").expect("a name");
    let input = Payload::json(text);
    let sent = handle
        .signal(&target("a"), name, input, Caller::default())
        .await;
    sent.expect("sent");
}

async fn kinds(handle: &Handle) -> Vec<&'static str> {
    let page = handle
        .history(&target("a"), EventNumber(1), 1000, None)
        .await;
    let events = page.expect("a history").events;
    events.iter().map(|event| event.kind.name()).collect()
}

async fn ended(handle: &Handle) -> Status {
    let close = handle.result(&target("a"), WAIT).await;
    close.expect("a result").expect("it ended");
    handle.record(&target("a")).expect("a record").status
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_is_validated_handled_and_answered() {
    let fixture = Fixture::new(vec![Op::WaitSignal("go".to_owned()), Op::Complete]);
    let handle = fixture.begun().await;
    let answer = update(&handle, "u1", "echo", "[1]").await;
    assert_eq!(answer, UpdateStage::Completed(Ok(Payload::json("[1]"))));
    let UpdateStage::Completed(Err(failure)) = update(&handle, "u2", "fail", "[2]").await else {
        panic!("a failure");
    };
    assert_eq!(failure.outer().expect("a frame").code, "refused");
    signal(&handle, "1").await;
    assert_eq!(ended(&handle).await, Status::Completed);
    // Outcomes stay readable.
    let id = UpdateId::new("u1").expect("a name");
    let status = handle
        .update_status(&target("a"), &id, WaitFor::Completed, Duration::ZERO)
        .await
        .expect("known");
    assert_eq!(status.stage, answer_of("[1]"));
    let expected = [
        "WorkflowExecutionStarted",
        "WorkflowExecutionUpdateAccepted",
        "WorkflowExecutionUpdateCompleted",
        "WorkflowExecutionUpdateAccepted",
        "WorkflowExecutionUpdateCompleted",
        "WorkflowExecutionSignaled",
        "WorkflowExecutionCompleted",
    ];
    assert_eq!(kinds(&handle).await, expected);
}

fn answer_of(text: &str) -> UpdateStage {
    UpdateStage::Completed(Ok(Payload::json(text)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_update_leaves_no_trace() {
    let fixture = Fixture::new(vec![Op::WaitSignal("go".to_owned()), Op::Complete]);
    let handle = fixture.begun().await;
    let cases = [
        ("echo", "\"bad\"", "bad", "the input is bad"),
        (
            "nobody",
            "1",
            "unknown-update",
            "known: echo, fail, work, never",
        ),
        ("echo", "\"trap\"", "trap", "the validator trapped"),
        (
            "echo",
            "\"command\"",
            "invalid-call",
            "called timers.start; it may only read",
        ),
    ];
    for (name, input, code, text) in cases {
        let UpdateStage::Refused(failure) = update(&handle, "u", name, input).await else {
            panic!("{input} was not refused");
        };
        assert_eq!(failure.outer().expect("a frame").code, code);
        assert!(failure.to_string().contains(text), "{failure}");
    }
    assert_eq!(kinds(&handle).await, ["WorkflowExecutionStarted"]);
    let id = UpdateId::new("u").expect("a name");
    let unknown = handle
        .update_status(&target("a"), &id, WaitFor::Completed, Duration::ZERO)
        .await;
    assert!(matches!(
        unknown,
        Err(Error::NotFound { what: "update", .. })
    ));
    // The id is free, and the instance that saw all that is not the one that goes on.
    assert_eq!(update(&handle, "u", "echo", "1").await, answer_of("1"));
    signal(&handle, "2").await;
    assert_eq!(ended(&handle).await, Status::Completed);
    assert!(
        handle
            .record(&target("a"))
            .expect("a record")
            .blocked
            .is_none()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_update_id_is_one_update_for_many_callers() {
    let fixture = Fixture::new(vec![Op::WaitUpdates(1), Op::WaitSignal("go".to_owned())]);
    let handle = fixture.begun().await;
    let callers = (0..50).map(|_| update(&handle, "same", "echo", "[7]"));
    for stage in futures_util::future::join_all(callers).await {
        assert_eq!(stage, answer_of("[7]"));
    }
    let accepted = kinds(&handle).await;
    let accepted = accepted
        .iter()
        .filter(|kind| kind.ends_with("UpdateAccepted"));
    assert_eq!(accepted.count(), 1);
}

/// The handler has accepted, and the workflow returns in the same activation: whoever waits, for
/// whatever, gets the same documented failure.
#[tokio::test(flavor = "multi_thread")]
async fn scenario_42_accepted_and_completed_in_one_activation_is_one_outcome() {
    for round in 0..20 {
        let fixture = Fixture::new(vec![Op::WaitUpdates(1), Op::Complete]);
        let handle = fixture.begun().await;
        let waiters = (0..50).map(|i| {
            let wait_for = [WaitFor::Accepted, WaitFor::Completed][i % 2];
            let update = SendUpdate {
                wait_for,
                ..send("u", "never", "1")
            };
            let handle = handle.clone();
            async move { handle.update(&target("a"), update).await }
        });
        for answer in futures_util::future::join_all(waiters).await {
            let stage = answer.expect("an answer").stage;
            let UpdateStage::Completed(Err(failure)) = stage else {
                panic!("round {round}: {stage:?}");
            };
            assert_eq!(failure.outer().expect("a frame").code, ABANDONED);
        }
        assert_eq!(ended(&handle).await, Status::Completed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stages_are_told_apart_and_the_end_of_the_run_is_one_answer() {
    let fixture = Fixture::new(vec![Op::WaitSignal("go".to_owned()), Op::Complete]);
    let handle = fixture.begun().await;
    let accepted = SendUpdate {
        wait_for: WaitFor::Accepted,
        ..send("u", "never", "1")
    };
    let status = handle.update(&target("a"), accepted).await.expect("sent");
    assert_eq!(status.stage, UpdateStage::Accepted);
    let short = SendUpdate {
        wait: Duration::from_millis(20),
        ..send("u", "never", "1")
    };
    let status = handle.update(&target("a"), short).await.expect("sent");
    assert_eq!(status.stage, UpdateStage::Accepted);
    let description = handle.describe(&target("a")).await.expect("described");
    let pending = &description.updates;
    assert_eq!((pending.len(), pending[0].is_accepted), (1, true));
    let waiter = tokio::spawn({
        let handle = handle.clone();
        async move { update(&handle, "u", "never", "1").await }
    });
    signal(&handle, "1").await;
    let UpdateStage::Completed(Err(failure)) = waiter.await.expect("joined") else {
        panic!("a failure");
    };
    assert_eq!(failure.outer().expect("a frame").code, ABANDONED);
    let late = handle.update(&target("a"), send("late", "echo", "1")).await;
    assert!(matches!(late, Err(Error::Closed { .. })), "{late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_and_signals_at_once_are_all_there_in_one_order() {
    let count = 100;
    let mut script = vec![Op::WaitSignal("go".to_owned()); count];
    script.extend([Op::WaitUpdates(count), Op::Complete]);
    let fixture = Fixture::new(script);
    let handle = fixture.begun().await;
    let signals = async {
        let all = (0..count).map(|i| signal(&handle, Box::leak(format!("{i}").into_boxed_str())));
        futures_util::future::join_all(all).await
    };
    let updates = async {
        for i in 0..count {
            let (id, input) = (format!("u{i}"), format!("{i}"));
            assert_eq!(
                update(&handle, &id, "echo", &input).await,
                answer_of(&input)
            );
        }
    };
    tokio::join!(signals, updates);
    assert_eq!(ended(&handle).await, Status::Completed);
    let record = handle.record(&target("a")).expect("a record");
    assert!(record.blocked.is_none(), "{record:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admitted_update_of_a_blocked_run_survives_a_crash() {
    let fixture = Fixture::new(vec![Op::Trap("not yet".to_owned())]);
    let handle = fixture.begun().await;
    blocked(&handle).await;
    let short = SendUpdate {
        wait: Duration::from_millis(50),
        ..send("u", "echo", "1")
    };
    let status = handle.update(&target("a"), short).await.expect("sent");
    assert_eq!(status.stage, UpdateStage::Admitted);
    let description = handle.describe(&target("a")).await.expect("described");
    assert!(!description.updates[0].is_accepted);
    drop(handle);
    // Another process finds the row; the code has been repaired.
    let repaired = Fixture {
        store: Arc::new(fixture.store.crash()),
        guests: Arc::new(ScriptedGuests::new()),
        clock: fixture.clock.clone(),
    };
    let script = vec![Op::WaitUpdates(1), Op::WaitSignal("go".to_owned())];
    repaired.guests.bind(b"component", "w", script);
    let handle = repaired.host(256 * 1024 * 1024);
    handle.unblock(&target("a")).await.expect("unblocked");
    let id = UpdateId::new("u").expect("a name");
    let status = handle
        .update_status(&target("a"), &id, WaitFor::Completed, WAIT)
        .await
        .expect("known");
    assert_eq!(status.stage, answer_of("1"));
    assert!(
        repaired
            .store
            .updates(status.run_id.key())
            .expect("readable")
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_that_a_run_has_not_let_in_moves_to_the_next_run() {
    let fixture = Fixture::new(vec![Op::Trap("not yet".to_owned())]);
    let handle = fixture.host(256 * 1024 * 1024);
    let uploaded = handle.upload(b"component".to_vec()).await;
    uploaded.expect("uploaded");
    let first = StartWorkflow {
        input: Payload::json("1"),
        ..workflow("a")
    };
    let first = handle.start(first).await.expect("started").run_id;
    blocked(&handle).await;
    let short = SendUpdate {
        wait: Duration::from_millis(20),
        ..send("kept", "echo", "1")
    };
    let status = handle.update(&target("a"), short).await.expect("sent");
    assert_eq!(status.stage, UpdateStage::Admitted);
    drop(handle);
    // The repaired code ends its first run before it is asked about any update.
    let repaired = Fixture {
        store: Arc::new(fixture.store.crash()),
        guests: Arc::new(ScriptedGuests::new()),
        clock: fixture.clock.clone(),
    };
    let script = vec![
        Op::ContinueAsNew,
        Op::WaitUpdates(2),
        Op::WaitSignal("go".to_owned()),
    ];
    repaired.guests.bind(b"component", "w", script);
    let handle = repaired.host(256 * 1024 * 1024);
    let followed = tokio::spawn({
        let handle = handle.clone();
        let of_first = Target {
            run_id: Some(first),
            ..target("a")
        };
        // Also whoever named the first run is told how it ends in the second.
        async move { handle.update(&of_first, send("new", "echo", "2")).await }
    });
    while handle
        .describe(&target("a"))
        .await
        .is_ok_and(|run| run.updates.len() < 2)
    {
        tokio::task::yield_now().await;
    }
    handle.unblock(&target("a")).await.expect("unblocked");
    let idle = steadfast_model::limits::IDLE_RUN_LIFE_MIN;
    while handle.record(&target("a")).expect("a record").run_id == first {
        tokio::task::yield_now().await;
    }
    repaired.clock.advance(idle);
    let status = followed.await.expect("joined").expect("known");
    assert_ne!(status.run_id, first);
    assert_eq!(status.stage, answer_of("2"));
    let id = UpdateId::new("kept").expect("a name");
    let status = handle
        .update_status(&target("a"), &id, WaitFor::Completed, WAIT)
        .await
        .expect("known");
    assert_eq!(status.stage, answer_of("1"));
    for run in [first, status.run_id] {
        let left = repaired.store.updates(run.key()).expect("readable");
        assert!(left.is_empty(), "{left:?}");
    }
}

async fn blocked(handle: &Handle) {
    let wait = async {
        while why_blocked(handle).await.is_none() {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(WAIT, wait).await;
    waited.expect("the run is not blocked");
}

async fn why_blocked(handle: &Handle) -> Option<Blocked> {
    let description = handle.describe(&target("a")).await.expect("described");
    description.record.blocked
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_starts_its_workflow_in_one_step() {
    let fixture = Fixture::new(vec![
        Op::WaitUpdates(1),
        Op::WaitHandlers,
        Op::WaitSignal("go".to_owned()),
    ]);
    let handle = fixture.host(256 * 1024 * 1024);
    handle
        .upload(b"component".to_vec())
        .await
        .expect("uploaded");
    let both = handle
        .update_with_start(workflow("a"), send("u", "echo", "1"), true)
        .await;
    let (started, status): (_, UpdateStatus) = both.expect("started");
    assert!(started.is_new);
    assert_eq!(status.stage, answer_of("1"));
    // Once more with the same id joins the run and finds the answer.
    let (again, status) = handle
        .update_with_start(workflow("a"), send("u", "echo", "1"), true)
        .await
        .expect("joined");
    assert_eq!((again.is_new, again.run_id), (false, started.run_id));
    assert_eq!(status.stage, answer_of("1"));
    let refused = handle
        .update_with_start(workflow("a"), send("v", "echo", "1"), false)
        .await;
    assert!(matches!(refused, Err(Error::AlreadyStarted { .. })));
    let expected = [
        "WorkflowExecutionStarted",
        "WorkflowExecutionUpdateAccepted",
        "WorkflowExecutionUpdateCompleted",
    ];
    assert_eq!(kinds(&handle).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limit_of_updates_in_flight_is_told() {
    let fixture = Fixture::new(vec![Op::WaitSignal("go".to_owned())]);
    let handle = fixture.begun().await;
    for i in 0..10 {
        let update = SendUpdate {
            wait_for: WaitFor::Accepted,
            ..send(&format!("u{i}"), "never", "1")
        };
        handle.update(&target("a"), update).await.expect("accepted");
    }
    let refused = handle.update(&target("a"), send("more", "echo", "1")).await;
    let Err(error @ Error::LimitReached(_)) = refused else {
        panic!("{refused:?}");
    };
    assert!(
        error.to_string().contains("10 updates in flight"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_sees_everything_acknowledged_before() {
    let mut script = vec![Op::WaitSignal("go".to_owned()); 20];
    script.push(Op::Complete);
    let fixture = Fixture::new(script);
    let handle = fixture.begun().await;
    for i in 0..20 {
        signal(&handle, &i.to_string()).await;
        let seen = observed(&handle).await;
        assert!(
            seen.ends_with(&format!("\"{i}\"]")),
            "after signal {i}: {seen}"
        );
    }
    assert_eq!(ended(&handle).await, Status::Completed);
    let answer = query(&handle, "observed")
        .await
        .expect("closed runs answer");
    assert_eq!(answer.status, Status::Completed);
    assert!(
        kinds(&handle).await.len() == 22,
        "queries are not in the history"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_that_have_no_answer_say_why() {
    let fixture = Fixture::new(vec![Op::WaitSignal("go".to_owned())]);
    let handle = fixture.begun().await;
    let cases = [
        (
            "nobody",
            "unknown-query",
            "known: observed, now, command, trap",
        ),
        (
            "command",
            "query-invalid-call",
            "the query \"command\" called timers.start",
        ),
        ("trap", "query-trap", "the query trapped"),
    ];
    for (name, code, text) in cases {
        let Err(Error::QueryFailed(failure)) = query(&handle, name).await else {
            panic!("{name} has an answer");
        };
        let failure: Failure = failure;
        assert_eq!(failure.outer().expect("a frame").code, code);
        assert!(failure.to_string().contains(text), "{failure}");
    }
    assert_eq!(kinds(&handle).await, ["WorkflowExecutionStarted"]);
    assert_eq!(observed(&handle).await, "[\"null\"]");
    let metadata = query(&handle, METADATA_QUERY).await.expect("answered");
    let metadata = String::from_utf8(metadata.result.data).expect("text");
    for known in [
        "\"name\":\"w\"",
        "{\"name\":\"observed\"}",
        "{\"name\":\"echo\"}",
    ] {
        assert!(metadata.contains(known), "{metadata}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_reject_queries_by_status() {
    let fixture = Fixture::new(vec![
        Op::WaitSignal("go".to_owned()),
        Op::Fail("no".to_owned()),
    ]);
    let handle = fixture.begun().await;
    let ask = |condition| {
        let name = QueryName::new("observed").expect("a name");
        let handle = handle.clone();
        async move {
            handle
                .query(&target("a"), name, Payload::json("null"), condition)
                .await
        }
    };
    assert!(ask(RejectCondition::NotOpen).await.is_ok());
    signal(&handle, "1").await;
    assert_eq!(ended(&handle).await, Status::Failed);
    assert!(ask(RejectCondition::None).await.is_ok());
    for condition in [
        RejectCondition::NotOpen,
        RejectCondition::NotCompletedCleanly,
    ] {
        let rejected = ask(condition).await;
        let expected = Error::QueryRejected { status: "failed" };
        assert_eq!(rejected.expect_err("rejected"), expected);
    }
}

/// Queries go to copies that replay up to a fixed event, while events pour in and instances are
/// dropped all the time: no failure, and never an older answer after a newer one.
#[tokio::test(flavor = "multi_thread")]
async fn scenario_43_queries_during_a_storm_of_events_are_monotonic() {
    let count = 300_usize;
    let mut script = vec![Op::WaitSignal("go".to_owned()); count];
    script.push(Op::Complete);
    let fixture = Fixture::new(script);
    drop(fixture.begun().await);
    // No instance stays in memory.
    let handle = fixture.host(1);
    let storm = tokio::spawn({
        let handle = handle.clone();
        async move {
            for i in 0..count {
                signal(&handle, &i.to_string()).await;
            }
        }
    });
    let (mut last, mut asked) = ((0, 0), 0);
    while !storm.is_finished() {
        let answer = query(&handle, "observed").await.expect("an answer");
        let seen = (answer.event.0, answer.result.data.len());
        assert!(seen >= last && seen.1 >= last.1, "{seen:?} after {last:?}");
        last = seen;
        asked += 1;
    }
    storm.await.expect("sent");
    assert!(asked > 0);
    assert_eq!(ended(&handle).await, Status::Completed);
    let record = handle.record(&target("a")).expect("a record");
    assert!(record.blocked.is_none());
}

/// A run whose code traps at every try: queries answer as of the last good state and change
/// neither the count of attempts nor the time of the next one.
#[tokio::test(flavor = "multi_thread")]
async fn scenario_44_queries_of_a_failing_run_never_change_its_retries() {
    let fixture = Fixture::new(vec![
        Op::WaitSignal("go".to_owned()),
        Op::WaitSignal("go".to_owned()),
        Op::Trap("always".to_owned()),
    ]);
    let handle = fixture.begun().await;
    signal(&handle, "1").await;
    signal(&handle, "2").await;
    blocked(&handle).await;
    let before = why_blocked(&handle).await;
    for _ in 0..20 {
        let answer = query(&handle, "observed").await.expect("an answer");
        let text = String::from_utf8(answer.result.data).expect("text");
        assert_eq!(
            (text.as_str(), answer.event),
            ("[\"null\",\"1\"]", EventNumber(2))
        );
    }
    let after = why_blocked(&handle).await;
    assert_eq!(before, after);
    // The next try comes when it was due, and not before.
    fixture.clock.advance(Millis(1_000));
    let tried = async {
        loop {
            drop(query(&handle, "observed").await);
            let blocked = why_blocked(&handle).await;
            if blocked.is_some_and(|blocked| blocked.attempts == 2) {
                break;
            }
        }
    };
    let waited = tokio::time::timeout(WAIT, tried).await;
    waited.expect("the run was not tried again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_fails_from_the_start_says_so() {
    let fixture = Fixture::new(vec![Op::Trap("at once".to_owned())]);
    let handle = fixture.begun().await;
    blocked(&handle).await;
    let failed = query(&handle, "observed").await;
    let Err(Error::QueryFailed(failure)) = failed else {
        panic!("{failed:?}");
    };
    assert!(failure.to_string().contains("at once"), "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminated_run_still_answers() {
    let fixture = Fixture::new(vec![Op::WaitSignal("go".to_owned())]);
    let handle = fixture.begun().await;
    let accepted = SendUpdate {
        wait_for: WaitFor::Accepted,
        ..send("u", "never", "7")
    };
    handle
        .update(&target("a"), accepted)
        .await
        .expect("accepted");
    let ended = handle
        .terminate(&target("a"), String::new(), String::new())
        .await;
    ended.expect("terminated");
    assert_eq!(observed(&handle).await, "[\"null\",\"update:never:7\"]");
    let page = handle.history(&target("a"), EventNumber(1), 10, None).await;
    let last = page.expect("a history").events.pop().expect("events");
    assert!(matches!(
        last.kind,
        EventKind::WorkflowExecutionTerminated { .. }
    ));
}
