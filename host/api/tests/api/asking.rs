//! Queries and updates over HTTP.

use serde_json::{Value, json};
use steadfast_ports::fake::Op;

use crate::world::{Host, WORKFLOWS};

fn waiting() -> Vec<(&'static str, Vec<Op>)> {
    let script = vec![Op::WaitSignal("go".to_owned()), Op::Fail("no".to_owned())];
    vec![("wait", script)]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_answers_and_a_wrong_one_is_a_problem() {
    let host = Host::new(waiting()).await;
    host.start("wait", "a").await;
    let query = |name: &str| format!("{WORKFLOWS}/a/queries/{name}");
    let answer: Value = host.post(&query("observed"), "{}").await.expect(200);
    assert_eq!(
        (&answer["result"], &answer["event"]),
        (&json!(["null"]), &json!(1))
    );
    assert_eq!(answer["status"], "running");
    let problem = host.post(&query("nobody"), "{}").await;
    let problem = problem.expect_problem(422, "query-failed");
    assert_eq!(problem["failure"]["frames"][0]["code"], "unknown-query");
    let metadata: Value = host.post(&query("__metadata"), "{}").await.expect(200);
    assert_eq!(metadata["result"]["updates"][0]["name"], "echo");
    host.post(&format!("{WORKFLOWS}/a/signals/go"), "{}")
        .await
        .expect::<Value>(200);
    assert_eq!(host.outcome("a").await["status"], "failed");
    let closed: Value = host.post(&query("observed"), "{}").await.expect(200);
    assert_eq!(closed["status"], "failed");
    for reject in ["not-open", "not-completed-cleanly"] {
        let body = format!("{{\"reject\": \"{reject}\"}}");
        let problem = host.post(&query("observed"), body).await;
        let problem = problem.expect_problem(409, "query-rejected");
        assert_eq!(problem["execution_status"], "failed");
    }
    let problem = host
        .post(&format!("{WORKFLOWS}/b/queries/observed"), "{}")
        .await;
    problem.expect_problem(404, "not-found");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_is_told_by_stages_and_stays_readable() {
    let host = Host::new(waiting()).await;
    host.start("wait", "a").await;
    let update = |name: &str| format!("{WORKFLOWS}/a/updates/{name}");
    let body = r#"{"input": {"n":  9007199254740993}, "update_id": "u/1", "wait_ms": 30000}"#;
    for _ in 0..2 {
        let status: Value = host.post(&update("echo"), body).await.expect(200);
        assert_eq!(status["stage"], "completed");
        assert_eq!(status["result"]["n"], json!(9_007_199_254_740_993_u64));
    }
    let body = r#"{"input": "bad", "update_id": "u2", "wait_ms": 30000}"#;
    let status: Value = host.post(&update("echo"), body).await.expect(200);
    assert_eq!(status["stage"], "refused");
    assert_eq!(status["failure"]["frames"][0]["code"], "bad");
    let body = r#"{"update_id": "u3", "wait_for": "accepted", "wait_ms": 30000}"#;
    let status: Value = host.post(&update("never"), body).await.expect(200);
    assert_eq!(status["stage"], "accepted");
    let described: Value = host.get(&format!("{WORKFLOWS}/a")).await.expect(200);
    let pending = &described["updates"][0];
    assert_eq!(
        (&pending["update_id"], &pending["is_accepted"]),
        (&json!("u3"), &json!(true))
    );
    host.post(&format!("{WORKFLOWS}/a/signals/go"), "{}")
        .await
        .expect::<Value>(200);
    let result = |id: &str| format!("{WORKFLOWS}/a/updates/{id}/result?wait_ms=30000");
    let status: Value = host.get(&result("u3")).await.expect(200);
    assert_eq!(status["failure"]["frames"][0]["code"], "update-abandoned");
    let status: Value = host.get(&result("u%2F1")).await.expect(200);
    assert_eq!(status["stage"], "completed");
    host.get(&result("u2"))
        .await
        .expect_problem(404, "not-found");
    let late = host.post(&update("echo"), r#"{"wait_ms": 1000}"#).await;
    late.expect_problem(409, "execution-closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_may_start_its_workflow() {
    let host = Host::new(waiting()).await;
    let body = |join: bool, id: &str| {
        json!({
            "start": {"workflow_type": "wait", "workflow_id": "a"},
            "name": "echo",
            "update": {"input": 7, "update_id": id, "wait_ms": 30000},
            "join": join,
        })
        .to_string()
    };
    let uri = "/api/v1/namespaces/default/update-with-start";
    let both: Value = host.post(uri, body(true, "u")).await.expect(200);
    assert_eq!(
        (&both["start"]["is_new"], &both["update"]["result"]),
        (&json!(true), &json!(7))
    );
    let again: Value = host.post(uri, body(true, "v")).await.expect(200);
    assert_eq!(again["start"]["is_new"], false);
    assert_eq!(again["start"]["run_id"], both["start"]["run_id"]);
    let conflict = host.post(uri, body(false, "w")).await;
    conflict.expect_problem(409, "already-started");
}
