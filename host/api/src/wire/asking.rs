//! Questions: queries and updates.

use serde::{Deserialize, Serialize};
use steadfast_runtime::asking;
use utoipa::ToSchema;

use crate::wire::{Failure, Payload, StartWorkflow, StartedWorkflow, Status, present};

/// Runs of which states are not asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RejectCondition {
    /// Every run is asked.
    #[default]
    None,
    /// Only an open run is asked.
    NotOpen,
    /// Only a run that is open or has completed is asked.
    NotCompletedCleanly,
}

impl From<RejectCondition> for asking::RejectCondition {
    fn from(condition: RejectCondition) -> Self {
        match condition {
            RejectCondition::None => Self::None,
            RejectCondition::NotOpen => Self::NotOpen,
            RejectCondition::NotCompletedCleanly => Self::NotCompletedCleanly,
        }
    }
}

/// Asks a workflow something.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QueryWorkflow {
    /// What the query is given; absent: `null`.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub input: Option<Payload>,
    /// Runs of which states are not asked; absent: `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reject: Option<RejectCondition>,
}

/// What a workflow answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueryAnswer {
    /// The run that was asked.
    pub run_id: String,
    /// Where it stood.
    pub status: Status,
    /// The answer.
    pub result: Payload,
    /// The last event that the answer rests on.
    pub event: u64,
}

impl QueryAnswer {
    /// The wire form.
    #[must_use]
    pub fn from_model(answer: asking::QueryAnswer) -> Self {
        Self {
            run_id: answer.run_id.to_string(),
            status: answer.status.into(),
            result: Payload::from_model(answer.result),
            event: answer.event.0,
        }
    }
}

/// How far an update must have come before its sender is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitFor {
    /// The workflow's validator let it in.
    Accepted,
    /// Its handler has ended.
    #[default]
    Completed,
}

impl From<WaitFor> for asking::WaitFor {
    fn from(wait_for: WaitFor) -> Self {
        match wait_for {
            WaitFor::Accepted => Self::Accepted,
            WaitFor::Completed => Self::Completed,
        }
    }
}

/// Sends an update.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateWorkflow {
    /// What the update is given; absent: `null`.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub input: Option<Payload>,
    /// Within a run, the same id again is the same update; absent: a random one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_id: Option<String>,
    /// What to wait for; absent: `completed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_for: Option<WaitFor>,
    /// How long to wait, in milliseconds (60000 at most); absent: 20000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// Who sends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
}

/// How far an update has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum UpdateStage {
    /// It waits for the workflow's validator.
    Admitted,
    /// The validator let it in.
    Accepted,
    /// The validator refused it, for `failure`; nothing of it is kept.
    Refused,
    /// Its handler ended: `result` or `failure`. The failure's code is `update-abandoned` when the
    /// run ended first.
    Completed,
}

/// Where an update stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UpdateStatus {
    /// The execution.
    pub workflow_id: String,
    /// The run that took it.
    pub run_id: String,
    /// The update.
    pub update_id: String,
    /// How far it has come.
    pub stage: UpdateStage,
    /// What the handler returned.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub result: Option<Payload>,
    /// Why it was refused or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

impl UpdateStatus {
    /// The wire form.
    #[must_use]
    pub fn from_model(status: asking::UpdateStatus) -> Self {
        let (stage, result, failure) = match status.stage {
            asking::UpdateStage::Admitted => (UpdateStage::Admitted, None, None),
            asking::UpdateStage::Accepted => (UpdateStage::Accepted, None, None),
            asking::UpdateStage::Refused(failure) => (UpdateStage::Refused, None, Some(failure)),
            asking::UpdateStage::Completed(Ok(result)) => {
                (UpdateStage::Completed, Some(result), None)
            }
            asking::UpdateStage::Completed(Err(failure)) => {
                (UpdateStage::Completed, None, Some(failure))
            }
        };
        Self {
            workflow_id: status.workflow_id.to_string(),
            run_id: status.run_id.to_string(),
            update_id: status.update_id.to_string(),
            stage,
            result: result.map(Payload::from_model),
            failure: failure.as_ref().map(Failure::from_model),
        }
    }
}

/// Starts a workflow with an update in its first step.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateWithStart {
    /// The workflow.
    pub start: StartWorkflow,
    /// The name of the update's handler.
    pub name: String,
    /// The update.
    pub update: UpdateWorkflow,
    /// If the workflow id has an open run: true sends the update to it, false is a conflict.
    #[serde(default)]
    pub join: bool,
}

/// What became of both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UpdatedWithStart {
    /// The workflow.
    pub start: StartedWorkflow,
    /// The update.
    pub update: UpdateStatus,
}
