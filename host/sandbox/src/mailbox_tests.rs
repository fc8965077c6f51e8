//! What waits, and who gets it.
#![allow(clippy::expect_used, reason = "test code")]

use steadfast_model::{EventNumber, RequestId, Seq, SignalName, Timestamp};

use super::*;

fn event(number: u64, kind: EventKind) -> Event {
    Event {
        number: EventNumber(number),
        time: Timestamp(number),
        kind,
    }
}

fn signal(mailbox: &mut Mailbox, number: u64, name: &str, json: &str) {
    let kind = EventKind::WorkflowExecutionSignaled {
        name: SignalName::new(name).expect("a name"),
        input: Payload::json(json),
        request_id: RequestId::new("r").expect("a name"),
        identity: String::new(),
    };
    mailbox.deliver(&event(number, kind));
}

fn fired(mailbox: &mut Mailbox, number: u64, seq: u32) {
    mailbox.deliver(&event(number, EventKind::TimerFired { seq: Seq(seq) }));
}

fn text(outcome: Option<Outcome>) -> String {
    let payload = outcome.expect("resolved").expect("a result");
    String::from_utf8(payload.data).expect("text")
}

#[test]
fn the_earlier_event_wins_whatever_the_order_of_the_list() {
    let mut mailbox = Mailbox::default();
    mailbox.given(3);
    fired(&mut mailbox, 5, 3);
    fired(&mut mailbox, 6, 1);
    assert_eq!(mailbox.first_of(&[1, 2, 3]), Ok(Some(2)));
    assert_eq!(mailbox.first_of(&[2]), Ok(None));
}

#[test]
fn signals_go_to_receivers_in_order_of_asking() {
    let mut mailbox = Mailbox::default();
    signal(&mut mailbox, 2, "a", "1");
    let first = mailbox.receive_signal("a").expect("room");
    let second = mailbox.receive_signal("a").expect("room");
    let third = mailbox.receive_signal("a").expect("room");
    signal(&mut mailbox, 3, "a", "2");
    assert_eq!(text(mailbox.take(first).expect("known")), "1");
    assert_eq!(text(mailbox.take(second).expect("known")), "2");
    assert!(mailbox.take(third).expect("known").is_none());
}

#[test]
fn a_released_signal_is_the_oldest_again() {
    let mut mailbox = Mailbox::default();
    let abandoned = mailbox.receive_signal("a").expect("room");
    signal(&mut mailbox, 2, "a", "1");
    signal(&mut mailbox, 3, "a", "2");
    mailbox.release(abandoned);
    for expected in ["1", "2"] {
        let operation = mailbox.receive_signal("a").expect("room");
        assert_eq!(text(mailbox.take(operation).expect("known")), expected);
    }
}

#[test]
fn a_released_signal_goes_to_whoever_waits_meanwhile() {
    let mut mailbox = Mailbox::default();
    let abandoned = mailbox.receive_signal("a").expect("room");
    let waiting = mailbox.receive_signal("a").expect("room");
    signal(&mut mailbox, 2, "a", "1");
    mailbox.release(abandoned);
    assert_eq!(text(mailbox.take(waiting).expect("known")), "1");
    // A receiver that is released while it waits takes nothing away.
    let gone = mailbox.receive_signal("a").expect("room");
    mailbox.release(gone);
    signal(&mut mailbox, 3, "a", "2");
    let operation = mailbox.receive_signal("a").expect("room");
    assert_eq!(text(mailbox.take(operation).expect("known")), "2");
}

#[test]
fn a_cancelled_timer_is_resolved_once() {
    let mut mailbox = Mailbox::default();
    mailbox.given(2);
    fired(&mut mailbox, 2, 1);
    mailbox.timer_canceled(1, 3);
    mailbox.timer_canceled(2, 3);
    assert!(matches!(mailbox.take(1), Ok(Some(Ok(_)))));
    assert!(matches!(mailbox.take(2), Ok(Some(Err(_)))));
}

#[test]
fn what_never_was_is_named() {
    let mut mailbox = Mailbox::default();
    mailbox.given(1);
    for operation in [0, 2, FIRST_LOCAL] {
        let stop = mailbox.take(operation).expect_err("unknown");
        assert!(stop.to_string().contains("never started"), "{stop}");
        assert!(mailbox.first_of(&[1, operation]).is_err());
    }
}

#[test]
fn receivers_are_bounded() {
    let mut mailbox = Mailbox::default();
    for _ in 0..RECEIVERS_MAX {
        mailbox.receive_signal("a").expect("room");
    }
    let stop = mailbox.receive_cancel().expect_err("no room");
    assert!(matches!(stop, Stop::Limit(_)), "{stop}");
}

#[test]
fn the_cancel_request_reaches_those_before_and_after() {
    let mut mailbox = Mailbox::default();
    let before = mailbox.receive_cancel().expect("room");
    assert!(!mailbox.is_cancel_requested());
    let kind = EventKind::WorkflowExecutionCancelRequested {
        reason: "enough".to_owned(),
        identity: String::new(),
        request_id: RequestId::new("r").expect("a name"),
    };
    mailbox.deliver(&event(4, kind));
    let after = mailbox.receive_cancel().expect("room");
    assert!(mailbox.is_cancel_requested());
    assert_eq!(text(mailbox.take(before).expect("known")), "\"enough\"");
    assert_eq!(text(mailbox.take(after).expect("known")), "\"enough\"");
}
