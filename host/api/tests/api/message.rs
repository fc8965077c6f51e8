//! Signals, cancel requests, terminations and unblocking.

use serde_json::{Value, json};
use steadfast_api::wire::HistoryPage;
use steadfast_ports::fake::Op;

use crate::world::{Host, WORKFLOWS};

fn waiting() -> Vec<(&'static str, Vec<Op>)> {
    vec![(
        "wait",
        vec![Op::WaitSignal("go now/\u{e9}".to_owned()), Op::Complete],
    )]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_arrives_once_per_request_with_its_bytes() {
    let host = Host::new(waiting()).await;
    host.start("wait", "a").await;
    let other = format!("{WORKFLOWS}/a/signals/other");
    let body = r#"{"input": {"n":  9007199254740993}, "request_id": "s1", "identity": "me"}"#;
    for _ in 0..2 {
        assert_eq!(
            host.post(&other, body).await.expect::<Value>(200),
            json!({})
        );
    }
    let page: HistoryPage = host
        .get(&format!("{WORKFLOWS}/a/history"))
        .await
        .expect(200);
    assert_eq!(page.events.len(), 2);
    let signal = &page.events[1];
    assert_eq!(
        signal.input.as_ref().unwrap().get(),
        r#"{"n":  9007199254740993}"#
    );
    assert_eq!(signal.identity.as_deref(), Some("me"));
    // Neither a body nor a content type is needed, and names are decoded.
    let request = axum::http::Request::post(format!("{WORKFLOWS}/a/signals/go%20now%2F%C3%A9"));
    host.send(request.body(axum::body::Body::empty()).unwrap())
        .await
        .expect::<Value>(200);
    assert_eq!(host.outcome("a").await["result"], json!(["null", "null"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_request_is_recorded_once() {
    let host = Host::new(waiting()).await;
    host.start("wait", "a").await;
    for _ in 0..2 {
        let uri = format!("{WORKFLOWS}/a/cancel");
        host.post(&uri, r#"{"reason": "why", "identity": "me"}"#)
            .await
            .expect::<Value>(200);
    }
    let page: HistoryPage = host
        .get(&format!("{WORKFLOWS}/a/history"))
        .await
        .expect(200);
    assert_eq!(page.events.len(), 2);
    assert_eq!(page.events[1].reason.as_deref(), Some("why"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_ended_takes_no_messages() {
    let host = Host::new(waiting()).await;
    let started = host.start("wait", "a").await;
    let run = format!("run_id={}", started["run_id"].as_str().unwrap());
    let terminate = format!("{WORKFLOWS}/a/terminate?{run}");
    host.post(&terminate, "{}").await.expect::<Value>(200);
    for verb in ["signals/x", "cancel", "terminate", "unblock"] {
        let reply = host
            .post(&format!("{WORKFLOWS}/a/{verb}?{run}"), "{}")
            .await;
        let problem = reply.expect_problem(409, "execution-closed");
        assert_eq!(problem["execution_status"], "terminated");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_exist_is_not_found() {
    let host = Host::new(waiting()).await;
    let started = host.start("wait", "a").await;
    let run = started["run_id"].as_str().unwrap();
    for verb in ["signals/x", "cancel", "terminate", "unblock"] {
        let uri = format!("{WORKFLOWS}/b/{verb}");
        let problem = host.post(&uri, "").await.expect_problem(404, "not-found");
        assert_eq!(
            (&problem["what"], &problem["name"]),
            (&json!("execution"), &json!("b"))
        );
        // Another execution's run is not this one's.
        let uri = format!("{WORKFLOWS}/b/{verb}?run_id={run}");
        host.post(&uri, "").await.expect_problem(404, "not-found");
    }
    for uri in ["b", "b/result", "b/history", "b/result?wait_ms=30000"] {
        host.get(&format!("{WORKFLOWS}/{uri}"))
            .await
            .expect_problem(404, "not-found");
    }
    host.get("/api/v1/namespaces/other/workflows")
        .await
        .expect_problem(404, "not-found");
    host.get("/api/v1/namespaces/other/workflows/a")
        .await
        .expect_problem(404, "not-found");
    let poll = "/api/v1/namespaces/other/task-queues/q/poll";
    host.post(poll, r#"{"worker": "w"}"#)
        .await
        .expect_problem(404, "not-found");
    let problem = host.post(WORKFLOWS, r#"{"workflow_type": "nope"}"#).await;
    assert_eq!(
        problem.expect_problem(404, "not-found")["what"],
        "workflow type"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_execution_shows_why_and_is_tried_again() {
    let host = Host::new(vec![("trap", vec![Op::Trap("out of luck".to_owned())])]).await;
    host.start("trap", "a").await;
    let blocked = loop {
        let description: Value = host.get(&format!("{WORKFLOWS}/a")).await.expect(200);
        let blocked = description["execution"]["blocked"].clone();
        if !blocked.is_null() {
            break blocked;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(blocked["code"], "trap");
    assert!(blocked["message"].as_str().unwrap().contains("out of luck"));
    let list: Value = host
        .get(&format!("{WORKFLOWS}?blocked=true"))
        .await
        .expect(200);
    assert_eq!(list["executions"][0]["workflow_id"], "a");
    host.post(&format!("{WORKFLOWS}/a/unblock"), "")
        .await
        .expect::<Value>(200);
}
