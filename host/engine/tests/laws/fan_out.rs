//! Ten thousand activities cost ten times what a thousand cost, in events and in allocations.

use allocation_counter::{AllocationInfo, measure};
use steadfast_engine::decide::{Execution, Issued};
use steadfast_engine::replay::Matched;
use steadfast_engine::{Replay, Request, decide, start};
use steadfast_model::command::Step;
use steadfast_model::{Event, EventKind, Payload, RunKey, Seq, Timestamp};

use crate::common::{claim, complete, options, schedule, started};

fn take(execution: &mut Execution, history: &mut Vec<Event>, request: Request) -> usize {
    let decision = decide(execution, request, Timestamp(1)).expect("accepted");
    execution.apply(&decision).expect("applicable");
    let size = decision.events.len() + decision.tasks.len();
    history.extend(decision.events);
    size
}

/// Schedules `count` activities in one activation and completes them one by one. Returns the
/// history and how many facts and changes all decisions had.
fn fan_out(count: u32) -> (Vec<Event>, usize) {
    let first = start(started(), Timestamp(0));
    let mut execution = decide::begin(RunKey(1), &first).expect("a first event");
    let mut history = vec![first];
    let issued = || Issued {
        at: Timestamp(0),
        command: schedule("work", options()),
    };
    let commands = (0..count).map(|_| issued()).collect();
    let request = Request::Yield {
        commands,
        step: Step::Blocked,
        at: Timestamp(0),
        closing: None,
    };
    let mut size = take(&mut execution, &mut history, request);
    for seq in 1..=count {
        size += take(&mut execution, &mut history, claim(seq));
        size += take(&mut execution, &mut history, complete(seq, 1));
    }
    let done = Step::Completed(Payload::json("5"));
    let request = Request::Yield {
        commands: Vec::new(),
        step: done,
        at: Timestamp(1),
        closing: None,
    };
    size += take(&mut execution, &mut history, request);
    (history, size)
}

/// Replays such a history.
fn replay(history: &[Event]) {
    let mut replay = Replay::new([9; 32], Timestamp(0));
    let deliveries = replay.load(history.get(1..).expect("a history").to_vec());
    let count = history
        .iter()
        .filter(|e| e.kind.name() == "ActivityTaskScheduled")
        .count();
    for seq in (1..).take(count) {
        let matched = replay
            .schedule_activity("work", b"2", "")
            .expect("as recorded");
        assert_eq!(matched, Matched::Replayed(Seq(seq)));
    }
    for event in &deliveries {
        replay.deliver(event).expect("as recorded");
    }
    replay
        .end(&Step::Completed(Payload::json("5")))
        .expect("as recorded");
    assert!(!replay.is_replaying());
}

fn is_linear(what: &str, small: AllocationInfo, large: AllocationInfo) {
    // Twice of linear allows for vectors that double just before the end; quadratic is ten times.
    for (name, small, large) in [
        ("allocations", small.count_total, large.count_total),
        ("bytes", small.bytes_total, large.bytes_total),
    ] {
        assert!(
            large <= small * 20,
            "{what}: {small} {name}, and {large} for ten times as many"
        );
    }
}

#[test]
fn a_fan_out_is_linear() {
    // A small one first: were it quadratic, the large one would never end.
    is_linear(
        "deciding",
        measure(|| drop(fan_out(100))),
        measure(|| drop(fan_out(1_000))),
    );
    let (history, size) = fan_out(10_000);
    // Started, two events for each, completed.
    assert_eq!(history.len(), 20_002);
    // Scheduled and put, put again when claimed, completed and removed.
    assert_eq!(size, 5 * 10_000 + 1);
    assert!(matches!(history.last().map(|e| &e.kind), Some(k) if k.is_close()));
    let is_result = |e: &&Event| matches!(e.kind, EventKind::ActivityTaskCompleted { .. });
    assert_eq!(history.iter().filter(is_result).count(), 10_000);

    let small = measure(|| drop(fan_out(1_000)));
    let large = measure(|| drop(fan_out(10_000)));
    is_linear("deciding", small, large);
    let (short, _) = fan_out(1_000);
    is_linear(
        "replaying",
        measure(|| replay(&short)),
        measure(|| replay(&history)),
    );
}
