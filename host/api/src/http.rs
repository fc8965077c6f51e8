//! The routes: one file per resource.

mod activity;
mod asking;
mod component;
mod docs;
mod execution;
mod health;
mod history;
mod message;
pub(crate) mod openapi;
mod task;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{Method, Uri};
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use steadfast_model::{Namespace, RunId, WorkflowId};
use steadfast_runtime::Handle;
use steadfast_runtime::handle::Target;

use crate::error::{Answer, Failed};
use crate::state::{Api, ApiOptions, Shared};
use crate::{metrics, origin};

/// What every handler has.
fn state(handle: Handle, options: ApiOptions) -> Result<Api, String> {
    let metrics = metrics::Metrics::new().map_err(|error| error.to_string())?;
    Ok(Arc::new(Shared {
        handle,
        metrics,
        options,
        openapi: openapi::document(),
    }))
}

/// Answers every request out of the handle.
///
/// # Panics
/// When two metrics have the same name, which no test would let through.
pub fn router(handle: Handle, options: ApiOptions) -> Router {
    #[allow(
        clippy::expect_used,
        reason = "the names are constants, and every test comes here"
    )]
    let api = state(handle, options).expect("metric names are unique");
    Router::new()
        .nest("/api/v1", resources())
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(health::metrics))
        .route("/openapi.json", get(docs::openapi))
        .route("/docs", get(docs::docs))
        .method_not_allowed_fallback(method_not_allowed)
        .fallback(unknown_route)
        // Bodies are bounded where they are read.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(api.clone(), origin::check))
        .layer(from_fn_with_state(api.clone(), metrics::measure))
        .with_state(api)
}

fn resources() -> Router<Api> {
    let workflow = Router::new()
        .route("/", get(execution::describe))
        .route("/signals/{name}", post(message::signal))
        .route("/queries/{name}", post(asking::query))
        .route("/updates/{name}", post(asking::update))
        .route("/updates/{name}/result", get(asking::update_result))
        .route("/cancel", post(message::cancel))
        .route("/terminate", post(message::terminate))
        .route("/unblock", post(message::unblock))
        .route(
            "/activities/{activity_id}/complete",
            post(activity::complete),
        )
        .route("/activities/{activity_id}/fail", post(activity::fail))
        .route("/activities/{activity_id}/cancel", post(activity::cancel))
        .route(
            "/activities/{activity_id}/heartbeat",
            post(activity::heartbeat),
        )
        .route("/activity-operations", post(activity::operate))
        .route("/result", get(history::result))
        .route("/history", get(history::history));
    Router::new()
        .route("/components", post(component::upload).get(component::list))
        .route("/components/{digest}", get(component::describe))
        .route(
            "/namespaces/{namespace}/workflows",
            post(execution::start).get(execution::list),
        )
        .route(
            "/namespaces/{namespace}/update-with-start",
            post(asking::update_with_start),
        )
        .route(
            "/namespaces/{namespace}/signal-with-start",
            post(message::signal_with_start),
        )
        .nest("/namespaces/{namespace}/workflows/{workflow_id}", workflow)
        .route(
            "/namespaces/{namespace}/task-queues/{queue}/poll",
            post(task::poll),
        )
        .route("/tasks/heartbeat", post(task::heartbeat))
        .route("/tasks/complete", post(task::complete))
        .route("/tasks/fail", post(task::fail))
        .route("/tasks/batch", post(task::batch))
        .route("/tasks/defer", post(task::defer))
        .route(
            "/namespaces/{namespace}/dead-letters",
            get(activity::dead_letters),
        )
}

async fn unknown_route(method: Method, uri: Uri) -> Failed {
    Failed::new(
        "unknown-route",
        format!("there is no {method} {}", uri.path()),
    )
}

async fn method_not_allowed(method: Method, uri: Uri) -> Failed {
    Failed::new(
        "method-not-allowed",
        format!("{} does not take {method}", uri.path()),
    )
}

/// The execution that a path and a `run_id` name.
fn target(namespace: String, workflow_id: String, run_id: Option<String>) -> Answer<Target> {
    Ok(Target {
        namespace: Namespace::new(namespace)?,
        workflow_id: WorkflowId::new(workflow_id)?,
        run_id: run_id.map(|run_id| run_id.parse::<RunId>()).transpose()?,
    })
}
