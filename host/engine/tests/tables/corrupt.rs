//! Histories that no run can have: `apply` names the first event that does not follow, and changes
//! nothing.

use insta::assert_snapshot;
use steadfast_engine::State;
use steadfast_model::{Event, EventKind, EventNumber, Seq, Timestamp};

use crate::common::{World, claim, complete, options, schedule, signal, terminate, timer, yields};

/// 1 started, 2 activity 1, 3 timer 2, 4 signal, 5 activity 1 completed, 6 terminated.
fn history() -> Vec<Event> {
    let mut world = World::begin(0);
    let requests = [
        yields(0, [schedule("charge", options()), timer(10)]),
        signal("s"),
        claim(1),
        complete(1, 1),
        terminate(),
    ];
    for (at, request) in (1..).zip(&requests) {
        world.step(at, request).expect("accepted");
    }
    world.history
}

/// Changes the history, folds it, and says why that fails.
fn refused(change: impl FnOnce(&mut Vec<Event>)) -> String {
    let mut events = history();
    change(&mut events);
    let error = State::fold(&events).expect_err("corrupt");
    // Up to the refused event, all is well, and the refusal leaves it so.
    let good = (0..events.len())
        .rev()
        .find(|n| State::fold(&events[..*n]).is_ok());
    if let Some(good) = good {
        let mut state = State::fold(&events[..good]).expect("found above");
        let before = state.clone();
        assert_eq!(state.apply(&events[good]), Err(error));
        assert_eq!(state, before, "a refused event changed the state");
    }
    error.to_string()
}

#[test]
fn numbers_have_no_gaps_and_no_repeats() {
    assert_snapshot!(refused(|events| { events.remove(2); }), @"event 4 follows event 2");
    assert_snapshot!(refused(|events| events[2].number = EventNumber(2)), @"event 2 follows event 2");
    assert_snapshot!(refused(|events| events.swap(1, 2)), @"event 3 follows event 1");
}

#[test]
fn a_history_begins_once() {
    assert_snapshot!(refused(Vec::clear), @"event 1: a history begins with WorkflowExecutionStarted, once");
    assert_snapshot!(refused(|events| { events.remove(0); }), @"event 2: a history begins with WorkflowExecutionStarted, once");
    assert_snapshot!(refused(|events| events[0].number = EventNumber(2)), @"event 2: a history begins with WorkflowExecutionStarted, once");
    assert_snapshot!(refused(|events| events[3].kind = events[0].kind.clone()), @"event 4: a history begins with WorkflowExecutionStarted, once");
}

#[test]
fn nothing_follows_the_end() {
    assert_snapshot!(refused(|events| {
        let number = EventNumber(7);
        events.push(Event { number, ..events[3].clone() });
        events[6].time = events[5].time;
    }), @"event 7 comes after the run's end");
}

#[test]
fn time_does_not_run_backwards() {
    assert_snapshot!(refused(|events| events[4].time = Timestamp(1)), @"event 5 is earlier than the event before it");
}

#[test]
fn answers_belong_to_what_is_pending() {
    let fired = |seq| EventKind::TimerFired { seq: Seq(seq) };
    let asked = |seq| EventKind::ActivityTaskCancelRequested { seq: Seq(seq) };
    assert_snapshot!(refused(|events| events[3].kind = fired(3)), @"event 4 is about operation 3, which is not pending");
    assert_snapshot!(refused(|events| events[3].kind = fired(1)), @"event 4 is about operation 1, which is not pending");
    assert_snapshot!(refused(|events| events[3].kind = asked(2)), @"event 4 is about operation 2, which is not pending");
    // Answered twice.
    assert_snapshot!(refused(|events| events[3].kind = events[4].kind.clone()), @"event 5 is about operation 1, which is not pending");
    assert_snapshot!(refused(|events| {
        if let EventKind::ActivityTaskCompleted { seq, .. } = &mut events[4].kind {
            *seq = Seq(2);
        }
    }), @"event 5 is about operation 2, which is not pending");
}

#[test]
fn commands_are_numbered_in_order() {
    assert_snapshot!(refused(|events| {
        if let EventKind::TimerStarted { seq, .. } = &mut events[2].kind {
            *seq = Seq(3);
        }
    }), @"event 3 has command number 3, expected 2");
    assert_snapshot!(refused(|events| {
        if let EventKind::ActivityTaskScheduled { seq, .. } = &mut events[1].kind {
            *seq = Seq(0);
        }
    }), @"event 2 has command number 0, expected 1");
}
