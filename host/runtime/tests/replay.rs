//! Replay as pool threads do it: from the store, piece by piece and in batches, it gives what the
//! live run gave.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use steadfast_model::command::Step;
use steadfast_model::{
    ActivityType, ComponentDigest, Event, EventKind, EventNumber, Namespace, Payload, RequestId,
    RunKey, SignalName, Timestamp, WorkflowId, WorkflowType,
};
use steadfast_ports::fake::{ManualClock, MemStore, Op, ScriptedGuests, SeededEntropy};
use steadfast_ports::guest::{Admitted, Driven, Error as GuestError, Fetch, Refusal};
use steadfast_ports::{Guest, Guests, HostCalls, Store};
use steadfast_runtime::activation::{Job, begin, perform};
use steadfast_runtime::handle::{Caller, StartOptions, StartWorkflow, Target};
use steadfast_runtime::{Activities, Options, World, read_history, start};

/// More events than one piece of a history holds; fan-out, so that whether a cancellation is void
/// depends on an event far ahead; random bytes, times, and signals in a row.
fn script() -> Vec<Op> {
    let mut script = vec![Op::Parallel {
        activity_type: "echo".to_owned(),
        count: 800,
    }];
    for i in 0..40 {
        script.push(Op::Now("echo".to_owned()));
        script.push(Op::Random("echo".to_owned()));
        script.push(Op::RaceTimerActivity {
            timer_ms: 60_000,
            activity_type: "echo".to_owned(),
            input: format!("\"{i}\""),
        });
        script.push(Op::WaitSignal("go".to_owned()));
    }
    script
}

struct Recorded {
    store: Arc<dyn Store>,
    guests: Arc<ScriptedGuests>,
    run: RunKey,
    history: Vec<Event>,
}

async fn record() -> Recorded {
    let guests = Arc::new(ScriptedGuests::new());
    guests.bind(b"component", "long", script());
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let activities = Activities::new().register(
        ActivityType::new("echo").expect("a name"),
        |_, input| async { Ok(input) },
    );
    let world = World {
        store: store.clone(),
        guests: guests.clone(),
        clock: Arc::new(ManualClock::new(Timestamp(1_700_000_000_000))),
        entropy: Arc::new(SeededEntropy::new(3)),
    };
    let options = Options {
        activities,
        ..Options::default()
    };
    let host = start(options, world).expect("a host");
    host.upload(b"component".to_vec()).await.expect("uploaded");
    let namespace = Namespace::new("default").expect("a name");
    let workflow_id = WorkflowId::new("w").expect("a name");
    let started = host
        .start(StartWorkflow {
            namespace: namespace.clone(),
            workflow_id: Some(workflow_id.clone()),
            workflow_type: WorkflowType::new("long").expect("a name"),
            task_queue: None,
            input: Payload::json("null"),
            request_id: None,
            identity: String::new(),
            options: StartOptions::default(),
        })
        .await
        .expect("started");
    let target = Target {
        namespace,
        workflow_id,
        run_id: None,
    };
    for i in 0..40 {
        let caller = Caller {
            request_id: Some(RequestId::new(format!("r{i}")).expect("a name")),
            ..Caller::default()
        };
        let name = SignalName::new("go").expect("a name");
        host.signal(&target, name, Payload::json(format!("{i}")), caller)
            .await
            .expect("taken");
    }
    host.result(&target, Duration::from_secs(60))
        .await
        .expect("a result")
        .expect("it ended");
    let run = started.run_id.key();
    let history = read_history(&*store, run, EventNumber(u64::MAX)).expect("a history");
    Recorded {
        store,
        guests,
        run,
        history,
    }
}

impl Recorded {
    fn component(&self) -> steadfast_model::ComponentDigest {
        ScriptedGuests::digest(b"component")
    }

