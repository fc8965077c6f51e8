//! Mistakes of callers and of disks: each gets its own error with a hint, and nothing is lost.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "test code"
)]

use std::process::{Command, Stdio};

use serde_json::{Value, json};
use steadfast_e2e::host::{Host, binary};
use steadfast_e2e::http::{self, Response};

fn host() -> (tempfile::TempDir, Host) {
    let dir = tempfile::tempdir().expect("a directory");
    let host = Host::start(dir.path(), &["--dev-activities"]).expect("a host");
    host.upload("bench").expect("uploaded");
    (dir, host)
}

fn is_problem(answer: &Response, status: u16, code: &str) {
    let body = answer.json();
    assert_eq!(
        (answer.status, &body["code"]),
        (status, &json!(code)),
        "{body}"
    );
    assert!(
        answer.head.contains("application/problem+json"),
        "{}",
        answer.head
    );
    for field in ["title", "detail", "hint"] {
        let text = body[field].as_str().unwrap_or_default();
        assert!(!text.is_empty(), "{code} has no {field}: {body}");
    }
}

fn start(host: &Host, body: &Value) -> Response {
    http::post(&host.address, &Host::path("workflows"), body).expect("an answer")
}

fn upload(host: &Host, bytes: &[u8]) -> Response {
    http::raw(
        &host.address,
        "POST",
        "/api/v1/components",
        "application/wasm",
        bytes,
    )
    .expect("an answer")
}

#[test]
fn components_that_cannot_be_run_are_refused_by_name() {
    let (_dir, host) = host();
    is_problem(&upload(&host, b"hello"), 422, "not-a-component");
    is_problem(&upload(&host, b""), 422, "not-a-component");
    let module = upload(&host, b"\0asm\x01\0\0\0");
    is_problem(&module, 422, "not-a-component");
    assert!(
        module.json()["detail"]
            .as_str()
            .is_some_and(|text| text.contains("core module"))
    );
    // An empty component is of no world.
    is_problem(&upload(&host, b"\0asm\x0d\0\x01\0"), 422, "wrong-world");
    is_problem(
        &upload(&host, &vec![0; 200 * 1024 * 1024]),
        413,
        "too-large",
    );
    // The host is as well as before.
    let body = json!({ "workflow_type": "empty", "workflow_id": "after" });
    assert_eq!(start(&host, &body).status, 201);
}

#[test]
fn requests_that_make_no_sense_say_what_and_where() {
    let (_dir, host) = host();
    let path = Host::path("workflows");
    let broken = http::raw(
        &host.address,
        "POST",
        &path,
        "application/json",
        b"{\n  \"a\": }",
    )
    .expect("an answer");
    is_problem(&broken, 400, "malformed-json");
    assert!(
        broken.json()["detail"]
            .as_str()
            .is_some_and(|text| text.contains("line 2"))
    );
    is_problem(
        &start(&host, &json!({ "workflow_type": "nothing" })),
        404,
        "not-found",
    );
    let long = json!({ "workflow_type": "empty", "workflow_id": "x".repeat(1001) });
    let answer = start(&host, &long);
    is_problem(&answer, 400, "invalid-argument");
    assert!(
        answer.json()["detail"]
            .as_str()
            .is_some_and(|text| text.contains("1001 bytes"))
    );
    let large = json!({ "workflow_type": "empty", "input": "x".repeat(2 * 1024 * 1024) });
    is_problem(&start(&host, &large), 413, "too-large");
    let missing = http::get(&host.address, &Host::path("workflows/nobody")).expect("an answer");
    is_problem(&missing, 404, "not-found");
    let other = http::get(&host.address, "/api/v1/namespaces/mars/workflows/x").expect("an answer");
    is_problem(&other, 404, "not-found");
    is_problem(
        &http::get(&host.address, "/api/v1/nothing").expect("an answer"),
        404,
        "unknown-route",
    );
}

#[test]
fn races_that_a_caller_lost_are_conflicts() {
    let (_dir, host) = host();
    let body = json!({ "workflow_type": "wait-signal", "workflow_id": "one" });
    let first = start(&host, &body);
    assert_eq!(first.status, 201);
    let second = start(&host, &body);
    is_problem(&second, 409, "already-started");
    assert_eq!(
        second.json()["run_id"],
        first.json()["run_id"],
        "it names the open run"
    );
    let go = Host::path("workflows/one/signals/go");
    assert_eq!(
        http::post(&host.address, &go, &json!({}))
            .expect("an answer")
            .status,
        200
    );
    let result = Host::path("workflows/one/result?wait_ms=10000");
    let result = http::get(&host.address, &result).expect("an answer");
    assert_eq!(result.json()["status"], "completed");
    is_problem(
        &http::post(&host.address, &go, &json!({})).expect("an answer"),
        409,
        "execution-closed",
    );
}

