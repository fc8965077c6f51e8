//! `history`: the events of a run.

use clap::Args;
use reqwest::Method;
use steadfast_api::wire::{Event, HistoryPage, Time};

use crate::client::{Client, LONG_POLL};
use crate::command::TargetArgs;
use crate::error::Result;
use crate::event_line;
use crate::export::Export;
use crate::output::{Output, Tone};

/// Events that one request asks for.
const PAGE: u32 = 1000;

/// Show the history of a workflow
///
/// With `--output json` it is one document that `steadfast replay` reads; with `--follow` as well,
/// one line per event.
#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Go on printing events as they come, until the run ends
    #[arg(short, long)]
    follow: bool,
}

pub(crate) async fn run(args: HistoryArgs, client: &Client, output: &Output) -> Result<()> {
    let mut reader = Reader {
        args,
        client,
        from: 1,
        run_id: None,
    };
    if output.is_json() && !reader.args.follow {
        let (mut events, mut is_closed) = (Vec::new(), false);
        while let Some(page) = reader.next(false).await? {
            is_closed = page.is_closed;
            events.extend(page.events);
        }
        return output.json(&Export::new(events, is_closed));
    }
    let mut start = None;
    loop {
        let is_waiting = reader.args.follow && reader.from > 1;
        let Some(page) = reader.next(is_waiting).await? else {
            return Ok(());
        };
        for event in &page.events {
            print(event, &mut start, output)?;
        }
    }
}

fn print(event: &Event, start: &mut Option<Time>, output: &Output) -> Result<()> {
    if output.is_json() {
        return output.json_line(event);
    }
    let began = match *start {
        Some(start) => start,
        None => {
            *start = Some(event.time);
            output.text(&heading(event, output))?;
            event.time
        }
    };
    output.text(&event_line::line(event, began, output))
}

fn heading(event: &Event, output: &Output) -> String {
    let part = |text: &Option<String>| text.clone().unwrap_or_default();
    let id = output.paint(Tone::Strong, &part(&event.workflow_id));
    let run = output.paint(
        Tone::Faint,
        &format!("(run {}, {})", part(&event.run_id), event.time),
    );
    format!("{id} {run}\n{}", event_line::titles(output))
}

/// Reads a history in pages.
struct Reader<'a> {
    args: HistoryArgs,
    client: &'a Client,
    from: u64,
    /// The run that the first page was of: a new run of the same id must not be mixed in.
    run_id: Option<String>,
}

impl Reader<'_> {
    /// The next page; `None` when there are no more events, or none yet and nobody waits.
    async fn next(&mut self, wait: bool) -> Result<Option<HistoryPage>> {
        if self.from == 0 {
            return Ok(None);
        }
        let id = &self.args.target.workflow_id;
        let call = self
            .client
            .in_namespace(Method::GET, &["workflows", id, "history"])
            .query_if(
                "run_id",
                self.run_id.as_ref().or(self.args.target.run_id.as_ref()),
            )
            .query("from", &self.from)
            .query("limit", &PAGE);
        let call = if wait { call.wait(LONG_POLL) } else { call };
        let page: HistoryPage = call.send().await?;
        if self.run_id.is_none() {
            self.run_id = page.events.first().and_then(|event| event.run_id.clone());
        }
        // 0 stands for the end: events are numbered from 1.
        self.from = page.next.unwrap_or(0);
        if page.events.is_empty() && !self.args.follow {
            return Ok(None);
        }
        Ok(Some(page))
    }
}
