//! The demo's activity worker: a process of its own that long-polls the host over HTTP.
//!
//! It loses one answer on purpose: a shipment is made, and its answer does not arrive. The host
//! tries again with the same idempotency key, so nothing is shipped twice.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};

use crate::demo::effects::Effects;
use crate::demo::http;

/// An amount that no card of the demo covers.
const AMOUNT_MAX: u64 = 100_000;

/// How long an activity takes.
const WORK: Duration = Duration::from_millis(150);

/// How long an unreachable host is tried.
const PATIENCE: u32 = 200;

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(100);

/// What the worker needs to know.
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// Host and port of the server
    #[arg(long)]
    authority: String,
    /// Task queue
    #[arg(long, default_value = "default")]
    queue: String,
    /// Log of effects
    #[arg(long)]
    log: PathBuf,
}

/// Works until it is killed, or the host stays away.
pub(crate) fn run(args: &WorkerArgs) -> Result<()> {
    let effects = Effects::open(&args.log)?;
    let worker = Arc::new(Worker {
        authority: args.authority.clone(),
        effects,
        has_lost_an_answer: AtomicBool::new(false),
    });
    let poll = json!({"worker": "demo-worker", "max_tasks": 10, "wait_ms": 10_000});
    let path = format!("/api/v1/namespaces/default/task-queues/{}/poll", args.queue);
    loop {
        let answer = worker.post(&path, &poll)?;
        let tasks = answer
            .get("tasks")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        for task in tasks {
            let worker = Arc::clone(&worker);
            std::thread::spawn(move || {
                if let Err(error) = worker.work(&task) {
                    eprintln!("worker: {error:#}");
                }
            });
        }
    }
}

struct Worker {
    authority: String,
    effects: Effects,
    has_lost_an_answer: AtomicBool,
}

impl Worker {
    fn work(&self, task: &Value) -> Result<()> {
        let field = |name: &str| {
            let value = task.get(name).and_then(Value::as_str);
            value.with_context(|| format!("a task without {name}"))
        };
        let (token, activity) = (field("token")?, field("activity_type")?);
        let input = task.get("input").cloned().unwrap_or(Value::Null);
        let order = input.get("order_id").and_then(Value::as_str).unwrap_or("?");
        std::thread::sleep(WORK);
        if input
            .get("amount_cents")
            .and_then(Value::as_u64)
            .is_some_and(|cents| cents > AMOUNT_MAX)
        {
            return self.fail(token, "card-declined", "the card does not cover the amount");
        }
        let (answer, is_new) = self
            .effects
            .apply(field("idempotency_key")?, activity, order)?;
        println!(
            "{activity} {order}: {answer}{}",
            if is_new { "" } else { " (known already)" }
        );
        let is_shipment = is_new && activity == "ship";
        if is_shipment && !self.has_lost_an_answer.swap(true, Ordering::Relaxed) {
            return self.fail(
                token,
                "connection-reset",
                "the answer of the carrier got lost",
            );
        }
        self.report("complete", &json!({"token": token, "result": answer}))
    }

    fn fail(&self, token: &str, code: &str, message: &str) -> Result<()> {
        let frame = json!({"kind": "application", "code": code, "message": message});
        self.report(
            "fail",
            &json!({"token": token, "failure": {"frames": [frame]}}),
        )
    }

    fn report(&self, what: &str, body: &Value) -> Result<()> {
        self.post(&format!("/api/v1/tasks/{what}"), body).map(drop)
    }

    /// Posts until the host has answered: it may be dead at the moment. Reporting twice is safe,
    /// the second report of a task is refused.
    fn post(&self, path: &str, body: &Value) -> Result<Value> {
        for _ in 0..PATIENCE {
            match http::post(&self.authority, path, body) {
                Ok((status, answer)) if status < 400 => return Ok(answer),
                // The task is not ours any more: somebody else does it.
                Ok((410, _)) => return Ok(Value::Null),
                Ok((503, _)) | Err(_) => std::thread::sleep(PAUSE),
                Ok((status, answer)) => bail!("{path} answered {status}: {answer}"),
            }
        }
        bail!("the host stays away")
    }
}
