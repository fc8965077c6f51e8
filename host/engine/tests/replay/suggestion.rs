//! When a workflow is advised to continue as new.

use steadfast_engine::Replay;
use steadfast_model::limits::{
    HISTORY_BYTES_SUGGESTED, HISTORY_EVENTS_SUGGESTED, PAYLOAD_BYTES_MAX, UPDATES_SUGGESTED,
};
use steadfast_model::{
    Event, EventKind, EventNumber, Payload, RequestId, SignalName, Timestamp, UpdateId, UpdateName,
};

use crate::common;

/// The first event from which on the advice is given, if `count` events like this are told.
fn advised_from(count: u64, kind: impl Fn(u64) -> EventKind) -> Option<u64> {
    let mut replay = Replay::new(common::started().random_seed, Timestamp(1));
    let mut told = Vec::new();
    for number in (2..).take(usize::try_from(count).expect("small")) {
        let event = Event {
            number: EventNumber(number),
            time: Timestamp(number),
            kind: kind(number),
        };
        replay.deliver(&event).expect("nothing recorded is left");
        told.push(number);
    }
    // A guest may ask late, in the middle of a batch: the answer is that of its event.
    told.into_iter()
        .find(|number| replay.is_continue_as_new_suggested(EventNumber(*number)))
}

fn signal(number: u64, bytes: usize) -> EventKind {
    EventKind::WorkflowExecutionSignaled {
        name: SignalName::new("s").expect("a name"),
        input: Payload::json("x".repeat(bytes)),
        request_id: RequestId::new(number.to_string()).expect("a name"),
        identity: String::new(),
    }
}

#[test]
fn many_events_much_data_and_many_updates_each_give_the_advice() {
    let events = HISTORY_EVENTS_SUGGESTED;
    assert_eq!(advised_from(events, |n| signal(n, 1)), Some(events));
    let large = HISTORY_BYTES_SUGGESTED / PAYLOAD_BYTES_MAX as u64;
    let advised = advised_from(large, |n| signal(n, PAYLOAD_BYTES_MAX));
    assert_eq!(advised, Some(1 + large));
    let update = |n: u64| EventKind::WorkflowExecutionUpdateAccepted {
        update_id: UpdateId::new(n.to_string()).expect("a name"),
        name: UpdateName::new("u").expect("a name"),
        input: Payload::json("1"),
        identity: String::new(),
    };
    let updates = UPDATES_SUGGESTED;
    assert_eq!(advised_from(updates + 5, update), Some(1 + updates));
    assert_eq!(advised_from(updates - 1, update), None);
}
