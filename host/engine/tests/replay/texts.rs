//! What a mismatch says, for each way in which code can differ.

use insta::assert_snapshot;
use steadfast_engine::Replay;
use steadfast_model::command::Step;
use steadfast_model::{Event, Seq, Timestamp};

use crate::guest::{End, Op, Script};
use crate::live::{Happening, Live, replay};

/// 1 started, 2 activity a1, 3 timer, 4 signal, 5 timer cancelled, 6 activity a2, 7 and 8 both
/// completed, 9 completed.
fn script() -> Script {
    Script::new(vec![
        Op::Schedule(1),
        Op::Timer(60_000),
        Op::AwaitSignal,
        Op::Cancel(1),
        Op::Schedule(2),
        Op::Await(0),
        Op::Await(2),
    ])
}

fn history() -> Vec<Event> {
    let mut live = Live::begin(&script());
    use Happening::{Drive, Signal, Yield};
    for happening in [Yield, Signal, Drive, Yield] {
        assert!(live.happen(happening));
    }
    live.drain();
    live.world.history
}

fn changed(change: impl FnOnce(&mut Script)) -> String {
    let mut script = script();
    change(&mut script);
    match replay(&history(), &script) {
        Ok(_) => "no difference".into(),
        Err(mismatch) => mismatch.to_string(),
    }
}

