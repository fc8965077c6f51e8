//! Code that changes while runs of it are open, and a guest that is away when much happens.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

use std::sync::Arc;
use std::time::Duration;

use steadfast_model::{
    ActivityType, Event, EventKind, EventNumber, Millis, Namespace, Payload, SignalName, Timestamp,
    WorkflowId, WorkflowType,
};
use steadfast_ports::fake::{ManualClock, MemStore, Op, ScriptedGuests, SeededEntropy};
use steadfast_runtime::handle::{Caller, StartOptions, StartWorkflow, Target};
use steadfast_runtime::{Activities, Handle, Options, World, start};

const WAIT: Duration = Duration::from_secs(30);

struct Fixture {
    guests: Arc<ScriptedGuests>,
    clock: Arc<ManualClock>,
    handle: Handle,
}

impl Fixture {
    /// A host whose runs are replayed for every event: nothing stays in memory.
    async fn forgetful(script: Vec<Op>) -> Self {
        let guests = Arc::new(ScriptedGuests::new());
        guests.bind(b"component", "w", script);
        let clock = Arc::new(ManualClock::new(Timestamp(1_700_000_000_000)));
        let mut activities = Activities::new();
        for name in ["old", "new", "act"] {
            let name = ActivityType::new(name).expect("a name");
            activities = activities.register(name, |_, input| async move { Ok(input) });
        }
        let options = Options {
            cache_bytes: 1,
            activities,
            ..Options::default()
        };
        let world = World {
            store: Arc::new(MemStore::new()),
            guests: guests.clone(),
            clock: clock.clone(),
            entropy: Arc::new(SeededEntropy::new(7)),
        };
        let handle = start(options, world).expect("a host");
        let uploaded = handle.upload(b"component".to_vec()).await;
        uploaded.expect("uploaded");
        Self {
            guests,
            clock,
            handle,
        }
    }

    /// The code is another one from now on.
    fn becomes(&self, script: Vec<Op>) {
        self.guests.bind(b"component", "w", script);
    }

    async fn start(&self, id: &str) {
        let start = StartWorkflow {
            namespace: Namespace::new("default").expect("a name"),
            workflow_id: Some(WorkflowId::new(id).expect("a name")),
            workflow_type: WorkflowType::new("w").expect("a name"),
            task_queue: None,
            input: Payload::json("null"),
            request_id: None,
            identity: String::new(),
            options: StartOptions::default(),
        };
        self.handle.start(start).await.expect("started");
    }

    async fn signal(&self, id: &str) {
        let name = SignalName::new("go").expect("a name");
        self.handle
            .signal(&target(id), name, Payload::json("1"), Caller::default())
            .await
            .expect("sent");
    }

    async fn history(&self, id: &str) -> Vec<Event> {
        let target = target(id);
        let history = self.handle.history(&target, EventNumber(1), 1000, None);
        history.await.expect("a history").events
    }

    /// Waits until the history has an event of this name.
    async fn until(&self, id: &str, name: &str) {
        let target = target(id);
        let mut from = EventNumber(1);
        loop {
            let page = self.handle.history(&target, from, 1000, Some(WAIT)).await;
            let events = page.expect("a history").events;
            assert!(!events.is_empty(), "no {name} came in time");
            if events.iter().any(|event| event.kind.name() == name) {
                return;
            }
            from = from.plus(events.len() as u64);
        }
    }

    async fn blocked(&self, id: &str) {
        self.blocked_times(id, 1).await;
    }

