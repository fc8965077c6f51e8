//! Small workflows for tests and measurements: each does one thing.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use steadfast_sdk::{Context, Failure, info, try_join_all, workflow};

mod broken;

/// How many activities to run.
#[derive(Debug, Deserialize)]
pub struct StepsInput {
    /// The number of activities.
    pub steps: u64,
}

/// How long to wait.
#[derive(Debug, Deserialize)]
pub struct TimerInput {
    /// The time in milliseconds.
    pub ms: u64,
}

/// How many signals to collect.
#[derive(Debug, Deserialize)]
pub struct CountInput {
    /// The number of signals.
    pub expect: usize,
}

/// Values that must be the same in every replay.
#[derive(Debug, Serialize)]
pub struct Drawn {
    /// A UUID.
    pub uuid: String,
    /// A random number below 2^32, so that every JSON reader takes it.
    pub random: u32,
    /// The times before, between and after two short sleeps, in milliseconds since the epoch.
    pub now_ms: [u64; 3],
}

/// Returns at once.
#[workflow]
async fn empty(_ctx: Context) -> Result<(), Failure> {
    Ok(())
}

/// Runs `steps` activities `echo` one after the other and returns how many answered.
#[workflow]
async fn steps(ctx: Context, input: StepsInput) -> Result<u64, Failure> {
    let mut answers = 0;
    for step in 0..input.steps {
        let echo: u64 = ctx.activity("echo", &step).await?;
        answers += u64::from(echo == step);
    }
    Ok(answers)
}

/// Runs `steps` activities `echo` at once and returns how many answered.
#[workflow]
async fn parallel(ctx: Context, input: StepsInput) -> Result<u64, Failure> {
    let echoes = (0..input.steps).map(|step| ctx.activity::<u64>("echo", &step));
    let echoes = try_join_all(echoes).await?;
    Ok(echoes
        .into_iter()
        .zip(0..)
        .map(|(echo, step)| u64::from(echo == step))
        .sum())
}

/// Waits for the signal `go`, whatever it carries.
#[workflow(name = "wait-signal", signals(go: Option<String>))]
async fn wait_signal(ctx: Context) -> Result<(), Failure> {
    drop(ctx.signal::<steadfast_sdk::Payload>("go").recv().await?);
    Ok(())
}

/// Waits `ms` milliseconds.
#[workflow(name = "wait-timer")]
async fn wait_timer(ctx: Context, input: TimerInput) -> Result<(), Failure> {
    ctx.sleep(Duration::from_millis(input.ms)).await;
    Ok(())
}

/// Returns a UUID, a random number and three times.
#[workflow(name = "random-now")]
async fn random_now(ctx: Context) -> Result<Drawn, Failure> {
    let uuid = ctx.uuid();
    let first = ctx.now();
    ctx.sleep(Duration::from_millis(5)).await;
    let random = ctx.random::<u32>();
    let second = ctx.now();
    ctx.sleep(Duration::from_millis(5)).await;
    let now_ms = [first, second, ctx.now()].map(|time| time.as_millis());
    info!("drew {random} and {uuid}");
    Ok(Drawn {
        uuid,
        random,
        now_ms,
    })
}

/// Counts up by the update `add` until the signal `go`; the query `total` tells the number.
#[workflow(signals(go: Option<String>), queries(total: () -> u64), updates(add: u64 -> u64))]
async fn counter(ctx: Context) -> Result<u64, Failure> {
    let total = Rc::new(Cell::new(0));
    let seen = Rc::clone(&total);
    ctx.on_query("total", move |(): ()| Ok::<u64, Failure>(seen.get()));
    let added = Rc::clone(&total);
    ctx.on_validated_update(
        "add",
        |by: &u64| match by {
            0 => Err(Failure::non_retryable("zero", "nothing to add")),
            _ => Ok(()),
        },
        move |by: u64| {
            added.set(added.get() + by);
            let now = added.get();
            async move { Ok(now) }
        },
    );
    drop(ctx.signal::<steadfast_sdk::Payload>("go").recv().await?);
    Ok(total.get())
}

/// Collects `expect` signals `n` and returns them in the order of their arrival.
#[workflow(name = "signals-count", signals(n: u64))]
async fn signals_count(ctx: Context, input: CountInput) -> Result<Vec<u64>, Failure> {
    let signal = ctx.signal::<u64>("n");
    let mut received = Vec::new();
    while received.len() < input.expect {
        received.push(signal.recv().await?);
    }
    Ok(received)
}

/// Waits for a cancel request, cleans up by the activity `cleanup`, and ends as cancelled.
#[workflow(name = "clocked-cancel")]
async fn clocked_cancel(ctx: Context) -> Result<(), Failure> {
    let reason = ctx.cancelled().await;
    let () = ctx.activity("cleanup", &reason).await?;
    Err(Failure::canceled())
}

steadfast_sdk::component!(
    empty,
    steps,
    parallel,
    wait_signal,
    wait_timer,
    random_now,
    counter,
    signals_count,
    clocked_cancel,
    broken::fails,
    broken::panics,
    broken::spin,
    broken::grow,
);
