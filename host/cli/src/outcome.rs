//! Waiting for the end of a run, and what its end means for the caller.

use std::time::{Duration, Instant};

use reqwest::Method;
use steadfast_api::wire::{Description, Outcome, Payload, Status};

use crate::client::{Client, LONG_POLL};
use crate::command::TargetArgs;
use crate::duration;
use crate::error::{Error, Kind, Result};
use crate::output::{Output, clean, clean_lines};

/// Waits for a run's end, and with `follow` for that of the runs that follow, at most `limit`, prints how it ended, and fails unless it completed.
pub(crate) async fn wait_and_print(
    target: &TargetArgs,
    limit: Option<Duration>,
    follow: bool,
    client: &Client,
    output: &Output,
) -> Result<()> {
    let outcome = wait(target, limit, follow, client, output).await?;
    if output.is_json() {
        output.json(&outcome)?;
    } else if outcome.status == Status::Completed {
        let result = outcome.result.as_ref().map_or("null", Payload::get);
        output.text(&format!("{}\n", clean_lines(result)))?;
    }
    verdict(&target.workflow_id, &outcome, limit)
}

async fn wait(
    target: &TargetArgs,
    limit: Option<Duration>,
    follow: bool,
    client: &Client,
    output: &Output,
) -> Result<Outcome> {
    let began = Instant::now();
    let mut has_warned = false;
    loop {
        let left = limit.map(|limit| limit.saturating_sub(began.elapsed()));
        let call = client
            .in_namespace(Method::GET, &["workflows", &target.workflow_id, "result"])
            .query_if("run_id", target.run_id.as_ref())
            .query_if("follow", (!follow).then_some(&"false".to_owned()))
            .wait(left.unwrap_or(LONG_POLL).min(LONG_POLL));
        let outcome: Outcome = call.send().await?;
        if outcome.status != Status::Running {
            return Ok(outcome);
        }
        if !has_warned {
            has_warned = warn_if_blocked(target, client, output).await?;
        }
        if limit.is_some_and(|limit| began.elapsed() >= limit) {
            return Ok(outcome);
        }
    }
}

/// Whoever waits for a run that cannot go on should know it.
async fn warn_if_blocked(target: &TargetArgs, client: &Client, output: &Output) -> Result<bool> {
    let description: Description = client
        .in_namespace(Method::GET, &["workflows", &target.workflow_id])
        .query_if("run_id", target.run_id.as_ref())
        .send()
        .await?;
    let Some(blocked) = &description.execution.blocked else {
        return Ok(false);
    };
    let first = blocked.message.lines().next().unwrap_or_default();
    output.progress(&format!(
        "{} is blocked ({}): {first}; see `steadfast describe`",
        target.workflow_id, blocked.code
    ));
    Ok(true)
}

fn verdict(workflow_id: &str, outcome: &Outcome, limit: Option<Duration>) -> Result<()> {
    let id = clean(workflow_id);
    let unsuccessful = |text: String| Err(Error::new(Kind::Unsuccessful, text));
    match outcome.status {
        Status::Completed => Ok(()),
        Status::Running => {
            let ms = limit.map_or(0, |limit| {
                u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)
            });
            unsuccessful(format!(
                "{id} is still running after {}",
                duration::show(ms)
            ))
        }
        Status::Failed => unsuccessful(format!("{id} failed: {}", failure(outcome))),
        Status::Canceled => unsuccessful(format!("{id} was canceled: {}", failure(outcome))),
        Status::Terminated => {
            let reason = outcome
                .reason
                .as_deref()
                .filter(|reason| !reason.is_empty());
            unsuccessful(format!(
                "{id} was terminated: {}",
                reason.unwrap_or("no reason given")
            ))
        }
        Status::TimedOut => unsuccessful(format!(
            "{id} timed out: {}",
            outcome.reason.as_deref().unwrap_or("no reason given")
        )),
        Status::ContinuedAsNew => unsuccessful(format!(
            "this run of {id} went on as run {}",
            outcome.new_run_id.as_deref().unwrap_or("unknown")
        )),
    }
}

/// The chain of a failure, with the code of its root.
fn failure(outcome: &Outcome) -> String {
    let Some(failure) = &outcome.failure else {
        return "no reason given".to_owned();
    };
    let root = failure
        .frames
        .last()
        .map(|frame| frame.code.as_str())
        .unwrap_or_default();
    if root.is_empty() {
        failure.to_string()
    } else {
        format!("{failure} [{root}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_api::wire::Failure;

    fn outcome(status: Status) -> Outcome {
        Outcome {
            status,
            result: None,
            failure: Some(Failure::application("card-declined", "no money")),
            reason: Some(String::new()),
            identity: None,
            closed_at: None,
            new_run_id: None,
        }
    }

    #[test]
    fn only_completed_workflows_are_a_success() {
        assert!(verdict("w", &outcome(Status::Completed), None).is_ok());
        let cases = [
            (Status::Failed, "w failed: no money [card-declined]"),
            (Status::Canceled, "w was canceled: no money [card-declined]"),
            (Status::Terminated, "w was terminated: no reason given"),
            (Status::Running, "w is still running after 2s"),
        ];
        for (status, text) in cases {
            let error = verdict("w", &outcome(status), Some(Duration::from_secs(2))).unwrap_err();
            assert_eq!(
                (error.message.as_str(), error.kind),
                (text, Kind::Unsuccessful)
            );
        }
    }
}
