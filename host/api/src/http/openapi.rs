//! The OpenAPI document, made from the code.

use utoipa::OpenApi;

use crate::http::{activity, asking, component, docs, execution, health, history, message, task};

/// Every path; schemas follow from their bodies.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Steadfast",
        description = "A durable workflow host. Errors are problem documents (RFC 9457) whose \
            `code` is stable. User data is any JSON value, kept byte for byte; data that is not \
            JSON is written {\"$payload\": {\"encoding\": \"binary/plain\", \"data\": \
            \"<base64>\"}}. A request without a body reads as {}.",
    ),
    tags(
        (name = "executions", description = "Workflows that run or have run."),
        (name = "components", description = "Uploaded code."),
        (name = "tasks", description = "What activity workers call. A worker need not send \
            heartbeats more often than at four fifths of the timeout, at most every minute, and \
            every half minute when there is none; the last details before a failure should be \
            sent whatever the pace. A worker that cannot reach the host for as long as the \
            timeout must stop the attempt: another one may be running."),
        (name = "activities", description = "Pending activities by their ids."),
        (name = "host", description = "Health, metrics and documents."),
    ),
    paths(
        component::upload,
        component::list,
        component::describe,
        execution::start,
        execution::list,
        execution::describe,
        message::signal,
        message::signal_with_start,
        message::cancel,
        message::terminate,
        message::unblock,
        asking::query,
        asking::update,
        asking::update_result,
        asking::update_with_start,
        history::result,
        history::history,
        task::poll,
        task::heartbeat,
        task::complete,
        task::fail,
        task::batch,
        task::defer,
        activity::complete,
        activity::fail,
        activity::cancel,
        activity::heartbeat,
        activity::operate,
        activity::dead_letters,
        health::healthz,
        health::readyz,
        health::metrics,
        docs::openapi,
        docs::docs,
    ),
)]
struct Document;

/// The document as indented JSON text.
#[must_use]
pub fn document() -> String {
    let mut text = Document::openapi().to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}
