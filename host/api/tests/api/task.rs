//! Workers: poll, heartbeat, complete, fail, batch.

use serde_json::{Value, json};
use steadfast_api::wire::{PolledTasks, TaskBatchResult, TaskBatchResults};
use steadfast_model::Millis;
use steadfast_ports::fake::Op;
use steadfast_ports::guest::CallOptions;

use crate::world::{Host, WORKFLOWS};

const POLL: &str = "/api/v1/namespaces/default/task-queues/default/poll";

fn charging(options: CallOptions) -> Vec<(&'static str, Vec<Op>)> {
    let charge = Op::Activity {
        activity_type: "charge".to_owned(),
        input: "card".to_owned(),
        options,
    };
    vec![("pay", vec![charge, Op::Complete])]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_says_all_that_a_worker_needs() {
    let options = CallOptions {
        start_to_close: Millis(5000),
        schedule_to_close: Millis(3000),
        heartbeat: Millis(1000),
        settings: vec![("activity-id".to_owned(), "the-charge".to_owned())],
        ..CallOptions::default()
    };
    let host = Host::new(charging(options)).await;
    let started = host.start("pay", "a/b").await;
    let task = host.poll().await;
    let run_id = started["run_id"].as_str().unwrap();
    let expected = json!({
        "token": format!("{run_id}.1.1"),
        "activity_type": "charge",
        "activity_id": "the-charge",
        "input": "card",
        "attempt": 1,
        "idempotency_key": format!("default/a/b/{run_id}/1"),
        "namespace": "default",
        "workflow_id": "a/b",
        "run_id": run_id,
        "workflow_type": "pay",
        "scheduled_at": "2023-11-14T22:13:20.000Z",
        "deadline_at": "2023-11-14T22:13:23.000Z",
        "heartbeat_timeout_ms": 1000,
    });
    assert_eq!(task, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_taken_once_with_its_bytes() {
    let host = Host::new(charging(CallOptions::default())).await;
    host.start("pay", "a").await;
    let token = host.poll().await["token"].clone();
    let body = format!(r#"{{"token": {token}, "result": [9007199254740993,  1.50]}}"#);
    assert_eq!(
        host.post("/api/v1/tasks/complete", body.as_str())
            .await
            .expect::<Value>(200),
        json!({})
    );
    let outcome = host.outcome("a").await;
    assert_eq!(
        outcome["result"],
        json!(["null", "[9007199254740993,  1.50]"])
    );
    host.post("/api/v1/tasks/complete", body)
        .await
        .expect_problem(410, "task-gone");
    let beat = json!({ "token": token });
    host.post("/api/v1/tasks/heartbeat", beat.to_string())
        .await
        .expect_problem(410, "task-gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_tried_again_and_the_next_attempt_knows_it() {
    let options = CallOptions {
        initial_interval: Millis(100),
        ..CallOptions::default()
    };
    let host = Host::new(charging(options)).await;
    host.start("pay", "a").await;
    let token = host.poll().await["token"].clone();
    let beat = json!({ "token": token, "details": null });
    let answer: Value = host
        .post("/api/v1/tasks/heartbeat", beat.to_string())
        .await
        .expect(200);
    assert_eq!(answer, json!({ "cancel_requested": false }));
    let failure = json!({ "frames": [{ "code": "busy", "message": "try later" }] });
    let fail = json!({ "token": token, "failure": failure });
    host.post("/api/v1/tasks/fail", fail.to_string())
        .await
        .expect::<Value>(200);
    let description: Value = host.get(&format!("{WORKFLOWS}/a")).await.expect(200);
    assert_eq!(description["activities"][0]["state"], "backoff");
    assert_eq!(
        description["activities"][0]["next_attempt_at"],
        "2023-11-14T22:13:20.100Z"
    );
    host.clock.advance(Millis(200));
    let second = host.poll().await;
    assert_eq!(second["attempt"], 2);
    assert_eq!(second["last_failure"]["frames"][0]["code"], "busy");
    // `null` is a value like any other.
    assert_eq!(second.get("heartbeat_details"), Some(&Value::Null));
    let last = json!({ "frames": [{ "code": "gone", "non_retryable": true, "details": [1] }] });
    let fail = json!({ "token": second["token"], "failure": last });
    host.post("/api/v1/tasks/fail", fail.to_string())
        .await
        .expect::<Value>(200);
    assert!(
        host.outcome("a").await["result"][1]
            .as_str()
            .unwrap()
            .starts_with("failed:")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_takes_what_there_is_or_waits_and_answers_empty() {
    let fan = Op::Parallel {
        activity_type: "work".to_owned(),
        count: 10,
    };
    let host = Host::new(vec![("fan", vec![fan, Op::Complete])]).await;
    let none: PolledTasks = host
        .post(POLL, r#"{"worker": "w", "wait_ms": 10}"#)
        .await
        .expect(200);
    assert!(none.tasks.is_empty());
    // A waiting poll gets what comes.
    let waiting = host.post(POLL, r#"{"worker": "w", "wait_ms": 30000}"#);
    let (first, _) = tokio::join!(waiting, host.start("fan", "a"));
    let mut count = first.expect::<PolledTasks>(200).tasks.len();
    while count < 10 {
        let body = r#"{"worker": "w", "wait_ms": 30000, "max_tasks": 100}"#;
        count += host
            .post(POLL, body)
            .await
            .expect::<PolledTasks>(200)
            .tasks
            .len();
    }
    assert_eq!(count, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_answers_each_item_in_order() {
    let fan = Op::Parallel {
        activity_type: "work".to_owned(),
        count: 3,
    };
    let host = Host::new(vec![("fan", vec![fan, Op::Complete])]).await;
    host.start("fan", "a").await;
    let mut tokens = Vec::new();
    for _ in 0..3 {
        tokens.push(host.poll().await["token"].clone());
    }
    let items = json!({ "items": [
        { "complete": { "token": tokens[0], "result": "r0" } },
        { "heartbeat": { "token": tokens[1] } },
        { "complete": { "token": "nonsense" } },
        { "complete": { "token": tokens[1], "result": "r1" } },
        { "fail": { "token": tokens[2],
            "failure": { "frames": [{ "code": "x", "non_retryable": true }] } } },
        { "complete": { "token": tokens[2] } },
    ] });
    let reply = host.post("/api/v1/tasks/batch", items.to_string()).await;
    let results = reply.expect::<TaskBatchResults>(200).results;
    let codes: Vec<_> = results
        .iter()
        .map(|result| match result {
            TaskBatchResult::Ok(_) => "ok",
            TaskBatchResult::Error(problem) => problem.code.as_str(),
        })
        .collect();
    assert_eq!(
        codes,
        ["ok", "ok", "invalid-argument", "ok", "ok", "task-gone"]
    );
    assert_eq!(host.outcome("a").await["status"], "completed");
    let many = json!({ "items": vec![json!({ "complete": { "token": "x" } }); 1001] });
    host.post("/api/v1/tasks/batch", many.to_string())
        .await
        .expect_problem(400, "invalid-argument");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_make_no_sense_are_refused() {
    let host = Host::new(charging(CallOptions::default())).await;
    let cases = [
        (POLL, json!({ "worker": "" })),
        (POLL, json!({ "worker": "host/1" })),
        ("/api/v1/tasks/complete", json!({ "token": "x" })),
        (
            "/api/v1/tasks/fail",
            json!({ "token": "x", "failure": { "frames": [] } }),
        ),
        (
            "/api/v1/tasks/complete",
            json!({ "token": "x", "result": { "$payload": { "encoding": "a", "data": "!" } } }),
        ),
    ];
    for (uri, body) in cases {
        host.post(uri, body.to_string())
            .await
            .expect_problem(400, "invalid-argument");
    }
    let large = json!({ "token": "x", "result": "y".repeat(2 * 1024 * 1024) });
    let reply = host.post("/api/v1/tasks/complete", large.to_string()).await;
    // The token is read first.
    reply.expect_problem(400, "invalid-argument");
    host.start("pay", "a").await;
    let token = host.poll().await["token"].clone();
    let large = json!({ "token": token, "result": "y".repeat(2 * 1024 * 1024) });
    let reply = host.post("/api/v1/tasks/complete", large.to_string()).await;
    assert_eq!(
        reply.expect_problem(413, "too-large")["limit"],
        2 * 1024 * 1024
    );
}
