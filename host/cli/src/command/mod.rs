//! The verbs, one file each.

pub(crate) mod activity;
pub(crate) mod cancel;
pub(crate) mod completions;
pub(crate) mod component;
pub(crate) mod deploy;
pub(crate) mod describe;
pub(crate) mod dev;
pub(crate) mod doctor;
pub(crate) mod history;
pub(crate) mod list;
pub(crate) mod query;
pub(crate) mod replay;
pub(crate) mod result;
pub(crate) mod signal;
pub(crate) mod start;
pub(crate) mod terminate;
pub(crate) mod unblock;
pub(crate) mod update;

use clap::Args;

/// Which execution.
#[derive(Debug, Clone, Args)]
pub(crate) struct TargetArgs {
    /// Workflow id
    #[arg(value_name = "ID")]
    pub(crate) workflow_id: String,

    /// One run of it; default: the current one
    #[arg(long, value_name = "RUN")]
    pub(crate) run_id: Option<String>,
}
