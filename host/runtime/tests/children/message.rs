//! Cancellations of children, signals and cancel requests to others.

use steadfast_model::Status;
use steadfast_ports::fake::Op;

use crate::fixture::{Fixture, start_child, wait, with};

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_a_child_is_what_its_type_says() {
    for (how, waits_for_child) in [
        ("abandon", false),
        ("try-cancel", false),
        ("wait-cancellation-requested", false),
        ("wait-cancellation-completed", true),
    ] {
        let options = with(&[
            ("workflow-id", "c"),
            ("cancellation-type", how),
            ("parent-close-policy", "abandon"),
        ]);
        let fixture = Fixture::new(&[
            (
                "parent",
                vec![start_child("slow", options), Op::CancelChild, Op::Complete],
            ),
            ("slow", vec![wait(), Op::WaitCancel, Op::AcceptCancel]),
        ])
        .await;
        fixture.start("parent", "p").await;
        fixture.until("c", Status::Running).await;
        if waits_for_child {
            fixture.signal("c").await;
        }
        let result = fixture.result("p").await;
        assert!(
            result.contains("ChildWorkflowExecutionCanceled"),
            "{how}: {result}"
        );
        if !waits_for_child {
            fixture.signal("c").await;
        }
        if how == "abandon" {
            fixture.cancel("c").await;
        }
        fixture.until("c", Status::Canceled).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn executions_signal_and_cancel_each_other() {
    let signal = |id: &str| Op::SignalExternal(id.to_owned(), "go".to_owned(), "7".to_owned());
    let fixture = Fixture::new(&[
        (
            "sender",
            vec![
                signal("r1"),
                signal("nobody"),
                Op::CancelExternal("r2".to_owned()),
                Op::CancelExternal("nobody".to_owned()),
                Op::Complete,
            ],
        ),
        ("receiver", vec![wait(), Op::Complete]),
        ("cancelled", vec![Op::WaitCancel, Op::AcceptCancel]),
    ])
    .await;
    fixture.start("receiver", "r1").await;
    fixture.start("cancelled", "r2").await;
    fixture.start("sender", "s").await;
    let result = fixture.result("s").await;
    assert!(
        result.starts_with(r#"["1","signaled","undelivered:"#),
        "{result}"
    );
    assert!(
        result.contains(r#""cancel-requested","undelivered:"#),
        "{result}"
    );
    assert_eq!(fixture.result("r1").await, r#"["1","7"]"#);
    fixture.until("r2", Status::Canceled).await;
}

/// A guarded signal reaches the sender's children only: whichever run of them is current, and
/// whichever run of the sender's chain started them.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_for_children_only_reaches_no_stranger() {
    let signal = |id: &str| Op::SignalChild(id.to_owned(), "go".to_owned(), "7".to_owned());
    let chain = with(&[("workflow-id", "c"), ("parent-close-policy", "abandon")]);
    let fixture = Fixture::new(&[
        (
            "parent",
            vec![
                start_child("chain", chain),
                signal("stranger"),
                signal("c"),
                Op::ContinueAsNew,
                signal("c"),
                Op::Complete,
            ],
        ),
        (
            "chain",
            vec![wait(), Op::ContinueAsNew, wait(), Op::Complete],
        ),
        ("waits", vec![wait(), Op::Complete]),
    ])
    .await;
    fixture.start("waits", "stranger").await;
    // The second run cannot start the child again, and signals it all the same.
    fixture.start("parent", "p").await;
    let result = fixture.result("p").await;
    assert_eq!(result.matches("is not a child").count(), 1, "{result}");
    assert_eq!(result.matches("is taken by run").count(), 1, "{result}");
    assert_eq!(result.matches(r#""signaled""#).count(), 2, "{result}");
    fixture.until("c", Status::Completed).await;
    assert_eq!(fixture.status("stranger"), Status::Running);
}

/// A parent cannot have more children at a time than the limit: it is blocked, and nothing of what
/// it asked for happens.
#[tokio::test(flavor = "multi_thread")]
async fn children_have_a_limit() {
    let begin = || Op::BeginChild("nobody".to_owned(), "1".to_owned(), with(&[]));
    let fixture = Fixture::new(&[
        ("too-many", vec![begin(); 2001]),
        ("just-enough", vec![begin(); 2000]),
    ])
    .await;
    fixture.start("too-many", "p").await;
    let why = fixture.blocked("p").await;
    assert!(why.contains("2000 pending children"), "{why}");
    assert_eq!(fixture.names("p").await, ["WorkflowExecutionStarted"]);
    fixture.start("just-enough", "q").await;
    fixture.until("q", Status::Completed).await;
}

/// Children of a chain count in every run of it.
#[tokio::test(flavor = "multi_thread")]
async fn children_of_a_chain_have_a_limit() {
    let options = with(&[("parent-close-scope", "chain")]);
    let begin = || Op::BeginChild("nobody".to_owned(), "1".to_owned(), options.clone());
    let mut script = vec![begin(); 1001];
    script.extend([Op::ContinueAsNew, Op::Complete]);
    let fixture = Fixture::new(&[("parent", script)]).await;
    fixture.start("parent", "p").await;
    let why = fixture.blocked("p").await;
    assert!(why.contains("2000 pending children"), "{why}");
    assert_eq!(fixture.runs("p").await.len(), 2);
}
