//! Errors as problem documents (RFC 9457).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The media type of a problem document.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// A reference to the page about this code: `/errors/<code>`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the code means, the same for every occurrence.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What went wrong this time.
    pub detail: String,
    /// A stable name for programs.
    pub code: String,
    /// What to do about it.
    pub hint: String,
    /// Facts that programs may need, such as the `run_id` of the execution in the way.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub extra: BTreeMap<String, serde_json::Value>,
}
