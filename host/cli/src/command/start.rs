//! `start`: begins a workflow, and waits for its end if asked to.

use std::time::Duration;

use clap::Args;
use reqwest::Method;
use steadfast_api::wire::{StartWorkflow, StartedWorkflow};

use crate::client::{self, Client};
use crate::command::TargetArgs;
use crate::duration;
use crate::error::Result;
use crate::input::InputArgs;
use crate::outcome;
use crate::output::{Output, Tone};
use crate::start_options::StartOptionsArgs;

/// Start a workflow
#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// Workflow type, of a deployed component
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    workflow_type: String,

    /// Name of the execution, by which it is signalled and found; default: a random one
    #[arg(short, long, value_name = "ID")]
    workflow_id: Option<String>,

    #[command(flatten)]
    input: InputArgs,

    /// Task queue of its activities; default: the server's
    #[arg(long, value_name = "QUEUE")]
    task_queue: Option<String>,

    /// The same request id again starts nothing new; default: a random one
    #[arg(long, value_name = "REQUEST")]
    request_id: Option<String>,

    /// Wait for the result, at most this long if a duration is given
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    wait: Option<Option<Duration>>,

    #[command(flatten)]
    options: StartOptionsArgs,
}

pub(crate) async fn run(args: StartArgs, client: &Client, output: &Output) -> Result<()> {
    let request_id = args.request_id.map_or_else(client::request_id, Ok)?;
    let body = StartWorkflow {
        workflow_type: args.workflow_type,
        workflow_id: args.workflow_id,
        task_queue: args.task_queue,
        input: args.input.read()?,
        request_id: Some(request_id),
        identity: Some(client::identity()),
        ..StartWorkflow::default()
    };
    let body = args.options.fill(body)?;
    let call = client
        .in_namespace(Method::POST, &["workflows"])
        .json(&body)?;
    let started: StartedWorkflow = call.send().await?;
    let Some(limit) = args.wait else {
        return print(&started, output);
    };
    let verb = if started.is_new {
        "started"
    } else {
        "already started"
    };
    output.progress(&format!(
        "{verb} {} (run {})",
        started.workflow_id, started.run_id
    ));
    let target = TargetArgs {
        workflow_id: started.workflow_id,
        run_id: Some(started.run_id),
    };
    outcome::wait_and_print(&target, limit, true, client, output).await
}

fn print(started: &StartedWorkflow, output: &Output) -> Result<()> {
    if output.is_json() {
        return output.json(started);
    }
    let (tone, verb) = if started.is_new {
        (Tone::Good, "started")
    } else {
        (Tone::Plain, "already started")
    };
    output.text(&format!(
        "{} {} (run {})\n",
        output.paint(tone, verb),
        output.paint(Tone::Strong, &started.workflow_id),
        started.run_id
    ))
}
