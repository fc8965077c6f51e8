//! Refuses what other web pages make a browser send.
//!
//! The host listens on loopback and asks for no password by default, so any page that its user
//! visits could otherwise post to it. Programs send no `Origin` and are not affected.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::error::Failed;
use crate::state::Api;

pub(crate) async fn check(State(api): State<Api>, request: Request, next: Next) -> Response {
    if request.method().is_safe() || is_allowed(request.headers(), &api.options.allowed_origins) {
        return next.run(request).await;
    }
    Failed::new("cross-origin", "the request's Origin is not this host's").into_response()
}

fn is_allowed(headers: &HeaderMap, allowed: &[String]) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return true;
    };
    let Ok(origin) = origin.to_str() else {
        return false;
    };
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    (authority.is_some() && authority == host) || allowed.iter().any(|known| known == origin)
}
