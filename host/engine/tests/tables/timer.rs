//! Workflow timers.

use insta::assert_snapshot;

use crate::common::{
    World, activity_due, cancel_timer, claim, complete, options, schedule, signal, timer,
    timer_due, yields,
};
use crate::print::{check, play};

#[test]
fn a_timer_fires_when_due_not_before_and_once() {
    assert_snapshot!(check([
        (0, timer_due(1)),
        (5, yields(5, [timer(10)])),
        (14, timer_due(1)),
        (15, timer_due(1)),
        (16, timer_due(1)),
        (17, timer_due(2)),
    ]), @"
    0 timer-due 1
      rejected: operation 1 is not due
    5 yield [StartTimer] blocked
      2@5 TimerStarted 1 for 10 ms until 15
    14 timer-due 1
      rejected: operation 1 is not due
    15 timer-due 1
      3@15 TimerFired 1
    16 timer-due 1
      rejected: operation 1 is not due
    17 timer-due 2
      rejected: operation 2 is not due
    ");
}

#[test]
fn a_timer_counts_from_the_time_that_the_workflow_saw() {
    // The activation began at 5 and was recorded at 8, after a signal at 7.
    assert_snapshot!(check([
        (7, signal("s")),
        (8, yields(5, [timer(10)])),
        (14, timer_due(1)),
        (15, timer_due(1)),
    ]), @"
    7 signal s
      2@7 WorkflowExecutionSignaled go 4 by alice (s)
    8 yield [StartTimer] blocked
      3@7 TimerStarted 1 for 10 ms until 15
    14 timer-due 1
      rejected: operation 1 is not due
    15 timer-due 1
      4@15 TimerFired 1
    ");
}

#[test]
fn a_cancelled_timer_never_fires() {
    assert_snapshot!(check([
        (0, yields(0, [timer(10)])),
        (1, yields(1, [cancel_timer(1)])),
        (10, timer_due(1)),
        (11, yields(11, [cancel_timer(1)])),
    ]), @"
    0 yield [StartTimer] blocked
      2@0 TimerStarted 1 for 10 ms until 10
    1 yield [CancelTimer] blocked
      3@1 TimerCanceled 1
    10 timer-due 1
      rejected: operation 1 is not due
    11 yield [CancelTimer] blocked
    ");
}

#[test]
fn a_timer_that_fired_stays_fired() {
    assert_snapshot!(check([
        (0, yields(0, [timer(10)])),
        (10, timer_due(1)),
        (11, yields(0, [cancel_timer(1)])),
    ]), @"
    0 yield [StartTimer] blocked
      2@0 TimerStarted 1 for 10 ms until 10
    10 timer-due 1
      3@10 TimerFired 1
    11 yield [CancelTimer] blocked
    ");
}

#[test]
fn timers_due_at_the_same_time_fire_in_the_order_asked() {
    assert_snapshot!(check([
        (0, yields(0, [timer(10), timer(10), timer(0)])),
        (0, timer_due(3)),
        (10, timer_due(2)),
        (10, timer_due(1)),
    ]), @"
    0 yield [StartTimer, StartTimer, StartTimer] blocked
      2@0 TimerStarted 1 for 10 ms until 10
      3@0 TimerStarted 2 for 10 ms until 10
      4@0 TimerStarted 3 for 0 ms until 0
    0 timer-due 3
      5@0 TimerFired 3
    10 timer-due 2
      6@10 TimerFired 2
    10 timer-due 1
      7@10 TimerFired 1
    ");
}

#[test]
fn a_timer_of_a_hundred_years_and_more_is_cut_to_a_hundred() {
    assert_snapshot!(check([
        (0, yields(0, [timer(3_153_600_000_000), timer(3_153_600_000_001), timer(u64::MAX)])),
        (3_153_599_999_999, timer_due(2)),
        (3_153_600_000_000, timer_due(2)),
    ]), @"
    0 yield [StartTimer, StartTimer, StartTimer] blocked
      2@0 TimerStarted 1 for 3153600000000 ms until 3153600000000
      3@0 TimerStarted 2 for 3153600000000 ms until 3153600000000
      4@0 TimerStarted 3 for 3153600000000 ms until 3153600000000
    3153599999999 timer-due 2
      rejected: operation 2 is not due
    3153600000000 timer-due 2
      5@3153600000000 TimerFired 2
    ");
}

#[test]
fn the_end_of_time_is_no_trap() {
    let mut world = World::begin(u64::MAX - 5);
    assert_snapshot!(play(&mut world, [
        (u64::MAX - 5, yields(u64::MAX - 5, [timer(10), schedule("charge", options())])),
        (u64::MAX - 1, timer_due(1)),
        (u64::MAX - 1, claim(2)),
        (u64::MAX, timer_due(1)),
        (u64::MAX, activity_due(2)),
    ]), @"
    18446744073709551610 yield [StartTimer, ScheduleActivity] blocked
      2@18446744073709551610 TimerStarted 1 for 10 ms until 18446744073709551615
      3@18446744073709551610 ActivityTaskScheduled 2 charge
      task 2 attempt 1: ready since 18446744073709551610
    18446744073709551614 timer-due 1
      rejected: operation 1 is not due
    18446744073709551614 claim 2
      task 2 attempt 1: started by w at 18446744073709551614, heartbeat 18446744073709551614
    18446744073709551615 timer-due 1
      4@18446744073709551615 TimerFired 1
    18446744073709551615 activity-due 2
      task 2 attempt 2: backoff until 18446744073709551615, last failure
        timeout start-to-close: start-to-close timeout of 100 ms exceeded
    ");
}

#[test]
fn a_clock_that_steps_back_neither_fires_early_nor_turns_time_round() {
    assert_snapshot!(check([
        (100, yields(100, [timer(50)])),
        (40, signal("a")),
        (149, timer_due(1)),
        (90, yields(90, [timer(10), schedule("charge", options())])),
        (90, claim(3)),
        (99, timer_due(2)),
        (100, timer_due(2)),
        (80, complete(3, 1)),
        (150, timer_due(1)),
    ]), @"
    100 yield [StartTimer] blocked
      2@100 TimerStarted 1 for 50 ms until 150
    40 signal a
      3@100 WorkflowExecutionSignaled go 4 by alice (a)
    149 timer-due 1
      rejected: operation 1 is not due
    90 yield [StartTimer, ScheduleActivity] blocked
      4@100 TimerStarted 2 for 10 ms until 100
      5@100 ActivityTaskScheduled 3 charge
      task 3 attempt 1: ready since 100
    90 claim 3
      task 3 attempt 1: started by w at 90, heartbeat 90
    99 timer-due 2
      rejected: operation 2 is not due
    100 timer-due 2
      6@100 TimerFired 2
    80 complete 3/1
      7@100 ActivityTaskCompleted 3 3 attempt 1 by w from 90
      task 3 removed
    150 timer-due 1
      8@150 TimerFired 1
    ");
}

#[test]
fn timers_and_activities_are_not_mixed_up() {
    assert_snapshot!(check([
        (0, yields(0, [timer(1), schedule("charge", options())])),
        (5, activity_due(1)),
        (5, claim(1)),
        (5, complete(1, 1)),
        (5, timer_due(2)),
    ]), @"
    0 yield [StartTimer, ScheduleActivity] blocked
      2@0 TimerStarted 1 for 1 ms until 1
      3@0 ActivityTaskScheduled 2 charge
      task 2 attempt 1: ready since 0
    5 activity-due 1
      rejected: activity 1 is not pending: it has ended or was never scheduled
    5 claim 1
      rejected: activity 1 is not pending: it has ended or was never scheduled
    5 complete 1/1
      rejected: activity 1 is not pending: it has ended or was never scheduled
    5 timer-due 2
      rejected: operation 2 is not due
    ");
}
