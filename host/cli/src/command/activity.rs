//! `activity`: pending activities by their ids: those that need an operator, and what one does.

use std::time::Duration;

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::json;
use steadfast_api::wire::{
    ActivityOperation, CompleteActivity, DeadLetter, DeadLetterList, FailActivity, Failure,
    OperateActivities, OperatedActivities, Reason, ResetActivity, Unpause, UpdateOptions,
};

use crate::client::{self, Client};
use crate::command::TargetArgs;
use crate::duration;
use crate::error::Result;
use crate::input::InputArgs;
use crate::output::{Output, Tone, clean};
use crate::table::{Column, Table};

/// Most activities that are read at once.
const PAGE: usize = 100;

/// What to do with pending activities.
#[derive(Debug, Subcommand)]
pub(crate) enum ActivityCommand {
    List(ListArgs),
    Pause(PauseArgs),
    Unpause(UnpauseArgs),
    Reset(ResetArgs),
    UpdateOptions(UpdateOptionsArgs),
    Drop(DropArgs),
    Complete(CompleteArgs),
    Fail(FailArgs),
}

/// List activities that keep failing or are paused, of all workflows
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Failed attempts from which on an activity counts; default: 10
    #[arg(long, value_name = "COUNT")]
    min_attempts: Option<u32>,

    /// Most activities to list
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 50)]
    limit: usize,
}

/// Which activities of a workflow.
#[derive(Debug, Args)]
#[group(skip)]
struct WhichArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Only the one of this id, or this number
    #[arg(long, value_name = "ACTIVITY", required_unless_present_any = ["activity_type", "all"])]
    activity_id: Option<String>,

    /// Only those of this type
    #[arg(long = "type", value_name = "TYPE", conflicts_with = "activity_id")]
    activity_type: Option<String>,

    /// All that are pending
    #[arg(long, conflicts_with_all = ["activity_id", "activity_type"])]
    all: bool,
}

/// Start no further attempt
///
/// A running attempt is told with its next heartbeat.
#[derive(Debug, Args)]
pub(crate) struct PauseArgs {
    #[command(flatten)]
    which: WhichArgs,

    /// Why
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

/// Go on with the next attempt now
#[derive(Debug, Args)]
pub(crate) struct UnpauseArgs {
    #[command(flatten)]
    which: WhichArgs,

    /// Count attempts from 1 again
    #[arg(long)]
    reset_attempts: bool,

    /// Forget the last heartbeat's details
    #[arg(long)]
    reset_heartbeat: bool,

    /// Begin after a random time up to this
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    jitter: Option<Duration>,
}

/// Begin again: attempts count from 1, limits from now
///
/// A running attempt goes on; if it fails, the next one is the first. This is also what sends an
/// activity on that waits for an operator.
#[derive(Debug, Args)]
pub(crate) struct ResetArgs {
    #[command(flatten)]
    which: WhichArgs,

    /// Forget the last heartbeat's details
    #[arg(long)]
    reset_heartbeat: bool,

    /// Stay paused
    #[arg(long)]
    keep_paused: bool,

    /// Take back what operators changed of the options
    #[arg(long)]
    restore_original_options: bool,

    /// Begin after a random time up to this
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    jitter: Option<Duration>,
}

/// Change options; what is not given stays, 0 takes a limit away
#[derive(Debug, Args)]
pub(crate) struct UpdateOptionsArgs {
    #[command(flatten)]
    which: WhichArgs,

    /// Take back earlier changes first
    #[arg(long)]
    restore_original_options: bool,

    /// Where its tasks go
    #[arg(long, value_name = "QUEUE")]
    task_queue: Option<String>,

    /// Limit over all attempts
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    schedule_to_close: Option<Duration>,

    /// Limit of one attempt
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    start_to_close: Option<Duration>,

    /// Longest gap between two heartbeats
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    heartbeat: Option<Duration>,

    /// Wait before the second attempt
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    initial_interval: Option<Duration>,

    /// Attempts in total; 0: without a limit
    #[arg(long, value_name = "COUNT")]
    maximum_attempts: Option<u32>,
}

/// Give up: the workflow is told that the activity failed for good
#[derive(Debug, Args)]
pub(crate) struct DropArgs {
    #[command(flatten)]
    which: WhichArgs,

    /// Why; the workflow is told
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

/// Say that an activity has this result
#[derive(Debug, Args)]
pub(crate) struct CompleteArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// The activity's id, or its number
    #[arg(value_name = "ACTIVITY")]
    activity_id: String,

    #[command(flatten)]
    result: InputArgs,
}

/// Say that the current attempt of an activity failed
#[derive(Debug, Args)]
pub(crate) struct FailArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// The activity's id, or its number
    #[arg(value_name = "ACTIVITY")]
    activity_id: String,

    /// The failure's code
    #[arg(long, value_name = "CODE", default_value = "failed")]
    code: String,

    /// What happened
    #[arg(long, value_name = "TEXT", default_value = "")]
    message: String,
}

