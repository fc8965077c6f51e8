//! A host over fakes, and short ways to ask it.

use std::sync::Arc;
use std::time::Duration;

use steadfast_model::{
    Event, EventKind, EventNumber, ExecutionRecord, Millis, Namespace, Payload, Status, Timestamp,
    WorkflowId, WorkflowType,
};
use steadfast_ports::fake::{ManualClock, MemStore, Op, ScriptedGuests, SeededEntropy};
use steadfast_ports::guest::ChildCallOptions;
use steadfast_ports::store::ListQuery;
use steadfast_ports::{Clock, Entropy, Guests, Store};
use steadfast_runtime::handle::{Caller, StartOptions, StartWorkflow, Target};
use steadfast_runtime::{Handle, Options, World, start};

pub(crate) const WAIT: Duration = Duration::from_secs(30);
const NOW: u64 = 1_772_323_210_000;

pub(crate) struct Fixture {
    pub(crate) clock: Arc<ManualClock>,
    guests: Arc<ScriptedGuests>,
    pub(crate) store: Arc<MemStore>,
    pub(crate) handle: Handle,
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
    pub(crate) async fn new(scripts: &[(&str, Vec<Op>)]) -> Self {
        Self::on(Arc::new(MemStore::new()), scripts).await
    }

    pub(crate) async fn on(store: Arc<MemStore>, scripts: &[(&str, Vec<Op>)]) -> Self {
        let guests = Arc::new(ScriptedGuests::new());
        for (name, script) in scripts {
            guests.bind(b"component", name, script.clone());
        }
        let clock = Arc::new(ManualClock::new(Timestamp(NOW)));
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
    pub(crate) fn crash(&mut self) {
        self.lives += 1;
        self.store = Arc::new(self.store.crash());
        self.handle = host(&self.store, &self.guests, &self.clock, self.lives);
    }

    pub(crate) async fn start(&self, workflow_type: &str, id: &str) {
        self.start_with(workflow_type, id, "1").await;
    }

    pub(crate) async fn start_with(&self, workflow_type: &str, id: &str, input: &str) {
        let started = self.handle.start(workflow(workflow_type, id, input)).await;
        started.expect("started");
    }

    pub(crate) async fn terminate(&self, id: &str) {
        let (target, reason) = (target(id), "stuck".to_owned());
        let ended = self.handle.terminate(&target, reason, String::new()).await;
        ended.expect("it was open");
    }

    pub(crate) async fn cancel(&self, id: &str) {
        let (target, caller) = (target(id), Caller::default());
        let asked = self.handle.cancel(&target, String::new(), caller).await;
        asked.expect("it was open");
    }

    pub(crate) async fn end(&self, id: &str) -> EventKind {
        let close = self.handle.result(&target(id), WAIT).await;
        close.expect("a result").expect("it ended").kind
    }

    pub(crate) async fn result(&self, id: &str) -> String {
        match self.end(id).await {
            EventKind::WorkflowExecutionCompleted { result, .. } => {
                String::from_utf8(result.data).expect("a text")
            }
            other => panic!("{id} ended otherwise: {other:?}"),
        }
    }

    pub(crate) async fn signal(&self, id: &str) {
        let name = "go".parse().expect("a name");
        let (target, input) = (target(id), Payload::json("1"));
        let signal = self.handle.signal(&target, name, input, Caller::default());
        signal.await.expect("signalled");
    }

    pub(crate) async fn history(&self, id: &str) -> Vec<Event> {
        let target = target(id);
        let page = self.handle.history(&target, EventNumber(1), 1000, None);
        page.await.expect("a history").events
    }

    /// Names of the events of one run.
    pub(crate) async fn names_of(&self, record: &ExecutionRecord) -> Vec<&'static str> {
        let target = Target {
            run_id: Some(record.run_id),
            ..target(record.workflow_id.as_str())
        };
        let page = self.handle.history(&target, EventNumber(1), 1000, None);
        let events = page.await.expect("a history").events;
        events.iter().map(|event| event.kind.name()).collect()
    }

