//! Signals: kept until asked for, in order, to one receiver each.

use std::time::Duration;

use steadfast_sdk::testing::{Step, TestRun};
use steadfast_sdk::{Context, Failure, join, select, workflow};

#[workflow]
async fn collecting(ctx: Context, count: usize) -> Result<Vec<u32>, Failure> {
    let signal = ctx.signal::<u32>("n");
    ctx.sleep(Duration::from_millis(1)).await;
    let mut numbers = Vec::new();
    while numbers.len() < count {
        numbers.push(signal.recv().await?);
    }
    Ok(numbers)
}

#[test]
fn early_signals_wait_in_order() {
    let mut run = TestRun::start::<collecting>(&3);
    run.signal("n", &1);
    run.signal("other", &9);
    run.signal("n", &2);
    run.fire(1);
    assert_eq!(*run.step(), Step::Blocked);
    run.signal("n", &3);
    assert_eq!(run.output(), Some(vec![1, 2, 3]));
}

#[workflow]
async fn lenient(ctx: Context) -> Result<String, Failure> {
    let signal = ctx.signal::<u32>("n");
    let refused = signal.recv().await.expect_err("text is no number");
    assert!(!signal.has_pending() && signal.try_recv().is_none());
    ctx.sleep(Duration::from_millis(1)).await;
    assert_eq!(signal.pending_count(), 2);
    let taken = signal.try_recv().expect("one is there")? + signal.recv().await?;
    let details = refused.details().expect("the payload is kept");
    Ok(format!(
        "{} {taken}",
        String::from_utf8_lossy(&details.data)
    ))
}

#[test]
fn signal_that_does_not_decode_is_an_error_value() {
    let mut run = TestRun::start::<lenient>(&());
    run.signal("n", "what");
    run.signal("n", &1);
    run.signal("n", &2);
    run.fire(1);
    assert_eq!(run.output::<String>().as_deref(), Some("\"what\" 3"));
}

#[workflow]
async fn two_receivers(ctx: Context) -> Result<(u32, u32), Failure> {
    let signal = ctx.signal::<u32>("n");
    let first = ctx.spawn(signal.recv());
    let second = ctx.spawn(signal.recv());
    let (first, second) = join!(first, second);
    Ok((first?, second?))
}

#[test]
fn receiver_that_came_first_is_served_first() {
    let mut run = TestRun::start::<two_receivers>(&());
    run.signal("n", &1);
    run.signal("n", &2);
    assert_eq!(run.output(), Some((1, 2)));
}

#[workflow]
async fn dropped_receiver(ctx: Context) -> Result<u32, Failure> {
    let signal = ctx.signal::<u32>("n");
    let patient = ctx.spawn(async move {
        ctx.activity::<()>("first", &()).await?;
        signal.recv().await
    });
    // This one waits first, and is gone before a signal arrives.
    select! {
        number = signal.recv() => drop(number),
        () = ctx.sleep(Duration::from_millis(1)) => {}
    }
    patient.await
}

#[test]
fn signal_of_a_dropped_receiver_goes_to_the_next() {
    let mut run = TestRun::start::<dropped_receiver>(&());
    run.resolve(2, &());
    run.fire(1);
    run.signal("n", &8);
    assert_eq!(run.output(), Some(8));
}

#[workflow]
async fn merged(ctx: Context) -> Result<Vec<String>, Failure> {
    let set = ctx.signals(&["a", "b", "end"]);
    ctx.sleep(Duration::from_millis(1)).await;
    let mut seen = Vec::new();
    loop {
        let (name, payload) = set.recv().await;
        if name == "end" {
            assert!(set.try_recv().is_none());
            return Ok(seen);
        }
        seen.push(format!("{name}{}", String::from_utf8_lossy(&payload.data)));
    }
}

#[test]
fn set_keeps_the_order_of_arrival_across_names() {
    let mut run = TestRun::start::<merged>(&());
    for (name, number) in [("b", 1), ("a", 2), ("b", 3)] {
        run.signal(name, &number);
    }
    run.fire(1);
    run.signal("a", &4);
    run.signal("end", &());
    assert_eq!(
        run.output::<Vec<String>>().unwrap(),
        ["b1", "a2", "b3", "a4"]
    );
}
