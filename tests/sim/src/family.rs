//! Scripts that start children and signal each other, and the laws about both.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_model::{Event, EventKind, RunId, RunKey, Seq};
use steadfast_ports::fake::{Op, Rng};
use steadfast_ports::guest::ChildCallOptions;

use crate::kin::kin;

/// The workflow types of children. Those that are drawn here end by themselves.
#[must_use]
pub fn kids() -> Vec<(&'static str, Vec<Op>)> {
    let mut kids = vec![
        ("kid", vec![Op::activity("act", "\"kid\""), Op::Complete]),
        ("kid-slow", vec![Op::SleepOrCancel(2000), Op::Complete]),
        ("kid-fails", vec![Op::Sleep(5), Op::Fail("kid".to_owned())]),
        (
            "kid-chain",
            vec![
                Op::activity("act", "\"link\""),
                Op::ContinueAsNew,
                Op::Complete,
            ],
        ),
    ];
    kids.extend(kin());
    kids
}

/// Puts children and messages into a script, before its last operation.
pub fn add_others(rng: &mut Rng, ops: &mut Vec<Op>, workflows: u64) {
    if rng.chance(500) {
        return;
    }
    for _ in 0..1 + rng.below(3) {
        let at = rng.index(ops.len().max(1));
        let op = match rng.below(6) {
            0 => Op::SignalExternal(
                format!("wf-{}", rng.below(workflows + 2)),
                "from-a-friend".to_owned(),
                "1".to_owned(),
            ),
            1 | 2 => Op::StartChild(kid(rng), "2".to_owned(), options(rng)),
            _ => Op::Child(kid(rng), "2".to_owned(), options(rng)),
        };
        let is_started = matches!(op, Op::StartChild(..));
        ops.insert(at, op);
        if is_started && rng.chance(500) {
            ops.insert(at + 1, Op::CancelChild);
        }
    }
}

fn kid(rng: &mut Rng) -> String {
    ["kid", "kid-slow", "kid-fails", "kid-chain", "nobody"][rng.index(5)].to_owned()
}

fn options(rng: &mut Rng) -> ChildCallOptions {
    let policy = ["terminate", "request-cancel", "abandon"][rng.index(3)];
    let cancellation = [
        "abandon",
        "try-cancel",
        "wait-cancellation-completed",
        "wait-cancellation-requested",
    ][rng.index(4)];
    let settings = [
        ("parent-close-policy", policy),
        ("cancellation-type", cancellation),
    ];
    ChildCallOptions {
        maximum_attempts: [0, 2][rng.index(2)],
        settings: settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        ..ChildCallOptions::default()
    }
}

/// The first run of a chain, as its parent knows it.
type Place = (RunId, Seq);

/// Every child was started once and reported once, and what its parent heard is how it ended.
///
/// # Panics
/// When a law is broken.
pub fn check_family(seed: u64, histories: &BTreeMap<RunKey, Vec<Event>>) {
    let mut started: BTreeMap<Place, RunId> = BTreeMap::new();
    let mut chains: BTreeMap<RunId, Vec<&Vec<Event>>> = BTreeMap::new();
    for history in histories.values() {
        let Some(EventKind::WorkflowExecutionStarted { started: run }) =
            history.first().map(|event| &event.kind)
        else {
            continue;
        };
        let first = run.link.first_run_id.unwrap_or(run.run_id);
        chains.entry(first).or_default().push(history);
        if let Some(parent) = &run.parent
            && run.link.first_run_id.is_none()
        {
            let before = started.insert((parent.run_id, parent.seq), run.run_id);
            assert_eq!(before, None, "seed {seed}: a child was started twice");
        }
    }
    for history in histories.values() {
        check_parent(seed, history, &started, &chains);
    }
}

fn check_parent(
    seed: u64,
    history: &[Event],
    started: &BTreeMap<Place, RunId>,
    chains: &BTreeMap<RunId, Vec<&Vec<Event>>>,
) {
    let Some(EventKind::WorkflowExecutionStarted { started: run }) =
        history.first().map(|event| &event.kind)
    else {
        return;
    };
    let (mut begun, mut over) = (BTreeMap::new(), BTreeSet::new());
    for event in history {
        if let EventKind::ChildWorkflowExecutionStarted { seq, run_id } = &event.kind {
            let known = started.get(&(run.run_id, *seq));
            assert_eq!(known, Some(run_id), "seed {seed}: no such child: {event:?}");
            assert!(
                begun.insert(*seq, *run_id).is_none(),
                "seed {seed}: started twice: {event:?}"
            );
        } else if let EventKind::ChildWorkflowExecutionCompleted { seq, .. }
        | EventKind::ChildWorkflowExecutionFailed { seq, .. }
        | EventKind::ChildWorkflowExecutionCanceled { seq, .. }
        | EventKind::ChildWorkflowExecutionTerminated { seq, .. }
        | EventKind::ChildWorkflowExecutionTimedOut { seq, .. } = &event.kind
        {
            assert!(over.insert(*seq), "seed {seed}: reported twice: {event:?}");
            let last = begun
                .get(seq)
                .and_then(|first| chains.get(first)?.last()?.last());
            check_outcome(seed, &event.kind, last);
        }
    }
}

/// What a parent heard, against the end of the child's last run. What it did not wait for it did
/// not hear.
fn check_outcome(seed: u64, heard: &EventKind, last: Option<&Event>) {
    let last = last.map(|event| &event.kind);
    let is_so = match heard {
        EventKind::ChildWorkflowExecutionCompleted { result, .. } => {
            matches!(last, Some(EventKind::WorkflowExecutionCompleted { result: own, .. }) if own == result)
        }
        EventKind::ChildWorkflowExecutionFailed { .. } => {
            matches!(last, Some(EventKind::WorkflowExecutionFailed { .. }))
        }
        EventKind::ChildWorkflowExecutionCanceled { is_left, .. } => {
            *is_left || matches!(last, Some(EventKind::WorkflowExecutionCanceled { .. }))
        }
        EventKind::ChildWorkflowExecutionTerminated { .. } => {
            matches!(last, Some(EventKind::WorkflowExecutionTerminated { .. }))
        }
        _ => false,
    };
    assert!(is_so, "seed {seed}: heard {heard:?}, but it was {last:?}");
}
