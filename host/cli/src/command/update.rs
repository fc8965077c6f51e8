//! `update`: sends a workflow a message that it answers.

use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use reqwest::Method;
use steadfast_api::wire::{
    Payload, StartWorkflow, UpdateStage, UpdateStatus, UpdateWithStart, UpdateWorkflow,
    UpdatedWithStart, WaitFor,
};

use crate::client::{self, Client, LONG_POLL};
use crate::command::TargetArgs;
use crate::duration;
use crate::error::{Error, Kind, Result};
use crate::input::InputArgs;
use crate::output::{Output, clean, clean_lines};

/// Send a workflow an update, and wait for its answer
#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Name of the update
    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    input: InputArgs,

    /// The same update id again is the same update; default: a random one
    #[arg(long, value_name = "UPDATE")]
    update_id: Option<String>,

    /// What to wait for
    #[arg(long, value_enum, default_value_t = Stage::Completed, value_name = "STAGE")]
    wait_for: Stage,

    /// Wait at most this long; default: without a limit
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    wait: Option<Duration>,

    /// Start a workflow of this type with the update, unless the id has an open run
    #[arg(long, value_name = "TYPE", conflicts_with = "run_id")]
    start: Option<String>,

    /// Input of the workflow that is started, as JSON text
    #[arg(long, value_name = "JSON", requires = "start")]
    start_input: Option<String>,
}

/// How far the update must come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Stage {
    /// The workflow has let it in
    Accepted,
    /// The workflow has answered it
    Completed,
}

impl From<Stage> for WaitFor {
    fn from(stage: Stage) -> Self {
        match stage {
            Stage::Accepted => Self::Accepted,
            Stage::Completed => Self::Completed,
        }
    }
}

pub(crate) async fn run(args: UpdateArgs, client: &Client, output: &Output) -> Result<()> {
    let began = Instant::now();
    let update_id = args.update_id.clone().map_or_else(client::request_id, Ok)?;
    let wait_for = WaitFor::from(args.wait_for);
    let left = || {
        let left = args.wait.map(|limit| limit.saturating_sub(began.elapsed()));
        left.unwrap_or(LONG_POLL).min(LONG_POLL)
    };
    let mut status = send(&args, &update_id, left(), client).await?;
    while !is_enough(status.stage, wait_for) && args.wait.is_none_or(|l| began.elapsed() < l) {
        let id = &args.target.workflow_id;
        status = client
            .in_namespace(
                Method::GET,
                &["workflows", id, "updates", &update_id, "result"],
            )
            .query("run_id", &status.run_id)
            .query("wait_for", &name(wait_for))
            .wait(left())
            .send()
            .await?;
    }
    print(&status, output)?;
    verdict(&status, wait_for)
}

async fn send(
    args: &UpdateArgs,
    update_id: &str,
    wait: Duration,
    client: &Client,
) -> Result<UpdateStatus> {
    let update = UpdateWorkflow {
        input: args.input.read()?,
        update_id: Some(update_id.to_owned()),
        wait_for: Some(args.wait_for.into()),
        wait_ms: Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        identity: Some(client::identity()),
    };
    let Some(workflow_type) = &args.start else {
        let path = ["workflows", &args.target.workflow_id, "updates", &args.name];
        let call = client.in_namespace(Method::POST, &path);
        let call = call.query_if("run_id", args.target.run_id.as_ref());
        return call.json(&update)?.patient(wait).send().await;
    };
    let start = StartWorkflow {
        workflow_type: workflow_type.clone(),
        workflow_id: Some(args.target.workflow_id.clone()),
        input: args
            .start_input
            .as_deref()
            .map(|text| crate::input::json(text, "--start-input"))
            .transpose()?,
        // The same update id again is the same start.
        request_id: Some(update_id.to_owned()),
        identity: Some(client::identity()),
        ..StartWorkflow::default()
    };
    let body = UpdateWithStart {
        start,
        name: args.name.clone(),
        update,
        join: true,
    };
    let call = client.in_namespace(Method::POST, &["update-with-start"]);
    let both: UpdatedWithStart = call.json(&body)?.patient(wait).send().await?;
    Ok(both.update)
}

fn name(wait_for: WaitFor) -> &'static str {
    match wait_for {
        WaitFor::Accepted => "accepted",
        WaitFor::Completed => "completed",
    }
}

fn is_enough(stage: UpdateStage, wait_for: WaitFor) -> bool {
    match stage {
        UpdateStage::Admitted => false,
        UpdateStage::Accepted => wait_for == WaitFor::Accepted,
        UpdateStage::Refused | UpdateStage::Completed => true,
    }
}

fn print(status: &UpdateStatus, output: &Output) -> Result<()> {
    if output.is_json() {
        return output.json(status);
    }
    match (&status.result, status.stage) {
        (Some(result), _) => output.text(&format!("{}\n", clean_lines(Payload::get(result)))),
        (None, UpdateStage::Accepted) => {
            output.text(&format!("accepted {}\n", clean(&status.update_id)))
        }
        (None, UpdateStage::Admitted | UpdateStage::Refused | UpdateStage::Completed) => Ok(()),
    }
}

/// Only an update that came as far as asked, and did not fail, is a success.
fn verdict(status: &UpdateStatus, wait_for: WaitFor) -> Result<()> {
    let id = clean(&status.update_id);
    let why = || {
        let failure = status.failure.as_ref();
        failure.map_or_else(String::new, ToString::to_string)
    };
    let text = match status.stage {
        UpdateStage::Refused => format!("update {id} was refused: {}", why()),
        UpdateStage::Completed if status.failure.is_some() => {
            format!("update {id} failed: {}", why())
        }
        stage if is_enough(stage, wait_for) => return Ok(()),
        UpdateStage::Admitted => format!("update {id} still waits for the workflow"),
        UpdateStage::Accepted | UpdateStage::Completed => {
            format!("update {id} is accepted and still running")
        }
    };
    Err(Error::new(Kind::Unsuccessful, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_api::wire::Failure;

    fn status(stage: UpdateStage, failure: Option<Failure>) -> UpdateStatus {
        UpdateStatus {
            workflow_id: "w".to_owned(),
            run_id: "r".to_owned(),
            update_id: "u".to_owned(),
            stage,
            result: None,
            failure,
        }
    }

    #[test]
    fn only_what_came_far_enough_is_a_success() {
        let failure = Some(Failure::application("bad", "no"));
        let cases = [
            (UpdateStage::Completed, None, WaitFor::Completed, None),
            (UpdateStage::Accepted, None, WaitFor::Accepted, None),
            (
                UpdateStage::Accepted,
                None,
                WaitFor::Completed,
                Some("update u is accepted and still running"),
            ),
            (
                UpdateStage::Admitted,
                None,
                WaitFor::Accepted,
                Some("update u still waits for the workflow"),
            ),
            (
                UpdateStage::Refused,
                failure.clone(),
                WaitFor::Accepted,
                Some("update u was refused: no"),
            ),
            (
                UpdateStage::Completed,
                failure,
                WaitFor::Accepted,
                Some("update u failed: no"),
            ),
        ];
        for (stage, failure, wait_for, expected) in cases {
            let error = verdict(&status(stage, failure), wait_for).err();
            assert_eq!(error.map(|e| e.message).as_deref(), expected);
        }
    }
}
