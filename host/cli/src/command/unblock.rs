//! `unblock`: tries a blocked workflow again now.

use clap::Args;
use reqwest::Method;
use serde_json::json;

use crate::client::Client;
use crate::command::TargetArgs;
use crate::error::Result;
use crate::output::{Output, Tone};

/// Try a blocked workflow again now
///
/// A workflow is blocked when its code trapped, exceeded a limit, or does not match its history.
/// Nothing of it is lost: it goes on as soon as its code can.
#[derive(Debug, Args)]
pub(crate) struct UnblockArgs {
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) async fn run(args: UnblockArgs, client: &Client, output: &Output) -> Result<()> {
    let target = args.target;
    client
        .in_namespace(Method::POST, &["workflows", &target.workflow_id, "unblock"])
        .query_if("run_id", target.run_id.as_ref())
        .done()
        .await?;
    if output.is_json() {
        return output.json(&json!({"workflow_id": target.workflow_id, "unblocked": true}));
    }
    output.text(&format!(
        "{} {}; `steadfast describe` shows how it goes on\n",
        output.paint(Tone::Good, "trying again:"),
        output.paint(Tone::Strong, &target.workflow_id),
    ))
}
