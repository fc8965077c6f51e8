//! Pending activities by their ids: reports from elsewhere, and what operators do.

use serde_json::{Value, json};
use steadfast_ports::fake::Op;

use crate::world::{Host, WORKFLOWS};

const DEAD_LETTERS: &str = "/api/v1/namespaces/default/dead-letters";

async fn charging() -> Host {
    let script = vec![Op::activity("charge", "card"), Op::Complete];
    let host = Host::new(vec![("pay", script)]).await;
    host.start("pay", "a").await;
    // The code runs after the start is answered.
    while host.pending().await.is_null() {
        tokio::task::yield_now().await;
    }
    host
}

impl Host {
    async fn operate(&self, body: Value) -> Value {
        let uri = format!("{WORKFLOWS}/a/activity-operations");
        self.post(&uri, body.to_string()).await.expect(200)
    }

    async fn pending(&self) -> Value {
        let described: Value = self.get(&format!("{WORKFLOWS}/a")).await.expect(200);
        described["activities"][0].clone()
    }

    async fn report(&self, what: &str, body: Value) -> crate::world::Reply {
        let uri = format!("{WORKFLOWS}/a/activities/1/{what}");
        self.post(&uri, body.to_string()).await
    }

    /// The tasks that wait now.
    async fn waiting(&self) -> usize {
        let uri = "/api/v1/namespaces/default/task-queues/default/poll";
        let body = r#"{"worker": "w1", "wait_ms": 0}"#;
        let polled: Value = self.post(uri, body).await.expect(200);
        polled["tasks"].as_array().map_or(0, Vec::len)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_activity_is_listed_and_goes_on_when_asked() {
    let host = charging().await;
    let pause = json!({ "activity_type": "charge", "identity": "ada",
        "operation": { "pause": { "reason": "the bank is down" } } });
    assert_eq!(host.operate(pause).await, json!({ "count": 1 }));
    assert_eq!(host.waiting().await, 0);
    let paused = host.pending().await["paused"].clone();
    assert_eq!(paused["reason"], "the bank is down");
    assert_eq!(paused["identity"], "ada");
    let listed: Value = host.get(DEAD_LETTERS).await.expect(200);
    let listed = listed["activities"].as_array().expect("a list");
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["execution"]["workflow_id"], "a");

    let unpause = json!({ "all": true, "operation": { "unpause": {} } });
    assert_eq!(host.operate(unpause).await, json!({ "count": 1 }));
    let token = host.poll().await["token"].clone();
    let body = json!({ "token": token, "result": "paid" }).to_string();
    let _done: Value = host.post("/api/v1/tasks/complete", body).await.expect(200);
    assert_eq!(host.outcome("a").await["status"], "completed");
    let listed: Value = host.get(DEAD_LETTERS).await.expect(200);
    assert_eq!(listed["activities"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deferred_attempt_is_finished_by_its_id() {
    let host = charging().await;
    let token = host.poll().await["token"].clone();
    let body = json!({ "token": token }).to_string();
    let _deferred: Value = host.post("/api/v1/tasks/defer", body).await.expect(200);
    let beat: Value = host
        .report("heartbeat", json!({ "details": 7 }))
        .await
        .expect(200);
    assert_eq!(beat["cancel_requested"], false);
    let _done: Value = host
        .report("complete", json!({ "result": 3 }))
        .await
        .expect(200);
    assert_eq!(host.outcome("a").await["status"], "completed");
    host.report("complete", json!({ "result": 4 }))
        .await
        .expect_problem(409, "execution-closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_by_id_counts_as_an_attempt_and_a_reset_begins_again() {
    let host = charging().await;
    host.poll().await;
    let failure = json!({ "failure": { "frames": [
        { "kind": "application", "code": "no-money", "message": "the account is empty" } ] } });
    let _failed: Value = host.report("fail", failure).await.expect(200);
    assert_eq!(
        host.pending().await["attempt"],
        2,
        "{}",
        host.pending().await
    );
    assert_eq!(host.waiting().await, 0, "it waits for its retry interval");
    let reset = json!({ "activity_id": "1", "operation": { "reset": {} } });
    assert_eq!(host.operate(reset).await, json!({ "count": 1 }));
    assert_eq!(host.pending().await["attempt"], 1);
    assert_eq!(host.poll().await["attempt"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_activity_fails_its_workflow() {
    let host = charging().await;
    let drop = json!({ "all": true, "operation": { "drop": { "reason": "given up" } } });
    assert_eq!(host.operate(drop).await, json!({ "count": 1 }));
    let outcome = host.outcome("a").await;
    assert!(outcome.to_string().contains("given up"), "{outcome}");
}

#[tokio::test(flavor = "multi_thread")]
async fn options_are_changed_and_checked() {
    let host = charging().await;
    let change =
        |options: Value| json!({ "all": true, "operation": { "update_options": options } });
    let mut expected = host.pending().await["options"].clone();
    host.operate(change(json!({ "maximum_attempts": 5 }))).await;
    expected["retry"]["maximum_attempts"] = 5.into();
    assert_eq!(host.pending().await["options"], expected);
    let uri = format!("{WORKFLOWS}/a/activity-operations");
    let bad = change(json!({ "backoff_permille": 1 })).to_string();
    let problem = host
        .post(&uri, bad)
        .await
        .expect_problem(400, "invalid-argument");
    assert!(
        problem["detail"].to_string().contains("backoff"),
        "{problem}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_said() {
    let host = charging().await;
    let uri = format!("{WORKFLOWS}/a/activity-operations");
    for body in [
        json!({ "operation": { "pause": {} } }),
        json!({ "all": true, "activity_id": "1", "operation": { "pause": {} } }),
    ] {
        let reply = host.post(&uri, body.to_string()).await;
        reply.expect_problem(400, "invalid-argument");
    }
    host.post(&format!("{WORKFLOWS}/a/activities/nothing/complete"), "{}")
        .await
        .expect_problem(404, "not-found");
    // Nobody asked for a cancellation.
    host.poll().await;
    let reply = host.report("cancel", json!({})).await;
    reply.expect_problem(400, "invalid-argument");
    host.get(&format!("{DEAD_LETTERS}?page_token=x"))
        .await
        .expect_problem(400, "invalid-argument");
}
