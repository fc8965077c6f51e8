//! How children end, and what their parents learn of it.

use steadfast_model::{Millis, Status};
use steadfast_ports::Store;
use steadfast_ports::fake::Op;
use steadfast_ports::guest::ChildCallOptions;

use crate::fixture::{Fixture, WAIT, child, named, pause, start_child, target, wait, with};

#[tokio::test(flavor = "multi_thread")]
async fn a_child_ends_in_every_way_and_its_parent_learns_how() {
    let fixture = Fixture::new(&[
        (
            "parent",
            vec![
                child("fine", named("c1")),
                child("broken", named("c2")),
                child("nobody", named("c3")),
                Op::Complete,
            ],
        ),
        ("fine", vec![Op::Complete]),
        ("broken", vec![Op::Fail("bad".to_owned())]),
    ])
    .await;
    fixture.start("parent", "p").await;
    let result = fixture.result("p").await;
    assert!(result.contains(r#""[\"1\"]""#), "{result}");
    assert!(result.contains("ChildWorkflowExecutionFailed"), "{result}");
    assert!(result.contains("not-started"), "{result}");
    let names = fixture.names("p").await;
    assert_eq!(
        names,
        [
            "WorkflowExecutionStarted",
            "StartChildWorkflowExecutionInitiated",
            "ChildWorkflowExecutionStarted",
            "ChildWorkflowExecutionCompleted",
            "StartChildWorkflowExecutionInitiated",
            "ChildWorkflowExecutionStarted",
            "ChildWorkflowExecutionFailed",
            "StartChildWorkflowExecutionInitiated",
            "StartChildWorkflowExecutionFailed",
            "WorkflowExecutionCompleted",
        ]
    );
}

/// The child's retries are one child to the parent, and so are the runs that it continues as new.
#[tokio::test(flavor = "multi_thread")]
async fn the_runs_of_a_child_are_one_child() {
    let options = ChildCallOptions {
        maximum_attempts: 2,
        ..named("c2")
    };
    let fixture = Fixture::new(&[
        (
            "parent",
            vec![
                child("chain", named("c1")),
                child("broken", options),
                Op::Complete,
            ],
        ),
        ("chain", vec![wait(), Op::ContinueAsNew, Op::Complete]),
        ("broken", vec![Op::Fail("bad".to_owned())]),
    ])
    .await;
    fixture.start("parent", "p").await;
    fixture.until("c1", Status::Running).await;
    fixture.signal("c1").await;
    pause().await;
    fixture.signal("c1").await;
    // The second attempt waits for a second.
    let handle = fixture.handle.clone();
    let ended = tokio::spawn(async move { handle.result(&target("p"), WAIT).await });
    for _ in 0..2000 {
        if ended.is_finished() {
            break;
        }
        fixture.clock.advance(Millis(100));
        pause().await;
    }
    ended
        .await
        .expect("no panic")
        .expect("a result")
        .expect("it ended");
    let names = fixture.names("p").await;
    let count = |name: &str| names.iter().filter(|found| **found == name).count();
    assert_eq!(count("ChildWorkflowExecutionStarted"), 2, "{names:?}");
    assert_eq!(count("ChildWorkflowExecutionCompleted"), 1, "{names:?}");
    assert_eq!(count("ChildWorkflowExecutionFailed"), 1, "{names:?}");
    let all = fixture.all().await;
    let runs = |id: &str| all.iter().filter(|(found, _)| found == id).count();
    assert_eq!((runs("c1"), runs("c2")), (2, 2), "{all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_is_ended_from_outside_or_by_time_is_reported() {
    let limited = ChildCallOptions {
        run_timeout: Millis(5000),
        ..named("late")
    };
    let fixture = Fixture::new(&[
        (
            "parent",
            vec![
                child("waits", named("killed")),
                child("obeys", named("asked")),
                child("waits", limited),
                Op::Complete,
            ],
        ),
        ("waits", vec![wait(), Op::Complete]),
        ("obeys", vec![Op::WaitCancel, Op::AcceptCancel]),
    ])
    .await;
    fixture.start("parent", "p").await;
    fixture.until("killed", Status::Running).await;
    fixture.terminate("killed").await;
    fixture.until("asked", Status::Running).await;
    fixture.cancel("asked").await;
    fixture.until("late", Status::Running).await;
    fixture.clock.advance(Millis(5000));
    let result = fixture.result("p").await;
    for end in ["Terminated", "Canceled", "TimedOut"] {
        let name = format!("ChildWorkflowExecution{end}");
        assert_eq!(result.matches(&name).count(), 1, "{result}");
    }
    assert_eq!(fixture.count("p", "ChildWorkflowExecutionStarted").await, 3);
}

/// The runs of a schedule are one child: it is over when its chain is.
#[tokio::test(flavor = "multi_thread")]
async fn a_child_with_a_schedule_is_reported_when_its_chain_ends() {
    let options = with(&[("workflow-id", "c"), ("cron", "* * * * *")]);
    let fixture = Fixture::new(&[
        ("parent", vec![child("fine", options), Op::Complete]),
        ("fine", vec![Op::Complete]),
    ])
    .await;
    fixture.start("parent", "p").await;
    fixture.until("c", Status::Running).await;
    for runs in 2..5 {
        fixture.clock.advance(Millis(60_000));
        fixture.until_runs("c", runs).await;
    }
    assert_eq!(fixture.status("p"), Status::Running);
    fixture.terminate("c").await;
    fixture.until("p", Status::Completed).await;
    let names = fixture.names("p").await;
    assert_eq!(
        names,
        [
            "WorkflowExecutionStarted",
            "StartChildWorkflowExecutionInitiated",
            "ChildWorkflowExecutionStarted",
            "ChildWorkflowExecutionTerminated",
            "WorkflowExecutionCompleted",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_whose_parent_has_ended_reports_to_nobody() {
    let options = with(&[("workflow-id", "c"), ("parent-close-policy", "abandon")]);
    let fixture = Fixture::new(&[
        ("parent", vec![start_child("waits", options), Op::Complete]),
        ("waits", vec![wait(), Op::Complete]),
    ])
    .await;
    fixture.start("parent", "p").await;
    fixture.until("p", Status::Completed).await;
    let before = fixture.history("p").await;
    fixture.signal("c").await;
    fixture.until("c", Status::Completed).await;
    fixture.until_nothing_is_owed().await;
    assert_eq!(fixture.history("p").await, before);
    assert_eq!(fixture.store.letters(None, 10), Ok(vec![]));
}

/// Both ended while nobody carried letters: the outcome is found again on disk.
#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_waits_on_disk_for_the_host_to_come_back() {
    let mut fixture = Fixture::new(&[
        ("parent", vec![child("waits", named("c")), Op::Complete]),
        ("waits", vec![wait(), Op::Complete]),
    ])
    .await;
    fixture.start("parent", "p").await;
    fixture.until("c", Status::Running).await;
    fixture
        .until_named("p", "ChildWorkflowExecutionStarted")
        .await;
    // The signal is durable when it is acknowledged; what follows from it is left to luck.
    fixture.signal("c").await;
    fixture.crash();
    fixture.crash();
    fixture.until("p", Status::Completed).await;
    let completed = "ChildWorkflowExecutionCompleted";
    assert_eq!(fixture.count("p", completed).await, 1);
}
