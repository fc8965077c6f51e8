//! When a failed attempt is tried again, and why not.

use insta::assert_snapshot;
use steadfast_engine::Request;
use steadfast_model::limits::LAST_FAILURE_BYTES_MAX;
use steadfast_model::{Failure, FailureKind, Frame, Millis};

use crate::common::{
    World, activity_due, beat, boom, claim, complete, fail, options, retrying, schedule, yields,
};
use crate::print::check;

fn framed(change: impl FnOnce(&mut Frame)) -> Failure {
    let mut frame = Frame::new(FailureKind::Application, "boom", "it broke");
    change(&mut frame);
    Failure::new(frame)
}

#[test]
fn waits_double_between_attempts() {
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", options())])),
        (0, claim(1)),
        (0, fail(1, 1, boom())),
        (9, activity_due(1)),
        (10, activity_due(1)),
        (10, activity_due(1)),
        (10, claim(1)),
        (10, fail(1, 2, boom())),
        (29, activity_due(1)),
        (30, activity_due(1)),
        (31, claim(1)),
        (32, fail(1, 3, boom())),
        (72, activity_due(1)),
        (73, claim(1)),
        (74, complete(1, 4)),
    ]), @"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 0
    0 claim 1
      task 1 attempt 1: started by w at 0, heartbeat 0
    0 fail 1/1
      task 1 attempt 2: backoff until 10, last failure
        application boom: it broke
    9 activity-due 1
      rejected: operation 1 is not due
    10 activity-due 1
      task 1 attempt 2: ready since 10, last failure
        application boom: it broke
    10 activity-due 1
      rejected: operation 1 is not due
    10 claim 1
      task 1 attempt 2: started by w at 10, heartbeat 10, last failure
        application boom: it broke
    10 fail 1/2
      task 1 attempt 3: backoff until 30, last failure
        application boom: it broke
    29 activity-due 1
      rejected: operation 1 is not due
    30 activity-due 1
      task 1 attempt 3: ready since 30, last failure
        application boom: it broke
    31 claim 1
      task 1 attempt 3: started by w at 31, heartbeat 31, last failure
        application boom: it broke
    32 fail 1/3
      task 1 attempt 4: backoff until 72, last failure
        application boom: it broke
    72 activity-due 1
      task 1 attempt 4: ready since 72, last failure
        application boom: it broke
    73 claim 1
      task 1 attempt 4: started by w at 73, heartbeat 73, last failure
        application boom: it broke
    74 complete 1/4
      3@74 ActivityTaskCompleted 1 3 attempt 4 by w from 73
      task 1 removed
    ");
}

#[test]
fn a_failure_may_name_its_own_delay() {
    let own = |ms| framed(|frame| frame.next_retry_delay = Millis(ms));
    let capped = retrying(|retry| retry.maximum_interval = Millis(15));
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", capped)])),
        (0, claim(1)),
        // Longer than the policy's maximum.
        (0, fail(1, 1, own(500))),
        (500, activity_due(1)),
        (500, claim(1)),
        // The attempts went on counting: the policy's own wait would be 20, at most 15.
        (500, fail(1, 2, boom())),
        (515, activity_due(1)),
        (515, claim(1)),
        // 100 years at most.
        (515, fail(1, 3, own(u64::MAX))),
    ]), @"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 0
    0 claim 1
      task 1 attempt 1: started by w at 0, heartbeat 0
    0 fail 1/1
      task 1 attempt 2: backoff until 500, last failure
        application boom: it broke
    500 activity-due 1
      task 1 attempt 2: ready since 500, last failure
        application boom: it broke
    500 claim 1
      task 1 attempt 2: started by w at 500, heartbeat 500, last failure
        application boom: it broke
    500 fail 1/2
      task 1 attempt 3: backoff until 515, last failure
        application boom: it broke
    515 activity-due 1
      task 1 attempt 3: ready since 515, last failure
        application boom: it broke
    515 claim 1
      task 1 attempt 3: started by w at 515, heartbeat 515, last failure
        application boom: it broke
    515 fail 1/3
      task 1 attempt 4: backoff until 3153600000515, last failure
        application boom: it broke
    ");
}

