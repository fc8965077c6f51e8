//! What a client sees that does something wrong.

use axum::body::Body;
use axum::http::Request;
use serde_json::Value;
use steadfast_api::error::CODES;
use steadfast_ports::fake::{FaultPlan, Op};

use crate::world::{Host, WORKFLOWS};

#[tokio::test(flavor = "multi_thread")]
async fn malformed_json_names_line_and_column() {
    let host = Host::new(vec![]).await;
    let cases = [
        ("{\n  \"workflow_type\": }", 2, 20),
        ("{\"workflow_type\": \"x\", \"inptu\": 1}", 1, 30),
        ("{}", 1, 2),
        ("{\"workflow_type\": 7}", 1, 19),
        ("[", 1, 1),
    ];
    for (body, line, column) in cases {
        let problem = host
            .post(WORKFLOWS, body)
            .await
            .expect_problem(400, "malformed-json");
        assert_eq!(
            (&problem["line"], &problem["column"]),
            (&line.into(), &column.into()),
            "{body}"
        );
    }
    let request = Request::post(WORKFLOWS)
        .header("content-type", "application/json")
        .body(Body::from(vec![b'"', 0xff, b'"']));
    host.send(request.unwrap())
        .await
        .expect_problem(400, "malformed-json");
    // Depth is no way to break the host.
    let deep = format!(
        "{{\"workflow_type\":\"x\",\"input\":{}}}",
        "[".repeat(100_000)
    );
    host.post(WORKFLOWS, deep)
        .await
        .expect_problem(400, "malformed-json");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_content_type_is_refused() {
    let host = Host::new(vec![]).await;
    for content_type in ["text/plain", "application/x-www-form-urlencoded", ""] {
        let request = Request::post(WORKFLOWS).header("content-type", content_type);
        let request = request.body(Body::from("{}")).unwrap();
        host.send(request)
            .await
            .expect_problem(415, "unsupported-media-type");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_routes_methods_and_parameters_are_problems() {
    let host = Host::new(vec![]).await;
    for uri in ["/", "/api/v2/x", "/api/v1/tasks"] {
        host.get(uri).await.expect_problem(404, "unknown-route");
    }
    let uri = format!("{WORKFLOWS}//cancel");
    host.post(&uri, "")
        .await
        .expect_problem(400, "invalid-argument");
    let reply = host.get("/api/v1/tasks/complete").await;
    reply.expect_problem(405, "method-not-allowed");
    assert_eq!(reply.headers["allow"], "POST");
    let reply = host
        .send(Request::delete(WORKFLOWS).body(Body::empty()).unwrap())
        .await;
    reply.expect_problem(405, "method-not-allowed");
    for query in [
        "staus=running",
        "status=closed",
        "limit=many",
        "page_token=x",
        "blocked=maybe",
    ] {
        let uri = format!("{WORKFLOWS}?{query}");
        host.get(&uri).await.expect_problem(400, "invalid-argument");
    }
    let uri = format!("{WORKFLOWS}/a?run_id=x");
    host.get(&uri).await.expect_problem(400, "invalid-argument");
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_are_bounded() {
    let host = Host::new(vec![("w", vec![Op::Complete])]).await;
    let large = format!(
        "{{\"workflow_type\":\"w\",\"input\":\"{}\"}}",
        "x".repeat(3 << 20)
    );
    let problem = host
        .post(WORKFLOWS, large)
        .await
        .expect_problem(413, "too-large");
    assert!(problem["detail"].as_str().unwrap().starts_with("input is"));
    let larger = format!(
        "{{\"workflow_type\":\"w\",\"input\":\"{}\"}}",
        "x".repeat(9 << 20)
    );
    let problem = host
        .post(WORKFLOWS, larger)
        .await
        .expect_problem(413, "too-large");
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .starts_with("the body is")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_fails_is_unavailable_and_not_ready() {
    let host = Host::new(vec![("w", vec![Op::Complete])]).await;
    host.get("/readyz").await.expect::<Value>(200);
    let plan = FaultPlan {
        unavailable_permille: 1000,
        read_permille: 1000,
        ..FaultPlan::default()
    };
    host.store.set_faults(plan);
    let reply = host.post(WORKFLOWS, r#"{"workflow_type": "w"}"#).await;
    reply.expect_problem(503, "unavailable");
    assert_eq!(reply.headers["retry-after"], "1");
    host.get("/readyz").await.expect_problem(503, "unavailable");
    // The process is alive all the same, and its counters can be read.
    host.get("/healthz").await.expect::<Value>(200);
    assert_eq!(host.get("/metrics").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_web_pages_cannot_change_anything() {
    let host = Host::new(vec![]).await;
    let post = |origin: &str| {
        let request = Request::post(format!("{WORKFLOWS}/a/terminate"))
            .header("host", "127.0.0.1:7233")
            .header("origin", origin)
            .body(Body::empty());
        host.send(request.unwrap())
    };
    post("https://evil.example")
        .await
        .expect_problem(403, "cross-origin");
    post("null").await.expect_problem(403, "cross-origin");
    post("http://127.0.0.1:7233")
        .await
        .expect_problem(404, "not-found");
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors");
    for code in CODES {
        let path = format!("{folder}/{}.md", code.code);
        let text = std::fs::read_to_string(&path);
        let text = text.unwrap_or_else(|error| panic!("{path}: {error}: write it"));
        assert!(
            text.starts_with(&format!("# {}\n", code.code)),
            "{path}: wrong heading"
        );
        assert!(
            text.contains(&format!("HTTP {}", code.status)),
            "{path}: the status is missing"
        );
        for heading in ["## Cause", "## Remedy"] {
            assert!(text.contains(heading), "{path}: no {heading}");
        }
    }
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let name = entry
            .expect("an entry")
            .file_name()
            .into_string()
            .expect("a name");
        let code = name.trim_end_matches(".md");
        assert!(
            CODES.iter().any(|known| known.code == code) || code == "README",
            "{name}: no such code"
        );
    }
}
