//! The timeouts of one attempt: the worker takes too long, or falls silent.

use insta::assert_snapshot;
use steadfast_model::{ActivityOptions, Millis};

use crate::common::{
    activity_due, beat, boom, claim, complete, fail, options, retrying, schedule, yields,
};
use crate::print::check;

fn within(ms: u64) -> ActivityOptions {
    ActivityOptions {
        schedule_to_close: Some(Millis(ms)),
        ..options()
    }
}

fn beating(ms: u64, options: ActivityOptions) -> ActivityOptions {
    ActivityOptions {
        heartbeat: Some(Millis(ms)),
        ..options
    }
}

#[test]
fn a_slow_attempt_is_tried_again() {
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", options())])),
        (5, claim(1)),
        (104, activity_due(1)),
        (105, activity_due(1)),
        (106, complete(1, 1)),
        (115, activity_due(1)),
        (116, claim(1)),
        (117, complete(1, 2)),
    ]), @"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 0
    5 claim 1
      task 1 attempt 1: started by w at 5, heartbeat 5
    104 activity-due 1
      rejected: operation 1 is not due
    105 activity-due 1
      task 1 attempt 2: backoff until 115, last failure
        timeout start-to-close: start-to-close timeout of 100 ms exceeded
    106 complete 1/1
      rejected: attempt 1 of activity 1 is not running (the current attempt is 2)
    115 activity-due 1
      task 1 attempt 2: ready since 115, last failure
        timeout start-to-close: start-to-close timeout of 100 ms exceeded
    116 claim 1
      task 1 attempt 2: started by w at 116, heartbeat 116, last failure
        timeout start-to-close: start-to-close timeout of 100 ms exceeded
    117 complete 1/2
      3@117 ActivityTaskCompleted 1 3 attempt 2 by w from 116
      task 1 removed
    ");
}

#[test]
fn the_last_slow_attempt_keeps_the_failure_before_it() {
    let options = retrying(|retry| retry.maximum_attempts = 2);
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", options)])),
        (1, claim(1)),
        (2, fail(1, 1, boom())),
        (12, activity_due(1)),
        (13, claim(1)),
        (14, beat(1, 2, Some("10"))),
        (113, activity_due(1)),
    ]), @"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 0
    1 claim 1
      task 1 attempt 1: started by w at 1, heartbeat 1
    2 fail 1/1
      task 1 attempt 2: backoff until 12, last failure
        application boom: it broke
    12 activity-due 1
      task 1 attempt 2: ready since 12, last failure
        application boom: it broke
    13 claim 1
      task 1 attempt 2: started by w at 13, heartbeat 13, last failure
        application boom: it broke
    14 heartbeat 1/2
      task 1 attempt 2: started by w at 13, heartbeat 14, details 10, last failure
        application boom: it broke
    113 activity-due 1
      3@113 ActivityTaskTimedOut 1 attempt 2 maximum-attempts-reached
        activity charge: activity charge failed after 2 attempt(s)
        timeout start-to-close: start-to-close timeout of 100 ms exceeded details 10
        application boom: it broke
      task 1 removed
    ");
}

#[test]
fn a_slow_attempt_without_room_for_another_one_ends() {
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", within(105))])),
        (0, claim(1)),
        (1, beat(1, 1, Some("10"))),
        (100, activity_due(1)),
    ]), @"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 0
    0 claim 1
      task 1 attempt 1: started by w at 0, heartbeat 0
    1 heartbeat 1/1
      task 1 attempt 1: started by w at 0, heartbeat 1, details 10
    100 activity-due 1
      3@100 ActivityTaskTimedOut 1 attempt 1 timeout
        activity charge: activity charge failed after 1 attempt(s)
        timeout schedule-to-close: the next attempt would start in 10 ms, but only 5 ms of the schedule-to-close limit of 105 ms are left details 10
        timeout start-to-close: start-to-close timeout of 100 ms exceeded
      task 1 removed
    ");
}

#[test]
fn a_silent_worker_loses_its_attempt() {
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", beating(20, options()))])),
        (5, claim(1)),
        (24, activity_due(1)),
        (25, activity_due(1)),
        (26, beat(1, 1, Some("10"))),
    ]), @"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 0
    5 claim 1
      task 1 attempt 1: started by w at 5, heartbeat 5
    24 activity-due 1
      rejected: operation 1 is not due
    25 activity-due 1
      task 1 attempt 2: backoff until 35, last failure
        timeout heartbeat: heartbeat timeout of 20 ms exceeded
    26 heartbeat 1/1
      rejected: attempt 1 of activity 1 is not running (the current attempt is 2)
    ");
}

#[test]
fn the_last_silent_attempt_keeps_its_details() {
    let once = beating(20, retrying(|retry| retry.maximum_attempts = 1));
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", once)])),
        (1, claim(1)),
        (2, beat(1, 1, Some("10"))),
        (22, activity_due(1)),
    ]), @"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 0
    1 claim 1
      task 1 attempt 1: started by w at 1, heartbeat 1
    2 heartbeat 1/1
      task 1 attempt 1: started by w at 1, heartbeat 2, details 10
    22 activity-due 1
      3@22 ActivityTaskTimedOut 1 attempt 1 maximum-attempts-reached
        activity charge: activity charge failed after 1 attempt(s)
        timeout heartbeat: heartbeat timeout of 20 ms exceeded details 10
      task 1 removed
    ");
}

#[test]
fn timeouts_of_an_attempt_can_be_listed_as_final() {
    let listed = |code: &str| retrying(|retry| retry.non_retryable_codes = vec![code.into()]);
    assert_snapshot!(check([
        (0, yields(0, [
            schedule("slow", listed("timeout:start-to-close")),
            schedule("silent", beating(20, listed("timeout:heartbeat"))),
            schedule("other", beating(20, listed("timeout:start-to-close"))),
        ])),
        (0, claim(1)),
        (0, claim(2)),
        (0, claim(3)),
        (20, activity_due(2)),
        (20, activity_due(3)),
        (100, activity_due(1)),
    ]), @"
    0 yield [ScheduleActivity, ScheduleActivity, ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 slow
      3@0 ActivityTaskScheduled 2 silent
      4@0 ActivityTaskScheduled 3 other
      task 1 attempt 1: ready since 0
      task 2 attempt 1: ready since 0
      task 3 attempt 1: ready since 0
    0 claim 1
      task 1 attempt 1: started by w at 0, heartbeat 0
    0 claim 2
      task 2 attempt 1: started by w at 0, heartbeat 0
    0 claim 3
      task 3 attempt 1: started by w at 0, heartbeat 0
    20 activity-due 2
      5@20 ActivityTaskTimedOut 2 attempt 1 non-retryable-failure
        activity silent: activity silent failed after 1 attempt(s)
        timeout heartbeat: heartbeat timeout of 20 ms exceeded
      task 2 removed
    20 activity-due 3
      task 3 attempt 2: backoff until 30, last failure
        timeout heartbeat: heartbeat timeout of 20 ms exceeded
    100 activity-due 1
      6@100 ActivityTaskTimedOut 1 attempt 1 non-retryable-failure
        activity slow: activity slow failed after 1 attempt(s)
        timeout start-to-close: start-to-close timeout of 100 ms exceeded
      task 1 removed
    ");
}
