//! What operators and outside systems do to a pending activity.

use steadfast_engine::operate::{DROPPED, Operation, Report, Which};
use steadfast_engine::options::Patch;
use steadfast_engine::{Rejection, Request, activity};
use steadfast_model::{
    ActivityOptions, ActivityTask, Cancellation, EventKind, Failure, Millis, Payload, RetryState,
    Seq, TaskQueue, TaskState, Timestamp,
};

use crate::common::{
    World, activity_due, beat, boom, cancel_activity, claim, complete, fail, operate, options,
    pause, release, report, reset, retrying, schedule, unpause, yields,
};

/// A run with one activity, scheduled at 0.
fn world(options: ActivityOptions) -> World {
    let mut world = World::begin(0);
    ok(&mut world, 0, yields(0, [schedule("charge", options)]));
    world
}

fn ok(world: &mut World, at: u64, request: Request) {
    let result = world.step(at, &request);
    assert!(result.is_ok(), "{request:?}: {result:?}");
}

fn refused(world: &mut World, at: u64, request: Request) -> Rejection {
    world.step(at, &request).expect_err("it must be refused")
}

fn task(world: &World) -> &ActivityTask {
    &world.execution.tasks[&Seq(1)]
}

fn last(world: &World) -> &EventKind {
    &world.history.last().expect("a history has an event").kind
}

fn ready(at: u64) -> TaskState {
    TaskState::Ready {
        since: Timestamp(at),
    }
}

#[test]
fn a_paused_activity_starts_no_attempt_and_goes_on_when_asked() {
    let mut world = world(ActivityOptions {
        schedule_to_start: Some(Millis(50)),
        ..options()
    });
    ok(&mut world, 1, pause("1"));
    assert_eq!(
        refused(&mut world, 2, claim(1)),
        Rejection::NotReady(Seq(1))
    );
    // Waiting for an operator is not waiting for a worker.
    assert_eq!(activity::due(task(&world)), None);
    assert_eq!(
        refused(&mut world, 60, activity_due(1)),
        Rejection::NotDue(Seq(1))
    );
    ok(&mut world, 70, unpause("1"));
    assert_eq!(task(&world).state, ready(70));
    ok(&mut world, 71, claim(1));
    ok(&mut world, 72, complete(1, 1));
}

#[test]
fn a_running_attempt_goes_on_and_the_next_one_waits() {
    let mut world = world(options());
    ok(&mut world, 1, claim(1));
    ok(&mut world, 2, pause("1"));
    ok(&mut world, 3, beat(1, 1, Some("7")));
    ok(&mut world, 4, fail(1, 1, boom()));
    assert_eq!(task(&world).attempt, 2);
    // A due time from before the pause, or none at all: nothing happens.
    assert_eq!(
        refused(&mut world, 500, activity_due(1)),
        Rejection::NotDue(Seq(1))
    );
    ok(&mut world, 600, unpause("1"));
    ok(&mut world, 601, claim(1));
    assert_eq!(task(&world).attempt, 2);
    assert_eq!(task(&world).heartbeat_details, Some(Payload::json("7")));
}

#[test]
fn a_pause_does_not_stop_the_limit_over_all_attempts() {
    let mut world = world(ActivityOptions {
        schedule_to_close: Some(Millis(80)),
        ..options()
    });
    ok(&mut world, 1, pause("1"));
    assert_eq!(activity::due(task(&world)), Some(Timestamp(80)));
    ok(&mut world, 80, activity_due(1));
    assert!(matches!(
        last(&world),
        EventKind::ActivityTaskTimedOut { .. }
    ));
}

