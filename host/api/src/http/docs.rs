//! The OpenAPI document and a page that shows it.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use crate::state::Api;

/// The page reads the document next to it; nothing comes from elsewhere.
const PAGE: &str = include_str!("docs.html");

/// Allows the page's own script and styles, and nothing from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'";

/// Shows this document.
#[utoipa::path(
    get,
    path = "/openapi.json",
    operation_id = "get_openapi",
    tag = "host",
    responses((status = 200, description = "An OpenAPI document.", body = Object,
        content_type = "application/json")),
)]
pub(crate) async fn openapi(State(api): State<Api>) -> Response {
    (
        [(header::CONTENT_TYPE, "application/json")],
        api.openapi.clone(),
    )
        .into_response()
}

/// Shows this document for people.
#[utoipa::path(
    get,
    path = "/docs",
    operation_id = "get_docs",
    tag = "host",
    responses((status = 200, description = "A page.", body = String, content_type = "text/html")),
)]
pub(crate) async fn docs() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ];
    (headers, PAGE).into_response()
}
