//! Runs that wait: what each costs in memory, and how fast a host with many of them comes up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use serde_json::json;

use crate::host::{HostProcess, runtime};
use crate::http::Connection;
use crate::report::Report;

/// Runs before the first look at the memory: all caches are full by then.
const WARM: u64 = 20_000;

/// Runs between the two looks.
const RUNS: u64 = 100_000;

/// Small, so that it is full long before the first look.
const CACHE_MIB: usize = 32;

/// Half of them wait for a signal, half for a timer a day ahead.
pub(crate) fn parked(report: &mut Report) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let host = HostProcess::start(dir.path(), true, CACHE_MIB)?;
    host.upload()?;
    park(&host.address, 0, WARM)?;
    let before = host.resident_bytes()?;
    park(&host.address, WARM, WARM + RUNS)?;
    let after = host.resident_bytes()?;
    #[allow(clippy::cast_precision_loss, reason = "a small count")]
    let per_run = (after - before) / RUNS as f64;
    report.add("parked_bytes_per_run", per_run, "bytes", "<= 300");
    report.add("parked_resident_mib", after / 1024.0 / 1024.0, "MiB", "");
    host.kill()?;
    let host = HostProcess::start(dir.path(), true, CACHE_MIB)?;
    report.add(
        "restart_100k_parked_s",
        host.ready_after.as_secs_f64(),
        "s",
        "< 1",
    );
    Ok(())
}

fn park(address: &str, from: u64, to: u64) -> Result<()> {
    runtime()?.block_on(async {
        let next = Arc::new(AtomicU64::new(from));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..64 {
            let (address, next) = (address.to_owned(), next.clone());
            tasks.spawn(async move {
                let mut connection = Connection::connect(&address).await?;
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= to {
                        return anyhow::Ok(());
                    }
                    let body = if i % 2 == 0 {
                        json!({ "workflow_type": "wait-signal", "workflow_id": format!("p-{i}") })
                    } else {
                        json!({
                            "workflow_type": "wait-timer",
                            "workflow_id": format!("p-{i}"),
                            "input": { "ms": 86_400_000 },
                        })
                    };
                    let path = "/api/v1/namespaces/default/workflows";
                    connection.post(path, &body.to_string()).await?;
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        Ok(())
    })
}
