//! The whole host, with real threads, over fakes: what an embedding program sees.
#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use steadfast_model::{
    ActivityType, EventKind, EventNumber, Failure, Namespace, Payload, RequestId, SignalName,
    Status, TaskQueue, WorkflowId, WorkflowType,
};
use steadfast_ports::fake::{ManualClock, MemStore, Op, ScriptedGuests, SeededEntropy};
use steadfast_ports::guest::CallOptions;
use steadfast_ports::{Clock, Entropy, Guests, Store};
use steadfast_runtime::handle::{Caller, StartOptions, StartWorkflow, Target};
use steadfast_runtime::{Activities, Error, Handle, Options, TaskToken, World, start};

const WAIT: Duration = Duration::from_secs(30);

struct Fixture {
    store: Arc<MemStore>,
    guests: Arc<ScriptedGuests>,
    clock: Arc<ManualClock>,
}

impl Fixture {
    fn new(scripts: &[(&str, Vec<Op>)]) -> Self {
        let guests = Arc::new(ScriptedGuests::new());
        for (name, script) in scripts {
            guests.bind(b"component", name, script.clone());
        }
        let clock = Arc::new(ManualClock::new(steadfast_model::Timestamp(
            1_700_000_000_000,
        )));
        Self {
            store: Arc::new(MemStore::new()),
            guests,
            clock,
        }
    }

    fn host(&self, options: Options) -> Handle {
        let (store, guests): (Arc<dyn Store>, Arc<dyn Guests>) =
            (self.store.clone(), self.guests.clone());
        let clock: Arc<dyn Clock> = self.clock.clone();
        let entropy: Arc<dyn Entropy> = Arc::new(SeededEntropy::new(7));
        start(
            options,
            World {
                store,
                guests,
                clock,
                entropy,
            },
        )
        .expect("a host")
    }

    async fn uploaded(&self, options: Options) -> Handle {
        let handle = self.host(options);
        handle
            .upload(b"component".to_vec())
            .await
            .expect("uploaded");
        handle
    }
}

