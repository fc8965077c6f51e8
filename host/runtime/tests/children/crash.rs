//! The host dies at any moment.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use steadfast_model::{ExecutionRecord, Status};
use steadfast_ports::fake::{MemStore, Op};

use crate::fixture::{Fixture, child, named, pause, start_child, target, wait, with, workflow};

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
    fixture.until_nothing_is_owed().await;
}

/// Lets a store do its work write by write, until as many are durable as may be.
struct Pump {
    store: Mutex<Arc<MemStore>>,
    left: AtomicI64,
    is_over: AtomicBool,
}

const ALL: i64 = i64::MAX;

impl Pump {
    fn start() -> Arc<Self> {
        let pump = Arc::new(Self {
            store: Mutex::new(Arc::new(MemStore::manual())),
            left: AtomicI64::new(ALL),
            is_over: AtomicBool::new(false),
        });
        let own = pump.clone();
        std::thread::spawn(move || {
            while !own.is_over.load(Ordering::Relaxed) {
                let may = own.left.load(Ordering::SeqCst) > 0;
                if may && own.store().step() {
                    own.left.fetch_sub(1, Ordering::SeqCst);
                } else {
                    std::thread::sleep(Duration::from_micros(100));
                }
            }
        });
        pump
    }

    fn store(&self) -> Arc<MemStore> {
        self.store.lock().expect("no panic").clone()
    }

    /// Waits until the host wants to write more than it may. False: it has nothing more to write.
    async fn is_stuck(&self) -> bool {
        for _ in 0..20 {
            let is_stuck = || self.left.load(Ordering::SeqCst) <= 0 && self.store().queued() > 0;
            if is_stuck() {
                return true;
            }
            pause().await;
        }
        false
    }

    fn crash(&self, fixture: &mut Fixture, then: i64) {
        fixture.crash();
        *self.store.lock().expect("no panic") = fixture.store.clone();
        self.left.store(then, Ordering::SeqCst);
    }
}

/// The host dies after each write of a parent that has children of every kind, signals somebody
/// and continues as new, and once more while it recovers: all happens exactly once.
#[tokio::test(flavor = "multi_thread")]
async fn scenario_032_children_survive_a_crash_after_every_write() {
    let abandoned = with(&[("parent-close-policy", "abandon")]);
    let of_chain = with(&[("parent-close-scope", "chain")]);
    let signal = Op::SignalExternal("receiver".to_owned(), "go".to_owned(), "7".to_owned());
    let scripts = [
        (
            "parent",
            vec![
                child("fine", with(&[])),
                child("chain", with(&[])),
                signal,
                start_child("obeys", with(&[])),
                Op::CancelChild,
                start_child("fine", abandoned),
                start_child("waits", with(&[])),
                start_child("waits", of_chain),
                Op::ContinueAsNew,
                Op::Complete,
            ],
        ),
        ("fine", vec![Op::Complete]),
        ("obeys", vec![Op::WaitCancel, Op::AcceptCancel]),
        (
            "chain",
            vec![
                // A run that was told nothing would have its next one wait.
                Op::CancelExternal("nobody".to_owned()),
                Op::ContinueAsNew,
                Op::Complete,
            ],
        ),
        ("waits", vec![wait(), Op::Complete]),
        ("receiver", vec![wait(), wait(), Op::Complete]),
    ];
    for writes in 1.. {
        let pump = Pump::start();
        let mut fixture = Fixture::on(pump.store(), &scripts).await;
        fixture.start("receiver", "receiver").await;
        pump.left.store(writes, Ordering::SeqCst);
        let handle = fixture.handle.clone();
        tokio::spawn(async move { handle.start(workflow("parent", "p", "1")).await });
        let is_stuck = pump.is_stuck().await;
        if is_stuck {
            pump.crash(&mut fixture, 1 + writes % 5);
            pump.is_stuck().await;
            pump.crash(&mut fixture, ALL);
            if fixture.handle.record(&target("p")).is_err() {
                fixture.start("parent", "p").await;
            }
        }
        pump.left.store(ALL, Ordering::SeqCst);
        fixture.until("p", Status::Completed).await;
        fixture.until("receiver", Status::Completed).await;
        fixture.until_nothing_is_owed().await;
        check_once(&fixture, writes).await;
        pump.is_over.store(true, Ordering::Relaxed);
        if !is_stuck {
            return;
        }
    }
}

async fn check_once(fixture: &Fixture, writes: i64) {
    let records = fixture.records().await;
    let all = fixture.all().await;
    let count = |is: &dyn Fn(&ExecutionRecord) -> bool| records.iter().filter(|r| is(r)).count();
    let of = |id: &'static str| move |r: &ExecutionRecord| r.workflow_id.as_str() == id;
    let stands = |status| move |r: &ExecutionRecord| r.status == status;
    assert_eq!(records.len(), 17, "{writes} writes: {all:?}");
    assert_eq!(count(&of("p")), 2, "{writes} writes: {all:?}");
    assert_eq!(
        count(&stands(Status::Terminated)),
        4,
        "{writes} writes: {all:?}"
    );
    assert_eq!(
        count(&stands(Status::Running)),
        0,
        "{writes} writes: {all:?}"
    );
    for record in records.iter().filter(|record| of("p")(record)) {
        let names = fixture.names_of(record).await;
        for (name, times) in [
            ("StartChildWorkflowExecutionInitiated", 6..=6),
            ("ChildWorkflowExecutionStarted", 6..=6),
            ("ChildWorkflowExecutionCanceled", 1..=1),
            // The end of a child may overtake the answer to its cancel request, which is void then.
            ("ExternalWorkflowExecutionCancelRequested", 0..=1),
            ("RequestCancelExternalWorkflowExecutionFailed", 0..=0),
            ("ExternalWorkflowExecutionSignaled", 1..=1),
            ("SignalExternalWorkflowExecutionFailed", 0..=0),
            ("StartChildWorkflowExecutionFailed", 0..=0),
        ] {
            let found = names.iter().filter(|found| **found == name).count();
            let is_so = times.contains(&found);
            assert!(is_so, "{writes} writes: {found} {name} in {names:?}");
        }
    }
    let signals = fixture.count("receiver", "WorkflowExecutionSignaled").await;
    assert_eq!(signals, 2, "{writes} writes");
}
