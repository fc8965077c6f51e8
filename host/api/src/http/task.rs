//! The workers' side: poll, heartbeat, complete, fail, and many of these at once.

use std::time::Duration;

use axum::extract::State;
use futures_util::future::join_all;
use steadfast_model::{Namespace, TaskQueue};
use steadfast_runtime::TaskToken;
use steadfast_runtime::handle::DEFAULT_NAMESPACE;

use crate::drain::Drain;
use crate::error::{Answer, Failed};
use crate::extract::{Json, JsonBody, Segments};
use crate::limits::{BATCH_BODY_BYTES_MAX, BATCH_ITEMS_MAX};
use crate::state::{Api, Shared};
use crate::wire::{
    CompleteTask, DeferTask, Empty, FailTask, HeartbeatAnswer, HeartbeatTask, Payload, PollTasks,
    PolledTasks, Problem, Task, TaskBatch, TaskBatchItem, TaskBatchResult, TaskBatchResults,
};

/// Takes tasks of a queue, and waits for the first one.
#[utoipa::path(
    post,
    path = "/api/v1/namespaces/{namespace}/task-queues/{queue}/poll",
    operation_id = "poll_tasks",
    tag = "tasks",
    params(
        ("namespace" = String, Path, description = "The tenant: `default`."),
        ("queue" = String, Path, description = "The task queue."),
    ),
    request_body = PollTasks,
    responses(
        (status = 200, description = "Tasks; none when none came in time.", body = PolledTasks),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn poll(
    State(api): State<Api>,
    drain: Drain,
    Segments((namespace, queue)): Segments<(String, String)>,
    JsonBody(body): JsonBody<PollTasks>,
) -> Answer<Json<PolledTasks>> {
    let namespace = Namespace::new(namespace)?;
    if namespace.as_str() != DEFAULT_NAMESPACE {
        let (what, name) = ("namespace", namespace.to_string());
        return Err(steadfast_runtime::Error::NotFound { what, name }.into());
    }
    let queue = TaskQueue::new(queue)?;
    let wait = Duration::from_millis(body.wait_ms.unwrap_or(0));
    // Dropped with the request, so that tasks do not go to a worker that is no longer there.
    let polled = tokio::select! {
        biased;
        polled = api.handle.poll(&queue, &body.worker, body.max_tasks.unwrap_or(1), wait) => polled?,
        () = drain.0.cancelled() => Vec::new(),
    };
    let tasks = polled.into_iter().map(Task::from_model).collect();
    Ok(Json(PolledTasks { tasks }))
}

/// Says that a worker is alive, and learns whether it should stop.
#[utoipa::path(
    post,
    path = "/api/v1/tasks/heartbeat",
    operation_id = "heartbeat_task",
    tag = "tasks",
    request_body = HeartbeatTask,
    responses(
        (status = 200, description = "The task is still the worker's.", body = HeartbeatAnswer),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn heartbeat(
    State(api): State<Api>,
    JsonBody(body): JsonBody<HeartbeatTask>,
) -> Answer<Json<HeartbeatAnswer>> {
    Ok(Json(beat(&api, body).await?))
}

/// Hands in a result.
#[utoipa::path(
    post,
    path = "/api/v1/tasks/complete",
    operation_id = "complete_task",
    tag = "tasks",
    request_body = CompleteTask,
    responses(
        (status = 200, description = "It is recorded.", body = Empty),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn complete(
    State(api): State<Api>,
    JsonBody(body): JsonBody<CompleteTask>,
) -> Answer<Json<Empty>> {
    finish(&api, body).await?;
    Ok(Json(Empty {}))
}

/// Hands in an attempt's failure.
#[utoipa::path(
    post,
    path = "/api/v1/tasks/fail",
    operation_id = "fail_task",
    tag = "tasks",
    request_body = FailTask,
    responses(
        (status = 200, description = "It is recorded.", body = Empty),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn fail(
    State(api): State<Api>,
    JsonBody(body): JsonBody<FailTask>,
) -> Answer<Json<Empty>> {
    give_up(&api, body).await?;
    Ok(Json(Empty {}))
}

/// Says that an attempt goes on outside of its worker, which is free for other tasks: it is
/// reported later, with the same token or by the activity's id. Its limits still count.
#[utoipa::path(
    post,
    path = "/api/v1/tasks/defer",
    operation_id = "defer_task",
    tag = "tasks",
    request_body = DeferTask,
    responses(
        (status = 200, description = "It is recorded.", body = Empty),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn defer(
    State(api): State<Api>,
    JsonBody(body): JsonBody<DeferTask>,
) -> Answer<Json<Empty>> {
    api.handle.defer(token(&body.token)?).await?;
    Ok(Json(Empty {}))
}

/// Does many of these at once. They share one flush of the store, so a worker with many small
/// tasks should prefer this.
#[utoipa::path(
    post,
    path = "/api/v1/tasks/batch",
    operation_id = "batch_tasks",
    tag = "tasks",
    request_body = TaskBatch,
    responses(
        (status = 200, description = "One result per item, in their order.",
            body = TaskBatchResults),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn batch(
    State(api): State<Api>,
    JsonBody(body): JsonBody<TaskBatch, BATCH_BODY_BYTES_MAX>,
) -> Answer<Json<TaskBatchResults>> {
    let count = body.items.len();
    if count > BATCH_ITEMS_MAX {
        let text = format!("a batch of {count} items; the limit is {BATCH_ITEMS_MAX}");
        return Err(Failed::invalid(text).hint("split the batch"));
    }
    let items = body.items.into_iter().map(|item| one(&api, item));
    let results = join_all(items).await;
    Ok(Json(TaskBatchResults { results }))
}

async fn one(api: &Shared, item: TaskBatchItem) -> TaskBatchResult {
    let done = HeartbeatAnswer::default();
    let result = match item {
        TaskBatchItem::Complete(body) => finish(api, body).await.map(|()| done),
        TaskBatchItem::Fail(body) => give_up(api, body).await.map(|()| done),
        TaskBatchItem::Heartbeat(body) => beat(api, body).await,
    };
    match result {
        Ok(answer) => TaskBatchResult::Ok(answer),
        Err(failed) => TaskBatchResult::Error(failed.into_problem()),
    }
}

async fn beat(api: &Shared, body: HeartbeatTask) -> Answer<HeartbeatAnswer> {
    let details = body.details.as_ref().map(Payload::to_model).transpose()?;
    let beat = api.handle.heartbeat(token(&body.token)?, details).await?;
    Ok(HeartbeatAnswer::from_model(beat))
}

async fn finish(api: &Shared, body: CompleteTask) -> Answer<()> {
    let result = body.result.unwrap_or_else(Payload::null).to_model()?;
    Ok(api.handle.complete(token(&body.token)?, result).await?)
}

async fn give_up(api: &Shared, body: FailTask) -> Answer<()> {
    if body.failure.frames.is_empty() {
        return Err(Failed::invalid("failure.frames must not be empty"));
    }
    let failure = body.failure.to_model()?;
    Ok(api.handle.fail(token(&body.token)?, failure).await?)
}

fn token(text: &str) -> Answer<TaskToken> {
    Ok(text.parse::<TaskToken>()?)
}
