//! What a run may wait for at a time.

use steadfast_engine::Replay;
use steadfast_model::Timestamp;
use steadfast_model::command::Command;
use steadfast_model::limits::{PENDING_CANCELS_MAX, PENDING_CHILDREN_MAX, PENDING_SIGNALS_MAX};

use crate::common::outside;

/// Children, signals and cancel requests are counted apart, from the moment they are asked for.
#[test]
fn what_concerns_other_executions_is_counted_by_kind() {
    let kinds: [(fn() -> Command, u64); 3] = [
        (|| outside::child("a"), PENDING_CHILDREN_MAX),
        (|| outside::signal_to("a", "go"), PENDING_SIGNALS_MAX),
        (|| outside::cancel_to("a"), PENDING_CANCELS_MAX),
    ];
    let mut replay = Replay::new([9; 32], Timestamp(0));
    for (times, (command, limit)) in (1..).zip(kinds) {
        assert_eq!(limit, 2000);
        for _ in 0..times {
            replay.issue(command());
        }
    }
    for (times, (command, limit)) in (1..).zip(kinds) {
        let pending = replay.pending_outside(&command());
        assert_eq!(
            pending.map(|(count, max, _)| (count, max)),
            Some((times, limit))
        );
    }
}
