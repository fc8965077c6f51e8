//! Children and messages between executions.

use serde::{Deserialize, Serialize};
use steadfast_model as model;
use steadfast_model::Millis;
use utoipa::ToSchema;

use crate::wire::{Invalid, RetryPolicy};

/// An enum of the model with the same variants on the wire.
macro_rules! mirror {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl From<model::child::$name> for $name {
            fn from(value: model::child::$name) -> Self {
                match value {
                    $(model::child::$name::$variant => Self::$variant,)*
                }
            }
        }

        impl From<$name> for model::child::$name {
            fn from(value: $name) -> Self {
                match value {
                    $($name::$variant => Self::$variant,)*
                }
            }
        }
    };
}

mirror! {
    /// What happens to a child when its parent ends.
    ParentClosePolicy {
        /// The child is terminated.
        Terminate,
        /// The child goes on.
        Abandon,
        /// The child is asked to cancel itself.
        RequestCancel,
    }
}

mirror! {
    /// When the parent counts as ended.
    ParentCloseScope {
        /// When the run that started the child ends.
        Run,
        /// When the last run of the parent's chain ends.
        Chain,
    }
}

mirror! {
    /// What cancelling a child means to the parent.
    ChildCancellation {
        /// The parent stops waiting at once; the child is not told.
        Abandon,
        /// The child is told, and the parent stops waiting at once.
        TryCancel,
        /// The child is told, and the parent waits for how it ends.
        WaitCancellationCompleted,
        /// The parent waits until the child has been told.
        WaitCancellationRequested,
    }
}

mirror! {
    /// What becomes of a workflow id whose run has ended.
    IdReusePolicy {
        /// It may be used again.
        AllowDuplicate,
        /// It may be used again if that run failed, timed out, or was cancelled or terminated.
        AllowDuplicateFailedOnly,
        /// It may not be used again.
        RejectDuplicate,
    }
}

mirror! {
    /// Why a message between executions was not delivered.
    FailedCause {
        /// The workflow id of the child is taken.
        WorkflowAlreadyExists,
        /// There is no such namespace.
        NamespaceNotFound,
        /// There is no such open execution.
        ExternalWorkflowExecutionNotFound,
        /// The receiver has all the signals it may have.
        SignalCountLimitExceeded,
        /// No component has the child's workflow type.
        WorkflowTypeNotFound,
        /// The child cannot be started as asked.
        InvalidArgument,
    }
}

/// How a child is run, with defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChildOptions {
    /// Where it runs.
    pub namespace: String,
    /// Its name.
    pub workflow_id: String,
    /// Where its activities go by default.
    pub task_queue: String,
    /// What happens to it when the parent ends.
    pub parent_close_policy: ParentClosePolicy,
    /// When the parent counts as ended.
    pub parent_close_scope: ParentCloseScope,
    /// What cancelling it means.
    pub cancellation_type: ChildCancellation,
    /// Whether its name may have been used before.
    pub id_reuse_policy: IdReusePolicy,
    /// Limit over all its runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_timeout_ms: Option<u64>,
    /// Limit of one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_timeout_ms: Option<u64>,
    /// When a failed run is tried again; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    /// Its cron schedule.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cron: String,
    /// A line for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
}

impl ChildOptions {
    /// The wire form of options.
    #[must_use]
    pub fn from_model(options: model::ChildOptions) -> Self {
        Self {
            namespace: options.namespace.to_string(),
            workflow_id: options.workflow_id.to_string(),
            task_queue: options.task_queue.to_string(),
            parent_close_policy: options.parent_close_policy.into(),
            parent_close_scope: options.parent_close_scope.into(),
            cancellation_type: options.cancellation.into(),
            id_reuse_policy: options.id_reuse.into(),
            execution_timeout_ms: options.execution_timeout.map(|limit| limit.0),
            run_timeout_ms: options.run_timeout.map(|limit| limit.0),
            retry: options.retry.map(RetryPolicy::from_model),
            cron: options.cron,
            summary: options.summary,
        }
    }

    /// The options that it stands for.
    ///
    /// # Errors
    /// [`Invalid`] names the option that is malformed.
    pub fn into_model(self) -> Result<model::ChildOptions, Invalid> {
        Ok(model::ChildOptions {
            namespace: parse("namespace", &self.namespace)?,
            workflow_id: parse("workflow_id", &self.workflow_id)?,
            task_queue: parse("task_queue", &self.task_queue)?,
            parent_close_policy: self.parent_close_policy.into(),
            parent_close_scope: self.parent_close_scope.into(),
            cancellation: self.cancellation_type.into(),
            id_reuse: self.id_reuse_policy.into(),
            execution_timeout: self.execution_timeout_ms.map(Millis),
            run_timeout: self.run_timeout_ms.map(Millis),
            retry: self.retry.map(RetryPolicy::into_model),
            cron: self.cron,
            summary: self.summary,
        })
    }
}

