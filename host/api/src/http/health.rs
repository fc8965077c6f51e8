//! Health and metrics.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use crate::error::{Answer, Failed};
use crate::extract::Json;
use crate::state::Api;
use crate::wire::{Empty, Problem};

/// Says that the process is alive.
#[utoipa::path(
    get,
    path = "/healthz",
    operation_id = "get_health",
    tag = "host",
    responses((status = 200, description = "It is alive.", body = Empty)),
)]
pub(crate) async fn healthz() -> Json<Empty> {
    Json(Empty {})
}

/// Says whether the host can answer requests.
#[utoipa::path(
    get,
    path = "/readyz",
    operation_id = "get_readiness",
    tag = "host",
    responses(
        (status = 200, description = "It can.", body = Empty),
        (status = 503, description = "It cannot; the detail says why.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn readyz(State(api): State<Api>) -> Answer<Json<Empty>> {
    let fatal = tokio::select! {
        biased;
        error = api.handle.fatal() => Some(error),
        () = std::future::ready(()) => None,
    };
    if let Some(error) = fatal {
        let hint = "restart the host: it recovers from what is on disk";
        return Err(Failed::new("unavailable", error.to_string()).hint(hint));
    }
    // A look at the store: a disk that is gone shows here.
    api.handle.disk_bytes().await?;
    Ok(Json(Empty {}))
}

/// Shows counters in the text format of Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "get_metrics",
    tag = "host",
    responses((status = 200, description = "Counters.", body = String, content_type = "text/plain")),
)]
pub(crate) async fn metrics(State(api): State<Api>) -> Response {
    // A store that cannot be read must not hide the other counters.
    let disk_bytes = api.handle.disk_bytes().await.unwrap_or(0);
    let media_type = [(
        header::CONTENT_TYPE,
        "text/plain; version=0.0.4; charset=utf-8",
    )];
    (media_type, api.metrics.text(disk_bytes)).into_response()
}
