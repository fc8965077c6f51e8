//! `terminate`: ends a workflow without asking it.

use clap::Args;
use reqwest::Method;
use serde_json::json;
use steadfast_api::wire::TerminateWorkflow;

use crate::client::{self, Client};
use crate::command::TargetArgs;
use crate::error::Result;
use crate::output::{Output, Tone};

/// End a workflow now; none of its code runs
#[derive(Debug, Args)]
pub(crate) struct TerminateArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(crate) async fn run(args: TerminateArgs, client: &Client, output: &Output) -> Result<()> {
    let TerminateArgs { target, reason } = args;
    let body = TerminateWorkflow {
        reason,
        identity: Some(client::identity()),
    };
    client
        .in_namespace(
            Method::POST,
            &["workflows", &target.workflow_id, "terminate"],
        )
        .query_if("run_id", target.run_id.as_ref())
        .json(&body)?
        .done()
        .await?;
    if output.is_json() {
        return output.json(&json!({"workflow_id": target.workflow_id, "terminated": true}));
    }
    output.text(&format!(
        "{} {}\n",
        output.paint(Tone::Good, "terminated"),
        output.paint(Tone::Strong, &target.workflow_id),
    ))
}