impl ActivityCommand {
    pub(crate) async fn run(self, client: &Client, output: &Output) -> Result<()> {
        let (which, operation, verb) = match self {
            Self::List(args) => return list(&args, client, output).await,
            Self::Complete(args) => return complete(args, client, output).await,
            Self::Fail(args) => return fail(args, client, output).await,
            Self::Pause(PauseArgs { which, reason }) => {
                (which, ActivityOperation::Pause(Reason { reason }), "paused")
            }
            Self::Drop(DropArgs { which, reason }) => {
                (which, ActivityOperation::Drop(Reason { reason }), "dropped")
            }
            Self::Unpause(args) => {
                let how = Unpause {
                    reset_attempts: args.reset_attempts,
                    reset_heartbeat: args.reset_heartbeat,
                    jitter_ms: args.jitter.map_or(0, ms),
                };
                (args.which, ActivityOperation::Unpause(how), "unpaused")
            }
            Self::Reset(args) => {
                let how = ResetActivity {
                    reset_heartbeat: args.reset_heartbeat,
                    keep_paused: args.keep_paused,
                    restore_original_options: args.restore_original_options,
                    jitter_ms: args.jitter.map_or(0, ms),
                };
                (args.which, ActivityOperation::Reset(how), "reset")
            }
            Self::UpdateOptions(args) => {
                let options = UpdateOptions {
                    restore_original_options: args.restore_original_options,
                    task_queue: args.task_queue,
                    schedule_to_close_ms: args.schedule_to_close.map(ms),
                    start_to_close_ms: args.start_to_close.map(ms),
                    heartbeat_ms: args.heartbeat.map(ms),
                    initial_interval_ms: args.initial_interval.map(ms),
                    maximum_attempts: args.maximum_attempts,
                    ..UpdateOptions::default()
                };
                (
                    args.which,
                    ActivityOperation::UpdateOptions(options),
                    "changed",
                )
            }
        };
        operate(which, operation, verb, client, output).await
    }
}

async fn operate(
    which: WhichArgs,
    operation: ActivityOperation,
    verb: &str,
    client: &Client,
    output: &Output,
) -> Result<()> {
    let body = OperateActivities {
        activity_id: which.activity_id,
        activity_type: which.activity_type,
        all: which.all,
        operation,
        identity: Some(client::identity()),
    };
    let path = [
        "workflows",
        &which.target.workflow_id,
        "activity-operations",
    ];
    let call = client.in_namespace(Method::POST, &path);
    let call = call.query_if("run_id", which.target.run_id.as_ref());
    let reached: OperatedActivities = call.json(&body)?.send().await?;
    if output.is_json() {
        return output.json(&reached);
    }
    let noun = if reached.count == 1 {
        "activity"
    } else {
        "activities"
    };
    output.text(&format!(
        "{} {} {noun} of {}\n",
        output.paint(Tone::Good, verb),
        reached.count,
        output.paint(Tone::Strong, &which.target.workflow_id),
    ))
}

async fn complete(args: CompleteArgs, client: &Client, output: &Output) -> Result<()> {
    let body = CompleteActivity {
        result: args.result.read()?,
    };
    report(&args.target, &args.activity_id, "complete", &body, client).await?;
    said(&args.target, &args.activity_id, "completed", output)
}

async fn fail(args: FailArgs, client: &Client, output: &Output) -> Result<()> {
    let body = FailActivity {
        failure: Failure::application(&args.code, &args.message),
    };
    report(&args.target, &args.activity_id, "fail", &body, client).await?;
    said(&args.target, &args.activity_id, "failed", output)
}

async fn report<T: serde::Serialize>(
    target: &TargetArgs,
    activity_id: &str,
    what: &str,
    body: &T,
    client: &Client,
) -> Result<()> {
    let path = [
        "workflows",
        &target.workflow_id,
        "activities",
        activity_id,
        what,
    ];
    let call = client.in_namespace(Method::POST, &path);
    let call = call.query_if("run_id", target.run_id.as_ref());
    call.json(body)?.done().await
}

fn said(target: &TargetArgs, activity_id: &str, verb: &str, output: &Output) -> Result<()> {
    if output.is_json() {
        let (workflow_id, verb) = (&target.workflow_id, verb);
        return output.json(&json!({
            "workflow_id": workflow_id, "activity_id": activity_id, "reported": verb,
        }));
    }
    output.text(&format!(
        "{} activity {} of {}\n",
        output.paint(Tone::Good, verb),
        clean(activity_id),
        output.paint(Tone::Strong, &target.workflow_id),
    ))
}

async fn list(args: &ListArgs, client: &Client, output: &Output) -> Result<()> {
    let mut activities: Vec<DeadLetter> = Vec::new();
    let mut token: Option<String> = None;
    while activities.len() < args.limit {
        let left = args.limit.saturating_sub(activities.len()).min(PAGE);
        let page: DeadLetterList = client
            .in_namespace(Method::GET, &["dead-letters"])
            .query_if("min_attempts", args.min_attempts)
            .query("limit", &left)
            .query_if("page_token", token.as_ref())
            .send()
            .await?;
        activities.extend(page.activities);
        token = page.next_page_token;
        if token.is_none() {
            break;
        }
    }
    activities.truncate(args.limit);
    if output.is_json() {
        return output.json(&activities);
    }
    if activities.is_empty() {
        output.progress("no activity keeps failing or is paused");
        return Ok(());
    }
    output.text(&table(&activities).render(output))
}

fn table(activities: &[DeadLetter]) -> Table {
    let mut table = Table::new([
        Column::flexible("WORKFLOW ID"),
        Column::fixed("ACTIVITY"),
        Column::flexible("TYPE"),
        Column::number("ATTEMPT"),
        Column::fixed("STATE"),
        Column::flexible("LAST FAILURE"),
    ]);
    for DeadLetter {
        execution,
        activity,
    } in activities
    {
        let is_paused = activity.paused.is_some();
        let failure = activity.last_failure.as_ref().map(ToString::to_string);
        table.row([
            (Tone::Strong, execution.workflow_id.clone()),
            (Tone::Plain, activity.activity_id.clone()),
            (Tone::Plain, activity.activity_type.clone()),
            (Tone::Plain, activity.attempt.to_string()),
            if is_paused {
                (Tone::Warning, "paused".to_owned())
            } else {
                (Tone::Bad, "failing".to_owned())
            },
            (Tone::Plain, failure.unwrap_or_default()),
        ]);
    }
    table
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
