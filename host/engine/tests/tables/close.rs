//! How a run ends, and that nothing comes after.

use insta::assert_snapshot;
use steadfast_engine::{Rejection, Request};
use steadfast_model::command::Step;
use steadfast_model::{Failure, Payload, Seq, Status};

use crate::common::{
    World, activity_due, beat, boom, cancel, cancel_activity, claim, complete, ends, fail, options,
    release, schedule, signal, terminate, timer, timer_due, yields,
};
use crate::print::check;

fn done() -> Step {
    Step::Completed(Payload::json("5"))
}

#[test]
fn a_run_ends_with_a_result_a_failure_or_a_cancellation() {
    assert_snapshot!(check([(1, ends(1, [], done()))]), @"
    1 yield [] completed
      2@1 WorkflowExecutionCompleted 5
    ");
    assert_snapshot!(check([(1, ends(1, [], Step::Failed(boom())))]), @"
    1 yield [] failed
      2@1 WorkflowExecutionFailed
        application boom: it broke
    ");
    assert_snapshot!(check([
        (1, cancel("c")),
        (2, ends(1, [], Step::Canceled(Failure::canceled("as asked")))),
    ]), @"
    1 cancel c
      2@1 WorkflowExecutionCancelRequested enough by bob (c)
    2 yield [] canceled
      3@1 WorkflowExecutionCanceled
        canceled canceled: as asked
    ");
    assert_snapshot!(check([(1, terminate())]), @"
    1 terminate
      2@1 WorkflowExecutionTerminated stuck by carol
    ");
}

#[test]
fn what_is_pending_goes_with_the_run() {
    assert_snapshot!(check([
        (0, yields(0, [schedule("a", options()), timer(10), schedule("b", options())])),
        (1, claim(1)),
        // What the last activation began, changed and ended goes too, and is removed once.
        (2, ends(1, [schedule("c", options()), cancel_activity(1), cancel_activity(3)], done())),
    ]), @"
    0 yield [ScheduleActivity, StartTimer, ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 a
      3@0 TimerStarted 2 for 10 ms until 10
      4@0 ActivityTaskScheduled 3 b
      task 1 attempt 1: ready since 0
      task 3 attempt 1: ready since 0
    1 claim 1
      task 1 attempt 1: started by w at 1, heartbeat 1
    2 yield [ScheduleActivity, CancelActivity, CancelActivity] completed
      5@1 ActivityTaskScheduled 4 c
      6@1 ActivityTaskCancelRequested 1
      7@1 ActivityTaskCancelRequested 3
      8@1 ActivityTaskCanceled 3
        activity b: activity b was cancelled
        canceled canceled: cancelled while no worker had it
      9@1 WorkflowExecutionCompleted 5
      task 4 attempt 1: ready since 1
      task 1 attempt 1: started by w at 1, heartbeat 1, cancel requested
      task 3 removed
      task 1 removed
      task 4 removed
    ");
}

#[test]
fn a_termination_drops_activities_in_every_state() {
    assert_snapshot!(check([
        (0, yields(0, [schedule("a", options()), schedule("b", options()), timer(10)])),
        (1, claim(2)),
        (2, yields(2, [schedule("c", options())])),
        (3, claim(4)),
        (4, fail(4, 1, boom())),
        (5, terminate()),
    ]), @"
    0 yield [ScheduleActivity, ScheduleActivity, StartTimer] blocked
      2@0 ActivityTaskScheduled 1 a
      3@0 ActivityTaskScheduled 2 b
      4@0 TimerStarted 3 for 10 ms until 10
      task 1 attempt 1: ready since 0
      task 2 attempt 1: ready since 0
    1 claim 2
      task 2 attempt 1: started by w at 1, heartbeat 1
    2 yield [ScheduleActivity] blocked
      5@2 ActivityTaskScheduled 4 c
      task 4 attempt 1: ready since 2
    3 claim 4
      task 4 attempt 1: started by w at 3, heartbeat 3
    4 fail 4/1
      task 4 attempt 2: backoff until 14, last failure
        application boom: it broke
    5 terminate
      6@5 WorkflowExecutionTerminated stuck by carol
      task 1 removed
      task 2 removed
      task 4 removed
    ");
}

#[test]
fn an_unknown_operation_changes_nothing_but_keeps_the_commands() {
    assert_snapshot!(check([
        (1, ends(1, [timer(5)], Step::UnknownOperation(Seq(9)))),
    ]), @"
    1 yield [StartTimer] unknown-operation
      2@1 TimerStarted 1 for 5 ms until 6
    ");
}

fn every_request() -> Vec<Request> {
    vec![
        signal("new"),
        signal("old"),
        cancel("new"),
        terminate(),
        timer_due(2),
        activity_due(1),
        claim(1),
        release(1),
        beat(1, 1, None),
        complete(1, 1),
        fail(1, 1, boom()),
        yields(9, [timer(1)]),
        ends(9, [], done()),
    ]
}

#[test]
fn nothing_comes_after_the_end() {
    let closings = [
        (ends(1, [], done()), Status::Completed),
        (ends(1, [], Step::Failed(boom())), Status::Failed),
        (
            ends(1, [], Step::Canceled(Failure::canceled(""))),
            Status::Canceled,
        ),
        (terminate(), Status::Terminated),
    ];
    for (closing, status) in closings {
        let mut world = World::begin(0);
        for request in [
            yields(0, [schedule("a", options()), timer(1)]),
            claim(1),
            signal("old"),
            closing,
        ] {
            world.step(1, &request).expect("accepted");
        }
        let before = world.clone();
        for request in every_request() {
            assert_eq!(
                world.step(9, &request),
                Err(Rejection::Closed(status)),
                "{request:?}"
            );
        }
        assert_eq!(world.execution, before.execution);
        assert_eq!(world.history, before.history);
    }
}

#[test]
fn a_rejection_says_how_the_run_ended() {
    assert_snapshot!(check([(0, ends(0, [], done())), (1, signal("late"))]), @"
    0 yield [] completed
      2@0 WorkflowExecutionCompleted 5
    1 signal late
      rejected: the run has already completed
    ");
    assert_snapshot!(check([(0, terminate()), (1, signal("late"))]), @"
    0 terminate
      2@0 WorkflowExecutionTerminated stuck by carol
    1 signal late
      rejected: the run has already terminated
    ");
}
