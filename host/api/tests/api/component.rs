//! Components: upload and look at them.

use axum::body::{Body, Bytes};
use axum::http::Request;
use serde_json::Value;
use steadfast_api::wire::{Component, ComponentList};
use steadfast_model::limits::COMPONENT_BYTES_MAX;
use steadfast_ports::fake::{Op, ScriptedGuests};

use crate::world::{COMPONENT, Host};

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_is_new_once_and_is_described() {
    let host = Host::new(vec![("pay", vec![Op::Complete]), ("refund", vec![])]).await;
    let again: Component = host.upload(COMPONENT).await.expect(200);
    assert_eq!(again.is_new, Some(false));
    assert_eq!(again.size_bytes, COMPONENT.len() as u64);
    assert_eq!(again.digest, ScriptedGuests::digest(COMPONENT).to_string());
    assert_eq!(again.uploaded_at.to_string(), "2023-11-14T22:13:20.000Z");
    let names: Vec<_> = again
        .workflows
        .iter()
        .map(|workflow| workflow.name.as_str())
        .collect();
    assert_eq!(names, ["pay", "refund"]);
    let list: ComponentList = host.get("/api/v1/components").await.expect(200);
    assert_eq!(list.components.len(), 1);
    assert_eq!(list.components[0].is_new, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_digest_may_be_shortened_while_it_is_unique() {
    let host = Host::new(vec![("pay", vec![])]).await;
    let digest = ScriptedGuests::digest(COMPONENT).to_string();
    for prefix in [digest.as_str(), &digest[..12], &digest[..6].to_uppercase()] {
        let found: Component = host
            .get(&format!("/api/v1/components/{prefix}"))
            .await
            .expect(200);
        assert_eq!(found.digest, digest);
    }
    let missing = host
        .get("/api/v1/components/zz")
        .await
        .expect_problem(404, "not-found");
    assert_eq!(missing["what"], "component");
    // Seventeen components share at least one first digit.
    for i in 0..17 {
        host.upload(format!("component {i}").as_bytes())
            .await
            .expect::<Component>(201);
    }
    let list: ComponentList = host.get("/api/v1/components").await.expect(200);
    let digits = list
        .components
        .iter()
        .map(|component| component.digest[..1].to_owned());
    let digits = digits.collect::<Vec<_>>();
    let repeated = digits
        .iter()
        .find(|one| digits.iter().filter(|other| other == one).count() > 1);
    let uri = format!("/api/v1/components/{}", repeated.expect("a repeated digit"));
    let problem = host.get(&uri).await.expect_problem(400, "invalid-argument");
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("several components")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_component_says_why() {
    let host = Host::new(vec![]).await;
    host.upload(b"")
        .await
        .expect_problem(422, "not-a-component");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_is_too_large_is_not_read() {
    let host = Host::new(vec![]).await;
    // The announced length is enough: this body would never end.
    let endless =
        Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>());
    let request = Request::post("/api/v1/components")
        .header("content-type", "application/wasm")
        .header("content-length", COMPONENT_BYTES_MAX + 1)
        .body(endless)
        .unwrap();
    let problem = host.send(request).await.expect_problem(413, "too-large");
    assert_eq!(problem["limit"], COMPONENT_BYTES_MAX);
    // Without a length, reading ends at the limit.
    let chunk = || Ok::<_, std::io::Error>(Bytes::from(vec![0; 1 << 20]));
    let chunks = futures_util::stream::repeat_with(chunk);
    let request = Request::post("/api/v1/components")
        .header("content-type", "application/wasm")
        .body(Body::from_stream(chunks))
        .unwrap();
    host.send(request).await.expect_problem(413, "too-large");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_of_another_type_is_refused() {
    let host = Host::new(vec![]).await;
    let problem: Value = host
        .post("/api/v1/components", "{}")
        .await
        .expect_problem(415, "unsupported-media-type");
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("application/wasm")
    );
}
