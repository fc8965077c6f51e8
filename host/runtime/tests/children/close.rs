//! What becomes of children when their parents end.

use steadfast_model::{EventKind, Status};
use steadfast_ports::fake::Op;

use crate::fixture::{Fixture, child, named, start_child, wait, with};

/// A taken id is refused, and the stranger who has it is left alone when the parent ends.
#[tokio::test(flavor = "multi_thread")]
async fn scenario_034_a_stranger_with_the_id_of_a_child_is_left_alone() {
    let fixture = Fixture::new(&[
        ("parent", vec![child("waits", named("taken")), Op::Complete]),
        ("waits", vec![wait(), Op::Complete]),
    ])
    .await;
    fixture.start("waits", "taken").await;
    fixture.start("parent", "p").await;
    let result = fixture.result("p").await;
    assert!(result.contains("is taken by run"), "{result}");
    fixture.signal("taken").await;
    fixture.until("taken", Status::Completed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_becomes_of_children_when_their_parent_ends() {
    for (policy, expected) in [
        ("terminate", Status::Terminated),
        ("request-cancel", Status::Canceled),
        ("abandon", Status::Running),
    ] {
        let options = with(&[("workflow-id", "c"), ("parent-close-policy", policy)]);
        let fixture = Fixture::new(&[
            ("parent", vec![start_child("waits", options), wait()]),
            ("waits", vec![Op::WaitCancel, Op::AcceptCancel]),
        ])
        .await;
        fixture.start("parent", "p").await;
        fixture.until("c", Status::Running).await;
        fixture.signal("p").await;
        fixture.until("p", Status::Completed).await;
        if expected == Status::Running {
            fixture.cancel("c").await;
            fixture.until("c", Status::Canceled).await;
        } else {
            fixture.until("c", expected).await;
        }
    }
}

/// The child ended unheard, and a stranger took its id before the parent ended.
#[tokio::test(flavor = "multi_thread")]
async fn scenario_034_a_stranger_who_took_the_id_of_a_dead_child_is_left_alone() {
    let options = with(&[("workflow-id", "c"), ("cancellation-type", "abandon")]);
    let fixture = Fixture::new(&[
        (
            "parent",
            vec![start_child("waits", options), Op::CancelChild, wait()],
        ),
        ("waits", vec![wait(), Op::Complete]),
    ])
    .await;
    fixture.start("parent", "p").await;
    fixture
        .until_named("p", "ChildWorkflowExecutionCanceled")
        .await;
    fixture.terminate("c").await;
    fixture.start("waits", "c").await;
    fixture.signal("p").await;
    fixture.until("p", Status::Completed).await;
    fixture.until_nothing_is_owed().await;
    assert_eq!(fixture.status("c"), Status::Running);
}

/// The policy finds the run that the child is in, not only the one that was started.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_parent_reaches_the_last_run_of_its_child() {
    for (policy, expected) in [
        ("terminate", Status::Terminated),
        ("request-cancel", Status::Canceled),
    ] {
        let options = with(&[("workflow-id", "c"), ("parent-close-policy", policy)]);
        let fixture = Fixture::new(&[
            ("parent", vec![start_child("chain", options), wait()]),
            (
                "chain",
                vec![wait(), Op::ContinueAsNew, Op::WaitCancel, Op::AcceptCancel],
            ),
        ])
        .await;
        fixture.start("parent", "p").await;
        fixture.until("c", Status::Running).await;
        fixture.signal("c").await;
        fixture.until_runs("c", 2).await;
        fixture.signal("c").await;
        fixture.signal("p").await;
        fixture.until("c", expected).await;
        assert_eq!(fixture.runs("c").await[0], Status::ContinuedAsNew);
    }
}

/// Going on in a new run is an end of the run that started the child.
#[tokio::test(flavor = "multi_thread")]
async fn a_parent_that_continues_as_new_ends_the_children_of_its_run() {
    for (policy, expected) in [
        ("terminate", Status::Terminated),
        ("request-cancel", Status::Canceled),
        ("abandon", Status::Running),
    ] {
        let options = with(&[("parent-close-policy", policy)]);
        let fixture = Fixture::new(&[
            (
                "parent",
                vec![start_child("waits", options), Op::ContinueAsNew, wait()],
            ),
            ("waits", vec![Op::WaitCancel, Op::AcceptCancel]),
        ])
        .await;
        fixture.start("parent", "p").await;
        fixture.until_runs("p", 2).await;
        let kids = fixture.kids(2).await;
        fixture.until(&kids[0], expected).await;
        assert_eq!(fixture.status(&kids[1]), Status::Running);
        fixture.signal("p").await;
        fixture.until("p", Status::Completed).await;
        fixture.until(&kids[1], expected).await;
        fixture.until(&kids[0], expected).await;
    }
}

/// Scenario 35: children whose scope is the chain live on through continue-as-new, and end with
/// the last run, whatever dies in between.
#[tokio::test(flavor = "multi_thread")]
async fn scenario_035_children_of_a_chain_live_as_long_as_the_chain() {
    for (policy, expected) in [
        ("terminate", Status::Terminated),
        ("request-cancel", Status::Canceled),
    ] {
        let options = with(&[
            ("parent-close-policy", policy),
            ("parent-close-scope", "chain"),
        ]);
        let mut fixture = Fixture::new(&[
            (
                "parent",
                vec![
                    start_child("waits", options),
                    wait(),
                    Op::ContinueAsNew,
                    Op::Complete,
                ],
            ),
            ("waits", vec![Op::WaitCancel, Op::AcceptCancel]),
        ])
        .await;
        fixture.start_with("parent", "p", "3").await;
        for run in 1..=3 {
            let kids = fixture.kids(run).await;
            fixture.crash();
            fixture.signal("p").await;
            fixture.until_runs("p", run + 1).await;
            fixture.until_nothing_is_owed().await;
            for kid in kids.iter().skip(usize::from(run > 1)) {
                assert_eq!(fixture.status(kid), Status::Running);
            }
            if run == 1 {
                // One of them ends by itself: the runs to come need not know of it.
                fixture.terminate(&kids[0]).await;
            }
        }
        let kids = fixture.kids(4).await;
        let first = fixture.history("p").await.swap_remove(0);
        let EventKind::WorkflowExecutionStarted { started } = first.kind else {
            panic!("{first:?}")
        };
        let known = started.link.wards.iter();
        let known: Vec<_> = known.map(|ward| ward.workflow_id.as_str()).collect();
        assert_eq!(known, [&kids[1], &kids[2]], "of {kids:?}");
        fixture.crash();
        fixture.signal("p").await;
        fixture.until("p", Status::Completed).await;
        fixture.crash();
        for kid in &kids[1..] {
            fixture.until(kid, expected).await;
        }
        fixture.until_nothing_is_owed().await;
    }
}

/// The last run can end before a child of an earlier one has begun: it is not forgotten.
#[tokio::test(flavor = "multi_thread")]
async fn children_of_a_chain_that_begin_late_end_with_it_too() {
    let options = with(&[("parent-close-scope", "chain")]);
    let fixture = Fixture::new(&[
        (
            "parent",
            vec![
                // A run that was told nothing would have its next one wait.
                Op::CancelExternal("nobody".to_owned()),
                Op::BeginChild("waits".to_owned(), "1".to_owned(), options),
                Op::ContinueAsNew,
                Op::Complete,
            ],
        ),
        ("waits", vec![wait(), Op::Complete]),
    ])
    .await;
    for i in 0..50 {
        fixture.start("parent", &format!("p{i}")).await;
    }
    for i in 0..50 {
        fixture.until(&format!("p{i}"), Status::Completed).await;
    }
    fixture.until_nothing_is_owed().await;
    let open = fixture.all().await;
    let open: Vec<_> = open
        .iter()
        .filter(|(_, status)| *status == Status::Running)
        .collect();
    assert!(open.is_empty(), "{open:?}");
}

/// Scenario 32: a child that is left to itself by the last breath of its parent runs.
#[tokio::test(flavor = "multi_thread")]
async fn scenario_032_a_child_abandoned_with_the_last_breath_runs() {
    let options = |id: &str| with(&[("workflow-id", id), ("parent-close-policy", "abandon")]);
    let scripts: Vec<(String, Vec<Op>)> = (0..100)
        .map(|i| {
            let id = format!("c{i}");
            let op = Op::BeginChild("fine".to_owned(), "1".to_owned(), options(&id));
            (format!("parent{i}"), vec![op, Op::Complete])
        })
        .collect();
    let mut scripts: Vec<(&str, Vec<Op>)> = scripts
        .iter()
        .map(|(name, ops)| (name.as_str(), ops.clone()))
        .collect();
    scripts.push(("fine", vec![Op::Complete]));
    let mut fixture = Fixture::new(&scripts).await;
    for i in 0..100 {
        fixture.start(&format!("parent{i}"), &format!("p{i}")).await;
        if i % 7 == 0 {
            fixture.crash();
        }
    }
    for i in 0..100 {
        fixture.until(&format!("p{i}"), Status::Completed).await;
        fixture.until(&format!("c{i}"), Status::Completed).await;
    }
    fixture.until_nothing_is_owed().await;
    assert_eq!(fixture.all().await.len(), 200);
}
