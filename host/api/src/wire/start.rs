//! How a workflow is started.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use steadfast_model::Millis;
use steadfast_runtime::handle;
use utoipa::ToSchema;

use crate::wire::{ChainOptions, IdReusePolicy, Invalid, Payload, RetryPolicy, present};

/// A workflow to start.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartWorkflow {
    /// What to run: the current version of this type.
    pub workflow_type: String,
    /// The user's name of the execution; absent: a random one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// Where its activities go; absent: the host's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_queue: Option<String>,
    /// What to start it with; absent: `null`.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub input: Option<Payload>,
    /// The same id again is the same start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Who starts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// What becomes of a workflow id whose run has ended; absent: `allow-duplicate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_reuse_policy: Option<IdReusePolicy>,
    /// What becomes of a workflow id whose run is open; absent: `fail`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_conflict_policy: Option<IdConflictPolicy>,
    /// How long the code waits before it runs, in milliseconds; a signal ends the wait. Not with
    /// `cron`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_delay_ms: Option<u64>,
    /// Limit over the whole chain of runs, in milliseconds; absent or 0: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_timeout_ms: Option<u64>,
    /// Limit of one run, in milliseconds; absent or 0: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_timeout_ms: Option<u64>,
    /// When a failed run is followed by another attempt; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    /// When a run that has ended is followed by the next one: five fields (UTC, or with
    /// `CRON_TZ=<zone>` in front), `@daily` and the like, `@every 90s`; absent: never.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cron: String,
    /// Notes about the execution.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub memo: BTreeMap<String, Payload>,
    /// Values that travel along with calls.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Payload>,
    /// One line about the execution, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// More about the execution, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub details: String,
}

/// What becomes of a workflow id whose run is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IdConflictPolicy {
    /// The start is refused.
    Fail,
    /// Nothing is started; the answer is the open run.
    UseExisting,
    /// The open run is terminated and the new one started, both or neither.
    TerminateExisting,
}

/// Sends a signal to the open run of a workflow id; if there is none, starts one with the signal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalWithStart {
    /// The workflow. Its `request_id` is also the signal's.
    pub start: StartWorkflow,
    /// The name of the signal.
    pub name: String,
    /// The signal's payload; absent: `null`.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub input: Option<Payload>,
}

impl StartWorkflow {
    /// The start that it stands for.
    ///
    /// # Errors
    /// [`Invalid`] names the field.
    pub fn options(&self) -> Result<handle::StartOptions, Invalid> {
        let chain = ChainOptions {
            execution_timeout_ms: self.execution_timeout_ms,
            run_timeout_ms: self.run_timeout_ms,
            retry: self.retry.clone(),
            cron: self.cron.clone(),
            memo: self.memo.clone(),
            headers: self.headers.clone(),
            summary: self.summary.clone(),
            details: self.details.clone(),
        };
        Ok(handle::StartOptions {
            reuse: self.id_reuse_policy.map(Into::into).unwrap_or_default(),
            conflict: self.id_conflict_policy.map(Into::into).unwrap_or_default(),
            delay: Millis(self.start_delay_ms.unwrap_or(0)),
            chain: chain.to_model()?,
        })
    }
}

impl From<IdConflictPolicy> for handle::ConflictPolicy {
    fn from(policy: IdConflictPolicy) -> Self {
        match policy {
            IdConflictPolicy::Fail => Self::Fail,
            IdConflictPolicy::UseExisting => Self::UseExisting,
            IdConflictPolicy::TerminateExisting => Self::TerminateExisting,
        }
    }
}
