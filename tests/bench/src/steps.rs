//! Steps: activities that a workflow runs one after the other.

use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use redb::{Database, TableDefinition};
use serde_json::{Value, json};

use crate::host::{HostProcess, component, execute, options, runtime, start, world};
use crate::http::Connection;
use crate::report::{Report, median};

const CACHE_BYTES: usize = 256 * 1024 * 1024;

/// What one durable write of one value costs here and now, in milliseconds: the floor of a step.
fn commit_p50_ms(dir: &Path) -> Result<f64> {
    const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("bare");
    let database = Database::create(dir.join("bare.redb"))?;
    let mut times = Vec::new();
    for i in 0..500 {
        let begun = Instant::now();
        let transaction = database.begin_write()?;
        transaction
            .open_table(TABLE)?
            .insert(i, [7_u8; 100].as_slice())?;
        transaction.commit()?;
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(median(times))
}

/// One workflow of 100 sequential steps with nothing else going on.
pub(crate) fn sequential(report: &mut Report) -> Result<()> {
    const STEPS: u32 = 100;
    let dir = tempfile::tempdir()?;
    let before = commit_p50_ms(dir.path())?;
    let steps = runtime()?.block_on(async {
        let handle = steadfast_runtime::start(options(true, CACHE_BYTES)?, world(dir.path())?)?;
        handle.upload(component()?).await?;
        let mut times = Vec::new();
        for i in 0..30 {
            let workflow = start(
                "steps",
                &format!("s-{i}"),
                &format!("{{\"steps\":{STEPS}}}"),
            )?;
            let begun = Instant::now();
            execute(&handle, workflow).await?;
            times.push(begun.elapsed().as_secs_f64() * 1000.0 / f64::from(STEPS));
        }
        anyhow::Ok(median(times))
    })?;
    std::fs::remove_file(dir.path().join("bare.redb"))?;
    // Around the measurement, because the disk's speed drifts.
    let commit = f64::midpoint(before, commit_p50_ms(dir.path())?);
    report.add("commit_p50_ms", commit, "ms", "");
    report.add("seq_step_p50_ms", steps, "ms", "");
    report.add("seq_step_over_commit", steps / commit, "ratio", "<= 3");
    Ok(())
}

/// Many workflows of ten steps, a hundred at a time, with activities in the host.
pub(crate) fn in_process(report: &mut Report) -> Result<()> {
    const WORKFLOWS: u64 = 1000;
    const AT_A_TIME: usize = 100;
    let dir = tempfile::tempdir()?;
    runtime()?.block_on(async {
        let handle = steadfast_runtime::start(options(true, CACHE_BYTES)?, world(dir.path())?)?;
        handle.upload(component()?).await?;
        let mut rates = Vec::new();
        let before = handle.disk_bytes().await?;
        for round in 0..5_u64 {
            let next = Arc::new(AtomicU64::new(0));
            let begun = Instant::now();
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..AT_A_TIME {
                let (handle, next) = (handle.clone(), next.clone());
                tasks.spawn(async move {
                    loop {
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        if i >= WORKFLOWS {
                            return anyhow::Ok(());
                        }
                        let id = format!("w-{round}-{i}");
                        execute(&handle, start("steps", &id, "{\"steps\":10}")?).await?;
                    }
                });
            }
            while let Some(done) = tasks.join_next().await {
                done??;
            }
            #[allow(clippy::cast_precision_loss, reason = "a small count")]
            rates.push((WORKFLOWS * 10) as f64 / begun.elapsed().as_secs_f64());
        }
        let grown = handle.disk_bytes().await?.saturating_sub(before);
        report.add(
            "steps_per_s_in_process",
            median(rates),
            "steps/s",
            ">= 20000",
        );
        #[allow(clippy::cast_precision_loss, reason = "a file's size")]
        let per_step = grown as f64 / (5 * WORKFLOWS * 10) as f64;
        report.add("disk_bytes_per_step", per_step, "bytes", "");
        anyhow::Ok(())
    })
}

struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        // Already gone is as good.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The same with one worker process outside, over HTTP.
pub(crate) fn external(report: &mut Report) -> Result<()> {
    const WORKFLOWS: u64 = 1000;
    const AT_A_TIME: usize = 100;
    let dir = tempfile::tempdir()?;
    let host = HostProcess::start(dir.path(), false, 256)?;
    host.upload()?;
    let exe = std::env::current_exe()?;
    let worker = Worker(Command::new(exe).arg("worker").arg(&host.address).spawn()?);
    let mut rates = Vec::new();
    for round in 0..3_u64 {
        let address = host.address.clone();
        let elapsed = runtime()?.block_on(async move {
            let next = Arc::new(AtomicU64::new(0));
            let begun = Instant::now();
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..AT_A_TIME {
                let (address, next) = (address.clone(), next.clone());
                tasks.spawn(async move { drive(&address, round, &next, WORKFLOWS).await });
            }
            while let Some(done) = tasks.join_next().await {
                done??;
            }
            anyhow::Ok(begun.elapsed())
        })?;
        #[allow(clippy::cast_precision_loss, reason = "a small count")]
        rates.push((WORKFLOWS * 10) as f64 / elapsed.as_secs_f64());
    }
    drop(worker);
    report.add("steps_per_s_external", median(rates), "steps/s", ">= 5000");
    Ok(())
}

async fn drive(address: &str, round: u64, next: &AtomicU64, count: u64) -> Result<()> {
    let mut connection = Connection::connect(address).await?;
    loop {
        let i = next.fetch_add(1, Ordering::Relaxed);
        if i >= count {
            return Ok(());
        }
        let body = json!({
            "workflow_type": "steps",
            "workflow_id": format!("x-{round}-{i}"),
            "input": { "steps": 10 },
        });
        let path = "/api/v1/namespaces/default/workflows?wait_ms=60000";
        let answer: Value =
            serde_json::from_slice(&connection.post(path, &body.to_string()).await?)?;
        let status = answer.pointer("/result/status").and_then(Value::as_str);
        if status != Some("completed") {
            bail!("workflow {i} did not complete: {answer}");
        }
    }
}

/// `worker ADDRESS`: polls for tasks and completes them, in batches.
pub(crate) fn worker(args: &[String]) -> Result<()> {
    let address = args.get(1).context("worker ADDRESS")?.clone();
    runtime()?.block_on(async move {
        let mut pollers = tokio::task::JoinSet::new();
        for i in 0..4 {
            let address = address.clone();
            pollers.spawn(async move { poll(&address, i).await });
        }
        while let Some(done) = pollers.join_next().await {
            done??;
        }
        Ok(())
    })
}

async fn poll(address: &str, index: u32) -> Result<()> {
    let mut connection = Connection::connect(address).await?;
    let request = json!({ "worker": format!("bench-{index}"), "max_tasks": 64, "wait_ms": 10_000 });
    let request = request.to_string();
    loop {
        let path = "/api/v1/namespaces/default/task-queues/default/poll";
        let answer: Value = serde_json::from_slice(&connection.post(path, &request).await?)?;
        let tasks = answer
            .get("tasks")
            .and_then(Value::as_array)
            .context("no tasks")?;
        if tasks.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
            continue;
        }
        let items: Vec<Value> = tasks
            .iter()
            .map(|task| json!({ "complete": { "token": task["token"], "result": task["input"] } }))
            .collect();
        let body = json!({ "items": items }).to_string();
        connection.post("/api/v1/tasks/batch", &body).await?;
    }
}
