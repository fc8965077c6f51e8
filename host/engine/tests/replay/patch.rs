//! Changed code that asks first: a patch gives old runs the old branch and new ones the new.

use insta::assert_snapshot;
use proptest::prelude::*;
use steadfast_engine::Replay;
use steadfast_engine::replay::Matched;
use steadfast_model::{Command, Event, EventKind, Marker, MarkerKind, Seq};

use crate::common::{self, World, marker_name, schedule, yields};
use crate::guest::{Op, Script};
use crate::live::{Happening, Live, happenings, record, replay, script};

/// A replay that has taken in this history.
fn over(history: &[Event]) -> Replay {
    let mut replay = Replay::new([9; 32], history[0].time);
    drop(replay.load(history[1..].to_vec()));
    replay
}

/// A run whose code made these commands at once.
fn history<const N: usize>(commands: [Command; N]) -> Vec<Event> {
    let mut world = World::begin(0);
    world.step(0, &yields(0, commands)).expect("accepted");
    world.history
}

fn activity(name: &str) -> Command {
    schedule(name, common::options())
}

fn patch(id: &str) -> Command {
    common::record(MarkerKind::Patch, id, None)
}

fn deprecated(id: &str) -> Command {
    common::record(MarkerKind::DeprecatedPatch, id, None)
}

/// Asks and issues, as a host does.
fn asks(replay: &mut Replay, id: &str) -> bool {
    let marked = replay.patched(&marker_name(id));
    marked.command.into_iter().for_each(|c| replay.issue(c));
    marked.answer
}

fn deprecates(replay: &mut Replay, id: &str) {
    let marked = replay.deprecate_patch(&marker_name(id));
    marked.command.into_iter().for_each(|c| replay.issue(c));
}

/// The markers that a replay adds to its history.
fn added(replay: &mut Replay) -> Vec<String> {
    let commands = replay
        .take_issued()
        .into_iter()
        .map(|issued| issued.command);
    commands
        .filter_map(|command| match command {
            Command::RecordMarker { marker } => Some(marker.to_string()),
            _ => None,
        })
        .collect()
}

#[test]
fn a_run_that_gets_there_first_with_the_patch_has_it_for_ever() {
    let mut live = over(&history([]));
    assert!(asks(&mut live, "p"));
    assert!(asks(&mut live, "p"), "the first answer counts");
    assert_eq!(
        added(&mut live),
        ["patch \"p\""],
        "one marker for all calls"
    );
    let mut again = over(&history([patch("p"), activity("new")]));
    assert!(asks(&mut again, "p"));
    assert!(asks(&mut again, "p"));
    assert_eq!(
        again.schedule_activity("new", b"2", ""),
        Ok(Matched::Replayed(Seq(1)))
    );
    assert_eq!(again.issued_count(), 0);
}

#[test]
fn a_run_that_was_there_before_the_patch_stays_on_the_old_branch() {
    let mut old = over(&history([activity("old")]));
    assert!(!asks(&mut old, "p"));
    assert_eq!(
        old.schedule_activity("old", b"2", ""),
        Ok(Matched::Replayed(Seq(1)))
    );
    assert!(
        !asks(&mut old, "p"),
        "no is remembered where the run is live"
    );
    assert_eq!(old.issued_count(), 0, "no is not recorded");
}

#[test]
fn every_patch_has_an_answer_of_its_own() {
    let mut run = over(&history([patch("a"), activity("x")]));
    assert!(!asks(&mut run, "b"), "b was added before a");
    assert!(asks(&mut run, "a"));
    assert!(!asks(&mut run, "c"), "and c after it");
    assert_eq!(
        run.schedule_activity("x", b"2", ""),
        Ok(Matched::Replayed(Seq(1)))
    );
    assert!(asks(&mut run, "d"));
    assert_eq!(added(&mut run), ["patch \"d\""]);
}

