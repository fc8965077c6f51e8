//! Components: upload and look at them.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use steadfast_model::limits::COMPONENT_BYTES_MAX;

use crate::error::{Answer, Failed};
use crate::extract::{Json, Segments, media_type, read_body, wrong_type};
use crate::limits::UPLOAD_TIME_MAX;
use crate::state::Api;
use crate::wire::{Component, ComponentBytes, ComponentList, Problem};

/// Uploads a component and makes it the current version of its workflow types.
#[utoipa::path(
    post,
    path = "/api/v1/components",
    operation_id = "upload_component",
    tag = "components",
    request_body(content = ComponentBytes, content_type = "application/wasm",
        description = "The component, at most 64 MiB."),
    responses(
        (status = 201, description = "It is new.", body = Component),
        (status = 200, description = "The same bytes were there before.", body = Component),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn upload(
    State(api): State<Api>,
    request: Request,
) -> Answer<(StatusCode, Json<Component>)> {
    let (parts, body) = request.into_parts();
    let given = media_type(&parts.headers);
    if given != "application/wasm" && given != "application/octet-stream" {
        return Err(wrong_type(&given, "application/wasm"));
    }
    let bytes = read_body(&parts.headers, body, COMPONENT_BYTES_MAX, UPLOAD_TIME_MAX).await?;
    let uploaded = api.handle.upload(bytes.into()).await?;
    let status = if uploaded.is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let mut component = Component::from_model(uploaded.record);
    component.is_new = Some(uploaded.is_new);
    Ok((status, Json(component)))
}

/// Lists all components.
#[utoipa::path(
    get,
    path = "/api/v1/components",
    operation_id = "list_components",
    tag = "components",
    responses(
        (status = 200, description = "All components.", body = ComponentList),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn list(State(api): State<Api>) -> Answer<Json<ComponentList>> {
    let records = api.handle.components().await?;
    let components = records.into_iter().map(Component::from_model).collect();
    Ok(Json(ComponentList { components }))
}

/// Shows one component.
#[utoipa::path(
    get,
    path = "/api/v1/components/{digest}",
    operation_id = "describe_component",
    tag = "components",
    params(("digest" = String, Path, description = "Its digest, or a unique prefix of it.")),
    responses(
        (status = 200, description = "The component.", body = Component),
        (status = "default", description = "A problem.", body = Problem,
            content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn describe(
    State(api): State<Api>,
    Segments(prefix): Segments<String>,
) -> Answer<Json<Component>> {
    let prefix = prefix.to_ascii_lowercase();
    let records = api.handle.components().await?;
    let mut found = records
        .into_iter()
        .filter(|record| record.digest.to_string().starts_with(&prefix));
    match (found.next(), found.next()) {
        (Some(record), None) => Ok(Json(Component::from_model(record))),
        (Some(_), Some(_)) => Err(Failed::invalid(format!(
            "several components begin with {prefix:?}: give more digits of the digest"
        ))),
        (None, _) => {
            let what = "component";
            Err(steadfast_runtime::Error::NotFound { what, name: prefix }.into())
        }
    }
}
