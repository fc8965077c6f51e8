//! Messages to running workflows, through the API: updates from sending to the answer of their
//! handler, and signals into one run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Result;

use crate::host::{HostProcess, runtime};
use crate::http::Connection;
use crate::report::{Report, median};

const WORKFLOWS: &str = "/api/v1/namespaces/default/workflows";

/// Callers at a time.
const CALLERS: u64 = 64;

/// Signals that one run gets; a run takes 10,000.
const SIGNALS: u64 = 9000;

async fn start(connection: &mut Connection, workflow: &str, id: &str, input: &str) -> Result<()> {
    let body =
        format!("{{\"workflow_type\":\"{workflow}\",\"workflow_id\":\"{id}\",\"input\":{input}}}");
    connection.post(WORKFLOWS, &body).await?;
    Ok(())
}

/// One at a time into one run, then 64 runs at a time.
pub(crate) fn updates(report: &mut Report) -> Result<()> {
    const UPDATES: u64 = 300;
    let dir = tempfile::tempdir()?;
    let host = HostProcess::start(dir.path(), true, 256)?;
    host.upload()?;
    runtime()?.block_on(async {
        let mut connection = Connection::connect(&host.address).await?;
        start(&mut connection, "counter", "one", "null").await?;
        let path = format!("{WORKFLOWS}/one/updates/add");
        let mut times = Vec::new();
        for _ in 0..1000 {
            let begun = Instant::now();
            connection.post(&path, "{\"input\":1}").await?;
            times.push(begun.elapsed().as_secs_f64() * 1000.0);
        }
        report.add("update_p50_ms", median(times), "ms", "~ 1");
        for i in 0..CALLERS {
            start(&mut connection, "counter", &format!("many-{i}"), "null").await?;
        }
        let begun = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for i in 0..CALLERS {
            let address = host.address.clone();
            tasks.spawn(async move {
                let mut connection = Connection::connect(&address).await?;
                let path = format!("{WORKFLOWS}/many-{i}/updates/add");
                for _ in 0..UPDATES {
                    connection.post(&path, "{\"input\":1}").await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        #[allow(clippy::cast_precision_loss, reason = "a small count")]
        let rate = (CALLERS * UPDATES) as f64 / begun.elapsed().as_secs_f64();
        report.add("updates_per_s", rate, "updates/s", "~ 5000");
        Ok(())
    })
}

/// Many callers, each waiting until its signal is durable, and one run that takes them all.
pub(crate) fn signals(report: &mut Report) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let host = HostProcess::start(dir.path(), true, 256)?;
    host.upload()?;
    runtime()?.block_on(async {
        let mut connection = Connection::connect(&host.address).await?;
        let input = format!("{{\"expect\":{SIGNALS}}}");
        start(&mut connection, "signals-count", "one", &input).await?;
        let next = Arc::new(AtomicU64::new(0));
        let begun = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..CALLERS {
            let (address, next) = (host.address.clone(), next.clone());
            tasks.spawn(async move {
                let mut connection = Connection::connect(&address).await?;
                let path = format!("{WORKFLOWS}/one/signals/n");
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= SIGNALS {
                        return anyhow::Ok(());
                    }
                    connection
                        .post(&path, &format!("{{\"input\":{i}}}"))
                        .await?;
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        #[allow(clippy::cast_precision_loss, reason = "a small count")]
        let rate = SIGNALS as f64 / begun.elapsed().as_secs_f64();
        report.add("signals_per_s_one_run", rate, "signals/s", "~ 10000");
        Ok(())
    })
}
