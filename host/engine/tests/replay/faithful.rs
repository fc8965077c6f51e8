//! The same code over its own history: never a mismatch, wherever the history is cut, and the run
//! goes on from there as if nothing had happened.

use proptest::prelude::*;
use steadfast_engine::State;
use steadfast_model::command::Step;

use crate::guest::{Op, Script};
use crate::live::{Live, happenings, record, replay, script};

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_prefix_replays(script in script(), happenings in happenings()) {
        let (history, _) = record(&script, &happenings);
        for length in 1..=history.len() {
            let replayed = replay(&history[..length], &script);
            prop_assert!(replayed.is_ok(), "cut after {length}: {}", replayed.unwrap_err());
        }
        let (_, replay, step) = replay(&history, &script).expect("checked above");
        prop_assert!(step != Step::Blocked, "the whole history leads to its end");
        prop_assert!(!replay.is_replaying());
        prop_assert_eq!(replay.issued_count(), 0, "nothing new is asked for");
        prop_assert_eq!(replay.drifts().1, 0);
    }

    #[test]
    fn a_run_goes_on_from_wherever_it_was_stored(
        script in script(),
        happenings in happenings(),
    ) {
        let (_, snapshots) = record(&script, &happenings);
        for snapshot in &snapshots {
            let stored = &snapshot.world.history;
            if snapshot.world.execution.state.status.is_closed() {
                continue;
            }
            let mut live = Live::recover(snapshot, &script).expect("the same code");
            if let Some(settled) = &snapshot.settled {
                // Lines, draws, times and numbers: a rebuilt instance is the lost one.
                prop_assert_eq!(&live.guest, settled);
            }
            live.drain();
            prop_assert!(live.world.history.starts_with(stored));
            prop_assert!(live.world.execution.state.status.is_closed());
            prop_assert_eq!(State::fold(&live.world.history), Ok(live.world.execution.state));
        }
    }

    #[test]
    fn the_random_stream_goes_on_where_it_was(lengths in prop::collection::vec(0..40_u8, 1..8)) {
        let mut ops = vec![];
        for length in lengths {
            ops.extend([Op::Draw(length), Op::AwaitAny]);
        }
        let script = Script::new(ops);
        let mut live = Live::begin(&script);
        live.drain();
        let (guest, mut replay, _) = replay(&live.world.history, &script).expect("the same code");
        prop_assert_eq!(&guest.trace, &live.guest.trace);
        let mut next = [[0; 16]; 2];
        live.replay.draw(&mut next[0]);
        replay.draw(&mut next[1]);
        prop_assert_eq!(next[0], next[1]);
    }
}

#[test]
fn draws_are_one_stream_however_they_are_cut() {
    let mut whole = [0; 12];
    Live::begin(&Script::new(vec![Op::AwaitAny]))
        .replay
        .draw(&mut whole);
    let script = Script::new(vec![Op::Draw(4), Op::AwaitAny, Op::Draw(8)]);
    let mut live = Live::begin(&script);
    live.drain();
    let drawn: Vec<_> = live
        .guest
        .trace
        .iter()
        .filter(|line| line.starts_with("drew"))
        .collect();
    assert_eq!(
        drawn,
        [
            &format!("drew {:?}", &whole[..4]),
            &format!("drew {:?}", &whole[4..])
        ]
    );
}