    pub(crate) async fn names(&self, id: &str) -> Vec<&'static str> {
        let history = self.history(id).await;
        history.iter().map(|event| event.kind.name()).collect()
    }

    /// Waits until an execution stands like this; the clock stands still meanwhile.
    pub(crate) async fn until(&self, id: &str, status: Status) {
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

    /// All runs, in the order of their starts.
    pub(crate) async fn records(&self) -> Vec<ExecutionRecord> {
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
        list.into_iter().rev().collect()
    }

    pub(crate) async fn all(&self) -> Vec<(String, Status)> {
        let records = self.records().await.into_iter();
        records
            .map(|record| (record.workflow_id.to_string(), record.status))
            .collect()
    }

    /// The runs of one workflow id.
    pub(crate) async fn runs(&self, id: &str) -> Vec<Status> {
        let all = self.all().await.into_iter();
        all.filter(|(found, _)| found == id)
            .map(|(_, status)| status)
            .collect()
    }

    /// Waits until a workflow id has so many runs; the clock stands still meanwhile.
    pub(crate) async fn until_runs(&self, id: &str, count: usize) {
        for _ in 0..3000 {
            if self.runs(id).await.len() >= count {
                return;
            }
            pause().await;
        }
        panic!("{id} never had {count} runs: {:?}", self.all().await);
    }

    /// Waits until so many executions were started by `p`, and returns their ids.
    pub(crate) async fn kids(&self, count: usize) -> Vec<String> {
        for _ in 0..3000 {
            let all = self.all().await.into_iter().map(|(id, _)| id);
            let kids: Vec<String> = all.filter(|id| id != "p").collect();
            if kids.len() >= count {
                return kids;
            }
            pause().await;
        }
        panic!("there never were {count} children: {:?}", self.all().await);
    }

    pub(crate) fn status(&self, id: &str) -> Status {
        self.handle.record(&target(id)).expect("it is there").status
    }

    /// Waits until the history has an event of this name.
    pub(crate) async fn until_named(&self, id: &str, name: &str) {
        for _ in 0..3000 {
            if self.count(id, name).await > 0 {
                return;
            }
            pause().await;
        }
        panic!("no {name} came: {:?}", self.names(id).await);
    }

    /// Events of this name.
    pub(crate) async fn count(&self, id: &str, name: &str) -> usize {
        let names = self.names(id).await;
        names.iter().filter(|found| **found == name).count()
    }

    /// Waits until no run owes another anything. What nobody waits for is written when some time
    /// has passed.
    pub(crate) async fn until_nothing_is_owed(&self) {
        for _ in 0..400 {
            let owed = self.store.letters(None, 10).expect("readable");
            if owed.is_empty() {
                return;
            }
            self.clock.advance(Millis(100));
            pause().await;
        }
        panic!("letters are left: {:?}", self.store.letters(None, 10));
    }

    /// Waits until a run is blocked, and says why.
    pub(crate) async fn blocked(&self, id: &str) -> String {
        for _ in 0..3000 {
            let record = self.handle.record(&target(id)).expect("it is there");
            if let Some(blocked) = record.blocked {
                return blocked.message;
            }
            self.clock.advance(Millis(10));
            pause().await;
        }
        panic!("{id} was never blocked: {:?}", self.names(id).await);
    }
}

pub(crate) async fn pause() {
    tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(5)))
        .await
        .expect("slept");
}

pub(crate) fn workflow(workflow_type: &str, id: &str, input: &str) -> StartWorkflow {
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

pub(crate) fn target(id: &str) -> Target {
    Target {
        namespace: Namespace::new("default").expect("a name"),
        workflow_id: WorkflowId::new(id).expect("a name"),
        run_id: None,
    }
}

pub(crate) fn named(id: &str) -> ChildCallOptions {
    with(&[("workflow-id", id)])
}

pub(crate) fn with(settings: &[(&str, &str)]) -> ChildCallOptions {
    let settings = settings.iter();
    ChildCallOptions {
        settings: settings
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        ..ChildCallOptions::default()
    }
}

pub(crate) fn child(workflow_type: &str, options: ChildCallOptions) -> Op {
    Op::Child(workflow_type.to_owned(), "1".to_owned(), options)
}

pub(crate) fn start_child(workflow_type: &str, options: ChildCallOptions) -> Op {
    Op::StartChild(workflow_type.to_owned(), "1".to_owned(), options)
}

pub(crate) fn wait() -> Op {
    Op::WaitSignal("go".to_owned())
}
