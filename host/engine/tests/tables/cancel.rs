//! Cancelling an activity, in each of its states; and asking the workflow itself.

use insta::assert_snapshot;
use steadfast_model::failure::{FailureKind, Frame};
use steadfast_model::{Failure, Payload};

use crate::common::{
    activity_due, beat, boom, cancel, cancel_activity, cancel_timer, claim, complete, fail,
    options, release, schedule, timer, yields,
};
use crate::print::check;

#[test]
fn an_activity_in_its_queue_is_cancelled_at_once() {
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", options())])),
        (1, yields(1, [cancel_activity(1)])),
        (2, claim(1)),
        (3, yields(3, [cancel_activity(1)])),
    ]), @"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 0
    1 yield [CancelActivity] blocked
      3@1 ActivityTaskCancelRequested 1
      4@1 ActivityTaskCanceled 1
        activity charge: activity charge was cancelled
        canceled canceled: cancelled while no worker had it
      task 1 removed
    2 claim 1
      rejected: activity 1 is not pending: it has ended or was never scheduled
    3 yield [CancelActivity] blocked
    ");
}

#[test]
fn an_activity_between_two_attempts_is_cancelled_at_once() {
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", options())])),
        (1, claim(1)),
        (2, fail(1, 1, boom())),
        (3, yields(3, [cancel_activity(1)])),
        (13, activity_due(1)),
    ]), @"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 0
    1 claim 1
      task 1 attempt 1: started by w at 1, heartbeat 1
    2 fail 1/1
      task 1 attempt 2: backoff until 12, last failure
        application boom: it broke
    3 yield [CancelActivity] blocked
      3@3 ActivityTaskCancelRequested 1
      4@3 ActivityTaskCanceled 1
        activity charge: activity charge was cancelled
        canceled canceled: cancelled while no worker had it
      task 1 removed
    13 activity-due 1
      rejected: activity 1 is not pending: it has ended or was never scheduled
    ");
}

#[test]
fn a_running_activity_is_told_and_ends_when_its_worker_says_so() {
    let cleaned = Failure::new(Frame {
        details: Some(Payload::json("\"clean\"")),
        ..Frame::new(FailureKind::Canceled, "canceled", "cleaned up")
    });
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", options())])),
        (1, claim(1)),
        (2, yields(2, [cancel_activity(1)])),
        (3, yields(3, [cancel_activity(1)])),
        (4, beat(1, 1, None)),
        (5, fail(1, 1, cleaned)),
    ]), @r#"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 0
    1 claim 1
      task 1 attempt 1: started by w at 1, heartbeat 1
    2 yield [CancelActivity] blocked
      3@2 ActivityTaskCancelRequested 1
      task 1 attempt 1: started by w at 1, heartbeat 1, cancel requested
    3 yield [CancelActivity] blocked
    4 heartbeat 1/1
      task 1 attempt 1: started by w at 1, heartbeat 4, cancel requested
    5 fail 1/1
      4@5 ActivityTaskCanceled 1
        activity charge: activity charge was cancelled
        canceled canceled: cleaned up details "clean"
      task 1 removed
    "#);
}

#[test]
fn a_running_activity_may_complete_all_the_same() {
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", options())])),
        (1, claim(1)),
        (2, yields(2, [cancel_activity(1)])),
        (3, complete(1, 1)),
    ]), @"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 0
    1 claim 1
      task 1 attempt 1: started by w at 1, heartbeat 1
    2 yield [CancelActivity] blocked
      3@2 ActivityTaskCancelRequested 1
      task 1 attempt 1: started by w at 1, heartbeat 1, cancel requested
    3 complete 1/1
      4@3 ActivityTaskCompleted 1 3 attempt 1 by w from 1
      task 1 removed
    ");
}

