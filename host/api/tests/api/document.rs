//! The OpenAPI document, the page that shows it, and the metrics.

use serde_json::Value;
use steadfast_ports::fake::Op;

use crate::world::{Host, WORKFLOWS};

#[test]
fn the_document_is_the_golden_one() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/golden/openapi.json"
    );
    let actual = steadfast_api::openapi();
    if std::env::var_os("STEADFAST_UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &actual).expect("written");
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        actual == expected,
        "the interface differs from {path}; if that is intended, run the test again with \
         STEADFAST_UPDATE_GOLDEN=1, look at the difference and commit it"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_documented_operation_exists() {
    let host = Host::new(vec![]).await;
    let document: Value = host.get("/openapi.json").await.expect(200);
    let mut count = 0;
    for (path, item) in document["paths"].as_object().expect("paths") {
        for method in item.as_object().expect("operations").keys() {
            let uri = path.replace(['{', '}'], "");
            let request = axum::http::Request::builder().method(method.to_uppercase().as_str());
            let request = request.uri(&uri).body(axum::body::Body::empty()).unwrap();
            let reply = host.send(request).await;
            let code = serde_json::from_slice(&reply.body).unwrap_or(Value::Null)["code"].clone();
            assert!(
                code != "unknown-route" && code != "method-not-allowed",
                "{method} {uri}"
            );
            count += 1;
        }
    }
    assert_eq!(count, 34);
}

#[test]
fn operations_have_names_of_their_own_and_references_resolve() {
    let text = steadfast_api::openapi();
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let items = document["paths"].as_object().expect("paths").values();
    let operations = items.flat_map(|item| item.as_object().expect("operations").values());
    let mut names: Vec<_> = operations
        .map(|one| one["operationId"].to_string())
        .collect();
    names.sort();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    for part in text.split("\"#/components/schemas/").skip(1) {
        let name = part.split('"').next().expect("a name");
        assert!(
            document["components"]["schemas"][name].is_object(),
            "{name}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_needs_nothing_from_elsewhere() {
    let host = Host::new(vec![]).await;
    let reply = host.get("/docs").await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.headers["content-type"], "text/html; charset=utf-8");
    assert!(!reply.text().contains("http://") && !reply.text().contains("https://"));
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_counted_by_route_and_status() {
    let host = Host::new(vec![("w", vec![Op::Complete])]).await;
    host.start("w", "a").await;
    host.get(&format!("{WORKFLOWS}/nope")).await;
    host.get("/somewhere/else").await;
    let reply = host.get("/metrics").await;
    let text = reply.text();
    let route = "/api/v1/namespaces/{namespace}/workflows";
    for line in [
        format!(
            "steadfast_http_requests_total{{method=\"POST\",route=\"{route}\",status=\"201\"}} 1"
        ),
        format!(
            "steadfast_http_requests_total{{method=\"GET\",route=\"{route}/{{workflow_id}}\",\
             status=\"404\"}} 1"
        ),
        "steadfast_http_requests_total{method=\"GET\",route=\"unknown\",status=\"404\"} 1"
            .to_owned(),
        format!("steadfast_http_request_seconds_count{{method=\"POST\",route=\"{route}\"}} 1"),
        "steadfast_http_requests_in_flight 1".to_owned(),
        "steadfast_store_disk_bytes 0".to_owned(),
    ] {
        assert!(text.contains(&line), "{line} is not in\n{text}");
    }
}
