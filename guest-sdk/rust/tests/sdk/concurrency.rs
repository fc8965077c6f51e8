//! Combinators and tasks: what starts when, who wins, what happens to losers.

use std::time::Duration;

use steadfast_sdk::testing::{Step, TestRun};
use steadfast_sdk::{
    Context, Failure, join, join_all, race, select, timeout, try_join, try_join_all, workflow,
};

use crate::calls;

#[workflow]
async fn joining(ctx: Context) -> Result<(u32, String), Failure> {
    let (number, (), text) = join!(
        ctx.activity::<u32>("a", &1),
        ctx.sleep(Duration::from_millis(5)),
        async { ctx.activity::<String>("b", &2).await },
    );
    Ok((number?, text?))
}

#[test]
fn join_starts_in_written_order_and_waits_for_all() {
    let mut run = TestRun::start::<joining>(&());
    assert_eq!(calls(&run), ["a#1", "timer#2(5)", "b#3"]);
    run.resolve(3, "x");
    run.fire(2);
    run.resolve(1, &9);
    assert_eq!(run.output(), Some((9, "x".to_owned())));
}

#[workflow]
async fn trying(ctx: Context) -> Result<(u32, u32), Failure> {
    try_join!(ctx.activity("a", &1), ctx.activity("b", &2))
}

#[test]
fn try_join_stops_at_the_first_error() {
    let mut run = TestRun::start::<trying>(&());
    assert!(matches!(
        run.fail(2, Failure::application("x", "y")),
        Step::Failed(_)
    ));
    assert_eq!(calls(&run), ["a#1", "b#2", "cancel-activity#1"]);
    let mut run = TestRun::start::<trying>(&());
    run.resolve(2, &2);
    run.resolve(1, &1);
    assert_eq!(run.output(), Some((1, 2)));
}

#[workflow]
async fn all(ctx: Context) -> Result<Vec<u32>, Failure> {
    let outcomes = join_all((0..3_u32).map(|index| ctx.activity::<u32>("a", &index))).await;
    outcomes.into_iter().collect()
}

#[workflow]
async fn all_or_error(ctx: Context) -> Result<Vec<u32>, Failure> {
    try_join_all((0..3_u32).map(|index| ctx.activity("a", &index))).await
}

#[test]
fn join_all_keeps_the_order_of_the_futures() {
    let mut run = TestRun::start::<all>(&());
    assert_eq!(calls(&run), ["a#1", "a#2", "a#3"]);
    for operation in [3, 1, 2] {
        run.resolve(operation, &(10 * operation));
    }
    assert_eq!(run.output(), Some(vec![10_u32, 20, 30]));
}

#[test]
fn try_join_all_cancels_the_rest() {
    let mut run = TestRun::start::<all_or_error>(&());
    run.resolve(2, &0);
    assert!(matches!(
        run.fail(1, Failure::application("x", "y")),
        Step::Failed(_)
    ));
    assert_eq!(calls(&run).last().unwrap(), "cancel-activity#3");
    assert_eq!(calls(&run).len(), 4);
}

#[workflow]
async fn racing(ctx: Context) -> Result<u32, Failure> {
    race([ctx.activity("a", &1), ctx.activity("b", &2)]).await
}

#[test]
fn race_cancels_the_loser() {
    let mut run = TestRun::start::<racing>(&());
    run.resolve(2, &2);
    assert_eq!(run.output(), Some(2));
    assert_eq!(calls(&run), ["a#1", "b#2", "cancel-activity#1"]);
}

#[workflow]
async fn limited(ctx: Context) -> Result<u32, Failure> {
    timeout(&ctx, Duration::from_millis(7), ctx.activity("slow", &())).await?
}

#[test]
fn timeout_cancels_the_future_or_its_timer() {
    let mut run = TestRun::start::<limited>(&());
    let Step::Failed(failure) = run.fire(2) else {
        panic!()
    };
    assert!(failure.is_timeout());
    assert_eq!(failure.to_string(), "not ready within 7ms");
    assert_eq!(calls(&run), ["slow#1", "timer#2(7)", "cancel-activity#1"]);
    let mut run = TestRun::start::<limited>(&());
    run.resolve(1, &3);
    assert_eq!(run.output(), Some(3));
    assert_eq!(calls(&run), ["slow#1", "timer#2(7)", "cancel-timer#2"]);
}