#[test]
fn the_last_attempt_allowed_is_the_last() {
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", retrying(|retry| retry.maximum_attempts = 2))])),
        (1, claim(1)),
        (2, fail(1, 1, boom())),
        (12, activity_due(1)),
        (13, claim(1)),
        (14, fail(1, 2, framed(|frame| frame.next_retry_delay = Millis(1)))),
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
    14 fail 1/2
      3@14 ActivityTaskFailed 1 attempt 2 by w maximum-attempts-reached
        activity charge: activity charge failed after 2 attempt(s)
        application boom: it broke
      task 1 removed
    ");
}

#[test]
fn one_attempt_allowed_means_no_retry() {
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", retrying(|retry| retry.maximum_attempts = 1))])),
        (1, claim(1)),
        (2, fail(1, 1, boom())),
    ]), @"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 0
    1 claim 1
      task 1 attempt 1: started by w at 1, heartbeat 1
    2 fail 1/1
      3@2 ActivityTaskFailed 1 attempt 1 by w maximum-attempts-reached
        activity charge: activity charge failed after 1 attempt(s)
        application boom: it broke
      task 1 removed
    ");
}

#[test]
fn a_failure_may_say_that_a_retry_cannot_help() {
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", options())])),
        (1, claim(1)),
        (2, fail(1, 1, framed(|frame| {
            frame.non_retryable = true;
            frame.next_retry_delay = Millis(1);
        }))),
    ]), @"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 0
    1 claim 1
      task 1 attempt 1: started by w at 1, heartbeat 1
    2 fail 1/1
      3@2 ActivityTaskFailed 1 attempt 1 by w non-retryable-failure
        activity charge: activity charge failed after 1 attempt(s)
        application boom: it broke
      task 1 removed
    ");
}

#[test]
fn listed_codes_are_final_and_match_exactly() {
    let listed = || retrying(|retry| retry.non_retryable_codes = vec!["boom".into()]);
    let coded = |code: &str| Failure::application(code, "boom");
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", listed())])),
        (1, claim(1)),
        (2, fail(1, 1, coded("Boom"))),
        (12, activity_due(1)),
        (13, claim(1)),
        (14, fail(1, 2, coded("boom!"))),
        (34, activity_due(1)),
        (35, claim(1)),
        // Only the outermost frame counts.
        (36, fail(1, 3, coded("boom").wrapped(Frame::new(FailureKind::Activity, "inner", "")))),
        (76, activity_due(1)),
        (77, claim(1)),
        (78, fail(1, 4, coded("boom"))),
    ]), @"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 0
    1 claim 1
      task 1 attempt 1: started by w at 1, heartbeat 1
    2 fail 1/1
      task 1 attempt 2: backoff until 12, last failure
        application Boom: boom
    12 activity-due 1
      task 1 attempt 2: ready since 12, last failure
        application Boom: boom
    13 claim 1
      task 1 attempt 2: started by w at 13, heartbeat 13, last failure
        application Boom: boom
    14 fail 1/2
      task 1 attempt 3: backoff until 34, last failure
        application boom!: boom
    34 activity-due 1
      task 1 attempt 3: ready since 34, last failure
        application boom!: boom
    35 claim 1
      task 1 attempt 3: started by w at 35, heartbeat 35, last failure
        application boom!: boom
    36 fail 1/3
      task 1 attempt 4: backoff until 76, last failure
        activity inner: 
        application boom: boom
    76 activity-due 1
      task 1 attempt 4: ready since 76, last failure
        activity inner: 
        application boom: boom
    77 claim 1
      task 1 attempt 4: started by w at 77, heartbeat 77, last failure
        activity inner: 
        application boom: boom
    78 fail 1/4
      3@78 ActivityTaskFailed 1 attempt 4 by w non-retryable-failure
        activity charge: activity charge failed after 4 attempt(s)
        application boom: boom
      task 1 removed
    ");
}

