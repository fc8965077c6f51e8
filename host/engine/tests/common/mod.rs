//! What every test of the machine needs: a run whose every step is checked against the laws, and
//! short ways to write requests.
#![allow(
    dead_code,
    reason = "each test binary uses its own part of this module"
)]
#![allow(
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    reason = "test code"
)]

pub mod outside;

use steadfast_engine::decide::{Execution, Issued};
use steadfast_engine::operate::{Operation, Report, Which};
use steadfast_engine::state::Pending;
use steadfast_engine::{Decision, Rejection, Request, TaskChange, decide, start};
use steadfast_model::codec::{self, Chunk};
use steadfast_model::command::{Command, Step};
use steadfast_model::event::Started;
use steadfast_model::{
    ActivityOptions, ActivityTask, ActivityType, ChainOptions, ComponentDigest, Event, EventNumber,
    Failure, Link, Marker, MarkerKind, MarkerName, Millis, Namespace, Payload, RequestId,
    RetryPolicy, RunId, RunKey, Seq, SignalName, TaskQueue, Timestamp, UpdateId, UpdateName,
    WorkflowId, WorkflowType,
};

/// A run and the history that its decisions wrote.
#[derive(Debug, Clone)]
pub struct World {
    pub execution: Execution,
    pub history: Vec<Event>,
}

impl World {
    /// A run that begins at `at`.
    pub fn begin(at: u64) -> Self {
        Self::begin_with(started(), at)
    }

    /// A child that begins at `at`.
    pub fn begin_as_child(at: u64) -> Self {
        let parent = Some(Box::new(outside::parent()));
        Self::begin_with(
            Started {
                parent,
                ..started()
            },
            at,
        )
    }

    pub fn begin_with(started: Started, at: u64) -> Self {
        let event = start(started, Timestamp(at));
        let execution = decide::begin(RunKey(1), &event).expect("a first event");
        let world = Self {
            execution,
            history: vec![event],
        };
        world.verify();
        world
    }

    /// Decides and applies one request. Nothing that breaks a law gets past this.
    pub fn step(&mut self, at: u64, request: &Request) -> Result<Decision, Rejection> {
        let now = Timestamp(at);
        let decision = decide(&self.execution, request.clone(), now);
        assert_eq!(
            decision,
            decide(&self.execution, request.clone(), now),
            "not deterministic"
        );
        let decision = decision?;
        assert!(
            !self.execution.state.status.is_closed() || decision == Decision::default(),
            "a closed run changed"
        );
        self.execution
            .apply(&decision)
            .expect("apply accepts what decide emits");
        self.history.extend(decision.events.iter().cloned());
        for change in &decision.tasks {
            if let TaskChange::Put(task) = change {
                let bytes = codec::encode(task);
                assert_eq!(codec::decode::<ActivityTask>(&bytes).as_ref(), Ok(task));
            }
        }
        self.verify();
        Ok(decision)
    }

    /// Checks everything that must hold after every step.
    pub fn verify(&self) {
        self.execution.check();
        for (seq, task) in &self.execution.tasks {
            if task.control.is_abandoned {
                continue;
            }
            let expected = Pending::Activity {
                scheduled: task.scheduled_event,
                cancel_requested: task.cancel_requested,
            };
            assert_eq!(
                self.execution.state.pending.get(seq),
                Some(&expected),
                "{task:?}"
            );
        }
        for (number, pair) in (1..).zip(self.history.windows(2)) {
            let [before, after] = pair else {
                panic!("windows of two")
            };
            assert_eq!(
                before.number,
                EventNumber(number),
                "numbers are dense from 1"
            );
            assert_eq!(
                after.number,
                EventNumber(number + 1),
                "numbers are dense from 1"
            );
            assert!(before.time <= after.time, "time ran backwards: {pair:?}");
        }
        let tasks = self.execution.tasks.values().cloned().collect();
        let updates = self.execution.updates.values().cloned().collect();
        let recovered = decide::recover(self.execution.run, &self.history, tasks, updates);
        assert_eq!(
            recovered.as_ref(),
            Ok(&self.execution),
            "the fold and the live state differ"
        );
        let chunk = Chunk::encode(&self.history).expect("a history has an event");
        let mut decoded = Vec::new();
        chunk.decode_into(&mut decoded).expect("a chunk reads back");
        assert_eq!(decoded, self.history, "the stored form is not the identity");
    }
}

/// What every run here begins with.
pub fn started() -> Started {
    Started {
        namespace: Namespace::new("default").expect("valid"),
        workflow_id: WorkflowId::new("order-1").expect("valid"),
        run_id: RunId::new(RunKey(1), [7; 8]),
        workflow_type: WorkflowType::new("order").expect("valid"),
        component: ComponentDigest([1; 32]),
        task_queue: TaskQueue::new("default").expect("valid"),
        input: Payload::json("1"),
        random_seed: [9; 32],
        request_id: request_id("start"),
        identity: String::new(),
        attempt: 1,
        options: ChainOptions::default(),
        link: Link::default(),
        parent: None,
    }
}

pub fn request_id(text: &str) -> RequestId {
    RequestId::new(text).expect("valid")
}

