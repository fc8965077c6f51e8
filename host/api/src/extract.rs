//! Reading requests: every rejection is a problem document that says what to do.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Answer, Failed};
use crate::limits::{BODY_TIME_MAX, JSON_BODY_BYTES_MAX};

/// A JSON body. An empty body reads as `{}`, so that requests whose every field is optional need
/// none.
pub(crate) struct JsonBody<T, const BYTES_MAX: usize = JSON_BODY_BYTES_MAX>(pub(crate) T);

impl<S, T, const BYTES_MAX: usize> FromRequest<S> for JsonBody<T, BYTES_MAX>
where
    S: Send + Sync,
    T: DeserializeOwned,
{
    type Rejection = Failed;

    async fn from_request(request: Request, _state: &S) -> Answer<Self> {
        let (parts, body) = request.into_parts();
        let bytes = read_body(&parts.headers, body, BYTES_MAX, BODY_TIME_MAX).await?;
        let bytes = if bytes.is_empty() {
            Bytes::from_static(b"{}")
        } else {
            check_json(&parts.headers)?;
            bytes
        };
        serde_json::from_slice(&bytes)
            .map(Self)
            .map_err(|error| malformed(&error))
    }
}

fn malformed(error: &serde_json::Error) -> Failed {
    // The message of serde_json ends with the line and the column.
    Failed::new("malformed-json", error.to_string())
        .with("line", error.line() as u64)
        .with("column", error.column() as u64)
}

fn check_json(headers: &HeaderMap) -> Answer<()> {
    let given = media_type(headers);
    if given == "application/json"
        || (given.starts_with("application/") && given.ends_with("+json"))
    {
        return Ok(());
    }
    Err(wrong_type(&given, "application/json"))
}

/// The media type without parameters, in lower case; empty when there is none.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let given = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let given = given.unwrap_or_default();
    given
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
}

pub(crate) fn wrong_type(given: &str, expected: &'static str) -> Failed {
    let given = if given.is_empty() {
        "no content type"
    } else {
        given
    };
    Failed::new(
        "unsupported-media-type",
        format!("expected {expected}, got {given}"),
    )
}

/// Reads a whole body, at most `bytes_max`. A body that says that it is longer is not read at all.
pub(crate) async fn read_body(
    headers: &HeaderMap,
    body: Body,
    bytes_max: usize,
    time_max: Duration,
) -> Answer<Bytes> {
    let too_large = |text: String| Failed::new("too-large", text).with("limit", bytes_max as u64);
    let length = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok());
    if let Some(length) = length.and_then(|length| length.parse::<u64>().ok())
        && length > bytes_max as u64
    {
        let text = format!("the body is {length} bytes; the limit is {bytes_max}");
        return Err(too_large(text).with("bytes", length));
    }
    let read = tokio::time::timeout(time_max, axum::body::to_bytes(body, bytes_max)).await;
    let Ok(read) = read else {
        let text = format!("the body did not arrive within {} s", time_max.as_secs());
        return Err(Failed::new("body-timeout", text));
    };
    read.map_err(|error| {
        if is_limit(&error) {
            too_large(format!(
                "the body is larger than the limit of {bytes_max} bytes"
            ))
        } else {
            Failed::invalid(format!("the body could not be read: {error}"))
        }
    })
}

/// True if reading ended because of the limit. The error's type belongs to a crate below axum, so
/// it is known by its message.
fn is_limit(error: &axum::Error) -> bool {
    let mut source: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = source {
        if error.to_string() == "length limit exceeded" {
            return true;
        }
        source = error.source();
    }
    false
}

/// Parameters of the query string. Unknown ones are refused, because they are typing errors.
pub(crate) struct Params<T>(pub(crate) T);

impl<S, T> FromRequestParts<S> for Params<T>
where
    S: Send + Sync,
    T: DeserializeOwned,
{
    type Rejection = Failed;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Answer<Self> {
        let query = Query::try_from_uri(&parts.uri);
        let query = query.map_err(|error| Failed::invalid(error.body_text()))?;
        Ok(Self(query.0))
    }
}

/// Segments of the path, decoded.
pub(crate) struct Segments<T>(pub(crate) T);

impl<S, T> FromRequestParts<S> for Segments<T>
where
    S: Send + Sync,
    T: DeserializeOwned + Send,
{
    type Rejection = Failed;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Answer<Self> {
        let path = Path::from_request_parts(parts, state).await;
        let path = path.map_err(|error| Failed::invalid(error.body_text()))?;
        Ok(Self(path.0))
    }
}

/// A JSON answer.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
            Err(error) => Failed::new(
                "unavailable",
                format!("the answer has no JSON form: {error}"),
            )
            .into_response(),
        }
    }
}
