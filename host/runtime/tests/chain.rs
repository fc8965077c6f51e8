//! Chains of runs, with real threads over fakes: continue-as-new, retries, cron, timeouts, and
//! what becomes of a workflow id that is in use.
#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

use std::sync::Arc;
use std::time::Duration;

use steadfast_model::{
    Event, EventKind, IdReusePolicy, Millis, Namespace, Payload, RequestId, RetryPolicy, RunId,
    SignalName, Status, Timestamp, WorkflowId, WorkflowType,
};
use steadfast_ports::fake::{ManualClock, MemStore, Op, ScriptedGuests, SeededEntropy};
use steadfast_ports::store::ListQuery;
use steadfast_ports::{Clock, Entropy, Guests, Store};
use steadfast_runtime::handle::{Caller, ConflictPolicy, StartOptions, StartWorkflow, Target};
use steadfast_runtime::{Error, Handle, Options, World, start};

const WAIT: Duration = Duration::from_secs(30);

/// 2026-03-01T00:00:10Z.
const NOW: u64 = 1_772_323_210_000;

struct Fixture {
    clock: Arc<ManualClock>,
    handle: Handle,
}

async fn fixture(scripts: &[(&str, Vec<Op>)]) -> Fixture {
    let guests = Arc::new(ScriptedGuests::new());
    for (name, script) in scripts {
        guests.bind(b"component", name, script.clone());
    }
    let clock = Arc::new(ManualClock::new(Timestamp(NOW)));
    let (store, guests): (Arc<dyn Store>, Arc<dyn Guests>) = (Arc::new(MemStore::new()), guests);
    let (as_clock, entropy): (Arc<dyn Clock>, Arc<dyn Entropy>) =
        (clock.clone(), Arc::new(SeededEntropy::new(7)));
    let world = World {
        store,
        guests,
        clock: as_clock,
        entropy,
    };
    let options = Options {
        shards: 2,
        ..Options::default()
    };
    let handle = start(options, world).expect("a host");
    let uploaded = handle.upload(b"component".to_vec()).await;
    uploaded.expect("uploaded");
    Fixture { clock, handle }
}

fn workflow(name: &str, input: &str, options: StartOptions) -> StartWorkflow {
    StartWorkflow {
        namespace: Namespace::new("default").expect("a name"),
        workflow_id: Some(WorkflowId::new("id").expect("a name")),
        workflow_type: WorkflowType::new(name).expect("a name"),
        task_queue: None,
        input: Payload::json(input),
        request_id: None,
        identity: String::new(),
        options,
    }
}

fn target(run_id: Option<RunId>) -> Target {
    Target {
        namespace: Namespace::new("default").expect("a name"),
        workflow_id: WorkflowId::new("id").expect("a name"),
        run_id,
    }
}

fn go() -> SignalName {
    SignalName::new("go").expect("a name")
}

async fn signal(handle: &Handle, id: &str) -> Result<(), Error> {
    let caller = Caller {
        identity: String::new(),
        request_id: Some(RequestId::new(id).expect("a name")),
    };
    let input = Payload::json(format!("\"{id}\""));
    handle.signal(&target(None), go(), input, caller).await
}

async fn end(handle: &Handle) -> EventKind {
    let close = handle.result(&target(None), WAIT).await.expect("a result");
    close.expect("it ended").kind
}

/// The runs of the workflow id, oldest first, with their histories.
async fn runs(handle: &Handle) -> Vec<Vec<Event>> {
    let query = ListQuery {
        namespace: Namespace::new("default").expect("a name"),
        status: None,
        workflow_type: None,
        workflow_id: None,
        blocked: false,
        before: None,
        limit: 1000,
    };
    let mut runs = Vec::new();
    for record in handle.list(query).await.expect("a list").into_iter().rev() {
        let target = target(Some(record.run_id));
        let page = handle
            .history(&target, steadfast_model::EventNumber(1), 1000, None)
            .await;
        runs.push(page.expect("a history").events);
    }
    runs
}

fn signals(history: &[Event]) -> Vec<String> {
    let ids = history.iter().filter_map(|event| match &event.kind {
        EventKind::WorkflowExecutionSignaled { request_id, .. } => Some(request_id.to_string()),
        _ => None,
    });
    ids.collect()
}

