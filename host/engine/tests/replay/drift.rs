//! A changed input is drift: the recorded one is what the activity got, and the run goes on.

use proptest::prelude::*;
use steadfast_engine::Replay;
use steadfast_engine::replay::Matched;
use steadfast_model::{EventKind, Millis, Seq, Timestamp};

use crate::common::{World, schedule, timer, yields};
use crate::guest::{Op, Script};
use crate::live::{happenings, record, replay, script};

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn changed_inputs_and_durations_are_counted_not_refused(
        script in script(),
        happenings in happenings(),
    ) {
        let (history, _) = record(&script, &happenings);
        let count = |is: fn(&EventKind) -> bool| history.iter().filter(|e| is(&e.kind)).count() as u64;
        let inputs = count(|kind| {
            matches!(
                kind,
                EventKind::ActivityTaskScheduled { .. }
                    | EventKind::StartChildWorkflowExecutionInitiated { .. }
                    | EventKind::SignalExternalWorkflowExecutionInitiated { .. }
            )
        });
        let timers = count(|kind| matches!(kind, EventKind::TimerStarted { .. }));

        let new = Script { input: "{\"new\":1}", ..script.clone() };
        let (guest, drifted, _) = replay(&history, &new).expect("drift, not a mismatch");
        prop_assert_eq!(drifted.drifts().1, inputs);
        let old = replay(&history, &script).expect("the same code").0;
        prop_assert_eq!(guest.trace, old.trace, "the code cannot tell");

        let new = Script { slower: 7, ..script };
        let (_, drifted, _) = replay(&history, &new).expect("drift, not a mismatch");
        prop_assert_eq!(drifted.drifts().1, timers);
    }
}

#[test]
fn drift_says_what_changed_and_where() {
    let script = Script::new(vec![Op::Schedule(1), Op::Timer(10), Op::AwaitSignal]);
    let (history, _) = record(&script, &[]);
    let new = Script {
        input: "22",
        slower: 5,
        ..script
    };
    let (_, replay, _) = replay(&history, &new).expect("drift, not a mismatch");
    let lines: Vec<_> = replay
        .drifts()
        .0
        .iter()
        .map(|d| format!("event {}: {}", d.event, d.what))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    event 2: input of activity a1 (1 bytes recorded, 2 now)
    event 3: duration of timer 2 (10 ms recorded, 15 ms now)
    ");
}

#[test]
fn an_encoding_is_part_of_the_input() {
    let mut world = World::begin(0);
    world
        .step(0, &yields(0, [schedule("a", crate::common::options())]))
        .expect("accepted");
    let mut replay = Replay::new([9; 32], Timestamp(0));
    assert!(replay.load(world.history[1..].to_vec()).is_empty());
    let matched = replay
        .schedule_activity("a", b"2", "binary/plain")
        .expect("drift");
    assert_eq!(matched, Matched::Replayed(Seq(1)));
    assert_eq!(replay.drifts().1, 1);
}

#[test]
fn a_duration_beyond_the_limit_is_no_drift() {
    let mut world = World::begin(0);
    world
        .step(0, &yields(0, [timer(u64::MAX)]))
        .expect("accepted");
    let mut replay = Replay::new([9; 32], Timestamp(0));
    assert!(replay.load(world.history[1..].to_vec()).is_empty());
    replay.start_timer(Millis(u64::MAX)).expect("as recorded");
    assert_eq!(replay.drifts().1, 0);
}

#[test]
fn the_first_hundred_drifts_are_kept_and_all_are_counted() {
    let script = Script::new(vec![Op::Timer(1); 150]);
    let (history, _) = record(&script, &[]);
    let (_, replay, _) = replay(
        &history,
        &Script {
            slower: 1,
            ..script
        },
    )
    .expect("drift");
    let (kept, count) = replay.drifts();
    assert_eq!((kept.len(), count), (100, 150));
    assert_eq!(kept[99].event.0, 101, "the first ones, in order");
}
