//! Faults that other engines had, by their number in the list of scenarios.

use steadfast_model::command::Step;

use crate::guest::{End, Op, Script};
use crate::live::{Happening, Live, Snapshot, replay};

use Happening::{Cancel, Drive, Fire, Signal, Work, Yield};

/// Lets these things happen; the run as it was stored after each of them.
fn play(script: &Script, happenings: &[Happening]) -> (Live, Vec<Snapshot>) {
    let mut live = Live::begin(script);
    let mut snapshots = Vec::new();
    for happening in happenings {
        assert!(live.happen(*happening), "{happening:?} could not happen");
        snapshots.push(live.snapshot());
    }
    (live, snapshots)
}

fn names(live: &Live) -> Vec<&'static str> {
    let kinds = live.world.history.iter().map(|event| &event.kind);
    kinds.map(steadfast_model::EventKind::name).collect()
}

/// The host dies after every commit; what comes of the run is the same code's, and it ends.
fn survives(script: &Script, snapshots: &[Snapshot]) {
    for snapshot in snapshots {
        if snapshot.world.execution.state.status.is_closed() {
            continue;
        }
        let mut again = Live::recover(snapshot, script).expect("the same code");
        again.drain();
        let (guest, _, step) = replay(&again.world.history, script).expect("the same code");
        assert_ne!(step, Step::Blocked);
        assert_eq!(guest, again.guest);
    }
}

#[test]
fn scenario_14_a_timer_that_fired_is_not_cancelled_by_a_cancel_request() {
    let mut script = Script::new(vec![Op::Timer(10), Op::AwaitAny, Op::CancelRest]);
    script.end = End::Cancel;
    // Both are recorded before the guest sees either; in one order it cancels a timer that is over.
    for (both, is_asked) in [([Fire(0), Cancel], false), ([Cancel, Fire(0)], true)] {
        let (mut live, snapshots) = play(&script, &[Yield, both[0], both[1], Drive, Yield]);
        assert!(!live.is_open());
        assert!(
            !names(&live).contains(&"TimerCanceled"),
            "{:?}",
            names(&live)
        );
        let closed = "WorkflowExecutionCanceled";
        assert_eq!(names(&live).last(), Some(&closed), "asked: {is_asked}");
        survives(&script, &snapshots);
        live.drain();
    }
}

#[test]
fn scenario_18_a_timer_started_and_cancelled_at_once_is_recorded_both_ways_or_not_at_all() {
    let script = Script::new(vec![
        Op::Timer(10),
        Op::Schedule(1),
        Op::Cancel(0),
        Op::Await(1),
        Op::Timer(20),
        Op::Await(2),
    ]);
    let happenings = [
        Yield,
        Work(0, true),
        Work(0, true),
        Drive,
        Yield,
        Fire(0),
        Drive,
        Yield,
    ];
    let (live, snapshots) = play(&script, &happenings);
    assert_eq!(
        names(&live),
        [
            "WorkflowExecutionStarted",
            "TimerStarted",
            "ActivityTaskScheduled",
            "TimerCanceled",
            "ActivityTaskCompleted",
            "TimerStarted",
            "TimerFired",
            "WorkflowExecutionCompleted"
        ]
    );
    for snapshot in &snapshots {
        let kinds = snapshot.world.history.iter().map(|event| event.kind.name());
        let kinds: Vec<_> = kinds.collect();
        let count = |name| kinds.iter().filter(|kind| **kind == name).count();
        assert!(
            count("TimerCanceled") == 1 || count("TimerStarted") == 0,
            "{kinds:?}"
        );
    }
    survives(&script, &snapshots);
}

#[test]
fn scenario_65_the_order_of_observation_survives_a_crash_between_both_ends_and_the_look() {
    let select = vec![
        Op::Schedule(1),
        Op::Schedule(2),
        Op::AwaitAny,
        Op::CancelRest,
        Op::Await(0),
        Op::Await(1),
        Op::AwaitSignal,
    ];
    let script = Script::new(select);
    // The second one ends first; then the first; the guest has seen neither.
    let both = [
        Yield,
        Work(0, true),
        Work(1, true),
        Work(1, true),
        Work(0, true),
    ];
    let (mut live, snapshots) = play(&script, &both);
    let crashed = snapshots.last().expect("something happened");
    let mut again = Live::recover(crashed, &script).expect("the same code");
    for run in [&mut live, &mut again] {
        while run.happen(Drive) || run.happen(Yield) {}
        assert!(run.happen(Signal));
        run.drain();
    }
    let saw = |live: &Live| {
        let seen = live
            .guest
            .trace
            .iter()
            .filter(|line| line.starts_with("saw"));
        seen.cloned().collect::<Vec<_>>()
    };
    assert_eq!(saw(&live), saw(&again), "the same branch");
    assert_eq!(saw(&live)[0], "saw 4 ActivityTaskCompleted");
    assert_eq!(
        live.world.history[3].kind.resolves(),
        Some(steadfast_model::Seq(2))
    );
    assert_eq!(names(&live), names(&again));
    survives(&script, &snapshots);
}