#[test]
fn every_kind_of_failure_is_retried_but_a_termination() {
    let kinds = [
        FailureKind::Application,
        FailureKind::Timeout,
        FailureKind::Canceled,
        FailureKind::Server,
        FailureKind::Activity,
        FailureKind::Terminated,
    ];
    let mut ends = Vec::new();
    for kind in kinds {
        let mut world = World::begin(0);
        let failure = Failure::new(Frame::new(kind, "code", "text"));
        let script = [
            yields(0, [schedule("charge", options())]),
            claim(1),
            fail(1, 1, failure),
        ];
        let is_open = script.iter().all(|request| world.step(0, request).is_ok())
            && !world.execution.tasks.is_empty();
        ends.push((kind.name(), if is_open { "again" } else { "final" }));
    }
    assert_snapshot!(format!("{ends:?}"), @r#"[("application", "again"), ("timeout", "again"), ("canceled", "again"), ("server", "again"), ("activity", "again"), ("terminated", "final")]"#);
}

#[test]
fn a_timeout_that_a_worker_reports_is_a_failure_of_the_worker() {
    let lost = Failure::application("inner", "cause").wrapped(Frame::new(
        FailureKind::Timeout,
        "start-to-close",
        "a call inside timed out",
    ));
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", retrying(|retry| retry.maximum_attempts = 1))])),
        (1, claim(1)),
        (2, beat(1, 1, Some("10"))),
        (3, fail(1, 1, lost)),
    ]), @"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 0
    1 claim 1
      task 1 attempt 1: started by w at 1, heartbeat 1
    2 heartbeat 1/1
      task 1 attempt 1: started by w at 1, heartbeat 2, details 10
    3 fail 1/1
      3@3 ActivityTaskFailed 1 attempt 1 by w maximum-attempts-reached
        activity charge: activity charge failed after 1 attempt(s)
        timeout start-to-close: a call inside timed out
        application inner: cause
      task 1 removed
    ");
}

#[test]
fn a_failure_without_frames_is_retried() {
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", options())])),
        (1, claim(1)),
        (2, fail(1, 1, Failure::default())),
    ]), @"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 0
    1 claim 1
      task 1 attempt 1: started by w at 1, heartbeat 1
    2 fail 1/1
      task 1 attempt 2: backoff until 12, last failure
    ");
}

#[test]
fn no_wait_makes_the_next_attempt_ready_at_once() {
    assert_snapshot!(check([
        (0, yields(0, [schedule("charge", retrying(|retry| retry.initial_interval = Millis(0)))])),
        (1, claim(1)),
        (2, fail(1, 1, boom())),
        (3, claim(1)),
    ]), @"
    0 yield [ScheduleActivity] blocked
      2@0 ActivityTaskScheduled 1 charge
      task 1 attempt 1: ready since 0
    1 claim 1
      task 1 attempt 1: started by w at 1, heartbeat 1
    2 fail 1/1
      task 1 attempt 2: ready since 2, last failure
        application boom: it broke
    3 claim 1
      task 1 attempt 2: started by w at 3, heartbeat 3, last failure
        application boom: it broke
    ");
}

#[test]
fn only_a_reminder_of_a_large_failure_is_kept() {
    let mut world = World::begin(0);
    let script: [Request; 3] = [
        yields(0, [schedule("charge", options())]),
        claim(1),
        fail(
            1,
            1,
            Failure::application("boom", "x".repeat(3 * LAST_FAILURE_BYTES_MAX)),
        ),
    ];
    for request in &script {
        world.step(0, request).expect("accepted");
    }
    let task = world.execution.tasks.values().next().expect("pending");
    let kept = task.last_failure.as_ref().expect("a failure").size_bytes();
    assert!((1000..=LAST_FAILURE_BYTES_MAX).contains(&kept), "{kept}");
}