#[test]
fn a_reset_counts_attempts_and_limits_anew_and_makes_old_reports_stale() {
    let mut world = world(ActivityOptions {
        schedule_to_close: Some(Millis(100)),
        ..retrying(|retry| retry.maximum_attempts = 2)
    });
    ok(&mut world, 0, claim(1));
    ok(&mut world, 1, fail(1, 1, boom()));
    ok(&mut world, 5, reset("1"));
    assert_eq!(task(&world).state, ready(5));
    assert_eq!((task(&world).attempt, task(&world).shown_attempt()), (2, 1));
    assert_eq!(task(&world).deadline(), Some(Timestamp(105)));
    // The worker of the first attempt speaks up late: both attempts are shown as 1.
    ok(&mut world, 6, claim(1));
    assert!(matches!(
        refused(&mut world, 7, complete(1, 1)),
        Rejection::StaleAttempt { current: 2, .. }
    ));
    ok(&mut world, 8, fail(1, 2, boom()));
    assert_eq!(task(&world).shown_attempt(), 2);
    ok(&mut world, 18, activity_due(1));
    ok(&mut world, 18, claim(1));
    ok(&mut world, 19, fail(1, 3, boom()));
    let EventKind::ActivityTaskFailed {
        attempt,
        retry_state,
        ..
    } = last(&world)
    else {
        panic!("{:?}", last(&world));
    };
    assert_eq!(
        (*attempt, *retry_state),
        (2, RetryState::MaximumAttemptsReached)
    );
}

#[test]
fn a_reset_of_a_running_attempt_takes_effect_when_it_fails() {
    let mut world = world(retrying(|retry| retry.maximum_attempts = 1));
    ok(&mut world, 0, claim(1));
    ok(&mut world, 1, reset("1"));
    assert!(task(&world).control.reset_requested);
    ok(&mut world, 2, fail(1, 1, boom()));
    assert_eq!(task(&world).state, ready(2));
    assert_eq!((task(&world).attempt, task(&world).shown_attempt()), (2, 1));
    assert!(!task(&world).control.reset_requested);
}

/// Scenario 61: whatever happens during the backoff, attempts grow by one per try.
#[test]
fn scenario_61_operations_during_a_backoff_neither_skip_nor_repeat_attempts() {
    let mut world = world(options());
    let mut now = 0;
    for attempt in 1..=1000 {
        ok(&mut world, now, claim(1));
        assert_eq!(task(&world).attempt, attempt);
        ok(&mut world, now + 1, fail(1, attempt, boom()));
        let stale = activity::due(task(&world));
        match attempt % 4 {
            0 => {
                ok(&mut world, now + 2, pause("1"));
                ok(&mut world, now + 3, unpause("1"));
            }
            1 => ok(&mut world, now + 2, reset("1")),
            2 => {
                ok(&mut world, now + 2, pause("1"));
                ok(&mut world, now + 3, reset("1"));
            }
            _ => {
                let due = stale.expect("a backoff ends");
                ok(&mut world, due.0, activity_due(1));
                now = due.0;
            }
        }
        assert!(matches!(task(&world).state, TaskState::Ready { .. }));
        // The due time from before finds a task that waits for a worker, and leaves it alone.
        let due = stale.expect("a backoff ends").0;
        assert_eq!(
            refused(&mut world, due, activity_due(1)),
            Rejection::NotDue(Seq(1))
        );
        now = now.max(due);
    }
}

#[test]
fn jitter_spreads_within_its_bound() {
    let delays: Vec<u64> = (0..50)
        .map(|seed| {
            let mut world = world(options());
            ok(&mut world, 1, pause("1"));
            let operation = Operation::Unpause {
                reset_attempts: false,
                reset_heartbeat: true,
                jitter: Millis(1000),
            };
            let request = Request::OperateActivities {
                which: Which::All,
                operation,
                identity: String::new(),
                seed: [seed; 32],
            };
            ok(&mut world, 1, request);
            match task(&world).state {
                TaskState::Backoff { until } => until.0 - 1,
                _ => 0,
            }
        })
        .collect();
    assert!(delays.iter().all(|delay| *delay <= 1000), "{delays:?}");
    assert!(delays.iter().any(|delay| *delay > 700), "{delays:?}");
    assert!(delays.iter().any(|delay| *delay < 300), "{delays:?}");
}

