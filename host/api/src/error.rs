//! Rejections as problem documents: the one place where an error gets its status and its hint.

use std::collections::BTreeMap;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use steadfast_runtime::Error;

use crate::wire::Problem;
use crate::wire::problem::PROBLEM_JSON;

/// One error code: its status, what it means, and what to do about it. `docs/errors/<code>.md` says
/// more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// The stable name.
    pub code: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// What it means.
    pub title: &'static str,
    /// What to do.
    pub hint: &'static str,
}

const fn code(code: &'static str, status: u16, title: &'static str, hint: &'static str) -> Code {
    Code {
        code,
        status,
        title,
        hint,
    }
}

/// Every code that this interface answers.
pub const CODES: &[Code] = &[
    code(
        "already-started",
        409,
        "An open execution has this workflow id",
        "use another workflow id, wait for the open run, or terminate it",
    ),
    code(
        "body-timeout",
        408,
        "The request body did not arrive in time",
        "send the body faster, or in one piece",
    ),
    code(
        "component-too-large",
        422,
        "The component exceeds a limit",
        "make the component smaller: build it in release mode and strip it",
    ),
    code(
        "cross-origin",
        403,
        "The request comes from a web page of another origin",
        "call the host from a program, or from a page that it serves itself",
    ),
    code(
        "execution-closed",
        409,
        "The execution has ended",
        "read its result; start a new execution to do more work",
    ),
    code(
        "forbidden-import",
        422,
        "The component imports something a workflow may not have",
        "remove the import: a workflow may only call the engine; do input and output in activities",
    ),
    code(
        "id-used",
        409,
        "The workflow id had a run and may not be used again",
        "read the result of that run, choose another workflow id, or allow duplicates",
    ),
    code(
        "invalid-argument",
        400,
        "The request makes no sense",
        "correct the field that the detail names",
    ),
    code(
        "invalid-description",
        422,
        "The component's description is invalid",
        "rebuild the component with a current SDK",
    ),
    code(
        "limit-reached",
        409,
        "A limit of the execution is reached",
        "let the workflow work off what it has before sending more",
    ),
    code(
        "malformed-json",
        400,
        "The body is not the JSON that this request takes",
        "correct the body at the line and column that the detail names",
    ),
    code(
        "method-not-allowed",
        405,
        "This resource does not take this method",
        "use one of the methods in the Allow header; /openapi.json lists them all",
    ),
    code(
        "not-a-component",
        422,
        "The bytes are not a WebAssembly component",
        "build a component, not a core module: see the SDK's build instructions",
    ),
    code(
        "not-found",
        404,
        "There is nothing of that name",
        "check the name; list what there is",
    ),
    code(
        "query-failed",
        422,
        "The query has no answer",
        "see the failure: an unknown query names the known ones, others are the handler's",
    ),
    code(
        "query-rejected",
        409,
        "The execution is in a state that the query does not want",
        "leave the condition out to ask a run in any state",
    ),
    code(
        "task-gone",
        410,
        "The task is no longer the caller's",
        "stop working on it and poll for another: it has timed out, ended or moved on",
    ),
    code(
        "too-large",
        413,
        "Something is larger than allowed",
        "send less, for example a reference to data that is kept elsewhere",
    ),
    code(
        "unavailable",
        503,
        "The host cannot answer now",
        "try again after a pause; a repetition with the same request id is safe",
    ),
    code(
        "unknown-route",
        404,
        "There is no such resource",
        "check the path; /openapi.json and /docs list what there is",
    ),
    code(
        "unsupported-media-type",
        415,
        "The body has the wrong content type",
        "set the Content-Type that the detail names",
    ),
    code(
        "wrong-world",
        422,
        "The component is not a workflow",
        "build it for the world steadfast:workflow/workflow@0.1.0",
    ),
];

/// A failed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed(Box<Problem>);

/// What a handler returns.
pub type Answer<T> = Result<T, Failed>;

impl Failed {
    /// A failure with the status, title and hint of its code.
    #[must_use]
    pub fn new(code: &'static str, detail: impl Into<String>) -> Self {
        // A code that the table does not know is a bug; the caller still gets a document.
        let unknown = Code {
            code,
            status: 500,
            title: code,
            hint: "",
        };
        let known = CODES.iter().find(|known| known.code == code).copied();
        debug_assert!(known.is_some(), "code {code} is not in the table");
        let Code {
            status,
            title,
            hint,
            ..
        } = known.unwrap_or(unknown);
        Self(Box::new(Problem {
            kind: format!("/errors/{code}"),
            title: title.to_owned(),
            status,
            detail: detail.into(),
            code: code.to_owned(),
            hint: hint.to_owned(),
            extra: BTreeMap::new(),
        }))
    }

    /// The request makes no sense.
    #[must_use]
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new("invalid-argument", detail)
    }

    /// A better hint than the code's own.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = hint.into();
        self
    }

    /// A fact for programs.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.extra.insert(name.to_owned(), value.into());
        self
    }

    /// The document.
    #[must_use]
    pub fn into_problem(self) -> Problem {
        *self.0
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        let failed = Self::new(error.code(), error.to_string());
        match error {
            Error::NotFound { what, name } => failed
                .hint(not_found_hint(what))
                .with("what", what)
                .with("name", name),
            Error::AlreadyStarted { run_id } => failed.with("run_id", run_id.to_string()),
            Error::IdUsed { run_id, status, .. } => failed
                .with("run_id", run_id.to_string())
                .with("execution_status", status),
            Error::Closed { status } => failed.with("execution_status", status),
            Error::TooLarge { bytes, limit, .. } => failed
                .with("bytes", u64::try_from(bytes).unwrap_or(u64::MAX))
                .with("limit", u64::try_from(limit).unwrap_or(u64::MAX)),
            Error::QueryRejected { status } => failed.with("execution_status", status),
            Error::QueryFailed(failure) => {
                let failure = crate::wire::Failure::from_model(&failure);
                failed.with("failure", serde_json::to_value(failure).unwrap_or_default())
            }
            Error::TaskGone(_)
            | Error::Invalid(_)
            | Error::LimitReached(_)
            | Error::Refused(_)
            | Error::Unavailable(_) => failed,
        }
    }
}

fn not_found_hint(what: &str) -> &'static str {
    match what {
        "workflow type" => "deploy a component that has this workflow type; list the components",
        "namespace" => "this version has one namespace: default",
        "execution" | "run" => "check the workflow id and the run id; list the executions",
        "component" => "list the components; a digest may be shortened to a unique prefix",
        _ => "check the name; list what there is",
    }
}

impl From<crate::wire::Invalid> for Failed {
    fn from(error: crate::wire::Invalid) -> Self {
        Self::invalid(error.to_string()).with("field", error.field)
    }
}

impl From<steadfast_model::id::Invalid> for Failed {
    fn from(error: steadfast_model::id::Invalid) -> Self {
        Self::invalid(error.to_string())
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::BAD_REQUEST);
        let body = serde_json::to_vec(&self.0).unwrap_or_default();
        let media_type = HeaderValue::from_static(PROBLEM_JSON);
        let mut response = (status, [(header::CONTENT_TYPE, media_type)], body).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
