//! Values for tests: short ways to write what a store is given.

use steadfast_model::activity::{Control, TaskState};
use steadfast_model::codec::Chunk;
use steadfast_model::component::{ComponentDescription, ComponentRecord};
use steadfast_model::execution::Blocked;
use steadfast_model::{
    ActivityOptions, ActivityTask, ActivityType, AdmittedUpdate, ComponentDigest, Event, EventKind,
    EventNumber, ExecutionRecord, LetterKey, LetterKind, Namespace, Payload, RequestId, RunId,
    RunKey, Seq, SignalName, Status, TaskQueue, Timestamp, UpdateId, UpdateName, WorkflowId,
    WorkflowType,
};

use crate::store::{Batch, FencingToken, ListQuery, TaskKey, TimerKey, TimerKind, Write};

/// The namespace `ns`.
#[must_use]
pub fn namespace() -> Namespace {
    Namespace::new("ns").expect("a valid name")
}

/// A workflow id.
#[must_use]
pub fn workflow_id(text: &str) -> WorkflowId {
    WorkflowId::new(text).expect("a valid name")
}

/// A workflow type.
#[must_use]
pub fn workflow_type(text: &str) -> WorkflowType {
    WorkflowType::new(text).expect("a valid name")
}

/// A letter; kinds are 1 to 7.
pub fn letter(run: u64, seq: u32, kind: u8) -> LetterKey {
    LetterKey {
        run: RunKey(run),
        seq: Seq(seq),
        kind: LetterKind::from_byte(kind).expect("a kind of letter"),
    }
}

/// A task queue.
#[must_use]
pub fn queue(text: &str) -> TaskQueue {
    TaskQueue::new(text).expect("a valid name")
}

/// A batch of the first owner of a store that nobody has acquired.
#[must_use]
pub fn batch(writes: Vec<Write>) -> Batch {
    Batch {
        fence: FencingToken(0),
        writes,
    }
}

/// Signal events from `first` on, one per text.
#[must_use]
pub fn events(first: u64, texts: &[&str]) -> Vec<Event> {
    (first..)
        .zip(texts)
        .map(|(number, text)| Event {
            number: EventNumber(number),
            time: Timestamp(1_000 + number),
            kind: EventKind::WorkflowExecutionSignaled {
                name: SignalName::new("s").expect("a valid name"),
                input: Payload::json(*text),
                request_id: RequestId::new(format!("r{number}")).expect("a valid name"),
                identity: String::new(),
            },
        })
        .collect()
}

/// A chunk of `count` events from `first` on.
#[must_use]
pub fn chunk(first: u64, count: usize) -> Chunk {
    Chunk::encode(&events(first, &vec!["{}"; count])).expect("there are events")
}

/// Appends `count` events from `first` on.
#[must_use]
pub fn append(run: u64, first: u64, count: usize) -> Write {
    Write::Append {
        run: RunKey(run),
        chunk: chunk(first, count),
    }
}

/// Claims a workflow id.
#[must_use]
pub fn claim(id: &str, run: u64, replaces: Option<u64>) -> Write {
    Write::Claim {
        namespace: namespace(),
        workflow_id: workflow_id(id),
        run: RunKey(run),
        replaces: replaces.map(RunKey),
    }
}

/// A running execution of type `type` with the workflow id `id`.
#[must_use]
pub fn execution(run: u64, id: &str) -> ExecutionRecord {
    ExecutionRecord {
        run: RunKey(run),
        namespace: namespace(),
        workflow_id: workflow_id(id),
        run_id: RunId::new(RunKey(run), [7; 8]),
        workflow_type: workflow_type("type"),
        component: ComponentDigest([1; 32]),
        task_queue: queue("queue"),
        status: Status::Running,
        started_at: Timestamp(run),
        closed_at: None,
        blocked: None,
        last_event: None,
        delayed_until: None,
        undelivered_signals: None,
    }
}

/// Writes an execution.
#[must_use]
pub fn put(record: ExecutionRecord) -> Write {
    Write::PutExecution(Box::new(record))
}

/// Why a run is blocked.
#[must_use]
pub fn blocked() -> Blocked {
    Blocked {
        since: Timestamp(5),
        code: "trap".to_owned(),
        message: "unreachable".to_owned(),
        attempts: 3,
        retry_at: Some(Timestamp(9)),
    }
}

/// A pending activity.
#[must_use]
pub fn activity(run: u64, seq: u32) -> ActivityTask {
    ActivityTask {
        run: RunKey(run),
        seq: Seq(seq),
        scheduled_event: EventNumber(2),
        scheduled_at: Timestamp(3),
        activity_type: ActivityType::new("work").expect("a valid name"),
        options: ActivityOptions::on(queue("queue")),
        attempt: 1,
        state: TaskState::Ready {
            since: Timestamp(3),
        },
        last_failure: None,
        heartbeat_details: None,
        cancel_requested: false,
        control: Control::default(),
    }
}

/// An admitted update.
#[must_use]
pub fn update(run: u64, number: u32) -> AdmittedUpdate {
    AdmittedUpdate {
        run: RunKey(run),
        number,
        update_id: UpdateId::new(format!("update-{run}-{number}")).expect("a valid name"),
        name: UpdateName::new("add").expect("a valid name"),
        input: Payload::json("[1]"),
        identity: "cli@host".to_owned(),
        admitted_at: Timestamp(4),
    }
}

/// A due time.
#[must_use]
pub fn timer(due: u64, run: u64, seq: u32) -> TimerKey {
    let kind = TimerKind::Workflow;
    TimerKey {
        due: Timestamp(due),
        run: RunKey(run),
        kind,
        seq: Seq(seq),
    }
}

/// A task.
#[must_use]
pub fn task(name: &str, ready: u64, run: u64, seq: u32) -> TaskKey {
    TaskKey {
        queue: queue(name),
        ready: Timestamp(ready),
        run: RunKey(run),
        seq: Seq(seq),
    }
}

/// A component's record.
#[must_use]
pub fn component(digest: u8, size_bytes: usize) -> ComponentRecord {
    ComponentRecord {
        digest: ComponentDigest([digest; 32]),
        size_bytes: size_bytes as u64,
        uploaded_at: Timestamp(1),
        description: ComponentDescription {
            sdk: "test/1".to_owned(),
            resume_batch_max: 1,
            workflows: Vec::new(),
            imports: vec!["steadfast:workflow/timers@0.1.0".to_owned()],
        },
    }
}

/// A query for everything in [`namespace`].
#[must_use]
pub fn everything() -> ListQuery {
    ListQuery {
        namespace: namespace(),
        status: None,
        workflow_type: None,
        workflow_id: None,
        blocked: false,
        before: None,
        limit: 1000,
    }
}