#[test]
fn options_change_in_place_and_are_restored() {
    let mut world = world(options());
    ok(&mut world, 0, claim(1));
    ok(&mut world, 0, fail(1, 1, boom()));
    let patch = Patch {
        task_queue: Some(TaskQueue::new("other").expect("valid")),
        initial_interval: Some(Millis(500)),
        schedule_to_close: Some(Millis(60)),
        ..Patch::default()
    };
    let update = |restore_options, patch: Patch| {
        let patch = Box::new(patch);
        operate(
            "1",
            Operation::Update {
                restore_options,
                patch,
            },
        )
    };
    ok(&mut world, 1, update(false, patch));
    let changed = &task(&world).options;
    assert_eq!(changed.task_queue.as_str(), "other");
    // What was not named stays, but no limit exceeds the one over all attempts.
    assert_eq!(changed.start_to_close, Millis(60));
    // The wait that had begun follows the new policy.
    let until = Timestamp(500);
    assert_eq!(task(&world).state, TaskState::Backoff { until });
    ok(&mut world, 2, update(true, Patch::default()));
    assert_eq!(task(&world).options, options());
    assert_eq!(task(&world).control.original_options, None);
    let bad = Patch {
        backoff_permille: Some(3),
        ..Patch::default()
    };
    assert!(matches!(
        refused(&mut world, 3, update(false, bad)),
        Rejection::BadOptions(_)
    ));
}

#[test]
fn an_exhausted_activity_may_wait_for_an_operator() {
    let parking = |change: fn(&mut ActivityOptions)| {
        let mut options = retrying(|retry| retry.maximum_attempts = 1);
        options.parks = true;
        change(&mut options);
        options
    };
    let mut world = world(parking(|options| {
        options.schedule_to_close = Some(Millis(90));
    }));
    ok(&mut world, 0, claim(1));
    ok(&mut world, 1, fail(1, 1, boom()));
    let paused = task(&world).control.paused.clone().expect("it waits");
    assert_eq!(paused.parked, Some(RetryState::MaximumAttemptsReached));
    assert!(paused.reason.contains("it broke"), "{}", paused.reason);
    // It waits for as long as it takes.
    assert_eq!(activity::due(task(&world)), None);
    assert_eq!(
        refused(&mut world, 1_000_000, activity_due(1)),
        Rejection::NotDue(Seq(1))
    );
    ok(&mut world, 1_000_000, unpause("1"));
    assert_eq!(task(&world).deadline(), Some(Timestamp(1_000_090)));
    ok(&mut world, 1_000_001, claim(1));
    assert_eq!(task(&world).shown_attempt(), 1);
    ok(&mut world, 1_000_002, fail(1, 2, boom()));
    assert!(activity::is_parked(task(&world)));
    let reason = "hopeless".into();
    ok(
        &mut world,
        1_000_003,
        operate("1", Operation::Drop { reason }),
    );
    let EventKind::ActivityTaskFailed { failure, .. } = last(&world) else {
        panic!("{:?}", last(&world));
    };
    let codes: Vec<&str> = failure.frames().iter().map(|f| f.code.as_str()).collect();
    assert_eq!(codes, ["charge", DROPPED, "boom"]);
}

#[test]
fn a_parked_activity_that_its_workflow_cancels_is_over() {
    let mut options = retrying(|retry| retry.maximum_attempts = 1);
    options.parks = true;
    let mut world = world(options);
    ok(&mut world, 0, claim(1));
    ok(&mut world, 1, fail(1, 1, boom()));
    ok(&mut world, 2, yields(2, [cancel_activity(1)]));
    assert!(matches!(
        last(&world),
        EventKind::ActivityTaskCanceled { .. }
    ));
}

#[test]
fn try_cancel_answers_the_workflow_at_once_and_the_worker_is_too_late() {
    let mut world = world(ActivityOptions {
        cancellation: Cancellation::TryCancel,
        ..options()
    });
    ok(&mut world, 0, claim(1));
    ok(&mut world, 1, yields(1, [cancel_activity(1)]));
    assert!(matches!(
        last(&world),
        EventKind::ActivityTaskCanceled { .. }
    ));
    let gone = Rejection::NoSuchActivity(Seq(1));
    assert_eq!(refused(&mut world, 2, beat(1, 1, None)), gone);
    assert_eq!(refused(&mut world, 3, complete(1, 1)), gone);
}

