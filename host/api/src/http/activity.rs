//! Pending activities by their ids: reports from outside, operators' changes, those that need one.

use axum::extract::State;
use serde::Deserialize;
use steadfast_model::{Millis, Namespace, RunKey};
use steadfast_runtime::message::Beat;
use steadfast_runtime::operating::DeadLetters;
use steadfast_runtime::reexport::operate::Report;
use utoipa::IntoParams;

use crate::error::{Answer, Failed};
use crate::extract::{Json, JsonBody, Params, Segments};
use crate::http::execution::RunParams;
use crate::http::target;
use crate::limits::PAGE_DEFAULT;
use crate::state::{Api, Shared};
use crate::wire::{
    ActivityDetails, CompleteActivity, DeadLetter, DeadLetterList, Empty, Execution, FailActivity,
    HeartbeatAnswer, OperateActivities, OperatedActivities, Payload, PendingActivity, Problem,
};

/// Namespace, workflow id and activity id.
type Path = (String, String, String);

async fn reported(
    api: &Shared,
    (namespace, workflow_id, activity_id): Path,
    params: RunParams,
    report: Report,
) -> Answer<Beat> {
    let target = target(namespace, workflow_id, params.run_id)?;
    Ok(api
        .handle
        .report_activity(&target, activity_id, report)
        .await?)
}