/// A limit of 100 ms for one attempt and nothing else; 10 ms before the first retry, doubling.
pub fn options() -> ActivityOptions {
    ActivityOptions {
        start_to_close: Millis(100),
        retry: RetryPolicy {
            initial_interval: Millis(10),
            ..RetryPolicy::default()
        },
        ..ActivityOptions::on(TaskQueue::new("default").expect("valid"))
    }
}

/// The options with another retry policy.
pub fn retrying(change: impl FnOnce(&mut RetryPolicy)) -> ActivityOptions {
    let mut options = options();
    change(&mut options.retry);
    options
}

pub fn schedule(name: &str, options: ActivityOptions) -> Command {
    let activity_type = ActivityType::new(name).expect("valid");
    Command::ScheduleActivity {
        activity_type,
        input: Payload::json("2"),
        options,
    }
}

pub fn timer(ms: u64) -> Command {
    Command::StartTimer {
        duration: Millis(ms),
    }
}

pub fn marker_name(text: &str) -> MarkerName {
    MarkerName::new(text).expect("valid")
}

pub fn record(kind: MarkerKind, name: &str, value: Option<&str>) -> Command {
    let marker = Marker {
        kind,
        name: marker_name(name),
        details: value.map(Payload::json),
    };
    Command::RecordMarker { marker }
}

pub fn cancel_activity(seq: u32) -> Command {
    Command::CancelActivity { seq: Seq(seq) }
}

pub fn cancel_timer(seq: u32) -> Command {
    Command::CancelTimer { seq: Seq(seq) }
}

/// The guest asked for this at `at`, and waits.
pub fn yields<const N: usize>(at: u64, commands: [Command; N]) -> Request {
    ends(at, commands, Step::Blocked)
}

/// The guest asked for this at `at`, and ended so.
pub fn ends<const N: usize>(at: u64, commands: [Command; N], step: Step) -> Request {
    let at = Timestamp(at);
    let commands = commands
        .into_iter()
        .map(|command| Issued { at, command })
        .collect();
    Request::Yield {
        commands,
        step,
        at,
        closing: None,
    }
}

pub fn claim(seq: u32) -> Request {
    Request::ClaimActivity {
        seq: Seq(seq),
        worker: "w".into(),
    }
}

pub fn release(seq: u32) -> Request {
    Request::ReleaseActivity {
        seq: Seq(seq),
        worker: "w".into(),
    }
}

pub fn beat(seq: u32, attempt: u32, details: Option<&str>) -> Request {
    Request::Heartbeat {
        seq: Seq(seq),
        attempt,
        details: details.map(Payload::json),
    }
}

pub fn complete(seq: u32, attempt: u32) -> Request {
    Request::CompleteActivity {
        seq: Seq(seq),
        attempt,
        result: Payload::json("3"),
    }
}

pub fn fail(seq: u32, attempt: u32, failure: Failure) -> Request {
    Request::FailActivity {
        seq: Seq(seq),
        attempt,
        failure,
    }
}

pub fn boom() -> Failure {
    Failure::application("boom", "it broke")
}

pub fn activity_due(seq: u32) -> Request {
    Request::ActivityDue { seq: Seq(seq) }
}

pub fn timer_due(seq: u32) -> Request {
    Request::TimerDue { seq: Seq(seq) }
}

/// The id of an update.
pub fn update_id(text: &str) -> UpdateId {
    UpdateId::new(text).expect("valid")
}

/// An update `add` with input `4`.
pub fn admit(id: &str) -> Request {
    Request::AdmitUpdate {
        update_id: update_id(id),
        name: UpdateName::new("add").expect("valid"),
        input: Payload::json("4"),
        identity: "alice".into(),
    }
}

/// The completion of an update with the result `5`.
pub fn complete_update(id: &str) -> Command {
    Command::CompleteUpdate {
        update_id: update_id(id),
        outcome: Ok(Payload::json("5")).into(),
    }
}

pub fn signal(id: &str) -> Request {
    Request::Signal {
        name: SignalName::new("go").expect("valid"),
        input: Payload::json("4"),
        request_id: request_id(id),
        identity: "alice".into(),
    }
}

pub fn cancel(id: &str) -> Request {
    let (reason, identity) = ("enough".into(), "bob".into());
    Request::Cancel {
        reason,
        identity,
        request_id: request_id(id),
    }
}

pub fn terminate() -> Request {
    Request::Terminate {
        reason: "stuck".into(),
        identity: "carol".into(),
    }
}

/// An operator does this to the activity of that id.
pub fn operate(id: &str, operation: Operation) -> Request {
    Request::OperateActivities {
        which: Which::Id(id.into()),
        operation,
        identity: "dave".into(),
        seed: [3; 32],
    }
}

pub fn pause(id: &str) -> Request {
    let reason = "looking".into();
    operate(id, Operation::Pause { reason })
}

pub fn unpause(id: &str) -> Request {
    operate(
        id,
        Operation::Unpause {
            reset_attempts: false,
            reset_heartbeat: false,
            jitter: Millis::ZERO,
        },
    )
}

pub fn reset(id: &str) -> Request {
    operate(
        id,
        Operation::Reset {
            reset_heartbeat: false,
            keep_paused: false,
            restore_options: false,
            jitter: Millis::ZERO,
        },
    )
}

pub fn report(id: &str, report: Report) -> Request {
    Request::ReportActivity {
        activity_id: id.into(),
        report,
    }
}
