//! Signals.

use insta::assert_snapshot;
use steadfast_engine::Rejection;
use steadfast_model::limits::SIGNALS_MAX;

use crate::common::{World, cancel, options, schedule, signal, timer, yields};
use crate::print::{check, play};

#[test]
fn the_same_request_is_one_signal() {
    assert_snapshot!(check([
        (1, signal("a")),
        (2, signal("b")),
        (3, signal("a")),
        (4, cancel("c")),
        (5, signal("b")),
    ]), @"
    1 signal a
      2@1 WorkflowExecutionSignaled go 4 by alice (a)
    2 signal b
      3@2 WorkflowExecutionSignaled go 4 by alice (b)
    3 signal a
    4 cancel c
      4@4 WorkflowExecutionCancelRequested enough by bob (c)
    5 signal b
    ");
}

#[test]
fn signals_are_recorded_in_any_state_and_in_order() {
    assert_snapshot!(check([
        (1, signal("a")),
        (2, yields(0, [schedule("charge", options()), timer(10)])),
        (3, signal("b")),
        (3, signal("c")),
    ]), @"
    1 signal a
      2@1 WorkflowExecutionSignaled go 4 by alice (a)
    2 yield [ScheduleActivity, StartTimer] blocked
      3@1 ActivityTaskScheduled 1 charge
      4@1 TimerStarted 2 for 10 ms until 10
      task 1 attempt 1: ready since 1
    3 signal b
      5@3 WorkflowExecutionSignaled go 4 by alice (b)
    3 signal c
      6@3 WorkflowExecutionSignaled go 4 by alice (c)
    ");
}

#[test]
fn a_run_takes_a_limited_number_of_signals() {
    let mut world = World::begin(0);
    // One signal is recorded the long way; the count stands for the rest.
    world.step(1, &signal("first")).expect("accepted");
    world.execution.state.signals = SIGNALS_MAX - 1;
    let step = |world: &World, id: &str| {
        steadfast_engine::decide(&world.execution, signal(id), steadfast_model::Timestamp(2))
    };
    let last = step(&world, "last").expect("accepted");
    world.execution.apply(&last).expect("applicable");
    assert_eq!(step(&world, "one too many"), Err(Rejection::TooManySignals));
    // A repeated request is answered as before, even now.
    assert_eq!(
        step(&world, "first"),
        Ok(steadfast_engine::Decision::default())
    );
    assert_snapshot!(Rejection::TooManySignals, @"the run has received 10000 signals, the most allowed");
}

#[test]
fn a_signal_may_come_before_the_code_ever_ran() {
    let mut world = World::begin(0);
    assert_snapshot!(play(&mut world, [(0, signal("early"))]), @"
    0 signal early
      2@0 WorkflowExecutionSignaled go 4 by alice (early)
    ");
    assert_eq!(world.execution.state.signals, 1);
}
