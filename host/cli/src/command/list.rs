//! `list`: which workflows there are.

use clap::{Args, ValueEnum};
use reqwest::Method;
use steadfast_api::wire::{Execution, ExecutionList, Status};

use crate::client::Client;
use crate::duration;
use crate::error::Result;
use crate::output::{Output, Tone};
use crate::table::{Column, Table};
use crate::wiring;

/// Rows that one request asks for.
const PAGE: usize = 1000;

/// Where a workflow stands.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum StatusFilter {
    Running,
    Completed,
    Failed,
    Canceled,
    Terminated,
    TimedOut,
    ContinuedAsNew,
}

/// List workflows, newest first
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only workflows of this status
    #[arg(long, value_enum)]
    status: Option<StatusFilter>,

    /// Only workflows of this type
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    workflow_type: Option<String>,

    /// Only runs of this workflow id
    #[arg(short, long, value_name = "ID")]
    workflow_id: Option<String>,

    /// Only workflows that cannot make progress
    #[arg(long)]
    blocked: bool,

    /// Most workflows to list
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 50)]
    limit: usize,
}

pub(crate) async fn run(args: ListArgs, client: &Client, output: &Output) -> Result<()> {
    let (executions, has_more) = read(&args, client).await?;
    if output.is_json() {
        return output.json(&executions);
    }
    if executions.is_empty() {
        output.progress("no workflows");
        return Ok(());
    }
    output.text(&table(&executions).render(output))?;
    if has_more {
        output.progress(&format!(
            "there are more: --limit shows more than {}",
            args.limit
        ));
    }
    Ok(())
}

async fn read(args: &ListArgs, client: &Client) -> Result<(Vec<Execution>, bool)> {
    let mut executions = Vec::new();
    let mut token: Option<String> = None;
    loop {
        let left = args.limit.saturating_sub(executions.len());
        if left == 0 {
            return Ok((executions, token.is_some()));
        }
        let page: ExecutionList = client
            .in_namespace(Method::GET, &["workflows"])
            .query_if("status", args.status.map(name))
            .query_if("workflow_type", args.workflow_type.as_ref())
            .query_if("workflow_id", args.workflow_id.as_ref())
            .query_if("blocked", args.blocked.then_some(true))
            .query("limit", &left.min(PAGE))
            .query_if("page_token", token.as_ref())
            .send()
            .await?;
        executions.extend(page.executions);
        token = page.next_page_token;
        if token.is_none() {
            return Ok((executions, false));
        }
    }
}

fn name(status: StatusFilter) -> &'static str {
    match status {
        StatusFilter::Running => "running",
        StatusFilter::Completed => "completed",
        StatusFilter::Failed => "failed",
        StatusFilter::Canceled => "canceled",
        StatusFilter::Terminated => "terminated",
        StatusFilter::TimedOut => "timed-out",
        StatusFilter::ContinuedAsNew => "continued-as-new",
    }
}

fn table(executions: &[Execution]) -> Table {
    let mut table = Table::new([
        Column::flexible("WORKFLOW ID"),
        Column::flexible("TYPE"),
        Column::fixed("STATUS"),
        Column::fixed("STARTED"),
        Column::number("TOOK"),
        Column::flexible("RUN ID"),
    ]);
    for execution in executions {
        let end = execution.closed_at.map_or_else(wiring::now, |time| time.0);
        let (tone, status) = status(execution);
        let plain = |text: &str| (Tone::Plain, text.to_owned());
        table.row([
            (Tone::Strong, execution.workflow_id.clone()),
            plain(&execution.workflow_type),
            (tone, status.to_owned()),
            plain(&seconds(&execution.started_at.to_string())),
            plain(&duration::show(end.since(execution.started_at.0).0)),
            (Tone::Faint, execution.run_id.clone()),
        ]);
    }
    table
}

/// `2026-01-31T12:00:00.000Z` as `2026-01-31 12:00:00`.
fn seconds(time: &str) -> String {
    time.split('.').next().unwrap_or(time).replace('T', " ")
}

/// What to call where an execution stands, and in which tone.
pub(crate) fn status(execution: &Execution) -> (Tone, &'static str) {
    match execution.status {
        Status::Running if execution.blocked.is_some() => (Tone::Bad, "blocked"),
        Status::Running => (Tone::Plain, "running"),
        Status::Completed => (Tone::Good, "completed"),
        Status::Failed => (Tone::Bad, "failed"),
        Status::Canceled => (Tone::Warning, "canceled"),
        Status::Terminated => (Tone::Warning, "terminated"),
        Status::ContinuedAsNew => (Tone::Plain, "continued-as-new"),
        Status::TimedOut => (Tone::Bad, "timed-out"),
    }
}
