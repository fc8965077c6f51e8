//! A host over fakes, and a client without a socket.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use steadfast_model::Timestamp;
use steadfast_ports::fake::{ManualClock, MemStore, Op, ScriptedGuests, SeededEntropy};
use steadfast_ports::{Clock, Entropy, Guests, Store};
use steadfast_runtime::{Handle, Options, World, start};
use tower_service::Service;

/// The bytes of the component that every test host has.
pub(crate) const COMPONENT: &[u8] = b"component";

/// The time that the host's clock shows: 2023-11-14T22:13:20.000Z.
pub(crate) const NOW: u64 = 1_700_000_000_000;

/// Where the workflows are.
pub(crate) const WORKFLOWS: &str = "/api/v1/namespaces/default/workflows";

/// A host and its parts.
pub(crate) struct Host {
    pub(crate) router: Router,
    pub(crate) store: Arc<MemStore>,
    pub(crate) clock: Arc<ManualClock>,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }

    pub(crate) fn read<T: DeserializeOwned>(&self) -> T {
        let read = serde_json::from_slice(&self.body);
        read.unwrap_or_else(|error| panic!("{error} in {} {}", self.status, self.text()))
    }

    /// Checks the status and reads the body.
    pub(crate) fn expect<T: DeserializeOwned>(&self, status: u16) -> T {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        self.read()
    }

    /// Checks that the answer is a complete problem document with this code.
    pub(crate) fn expect_problem(&self, status: u16, code: &str) -> Value {
        let problem: Value = self.expect(status);
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(problem["code"], code);
        assert_eq!(problem["type"], format!("/errors/{code}"));
        assert_eq!(problem["status"], status);
        for field in ["title", "detail", "hint"] {
            assert!(
                problem[field].as_str().is_some_and(|text| !text.is_empty()),
                "{problem}"
            );
        }
        problem
    }
}

impl Host {
    /// A host whose component has these workflows.
    pub(crate) async fn new(scripts: Vec<(&str, Vec<Op>)>) -> Self {
        let guests = Arc::new(ScriptedGuests::new());
        for (name, script) in scripts {
            guests.bind(COMPONENT, name, script);
        }
        let clock = Arc::new(ManualClock::new(Timestamp(NOW)));
        let store = Arc::new(MemStore::new());
        let handle = runtime(store.clone(), guests, clock.clone());
        let router = steadfast_api::router(handle, steadfast_api::ApiOptions::default());
        let host = Self {
            router,
            store,
            clock,
        };
        let upload = host.upload(COMPONENT).await;
        assert_eq!(upload.status, StatusCode::CREATED, "{}", upload.text());
        host
    }

    pub(crate) async fn upload(&self, bytes: &[u8]) -> Reply {
        let request =
            Request::post("/api/v1/components").header("content-type", "application/wasm");
        self.send(request.body(Body::from(bytes.to_vec())).expect("a request"))
            .await
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Reply {
        let response = self.router.clone().call(request).await.expect("infallible");
        let (parts, body) = response.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX)
            .await
            .expect("a body")
            .to_vec();
        Reply {
            status: parts.status,
            headers: parts.headers,
            body,
        }
    }

    pub(crate) async fn get(&self, uri: &str) -> Reply {
        self.send(Request::get(uri).body(Body::empty()).expect("a request"))
            .await
    }

    /// Posts JSON text as it is.
    pub(crate) async fn post(&self, uri: &str, json: impl Into<String>) -> Reply {
        let request = Request::builder()
            .method(Method::POST)
            .uri(uri)
            .header("content-type", "application/json; charset=utf-8")
            .body(Body::from(json.into()));
        self.send(request.expect("a request")).await
    }

    /// Starts a workflow of this type and id without input.
    pub(crate) async fn start(&self, workflow_type: &str, id: &str) -> Value {
        let body = serde_json::json!({ "workflow_type": workflow_type, "workflow_id": id });
        self.post(WORKFLOWS, body.to_string()).await.expect(201)
    }

    /// Waits for the end of an execution.
    pub(crate) async fn outcome(&self, id: &str) -> Value {
        self.get(&format!("{WORKFLOWS}/{id}/result?wait_ms=30000"))
            .await
            .expect(200)
    }

    /// Takes one task of the default queue.
    pub(crate) async fn poll(&self) -> Value {
        let body = r#"{"worker": "w1", "wait_ms": 30000}"#;
        let reply = self
            .post("/api/v1/namespaces/default/task-queues/default/poll", body)
            .await;
        let polled: Value = reply.expect(200);
        polled["tasks"][0].clone()
    }
}

fn runtime(store: Arc<MemStore>, guests: Arc<ScriptedGuests>, clock: Arc<ManualClock>) -> Handle {
    let entropy: Arc<dyn Entropy> = Arc::new(SeededEntropy::new(7));
    let (store, guests): (Arc<dyn Store>, Arc<dyn Guests>) = (store, guests);
    let clock: Arc<dyn Clock> = clock;
    start(
        Options::default(),
        World {
            store,
            guests,
            clock,
            entropy,
        },
    )
    .expect("a host")
}