#[test]
fn after_a_cancel_request_nothing_is_tried_again() {
    assert_snapshot!(check([
        (0, yields(0, [schedule("a", options()), schedule("b", options())])),
        (1, claim(1)),
        (1, claim(2)),
        (2, yields(2, [cancel_activity(1), cancel_activity(2)])),
        (3, fail(1, 1, boom())),
        (101, activity_due(2)),
    ]), @"
    0 yield [ScheduleActivity, ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 a
      3@0 ActivityTaskScheduled 2 b
      task 1 attempt 1: ready since 0
      task 2 attempt 1: ready since 0
    1 claim 1
      task 1 attempt 1: started by w at 1, heartbeat 1
    1 claim 2
      task 2 attempt 1: started by w at 1, heartbeat 1
    2 yield [CancelActivity, CancelActivity] blocked
      4@2 ActivityTaskCancelRequested 1
      5@2 ActivityTaskCancelRequested 2
      task 1 attempt 1: started by w at 1, heartbeat 1, cancel requested
      task 2 attempt 1: started by w at 1, heartbeat 1, cancel requested
    3 fail 1/1
      6@3 ActivityTaskFailed 1 attempt 1 by w cancel-requested
        activity a: activity a failed after 1 attempt(s)
        application boom: it broke
      task 1 removed
    101 activity-due 2
      7@101 ActivityTaskTimedOut 2 attempt 1 cancel-requested
        activity b: activity b failed after 1 attempt(s)
        timeout start-to-close: start-to-close timeout of 100 ms exceeded
      task 2 removed
    ");
}

#[test]
fn a_cancelled_activity_whose_worker_is_lost_ends() {
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", options())])),
        (1, claim(1)),
        (2, yields(2, [cancel_activity(1)])),
        (3, release(1)),
        (4, claim(1)),
    ]), @"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 0
    1 claim 1
      task 1 attempt 1: started by w at 1, heartbeat 1
    2 yield [CancelActivity] blocked
      3@2 ActivityTaskCancelRequested 1
      task 1 attempt 1: started by w at 1, heartbeat 1, cancel requested
    3 release 1
      4@3 ActivityTaskCanceled 1
        activity charge: activity charge was cancelled
        canceled canceled: cancelled; its worker was lost
      task 1 removed
    4 claim 1
      rejected: activity 1 is not pending: it has ended or was never scheduled
    ");
}

#[test]
fn a_cancellation_that_nobody_asked_for_is_a_failure() {
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", options())])),
        (1, claim(1)),
        (2, fail(1, 1, Failure::canceled("shutting down"))),
    ]), @"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 0
    1 claim 1
      task 1 attempt 1: started by w at 1, heartbeat 1
    2 fail 1/1
      task 1 attempt 2: backoff until 12, last failure
        application unrequested-cancel: the worker reported a cancellation that was not requested
        canceled canceled: shutting down
    ");
}

#[test]
fn cancelling_what_has_ended_or_never_was_records_nothing() {
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", options()), timer(10)])),
        (1, claim(1)),
        (2, complete(1, 1)),
        (3, yields(3, [cancel_activity(1), cancel_activity(2), cancel_activity(9)])),
        (3, yields(3, [cancel_timer(1), cancel_timer(9)])),
        (4, yields(4, [cancel_activity(0), cancel_timer(u32::MAX)])),
    ]), @"
    0 yield [ScheduleActivity, StartTimer] blocked
      2@0 ActivityTaskScheduled 1 charge
      3@0 TimerStarted 2 for 10 ms until 10
      task 1 attempt 1: ready since 0
    1 claim 1
      task 1 attempt 1: started by w at 1, heartbeat 1
    2 complete 1/1
      4@2 ActivityTaskCompleted 1 3 attempt 1 by w from 1
      task 1 removed
    3 yield [CancelActivity, CancelActivity, CancelActivity] blocked
    3 yield [CancelTimer, CancelTimer] blocked
    4 yield [CancelActivity, CancelTimer] blocked
    ");
}

#[test]
fn commands_of_one_activation_see_each_other() {
    assert_snapshot!(check([
        (0, yields(0, [
            schedule("a", options()),
            cancel_activity(1),
            cancel_activity(1),
            timer(10),
            cancel_timer(2),
            cancel_timer(2),
            schedule("b", options()),
        ])),
        (1, claim(1)),
        (2, claim(3)),
        // The task is running: the second cancellation must see the first.
        (3, yields(3, [cancel_activity(3), timer(5), cancel_activity(3), cancel_timer(4)])),
    ]), @"
    0 yield [ScheduleActivity, CancelActivity, CancelActivity, StartTimer, CancelTimer, CancelTimer, ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 a
      3@0 ActivityTaskCancelRequested 1
      4@0 ActivityTaskCanceled 1
        activity a: activity a was cancelled
        canceled canceled: cancelled while no worker had it
      5@0 TimerStarted 2 for 10 ms until 10
      6@0 TimerCanceled 2
      7@0 ActivityTaskScheduled 3 b
      task 1 attempt 1: ready since 0
      task 1 removed
      task 3 attempt 1: ready since 0
    1 claim 1
      rejected: activity 1 is not pending: it has ended or was never scheduled
    2 claim 3
      task 3 attempt 1: started by w at 2, heartbeat 2
    3 yield [CancelActivity, StartTimer, CancelActivity, CancelTimer] blocked
      8@3 ActivityTaskCancelRequested 3
      9@3 TimerStarted 4 for 5 ms until 8
      10@3 TimerCanceled 4
      task 3 attempt 1: started by w at 2, heartbeat 2, cancel requested
    ");
}

#[test]
fn the_workflow_is_asked_to_cancel_itself_once() {
    assert_snapshot!(check([
        (0, cancel("c1")),
        (1, cancel("c1")),
        (2, cancel("c2")),
    ]), @"
    0 cancel c1
      2@0 WorkflowExecutionCancelRequested enough by bob (c1)
    1 cancel c1
    2 cancel c2
    ");
}
