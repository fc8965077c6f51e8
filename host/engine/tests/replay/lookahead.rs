//! Cancelling what the history shows as already over records nothing, live and on replay alike.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use steadfast_model::command::Step;
use steadfast_model::{Command, Event, EventKind};

use crate::guest::{Op, Script};
use crate::live::{Happening, Live, happenings, record, replay, script};

/// Lets these things happen, drains the run and replays it; gives back the names of its events.
fn names(script: &Script, happenings: &[Happening]) -> Vec<&'static str> {
    let mut live = Live::begin(script);
    for happening in happenings {
        assert!(live.happen(*happening), "{happening:?} could not happen");
    }
    live.drain();
    let (guest, _, step) = replay(&live.world.history, script).expect("the same code");
    assert_ne!(step, Step::Blocked);
    assert_eq!(guest, live.guest, "live and replay agree");
    live.world
        .history
        .iter()
        .map(|event| event.kind.name())
        .collect()
}

#[test]
fn a_timer_that_fires_while_its_cancellation_is_on_its_way_has_fired() {
    let script = Script::new(vec![
        Op::Timer(10),
        Op::AwaitSignal,
        Op::Cancel(0),
        Op::Schedule(1),
    ]);
    use Happening::{Drive, Fire, Signal, Yield};
    let names = names(&script, &[Yield, Signal, Drive, Fire(0), Yield]);
    assert_eq!(
        names,
        [
            "WorkflowExecutionStarted",
            "TimerStarted",
            "WorkflowExecutionSignaled",
            "TimerFired",
            "ActivityTaskScheduled",
            "WorkflowExecutionCompleted",
        ]
    );
}

#[test]
fn an_activity_that_completes_while_its_cancellation_is_on_its_way_is_complete() {
    let script = Script::new(vec![
        Op::Schedule(1),
        Op::AwaitSignal,
        Op::Cancel(0),
        Op::Await(0),
        Op::Timer(5),
    ]);
    use Happening::{Drive, Signal, Work, Yield};
    let names = names(
        &script,
        &[
            Yield,
            Work(0, true),
            Signal,
            Drive,
            Work(0, true),
            Yield,
            Drive,
            Yield,
        ],
    );
    assert_eq!(
        names,
        [
            "WorkflowExecutionStarted",
            "ActivityTaskScheduled",
            "WorkflowExecutionSignaled",
            "ActivityTaskCompleted",
            "TimerStarted",
            "WorkflowExecutionCompleted",
        ]
    );
}

#[test]
fn a_cancellation_in_time_is_recorded() {
    let script = Script::new(vec![Op::Timer(10), Op::AwaitSignal, Op::Cancel(0)]);
    use Happening::{Drive, Signal, Yield};
    let names = names(&script, &[Yield, Signal, Drive, Yield]);
    assert_eq!(
        names,
        [
            "WorkflowExecutionStarted",
            "TimerStarted",
            "WorkflowExecutionSignaled",
            "TimerCanceled",
            "WorkflowExecutionCompleted",
        ]
    );
}

#[test]
fn a_cancellation_of_the_wrong_kind_is_void_and_does_not_eat_the_right_one() {
    let script = Script::new(vec![
        Op::Schedule(1),
        Op::Timer(10),
        Op::CancelWrong(0),
        Op::CancelWrong(1),
        Op::Timer(20),
        Op::AwaitSignal,
        Op::Cancel(0),
        Op::Cancel(1),
    ]);
    use Happening::{Drive, Signal, Yield};
    let names = names(&script, &[Yield, Signal, Drive, Yield]);
    assert_eq!(
        names,
        [
            "WorkflowExecutionStarted",
            "ActivityTaskScheduled",
            "TimerStarted",
            "TimerStarted",
            "WorkflowExecutionSignaled",
            "ActivityTaskCancelRequested",
            "ActivityTaskCanceled",
            "TimerCanceled",
            "WorkflowExecutionCompleted",
        ]
    );
}

/// True if the operation that a command cancels ends in these events, uncancelled.
fn voids(rest: &[Event], command: &Command) -> bool {
    let (Command::CancelTimer { seq } | Command::CancelActivity { seq }) = command else {
        return false;
    };
    let is_recorded = |event: &Event| match &event.kind {
        EventKind::TimerCanceled { seq: s } | EventKind::ActivityTaskCancelRequested { seq: s } => {
            s == seq
        }
        _ => false,
    };
    rest.iter().any(|e| e.kind.resolves() == Some(*seq)) && !rest.iter().any(is_recorded)
}

#[test]
fn random_runs_do_cancel_what_is_over() {
    let mut runner = TestRunner::deterministic();
    let strategy = (script(), happenings());
    let mut void = 0;
    for _ in 0..600 {
        let (script, happenings) = strategy.new_tree(&mut runner).expect("values").current();
        let (history, _) = record(&script, &happenings);
        let cuts = |n: usize| replay(&history[..n], &script).expect("the same code").1;
        // Somewhere the guest asks for a cancellation that the rest of the history makes void: cut
        // there, it is a new command; over the whole history it is none.
        let is_void = (1..history.len()).any(|n| {
            cuts(n)
                .take_issued()
                .iter()
                .any(|issued| voids(&history[n..], &issued.command))
        });
        void += u32::from(is_void);
    }
    assert!(void >= 10, "only {void} of the random runs look ahead");
}