    /// Waits until so many activations in a row have failed.
    async fn blocked_times(&self, id: &str, times: u32) {
        loop {
            let description = self.handle.describe(&target(id)).await.expect("described");
            let blocked = description.record.blocked;
            if blocked.is_some_and(|blocked| blocked.attempts >= times) {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    /// How the run ended.
    async fn end(&self, id: &str) -> EventKind {
        let result = self.handle.result(&target(id), WAIT).await;
        result.expect("a result").expect("it ended").kind
    }

    async fn result(&self, id: &str) -> String {
        let EventKind::WorkflowExecutionCompleted { result, .. } = self.end(id).await else {
            panic!("{:?}", self.history(id).await)
        };
        String::from_utf8(result.data).expect("JSON")
    }
}

fn target(id: &str) -> Target {
    Target {
        namespace: Namespace::new("default").expect("a name"),
        workflow_id: WorkflowId::new(id).expect("a name"),
        run_id: None,
    }
}

fn names(history: &[Event]) -> Vec<&'static str> {
    history.iter().map(|event| event.kind.name()).collect()
}

fn patch() -> Op {
    Op::Patched("p".to_owned(), "new".to_owned(), "old".to_owned())
}

fn wait() -> Op {
    Op::WaitSignal("go".to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn old_runs_keep_the_old_branch_and_new_ones_take_the_new() {
    let old = Op::activity("old", "p:false");
    let fixture = Fixture::forgetful(vec![old, wait(), wait()]).await;
    fixture.start("before").await;
    fixture.until("before", "ActivityTaskCompleted").await;
    fixture.becomes(vec![patch(), wait(), patch(), wait(), patch()]);
    fixture.start("after").await;
    fixture.until("after", "ActivityTaskCompleted").await;
    for id in ["before", "after"] {
        fixture.signal(id).await;
        fixture.signal(id).await;
    }
    let result = fixture.result("after").await;
    assert_eq!(
        result.matches("p:true").count(),
        6,
        "asked thrice, with results: {result}"
    );
    let history = fixture.history("after").await;
    let markers = names(&history)
        .iter()
        .filter(|n| **n == "MarkerRecorded")
        .count();
    assert_eq!(markers, 1, "the first answer counts");
    let result = fixture.result("before").await;
    assert_eq!(result.matches("p:false").count(), 6, "{result}");
    assert!(!names(&fixture.history("before").await).contains(&"MarkerRecorded"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_goes_from_asked_to_deprecated_to_removed() {
    let new = || Op::activity("new", "p:true");
    let fixture = Fixture::forgetful(vec![patch(), wait(), wait(), wait()]).await;
    fixture.start("asked").await;
    fixture.until("asked", "ActivityTaskCompleted").await;
    let deprecated = Op::DeprecatePatch("p".to_owned());
    fixture.becomes(vec![deprecated, new(), wait(), wait(), wait()]);
    fixture.signal("asked").await;
    fixture.start("deprecated").await;
    fixture.until("deprecated", "ActivityTaskCompleted").await;
    // Removed: the run that has the marker of the question cannot go on, the other one can.
    fixture.becomes(vec![new(), wait(), wait(), wait()]);
    fixture.signal("asked").await;
    fixture.blocked("asked").await;
    let description = fixture.handle.describe(&target("asked")).await;
    let blocked = description.expect("described").record.blocked;
    let blocked = blocked.expect("it is blocked");
    assert_eq!(blocked.code, "nondeterminism");
    assert!(
        blocked.message.contains("deprecate_patch"),
        "{}",
        blocked.message
    );
    for _ in 0..3 {
        fixture.signal("deprecated").await;
    }
    fixture.result("deprecated").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_side_effect_is_what_it_was_at_first() {
    let effect = Op::SideEffect("v".to_owned());
    let fixture = Fixture::forgetful(vec![effect, wait(), Op::activity("act", "1"), wait()]).await;
    fixture.start("a").await;
    fixture.until("a", "MarkerRecorded").await;
    let value = |history: &[Event]| {
        let marker = history.iter().find_map(|event| {
            if let EventKind::MarkerRecorded { marker } = &event.kind {
                marker.details.clone()
            } else {
                None
            }
        });
        String::from_utf8(marker.expect("a value").data).expect("text")
    };
    let recorded = value(&fixture.history("a").await);
    fixture.signal("a").await;
    fixture.signal("a").await;
    let result = fixture.result("a").await;
    assert!(
        result.contains(&format!("\"{recorded}\"")),
        "{recorded} in {result}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn scenario_15_cancelled_while_its_code_was_away_a_run_ends_when_it_is_back() {
    let code = vec![Op::SleepOrCancel(60_000), Op::WaitCancel, Op::AcceptCancel];
    let fixture = Fixture::forgetful(code.clone()).await;
    fixture.start("a").await;
    fixture.until("a", "TimerStarted").await;
    fixture.becomes(vec![Op::Trap("away".to_owned())]);
    fixture
        .handle
        .cancel(&target("a"), "enough".to_owned(), Caller::default())
        .await
        .expect("recorded");
    fixture.blocked("a").await;
    fixture.clock.advance(Millis(60_000));
    fixture.until("a", "TimerFired").await;
    // The try that fell due meanwhile has failed: it cannot take the unblocking for its own.
    fixture.blocked_times("a", 2).await;
    fixture.becomes(code);
    fixture
        .handle
        .unblock(&target("a"))
        .await
        .expect("unblocked");
    assert!(matches!(
        fixture.end("a").await,
        EventKind::WorkflowExecutionCanceled { .. }
    ));
    assert_eq!(
        names(&fixture.history("a").await),
        [
            "WorkflowExecutionStarted",
            "TimerStarted",
            "WorkflowExecutionCancelRequested",
            "TimerFired",
            "WorkflowExecutionCanceled"
        ],
        "the timer that fired is not cancelled"
    );
}
