//! `signal`: sends a workflow a message.

use clap::Args;
use reqwest::Method;
use serde_json::json;
use steadfast_api::wire::{SignalWithStart, SignalWorkflow, StartWorkflow, StartedWorkflow};

use crate::client::{self, Client};
use crate::command::TargetArgs;
use crate::error::{Error, Result};
use crate::input::{InputArgs, json as json_of};
use crate::output::{Output, Tone};
use crate::start_options::StartOptionsArgs;

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

    /// Start a workflow of this type with the signal, unless the id has an open run
    #[arg(long, value_name = "TYPE", conflicts_with = "run_id")]
    start: Option<String>,

    /// Input of the workflow that is started, as JSON text
    #[arg(long, value_name = "JSON", requires = "start")]
    start_input: Option<String>,

    #[command(flatten)]
    options: StartOptionsArgs,
}

pub(crate) async fn run(args: SignalArgs, client: &Client, output: &Output) -> Result<()> {
    let SignalArgs {
        target,
        name,
        input,
        request_id,
        start,
        start_input,
        options,
    } = args;
    let request_id = request_id.map_or_else(client::request_id, Ok)?;
    if let Some(workflow_type) = start {
        let start_input = start_input.map(|text| json_of(&text, "--start-input"));
        let start = StartWorkflow {
            workflow_type,
            workflow_id: Some(target.workflow_id),
            input: start_input.transpose()?,
            request_id: Some(request_id),
            identity: Some(client::identity()),
            ..StartWorkflow::default()
        };
        let body = SignalWithStart {
            start: options.fill(start)?,
            name,
            input: input.read()?,
        };
        return with_start(&body, client, output).await;
    }
    if !options.is_empty() {
        let text = "options of a start are given, and nothing to start";
        return Err(Error::usage(text).hint("add --start TYPE"));
    }
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

async fn with_start(body: &SignalWithStart, client: &Client, output: &Output) -> Result<()> {
    let call = client.in_namespace(Method::POST, &["signal-with-start"]);
    let started: StartedWorkflow = call.json(body)?.send().await?;
    if output.is_json() {
        return output.json(&started);
    }
    let verb = if started.is_new {
        "started and signalled"
    } else {
        "signalled"
    };
    output.text(&format!(
        "{} {} with {} (run {})\n",
        output.paint(Tone::Good, verb),
        output.paint(Tone::Strong, &started.workflow_id),
        output.paint(Tone::Plain, &body.name),
        started.run_id
    ))
}