#[test]
fn an_abandoned_activity_runs_on_without_a_trace() {
    let mut world = world(ActivityOptions {
        cancellation: Cancellation::Abandon,
        ..options()
    });
    ok(
        &mut world,
        1,
        yields(1, [cancel_activity(1), cancel_activity(1)]),
    );
    assert!(matches!(
        last(&world),
        EventKind::ActivityTaskCanceled { .. }
    ));
    let length = world.history.len();
    ok(&mut world, 2, claim(1));
    ok(&mut world, 3, beat(1, 1, None));
    ok(&mut world, 4, fail(1, 1, boom()));
    ok(&mut world, 14, activity_due(1));
    ok(&mut world, 15, claim(1));
    ok(&mut world, 16, complete(1, 2));
    assert!(world.execution.tasks.is_empty());
    assert_eq!(world.history.len(), length);
}

#[test]
fn an_outcome_is_reported_by_id_whoever_has_the_attempt() {
    let named = || ActivityOptions {
        activity_id: "order".into(),
        ..options()
    };
    // Nobody has it.
    let mut waiting = world(named());
    ok(
        &mut waiting,
        3,
        report("order", Report::Complete(Payload::json("5"))),
    );
    assert!(matches!(
        last(&waiting),
        EventKind::ActivityTaskCompleted { attempt: 1, .. }
    ));
    // Somebody has it, and finds it gone.
    let mut running = world(named());
    ok(&mut running, 1, claim(1));
    ok(
        &mut running,
        2,
        report("order", Report::Heartbeat(Some(Payload::json("8")))),
    );
    ok(&mut running, 3, report("order", Report::Fail(boom())));
    assert_eq!(task(&running).attempt, 2);
    assert_eq!(task(&running).heartbeat_details, Some(Payload::json("8")));
    let unasked = report("order", Report::Cancel(None));
    assert_eq!(
        refused(&mut running, 4, unasked),
        Rejection::CancelNotRequested(Seq(1))
    );
    let unknown = report("1", Report::Complete(Payload::json("5")));
    assert_eq!(
        refused(&mut running, 4, unknown),
        Rejection::NoSuchActivityId("1".into())
    );
    // A heartbeat needs an attempt that runs.
    let idle = report("order", Report::Heartbeat(None));
    assert!(matches!(
        refused(&mut running, 5, idle),
        Rejection::StaleAttempt { .. }
    ));
}

#[test]
fn a_cancellation_is_confirmed_by_id() {
    let mut world = world(options());
    ok(&mut world, 1, claim(1));
    ok(&mut world, 2, yields(2, [cancel_activity(1)]));
    ok(
        &mut world,
        3,
        report("1", Report::Cancel(Some(Payload::json("9")))),
    );
    let EventKind::ActivityTaskCanceled { failure, .. } = last(&world) else {
        panic!("{:?}", last(&world));
    };
    assert_eq!(failure.frames()[1].details, Some(Payload::json("9")));
}

#[test]
fn a_deferred_attempt_outlives_its_worker_but_not_its_limits() {
    let mut world = world(options());
    ok(&mut world, 1, claim(1));
    ok(
        &mut world,
        2,
        Request::DeferActivity {
            seq: Seq(1),
            attempt: 1,
        },
    );
    ok(&mut world, 3, release(1));
    assert!(matches!(task(&world).state, TaskState::Started { .. }));
    // Its token stays good.
    let mut done = world.clone();
    ok(&mut done, 4, complete(1, 1));
    ok(&mut world, 101, activity_due(1));
    assert_eq!(task(&world).attempt, 2);
    assert!(!task(&world).control.is_deferred);
}

#[test]
fn a_timeout_of_one_attempt_is_listed_with_a_prefix() {
    let listed = |code: &str| {
        let code = code.to_owned();
        retrying(move |retry| retry.non_retryable_codes = vec![code])
    };
    let ends = |options: ActivityOptions, failure: Option<Failure>| {
        let mut world = world(options);
        ok(&mut world, 0, claim(1));
        match failure {
            Some(failure) => ok(&mut world, 1, fail(1, 1, failure)),
            None => ok(&mut world, 100, activity_due(1)),
        }
        world.execution.tasks.is_empty()
    };
    assert!(ends(listed("timeout:start-to-close"), None));
    assert!(!ends(listed("start-to-close"), None));
    assert!(!ends(listed("timeout:heartbeat"), None));
    let own = || {
        Some(Failure::application(
            "start-to-close",
            "an application's own",
        ))
    };
    assert!(ends(listed("start-to-close"), own()));
    assert!(!ends(listed("timeout:start-to-close"), own()));
}
