//! A worker over HTTP, as a thread of the test: it outlives the host's crashes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use crate::effects::Effects;
use crate::host::Host;
use crate::http;

/// A worker that runs until it is dropped.
pub struct Worker {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// Tasks it has completed.
    pub completed: Arc<AtomicU64>,
}

impl Worker {
    /// Starts threads that poll the queue `default` of a host.
    #[must_use]
    pub fn start(address: &str, effects: &Effects, threads: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let completed = Arc::new(AtomicU64::new(0));
        let threads = (0..threads)
            .map(|i| {
                let (address, effects) = (address.to_owned(), effects.clone());
                let (stop, completed) = (stop.clone(), completed.clone());
                std::thread::spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        if round(&address, i, &effects, &completed).is_err() {
                            // The host is down just now.
                            std::thread::sleep(Duration::from_millis(5));
                        }
                    }
                })
            })
            .collect();
        Self {
            stop,
            threads,
            completed,
        }
    }
}

fn round(
    address: &str,
    index: usize,
    effects: &Effects,
    completed: &AtomicU64,
) -> anyhow::Result<()> {
    let poll = json!({ "worker": format!("w{index}"), "max_tasks": 10, "wait_ms": 500 });
    let answer = http::post(address, &Host::path("task-queues/default/poll"), &poll)?;
    let answer = answer.json();
    for task in answer["tasks"].as_array().into_iter().flatten() {
        let activity = task["activity_type"].as_str().unwrap_or_default();
        let key = task["idempotency_key"].as_str().unwrap_or_default();
        let result = effects.apply(activity, key, &task["input"]);
        let body = json!({ "token": task["token"], "result": result });
        complete(address, &body, completed);
    }
    Ok(())
}

/// A worker that does not know whether its report counted reports again, for a while.
fn complete(address: &str, body: &Value, completed: &AtomicU64) {
    for _ in 0..200 {
        match http::post(address, "/api/v1/tasks/complete", body) {
            Ok(answer) if answer.status == 200 => {
                completed.fetch_add(1, Ordering::Relaxed);
                return;
            }
            // Gone: the run has it from an earlier report, or offers it again.
            Ok(answer) if answer.status == 410 => return,
            Ok(_) | Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}
