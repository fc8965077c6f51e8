//! SIGKILL at any moment, under load: every accepted order finishes, each effect is applied once,
//! and no history is rewritten.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "test code"
)]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use steadfast_e2e::effects::Effects;
use steadfast_e2e::host::Host;
use steadfast_e2e::http;
use steadfast_e2e::worker::Worker;

/// How often the host is killed.
const KILLS: u64 = 200;

/// Longest life of a host between two kills.
const LIFE_MS_MAX: u64 = 120;

type Histories = Arc<Mutex<BTreeMap<String, Vec<Value>>>>;

/// Does something again and again until the host, up or down, has acknowledged it.
fn insist(mut request: impl FnMut() -> anyhow::Result<http::Response>, what: &str) -> Value {
    let begun = Instant::now();
    loop {
        match request() {
            Ok(answer) if answer.status < 300 => return answer.json(),
            Ok(answer) if answer.status < 500 => {
                panic!(
                    "{what}: {} {}",
                    answer.status,
                    String::from_utf8_lossy(&answer.body)
                )
            }
            Ok(_) | Err(_) => {}
        }
        assert!(
            begun.elapsed() < Duration::from_secs(300),
            "{what}: not acknowledged in 300 s"
        );
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// The whole history of an order, page by page; `None` while the host is down.
fn history(address: &str, id: &str) -> Option<Vec<Value>> {
    let path = Host::path(&format!("workflows/{id}/history?limit=1000"));
    let answer = http::get(address, &path)
        .ok()
        .filter(|answer| answer.status == 200)?;
    answer.json()["events"].as_array().cloned()
}

/// A history that was shown once may only grow.
fn check_growth(histories: &Histories, id: &str, now: &[Value]) {
    let mut histories = histories.lock().unwrap_or_else(PoisonError::into_inner);
    let before = histories.entry(id.to_owned()).or_default();
    assert!(
        now.starts_with(before),
        "the history of {id} was rewritten:\n{before:?}\nnow {now:?}"
    );
    *before = now.to_vec();
}

fn order(address: &str, id: &str) {
    let start = json!({
        "workflow_type": "order",
        "workflow_id": id,
        "request_id": format!("start-{id}"),
        "input": {
            "order_id": id,
            "amount_cents": 4200,
            "items": [{ "sku": "book", "quantity": 1 }],
            "fraud_review_ms": 20,
            "approval_deadline_ms": 600_000,
        },
    });
    insist(
        || http::post(address, &Host::path("workflows"), &start),
        "start",
    );
    let signal = json!({ "input": { "approved": true }, "request_id": format!("approve-{id}") });
    let path = Host::path(&format!("workflows/{id}/signals/approve"));
    insist(|| http::post(address, &path, &signal), "approve");
}

#[test]
fn every_accepted_order_survives_two_hundred_kills() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut host = Host::start(dir.path(), &[]).expect("a host");
    host.upload("order").expect("the order sample");
    let effects = Effects::default();
    let worker = Worker::start(&host.address, &effects, 3);
    let (stop, next) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let accepted: Arc<Mutex<Vec<String>>> = Arc::default();
    let histories = Histories::default();
    let clients: Vec<_> = (0..3)
        .map(|_| {
            let (address, stop, next) = (host.address.clone(), stop.clone(), next.clone());
            let (accepted, histories) = (accepted.clone(), histories.clone());
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let id = format!("order-{}", next.fetch_add(1, Ordering::Relaxed));
                    order(&address, &id);
                    if let Some(seen) = history(&address, &id) {
                        check_growth(&histories, &id, &seen);
                    }
                    accepted
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(id);
                }
            })
        })
        .collect();
    // A fixed sequence of lives: which moment a kill hits is random enough.
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..KILLS {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        std::thread::sleep(Duration::from_millis((random >> 33) % LIFE_MS_MAX));
        host.kill().expect("killed");
        host.launch().expect("it comes up again");
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().expect("a client failed");
    }
    let accepted = accepted
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    assert!(
        accepted.len() > 20,
        "only {} orders were accepted: no load",
        accepted.len()
    );
    for id in &accepted {
        check_finished(&host.address, id, &histories);
    }
    drop(worker);
    check_effects(&effects, accepted.len());
    println!(
        "{} orders, {KILLS} kills, {} effects",
        accepted.len(),
        effects.all().len()
    );
}

fn check_finished(address: &str, id: &str, histories: &Histories) {
    let path = Host::path(&format!("workflows/{id}/result?wait_ms=60000"));
    let result = insist(|| http::get(address, &path), "result");
    assert_eq!(result["status"], "completed", "{id}: {result}");
    let seen = history(address, id).expect("the host is up");
    check_growth(histories, id, &seen);
    for (i, event) in seen.iter().enumerate() {
        assert_eq!(event["number"], i + 1, "{id}: numbers are dense");
    }
    let completed = seen
        .iter()
        .filter(|event| event["type"] == "ActivityTaskCompleted")
        .count();
    assert_eq!(
        completed, 3,
        "{id}: reserve, charge and ship, once each: {seen:#?}"
    );
}

fn check_effects(effects: &Effects, orders: usize) {
    let all = effects.all();
    for (key, effect) in &all {
        assert_eq!(
            effect.applied, 1,
            "{key} was applied {} times",
            effect.applied
        );
    }
    for activity in ["reserve", "charge", "ship"] {
        let count = all
            .values()
            .filter(|effect| effect.activity == activity)
            .count();
        assert_eq!(count, orders, "{activity}: one idempotency key per order");
    }
    assert!(
        all.values()
            .all(|effect| matches!(effect.activity.as_str(), "reserve" | "charge" | "ship")),
        "an order was compensated although nothing failed"
    );
}
