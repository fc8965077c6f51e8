//! Laws over whole scripts.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use steadfast_engine::{Decision, Rejection, Request, TaskChange};
use steadfast_model::{ActivityTask, Event, EventKind, RequestId, TaskState, UpdateId};

use crate::common::World;
use crate::generate::{Ask, script};

/// What a client may have been told before.
#[derive(Debug, Default)]
struct Sent {
    signals: BTreeSet<RequestId>,
    cancels: BTreeSet<RequestId>,
    updates: BTreeSet<UpdateId>,
}

impl Sent {
    /// True if the same request was accepted before.
    fn before(&mut self, request: &Request, is_accepted: bool) -> bool {
        let (set, id) = match request {
            Request::Signal { request_id, .. } => (&mut self.signals, request_id),
            Request::Cancel { request_id, .. } => (&mut self.cancels, request_id),
            Request::AdmitUpdate { update_id, .. } => {
                let was_there = self.updates.contains(update_id);
                if is_accepted {
                    self.updates.insert(update_id.clone());
                }
                return was_there;
            }
            // A refused update leaves no trace: it may be sent again.
            Request::RefuseUpdate { .. } if is_accepted => {
                self.updates.clear();
                return false;
            }
            _ => return false,
        };
        let was_there = set.contains(id);
        if is_accepted {
            set.insert(id.clone());
        }
        was_there
    }
}

/// Plays a script, checking each step; gives back the run and what was rejected.
fn play(script: &[Ask]) -> (World, Vec<Rejection>) {
    let mut world = World::begin(1000);
    let (mut now, mut sent, mut rejections) = (1000, Sent::default(), Vec::new());
    for ask in script {
        let (at, request) = ask.request(&world, now);
        now = at;
        let before = world.execution.state.status;
        let result = world.step(now, &request);
        if before.is_closed() {
            assert_eq!(result, Err(Rejection::Closed(before)), "{request:?}");
        }
        if sent.before(&request, result.is_ok()) && !before.is_closed() {
            assert_eq!(
                result,
                Ok(Decision::default()),
                "answered before: {request:?}"
            );
        }
        match result {
            Ok(decision) => bounded(&request, &decision),
            Err(rejection) => rejections.push(rejection),
        }
        if is_open(&world) {
            let again = world.clone().step(now, &request);
            once(&request, again);
        }
    }
    (world, rejections)
}

fn is_open(world: &World) -> bool {
    !world.execution.state.status.is_closed()
}

/// A request that is sent twice does nothing the second time.
fn once(request: &Request, again: Result<Decision, Rejection>) {
    match request {
        Request::Signal { .. } | Request::Cancel { .. } => {
            assert!(
                matches!(&again, Ok(d) if *d == Decision::default())
                    || again == Err(Rejection::TooManySignals),
                "{again:?}"
            );
        }
        Request::AdmitUpdate { .. } => {
            assert!(
                again == Ok(Decision::default()) || again == Err(Rejection::TooManyUpdatesInFlight),
                "{again:?}"
            );
        }
        Request::AcceptUpdate { .. } | Request::RefuseUpdate { .. } => {
            assert!(again.is_err(), "an update was judged twice: {again:?}");
        }
        Request::CompleteActivity { .. } | Request::FailActivity { .. } => {
            assert!(again.is_err(), "an attempt ended twice: {again:?}");
        }
        Request::ClaimActivity { .. } | Request::TimerDue { .. } => {
            assert!(again.is_err(), "taken or fired twice: {again:?}");
        }
        Request::ReleaseActivity { .. } => {
            assert!(
                again.is_err() || again == Ok(Decision::default()),
                "released twice"
            );
        }
        Request::DeferActivity { .. }
        | Request::ReportActivity { .. }
        | Request::OperateActivities { .. } => {}
        Request::Answer(_) => assert_eq!(again, Ok(Decision::default()), "answered twice"),
        Request::Terminate { .. } => panic!("open after a termination"),
        Request::ActivityDue { .. }
        | Request::Heartbeat { .. }
        | Request::RunDue { .. }
        | Request::Yield { .. } => {}
    }
}

/// Only an activation records more than one fact.
fn bounded(request: &Request, decision: &Decision) {
    if let Request::Yield { commands, .. } = request {
        assert!(
            decision.events.len() <= 2 * commands.len() + 1,
            "{decision:?}"
        );
        return;
    }
    assert!(decision.events.len() <= 1, "{decision:?}");
    let puts = decision
        .tasks
        .iter()
        .filter(|c| matches!(c, TaskChange::Put(_)))
        .count();
    assert!(puts <= 1, "{decision:?}");
}

