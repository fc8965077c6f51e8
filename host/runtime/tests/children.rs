//! Children and messages between executions, with real threads over fakes, through crashes of the
//! host at every write.
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
    Event, EventKind, EventNumber, Namespace, Payload, Status, Timestamp, WorkflowId, WorkflowType,
};
use steadfast_ports::fake::{ManualClock, MemStore, Op, ScriptedGuests, SeededEntropy};
use steadfast_ports::guest::ChildCallOptions;
use steadfast_ports::store::ListQuery;
use steadfast_ports::{Clock, Entropy, Guests, Store};
use steadfast_runtime::handle::{Caller, StartOptions, StartWorkflow, Target};
use steadfast_runtime::{Handle, Options, World, start};

const WAIT: Duration = Duration::from_secs(30);
const NOW: u64 = 1_772_323_210_000;

struct Fixture {
    clock: Arc<ManualClock>,
    guests: Arc<ScriptedGuests>,
    store: Arc<MemStore>,
    handle: Handle,
    lives: u64,
}

fn host(
    store: &Arc<MemStore>,
    guests: &Arc<ScriptedGuests>,
    clock: &Arc<ManualClock>,
    life: u64,
) -> Handle {
    let (store, guests): (Arc<dyn Store>, Arc<dyn Guests>) = (store.clone(), guests.clone());
    let (clock, entropy): (Arc<dyn Clock>, Arc<dyn Entropy>) =
        (clock.clone(), Arc::new(SeededEntropy::new(life)));
    let world = World {
        store,
        guests,
        clock,
        entropy,
    };
    let options = Options {
        shards: 2,
        ..Options::default()
    };
    start(options, world).expect("a host")
}

impl Fixture {
    async fn new(scripts: &[(&str, Vec<Op>)]) -> Self {
        let guests = Arc::new(ScriptedGuests::new());
        for (name, script) in scripts {
            guests.bind(b"component", name, script.clone());
        }
        let clock = Arc::new(ManualClock::new(Timestamp(NOW)));
        let store = Arc::new(MemStore::new());
        let handle = host(&store, &guests, &clock, 1);
        let uploaded = handle.upload(b"component".to_vec()).await;
        uploaded.expect("uploaded");
        Self {
            clock,
            guests,
            store,
            handle,
            lives: 1,
        }
    }

    /// The host dies, and another one goes on with what was durable.
    fn crash(&mut self) {
        self.lives += 1;
        self.store = Arc::new(self.store.crash());
        self.handle = host(&self.store, &self.guests, &self.clock, self.lives);
    }

    async fn start(&self, workflow_type: &str, id: &str) {
        let started = self.handle.start(workflow(workflow_type, id, "1")).await;
        started.expect("started");
    }

    async fn end(&self, id: &str) -> EventKind {
        let close = self.handle.result(&target(id), WAIT).await;
        close.expect("a result").expect("it ended").kind
    }

    async fn result(&self, id: &str) -> String {
        match self.end(id).await {
            EventKind::WorkflowExecutionCompleted { result, .. } => {
                String::from_utf8(result.data).expect("a text")
            }
            other => panic!("{id} ended otherwise: {other:?}"),
        }
    }

    async fn signal(&self, id: &str) {
        let name = "go".parse().expect("a name");
        let (target, input) = (target(id), Payload::json("1"));
        let signal = self.handle.signal(&target, name, input, Caller::default());
        signal.await.expect("signalled");
    }

    async fn history(&self, id: &str) -> Vec<Event> {
        let target = target(id);
        let page = self.handle.history(&target, EventNumber(1), 1000, None);
        page.await.expect("a history").events
    }

    async fn names(&self, id: &str) -> Vec<&'static str> {
        let history = self.history(id).await;
        history.iter().map(|event| event.kind.name()).collect()
    }

    /// Waits until an execution stands like this; the clock stands still meanwhile.
    async fn until(&self, id: &str, status: Status) {
        for _ in 0..3000 {
            if self
                .handle
                .record(&target(id))
                .is_ok_and(|record| record.status == status)
            {
                return;
            }
            pause().await;
        }
        panic!("{id} never was {}", status.name());
    }

    async fn all(&self) -> Vec<(String, Status)> {
        let query = ListQuery {
            namespace: Namespace::new("default").expect("a name"),
            status: None,
            workflow_type: None,
            workflow_id: None,
            blocked: false,
            before: None,
            limit: 1000,
        };
        let list = self.handle.list(query).await.expect("a list");
        let list = list.into_iter().rev();
        list.map(|record| (record.workflow_id.to_string(), record.status))
            .collect()
    }
}

async fn pause() {
    tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(5)))
        .await
        .expect("slept");
}

