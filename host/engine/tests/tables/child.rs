//! Children and messages between executions.

use std::collections::BTreeSet;

use insta::assert_snapshot;
use steadfast_engine::chain::{Closing, Minted};
use steadfast_engine::child::{Answer, ChildOutcome, Undeliverable, letters};
use steadfast_engine::{Decision, Request};
use steadfast_model::child::{
    ChildCancellation, FailedCause, LetterKind, ParentClosePolicy, ParentCloseScope,
};
use steadfast_model::command::{Command, Step};
use steadfast_model::event::Started;
use steadfast_model::{EventKind, Failure, Payload, RunId, RunKey, Seq, Timestamp};

use crate::common::{World, boom, ends, outside, terminate, yields};
use crate::print::{check, play};

fn started(seq: u32) -> Request {
    Request::Answer(Answer::ChildStarted {
        seq: Seq(seq),
        result: Ok(outside::CHILD_RUN),
    })
}

fn refused(seq: u32) -> Request {
    Request::Answer(Answer::ChildStarted {
        seq: Seq(seq),
        result: Err(outside::taken()),
    })
}

fn closed(seq: u32, outcome: ChildOutcome) -> Request {
    Request::Answer(Answer::ChildClosed {
        seq: Seq(seq),
        run_id: outside::CHILD_RUN,
        outcome,
    })
}

fn told(seq: u32, of_child: bool) -> Request {
    Request::Answer(Answer::CancelRequested {
        seq: Seq(seq),
        of_child,
        result: Ok(()),
    })
}

fn completed() -> ChildOutcome {
    ChildOutcome::Completed(Payload::json("7"))
}

fn cancel(seq: u32) -> Command {
    Command::CancelChild {
        seq: Seq(seq),
        reason: "enough".into(),
    }
}

/// The letters that a run owes, as text.
fn owed(world: &World) -> String {
    let names: Vec<_> = letters(&world.execution.state)
        .map(|(seq, kind)| format!("{kind:?} {seq}"))
        .collect();
    names.join(", ")
}

