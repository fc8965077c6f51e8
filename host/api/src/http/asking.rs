//! What a workflow is asked: queries and updates.

use std::time::Duration;

use axum::extract::State;
use serde::Deserialize;
use steadfast_model::{QueryName, UpdateId, UpdateName};
use steadfast_runtime::asking::SendUpdate;
use utoipa::IntoParams;

use crate::drain::Drain;
use crate::error::{Answer, Failed};
use crate::extract::{Json, JsonBody, Params, Segments};
use crate::http::execution::{RunParams, start_request};
use crate::http::target;
use crate::state::Api;
use crate::wire::{
    Payload, Problem, QueryAnswer, QueryWorkflow, StartedWorkflow, UpdateStatus, UpdateWithStart,
    UpdateWorkflow, UpdatedWithStart, WaitFor,
};

/// How long an update is waited for unless its sender says otherwise.
const WAIT_DEFAULT: Duration = Duration::from_secs(20);

/// Asks a workflow something. Nothing is recorded. Closed and blocked executions answer too.
/// `__metadata` is answered by the host: what the workflow understands.
#[utoipa::path(
    post,
    path = "/api/v1/namespaces/{namespace}/workflows/{workflow_id}/queries/{name}",
    operation_id = "query_workflow",
    tag = "executions",
    params(
        ("namespace" = String, Path, description = "The tenant: `default`."),
        ("workflow_id" = String, Path, description = "The execution."),
        ("name" = String, Path, description = "The query."),
        RunParams,
    ),
    request_body = QueryWorkflow,
    responses(
        (status = 200, description = "The answer.", body = QueryAnswer),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn query(
    State(api): State<Api>,
    Segments((namespace, workflow_id, name)): Segments<(String, String, String)>,
    Params(params): Params<RunParams>,
    JsonBody(body): JsonBody<QueryWorkflow>,
) -> Answer<Json<QueryAnswer>> {
    let target = target(namespace, workflow_id, params.run_id)?;
    let name = QueryName::new(name)?;
    let input = body.input.unwrap_or_else(Payload::null).to_model()?;
    let reject = body.reject.unwrap_or_default().into();
    let answer = api.handle.query(&target, name, input, reject).await?;
    Ok(Json(QueryAnswer::from_model(answer)))
}

/// Sends an update and waits for it, as long as `wait_ms` says; the answer tells how far it came.
#[utoipa::path(
    post,
    path = "/api/v1/namespaces/{namespace}/workflows/{workflow_id}/updates/{name}",
    operation_id = "update_workflow",
    tag = "executions",
    params(
        ("namespace" = String, Path, description = "The tenant: `default`."),
        ("workflow_id" = String, Path, description = "The execution."),
        ("name" = String, Path, description = "The update's handler."),
        RunParams,
    ),
    request_body = UpdateWorkflow,
    responses(
        (status = 200, description = "How far it came.", body = UpdateStatus),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn update(
    State(api): State<Api>,
    drain: Drain,
    Segments((namespace, workflow_id, name)): Segments<(String, String, String)>,
    Params(params): Params<RunParams>,
    JsonBody(body): JsonBody<UpdateWorkflow>,
) -> Answer<Json<UpdateStatus>> {
    let target = target(namespace, workflow_id, params.run_id)?;
    let update = update_request(name, body)?;
    let (handle, wait) = (api.handle.clone(), update.wait);
    let work = async move { handle.update(&target, update).await };
    let status = drain.wait(wait, work).await?.ok_or_else(stopping)?;
    Ok(Json(UpdateStatus::from_model(status)))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct UpdateParams {
    /// One run of the execution. Default: the current one.
    run_id: Option<String>,
    /// `accepted` or `completed`. Default: `completed`.
    wait_for: Option<WaitFor>,
    /// Waits until it has come so far, at most so many milliseconds (60000 at most). Default: 0.
    wait_ms: Option<u64>,
}

/// Shows how far an update has come. The outcome stays readable until the run is deleted.
#[utoipa::path(
    get,
    path = "/api/v1/namespaces/{namespace}/workflows/{workflow_id}/updates/{update_id}/result",
    operation_id = "get_update",
    tag = "executions",
    params(
        ("namespace" = String, Path, description = "The tenant: `default`."),
        ("workflow_id" = String, Path, description = "The execution."),
        ("update_id" = String, Path, description = "The update."),
        UpdateParams,
    ),
    responses(
        (status = 200, description = "How far it came.", body = UpdateStatus),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn update_result(
    State(api): State<Api>,
    drain: Drain,
    Segments((namespace, workflow_id, update_id)): Segments<(String, String, String)>,
    Params(params): Params<UpdateParams>,
) -> Answer<Json<UpdateStatus>> {
    let target = target(namespace, workflow_id, params.run_id)?;
    let update_id = UpdateId::new(update_id)?;
    let wait_for = params.wait_for.unwrap_or_default().into();
    let wait = Duration::from_millis(params.wait_ms.unwrap_or(0));
    let handle = api.handle.clone();
    let work = async move {
        handle
            .update_status(&target, &update_id, wait_for, wait)
            .await
    };
    let status = drain.wait(wait, work).await?.ok_or_else(stopping)?;
    Ok(Json(UpdateStatus::from_model(status)))
}

/// Starts a workflow with an update in its first step: both are recorded, or neither.
#[utoipa::path(
    post,
    path = "/api/v1/namespaces/{namespace}/update-with-start",
    operation_id = "update_with_start",
    tag = "executions",
    params(("namespace" = String, Path, description = "The tenant: `default`.")),
    request_body = UpdateWithStart,
    responses(
        (status = 200, description = "What became of both.", body = UpdatedWithStart),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn update_with_start(
    State(api): State<Api>,
    drain: Drain,
    Segments(namespace): Segments<String>,
    JsonBody(body): JsonBody<UpdateWithStart>,
) -> Answer<Json<UpdatedWithStart>> {
    let start = start_request(namespace, body.start)?;
    let update = update_request(body.name, body.update)?;
    let (handle, wait, join) = (api.handle.clone(), update.wait, body.join);
    let work = async move { handle.update_with_start(start, update, join).await };
    let (started, update) = drain.wait(wait, work).await?.ok_or_else(stopping)?;
    Ok(Json(UpdatedWithStart {
        start: StartedWorkflow {
            workflow_id: started.workflow_id.to_string(),
            run_id: started.run_id.to_string(),
            is_new: started.is_new,
            result: None,
        },
        update: UpdateStatus::from_model(update),
    }))
}

fn update_request(name: String, body: UpdateWorkflow) -> Answer<SendUpdate> {
    Ok(SendUpdate {
        name: UpdateName::new(name)?,
        input: body.input.unwrap_or_else(Payload::null).to_model()?,
        update_id: body.update_id.map(UpdateId::new).transpose()?,
        wait_for: body.wait_for.unwrap_or_default().into(),
        wait: body.wait_ms.map_or(WAIT_DEFAULT, Duration::from_millis),
        identity: body.identity.unwrap_or_default(),
    })
}

fn stopping() -> Failed {
    Failed::new("unavailable", "the host is shutting down")
}