/// Every operation is answered at most once, after it began, and attempts stay within the policy.
fn resolved_once(history: &[Event]) {
    let mut open = BTreeMap::new();
    for event in history {
        match &event.kind {
            EventKind::ActivityTaskScheduled { seq, options, .. } => {
                // One that waits for an operator may be told the outcome of a further attempt.
                let maximum = options.retry.maximum_attempts;
                let maximum = if options.parks { 0 } else { maximum };
                assert!(open.insert(*seq, maximum).is_none());
            }
            EventKind::TimerStarted { seq, .. } => assert!(open.insert(*seq, 0).is_none()),
            EventKind::TimerCanceled { seq } => assert!(open.remove(seq).is_some()),
            other => {
                let Some(seq) = other.resolves() else {
                    continue;
                };
                let maximum = open.remove(&seq).expect("answered once, after it began");
                if let EventKind::ActivityTaskFailed { attempt, .. }
                | EventKind::ActivityTaskTimedOut { attempt, .. }
                | EventKind::ActivityTaskCompleted { attempt, .. } = other
                {
                    assert!(
                        maximum == 0 || *attempt <= maximum,
                        "{attempt} of {maximum}"
                    );
                }
            }
        }
    }
}

/// Every update is accepted once, completed at most once, and after its acceptance.
fn updates_answered_once(history: &[Event]) {
    let mut open = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for event in history {
        match &event.kind {
            EventKind::WorkflowExecutionUpdateAccepted { update_id, .. } => {
                assert!(seen.insert(update_id), "accepted twice");
                open.insert(update_id, event.number);
            }
            EventKind::WorkflowExecutionUpdateCompleted {
                update_id,
                accepted,
                ..
            } => assert_eq!(open.remove(update_id), Some(*accepted)),
            _ => {}
        }
    }
}

/// No attempt is promised for a time at which the limit over all attempts has passed.
fn backoff_has_room(task: &ActivityTask) {
    if let TaskState::Backoff { until } = &task.state
        && let Some(deadline) = task.deadline()
    {
        assert!(*until < deadline, "{task:?}");
    }
    assert!(
        (task.attempt > 1) == task.last_failure.is_some(),
        "{task:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn any_script_keeps_the_laws(script in script(50)) {
        let (world, _) = play(&script);
        resolved_once(&world.history);
        updates_answered_once(&world.history);
        world.execution.tasks.values().for_each(backoff_has_room);
    }
}

/// The scripts are worth nothing if they do not reach every corner.
#[test]
fn random_scripts_reach_every_event_and_every_rejection() {
    let mut runner = TestRunner::deterministic();
    let (mut kinds, mut refusals) = (BTreeMap::new(), BTreeSet::new());
    for _ in 0..1000 {
        let script = script(50)
            .new_tree(&mut runner)
            .expect("a script")
            .current();
        let (world, rejections) = play(&script);
        for event in &world.history {
            *kinds.entry(event.kind.name()).or_insert(0) += 1;
        }
        refusals.extend(rejections.iter().map(|rejection| match rejection {
            Rejection::Closed(_) => "closed",
            Rejection::NoSuchActivity(_) => "no such activity",
            Rejection::StaleAttempt { .. } => "stale attempt",
            Rejection::NoSuchActivityId(_) => "no such activity id",
            Rejection::CancelNotRequested(_) => "cancel not requested",
            Rejection::BadOptions(_) => "bad options",
            Rejection::NotReady(_) => "not ready",
            Rejection::TooManySignals => "too many signals",
            Rejection::NotDue(_) => "not due",
            Rejection::NoSuchUpdate(_) => "no such update",
            Rejection::TooManyUpdatesInFlight => "too many updates in flight",
            Rejection::UpdatesTooLarge => "updates too large",
            Rejection::TooManyUpdates => "too many updates",
            Rejection::RunNotDue => "run not due",
            Rejection::Unminted => "unminted",
        }));
    }
    assert_eq!(kinds.len(), 19, "an event kind never came up: {kinds:?}");
    assert!(
        kinds.values().all(|count| *count >= 10),
        "a kind is too rare: {kinds:?}"
    );
    // Ten thousand signals and many or large updates are a table's job.
    assert_eq!(refusals.len(), 9, "{refusals:?}");
}