/// Waits until a look at the executions says so; the clock stands still meanwhile.
async fn until(handle: &Handle, is_so: impl Fn(Status, RunId) -> bool) {
    for _ in 0..3000 {
        let record = handle.record(&target(None)).expect("a record");
        if is_so(record.status, record.run_id) {
            return;
        }
        tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(5)))
            .await
            .expect("slept");
    }
    panic!("it never came");
}

/// Every run takes one signal; the last one ends. All clients send by workflow id only.
#[tokio::test(flavor = "multi_thread")]
async fn scenario_001_signals_by_workflow_id_reach_the_chain_exactly_once() {
    let script = vec![
        Op::WaitSignal("go".to_owned()),
        Op::ContinueAsNew,
        Op::Complete,
    ];
    let fixture = fixture(&[("w", script)]).await;
    let handle = &fixture.handle;
    let count = 200_usize;
    let begin = workflow("w", &(count - 1).to_string(), StartOptions::default());
    let first = handle.start(begin).await.expect("started");
    let mut tasks = Vec::new();
    for client in 0..4 {
        let handle = handle.clone();
        tasks.push(tokio::spawn(async move {
            for i in (client..count).step_by(4) {
                let id = format!("s{i}");
                signal(&handle, &id).await.expect("no signal is refused");
                // The same again is the same signal, wherever the chain has gone.
                if i % 10 == 0 && i + 100 < count {
                    signal(&handle, &id).await.expect("no signal is refused");
                }
            }
        }));
    }
    for task in tasks {
        task.await.expect("a client");
    }
    assert!(matches!(
        end(handle).await,
        EventKind::WorkflowExecutionCompleted { .. }
    ));
    let runs = runs(handle).await;
    assert_eq!(runs.len(), count, "a run for each signal");
    // A signal counts where it was taken: it is not handed on from there.
    let mut taken = Vec::new();
    for pair in runs.windows(2) {
        let carried = signals(&pair[1]);
        let own = signals(&pair[0]);
        taken.extend(own.into_iter().filter(|id| !carried.contains(id)));
    }
    taken.extend(signals(runs.last().expect("a run")));
    taken.sort();
    let mut sent: Vec<String> = (0..count).map(|i| format!("s{i}")).collect();
    sent.sort();
    assert_eq!(taken, sent);
    let EventKind::WorkflowExecutionStarted { started } = &runs[count - 1][0].kind else {
        panic!("no start")
    };
    assert_eq!(started.link.first_run_id, Some(first.run_id));
}