#[test]
fn a_worker_that_is_late_or_repeats_itself_is_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let host = Host::start(dir.path(), &[]).expect("a host");
    host.upload("bench").expect("uploaded");
    let body = json!({ "workflow_type": "steps", "workflow_id": "w", "input": { "steps": 2 } });
    assert_eq!(start(&host, &body).status, 201);
    let poll = json!({ "worker": "me", "wait_ms": 10_000 });
    let poll = http::post(
        &host.address,
        &Host::path("task-queues/default/poll"),
        &poll,
    );
    let task = poll.expect("an answer").json()["tasks"][0].clone();
    let report = json!({ "token": task["token"], "result": 0 });
    let complete = |report: &Value| {
        http::post(&host.address, "/api/v1/tasks/complete", report).expect("an answer")
    };
    assert_eq!(complete(&report).status, 200);
    is_problem(&complete(&report), 410, "task-gone");
    is_problem(
        &complete(&json!({ "token": "nonsense", "result": 0 })),
        400,
        "invalid-argument",
    );
    let foreign = "00000000-0063-8000-8000-000000000000.1.1";
    is_problem(
        &complete(&json!({ "token": foreign, "result": 0 })),
        410,
        "task-gone",
    );
}

/// A guest that panics, spins or takes all memory blocks itself and nobody else.
#[test]
fn hostile_guests_are_blocked_alone() {
    let (_dir, host) = host();
    for (kind, code) in [("panic", "trap"), ("spin", "timeout"), ("grow", "limit")] {
        let body = json!({ "workflow_type": kind, "workflow_id": kind });
        assert_eq!(start(&host, &body).status, 201);
        let body = json!({ "workflow_type": "empty", "workflow_id": format!("beside-{kind}") });
        assert_eq!(start(&host, &body).status, 201);
        let result = Host::path(&format!("workflows/beside-{kind}/result?wait_ms=10000"));
        let result = http::get(&host.address, &result).expect("an answer").json();
        assert_eq!(result["status"], "completed", "beside {kind}: {result}");
        let describe = Host::path(&format!("workflows/{kind}"));
        let begun = std::time::Instant::now();
        let blocked = loop {
            let described = http::get(&host.address, &describe)
                .expect("an answer")
                .json();
            let blocked = described
                .pointer("/blocked")
                .or(described.pointer("/execution/blocked"));
            if let Some(blocked) = blocked.filter(|blocked| !blocked.is_null()) {
                break blocked.clone();
            }
            assert!(
                begun.elapsed().as_secs() < 30,
                "{kind} was not blocked: {described}"
            );
            std::thread::sleep(std::time::Duration::from_millis(20));
        };
        assert_eq!(blocked["code"], code, "{kind}: {blocked}");
    }
}

/// The file may not grow past 4 MiB: the host stops acknowledging, says why, and everything that
/// it acknowledged is there when there is room again.
#[test]
fn a_full_disk_loses_nothing_that_was_acknowledged() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut host = Host::start(dir.path(), &[]).expect("a host");
    host.upload("bench").expect("uploaded");
    host.kill().expect("killed");
    let size = std::fs::metadata(dir.path().join("store.redb"))
        .expect("the store")
        .len();
    let limit_kib = size / 1024 + 2048;
    let inner = host.command();
    let mut command = Command::new("bash");
    command
        .args(["-c", "trap '' XFSZ; ulimit -f \"$0\"; exec \"$@\""])
        .arg(limit_kib.to_string())
        .arg(binary())
        .args(inner.get_args())
        .env("RUST_LOG", "warn")
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let child = command.spawn().expect("bash starts");
    let acknowledged = fill(&host.address);
    let output = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        output.status.code(),
        Some(70),
        "a supervisor is asked to restart it: {stderr}"
    );
    assert!(
        !acknowledged.is_empty(),
        "nothing was acknowledged before the disk was full"
    );
    host.launch().expect("it comes up when there is room");
    for id in &acknowledged {
        let path = Host::path(&format!("workflows/{id}"));
        let answer = http::get(&host.address, &path).expect("an answer");
        assert_eq!(answer.status, 200, "{id} was acknowledged and is gone");
    }
}

/// Starts workflows until the host gives up; returns what it acknowledged.
fn fill(address: &str) -> Vec<String> {
    let mut acknowledged = Vec::new();
    let begun = std::time::Instant::now();
    let mut refused = 0;
    for i in 0..100_000 {
        let id = format!("fill-{i}");
        let body = json!({
            "workflow_type": "wait-signal",
            "workflow_id": id,
            "input": "x".repeat(20_000),
        });
        match http::post(address, &Host::path("workflows"), &body) {
            Ok(answer) if answer.status == 201 => acknowledged.push(id),
            Ok(_) | Err(_) if acknowledged.is_empty() => {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            Ok(_) | Err(_) => refused += 1,
        }
        if refused > 3 {
            break;
        }
        assert!(begun.elapsed().as_secs() < 120, "the disk never filled up");
    }
    acknowledged
}
