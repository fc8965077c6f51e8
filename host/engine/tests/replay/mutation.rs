//! Changed code over an old history: every difference is found, at the event where it is, and
//! named on both sides. What is not found could not be: the calls were the recorded ones.

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use steadfast_engine::Mismatch;
use steadfast_model::{Event, EventNumber};

use crate::guest::{End, Op, Script};
use crate::live::{happenings, record, replay, script};
use crate::oracle::{difference, next_at};

/// One change of the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Drop,
    Add,
    Swap,
    Rename,
    Retype,
    Finish,
    Never,
    End,
}

const CHANGES: [Change; 8] = [
    Change::Drop,
    Change::Add,
    Change::Swap,
    Change::Rename,
    Change::Retype,
    Change::Finish,
    Change::Never,
    Change::End,
];

/// The changed script, if the change makes sense at that line.
fn mutate(script: &Script, change: Change, line: usize) -> Option<Script> {
    let mut new = script.clone();
    let is_call = |op: &Op| matches!(op, Op::Schedule(_) | Op::Timer(_));
    match change {
        Change::Drop => {
            new.ops.remove(line);
        }
        Change::Add => new.ops.insert(line, Op::Schedule(200)),
        Change::Swap => {
            let pair = script.ops.get(line..line + 2)?;
            if pair[0] == pair[1] {
                return None;
            }
            new.ops.swap(line, line + 1);
        }
        Change::Rename => match &mut new.ops[line] {
            Op::Schedule(n) | Op::Child(n) | Op::SignalOut(n) | Op::CancelOut(n) => *n += 100,
            _ => return None,
        },
        Change::Retype if !is_call(&script.ops[line]) => return None,
        Change::Retype => {
            new.ops[line] = match script.ops[line] {
                Op::Timer(_) => Op::Schedule(1),
                _ => Op::Timer(1),
            }
        }
        Change::Finish => {
            new.ops.truncate(line);
            new.end = End::Complete;
        }
        Change::Never => new.end = End::Never,
        Change::End => {
            new.end = match script.end {
                End::Fail | End::Cancel | End::Never => End::Complete,
                End::Complete => End::Fail,
            }
        }
    }
    Some(new)
}

/// Where a change must be found, whatever else follows from it; `None` where the oracle decides.
fn certain(history: &[Event], script: &Script, change: Change, line: usize) -> Option<EventNumber> {
    let is_skipped =
        line > 0 && matches!(script.ops[line - 1], Op::SkipAfterSignal | Op::Patched(_));
    let at = |line| next_at(history, script, line);
    match change {
        Change::Rename | Change::Retype => at(line).map(|next| next.0),
        Change::Add if !is_skipped => at(line).map(|next| next.0),
        Change::Finish => at(line)
            .filter(|next| next.1 != "completed")
            .map(|next| next.0),
        Change::Never | Change::End => history.last().map(|event| event.number),
        Change::Swap if !is_skipped => match &script.ops[line..line + 2] {
            [Op::Schedule(_), Op::Timer(_) | Op::Schedule(_)] | [Op::Timer(_), Op::Schedule(_)] => {
                at(line).map(|next| next.0)
            }
            _ => None,
        },
        Change::Add | Change::Swap | Change::Drop => None,
    }
}

/// Replays the changed code and compares what is found with what is there.
fn judge(
    history: &[Event],
    script: &Script,
    change: Change,
    line: usize,
) -> Option<Option<Mismatch>> {
    let new = mutate(script, change, line)?;
    let found = replay(history, &new).err();
    let at = found.as_ref().map(|mismatch| mismatch.event);
    assert_eq!(
        at,
        difference(history, &new),
        "{change:?} of line {line}: {found:?}"
    );
    if let Some(certain) = certain(history, script, change, line) {
        assert_eq!(at, Some(certain), "{change:?} of line {line}");
    }
    if let Some(mismatch) = &found {
        let index = usize::try_from(mismatch.event.0 - 1).expect("small");
        let name = history[index].kind.name();
        assert!(mismatch.expected.starts_with(name), "{name}: {mismatch}");
        assert!(mismatch.actual.contains(" after event "), "{mismatch}");
        assert!(
            mismatch
                .to_string()
                .contains(&format!("at event {}:", mismatch.event))
        );
    }
    Some(found)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_change_is_found_where_it_is(
        script in script(),
        happenings in happenings(),
        line in any::<Index>(),
    ) {
        let (history, _) = record(&script, &happenings);
        let line = line.index(script.ops.len());
        for change in CHANGES {
            judge(&history, &script, change, line);
        }
    }
}

/// The law above would hold for a replay that finds nothing and an oracle that finds nothing.
#[test]
fn random_changes_of_every_kind_are_found() {
    let mut runner = TestRunner::deterministic();
    let strategy = (script(), happenings(), any::<Index>());
    let mut found = std::collections::BTreeMap::new();
    let mut missed = 0;
    for _ in 0..200 {
        let (script, happenings, line) = strategy.new_tree(&mut runner).expect("values").current();
        let (history, _) = record(&script, &happenings);
        for change in CHANGES {
            match judge(&history, &script, change, line.index(script.ops.len())) {
                Some(Some(_)) => *found.entry(change).or_insert(0) += 1,
                Some(None) => missed += 1,
                None => {}
            }
        }
    }
    assert_eq!(found.len(), CHANGES.len(), "{found:?}");
    assert!(found.values().all(|count| *count >= 10), "{found:?}");
    // Waits may be dropped and swapped without any call changing.
    assert!(missed > 10, "{missed}");
}
