//! Executions: start, list, describe, result, history.

use serde_json::{Value, json};
use steadfast_api::wire::{Description, ExecutionList, HistoryPage, StartedWorkflow, Status};
use steadfast_ports::fake::Op;

use crate::world::{Host, WORKFLOWS};

#[tokio::test(flavor = "multi_thread")]
async fn a_short_workflow_runs_in_one_round_trip() {
    let host = Host::new(vec![("echo", vec![Op::Complete])]).await;
    let uri = format!("{WORKFLOWS}?wait_ms=30000");
    let reply = host
        .post(&uri, r#"{"workflow_type": "echo", "input": {"n": 1}}"#)
        .await;
    let started: StartedWorkflow = reply.expect(201);
    assert!(started.is_new);
    let outcome = started.result.expect("an outcome");
    assert_eq!(outcome.status, Status::Completed);
    assert_eq!(outcome.result.expect("a result").get(), r#"["{\"n\": 1}"]"#);
    assert_eq!(
        outcome.closed_at.expect("a time").to_string(),
        "2023-11-14T22:13:20.000Z"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_starts_once_and_another_conflicts_while_it_is_open() {
    let host = Host::new(vec![("wait", vec![Op::WaitSignal("go".to_owned())])]).await;
    let body = r#"{"workflow_type": "wait", "workflow_id": "a", "request_id": "r1"}"#;
    let first: StartedWorkflow = host.post(WORKFLOWS, body).await.expect(201);
    let second: StartedWorkflow = host.post(WORKFLOWS, body).await.expect(200);
    assert_eq!((second.is_new, &second.run_id), (false, &first.run_id));
    let other = r#"{"workflow_type": "wait", "workflow_id": "a"}"#;
    let problem = host
        .post(WORKFLOWS, other)
        .await
        .expect_problem(409, "already-started");
    assert_eq!(problem["run_id"], first.run_id);
}

#[tokio::test(flavor = "multi_thread")]
async fn payloads_keep_their_bytes() {
    let host = Host::new(vec![("echo", vec![Op::Complete])]).await;
    let texts = [
        "null",
        "9007199254740993",
        "18446744073709551617.00",
        r#"{"b": 1,  "a":[ 1e400, -0.0 ], "b": 2}"#,
        "{\n\t\"text\": \"\\u00e9\u{e9}\\/\"\n}",
        r#""plain""#,
        r#"{"$payload": {"encoding": "binary/plain", "data": "AP8="}}"#,
        r#"{"$payload": {"encoding": "json/plain", "data": "ezE="}}"#,
        r#"{"\u0024payload": 1}"#,
    ];
    for (i, text) in texts.into_iter().enumerate() {
        let body = format!(r#"{{"workflow_type":"echo","workflow_id":"p{i}","input":{text}}}"#);
        host.post(WORKFLOWS, body).await.expect::<Value>(201);
        let page: HistoryPage = host
            .get(&format!("{WORKFLOWS}/p{i}/history?limit=1"))
            .await
            .expect(200);
        let got = page.events[0].input.clone().expect("an input");
        if text.contains("\"$payload\"") {
            let (a, b): (Value, Value) = (
                serde_json::from_str(got.get()).unwrap(),
                serde_json::from_str(text).unwrap(),
            );
            assert_eq!(a, b);
        } else {
            assert_eq!(got.get(), text);
        }
    }
    // No input is null.
    host.start("echo", "none").await;
    let page: HistoryPage = host
        .get(&format!("{WORKFLOWS}/none/history"))
        .await
        .expect(200);
    assert_eq!(
        page.events[0].input.as_ref().expect("an input").get(),
        "null"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_may_be_anything() {
    let host = Host::new(vec![("echo", vec![Op::Complete])]).await;
    let cases = [
        ("order/42?x=1#y", "order%2F42%3Fx%3D1%23y"),
        ("\u{fc}ber \u{1f980}", "%C3%BCber%20%F0%9F%A6%80"),
        ("100%", "100%25"),
        ("..", "%2E%2E"),
    ];
    for (id, encoded) in cases {
        host.start("echo", id).await;
        let description: Description = host
            .get(&format!("{WORKFLOWS}/{encoded}"))
            .await
            .expect(200);
        assert_eq!(description.execution.workflow_id, id);
    }
    host.get(&format!("{WORKFLOWS}/%ff"))
        .await
        .expect_problem(400, "invalid-argument");
    let long = "x".repeat(1001);
    host.get(&format!("{WORKFLOWS}/{long}"))
        .await
        .expect_problem(400, "invalid-argument");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_paged_and_filtered() {
    let scripts = vec![
        ("wait", vec![Op::WaitSignal("go".to_owned())]),
        ("echo", vec![Op::Complete]),
    ];
    let host = Host::new(scripts).await;
    for i in 0..5 {
        host.start("wait", &format!("w{i}")).await;
    }
    host.start("echo", "e").await;
    host.outcome("e").await;
    let mut seen = Vec::new();
    let mut uri = format!("{WORKFLOWS}?limit=4");
    loop {
        let page: ExecutionList = host.get(&uri).await.expect(200);
        seen.extend(
            page.executions
                .into_iter()
                .map(|execution| execution.workflow_id),
        );
        let Some(token) = page.next_page_token else {
            break;
        };
        uri = format!("{WORKFLOWS}?limit=4&page_token={token}");
    }
    assert_eq!(seen, ["e", "w4", "w3", "w2", "w1", "w0"]);
    let count = async |query: &str| {
        let page: ExecutionList = host.get(&format!("{WORKFLOWS}?{query}")).await.expect(200);
        page.executions.len()
    };
    assert_eq!(count("status=running").await, 5);
    assert_eq!(count("status=completed").await, 1);
    assert_eq!(count("workflow_type=wait&limit=2").await, 2);
    assert_eq!(count("workflow_id=w3").await, 1);
    assert_eq!(count("blocked=true").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_description_shows_what_is_pending() {
    let race = Op::RaceTimerActivity {
        timer_ms: 60_000,
        activity_type: "charge".to_owned(),
        input: "9007199254740993".to_owned(),
    };
    let host = Host::new(vec![("race", vec![race])]).await;
    let started = host.start("race", "a").await;
    let task = host.poll().await;
    let beat = json!({ "token": task["token"], "details": { "done": 3 } });
    host.post("/api/v1/tasks/heartbeat", beat.to_string())
        .await
        .expect::<Value>(200);
    host.post(&format!("{WORKFLOWS}/a/cancel"), "")
        .await
        .expect::<Value>(200);
    let uri = format!(
        "{WORKFLOWS}/a?run_id={}",
        started["run_id"].as_str().unwrap()
    );
    let description: Value = host.get(&uri).await.expect(200);
    let activity = &description["activities"][0];
    assert_eq!(activity["activity_type"], "charge");
    assert_eq!(activity["state"], "started");
    assert_eq!(activity["worker"], "w1");
    assert_eq!(activity["attempt"], 1);
    assert_eq!(activity["heartbeat_details"], json!({ "done": 3 }));
    assert_eq!(
        description["timers"][0]["fire_at"],
        "2023-11-14T22:14:20.000Z"
    );
    assert_eq!(description["cancel_requested"], true);
    assert_eq!(description["execution"]["status"], "running");
    assert!(description["history_length"].as_u64().unwrap() >= 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_tells_every_end_apart() {
    let host = Host::new(vec![
        ("ok", vec![Op::Complete]),
        ("bad", vec![Op::Fail("no-money".to_owned())]),
        ("polite", vec![Op::WaitCancel, Op::AcceptCancel]),
    ])
    .await;
    for (workflow_type, id) in [
        ("ok", "ok"),
        ("bad", "bad"),
        ("polite", "c"),
        ("polite", "t"),
    ] {
        host.start(workflow_type, id).await;
    }
    let open: Value = host.get(&format!("{WORKFLOWS}/c/result")).await.expect(200);
    assert_eq!(open, json!({ "status": "running" }));
    host.post(&format!("{WORKFLOWS}/c/cancel"), r#"{"reason": "late"}"#)
        .await
        .expect::<Value>(200);
    let why = r#"{"reason": "stop", "identity": "me"}"#;
    host.post(&format!("{WORKFLOWS}/t/terminate"), why)
        .await
        .expect::<Value>(200);
    assert_eq!(host.outcome("ok").await["result"], json!(["null"]));
    let failed = host.outcome("bad").await;
    assert_eq!(failed["status"], "failed");
    assert_eq!(failed["failure"]["frames"][0]["code"], "no-money");
    let canceled = host.outcome("c").await;
    assert_eq!(canceled["status"], "canceled");
    assert_eq!(canceled["failure"]["frames"][0]["kind"], "canceled");
    let terminated = host.outcome("t").await;
    assert_eq!(terminated["status"], "terminated");
    assert_eq!(
        (&terminated["reason"], &terminated["identity"]),
        (&json!("stop"), &json!("me"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_is_read_in_pages_and_followed() {
    let script = vec![Op::WaitSignal("go".to_owned()), Op::Complete];
    let host = Host::new(vec![("wait", script)]).await;
    host.start("wait", "a").await;
    let history = format!("{WORKFLOWS}/a/history");
    let first: HistoryPage = host.get(&history).await.expect(200);
    assert_eq!(
        (first.events.len(), first.next, first.is_closed),
        (1, Some(2), false)
    );
    let uri = format!("{history}?from=2&wait_ms=30000");
    let follow = host.get(&uri);
    let signal = format!("{WORKFLOWS}/a/signals/go");
    let send = host.post(&signal, r#"{"input": 1}"#);
    let (followed, sent) = tokio::join!(follow, send);
    sent.expect::<Value>(200);
    let followed: HistoryPage = followed.expect(200);
    assert_eq!(followed.events[0].number, 2);
    host.outcome("a").await;
    let mut numbers = Vec::new();
    let mut next = Some(1);
    while let Some(from) = next {
        let page: HistoryPage = host
            .get(&format!("{history}?from={from}&limit=1"))
            .await
            .expect(200);
        numbers.extend(page.events.iter().map(|event| event.number));
        next = page.next;
        assert!(page.is_closed);
    }
    assert_eq!(numbers, [1, 2, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_poll_without_news_answers_empty() {
    let host = Host::new(vec![("wait", vec![Op::WaitSignal("go".to_owned())])]).await;
    host.start("wait", "a").await;
    let page: HistoryPage = host
        .get(&format!("{WORKFLOWS}/a/history?from=2&wait_ms=10"))
        .await
        .expect(200);
    assert_eq!(
        (page.events.len(), page.next, page.is_closed),
        (0, Some(2), false)
    );
    let outcome: Value = host
        .get(&format!("{WORKFLOWS}/a/result?wait_ms=10"))
        .await
        .expect(200);
    assert_eq!(outcome["status"], "running");
}