#[test]
fn a_removed_patch_is_named() {
    let history = history([patch("p"), activity("new")]);
    let found = over(&history)
        .schedule_activity("new", b"2", "")
        .unwrap_err();
    assert_snapshot!(found, @r#"nondeterminism at event 2: the history has MarkerRecorded patch "p" (a call of patched may be removed only after deprecate_patch has replaced it), the code made ScheduleActivity new (command 1) after event 1"#);
    assert!(over(&history).finish().is_err());
}

#[test]
fn a_deprecated_patch_fits_what_it_replaced_and_may_be_removed() {
    let recorded = history([patch("p"), activity("new")]);
    let mut run = over(&recorded);
    deprecates(&mut run, "p");
    assert_eq!(
        run.schedule_activity("new", b"2", ""),
        Ok(Matched::Replayed(Seq(1)))
    );
    assert_eq!(run.issued_count(), 0);

    let mut live = over(&history([]));
    deprecates(&mut live, "p");
    deprecates(&mut live, "p");
    assert_eq!(added(&mut live), ["deprecated-patch \"p\""]);

    let recorded = history([deprecated("p"), activity("new"), deprecated("q")]);
    for calls in [&["p"][..], &[]] {
        let mut run = over(&recorded);
        calls.iter().for_each(|id| deprecates(&mut run, id));
        assert_eq!(
            run.schedule_activity("new", b"2", ""),
            Ok(Matched::Replayed(Seq(1)))
        );
        assert_eq!(
            run.finish(),
            Ok(()),
            "a deprecated patch at the end is optional too"
        );
        assert!(asks(&mut run, "q"), "and still known to code that asks");
        assert_eq!(run.issued_count(), 0);
    }
}

#[test]
fn code_that_still_asks_about_a_deprecated_patch_is_told_yes() {
    let mut run = over(&history([deprecated("p"), activity("new")]));
    assert!(asks(&mut run, "p"));
    assert_eq!(
        run.schedule_activity("new", b"2", ""),
        Ok(Matched::Replayed(Seq(1)))
    );
    assert!(asks(&mut run, "p"));
}

#[test]
fn a_deprecated_patch_does_not_hide_where_a_new_one_belongs() {
    // The code has a new patch before a deprecated one whose call is gone.
    let mut run = over(&history([deprecated("old"), activity("x")]));
    assert!(!asks(&mut run, "new"), "the activity is still to come");
    assert_eq!(run.next_command().map(|number| number.0), Some(3));
    let mut run = over(&history([deprecated("old")]));
    assert!(asks(&mut run, "new"), "nothing is to come");
}

#[test]
fn a_side_effect_is_computed_once() {
    let script = Script::new(vec![Op::SideEffect(1), Op::AwaitSignal, Op::SideEffect(2)]);
    let (history, _) = record(&script, &[]);
    let new = Script {
        input: "\"another value\"",
        ..script.clone()
    };
    let (old, ..) = replay(&history, &script).expect("the same code");
    let (guest, run, _) = replay(&history, &new).expect("the recorded values");
    assert_eq!(guest.trace, old.trace, "the code cannot tell");
    assert_eq!(run.drifts().1, 0, "that is what it is for");
}

#[test]
fn a_side_effect_of_another_name_or_none_is_named() {
    let history = history([common::record(MarkerKind::SideEffect, "v", Some("1"))]);
    let value = || steadfast_model::Payload::json("2");
    let found = over(&history)
        .side_effect(&marker_name("w"), value())
        .unwrap_err();
    assert_snapshot!(found, @r#"nondeterminism at event 2: the history has MarkerRecorded side-effect "v", the code made RecordMarker side-effect "w" (command 1) after event 1"#);
    let found = over(&history)
        .start_timer(steadfast_model::Millis(5))
        .unwrap_err();
    assert_snapshot!(found, @r#"nondeterminism at event 2: the history has MarkerRecorded side-effect "v", the code made StartTimer 5 ms (command 1) after event 1"#);
    let found = over(&history).finish().unwrap_err();
    assert_snapshot!(found, @r#"nondeterminism at event 2: the history has MarkerRecorded side-effect "v", the code made nothing (it waits) after event 1"#);
}

/// How many markers of patches a history has.
fn patches(history: &[Event]) -> usize {
    let is_patch = |event: &&Event| {
        matches!(
            &event.kind,
            EventKind::MarkerRecorded {
                marker: Marker {
                    kind: MarkerKind::Patch,
                    ..
                }
            }
        )
    };
    history.iter().filter(is_patch).count()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Old code, whatever it does; a patch is put somewhere into it, with a new activity behind
    /// it. Whatever the run had done before, it goes on with the new code.
    #[test]
    fn patched_code_fits_every_old_history(
        script in script(),
        happenings in happenings(),
        line in any::<prop::sample::Index>(),
    ) {
        let (_, snapshots) = record(&script, &happenings);
        let at = line.index(script.ops.len());
        // Neither the skip of the line before nor numbers of operations may change.
        prop_assume!(at == 0 || !matches!(script.ops[at - 1], Op::SkipAfterSignal | Op::Patched(_)));
        let mut new = script;
        new.ops.splice(at..at, [Op::Patched(200), Op::SideEffect(201)]);
        for snapshot in &snapshots {
            if snapshot.world.execution.state.status.is_closed() {
                prop_assert!(replay(&snapshot.world.history, &new).is_ok());
                continue;
            }
            let mut live = Live::recover(snapshot, &new).expect("patched code fits");
            live.drain();
            let history = live.world.history;
            let (guest, ..) = replay(&history, &new).expect("the same code");
            prop_assert_eq!(guest, live.guest, "the same answers");
        }
    }
}

#[test]
fn a_patch_inside_a_batch_of_deliveries_is_answered_by_what_is_still_to_come() {
    let script = Script::new(vec![Op::AwaitSignal, Op::AwaitSignal, Op::Schedule(1)]);
    let mut live = Live::begin(&script);
    use Happening::{Drive, Signal, Yield};
    for happening in [Yield, Signal, Drive, Yield, Signal, Drive, Yield] {
        assert!(live.happen(happening), "{happening:?}");
    }
    let mut new = script;
    new.ops.insert(1, Op::Patched(1));
    new.ops.insert(2, Op::Schedule(9));
    let (guest, ..) = replay(&live.world.history, &new).expect("the old branch");
    assert!(guest.trace.contains(&"patched 1: false".to_owned()));
    assert_eq!(patches(&live.world.history), 0);
}