#[workflow]
async fn selecting(ctx: Context) -> Result<Vec<&'static str>, Failure> {
    let mut deadline = ctx.sleep(Duration::from_millis(50));
    let signal = ctx.signal::<u32>("n");
    let mut seen = Vec::new();
    // Both are ready: the first one written wins.
    ctx.signal::<()>("go").recv().await?;
    for _ in 0..3 {
        select! {
            number = signal.recv() => {
                number?;
                seen.push("signal");
            }
            () = &mut deadline => {
                seen.push("deadline");
                break;
            }
        }
    }
    Ok(seen)
}

#[test]
fn select_prefers_the_arm_written_first_and_keeps_borrowed_futures() {
    let mut run = TestRun::start::<selecting>(&());
    run.signal("n", &1);
    run.fire(1);
    run.signal("go", &());
    assert_eq!(
        run.output(),
        Some(vec!["signal".to_owned(), "deadline".to_owned()])
    );
    assert_eq!(calls(&run), ["timer#1(50)"]);
}

#[workflow]
async fn tasks(ctx: Context) -> Result<u32, Failure> {
    let doomed = ctx.spawn(async move { ctx.activity::<u32>("doomed", &()).await });
    let worker = ctx.spawn(async move { ctx.activity::<u32>("work", &()).await });
    drop(ctx.spawn(async move {
        ctx.sleep(Duration::from_secs(1)).await;
        steadfast_sdk::info!("abandoned");
    }));
    ctx.activity::<()>("main", &()).await?;
    assert!(!doomed.is_finished());
    doomed.abort();
    worker.await
}

#[test]
fn tasks_start_in_order_and_abort_cancels() {
    let mut run = TestRun::start::<tasks>(&());
    assert_eq!(
        calls(&run),
        ["main#1", "doomed#2", "work#3", "timer#4(1000)"]
    );
    run.resolve(1, &());
    assert_eq!(calls(&run).last().unwrap(), "cancel-activity#2");
    run.resolve(3, &5);
    assert_eq!(run.output(), Some(5));
    // What the workflow leaves behind when it ends is not cancelled one by one.
    assert_eq!(calls(&run).len(), 5);
}

#[workflow]
async fn fair(ctx: Context, rounds: u32) -> Result<(), Failure> {
    let tasks = ["a", "b", "c"].map(|name| {
        ctx.spawn(async move {
            for round in 0..rounds {
                steadfast_sdk::info!("{name}{round}");
                yield_once().await;
            }
        })
    });
    for task in tasks {
        task.await;
    }
    Ok(())
}

async fn yield_once() {
    let mut has_yielded = false;
    std::future::poll_fn(|task| {
        if std::mem::replace(&mut has_yielded, true) {
            return std::task::Poll::Ready(());
        }
        task.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

#[test]
fn tasks_take_turns() {
    let run = TestRun::start::<fair>(&2);
    let expected = ["a0", "b0", "c0", "a1", "b1", "c1"].map(|line| format!("Info: {line}"));
    assert_eq!(calls(&run), expected);
    assert!(matches!(run.step(), Step::Completed(_)));
}

#[workflow]
async fn reusing(ctx: Context) -> Result<u32, Failure> {
    let mut sum = 0;
    for round in 0..100 {
        // Aborted while queued: nobody may inherit its turn or its wakes.
        let spinner = ctx.spawn(async {
            loop {
                yield_once().await;
            }
        });
        yield_once().await;
        spinner.abort();
        let (first, second) = join!(ctx.spawn(async move { round }), ctx.spawn(async { 1 }));
        sum += first + second;
    }
    Ok(sum)
}

#[test]
fn slots_of_aborted_tasks_are_reused() {
    assert_eq!(TestRun::start::<reusing>(&()).output(), Some(5050));
}

#[workflow]
async fn aborting_itself(ctx: Context) -> Result<(), Failure> {
    let (to_task, handle) = (
        std::rc::Rc::new(std::cell::RefCell::new(None)),
        ctx.signal::<()>("x"),
    );
    let own = std::rc::Rc::clone(&to_task);
    let task = ctx.spawn(async move {
        let timer = ctx.sleep(Duration::from_secs(1));
        handle.recv().await?;
        let own: Option<steadfast_sdk::JoinHandle<Result<(), Failure>>> = own.take();
        own.expect("the workflow put it there").abort();
        timer.await;
        Ok(())
    });
    to_task.replace(Some(task));
    ctx.sleep(Duration::from_secs(2)).await;
    Ok(())
}

#[test]
fn task_that_aborts_itself_is_dropped_when_it_waits() {
    let mut run = TestRun::start::<aborting_itself>(&());
    run.signal("x", &());
    assert_eq!(
        calls(&run),
        ["timer#1(2000)", "timer#2(1000)", "cancel-timer#2"]
    );
    assert!(matches!(run.fire(1), Step::Completed(_)));
}