/// Says that an activity has a result, by its id: whoever knows it need not have the task.
#[utoipa::path(
    post,
    path = "/api/v1/namespaces/{namespace}/workflows/{workflow_id}/activities/{activity_id}/complete",
    operation_id = "complete_activity",
    tag = "activities",
    params(
        ("namespace" = String, Path, description = "The tenant: `default`."),
        ("workflow_id" = String, Path, description = "The execution."),
        ("activity_id" = String, Path, description = "The activity's id, or its number."),
        RunParams,
    ),
    request_body = CompleteActivity,
    responses(
        (status = 200, description = "It is recorded.", body = Empty),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn complete(
    State(api): State<Api>,
    Segments(path): Segments<Path>,
    Params(params): Params<RunParams>,
    JsonBody(body): JsonBody<CompleteActivity>,
) -> Answer<Json<Empty>> {
    let result = body.result.unwrap_or_else(Payload::null).to_model()?;
    reported(&api, path, params, Report::Complete(result)).await?;
    Ok(Json(Empty {}))
}

/// Says that the current attempt of an activity failed, by the activity's id.
#[utoipa::path(
    post,
    path = "/api/v1/namespaces/{namespace}/workflows/{workflow_id}/activities/{activity_id}/fail",
    operation_id = "fail_activity",
    tag = "activities",
    params(
        ("namespace" = String, Path, description = "The tenant: `default`."),
        ("workflow_id" = String, Path, description = "The execution."),
        ("activity_id" = String, Path, description = "The activity's id, or its number."),
        RunParams,
    ),
    request_body = FailActivity,
    responses(
        (status = 200, description = "It is recorded.", body = Empty),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn fail(
    State(api): State<Api>,
    Segments(path): Segments<Path>,
    Params(params): Params<RunParams>,
    JsonBody(body): JsonBody<FailActivity>,
) -> Answer<Json<Empty>> {
    if body.failure.frames.is_empty() {
        return Err(Failed::invalid("failure.frames must not be empty"));
    }
    let failure = body.failure.to_model()?;
    reported(&api, path, params, Report::Fail(failure)).await?;
    Ok(Json(Empty {}))
}

/// Confirms that an activity stopped because its workflow asked for it.
#[utoipa::path(
    post,
    path = "/api/v1/namespaces/{namespace}/workflows/{workflow_id}/activities/{activity_id}/cancel",
    operation_id = "confirm_activity_cancellation",
    tag = "activities",
    params(
        ("namespace" = String, Path, description = "The tenant: `default`."),
        ("workflow_id" = String, Path, description = "The execution."),
        ("activity_id" = String, Path, description = "The activity's id, or its number."),
        RunParams,
    ),
    request_body = ActivityDetails,
    responses(
        (status = 200, description = "It is recorded.", body = Empty),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn cancel(
    State(api): State<Api>,
    Segments(path): Segments<Path>,
    Params(params): Params<RunParams>,
    JsonBody(body): JsonBody<ActivityDetails>,
) -> Answer<Json<Empty>> {
    let details = body.details.as_ref().map(Payload::to_model).transpose()?;
    reported(&api, path, params, Report::Cancel(details)).await?;
    Ok(Json(Empty {}))
}

/// Says that an activity is alive, and learns what others want of it.
#[utoipa::path(
    post,
    path = "/api/v1/namespaces/{namespace}/workflows/{workflow_id}/activities/{activity_id}/heartbeat",
    operation_id = "heartbeat_activity",
    tag = "activities",
    params(
        ("namespace" = String, Path, description = "The tenant: `default`."),
        ("workflow_id" = String, Path, description = "The execution."),
        ("activity_id" = String, Path, description = "The activity's id, or its number."),
        RunParams,
    ),
    request_body = ActivityDetails,
    responses(
        (status = 200, description = "The attempt still counts.", body = HeartbeatAnswer),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn heartbeat(
    State(api): State<Api>,
    Segments(path): Segments<Path>,
    Params(params): Params<RunParams>,
    JsonBody(body): JsonBody<ActivityDetails>,
) -> Answer<Json<HeartbeatAnswer>> {
    let details = body.details.as_ref().map(Payload::to_model).transpose()?;
    let beat = reported(&api, path, params, Report::Heartbeat(details)).await?;
    Ok(Json(HeartbeatAnswer::from_model(beat)))
}

/// Pauses, resets, changes or gives up pending activities.
#[utoipa::path(
    post,
    path = "/api/v1/namespaces/{namespace}/workflows/{workflow_id}/activity-operations",
    operation_id = "operate_activities",
    tag = "activities",
    params(
        ("namespace" = String, Path, description = "The tenant: `default`."),
        ("workflow_id" = String, Path, description = "The execution."),
        RunParams,
    ),
    request_body = OperateActivities,
    responses(
        (status = 200, description = "It is done.", body = OperatedActivities),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn operate(
    State(api): State<Api>,
    Segments((namespace, workflow_id)): Segments<(String, String)>,
    Params(params): Params<RunParams>,
    JsonBody(body): JsonBody<OperateActivities>,
) -> Answer<Json<OperatedActivities>> {
    let target = target(namespace, workflow_id, params.run_id)?;
    let which = body.which()?;
    let identity = body.identity.unwrap_or_default();
    let operation = body.operation.into_model()?;
    let count = api
        .handle
        .operate_activities(&target, which, operation, identity)
        .await?;
    Ok(Json(OperatedActivities { count }))
}

/// Which activities need an operator.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeadLetterParams {
    /// Failed attempts from which on an activity counts. Default: 10.
    min_attempts: Option<u32>,
    /// Age from which on an activity that fails counts. Default: 3600000.
    min_age_ms: Option<u64>,
    /// Most activities of a page, about. Default: 100.
    limit: Option<u32>,
    /// Where to read on.
    page_token: Option<String>,
}

/// Lists activities that keep failing, or are paused: those that need somebody.
#[utoipa::path(
    get,
    path = "/api/v1/namespaces/{namespace}/dead-letters",
    operation_id = "list_dead_letters",
    tag = "activities",
    params(
        ("namespace" = String, Path, description = "The tenant: `default`."),
        DeadLetterParams,
    ),
    responses(
        (status = 200, description = "A page.", body = DeadLetterList),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn dead_letters(
    State(api): State<Api>,
    Segments(namespace): Segments<String>,
    Params(params): Params<DeadLetterParams>,
) -> Answer<Json<DeadLetterList>> {
    let defaults = DeadLetters::default();
    let before = params
        .page_token
        .map(|token| {
            let malformed = |error| {
                Failed::invalid(format!(
                    "malformed page_token ({error}): pass it on as it was given"
                ))
            };
            token.parse().map(RunKey).map_err(malformed)
        })
        .transpose()?;
    let query = DeadLetters {
        attempts_min: params.min_attempts.unwrap_or(defaults.attempts_min),
        age_min: params.min_age_ms.map_or(defaults.age_min, Millis),
        before,
        limit: params.limit.unwrap_or(PAGE_DEFAULT),
    };
    let namespace = Namespace::new(namespace)?;
    let (found, next) = api.handle.dead_letters(&namespace, query).await?;
    let activities = found.into_iter().map(|(record, task)| DeadLetter {
        execution: Execution::from_model(record),
        activity: PendingActivity::from_model(task),
    });
    Ok(Json(DeadLetterList {
        activities: activities.collect(),
        next_page_token: next.map(|run| run.0.to_string()),
    }))
}