/// Which execution a message of a workflow is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExternalTarget {
    /// The tenant.
    pub namespace: String,
    /// Its name.
    pub workflow_id: String,
    /// One run of it; absent: the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// True if it must be a child of the sender.
    pub child_only: bool,
}

impl ExternalTarget {
    /// The wire form of a target.
    #[must_use]
    pub fn from_model(target: &model::child::ExternalTarget) -> Self {
        Self {
            namespace: target.namespace.to_string(),
            workflow_id: target.workflow_id.to_string(),
            run_id: target.run_id.map(|run_id| run_id.to_string()),
            child_only: target.child_only,
        }
    }

    /// The target that it stands for.
    ///
    /// # Errors
    /// [`Invalid`] names the part that is malformed.
    pub fn to_model(&self) -> Result<model::child::ExternalTarget, Invalid> {
        let run_id = self.run_id.as_deref();
        Ok(model::child::ExternalTarget {
            namespace: parse("namespace", &self.namespace)?,
            workflow_id: parse("workflow_id", &self.workflow_id)?,
            run_id: run_id.map(|id| parse("run_id", id)).transpose()?,
            child_only: self.child_only,
        })
    }
}

/// Who started a child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Parent {
    /// The parent's tenant.
    pub namespace: String,
    /// The parent's name.
    pub workflow_id: String,
    /// The run that started the child.
    pub run_id: String,
    /// The first run of the parent's chain.
    pub first_run_id: String,
    /// The command that started the child.
    pub seq: u32,
    /// The name of the execution at the top of the tree.
    pub root_workflow_id: String,
    /// Its run.
    pub root_run_id: String,
}

impl Parent {
    /// The wire form of a parent.
    #[must_use]
    pub fn from_model(parent: &model::child::Parent) -> Self {
        Self {
            namespace: parent.namespace.to_string(),
            workflow_id: parent.workflow_id.to_string(),
            run_id: parent.run_id.to_string(),
            first_run_id: parent.first_run_id.to_string(),
            seq: parent.seq.0,
            root_workflow_id: parent.root_workflow_id.to_string(),
            root_run_id: parent.root_run_id.to_string(),
        }
    }

    /// The parent that it stands for.
    ///
    /// # Errors
    /// [`Invalid`] names the part that is malformed.
    pub fn to_model(&self) -> Result<model::child::Parent, Invalid> {
        Ok(model::child::Parent {
            namespace: parse("namespace", &self.namespace)?,
            workflow_id: parse("workflow_id", &self.workflow_id)?,
            run_id: parse("run_id", &self.run_id)?,
            first_run_id: parse("first_run_id", &self.first_run_id)?,
            seq: model::Seq(self.seq),
            root_workflow_id: parse("root_workflow_id", &self.root_workflow_id)?,
            root_run_id: parse("root_run_id", &self.root_run_id)?,
        })
    }
}

/// A child of an earlier run that lives as long as its parent's chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ward {
    /// The child's tenant.
    pub namespace: String,
    /// The child's name.
    pub workflow_id: String,
    /// The run that started it.
    pub run_id: String,
    /// The command that started it.
    pub seq: u32,
    /// What happens to it when the chain ends.
    pub parent_close_policy: ParentClosePolicy,
}

impl Ward {
    /// The wire form of such a child.
    #[must_use]
    pub fn from_model(ward: &model::child::Ward) -> Self {
        Self {
            namespace: ward.namespace.to_string(),
            workflow_id: ward.workflow_id.to_string(),
            run_id: ward.run_id.to_string(),
            seq: ward.seq.0,
            parent_close_policy: ward.parent_close_policy.into(),
        }
    }

    /// The child that it stands for.
    ///
    /// # Errors
    /// [`Invalid`] names the part that is malformed.
    pub fn to_model(&self) -> Result<model::child::Ward, Invalid> {
        Ok(model::child::Ward {
            namespace: parse("namespace", &self.namespace)?,
            workflow_id: parse("workflow_id", &self.workflow_id)?,
            run_id: parse("run_id", &self.run_id)?,
            seq: model::Seq(self.seq),
            parent_close_policy: self.parent_close_policy.into(),
        })
    }
}

fn parse<T: std::str::FromStr<Err = model::id::Invalid>>(
    field: &'static str,
    text: &str,
) -> Result<T, Invalid> {
    text.parse()
        .map_err(|error: model::id::Invalid| Invalid::new(field, error.to_string()))
}