#[test]
fn the_history_is_the_one_described() {
    let lines: Vec<_> = history()
        .iter()
        .map(|e| format!("{} {}", e.number, e.kind.name()))
        .collect();
    assert_snapshot!(lines.join("\n"), @"
    1 WorkflowExecutionStarted
    2 ActivityTaskScheduled
    3 TimerStarted
    4 WorkflowExecutionSignaled
    5 TimerCanceled
    6 ActivityTaskScheduled
    7 ActivityTaskCompleted
    8 ActivityTaskCompleted
    9 WorkflowExecutionCompleted
    ");
    assert_eq!(changed(|_| {}), "no difference");
}

fn remove(script: &mut Script, line: usize) {
    script.ops.remove(line);
}

#[test]
fn a_missing_call() {
    assert_snapshot!(changed(|s| remove(s, 0)), @"nondeterminism at event 2: the history has ActivityTaskScheduled a1 (command 1), the code made StartTimer 60000 ms (command 1) after event 1");
    assert_snapshot!(changed(|s| remove(s, 3)), @"nondeterminism at event 5: the history has TimerCanceled of operation 2, the code made ScheduleActivity a2 (command 3) after event 4");
    assert_snapshot!(changed(|s| remove(s, 4)), @"nondeterminism at event 6: the history has ActivityTaskScheduled a2 (command 3), the code made nothing (it waits) after event 4");
}

#[test]
fn an_added_call() {
    assert_snapshot!(changed(|s| s.ops.insert(0, Op::Schedule(9))), @"nondeterminism at event 2: the history has ActivityTaskScheduled a1 (command 1), the code made ScheduleActivity a9 (command 1) after event 1");
    assert_snapshot!(changed(|s| s.ops.insert(4, Op::Timer(5))), @"nondeterminism at event 6: the history has ActivityTaskScheduled a2 (command 3), the code made StartTimer 5 ms (command 3) after event 4");
    assert_snapshot!(changed(|s| s.ops.insert(3, Op::Cancel(0))), @"no difference");
    assert_snapshot!(changed(|s| s.ops.push(Op::Schedule(9))), @"nondeterminism at event 9: the history has WorkflowExecutionCompleted, the code made ScheduleActivity a9 (command 4) after event 8");
}

#[test]
fn swapped_calls() {
    assert_snapshot!(changed(|s| s.ops.swap(0, 1)), @"nondeterminism at event 2: the history has ActivityTaskScheduled a1 (command 1), the code made StartTimer 60000 ms (command 1) after event 1");
    assert_snapshot!(changed(|s| s.ops.swap(3, 4)), @"nondeterminism at event 5: the history has TimerCanceled of operation 2, the code made ScheduleActivity a2 (command 3) after event 4");
}

#[test]
fn another_activity_and_another_kind() {
    assert_snapshot!(changed(|s| s.ops[4] = Op::Schedule(3)), @"nondeterminism at event 6: the history has ActivityTaskScheduled a2 (command 3), the code made ScheduleActivity a3 (command 3) after event 4");
    assert_snapshot!(changed(|s| s.ops[4] = Op::Timer(5)), @"nondeterminism at event 6: the history has ActivityTaskScheduled a2 (command 3), the code made StartTimer 5 ms (command 3) after event 4");
    assert_snapshot!(changed(|s| s.ops[1] = Op::Schedule(2)), @"nondeterminism at event 3: the history has TimerStarted 60000 ms (command 2), the code made ScheduleActivity a2 (command 2) after event 1");
}

#[test]
fn a_call_made_too_early_is_taken_for_one_recorded_late() {
    // The guest may have been running since event 1 when the signal was recorded as event 4, so
    // the cancellation recorded as event 5 tells nothing about which of them it followed.
    assert_snapshot!(changed(|s| s.ops.swap(2, 3)), @"no difference");
    // A call made too late is found: it was recorded before the event that the code waits for.
    assert_snapshot!(changed(|s| s.ops.insert(4, Op::AwaitAny)), @"nondeterminism at event 6: the history has ActivityTaskScheduled a2 (command 3), the code made nothing (it waits) after event 4");
}

#[test]
fn another_end() {
    assert_snapshot!(changed(|s| s.ops.truncate(2)), @"nondeterminism at event 5: the history has TimerCanceled of operation 2, the code made WorkflowExecutionCompleted after event 1");
    assert_snapshot!(changed(|s| s.end = End::Never), @"nondeterminism at event 9: the history has WorkflowExecutionCompleted, the code made nothing (it waits) after event 8");
    assert_snapshot!(changed(|s| s.end = End::Fail), @"nondeterminism at event 9: the history has WorkflowExecutionCompleted, the code made WorkflowExecutionFailed after event 8");
    assert_snapshot!(changed(|s| s.end = End::Cancel), @"nondeterminism at event 9: the history has WorkflowExecutionCompleted, the code made WorkflowExecutionCanceled after event 8");
}

#[test]
fn an_event_for_an_operation_that_this_code_never_began() {
    let mut replay = Replay::new([9; 32], Timestamp(0));
    let mismatch = replay
        .end(&Step::UnknownOperation(Seq(4)))
        .expect_err("never begun");
    assert_snapshot!(mismatch, @"nondeterminism at event 1: the history has the result of operation 4, the code made no such operation");
    assert!(!replay.is_known(Seq(0)) && !replay.is_known(Seq(1)));
}

/// 1 started, 2 child, 3 signal out, 4 cancel out, 5 signal, 6 child cancelled, then their ends.
fn outside() -> Script {
    Script::new(vec![
        Op::Child(2),
        Op::SignalOut(1),
        Op::CancelOut(1),
        Op::AwaitSignal,
        Op::Cancel(0),
        Op::Await(0),
        Op::Await(1),
        Op::Await(2),
    ])
}

fn changed_outside(change: impl FnOnce(&mut Script)) -> String {
    let mut live = Live::begin(&outside());
    use Happening::{Drive, Signal, Yield};
    for happening in [Yield, Signal, Drive, Yield] {
        assert!(live.happen(happening));
    }
    live.drain();
    let mut script = outside();
    change(&mut script);
    match replay(&live.world.history, &script) {
        Ok(_) => "no difference".into(),
        Err(mismatch) => mismatch.to_string(),
    }
}

#[test]
fn other_calls_about_other_executions() {
    assert_eq!(changed_outside(|_| {}), "no difference");
    assert_snapshot!(changed_outside(|s| s.ops[0] = Op::Child(3)), @"nondeterminism at event 2: the history has StartChildWorkflowExecutionInitiated t2 (c1, command 1), the code made StartChild t3 (command 1) after event 1");
    assert_snapshot!(changed_outside(|s| s.ops[0] = Op::Schedule(1)), @"nondeterminism at event 2: the history has StartChildWorkflowExecutionInitiated t2 (c1, command 1), the code made ScheduleActivity a1 (command 1) after event 1");
    assert_snapshot!(changed_outside(|s| s.ops[1] = Op::SignalOut(7)), @"nondeterminism at event 3: the history has SignalExternalWorkflowExecutionInitiated go to x1 (command 3), the code made SignalExternal go to x7 (command 3) after event 1");
    assert_snapshot!(changed_outside(|s| s.ops[1] = Op::CancelOut(1)), @"nondeterminism at event 3: the history has SignalExternalWorkflowExecutionInitiated go to x1 (command 3), the code made RequestCancelExternal of x1 (command 3) after event 1");
    assert_snapshot!(changed_outside(|s| s.ops[2] = Op::CancelOut(7)), @"nondeterminism at event 4: the history has RequestCancelExternalWorkflowExecutionInitiated of x1 (command 4), the code made RequestCancelExternal of x7 (command 4) after event 1");
    assert_snapshot!(changed_outside(|s| remove(s, 4)), @"nondeterminism at event 6: the history has RequestCancelExternalWorkflowExecutionInitiated of child 1, the code made nothing (it waits) after event 5");
    assert_snapshot!(changed_outside(|s| s.ops[4] = Op::Timer(5)), @"nondeterminism at event 6: the history has RequestCancelExternalWorkflowExecutionInitiated of child 1, the code made StartTimer 5 ms (command 5) after event 5");
}
