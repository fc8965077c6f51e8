//! `query`: asks a workflow something.

use clap::{Args, ValueEnum};
use reqwest::Method;
use steadfast_api::wire::{Payload, QueryAnswer, QueryWorkflow, RejectCondition};

use crate::client::Client;
use crate::command::TargetArgs;
use crate::error::Result;
use crate::input::InputArgs;
use crate::output::{Output, clean_lines};

/// Ask a workflow something; `__metadata` tells what it understands
#[derive(Debug, Args)]
pub(crate) struct QueryArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Name of the query
    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    input: InputArgs,

    /// Fail instead of asking a run in such a state
    #[arg(long, value_enum, value_name = "CONDITION")]
    reject: Option<Reject>,
}

/// Runs that are not asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Reject {
    /// Runs that have ended
    NotOpen,
    /// Runs that have ended otherwise than with a result
    NotCompletedCleanly,
}

pub(crate) async fn run(args: QueryArgs, client: &Client, output: &Output) -> Result<()> {
    let body = QueryWorkflow {
        input: args.input.read()?,
        reject: args.reject.map(|reject| match reject {
            Reject::NotOpen => RejectCondition::NotOpen,
            Reject::NotCompletedCleanly => RejectCondition::NotCompletedCleanly,
        }),
    };
    let path = ["workflows", &args.target.workflow_id, "queries", &args.name];
    let answer: QueryAnswer = client
        .in_namespace(Method::POST, &path)
        .query_if("run_id", args.target.run_id.as_ref())
        .json(&body)?
        .send()
        .await?;
    if output.is_json() {
        return output.json(&answer);
    }
    output.text(&format!("{}\n", clean_lines(Payload::get(&answer.result))))
}
