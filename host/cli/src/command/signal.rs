//! `signal`: sends a workflow a message.

use clap::Args;
use reqwest::Method;
use serde_json::json;
use steadfast_api::wire::SignalWorkflow;

use crate::client::{self, Client};
use crate::command::TargetArgs;
use crate::error::Result;
use crate::input::InputArgs;
use crate::output::{Output, Tone};

/// Send a signal to a workflow
#[derive(Debug, Args)]
pub(crate) struct SignalArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Name of the signal
    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    input: InputArgs,

    /// The same request id again is the same signal; default: a random one
    #[arg(long, value_name = "REQUEST")]
    request_id: Option<String>,
}

pub(crate) async fn run(args: SignalArgs, client: &Client, output: &Output) -> Result<()> {
    let SignalArgs {
        target,
        name,
        input,
        request_id,
    } = args;
    let request_id = request_id.map_or_else(client::request_id, Ok)?;
    let body = SignalWorkflow {
        input: input.read()?,
        request_id: Some(request_id.clone()),
        identity: Some(client::identity()),
    };
    client
        .in_namespace(
            Method::POST,
            &["workflows", &target.workflow_id, "signals", &name],
        )
        .query_if("run_id", target.run_id.as_ref())
        .json(&body)?
        .done()
        .await?;
    if output.is_json() {
        let answer = json!({
            "workflow_id": target.workflow_id, "signal": name, "request_id": request_id,
        });
        return output.json(&answer);
    }
    output.text(&format!(
        "{} {} with {}\n",
        output.paint(Tone::Good, "signalled"),
        output.paint(Tone::Strong, &target.workflow_id),
        output.paint(Tone::Plain, &name),
    ))
}
