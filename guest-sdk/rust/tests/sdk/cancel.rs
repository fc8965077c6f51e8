//! Cancel requests and how a run ends by them.

use std::time::Duration;

use steadfast_sdk::testing::{Step, TestRun};
use steadfast_sdk::{Context, Failure, select, workflow};

use crate::calls;

#[workflow]
async fn accepting(ctx: Context) -> Result<(), Failure> {
    assert!(!ctx.is_cancel_requested());
    let reason = ctx.cancelled().await;
    assert!(ctx.is_cancel_requested());
    let () = ctx.activity("cleanup", &reason).await?;
    Err(Failure::canceled())
}

#[test]
fn run_ends_as_cancelled_after_its_cleanup() {
    let mut run = TestRun::start::<accepting>(&());
    run.request_cancel("bored");
    assert_eq!(*run.request_cancel("again"), Step::Blocked);
    assert_eq!(calls(&run), ["cleanup#1"]);
    assert!(matches!(run.resolve(1, &()), Step::Canceled(_)));
}

#[workflow]
async fn sleeping(ctx: Context) -> Result<(), Failure> {
    ctx.or_cancelled(ctx.sleep(Duration::from_secs(9))).await
}

#[test]
fn cancel_request_ends_a_wait_and_cancels_what_it_started() {
    let mut run = TestRun::start::<sleeping>(&());
    let Step::Canceled(failure) = run.request_cancel("enough") else {
        panic!()
    };
    assert_eq!(failure.message(), "canceled: enough");
    assert_eq!(calls(&run), ["timer#1(9000)", "cancel-timer#1"]);
    let mut run = TestRun::start::<sleeping>(&());
    assert!(matches!(run.fire(1), Step::Completed(_)));
}

#[workflow]
async fn passing_on(ctx: Context) -> Result<(), Failure> {
    ctx.activity("work", &()).await
}

fn canceled_activity() -> Failure {
    let mut frames = Failure::canceled().into_frames();
    let mut outer = frames[0].clone();
    outer.kind = steadfast_sdk::FailureKind::Activity;
    outer.code = "work".to_owned();
    frames.insert(0, outer);
    Failure::from_frames(frames)
}

#[test]
fn activity_s_cancellation_ends_the_run_as_cancelled_only_on_request() {
    let mut run = TestRun::start::<passing_on>(&());
    assert!(matches!(run.fail(1, canceled_activity()), Step::Failed(_)));
    let mut run = TestRun::start::<passing_on>(&());
    run.request_cancel("");
    assert!(matches!(
        run.fail(1, canceled_activity()),
        Step::Canceled(_)
    ));
}

#[workflow]
async fn ticking(ctx: Context) -> Result<u32, Failure> {
    let mut ticks = 0;
    loop {
        select! {
            () = ctx.sleep(Duration::from_millis(10)) => ticks += 1,
            _reason = ctx.cancelled() => return Ok(ticks),
        }
    }
}

#[test]
fn loser_of_a_select_is_cancelled() {
    let mut run = TestRun::start::<ticking>(&());
    run.fire(1);
    run.fire(2);
    run.request_cancel("");
    assert_eq!(run.output(), Some(2));
    assert_eq!(
        calls(&run),
        [
            "timer#1(10)",
            "timer#2(10)",
            "timer#3(10)",
            "cancel-timer#3"
        ]
    );
}
