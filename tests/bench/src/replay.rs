//! Replay: how fast a run comes back.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use steadfast_model::command::Step;
use steadfast_model::{ComponentDigest, EventNumber, Namespace, RunKey, SignalName, WorkflowId};
use steadfast_ports::guest::Fetch;
use steadfast_runtime::World;
use steadfast_runtime::activation::{Job, perform};
use steadfast_runtime::handle::{Caller, Target};

use crate::host::{component, execute, options, runtime, start, world};
use crate::report::{Report, median};

const CACHE_BYTES: usize = 256 * 1024 * 1024;

/// Replays a run's whole history, read from the store, and says how long it took.
fn replay(world: &World, digest: ComponentDigest, run: RunKey, last: u64) -> Result<(Step, f64)> {
    let job = Job::Begin {
        component: digest,
        history: None,
        until: EventNumber(last),
        is_owed: false,
    };
    let begun = Instant::now();
    let (live, result) = perform(&*world.guests, &world.store, run, job);
    let seconds = begun.elapsed().as_secs_f64();
    drop(live);
    Ok((result?.step, seconds))
}

/// A run of that many sequential steps: two events each.
async fn record(handle: &steadfast_runtime::Handle, id: &str, steps: u64) -> Result<(RunKey, u64)> {
    execute(
        handle,
        start("steps", id, &format!("{{\"steps\":{steps}}}"))?,
    )
    .await?;
    let record = handle.record(&target(id)?)?;
    Ok((record.run, record.last_event.context("it has ended")?.0))
}

fn target(id: &str) -> Result<Target> {
    Ok(Target {
        namespace: Namespace::new("default")?,
        workflow_id: WorkflowId::new(id)?,
        run_id: None,
    })
}

/// Histories of 10,000 and 100,000 events.
pub(crate) fn long_history(report: &mut Report) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let world = world(dir.path())?;
    runtime()?.block_on(async {
        let handle = steadfast_runtime::start(options(true, CACHE_BYTES)?, world.clone())?;
        let digest = handle.upload(component()?).await?.record.digest;
        let (short, short_last) = record(&handle, "short", 5_000).await?;
        let (long, long_last) = record(&handle, "long", 50_000).await?;
        let mut times = (Vec::new(), Vec::new());
        for _ in 0..7 {
            for (run, last, times) in [
                (short, short_last, &mut times.0),
                (long, long_last, &mut times.1),
            ] {
                let (step, seconds) = replay(&world, digest, run, last)?;
                if !matches!(step, Step::Completed(_)) {
                    bail!("the replay ended with {step:?}");
                }
                times.push(seconds);
            }
        }
        let (short_s, long_s) = (median(times.0), median(times.1));
        #[allow(clippy::cast_precision_loss, reason = "a small count")]
        let rate = long_last as f64 / long_s;
        report.add("replay_events_per_s", rate, "events/s", ">= 1000000");
        #[allow(clippy::cast_precision_loss, reason = "a small count")]
        let times_longer = long_last as f64 / short_last as f64;
        // As if one history were exactly ten times the other.
        let linearity = long_s / short_s / times_longer * 10.0;
        report.add("replay_linearity", linearity, "ratio", "<= 11");
        anyhow::Ok(())
    })
}

/// A run of 100 events that waits, against an instance without any history.
pub(crate) fn resume(report: &mut Report) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let world = world(dir.path())?;
    runtime()?.block_on(async {
        let handle = steadfast_runtime::start(options(true, CACHE_BYTES)?, world.clone())?;
        let digest = handle.upload(component()?).await?.record.digest;
        let started = handle
            .start(start("signals-count", "r", "{\"expect\":1000}")?)
            .await?;
        for i in 0..99 {
            let input = steadfast_model::Payload::json(format!("{i}"));
            handle
                .signal(
                    &target("r")?,
                    SignalName::new("n")?,
                    input,
                    Caller::default(),
                )
                .await?;
        }
        // Its last commands are written a few milliseconds later.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let run = started.run_id.key();
        let (mut bare, mut resumed) = (Vec::new(), Vec::new());
        for _ in 0..300 {
            let begun = Instant::now();
            let fetch: Fetch<'_> = &|| Ok(None);
            drop(world.guests.instantiate(digest, fetch)?);
            bare.push(begun.elapsed().as_secs_f64() * 1e6);
            let (step, seconds) = replay(&world, digest, run, 100)?;
            if step != Step::Blocked {
                bail!("the run ended with {step:?}");
            }
            resumed.push(seconds * 1e6);
        }
        let (bare, resumed) = (median(bare), median(resumed));
        report.add("instantiate_us", bare, "us", "");
        report.add("resume_100_us", resumed, "us", "");
        report.add(
            "resume_100_over_instantiate",
            resumed / bare,
            "ratio",
            "<= 10",
        );
        anyhow::Ok(())
    })
}
