//! `demo`: orders on a host that is killed in the middle.

mod effects;
mod host;
mod http;
pub(crate) mod worker;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::demo::host::{Running, Stage};
use crate::guests;
use crate::paths::Paths;

/// Orders that are approved.
const GOOD: [&str; 5] = ["order-1", "order-2", "order-3", "order-4", "order-5"];

/// The order whose card is declined.
const BAD: &str = "order-6";

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// What the world must look like in the end: activities, and how often each took effect.
const EXPECTED: [(&str, usize); 4] = [("reserve", 6), ("charge", 5), ("ship", 5), ("release", 1)];

/// Builds what is needed and tells the story.
pub(crate) fn run(paths: &Paths) -> Result<()> {
    let mut teller = Teller {
        step: 0,
        began: Instant::now(),
    };
    teller.step("building the host and the order workflow");
    let binary = guests::build_host(paths, "dev")?;
    let components = guests::build(paths, &binary, &["order"], None)?;

    let folder = std::env::temp_dir().join(format!("steadfast-demo-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let authority = "127.0.0.1:0".to_owned();
    let mut stage = Stage {
        binary,
        folder: folder.clone(),
        authority,
    };
    teller.began = Instant::now();
    let told = tell(&mut teller, &mut stage, &components.join("order.wasm"));
    if let Err(error) = told {
        return Err(error.context(format!("the demo failed; logs are in {}", folder.display())));
    }
    std::fs::remove_dir_all(&folder).context("cannot remove the demo's folder")?;
    println!(
        "\nEverything went as it should, in {:.1} s.",
        teller.began.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Numbers the steps of the story.
struct Teller {
    step: u32,
    began: Instant,
}

impl Teller {
    fn step(&mut self, text: &str) {
        self.step += 1;
        println!("\n{}. {text}", self.step);
    }
}

fn say(text: &str) {
    println!("   {text}");
}

fn tell(teller: &mut Teller, stage: &mut Stage, component: &Path) -> Result<()> {
    teller.step("starting a host on an empty data directory, and a worker process");
    let (host, _) = stage.start_host()?;
    say(&format!(
        "host: process {}, http://{}",
        host.id(),
        stage.authority
    ));
    let log = stage.folder.join("effects.log");
    let worker = stage.start_worker(&log)?;
    say(&format!(
        "worker: process {}, polls the task queue over HTTP",
        worker.id()
    ));

    teller.step("deploying the workflow and starting six orders");
    let component = component
        .to_str()
        .context("the component's path is not text")?;
    say(stage.cli_ok(&["deploy", component])?.trim());
    for id in GOOD {
        start(stage, id, 4200)?;
    }
    start(stage, BAD, 999_999)?;
    say(&format!(
        "{} and {BAD}, whose card will be declined",
        GOOD.join(", ")
    ));

    let (host, worker) = crash(teller, stage, &log, host, worker)?;

    teller.step("waiting for the results");
    let receipt = results(stage)?;
    say(&format!("order-1 returned {receipt}"));
    say(&format!("{BAD} failed, and its reservation was released"));

    teller.step("the history of order-1: it spans both processes");
    stage.show(&["history", "order-1"])?;

    teller.step("what happened outside: every effect once per idempotency key");
    let text = check(&log, &stage.folder.join("worker.log"))?;
    print!("{text}");
    drop((host, worker));
    Ok(())
}

/// Kills the host while orders are under way, and starts another one on the same data.
fn crash(
    teller: &mut Teller,
    stage: &mut Stage,
    log: &Path,
    host: Running,
    worker: Running,
) -> Result<(Running, Running)> {
    teller.step("approving three orders, then killing the host with SIGKILL in the middle");
    for id in GOOD.iter().take(3) {
        stage.cli_ok(&["signal", id, "approve", "--input", r#"{"approved": true}"#])?;
    }
    wait_for("the first charges", || Ok(count(log, "charge")? >= 2))?;
    let before = effects::read(log)?.len();
    let pid = host.id();
    host.kill()?;
    say(&format!(
        "killed process {pid} after {before} effects; the worker keeps trying"
    ));

    teller.step("starting the host again on the same data directory");
    let began = Instant::now();
    let (host, ready) = stage.start_host()?;
    let open = ready.get("open").and_then(Value::as_u64).unwrap_or(0);
    let ms = began.elapsed().as_millis();
    say(&format!(
        "process {}, ready after {ms} ms with {open} open orders",
        host.id()
    ));
    for id in GOOD.iter().skip(3) {
        stage.cli_ok(&["signal", id, "approve", "--input", r#"{"approved": true}"#])?;
    }
    say("approved the other orders");
    Ok((host, worker))
}

fn start(stage: &Stage, id: &str, amount_cents: u64) -> Result<()> {
    let input = serde_json::json!({
        "order_id": id, "amount_cents": amount_cents, "items": [{"sku": "lamp", "quantity": 1}],
        "fraud_review_ms": 1500, "approval_deadline_ms": 60_000,
    });
    let input = input.to_string();
    stage.cli_ok(&[
        "start",
        "--type",
        "order",
        "--workflow-id",
        id,
        "--input",
        &input,
    ])?;
    Ok(())
}

/// Waits for all orders; returns what the first one returned.
fn results(stage: &Stage) -> Result<String> {
    let mut first = String::new();
    for id in GOOD {
        let result = stage.cli_ok(&["result", id, "--timeout", "30s"])?;
        let receipt: Value = serde_json::from_str(&result).context("a result is not JSON")?;
        ensure!(
            receipt.get("order_id").and_then(Value::as_str) == Some(id),
            "{id}: {result}"
        );
        if first.is_empty() {
            result.trim().clone_into(&mut first);
        }
    }
    let bad = stage.cli(&["result", BAD, "--timeout", "30s"])?;
    ensure!(
        bad.code == 7,
        "{BAD} should have failed with 7, not {}: {}",
        bad.code,
        bad.stderr
    );
    ensure!(
        bad.stderr.contains("card-declined"),
        "{BAD} failed otherwise: {}",
        bad.stderr
    );
    Ok(first)
}

fn count(log: &Path, activity: &str) -> Result<usize> {
    Ok(effects::read(log)?
        .iter()
        .filter(|effect| effect.activity == activity)
        .count())
}

fn wait_for(what: &str, is_there: impl Fn() -> Result<bool>) -> Result<()> {
    let began = Instant::now();
    while !is_there()? {
        if began.elapsed() > PATIENCE {
            bail!("waited too long for {what}");
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Compares the log of effects with what must have happened.
fn check(log: &Path, worker_log: &PathBuf) -> Result<String> {
    let effects = effects::read(log)?;
    let repeated = effects::repeated(&effects);
    ensure!(
        repeated.is_empty(),
        "took effect more than once: {}",
        repeated.join(", ")
    );
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for effect in &effects {
        *counts.entry(effect.activity.as_str()).or_default() += 1;
    }
    let mut text = String::from("   activity  effects  expected\n");
    for (activity, expected) in EXPECTED {
        let found = counts.remove(activity).unwrap_or(0);
        text.push_str(&format!("   {activity:<8}  {found:>7}  {expected:>8}\n"));
        ensure!(
            found == expected,
            "{activity} took effect {found} times, not {expected}"
        );
    }
    ensure!(counts.is_empty(), "unexpected effects: {counts:?}");
    let known = std::fs::read_to_string(worker_log)?
        .matches("(known already)")
        .count();
    ensure!(
        known > 0,
        "no attempt was repeated: the lost answer of a shipment was not retried"
    );
    text.push_str(&format!(
        "   {known} repeated attempt found its effect done and did nothing\n"
    ));
    Ok(text)
}
