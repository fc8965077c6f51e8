//! One attempt of an activity: scheduled, claimed, alive, over.

use insta::assert_snapshot;
use steadfast_model::{ActivityOptions, Millis};

use crate::common::{
    activity_due, beat, boom, claim, complete, fail, options, release, retrying, schedule, signal,
    yields,
};
use crate::print::check;

#[test]
fn an_activity_costs_two_events() {
    assert_snapshot!(check([
        (1, yields(1, [schedule("charge", options())])),
        (5, claim(1)),
        (9, complete(1, 1)),
    ]), @"
    1 yield [ScheduleActivity] blocked
      2@1 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 1
    5 claim 1
      task 1 attempt 1: started by w at 5, heartbeat 5
    9 complete 1/1
      3@9 ActivityTaskCompleted 1 3 attempt 1 by w from 5
      task 1 removed
    ");
}

#[test]
fn only_a_ready_task_can_be_claimed() {
    assert_snapshot!(check([
        (0, claim(1)),
        (1, yields(1, [schedule("charge", options())])),
        (2, claim(1)),
        (3, claim(1)),
        (4, fail(1, 1, boom())),
        (5, claim(1)),
        (6, claim(2)),
    ]), @"
    0 claim 1
      rejected: activity 1 is not pending: it has ended or was never scheduled
    1 yield [ScheduleActivity] blocked
      2@1 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 1
    2 claim 1
      task 1 attempt 1: started by w at 2, heartbeat 2
    3 claim 1
      rejected: activity 1 is not waiting for a worker
    4 fail 1/1
      task 1 attempt 2: backoff until 14, last failure
        application boom: it broke
    5 claim 1
      rejected: activity 1 is not waiting for a worker
    6 claim 2
      rejected: activity 2 is not pending: it has ended or was never scheduled
    ");
}

#[test]
fn an_activity_is_completed_once() {
    assert_snapshot!(check([
        (0, complete(1, 1)),
        (1, yields(1, [schedule("charge", options())])),
        (2, complete(1, 1)),
        (3, claim(1)),
        (4, complete(1, 1)),
        (5, complete(1, 1)),
        (6, fail(1, 1, boom())),
        (7, beat(1, 1, None)),
        (8, claim(1)),
        (9, release(1)),
    ]), @"
    0 complete 1/1
      rejected: activity 1 is not pending: it has ended or was never scheduled
    1 yield [ScheduleActivity] blocked
      2@1 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 1
    2 complete 1/1
      rejected: attempt 1 of activity 1 is not running (the current attempt is 1)
    3 claim 1
      task 1 attempt 1: started by w at 3, heartbeat 3
    4 complete 1/1
      3@4 ActivityTaskCompleted 1 3 attempt 1 by w from 3
      task 1 removed
    5 complete 1/1
      rejected: activity 1 is not pending: it has ended or was never scheduled
    6 fail 1/1
      rejected: activity 1 is not pending: it has ended or was never scheduled
    7 heartbeat 1/1
      rejected: activity 1 is not pending: it has ended or was never scheduled
    8 claim 1
      rejected: activity 1 is not pending: it has ended or was never scheduled
    9 release 1
      rejected: activity 1 is not pending: it has ended or was never scheduled
    ");
}

#[test]
fn a_worker_of_an_old_attempt_is_turned_away() {
    assert_snapshot!(check([
        (1, yields(1, [schedule("charge", options())])),
        (2, claim(1)),
        (3, fail(1, 1, boom())),
        (4, complete(1, 1)),
        (5, beat(1, 1, None)),
        (13, activity_due(1)),
        (14, claim(1)),
        (15, complete(1, 1)),
        (16, fail(1, 1, boom())),
        (17, beat(1, 1, Some("50"))),
        (18, complete(1, 3)),
        (19, complete(1, 2)),
    ]), @"
    1 yield [ScheduleActivity] blocked
      2@1 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 1
    2 claim 1
      task 1 attempt 1: started by w at 2, heartbeat 2
    3 fail 1/1
      task 1 attempt 2: backoff until 13, last failure
        application boom: it broke
    4 complete 1/1
      rejected: attempt 1 of activity 1 is not running (the current attempt is 2)
    5 heartbeat 1/1
      rejected: attempt 1 of activity 1 is not running (the current attempt is 2)
    13 activity-due 1
      task 1 attempt 2: ready since 13, last failure
        application boom: it broke
    14 claim 1
      task 1 attempt 2: started by w at 14, heartbeat 14, last failure
        application boom: it broke
    15 complete 1/1
      rejected: attempt 1 of activity 1 is not running (the current attempt is 2)
    16 fail 1/1
      rejected: attempt 1 of activity 1 is not running (the current attempt is 2)
    17 heartbeat 1/1
      rejected: attempt 1 of activity 1 is not running (the current attempt is 2)
    18 complete 1/3
      rejected: attempt 3 of activity 1 is not running (the current attempt is 2)
    19 complete 1/2
      3@19 ActivityTaskCompleted 1 3 attempt 2 by w from 14
      task 1 removed
    ");
}

fn beating() -> ActivityOptions {
    ActivityOptions {
        heartbeat: Some(Millis(20)),
        ..options()
    }
}

#[test]
fn a_heartbeat_renews_the_lease_and_keeps_the_last_details() {
    assert_snapshot!(check([
        (0, yields(0, [schedule("copy", beating())])),
        (0, beat(1, 1, Some("1"))),
        (1, claim(1)),
        (15, beat(1, 1, Some("10"))),
        (30, beat(1, 1, None)),
        // A clock that steps back does not shorten the lease.
        (25, beat(1, 1, Some("20"))),
        (49, activity_due(1)),
        (50, activity_due(1)),
    ]), @"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 copy
      task 1 attempt 1: ready since 0
    0 heartbeat 1/1
      rejected: attempt 1 of activity 1 is not running (the current attempt is 1)
    1 claim 1
      task 1 attempt 1: started by w at 1, heartbeat 1
    15 heartbeat 1/1
      task 1 attempt 1: started by w at 1, heartbeat 15, details 10
    30 heartbeat 1/1
      task 1 attempt 1: started by w at 1, heartbeat 30, details 10
    25 heartbeat 1/1
      task 1 attempt 1: started by w at 1, heartbeat 30, details 20
    49 activity-due 1
      rejected: operation 1 is not due
    50 activity-due 1
      task 1 attempt 2: backoff until 60, details 20, last failure
        timeout heartbeat: heartbeat timeout of 20 ms exceeded
    ");
}

#[test]
fn details_pass_to_the_next_attempt() {
    assert_snapshot!(check([
        (0, yields(0, [schedule("copy", beating())])),
        (1, claim(1)),
        (2, beat(1, 1, Some("10"))),
        (3, fail(1, 1, boom())),
        (13, activity_due(1)),
        (14, claim(1)),
        (15, complete(1, 2)),
    ]), @"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 copy
      task 1 attempt 1: ready since 0
    1 claim 1
      task 1 attempt 1: started by w at 1, heartbeat 1
    2 heartbeat 1/1
      task 1 attempt 1: started by w at 1, heartbeat 2, details 10
    3 fail 1/1
      task 1 attempt 2: backoff until 13, details 10, last failure
        application boom: it broke
    13 activity-due 1
      task 1 attempt 2: ready since 13, details 10, last failure
        application boom: it broke
    14 claim 1
      task 1 attempt 2: started by w at 14, heartbeat 14, details 10, last failure
        application boom: it broke
    15 complete 1/2
      3@15 ActivityTaskCompleted 1 3 attempt 2 by w from 14
      task 1 removed
    ");
}

#[test]
fn a_released_attempt_waits_again_and_is_not_counted() {
    assert_snapshot!(check([
        (0, release(1)),
        (1, yields(1, [schedule("charge", retrying(|retry| retry.maximum_attempts = 1))])),
        (2, release(1)),
        (3, claim(1)),
        (4, release(1)),
        (5, complete(1, 1)),
        (6, claim(1)),
        (7, complete(1, 1)),
    ]), @"
    0 release 1
      rejected: activity 1 is not pending: it has ended or was never scheduled
    1 yield [ScheduleActivity] blocked
      2@1 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 1
    2 release 1
    3 claim 1
      task 1 attempt 1: started by w at 3, heartbeat 3
    4 release 1
      task 1 attempt 1: ready since 4
    5 complete 1/1
      rejected: attempt 1 of activity 1 is not running (the current attempt is 1)
    6 claim 1
      task 1 attempt 1: started by w at 6, heartbeat 6
    7 complete 1/1
      3@7 ActivityTaskCompleted 1 3 attempt 1 by w from 6
      task 1 removed
    ");
}

#[test]
fn a_released_attempt_in_backoff_stays_there() {
    assert_snapshot!(check([
        (1, yields(1, [schedule("charge", options())])),
        (2, claim(1)),
        (3, fail(1, 1, boom())),
        (4, release(1)),
    ]), @"
    1 yield [ScheduleActivity] blocked
      2@1 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 1
    2 claim 1
      task 1 attempt 1: started by w at 2, heartbeat 2
    3 fail 1/1
      task 1 attempt 2: backoff until 13, last failure
        application boom: it broke
    4 release 1
    ");
}

#[test]
fn activities_are_independent_and_numbered_in_the_order_of_calls() {
    assert_snapshot!(check([
        (1, yields(1, [schedule("a", options()), schedule("b", options())])),
        (2, claim(2)),
        (3, claim(1)),
        (4, complete(2, 1)),
        (5, signal("s")),
        (6, yields(4, [schedule("c", options())])),
        (7, complete(1, 1)),
        (8, claim(3)),
    ]), @"
    1 yield [ScheduleActivity, ScheduleActivity] blocked
      2@1 ActivityTaskScheduled 1 a
      3@1 ActivityTaskScheduled 2 b
      task 1 attempt 1: ready since 1
      task 2 attempt 1: ready since 1
    2 claim 2
      task 2 attempt 1: started by w at 2, heartbeat 2
    3 claim 1
      task 1 attempt 1: started by w at 3, heartbeat 3
    4 complete 2/1
      4@4 ActivityTaskCompleted 2 3 attempt 1 by w from 2
      task 2 removed
    5 signal s
      5@5 WorkflowExecutionSignaled go 4 by alice (s)
    6 yield [ScheduleActivity] blocked
      6@5 ActivityTaskScheduled 3 c
      task 3 attempt 1: ready since 5
    7 complete 1/1
      7@7 ActivityTaskCompleted 1 3 attempt 1 by w from 3
      task 1 removed
    8 claim 3
      task 3 attempt 1: started by w at 8, heartbeat 8
    ");
}
