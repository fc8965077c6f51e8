//! The limits over all attempts and in the queue, in each state of an activity. The limits of one
//! attempt are in `lease.rs`.

use insta::assert_snapshot;
use steadfast_model::{ActivityOptions, Failure, FailureKind, Frame, Millis};

use crate::common::{activity_due, beat, boom, claim, complete, fail, options, schedule, yields};
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
fn a_task_without_limits_is_never_due_in_its_queue() {
    assert_snapshot!(check([
        (0, activity_due(1)),
        (0, yields(0, [schedule("charge", options())])),
        (u64::MAX, activity_due(1)),
    ]), @"
    0 activity-due 1
      rejected: activity 1 is not pending: it has ended or was never scheduled
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 0
    18446744073709551615 activity-due 1
      rejected: operation 1 is not due
    ");
}

#[test]
fn waiting_too_long_in_the_queue_is_final() {
    let options = ActivityOptions {
        schedule_to_start: Some(Millis(10)),
        ..options()
    };
    assert_snapshot!(check([
        (5, yields(5, [schedule("charge", options)])),
        (14, activity_due(1)),
        (15, activity_due(1)),
        (16, claim(1)),
    ]), @"
    5 yield [ScheduleActivity] blocked
      2@5 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 5
    14 activity-due 1
      rejected: operation 1 is not due
    15 activity-due 1
      3@15 ActivityTaskTimedOut 1 attempt 1 timeout
        activity charge: activity charge failed after 1 attempt(s)
        timeout schedule-to-start: schedule-to-start timeout of 10 ms exceeded in attempt 1
      task 1 removed
    16 claim 1
      rejected: activity 1 is not pending: it has ended or was never scheduled
    ");
}

#[test]
fn every_attempt_has_the_whole_queue_limit_and_the_last_failure_is_the_cause() {
    let options = ActivityOptions {
        schedule_to_start: Some(Millis(10)),
        ..options()
    };
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", options)])),
        (9, claim(1)),
        // Not in the queue: the limit of an attempt is what counts.
        (50, activity_due(1)),
        (51, fail(1, 1, boom())),
        (61, activity_due(1)),
        (70, activity_due(1)),
        (71, activity_due(1)),
    ]), @"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 0
    9 claim 1
      task 1 attempt 1: started by w at 9, heartbeat 9
    50 activity-due 1
      rejected: operation 1 is not due
    51 fail 1/1
      task 1 attempt 2: backoff until 61, last failure
        application boom: it broke
    61 activity-due 1
      task 1 attempt 2: ready since 61, last failure
        application boom: it broke
    70 activity-due 1
      rejected: operation 1 is not due
    71 activity-due 1
      3@71 ActivityTaskTimedOut 1 attempt 2 timeout
        activity charge: activity charge failed after 2 attempt(s)
        timeout schedule-to-start: schedule-to-start timeout of 10 ms exceeded in attempt 2
        application boom: it broke
      task 1 removed
    ");
}

#[test]
fn the_limit_over_all_attempts_ends_a_ready_task() {
    assert_snapshot!(check([
        (5, yields(5, [schedule("charge", within(50))])),
        (54, activity_due(1)),
        (55, activity_due(1)),
    ]), @"
    5 yield [ScheduleActivity] blocked
      2@5 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 5
    54 activity-due 1
      rejected: operation 1 is not due
    55 activity-due 1
      3@55 ActivityTaskTimedOut 1 attempt 1 timeout
        activity charge: activity charge failed after 1 attempt(s)
        timeout schedule-to-close: schedule-to-close timeout of 50 ms exceeded in attempt 1
      task 1 removed
    ");
}

#[test]
fn the_limit_over_all_attempts_ends_a_started_task() {
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", within(50))])),
        (1, claim(1)),
        (2, beat(1, 1, Some("10"))),
        (49, activity_due(1)),
        (50, activity_due(1)),
        (51, complete(1, 1)),
    ]), @"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 0
    1 claim 1
      task 1 attempt 1: started by w at 1, heartbeat 1
    2 heartbeat 1/1
      task 1 attempt 1: started by w at 1, heartbeat 2, details 10
    49 activity-due 1
      rejected: operation 1 is not due
    50 activity-due 1
      3@50 ActivityTaskTimedOut 1 attempt 1 timeout
        activity charge: activity charge failed after 1 attempt(s)
        timeout schedule-to-close: schedule-to-close timeout of 50 ms exceeded in attempt 1 details 10
      task 1 removed
    51 complete 1/1
      rejected: activity 1 is not pending: it has ended or was never scheduled
    ");
}

