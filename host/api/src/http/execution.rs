//! Executions: start, list, describe.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use steadfast_model::{Namespace, RequestId, RunId, TaskQueue, WorkflowId, WorkflowType};
use steadfast_runtime::handle::{self, Target};
use steadfast_runtime::reexport::ListQuery;
use utoipa::IntoParams;

use crate::drain::Drain;
use crate::error::Answer;
use crate::extract::{Json, JsonBody, Params, Segments};
use crate::http::target;
use crate::limits::PAGE_DEFAULT;
use crate::state::Api;
use crate::wire::{
    Description, Execution, ExecutionList, Outcome, Payload, Problem, StartWorkflow,
    StartedWorkflow, Status,
};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct StartParams {
    /// Waits for the end of the execution, at most so many milliseconds (60000 at most), and
    /// answers with its result.
    wait_ms: Option<u64>,
}

/// Starts a workflow. With `wait_ms`, short ones are started and finished in one round trip.
#[utoipa::path(
    post,
    path = "/api/v1/namespaces/{namespace}/workflows",
    operation_id = "start_workflow",
    tag = "executions",
    params(("namespace" = String, Path, description = "The tenant: `default`."), StartParams),
    request_body = StartWorkflow,
    responses(
        (status = 201, description = "It is started.", body = StartedWorkflow),
        (status = 200, description = "The same request had started it, or the open run is used.",
            body = StartedWorkflow),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn start(
    State(api): State<Api>,
    drain: Drain,
    Segments(namespace): Segments<String>,
    Params(params): Params<StartParams>,
    JsonBody(body): JsonBody<StartWorkflow>,
) -> Answer<(StatusCode, Json<StartedWorkflow>)> {
    let start = start_request(namespace, body)?;
    let namespace = start.namespace.clone();
    let started = api.handle.start(start).await?;
    let result = match params.wait_ms {
        None => None,
        Some(wait_ms) => {
            let workflow_id = started.workflow_id.clone();
            let target = Target {
                namespace,
                workflow_id,
                run_id: Some(started.run_id),
            };
            Some(outcome(&api, &drain, target, Duration::from_millis(wait_ms), true).await?)
        }
    };
    let status = if started.is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let answer = StartedWorkflow {
        workflow_id: started.workflow_id.as_str().to_owned(),
        run_id: started.run_id.to_string(),
        is_new: started.is_new,
        result,
    };
    Ok((status, Json(answer)))
}

pub(crate) fn start_request(
    namespace: String,
    body: StartWorkflow,
) -> Answer<handle::StartWorkflow> {
    let options = body.options()?;
    Ok(handle::StartWorkflow {
        namespace: Namespace::new(namespace)?,
        workflow_id: body.workflow_id.map(WorkflowId::new).transpose()?,
        workflow_type: WorkflowType::new(body.workflow_type)?,
        task_queue: body.task_queue.map(TaskQueue::new).transpose()?,
        input: body.input.unwrap_or_else(Payload::null).to_model()?,
        request_id: body.request_id.map(RequestId::new).transpose()?,
        identity: body.identity.unwrap_or_default(),
        options,
    })
}

/// Where an execution stands after at most `wait`; with `follow`, with the runs that follow.
pub(crate) async fn outcome(
    api: &Api,
    drain: &Drain,
    target: Target,
    wait: Duration,
    follow: bool,
) -> Answer<Outcome> {
    let handle = api.handle.clone();
    let work = async move {
        if follow {
            handle.result(&target, wait).await
        } else {
            handle.result_of_run(&target, wait).await
        }
    };
    let closed = drain.wait(wait, work).await?;
    Ok(Outcome::from_model(closed.flatten()))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListParams {
    /// Only executions that stand so.
    status: Option<Status>,
    /// Only executions of this type.
    workflow_type: Option<String>,
    /// Only runs of this execution.
    workflow_id: Option<String>,
    /// `true`: only blocked ones.
    blocked: Option<bool>,
    /// Most executions to return, at most 1000. Default: 100.
    limit: Option<u32>,
    /// Where to go on: `next_page_token` of the page before.
    page_token: Option<String>,
}

/// Lists executions, newest first.
#[utoipa::path(
    get,
    path = "/api/v1/namespaces/{namespace}/workflows",
    operation_id = "list_workflows",
    tag = "executions",
    params(("namespace" = String, Path, description = "The tenant: `default`."), ListParams),
    responses(
        (status = 200, description = "A page of executions.", body = ExecutionList),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn list(
    State(api): State<Api>,
    Segments(namespace): Segments<String>,
    Params(params): Params<ListParams>,
) -> Answer<Json<ExecutionList>> {
    let limit = params.limit.unwrap_or(PAGE_DEFAULT);
    let limit = limit.clamp(1, steadfast_model::limits::LIST_PAGE_MAX) as usize;
    // The token is the id of the last run of the page before, which carries the run's place.
    let before = params
        .page_token
        .map(|token| token.parse::<RunId>())
        .transpose()?;
    let query = ListQuery {
        namespace: Namespace::new(namespace)?,
        status: params.status.map(Into::into),
        workflow_type: params.workflow_type.map(WorkflowType::new).transpose()?,
        workflow_id: params.workflow_id.map(WorkflowId::new).transpose()?,
        blocked: params.blocked.unwrap_or(false),
        before: before.map(|run_id| run_id.key()),
        limit,
    };
    let records = api.handle.list(query).await?;
    let is_full = records.len() >= limit;
    let last = records.last().filter(|_| is_full);
    let next_page_token = last.map(|record| record.run_id.to_string());
    let executions = records.into_iter().map(Execution::from_model).collect();
    Ok(Json(ExecutionList {
        executions,
        next_page_token,
    }))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RunParams {
    /// One run of the execution. Default: the current one.
    pub(crate) run_id: Option<String>,
}

/// Shows everything known about an execution now.
#[utoipa::path(
    get,
    path = "/api/v1/namespaces/{namespace}/workflows/{workflow_id}",
    operation_id = "describe_workflow",
    tag = "executions",
    params(
        ("namespace" = String, Path, description = "The tenant: `default`."),
        ("workflow_id" = String, Path, description = "The execution."),
        RunParams,
    ),
    responses(
        (status = 200, description = "The execution.", body = Description),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn describe(
    State(api): State<Api>,
    Segments((namespace, workflow_id)): Segments<(String, String)>,
    Params(params): Params<RunParams>,
) -> Answer<Json<Description>> {
    let target = target(namespace, workflow_id, params.run_id)?;
    let description = api.handle.describe(&target).await?;
    Ok(Json(Description::from_model(description)))
}
