//! From start to result of an empty workflow, through the API.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Result;

use crate::host::{HostProcess, runtime};
use crate::http::Connection;
use crate::report::{Report, median};

/// Where workflows are started; the answer comes when the workflow has ended.
const PATH: &str = "/api/v1/namespaces/default/workflows?wait_ms=10000";

fn body(id: &str) -> String {
    format!("{{\"workflow_type\":\"empty\",\"workflow_id\":\"{id}\"}}")
}

/// One at a time, then 64 at a time.
pub(crate) fn starts(report: &mut Report) -> Result<()> {
    const STARTS: u64 = 20_000;
    let dir = tempfile::tempdir()?;
    let host = HostProcess::start(dir.path(), true, 256)?;
    host.upload()?;
    runtime()?.block_on(async {
        let mut connection = Connection::connect(&host.address).await?;
        let mut times = Vec::new();
        for i in 0..1000 {
            let begun = Instant::now();
            connection.post(PATH, &body(&format!("one-{i}"))).await?;
            times.push(begun.elapsed().as_secs_f64() * 1000.0);
        }
        report.add("start_p50_ms", median(times), "ms", "~ 1");
        let next = Arc::new(AtomicU64::new(0));
        let begun = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..64 {
            let (address, next) = (host.address.clone(), next.clone());
            tasks.spawn(async move {
                let mut connection = Connection::connect(&address).await?;
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= STARTS {
                        return anyhow::Ok(());
                    }
                    connection.post(PATH, &body(&format!("many-{i}"))).await?;
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        #[allow(clippy::cast_precision_loss, reason = "a small count")]
        let rate = STARTS as f64 / begun.elapsed().as_secs_f64();
        report.add("starts_per_s", rate, "starts/s", "~ 10000");
        Ok(())
    })
}
