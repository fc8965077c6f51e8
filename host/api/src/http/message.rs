//! What is said to a running execution: signal, cancel, terminate, unblock.

use axum::extract::State;
use steadfast_model::{RequestId, SignalName};
use steadfast_runtime::handle::Caller;

use crate::error::Answer;
use crate::extract::{Json, JsonBody, Params, Segments};
use crate::http::execution::{RunParams, start_request};
use crate::http::target;
use crate::state::Api;
use crate::wire::{
    CancelWorkflow, Empty, Payload, Problem, SignalWithStart, SignalWorkflow, StartedWorkflow,
    TerminateWorkflow,
};

/// Who asks, as the body says.
fn caller(identity: Option<String>, request_id: Option<String>) -> Answer<Caller> {
    let request_id = request_id.map(RequestId::new).transpose()?;
    Ok(Caller {
        identity: identity.unwrap_or_default(),
        request_id,
    })
}

/// Sends a signal.
#[utoipa::path(
    post,
    path = "/api/v1/namespaces/{namespace}/workflows/{workflow_id}/signals/{name}",
    operation_id = "signal_workflow",
    tag = "executions",
    params(
        ("namespace" = String, Path, description = "The tenant: `default`."),
        ("workflow_id" = String, Path, description = "The execution."),
        ("name" = String, Path, description = "The signal."),
        RunParams,
    ),
    request_body = SignalWorkflow,
    responses(
        (status = 200, description = "It is recorded.", body = Empty),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn signal(
    State(api): State<Api>,
    Segments((namespace, workflow_id, name)): Segments<(String, String, String)>,
    Params(params): Params<RunParams>,
    JsonBody(body): JsonBody<SignalWorkflow>,
) -> Answer<Json<Empty>> {
    let target = target(namespace, workflow_id, params.run_id)?;
    let name = SignalName::new(name)?;
    let input = body.input.unwrap_or_else(Payload::null).to_model()?;
    let caller = caller(body.identity, body.request_id)?;
    api.handle.signal(&target, name, input, caller).await?;
    Ok(Json(Empty {}))
}

/// Sends a signal to the open run of a workflow id, or starts one that has it from the beginning:
/// there is never a run without the signal.
#[utoipa::path(
    post,
    path = "/api/v1/namespaces/{namespace}/signal-with-start",
    operation_id = "signal_with_start",
    tag = "executions",
    params(("namespace" = String, Path, description = "The tenant: `default`.")),
    request_body = SignalWithStart,
    responses(
        (status = 200, description = "The run that has the signal.", body = StartedWorkflow),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn signal_with_start(
    State(api): State<Api>,
    Segments(namespace): Segments<String>,
    JsonBody(body): JsonBody<SignalWithStart>,
) -> Answer<Json<StartedWorkflow>> {
    let start = start_request(namespace, body.start)?;
    let name = SignalName::new(body.name)?;
    let input = body.input.unwrap_or_else(Payload::null).to_model()?;
    let started = api.handle.signal_with_start(start, name, input).await?;
    Ok(Json(StartedWorkflow {
        workflow_id: started.workflow_id.to_string(),
        run_id: started.run_id.to_string(),
        is_new: started.is_new,
        result: None,
    }))
}

/// Asks a workflow to cancel itself. Asking again changes nothing.
#[utoipa::path(
    post,
    path = "/api/v1/namespaces/{namespace}/workflows/{workflow_id}/cancel",
    operation_id = "cancel_workflow",
    tag = "executions",
    params(
        ("namespace" = String, Path, description = "The tenant: `default`."),
        ("workflow_id" = String, Path, description = "The execution."),
        RunParams,
    ),
    request_body = CancelWorkflow,
    responses(
        (status = 200, description = "It is recorded.", body = Empty),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn cancel(
    State(api): State<Api>,
    Segments((namespace, workflow_id)): Segments<(String, String)>,
    Params(params): Params<RunParams>,
    JsonBody(body): JsonBody<CancelWorkflow>,
) -> Answer<Json<Empty>> {
    let target = target(namespace, workflow_id, params.run_id)?;
    let caller = caller(body.identity, body.request_id)?;
    api.handle
        .cancel(&target, body.reason.unwrap_or_default(), caller)
        .await?;
    Ok(Json(Empty {}))
}

/// Ends a workflow now; none of its code runs.
#[utoipa::path(
    post,
    path = "/api/v1/namespaces/{namespace}/workflows/{workflow_id}/terminate",
    operation_id = "terminate_workflow",
    tag = "executions",
    params(
        ("namespace" = String, Path, description = "The tenant: `default`."),
        ("workflow_id" = String, Path, description = "The execution."),
        RunParams,
    ),
    request_body = TerminateWorkflow,
    responses(
        (status = 200, description = "It has ended.", body = Empty),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn terminate(
    State(api): State<Api>,
    Segments((namespace, workflow_id)): Segments<(String, String)>,
    Params(params): Params<RunParams>,
    JsonBody(body): JsonBody<TerminateWorkflow>,
) -> Answer<Json<Empty>> {
    let target = target(namespace, workflow_id, params.run_id)?;
    let (reason, identity) = (
        body.reason.unwrap_or_default(),
        body.identity.unwrap_or_default(),
    );
    api.handle.terminate(&target, reason, identity).await?;
    Ok(Json(Empty {}))
}

/// Tries a blocked execution again now.
#[utoipa::path(
    post,
    path = "/api/v1/namespaces/{namespace}/workflows/{workflow_id}/unblock",
    operation_id = "unblock_workflow",
    tag = "executions",
    params(
        ("namespace" = String, Path, description = "The tenant: `default`."),
        ("workflow_id" = String, Path, description = "The execution."),
        RunParams,
    ),
    responses(
        (status = 200, description = "It is tried again.", body = Empty),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn unblock(
    State(api): State<Api>,
    Segments((namespace, workflow_id)): Segments<(String, String)>,
    Params(params): Params<RunParams>,
) -> Answer<Json<Empty>> {
    let target = target(namespace, workflow_id, params.run_id)?;
    api.handle.unblock(&target).await?;
    Ok(Json(Empty {}))
}
