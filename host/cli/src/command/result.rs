//! `result`: waits for a workflow's end and prints what it returned.

use std::time::Duration;

use clap::Args;

use crate::client::Client;
use crate::command::TargetArgs;
use crate::duration;
use crate::error::Result;
use crate::outcome;
use crate::output::Output;

/// Wait for a workflow's end and print its result
///
/// Exits with 7 when the workflow failed, was canceled or terminated, or is still running after the
/// timeout.
#[derive(Debug, Args)]
pub(crate) struct ResultArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Wait at most this long; default: until it ends
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    timeout: Option<Duration>,

    /// Only of this run: runs that follow it are not waited for
    #[arg(long)]
    no_follow: bool,
}

pub(crate) async fn run(args: ResultArgs, client: &Client, output: &Output) -> Result<()> {
    outcome::wait_and_print(&args.target, args.timeout, !args.no_follow, client, output).await
}
