//! How a workflow is started over HTTP.

use serde_json::{Value, json};
use steadfast_ports::fake::Op;

use crate::world::{Host, NOW, WORKFLOWS};

fn scripts() -> Vec<(&'static str, Vec<Op>)> {
    vec![
        ("wait", vec![Op::WaitSignal("go".to_owned()), Op::Complete]),
        ("echo", vec![Op::Complete]),
    ]
}

async fn start(host: &Host, body: Value) -> crate::world::Reply {
    host.post(WORKFLOWS, body.to_string()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_decide_about_an_id_in_use() {
    let host = Host::new(scripts()).await;
    let body = |more: Value| {
        let mut body = json!({"workflow_type": "wait", "workflow_id": "a"});
        let fields = body.as_object_mut().expect("an object");
        fields.extend(more.as_object().expect("an object").clone());
        body
    };
    let first: Value = start(&host, body(json!({}))).await.expect(201);
    let used = body(json!({"id_conflict_policy": "use-existing"}));
    let used: Value = start(&host, used).await.expect(200);
    assert_eq!(used["run_id"], first["run_id"]);
    let replaced = body(json!({"id_conflict_policy": "terminate-existing"}));
    let replaced: Value = start(&host, replaced).await.expect(201);
    assert_ne!(replaced["run_id"], first["run_id"]);
    let old: Value = host
        .get(&format!(
            "{WORKFLOWS}/a/result?run_id={}",
            first["run_id"].as_str().expect("an id")
        ))
        .await
        .expect(200);
    assert_eq!(old["status"], "terminated");
    host.post(&format!("{WORKFLOWS}/a/signals/go"), "{}")
        .await
        .expect::<Value>(200);
    assert_eq!(host.outcome("a").await["status"], "completed");
    for policy in ["reject-duplicate", "allow-duplicate-failed-only"] {
        let refused = start(&host, body(json!({"id_reuse_policy": policy}))).await;
        let problem = refused.expect_problem(409, "id-used");
        assert_eq!(problem["execution_status"], "completed");
    }
    let unknown = start(&host, body(json!({"id_reuse_policy": "perhaps"}))).await;
    assert_eq!(unknown.status.as_u16(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_asked_for_is_described() {
    let host = Host::new(scripts()).await;
    let body = json!({
        "workflow_type": "wait", "workflow_id": "a", "start_delay_ms": 60_000,
        "execution_timeout_ms": 3_600_000, "run_timeout_ms": 7_200_000,
        "retry": {"maximum_attempts": 3}, "memo": {"owner": "ops"}, "headers": {"trace": 7},
        "summary": "one line", "details": "more",
    });
    start(&host, body).await.expect::<Value>(201);
    let described: Value = host.get(&format!("{WORKFLOWS}/a")).await.expect(200);
    let options = &described["options"];
    assert_eq!(options["memo"], json!({"owner": "ops"}));
    assert_eq!(options["headers"], json!({"trace": 7}));
    assert_eq!(
        (&options["summary"], &options["details"]),
        (&json!("one line"), &json!("more"))
    );
    assert_eq!(options["retry"]["initial_interval_ms"], 1000);
    // A run takes no longer than its chain.
    assert_eq!(options["run_timeout_ms"], 3_600_000);
    assert_eq!(
        described["execution"]["delayed_until"],
        "2023-11-14T22:14:20.000Z"
    );
    assert_eq!(described["link"]["expires_at"], "2023-11-14T23:14:20.000Z");
    assert_eq!(NOW, 1_700_000_000_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn options_that_make_no_sense_name_themselves() {
    let host = Host::new(scripts()).await;
    for (options, word) in [
        (json!({"cron": "every day"}), "cron schedule"),
        (
            json!({"cron": "@daily", "start_delay_ms": 1}),
            "start delay",
        ),
        (
            json!({"retry": {"backoff_permille": 10}}),
            "backoff coefficient",
        ),
        (
            json!({"id_conflict_policy": "terminate-existing", "id_reuse_policy": "reject-duplicate"}),
            "terminate-existing",
        ),
    ] {
        let mut body = json!({"workflow_type": "echo"});
        let fields = body.as_object_mut().expect("an object");
        fields.extend(options.as_object().expect("an object").clone());
        let problem = start(&host, body).await;
        let problem = problem.expect_problem(400, "invalid-argument");
        let detail = problem["detail"].as_str().expect("a text");
        assert!(detail.contains(word), "{detail}");
    }
    let large = json!({"workflow_type": "echo", "memo": {"x": "y".repeat(3 << 20)}});
    let problem = start(&host, large).await;
    assert_eq!(problem.status.as_u16(), 413, "{}", problem.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_may_start_its_workflow() {
    let host = Host::new(scripts()).await;
    let uri = "/api/v1/namespaces/default/signal-with-start";
    let body = |name: &str| {
        json!({"start": {"workflow_type": "wait", "workflow_id": "a"}, "name": name, "input": 7})
            .to_string()
    };
    let first: Value = host.post(uri, body("other")).await.expect(200);
    let second: Value = host.post(uri, body("go")).await.expect(200);
    assert_eq!(
        (&first["is_new"], &second["is_new"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(first["run_id"], second["run_id"]);
    assert_eq!(host.outcome("a").await["status"], "completed");
    let history: Value = host
        .get(&format!("{WORKFLOWS}/a/history"))
        .await
        .expect(200);
    let events = history["events"].as_array().expect("events");
    let signals = events
        .iter()
        .filter(|e| e["type"] == "WorkflowExecutionSignaled");
    assert_eq!(signals.count(), 2);
}