fn workflow(name: &str, id: &str) -> StartWorkflow {
    StartWorkflow {
        namespace: Namespace::new("default").expect("a name"),
        workflow_id: Some(WorkflowId::new(id).expect("a name")),
        workflow_type: WorkflowType::new(name).expect("a name"),
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

fn activity(name: &str) -> ActivityType {
    ActivityType::new(name).expect("a name")
}

async fn completed(handle: &Handle, id: &str) -> String {
    let close = handle
        .result(&target(id), WAIT)
        .await
        .expect("a result")
        .expect("it ended");
    match close.kind {
        EventKind::WorkflowExecutionCompleted { result, .. } => {
            String::from_utf8(result.data).expect("JSON")
        }
        other => panic!("{id} ended with {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn activities_of_the_host_run_retry_and_panic_without_harm() {
    let retried = CallOptions {
        initial_interval: steadfast_model::Millis(1),
        maximum_attempts: 3,
        ..CallOptions::default()
    };
    let flaky = |name: &str| Op::Activity {
        activity_type: name.to_owned(),
        input: "\"x\"".to_owned(),
        options: retried.clone(),
    };
    let fixture = Fixture::new(&[("w", vec![flaky("flaky"), flaky("panics"), Op::Complete])]);
    let tries = Arc::new(AtomicU32::new(0));
    let counted = tries.clone();
    let activities = Activities::new()
        .register(activity("flaky"), move |context, _| {
            let tries = counted.clone();
            async move {
                tries.fetch_add(1, Ordering::Relaxed);
                if context.attempt() < 3 {
                    return Err(Failure::application("boom", "not yet"));
                }
                Ok(Payload::json("\"done\""))
            }
        })
        .register(activity("panics"), |_, _| async { panic!("oh no") });
    let handle = fixture
        .uploaded(Options {
            activities,
            ..Options::default()
        })
        .await;
    handle.start(workflow("w", "a")).await.expect("started");
    // Backoff of a millisecond passes only when the clock is moved.
    let clock = fixture.clock.clone();
    let ticking = tokio::spawn(async move {
        loop {
            clock.advance(steadfast_model::Millis(5));
            tokio::task::yield_now().await;
        }
    });
    let result = completed(&handle, "a").await;
    ticking.abort();
    assert!(result.contains("done"), "{result}");
    assert!(result.contains("the activity panicked: oh no"), "{result}");
    assert_eq!(tries.load(Ordering::Relaxed), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_outside_polls_beats_completes_once_and_is_told_when_it_is_late() {
    let fixture = Fixture::new(&[("w", vec![Op::activity("ship", "\"x\""), Op::Complete])]);
    let handle = fixture.uploaded(Options::default()).await;
    let queue = TaskQueue::new("default").expect("a name");
    let poller = {
        let (handle, queue) = (handle.clone(), queue.clone());
        tokio::spawn(async move { handle.poll(&queue, "w1", 10, WAIT).await })
    };
    let started = handle.start(workflow("w", "a")).await.expect("started");
    let tasks = poller.await.expect("no panic").expect("tasks");
    assert_eq!(tasks.len(), 1);
    let token = TaskToken::of(&tasks[0]);
    assert_eq!(token.to_string().parse::<TaskToken>(), Ok(token));
    assert_eq!(
        tasks[0].idempotency_key(),
        format!("default/a/{}/1", started.run_id)
    );
    assert_eq!(
        handle.heartbeat(token, Some(Payload::json("1"))).await,
        Ok(steadfast_runtime::message::Beat::default())
    );
    let stale = TaskToken {
        attempt: 2,
        ..token
    };
    assert!(matches!(
        handle.complete(stale, Payload::json("1")).await,
        Err(Error::TaskGone(text)) if text.contains("the current attempt is 1")
    ));
    handle
        .complete(token, Payload::json("\"sent\""))
        .await
        .expect("counted");
    let again = handle.complete(token, Payload::json("\"sent\"")).await;
    assert!(matches!(again, Err(Error::TaskGone(_))), "{again:?}");
    assert!(completed(&handle, "a").await.contains("sent"));
    assert!(
        handle
            .poll(&queue, "w1", 10, Duration::ZERO)
            .await
            .expect("none")
            .is_empty()
    );
    assert!(matches!(
        handle.poll(&queue, "host/x", 1, Duration::ZERO).await,
        Err(Error::Invalid(_))
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn starts_are_deduplicated_and_ids_are_exclusive_while_open() {
    let fixture = Fixture::new(&[("w", vec![Op::WaitSignal("go".to_owned()), Op::Complete])]);
    let handle = fixture.uploaded(Options::default()).await;
    let request = RequestId::new("r1").expect("a name");
    let with_id = |id: &RequestId| StartWorkflow {
        request_id: Some(id.clone()),
        ..workflow("w", "a")
    };
    let first = handle.start(with_id(&request)).await.expect("started");
    let again = handle.start(with_id(&request)).await.expect("the same");
    assert_eq!((again.run_id, again.is_new), (first.run_id, false));
    let other = handle.start(workflow("w", "a")).await;
    assert_eq!(
        other,
        Err(Error::AlreadyStarted {
            run_id: first.run_id
        })
    );
    let signal = SignalName::new("go").expect("a name");
    handle
        .signal(
            &target("a"),
            signal.clone(),
            Payload::json("1"),
            Caller::default(),
        )
        .await
        .expect("sent");
    completed(&handle, "a").await;
    let late = handle
        .signal(&target("a"), signal, Payload::json("1"), Caller::default())
        .await;
    assert_eq!(
        late,
        Err(Error::Closed {
            status: "completed"
        })
    );
    let second = handle
        .start(workflow("w", "a"))
        .await
        .expect("the id is free again");
    assert_ne!(second.run_id, first.run_id);
    let starts = (0..20).map(|_| handle.start(workflow("w", "race")));
    let results = futures_util::future::join_all(starts).await;
    assert_eq!(
        results.iter().filter(|result| result.is_ok()).count(),
        1,
        "{results:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_goes_on_where_the_last_process_ended() {
    let ops = vec![
        Op::activity("first", "1"),
        Op::activity("second", "2"),
        Op::Complete,
    ];
    let fixture = Fixture::new(&[("w", ops)]);
    let blocked = Activities::new()
        .register(activity("first"), |_, input| async { Ok(input) })
        .register(activity("second"), |context, _| async move {
            context.cancelled().await;
            Err(Failure::canceled("never"))
        });
    let handle = fixture
        .uploaded(Options {
            activities: blocked,
            ..Options::default()
        })
        .await;
    handle.start(workflow("w", "a")).await.expect("started");
    loop {
        let page = handle
            .history(&target("a"), EventNumber(1), 100, None)
            .await
            .expect("events");
        if page.events.len() >= 4 {
            break;
        }
        tokio::task::yield_now().await;
    }
    drop(handle);
    let works = |_, input| async { Ok(input) };
    let activities = Activities::new()
        .register(activity("first"), works)
        .register(activity("second"), works);
    let handle = fixture.host(Options {
        activities,
        ..Options::default()
    });
    completed(&handle, "a").await;
    let page = handle
        .history(&target("a"), EventNumber(1), 100, None)
        .await
        .expect("events");
    let names: Vec<_> = page.events.iter().map(|event| event.kind.name()).collect();
    assert_eq!(
        names,
        [
            "WorkflowExecutionStarted",
            "ActivityTaskScheduled",
            "ActivityTaskCompleted",
            "ActivityTaskScheduled",
            "ActivityTaskCompleted",
            "WorkflowExecutionCompleted",
        ]
    );
    assert!(page.is_closed && page.next.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trapping_run_is_blocked_and_goes_on_when_its_code_is_mended() {
    let fixture = Fixture::new(&[("w", vec![Op::Trap("bad luck".to_owned()), Op::Complete])]);
    let handle = fixture.uploaded(Options::default()).await;
    handle.start(workflow("w", "a")).await.expect("started");
    let blocked = loop {
        let record = handle
            .describe(&target("a"))
            .await
            .expect("described")
            .record;
        if let Some(blocked) = record.blocked {
            break blocked;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(blocked.code, "trap");
    assert!(blocked.message.contains("bad luck"), "{}", blocked.message);
    assert!(blocked.retry_at.is_some());
    // Signals still arrive.
    let signal = SignalName::new("go").expect("a name");
    handle
        .signal(&target("a"), signal, Payload::json("1"), Caller::default())
        .await
        .expect("kept");
    fixture.guests.bind(
        b"component",
        "w",
        vec![Op::WaitSignal("go".to_owned()), Op::Complete],
    );
    handle.unblock(&target("a")).await.expect("unblocked");
    completed(&handle, "a").await;
    let record = handle
        .describe(&target("a"))
        .await
        .expect("described")
        .record;
    assert_eq!((record.status, record.blocked), (Status::Completed, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tiny_cache_only_costs_replays() {
    let mut ops: Vec<Op> = (0..5).map(|_| Op::WaitSignal("go".to_owned())).collect();
    ops.push(Op::Complete);
    let fixture = Fixture::new(&[("w", ops)]);
    let handle = fixture
        .uploaded(Options {
            cache_bytes: 1,
            ..Options::default()
        })
        .await;
    for i in 0..50 {
        handle
            .start(workflow("w", &format!("w-{i}")))
            .await
            .expect("started");
    }
    for round in 0..5 {
        for i in 0..50 {
            let name = SignalName::new("go").expect("a name");
            let input = Payload::json(format!("{round}"));
            let id = target(&format!("w-{i}"));
            handle
                .signal(&id, name, input, Caller::default())
                .await
                .expect("sent");
        }
    }
    let first = completed(&handle, "w-0").await;
    for i in 1..50 {
        assert_eq!(completed(&handle, &format!("w-{i}")).await, first);
    }
}