fn workflow(workflow_type: &str, id: &str, input: &str) -> StartWorkflow {
    StartWorkflow {
        namespace: Namespace::new("default").expect("a name"),
        workflow_id: Some(WorkflowId::new(id).expect("a name")),
        workflow_type: WorkflowType::new(workflow_type).expect("a name"),
        task_queue: None,
        input: Payload::json(input),
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

fn named(id: &str) -> ChildCallOptions {
    with(&[("workflow-id", id)])
}

fn with(settings: &[(&str, &str)]) -> ChildCallOptions {
    let settings = settings.iter();
    ChildCallOptions {
        settings: settings
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        ..ChildCallOptions::default()
    }
}

fn child(workflow_type: &str, options: ChildCallOptions) -> Op {
    Op::Child(workflow_type.to_owned(), "1".to_owned(), options)
}

fn start_child(workflow_type: &str, options: ChildCallOptions) -> Op {
    Op::StartChild(workflow_type.to_owned(), "1".to_owned(), options)
}

fn wait() -> Op {
    Op::WaitSignal("go".to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_ends_in_every_way_and_its_parent_learns_how() {
    let fixture = Fixture::new(&[
        (
            "parent",
            vec![
                child("fine", named("c1")),
                child("broken", named("c2")),
                child("nobody", named("c3")),
                Op::Complete,
            ],
        ),
        ("fine", vec![Op::Complete]),
        ("broken", vec![Op::Fail("bad".to_owned())]),
    ])
    .await;
    fixture.start("parent", "p").await;
    let result = fixture.result("p").await;
    assert!(result.contains(r#""[\"1\"]""#), "{result}");
    assert!(result.contains("ChildWorkflowExecutionFailed"), "{result}");
    assert!(result.contains("not-started"), "{result}");
    let names = fixture.names("p").await;
    assert_eq!(
        names,
        [
            "WorkflowExecutionStarted",
            "StartChildWorkflowExecutionInitiated",
            "ChildWorkflowExecutionStarted",
            "ChildWorkflowExecutionCompleted",
            "StartChildWorkflowExecutionInitiated",
            "ChildWorkflowExecutionStarted",
            "ChildWorkflowExecutionFailed",
            "StartChildWorkflowExecutionInitiated",
            "StartChildWorkflowExecutionFailed",
            "WorkflowExecutionCompleted",
        ]
    );
}

/// A taken id is refused, and the stranger who has it is left alone when the parent ends.
#[tokio::test(flavor = "multi_thread")]
async fn scenario_034_a_stranger_with_the_id_of_a_child_is_left_alone() {
    let fixture = Fixture::new(&[
        ("parent", vec![child("waits", named("taken")), Op::Complete]),
        ("waits", vec![wait(), Op::Complete]),
    ])
    .await;
    fixture.start("waits", "taken").await;
    fixture.start("parent", "p").await;
    let result = fixture.result("p").await;
    assert!(result.contains("is taken by run"), "{result}");
    fixture.signal("taken").await;
    fixture.until("taken", Status::Completed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_becomes_of_children_when_their_parent_ends() {
    for (policy, expected) in [
        ("terminate", Status::Terminated),
        ("request-cancel", Status::Canceled),
        ("abandon", Status::Running),
    ] {
        let options = with(&[("workflow-id", "c"), ("parent-close-policy", policy)]);
        let fixture = Fixture::new(&[
            ("parent", vec![start_child("waits", options), wait()]),
            ("waits", vec![Op::WaitCancel, Op::AcceptCancel]),
        ])
        .await;
        fixture.start("parent", "p").await;
        fixture.until("c", Status::Running).await;
        fixture.signal("p").await;
        fixture.until("p", Status::Completed).await;
        if expected == Status::Running {
            let caller = Caller::default();
            let target = target("c");
            let asked = fixture.handle.cancel(&target, String::new(), caller);
            asked.await.expect("it is there");
            fixture.until("c", Status::Canceled).await;
        } else {
            fixture.until("c", expected).await;
        }
    }
}

/// The child's retries are one child to the parent, and so are the runs that it continues as new.
#[tokio::test(flavor = "multi_thread")]
async fn the_runs_of_a_child_are_one_child() {
    let options = ChildCallOptions {
        maximum_attempts: 2,
        ..named("c2")
    };
    let fixture = Fixture::new(&[
        (
            "parent",
            vec![
                child("chain", named("c1")),
                child("broken", options),
                Op::Complete,
            ],
        ),
        ("chain", vec![wait(), Op::ContinueAsNew, Op::Complete]),
        ("broken", vec![Op::Fail("bad".to_owned())]),
    ])
    .await;
    fixture.start("parent", "p").await;
    fixture.until("c1", Status::Running).await;
    fixture.signal("c1").await;
    pause().await;
    fixture.signal("c1").await;
    // The second attempt waits for a second.
    let handle = fixture.handle.clone();
    let ended = tokio::spawn(async move { handle.result(&target("p"), WAIT).await });
    for _ in 0..2000 {
        if ended.is_finished() {
            break;
        }
        fixture.clock.advance(steadfast_model::Millis(100));
        pause().await;
    }
    ended
        .await
        .expect("no panic")
        .expect("a result")
        .expect("it ended");
    let names = fixture.names("p").await;
    let count = |name: &str| names.iter().filter(|found| **found == name).count();
    assert_eq!(count("ChildWorkflowExecutionStarted"), 2, "{names:?}");
    assert_eq!(count("ChildWorkflowExecutionCompleted"), 1, "{names:?}");
    assert_eq!(count("ChildWorkflowExecutionFailed"), 1, "{names:?}");
    let all = fixture.all().await;
    let runs = |id: &str| all.iter().filter(|(found, _)| found == id).count();
    assert_eq!((runs("c1"), runs("c2")), (2, 2), "{all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_a_child_is_what_its_type_says() {
    for (how, waits_for_child) in [
        ("abandon", false),
        ("try-cancel", false),
        ("wait-cancellation-requested", false),
        ("wait-cancellation-completed", true),
    ] {
        let options = with(&[
            ("workflow-id", "c"),
            ("cancellation-type", how),
            ("parent-close-policy", "abandon"),
        ]);
        let fixture = Fixture::new(&[
            (
                "parent",
                vec![start_child("slow", options), Op::CancelChild, Op::Complete],
            ),
            ("slow", vec![wait(), Op::WaitCancel, Op::AcceptCancel]),
        ])
        .await;
        fixture.start("parent", "p").await;
        fixture.until("c", Status::Running).await;
        if waits_for_child {
            fixture.signal("c").await;
        }
        let result = fixture.result("p").await;
        assert!(
            result.contains("ChildWorkflowExecutionCanceled"),
            "{how}: {result}"
        );
        if !waits_for_child {
            fixture.signal("c").await;
        }
        if how == "abandon" {
            let caller = Caller::default();
            let target = target("c");
            let asked = fixture.handle.cancel(&target, String::new(), caller);
            asked.await.expect("it was not asked before");
        }
        fixture.until("c", Status::Canceled).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn executions_signal_and_cancel_each_other() {
    let signal = |id: &str| Op::SignalExternal(id.to_owned(), "go".to_owned(), "7".to_owned());
    let fixture = Fixture::new(&[
        (
            "sender",
            vec![
                signal("r1"),
                signal("nobody"),
                Op::CancelExternal("r2".to_owned()),
                Op::CancelExternal("nobody".to_owned()),
                Op::Complete,
            ],
        ),
        ("receiver", vec![wait(), Op::Complete]),
        ("cancelled", vec![Op::WaitCancel, Op::AcceptCancel]),
    ])
    .await;
    fixture.start("receiver", "r1").await;
    fixture.start("cancelled", "r2").await;
    fixture.start("sender", "s").await;
    let result = fixture.result("s").await;
    assert!(
        result.starts_with(r#"["1","signaled","undelivered:"#),
        "{result}"
    );
    assert!(
        result.contains(r#""cancel-requested","undelivered:"#),
        "{result}"
    );
    assert_eq!(fixture.result("r1").await, r#"["1","7"]"#);
    fixture.until("r2", Status::Canceled).await;
}

/// The host dies again and again, at whatever moment: every child is started once, and every
/// parent learns once how it ended.
#[tokio::test(flavor = "multi_thread")]
async fn scenario_032_children_survive_crashes_of_the_host_exactly_once() {
    let abandoned = with(&[("workflow-id", "left"), ("parent-close-policy", "abandon")]);
    let mut script: Vec<Op> = (0..10)
        .map(|i| child("fine", named(&format!("c{i}"))))
        .collect();
    script.push(Op::SignalExternal(
        "receiver".to_owned(),
        "go".to_owned(),
        "7".to_owned(),
    ));
    script.push(start_child("fine", abandoned));
    let mut fixture = Fixture::new(&[
        ("parent", script),
        ("fine", vec![Op::Complete]),
        ("receiver", vec![wait(), Op::Complete]),
    ])
    .await;
    fixture.start("receiver", "receiver").await;
    fixture.start("parent", "p").await;
    for round in 0..40 {
        tokio::task::spawn_blocking(move || {
            std::thread::sleep(Duration::from_micros(200 + 150 * (round % 7)));
        })
        .await
        .expect("slept");
        fixture.crash();
    }
    fixture.until("p", Status::Completed).await;
    fixture.until("left", Status::Completed).await;
    let names = fixture.names("p").await;
    let count = |name: &str| names.iter().filter(|found| **found == name).count();
    assert_eq!(
        count("StartChildWorkflowExecutionInitiated"),
        11,
        "{names:?}"
    );
    assert_eq!(count("ChildWorkflowExecutionStarted"), 11, "{names:?}");
    assert_eq!(count("ExternalWorkflowExecutionSignaled"), 1, "{names:?}");
    assert!(count("ChildWorkflowExecutionCompleted") >= 10, "{names:?}");
    let all = fixture.all().await;
    assert_eq!(all.len(), 13, "{all:?}");
    let received = fixture.names("receiver").await;
    let signals = received
        .iter()
        .filter(|n| **n == "WorkflowExecutionSignaled");
    assert_eq!(signals.count(), 1, "{received:?}");
    // Nothing is owed any more. What nobody waits for is written when some time has passed.
    for _ in 0..400 {
        fixture.clock.advance(steadfast_model::Millis(100));
        if fixture
            .store
            .letters(None, 10)
            .expect("readable")
            .is_empty()
        {
            return;
        }
        pause().await;
    }
    panic!("letters are left: {:?}", fixture.store.letters(None, 10));
}
