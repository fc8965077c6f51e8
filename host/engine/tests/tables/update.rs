//! Updates: admitted, accepted or refused, completed.

use insta::assert_snapshot;
use steadfast_engine::{Rejection, Request};
use steadfast_model::limits::{UPDATES_IN_FLIGHT_MAX, UPDATES_MAX};
use steadfast_model::{Payload, Timestamp, UpdateName};

use crate::common::{World, admit, complete_update, signal, terminate, update_id, yields};
use crate::print::{check, play};

fn accept(number: u32) -> Request {
    Request::AcceptUpdate { number }
}

fn refuse(number: u32) -> Request {
    Request::RefuseUpdate { number }
}

#[test]
fn an_update_is_admitted_accepted_and_completed_once() {
    assert_snapshot!(check([
        (1, admit("a")),
        (2, admit("a")),
        (3, signal("s")),
        (4, accept(1)),
        (5, accept(1)),
        (6, admit("a")),
        (7, yields(6, [complete_update("a"), complete_update("a")])),
        (8, yields(7, [complete_update("a"), complete_update("b")])),
        (9, admit("a")),
    ]), @"
    1 admit a
      update 1 admitted
    2 admit a
    3 signal s
      2@3 WorkflowExecutionSignaled go 4 by alice (s)
    4 accept 1
      3@4 WorkflowExecutionUpdateAccepted add 4 by alice (a)
      update 1 removed
    5 accept 1
      rejected: update number 1 is not admitted: it was accepted or refused before
    6 admit a
    7 yield [CompleteUpdate, CompleteUpdate] blocked
      4@6 WorkflowExecutionUpdateCompleted a of 3: 5
    8 yield [CompleteUpdate, CompleteUpdate] blocked
    9 admit a
    ");
}

#[test]
fn a_refused_update_leaves_no_trace_and_may_come_again() {
    assert_snapshot!(check([
        (1, admit("a")),
        (1, admit("b")),
        (2, refuse(1)),
        (3, refuse(1)),
        (4, admit("a")),
        (5, accept(2)),
    ]), @"
    1 admit a
      update 1 admitted
    1 admit b
      update 2 admitted
    2 refuse 1
      update 1 removed
    3 refuse 1
      rejected: update number 1 is not admitted: it was accepted or refused before
    4 admit a
      update 3 admitted
    5 accept 2
      2@5 WorkflowExecutionUpdateAccepted add 4 by alice (b)
      update 2 removed
    ");
}

#[test]
fn a_run_that_ends_drops_what_it_admitted() {
    assert_snapshot!(check([
        (1, admit("a")),
        (2, accept(1)),
        (3, admit("b")),
        (4, terminate()),
        (5, admit("c")),
        (6, accept(1)),
    ]), @"
    1 admit a
      update 1 admitted
    2 accept 1
      2@2 WorkflowExecutionUpdateAccepted add 4 by alice (a)
      update 1 removed
    3 admit b
      update 1 admitted
    4 terminate
      3@4 WorkflowExecutionTerminated stuck by carol
      update 1 removed
    5 admit c
      rejected: the run has already terminated
    6 accept 1
      rejected: the run has already terminated
    ");
}

#[test]
fn a_run_has_a_limited_number_of_updates_in_flight() {
    let mut world = World::begin(0);
    for i in 0..UPDATES_IN_FLIGHT_MAX {
        world.step(1, &admit(&format!("u{i}"))).expect("accepted");
        if i % 2 == 0 {
            let first = *world.execution.updates.keys().next().expect("admitted");
            world.step(2, &accept(first)).expect("accepted");
        }
    }
    let refused = world.step(3, &admit("one too many"));
    assert_eq!(refused, Err(Rejection::TooManyUpdatesInFlight));
    // A known one is answered as before, even now.
    assert!(world.step(3, &admit("u1")).is_ok());
    world
        .step(4, &yields(4, [complete_update("u0")]))
        .expect("accepted");
    assert!(world.step(5, &admit("one too many")).is_ok());
    assert_snapshot!(Rejection::TooManyUpdatesInFlight, @"the run has 10 updates in flight, the most allowed: wait for one to end");
}

#[test]
fn inputs_in_flight_are_bounded_together() {
    let large = |id: &str| Request::AdmitUpdate {
        update_id: update_id(id),
        name: UpdateName::new("add").expect("valid"),
        input: Payload::json(vec![b' '; 5 * 1024 * 1024]),
        identity: String::new(),
    };
    let mut world = World::begin(0);
    for id in ["a", "b", "c", "d"] {
        world.step(1, &large(id)).expect("accepted");
    }
    world.step(2, &accept(1)).expect("accepted");
    assert_eq!(world.step(3, &large("e")), Err(Rejection::UpdatesTooLarge));
    world
        .step(4, &yields(4, [complete_update("a")]))
        .expect("accepted");
    assert!(world.step(5, &large("e")).is_ok());
    assert_snapshot!(Rejection::UpdatesTooLarge, @"the inputs of the run's updates in flight would exceed 20971520 bytes: wait for one to end");
}

#[test]
fn a_run_has_a_limited_number_of_updates_over_its_life() {
    let mut world = World::begin(0);
    let text = play(&mut world, [(1, admit("first")), (2, accept(1))]);
    assert!(text.contains("Accepted"), "{text}");
    world
        .step(3, &yields(3, [complete_update("first")]))
        .expect("accepted");
    // One was recorded the long way; the others stand for themselves.
    let template = world.execution.state.updates[&update_id("first")];
    for i in 1..UPDATES_MAX {
        let id = update_id(&format!("u{i}"));
        world.execution.state.updates.insert(id, template);
    }
    let step = |id: &str| steadfast_engine::decide(&world.execution, admit(id), Timestamp(4));
    assert_eq!(step("one too many"), Err(Rejection::TooManyUpdates));
    assert!(step("first").is_ok());
    assert_snapshot!(Rejection::TooManyUpdates, @"the run has had 2000 updates, the most allowed: continue it as new");
}
