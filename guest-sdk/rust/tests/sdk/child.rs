//! Children and messages to other executions.

use std::time::Duration;

use steadfast_sdk::testing::{Call, Step, TestRun};
use steadfast_sdk::{
    ChildCancellation, Context, Failure, NoInput, ParentClosePolicy, RetryPolicy, select, workflow,
};

use crate::calls;

#[workflow]
async fn parent(ctx: Context, input: u32) -> Result<u32, Failure> {
    let child = ctx
        .child::<u32>("part", &input)
        .id("part-1")
        .task_queue("parts")
        .parent_close_policy(ParentClosePolicy::Abandon)
        .cancellation(ChildCancellation::TryCancel)
        .run_timeout(Duration::from_secs(5))
        .retry(RetryPolicy::new().maximum_attempts(3));
    let mut handle = child.start();
    let run_id = handle.started().await?;
    assert_eq!(run_id, "run-1");
    Ok(handle.await? + 1)
}

#[workflow]
async fn guardian(ctx: Context, _input: NoInput) -> Result<(), Failure> {
    ctx.child::<()>("ward", &()).until_chain_ends().await
}

#[workflow]
async fn loser(ctx: Context, _input: NoInput) -> Result<String, Failure> {
    select! {
        result = ctx.child::<String>("slow", &()) => result,
        _ = ctx.sleep(Duration::from_secs(1)) => Ok("too slow".to_owned()),
    }
}

#[workflow]
async fn friend(ctx: Context, _input: NoInput) -> Result<String, Failure> {
    let other = ctx.execution("other");
    other.signal("go", &7).await?;
    match other.request_cancel("enough").await {
        Ok(()) => Ok("asked".to_owned()),
        Err(failure) => Ok(failure.code().to_owned()),
    }
}

#[test]
fn a_child_is_started_with_its_options_and_awaited() {
    let mut run = TestRun::start::<parent>(&3_u32);
    let Some(Call::StartChild { options, .. }) = run.calls().first().cloned() else {
        panic!("{:?}", run.calls());
    };
    let expected = [
        ("run-timeout-ms", "5000"),
        ("maximum-attempts", "3"),
        ("workflow-id", "part-1"),
        ("task-queue", "parts"),
        ("parent-close-policy", "abandon"),
        ("cancellation-type", "try-cancel"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(options, expected);
    run.resolve(1, "run-1");
    run.resolve(2, &41_u32);
    assert_eq!(run.output::<u32>(), Some(42));
    assert_eq!(calls(&run), ["child part#1"]);
}

#[test]
fn a_child_may_live_as_long_as_the_chain() {
    let run = TestRun::start::<guardian>(&());
    let Some(Call::StartChild { options, .. }) = run.calls().first().cloned() else {
        panic!("{:?}", run.calls());
    };
    let expected = ("parent-close-scope".to_owned(), "chain".to_owned());
    assert_eq!(options, [expected]);
}

#[test]
fn a_child_that_could_not_be_started_is_a_failure() {
    let mut run = TestRun::start::<parent>(&3_u32);
    let failure = Failure::application("workflow-already-exists", "taken");
    let Step::Failed(failure) = run.fail(1, failure).clone() else {
        panic!("{:?}", run.step());
    };
    assert_eq!(failure.code(), "workflow-already-exists");
}

#[test]
fn a_child_that_lost_a_race_is_cancelled() {
    let mut run = TestRun::start::<loser>(&());
    run.resolve(1, "run-1");
    run.fire(3);
    assert_eq!(run.output::<String>().as_deref(), Some("too slow"));
    assert_eq!(
        calls(&run),
        ["child slow#1", "timer#3(1000)", "cancel-child#2"]
    );
}

#[test]
fn other_executions_are_signalled_and_asked_to_cancel_themselves() {
    let mut run = TestRun::start::<friend>(&());
    run.resolve(1, &());
    let failure = Failure::application("external-workflow-execution-not-found", "gone");
    run.fail(2, failure);
    assert_eq!(
        run.output::<String>().as_deref(),
        Some("external-workflow-execution-not-found")
    );
    assert_eq!(calls(&run), ["signal other go#1", "cancel other#2"]);
}
