//! What an execution did and what came of it: history and result, both with long polls.

use std::time::Duration;

use axum::extract::State;
use serde::Deserialize;
use steadfast_model::EventNumber;
use steadfast_model::limits::HISTORY_PAGE_MAX;
use utoipa::IntoParams;

use crate::drain::Drain;
use crate::error::Answer;
use crate::extract::{Json, Params, Segments};
use crate::http::execution::outcome;
use crate::http::target;
use crate::state::Api;
use crate::wire::{Event, HistoryPage, Outcome, Problem};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ResultParams {
    /// One run of the execution. Default: the current one.
    run_id: Option<String>,
    /// Waits for the end, at most so many milliseconds (60000 at most). Default: 0.
    wait_ms: Option<u64>,
    /// `false`: of this run only. Default: `true`, of the last run that follows it.
    follow: Option<bool>,
}

/// Shows where an execution stands and how it ended. Failures are a result, not an error.
#[utoipa::path(
    get,
    path = "/api/v1/namespaces/{namespace}/workflows/{workflow_id}/result",
    operation_id = "get_result",
    tag = "executions",
    params(
        ("namespace" = String, Path, description = "The tenant: `default`."),
        ("workflow_id" = String, Path, description = "The execution."),
        ResultParams,
    ),
    responses(
        (status = 200, description = "Where it stands.", body = Outcome),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn result(
    State(api): State<Api>,
    drain: Drain,
    Segments((namespace, workflow_id)): Segments<(String, String)>,
    Params(params): Params<ResultParams>,
) -> Answer<Json<Outcome>> {
    let target = target(namespace, workflow_id, params.run_id)?;
    let wait = Duration::from_millis(params.wait_ms.unwrap_or(0));
    Ok(Json(
        outcome(&api, &drain, target, wait, params.follow.unwrap_or(true)).await?,
    ))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct HistoryParams {
    /// One run of the execution. Default: the current one.
    run_id: Option<String>,
    /// The first event to read. Default: 1.
    from: Option<u64>,
    /// Most events to return, at most 1000. Default: 1000.
    limit: Option<u32>,
    /// When there is no event yet, waits for one, at most so many milliseconds (60000 at most).
    /// Default: 0.
    wait_ms: Option<u64>,
}

/// Reads events in order.
#[utoipa::path(
    get,
    path = "/api/v1/namespaces/{namespace}/workflows/{workflow_id}/history",
    operation_id = "get_history",
    tag = "executions",
    params(
        ("namespace" = String, Path, description = "The tenant: `default`."),
        ("workflow_id" = String, Path, description = "The execution."),
        HistoryParams,
    ),
    responses(
        (status = 200, description = "A page of events.", body = HistoryPage),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn history(
    State(api): State<Api>,
    drain: Drain,
    Segments((namespace, workflow_id)): Segments<(String, String)>,
    Params(params): Params<HistoryParams>,
) -> Answer<Json<HistoryPage>> {
    let target = target(namespace, workflow_id, params.run_id)?;
    let from = EventNumber(params.from.unwrap_or(1).max(1));
    let limit = params.limit.unwrap_or(HISTORY_PAGE_MAX);
    let wait = Duration::from_millis(params.wait_ms.unwrap_or(0));
    let handle = api.handle.clone();
    let given = (!wait.is_zero()).then_some(wait);
    let page = async move { handle.history(&target, from, limit, given).await };
    let Some(page) = drain.wait(wait, page).await? else {
        // The host shuts down: nothing came in time.
        return Ok(Json(HistoryPage {
            events: Vec::new(),
            next: Some(from.0),
            is_closed: false,
        }));
    };
    Ok(Json(HistoryPage {
        events: page.events.into_iter().map(Event::from_model).collect(),
        next: page.next.map(|next| next.0),
        is_closed: page.is_closed,
    }))
}