#[test]
fn the_limit_over_all_attempts_ends_a_waiting_task_if_it_was_overlooked_that_long() {
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", within(50))])),
        (1, claim(1)),
        (2, beat(1, 1, Some("10"))),
        (3, fail(1, 1, boom())),
        (60, activity_due(1)),
    ]), @"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 0
    1 claim 1
      task 1 attempt 1: started by w at 1, heartbeat 1
    2 heartbeat 1/1
      task 1 attempt 1: started by w at 1, heartbeat 2, details 10
    3 fail 1/1
      task 1 attempt 2: backoff until 13, details 10, last failure
        application boom: it broke
    60 activity-due 1
      3@60 ActivityTaskTimedOut 1 attempt 2 timeout
        activity charge: activity charge failed after 2 attempt(s)
        timeout schedule-to-close: schedule-to-close timeout of 50 ms exceeded in attempt 2 details 10
        application boom: it broke
      task 1 removed
    ");
}

#[test]
fn without_room_for_another_attempt_it_ends_at_once_and_says_so() {
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", within(50))])),
        (1, claim(1)),
        (2, beat(1, 1, Some("10"))),
        (39, fail(1, 1, boom())),
        // An attempt that would begin at the deadline is no attempt.
        (100, yields(100, [schedule("charge", within(50))])),
        (101, claim(2)),
        (140, fail(2, 1, boom())),
        (141, yields(141, [schedule("charge", within(50))])),
        (142, claim(3)),
        (145, fail(3, 1, Failure::new(Frame {
            next_retry_delay: Millis(3_600_000),
            ..Frame::new(FailureKind::Application, "busy", "come back later")
        }))),
    ]), @"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 0
    1 claim 1
      task 1 attempt 1: started by w at 1, heartbeat 1
    2 heartbeat 1/1
      task 1 attempt 1: started by w at 1, heartbeat 2, details 10
    39 fail 1/1
      task 1 attempt 2: backoff until 49, details 10, last failure
        application boom: it broke
    100 yield [ScheduleActivity] blocked
      3@100 ActivityTaskScheduled 2 charge
      task 2 attempt 1: ready since 100
    101 claim 2
      task 2 attempt 1: started by w at 101, heartbeat 101
    140 fail 2/1
      4@140 ActivityTaskTimedOut 2 attempt 1 timeout
        activity charge: activity charge failed after 1 attempt(s)
        timeout schedule-to-close: the next attempt would start in 10 ms, but only 10 ms of the schedule-to-close limit of 50 ms are left
        application boom: it broke
      task 2 removed
    141 yield [ScheduleActivity] blocked
      5@141 ActivityTaskScheduled 3 charge
      task 3 attempt 1: ready since 141
    142 claim 3
      task 3 attempt 1: started by w at 142, heartbeat 142
    145 fail 3/1
      6@145 ActivityTaskTimedOut 3 attempt 1 timeout
        activity charge: activity charge failed after 1 attempt(s)
        timeout schedule-to-close: the next attempt would start in 3600000 ms, but only 46 ms of the schedule-to-close limit of 50 ms are left
        application busy: come back later
      task 3 removed
    ");
}

#[test]
fn a_report_after_the_deadline_has_no_time_left() {
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", within(50))])),
        (1, claim(1)),
        (70, fail(1, 1, boom())),
    ]), @"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 0
    1 claim 1
      task 1 attempt 1: started by w at 1, heartbeat 1
    70 fail 1/1
      3@70 ActivityTaskTimedOut 1 attempt 1 timeout
        activity charge: activity charge failed after 1 attempt(s)
        timeout schedule-to-close: the next attempt would start in 10 ms, but only 0 ms of the schedule-to-close limit of 50 ms are left
        application boom: it broke
      task 1 removed
    ");
}

#[test]
fn when_several_limits_have_passed_the_widest_is_named() {
    assert_snapshot!(check([
        (0, yields(0, [
            schedule("all", beating(20, within(110))),
            schedule("attempt", beating(20, options())),
        ])),
        (0, claim(1)),
        (0, claim(2)),
        (500, activity_due(1)),
        (500, activity_due(2)),
    ]), @"
    0 yield [ScheduleActivity, ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 all
      3@0 ActivityTaskScheduled 2 attempt
      task 1 attempt 1: ready since 0
      task 2 attempt 1: ready since 0
    0 claim 1
      task 1 attempt 1: started by w at 0, heartbeat 0
    0 claim 2
      task 2 attempt 1: started by w at 0, heartbeat 0
    500 activity-due 1
      4@500 ActivityTaskTimedOut 1 attempt 1 timeout
        activity all: activity all failed after 1 attempt(s)
        timeout schedule-to-close: schedule-to-close timeout of 110 ms exceeded in attempt 1
      task 1 removed
    500 activity-due 2
      task 2 attempt 2: backoff until 510, last failure
        timeout start-to-close: start-to-close timeout of 100 ms exceeded
    ");
}