#[test]
fn a_child_starts_and_completes() {
    assert_snapshot!(check([
        (0, yields(0, [outside::child("a"), outside::child("b")])),
        (1, started(1)),
        (2, started(3)),
        (3, closed(3, completed())),
        (4, closed(1, ChildOutcome::Failed(boom()))),
    ]), @"
    0 yield [StartChild, StartChild] blocked
      2@0 StartChildWorkflowExecutionInitiated 1 part as a
      3@0 StartChildWorkflowExecutionInitiated 3 part as b
    1 child-started 1 ok
      4@1 ChildWorkflowExecutionStarted 1
    2 child-started 3 ok
      5@2 ChildWorkflowExecutionStarted 3
    3 child-closed 3
      6@3 ChildWorkflowExecutionCompleted 3 7
    4 child-closed 1
      7@4 ChildWorkflowExecutionFailed 1
        child-workflow part: child workflow part (a) failed
        application boom: it broke
    ");
}

#[test]
fn other_ends_of_a_child() {
    assert_snapshot!(check([
        (0, yields(0, [outside::child("a"), outside::child("b"), outside::child("c"), outside::child("d")])),
        (1, closed(1, ChildOutcome::Canceled(Failure::canceled("as asked")))),
        (2, closed(3, ChildOutcome::TimedOut(Failure::application("timeout", "too slow")))),
        (3, closed(5, ChildOutcome::Terminated { reason: "stuck".into() })),
        (4, refused(7)),
    ]), @"
    0 yield [StartChild, StartChild, StartChild, StartChild] blocked
      2@0 StartChildWorkflowExecutionInitiated 1 part as a
      3@0 StartChildWorkflowExecutionInitiated 3 part as b
      4@0 StartChildWorkflowExecutionInitiated 5 part as c
      5@0 StartChildWorkflowExecutionInitiated 7 part as d
    1 child-closed 1
      6@1 ChildWorkflowExecutionStarted 1
      7@1 ChildWorkflowExecutionCanceled 1
        child-workflow part: child workflow part (a) was cancelled
        canceled canceled: as asked
    2 child-closed 3
      8@2 ChildWorkflowExecutionStarted 3
      9@2 ChildWorkflowExecutionTimedOut 3
        child-workflow part: child workflow part (b) timed out
        application timeout: too slow
    3 child-closed 5
      10@3 ChildWorkflowExecutionStarted 5
      11@3 ChildWorkflowExecutionTerminated 5
        child-workflow part: child workflow part (c) was terminated
        terminated terminated: stuck
    4 child-started 7 refused
      12@4 StartChildWorkflowExecutionFailed 7 workflow-already-exists
        child-workflow part: child workflow part (d) could not be started
        application workflow-already-exists: the name is taken
    ");
}

#[test]
fn answers_count_once_and_in_any_order() {
    let mut world = World::begin(0);
    let nothing = Ok(Decision::default());
    let step = |world: &mut World, request: &Request| world.step(1, request);
    step(&mut world, &yields(0, [outside::child("a")])).expect("accepted");
    // The end overtakes the answer to the start: both are recorded.
    let decision = step(&mut world, &closed(1, completed())).expect("accepted");
    assert_eq!(decision.events.len(), 2);
    assert_eq!(step(&mut world, &started(1)), nothing);
    assert_eq!(step(&mut world, &closed(1, completed())), nothing);
    assert_eq!(step(&mut world, &refused(1)), nothing);
    assert_eq!(step(&mut world, &told(1, true)), nothing);
    // What was never asked for changes nothing either.
    assert_eq!(step(&mut world, &started(9)), nothing);
    assert_eq!(step(&mut world, &told(9, false)), nothing);
    // Another run under the child's name is a stranger.
    step(&mut world, &yields(0, [outside::child("b")])).expect("accepted");
    step(&mut world, &started(3)).expect("accepted");
    let stranger = Request::Answer(Answer::ChildClosed {
        seq: Seq(3),
        run_id: RunId::from_bytes([9; 16]),
        outcome: completed(),
    });
    assert_eq!(step(&mut world, &stranger), nothing);
}

#[test]
fn cancellation_types() {
    let with = |how| outside::child_with("a", |options| options.cancellation = how);
    assert_snapshot!(check([
        (0, yields(0, [
            with(ChildCancellation::Abandon),
            with(ChildCancellation::TryCancel),
            with(ChildCancellation::WaitCancellationCompleted),
            with(ChildCancellation::WaitCancellationRequested),
        ])),
        (1, started(1)),
        (1, started(3)),
        (1, started(5)),
        (1, started(7)),
        (2, yields(2, [cancel(1), cancel(3), cancel(5), cancel(7)])),
        (3, told(3, true)),
        (3, told(5, true)),
        (3, told(7, true)),
        (4, closed(1, completed())),
        (4, closed(3, completed())),
        (4, closed(5, ChildOutcome::Canceled(Failure::canceled("ok")))),
        (4, closed(7, completed())),
    ]), @"
    0 yield [StartChild, StartChild, StartChild, StartChild] blocked
      2@0 StartChildWorkflowExecutionInitiated 1 part as a
      3@0 StartChildWorkflowExecutionInitiated 3 part as a
      4@0 StartChildWorkflowExecutionInitiated 5 part as a
      5@0 StartChildWorkflowExecutionInitiated 7 part as a
    1 child-started 1 ok
      6@1 ChildWorkflowExecutionStarted 1
    1 child-started 3 ok
      7@1 ChildWorkflowExecutionStarted 3
    1 child-started 5 ok
      8@1 ChildWorkflowExecutionStarted 5
    1 child-started 7 ok
      9@1 ChildWorkflowExecutionStarted 7
    2 yield [CancelChild, CancelChild, CancelChild, CancelChild] blocked
      10@2 RequestCancelExternalWorkflowExecutionInitiated 1 a (child only) child abandon enough
      11@2 ChildWorkflowExecutionCanceled 1 left
        child-workflow part: child workflow part (a) was cancelled
        canceled canceled: the parent does not wait for it any longer
      12@2 RequestCancelExternalWorkflowExecutionInitiated 3 a (child only) child try-cancel enough
      13@2 ChildWorkflowExecutionCanceled 3 left
        child-workflow part: child workflow part (a) was cancelled
        canceled canceled: the parent does not wait for it any longer
      14@2 RequestCancelExternalWorkflowExecutionInitiated 5 a (child only) child wait-cancellation-completed enough
      15@2 RequestCancelExternalWorkflowExecutionInitiated 7 a (child only) child wait-cancellation-requested enough
    3 cancel-requested child 3 ok
      16@3 ExternalWorkflowExecutionCancelRequested 3 child
    3 cancel-requested child 5 ok
      17@3 ExternalWorkflowExecutionCancelRequested 5 child
    3 cancel-requested child 7 ok
      18@3 ExternalWorkflowExecutionCancelRequested 7 child
      19@3 ChildWorkflowExecutionCanceled 7 left
        child-workflow part: child workflow part (a) was cancelled
        canceled canceled: the parent does not wait for it any longer
    4 child-closed 1
    4 child-closed 3
    4 child-closed 5
      20@4 ChildWorkflowExecutionCanceled 5
        child-workflow part: child workflow part (a) was cancelled
        canceled canceled: ok
    4 child-closed 7
    ");
}

#[test]
fn a_child_is_cancelled_once_and_not_after_its_end() {
    assert_snapshot!(check([
        (0, yields(0, [outside::child("a"), cancel(1), cancel(1)])),
        (1, started(1)),
        (2, closed(1, completed())),
        (3, yields(3, [cancel(1)])),
    ]), @"
    0 yield [StartChild, CancelChild, CancelChild] blocked
      2@0 StartChildWorkflowExecutionInitiated 1 part as a
      3@0 RequestCancelExternalWorkflowExecutionInitiated 1 a (child only) child wait-cancellation-completed enough
    1 child-started 1 ok
      4@1 ChildWorkflowExecutionStarted 1
    2 child-closed 1
      5@2 ChildWorkflowExecutionCompleted 1 7
    3 yield [CancelChild] blocked
    ");
}

#[test]
fn signals_and_cancel_requests_to_others() {
    let not_found = || Undeliverable {
        cause: FailedCause::ExternalWorkflowExecutionNotFound,
        message: "there is no workflow execution x".into(),
    };
    let signaled = |seq, result| {
        Request::Answer(Answer::Signaled {
            seq: Seq(seq),
            result,
        })
    };
    let failed = Request::Answer(Answer::CancelRequested {
        seq: Seq(4),
        of_child: false,
        result: Err(not_found()),
    });
    assert_snapshot!(check([
        (0, yields(0, [
            outside::signal_to("x", "go"),
            outside::signal_to("y", "go"),
            outside::cancel_to("x"),
            outside::cancel_to("y"),
        ])),
        (1, signaled(1, Ok(()))),
        (2, signaled(2, Err(not_found()))),
        (3, told(3, false)),
        (4, failed),
        (5, signaled(1, Ok(()))),
    ]), @"
    0 yield [SignalExternal, SignalExternal, RequestCancelExternal, RequestCancelExternal] blocked
      2@0 SignalExternalWorkflowExecutionInitiated 1 go 4 to x
      3@0 SignalExternalWorkflowExecutionInitiated 2 go 4 to y
      4@0 RequestCancelExternalWorkflowExecutionInitiated 3 x enough
      5@0 RequestCancelExternalWorkflowExecutionInitiated 4 y enough
    1 signaled 1 ok
      6@1 ExternalWorkflowExecutionSignaled 1
    2 signaled 2 refused
      7@2 SignalExternalWorkflowExecutionFailed 2 external-workflow-execution-not-found
        application external-workflow-execution-not-found: there is no workflow execution x
    3 cancel-requested external 3 ok
      8@3 ExternalWorkflowExecutionCancelRequested 3
    4 cancel-requested external 4 refused
      9@4 RequestCancelExternalWorkflowExecutionFailed 4 external-workflow-execution-not-found
        application external-workflow-execution-not-found: there is no workflow execution x
    5 signaled 1 ok
    ");
}

#[test]
fn a_run_owes_letters_until_they_are_answered() {
    let mut world = World::begin(0);
    play(
        &mut world,
        [(
            0,
            yields(
                0,
                [
                    outside::child("a"),
                    cancel(1),
                    outside::signal_to("x", "go"),
                    outside::cancel_to("x"),
                ],
            ),
        )],
    );
    assert_snapshot!(owed(&world), @"Signal 3, Cancel 4, StartChild 1, CancelChild 1");
    play(&mut world, [(1, started(1)), (1, told(4, false))]);
    assert_snapshot!(owed(&world), @"Signal 3, CancelChild 1");
    play(&mut world, [(1, told(1, true))]);
    assert_snapshot!(owed(&world), @"Signal 3");
}

/// What is owed after a parent's end, by the policies of its children.
#[test]
fn a_closed_run_owes_what_its_children_were_promised() {
    let with =
        |policy| outside::child_with("a", move |options| options.parent_close_policy = policy);
    for is_started in [false, true] {
        let mut world = World::begin(0);
        play(
            &mut world,
            [(
                0,
                yields(
                    0,
                    [
                        with(ParentClosePolicy::Terminate),
                        with(ParentClosePolicy::Abandon),
                        with(ParentClosePolicy::RequestCancel),
                        outside::child("over"),
                        outside::signal_to("x", "go"),
                    ],
                ),
            )],
        );
        if is_started {
            play(
                &mut world,
                [(1, started(1)), (1, started(3)), (1, started(5))],
            );
        }
        play(&mut world, [(2, closed(7, completed())), (3, terminate())]);
        let expected = if is_started {
            "Signal 9, ParentClosed 1, ParentClosed 5"
        } else {
            "Signal 9, ParentClosed 1, StartChild 3, ParentClosed 5"
        };
        assert_eq!(owed(&world), expected);
    }
}

/// Scenario 32 in small: started and closed in one activation.
#[test]
fn a_child_started_with_the_last_breath_is_owed_only_if_it_is_to_outlive_its_parent() {
    for (policy, expected) in [
        (ParentClosePolicy::Abandon, "StartChild 1"),
        (ParentClosePolicy::Terminate, "ParentClosed 1"),
    ] {
        let mut world = World::begin(0);
        let child = outside::child_with("a", |options| options.parent_close_policy = policy);
        let done = Step::Completed(Payload::json("1"));
        play(&mut world, [(0, ends(0, [child], done))]);
        assert_eq!(owed(&world), expected);
    }
}

#[test]
fn a_child_that_ends_owes_its_parent_the_outcome() {
    let mut world = World::begin_as_child(0);
    assert_eq!(owed(&world), "");
    play(&mut world, [(3, terminate())]);
    assert_eq!(owed(&world), "Outcome 0");
    let kinds: Vec<_> = letters(&world.execution.state)
        .map(|(_, kind)| kind)
        .collect();
    assert_eq!(kinds, [LetterKind::Outcome]);
}

/// A run that goes on in another one: what it owes, and the run that follows.
fn continued(mut world: World, ended_wards: BTreeSet<usize>) -> (World, Started) {
    let closing = Closing {
        minted: Minted {
            run: RunKey(2),
            run_id: RunId::from_bytes([8; 16]),
            random_seed: [0; 32],
        },
        cron_next: None,
        undelivered: Vec::new(),
        undelivered_cancel: None,
        ended_wards,
    };
    let request = Request::Yield {
        commands: Vec::new(),
        step: Step::ContinuedAsNew(Box::default()),
        at: Timestamp(9),
        closing: Some(Box::new(closing)),
    };
    let decision = world.step(9, &request).expect("accepted");
    let successor = decision.successor.expect("a run follows");
    match successor.events.into_iter().next().map(|event| event.kind) {
        Some(EventKind::WorkflowExecutionStarted { started }) => (world, *started),
        other => panic!("a run begins with its start: {other:?}"),
    }
}

/// Scenario 35: what ends with the chain is handed on from run to run, and told by the last one.
#[test]
fn children_of_a_chain_are_handed_on_to_its_last_run() {
    let with = |id: &str, policy, scope| {
        outside::child_with(id, move |options| {
            options.parent_close_policy = policy;
            options.parent_close_scope = scope;
        })
    };
    let (run, chain) = (ParentCloseScope::Run, ParentCloseScope::Chain);
    let mut world = World::begin(0);
    let commands = [
        with("of the run", ParentClosePolicy::Terminate, run),
        with("begun", ParentClosePolicy::Terminate, chain),
        with("not begun", ParentClosePolicy::RequestCancel, chain),
        with("over", ParentClosePolicy::Terminate, chain),
        with("abandoned", ParentClosePolicy::Abandon, chain),
    ];
    play(&mut world, [(0, yields(0, commands))]);
    play(&mut world, [(1, started(1)), (1, started(3))]);
    play(&mut world, [(2, closed(7, completed()))]);
    let (world, next) = continued(world, BTreeSet::new());
    assert_eq!(owed(&world), "ParentClosed 1, StartChild 5, StartChild 9");
    let names = |started: &Started| {
        let wards = started.link.wards.iter();
        let names = wards.map(|ward| format!("{} {}", ward.workflow_id, ward.seq));
        names.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(names(&next), "begun 3, not begun 5");
    let mut world = World::begin_with(next, 10);
    play(
        &mut world,
        [(
            11,
            yields(11, [with("late", ParentClosePolicy::Terminate, chain)]),
        )],
    );
    assert_eq!(owed(&world), "StartChild 1");
    // The first has ended meanwhile: nobody needs to know of it any more.
    let (world, next) = continued(world, BTreeSet::from([0]));
    assert_eq!(owed(&world), "StartChild 1");
    assert_eq!(names(&next), "not begun 5, late 1");
    let mut world = World::begin_with(next, 20);
    play(&mut world, [(21, terminate())]);
    assert_eq!(owed(&world), "ChainClosed 0, ChainClosed 1");
}