    fn replay_stored(&self, guests: &dyn Guests) -> Result<Step, String> {
        let job = Job::Begin {
            component: self.component(),
            history: None,
            until: EventNumber(self.history.len() as u64),
            is_owed: false,
        };
        let (_, result) = perform(guests, &self.store, self.run, job);
        result
            .map(|yielded| yielded.step)
            .map_err(|e| e.to_string())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_from_the_store_gives_what_the_live_run_gave() {
    let recorded = record().await;
    let Some(EventKind::WorkflowExecutionCompleted { result, .. }) =
        recorded.history.last().map(|event| event.kind.clone())
    else {
        panic!("it completed");
    };
    let live = Step::Completed(result);
    assert_eq!(recorded.replay_stored(&*recorded.guests), Ok(live.clone()));
    let fetch = || Ok(None);
    let (_, in_memory) = begin(
        &*recorded.guests,
        recorded.component(),
        &fetch,
        recorded.history.clone(),
        false,
    );
    assert_eq!(in_memory.expect("it replays").step, live);
}

/// A guest that takes many events at once and notes how many it got.
struct Counting {
    sizes: Arc<Mutex<Vec<usize>>>,
}

impl Guests for Counting {
    fn admit(&self, _bytes: &[u8]) -> Result<Admitted, Refusal> {
        Err(Refusal::NotAComponent("not asked for".to_owned()))
    }

    fn instantiate(
        &self,
        _component: ComponentDigest,
        _fetch: Fetch<'_>,
    ) -> Result<Box<dyn Guest>, GuestError> {
        Ok(Box::new(Self {
            sizes: Arc::clone(&self.sizes),
        }))
    }
}

impl Guest for Counting {
    fn start(&mut self, _: &str, _: &Payload, calls: Box<dyn HostCalls>) -> Driven {
        (Ok(Step::Blocked), calls)
    }

    fn resume(&mut self, events: &[Event], calls: Box<dyn HostCalls>) -> Driven {
        self.sizes.lock().expect("one thread").push(events.len());
        (Ok(Step::Blocked), calls)
    }

    fn batch_max(&self) -> usize {
        100
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_code_has_not_answered_is_told_one_by_one() {
    let recorded = record().await;
    let started = recorded.history[0].clone();
    let signals = recorded
        .history
        .iter()
        .filter(|event| matches!(event.kind, EventKind::WorkflowExecutionSignaled { .. }));
    let mut history = vec![started];
    history.extend(signals.take(5).cloned());
    for (number, event) in (1..).zip(&mut history) {
        event.number = EventNumber(number);
    }
    for (is_owed, expected) in [(true, vec![1; 5]), (false, vec![5])] {
        let sizes = Arc::new(Mutex::new(Vec::new()));
        let guests = Counting {
            sizes: Arc::clone(&sizes),
        };
        let fetch = || Ok(None);
        let component = recorded.component();
        let (live, result) = begin(&guests, component, &fetch, history.clone(), is_owed);
        assert!(live.is_some(), "{result:?}");
        assert_eq!(*sizes.lock().expect("one thread"), expected, "{is_owed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_prefix_read_from_the_store_replays() {
    let recorded = record().await;
    let last = recorded.history.len() as u64;
    for until in (1..last).step_by(97) {
        let until = EventNumber(until);
        // A prefix that ends among the commands of one activation leaves the rest to be made.
        let job = Job::Begin {
            component: recorded.component(),
            history: None,
            until,
            is_owed: true,
        };
        let (live, result) = perform(&*recorded.guests, &recorded.store, recorded.run, job);
        let yielded = result.unwrap_or_else(|error| panic!("up to event {until}: {error}"));
        assert_eq!(yielded.step, Step::Blocked, "up to event {until}");
        assert!(live.is_some(), "up to event {until}");
        let commands = recorded.history[usize::try_from(until.0).expect("small")..].iter();
        let due = commands
            .take_while(|event| event.kind.is_command())
            .filter(|event| !event.kind.is_close())
            .count();
        assert!(
            yielded.commands.len() >= due,
            "up to event {until}: {} commands made again, {due} follow",
            yielded.commands.len()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_step_far_into_the_history_is_named() {
    let recorded = record().await;
    let changed = ScriptedGuests::new();
    let mut script = script();
    let at = script.len() - 3;
    script[at] = Op::activity("other", "1");
    changed.bind(b"component", "long", script);
    changed.admit(b"component").expect("a component");
    let error = recorded.replay_stored(&changed).expect_err("a mismatch");
    assert!(
        error.contains("nondeterminism at event") && error.contains("ScheduleActivity other"),
        "{error}"
    );
}
