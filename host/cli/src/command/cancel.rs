//! `cancel`: asks a workflow to clean up and end.

use clap::Args;
use reqwest::Method;
use serde_json::json;
use steadfast_api::wire::CancelWorkflow;

use crate::client::{self, Client};
use crate::command::TargetArgs;
use crate::error::Result;
use crate::output::{Output, Tone};

/// Ask a workflow to cancel itself
///
/// Its code decides what to do: it may clean up first, or refuse. `terminate` does not ask.
#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Why; the workflow and the history are told
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(crate) async fn run(args: CancelArgs, client: &Client, output: &Output) -> Result<()> {
    let CancelArgs { target, reason } = args;
    let body = CancelWorkflow {
        reason,
        request_id: Some(client::request_id()?),
        identity: Some(client::identity()),
    };
    client
        .in_namespace(Method::POST, &["workflows", &target.workflow_id, "cancel"])
        .query_if("run_id", target.run_id.as_ref())
        .json(&body)?
        .done()
        .await?;
    if output.is_json() {
        return output.json(&json!({"workflow_id": target.workflow_id, "cancel_requested": true}));
    }
    output.text(&format!(
        "{} of {}; `steadfast result` waits for its end\n",
        output.paint(Tone::Good, "requested the cancellation"),
        output.paint(Tone::Strong, &target.workflow_id),
    ))
}