#[tokio::test(flavor = "multi_thread")]
async fn scenario_007_all_signals_sent_at_once_are_counted() {
    let script = vec![
        Op::WaitSignal("go".to_owned()),
        Op::Sleep(0),
        Op::ContinueAsNew,
        Op::Complete,
    ];
    let fixture = fixture(&[("w", script)]).await;
    let begin = workflow("w", "99", StartOptions::default());
    fixture.handle.start(begin).await.expect("started");
    for i in 0..100 {
        signal(&fixture.handle, &format!("s{i}"))
            .await
            .expect("no signal is refused");
    }
    let close = end(&fixture.handle).await;
    assert!(matches!(
        close,
        EventKind::WorkflowExecutionCompleted { .. }
    ));
    assert_eq!(runs(&fixture.handle).await.len(), 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_told_nothing_waits_before_it_goes_on_again() {
    let fixture = fixture(&[("w", vec![Op::ContinueAsNew, Op::Complete])]).await;
    let handle = &fixture.handle;
    let first = handle.start(workflow("w", "1", StartOptions::default()));
    let first = first.await.expect("started").run_id;
    until(handle, |_, run_id| run_id != first).await;
    let record = handle.record(&target(None)).expect("a record");
    assert_eq!(record.delayed_until, Some(Timestamp(NOW + 1000)));
    assert_eq!(record.status, Status::Running);
    fixture.clock.advance(Millis(1000));
    assert!(matches!(
        end(handle).await,
        EventKind::WorkflowExecutionCompleted { .. }
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_run_is_tried_again_by_its_policy() {
    let fixture = fixture(&[("w", vec![Op::Fail("boom".to_owned())])]).await;
    let mut options = StartOptions::default();
    options.chain.retry = Some(RetryPolicy {
        initial_interval: Millis(1000),
        maximum_attempts: 3,
        ..RetryPolicy::default()
    });
    let handle = &fixture.handle;
    let mut run = handle
        .start(workflow("w", "1", options))
        .await
        .expect("started")
        .run_id;
    for wait in [1000, 2000] {
        until(handle, |_, run_id| run_id != run).await;
        run = handle.record(&target(None)).expect("a record").run_id;
        fixture.clock.advance(Millis(wait));
    }
    let EventKind::WorkflowExecutionFailed { retry_state, .. } = end(handle).await else {
        panic!("it did not fail")
    };
    assert_eq!(
        retry_state,
        Some(steadfast_model::RetryState::MaximumAttemptsReached)
    );
    let attempts: Vec<u32> = runs(handle)
        .await
        .iter()
        .map(|history| match &history[0].kind {
            EventKind::WorkflowExecutionStarted { started } => started.attempt,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(attempts, [1, 2, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cron_run_begins_with_its_tick_and_is_followed_by_the_next() {
    let fixture = fixture(&[("w", vec![Op::Complete])]).await;
    let mut options = StartOptions::default();
    "* * * * *".clone_into(&mut options.chain.cron);
    let handle = &fixture.handle;
    let first = handle
        .start(workflow("w", "1", options))
        .await
        .expect("started");
    let record = handle.record(&target(None)).expect("a record");
    assert_eq!(record.delayed_until, Some(Timestamp(NOW + 50_000)));
    fixture.clock.advance(Millis(50_000));
    until(handle, |_, run_id| run_id != first.run_id).await;
    let record = handle.record(&target(None)).expect("a record");
    assert_eq!(record.delayed_until, Some(Timestamp(NOW + 110_000)));
    let runs = runs(handle).await;
    let EventKind::WorkflowExecutionStarted { started } = &runs[1][0].kind else {
        panic!("no start")
    };
    assert!(started.link.last_completion_result.is_some());
    let terminated = handle
        .terminate(&target(None), "enough".to_owned(), String::new())
        .await;
    terminated.expect("terminated");
    assert!(matches!(
        end(handle).await,
        EventKind::WorkflowExecutionTerminated { .. }
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_time_kill_a_run() {
    let fixture = fixture(&[("w", vec![Op::WaitSignal("go".to_owned())])]).await;
    let mut options = StartOptions::default();
    options.chain.run_timeout = Some(Millis(5000));
    let handle = &fixture.handle;
    handle
        .start(workflow("w", "1", options))
        .await
        .expect("started");
    fixture.clock.advance(Millis(5000));
    assert!(matches!(
        end(handle).await,
        EventKind::WorkflowExecutionTimedOut { .. }
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_a_start_delay_and_comes_first() {
    let fixture = fixture(&[("w", vec![Op::WaitSignal("go".to_owned()), Op::Complete])]).await;
    let handle = &fixture.handle;
    let options = StartOptions {
        delay: Millis(3_600_000),
        ..StartOptions::default()
    };
    handle
        .start(workflow("w", "1", options))
        .await
        .expect("started");
    signal(handle, "early").await.expect("recorded");
    assert!(matches!(
        end(handle).await,
        EventKind::WorkflowExecutionCompleted { .. }
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn signal_with_start_starts_once_and_signals_afterwards() {
    let script = vec![
        Op::WaitSignal("go".to_owned()),
        Op::WaitSignal("go".to_owned()),
        Op::Complete,
    ];
    let fixture = fixture(&[("w", script)]).await;
    let handle = &fixture.handle;
    let mut answers = Vec::new();
    for input in ["1", "2"] {
        let begin = workflow("w", "0", StartOptions::default());
        let answer = handle.signal_with_start(begin, go(), Payload::json(input));
        answers.push(answer.await.expect("done"));
    }
    assert_eq!([answers[0].is_new, answers[1].is_new], [true, false]);
    assert_eq!(answers[0].run_id, answers[1].run_id);
    let EventKind::WorkflowExecutionCompleted { result, .. } = end(handle).await else {
        panic!("it did not complete")
    };
    assert_eq!(result.data, br#"["0","1","2"]"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_decide_about_a_workflow_id_in_use() {
    let waits = vec![Op::WaitSignal("go".to_owned()), Op::Complete];
    let fixture = fixture(&[("waits", waits), ("w", vec![Op::Complete])]).await;
    let handle = &fixture.handle;
    let with = |conflict, reuse| StartOptions {
        conflict,
        reuse,
        ..StartOptions::default()
    };
    let allow = IdReusePolicy::AllowDuplicate;
    let first = handle.start(workflow("waits", "1", StartOptions::default()));
    let first = first.await.expect("started");
    let failed = handle
        .start(workflow("w", "1", with(ConflictPolicy::Fail, allow)))
        .await;
    assert!(matches!(failed, Err(Error::AlreadyStarted { run_id }) if run_id == first.run_id));
    let used = with(ConflictPolicy::UseExisting, allow);
    let used = handle.start(workflow("w", "1", used)).await.expect("used");
    assert_eq!((used.run_id, used.is_new), (first.run_id, false));
    let replaced = with(ConflictPolicy::TerminateExisting, allow);
    let replaced = handle
        .start(workflow("w", "1", replaced))
        .await
        .expect("started");
    assert!(replaced.is_new);
    let record = handle
        .record(&target(Some(first.run_id)))
        .expect("a record");
    assert_eq!(record.status, Status::Terminated);
    assert!(matches!(
        end(handle).await,
        EventKind::WorkflowExecutionCompleted { .. }
    ));
    for reuse in [
        IdReusePolicy::RejectDuplicate,
        IdReusePolicy::AllowDuplicateFailedOnly,
    ] {
        let refused = handle
            .start(workflow("w", "1", with(ConflictPolicy::Fail, reuse)))
            .await;
        assert!(matches!(refused, Err(Error::IdUsed { .. })), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scenario_040_no_run_follows_a_success_that_was_to_be_replaced() {
    let waits = vec![Op::WaitSignal("go".to_owned()), Op::Complete];
    let fixture = fixture(&[("w", waits)]).await;
    let handle = &fixture.handle;
    let mut lost = 0;
    for round in 0..300 {
        let id = Some(WorkflowId::new(format!("id-{round}")).expect("a name"));
        let begin = |options| StartWorkflow {
            workflow_id: id.clone(),
            ..workflow("w", "1", options)
        };
        let first = handle
            .start(begin(StartOptions::default()))
            .await
            .expect("started");
        let of = |run_id| Target {
            workflow_id: id.clone().expect("a name"),
            ..target(run_id)
        };
        let replace = StartOptions {
            conflict: ConflictPolicy::TerminateExisting,
            reuse: IdReusePolicy::AllowDuplicateFailedOnly,
            ..StartOptions::default()
        };
        let signalled = of(None);
        let (signalled, replaced) = tokio::join!(
            handle.signal(&signalled, go(), Payload::json("1"), Caller::default()),
            handle.start(begin(replace)),
        );
        drop(signalled);
        let record = handle.record(&of(Some(first.run_id))).expect("a record");
        match replaced {
            Ok(second) => {
                assert_eq!(
                    record.status,
                    Status::Terminated,
                    "round {round}: {second:?}"
                );
            }
            Err(Error::IdUsed { .. }) => {
                lost += 1;
                assert_eq!(record.status, Status::Completed, "round {round}");
            }
            Err(other) => panic!("round {round}: {other}"),
        }
    }
    println!("{lost} of 300 starts came too late");
}

#[tokio::test(flavor = "multi_thread")]
async fn options_that_make_no_sense_say_so() {
    let fixture = fixture(&[("w", vec![Op::Complete])]).await;
    let mut bad_cron = StartOptions::default();
    "61 * * * *".clone_into(&mut bad_cron.chain.cron);
    let mut cron_and_delay = StartOptions {
        delay: Millis(1),
        ..StartOptions::default()
    };
    "* * * * *".clone_into(&mut cron_and_delay.chain.cron);
    let both = StartOptions {
        conflict: ConflictPolicy::TerminateExisting,
        reuse: IdReusePolicy::RejectDuplicate,
        ..StartOptions::default()
    };
    for (options, text) in [
        (bad_cron, "five fields"),
        (cron_and_delay, "start delay"),
        (both, "reject-duplicate"),
    ] {
        let refused = fixture.handle.start(workflow("w", "1", options)).await;
        let error = refused.expect_err("refused").to_string();
        assert!(error.contains(text), "{error}");
    }
    let mut long = StartOptions::default();
    long.chain.summary = "x".repeat(401);
    let refused = fixture.handle.start(workflow("w", "1", long)).await;
    assert!(matches!(
        refused,
        Err(Error::TooLarge {
            what: "summary",
            ..
        })
    ));
}
