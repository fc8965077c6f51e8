//! `describe`: everything known about a workflow now.

use clap::Args;
use reqwest::Method;
use steadfast_api::wire::{Blocked, Description, Payload, PendingActivity, TaskState, Time};

use crate::client::Client;
use crate::command::{TargetArgs, list};
use crate::duration;
use crate::error::Result;
use crate::output::{Output, Tone, clean_lines, count};
use crate::wiring;

/// Show where a workflow stands: pending activities, timers, and why it is blocked
#[derive(Debug, Args)]
pub(crate) struct DescribeArgs {
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) async fn run(args: DescribeArgs, client: &Client, output: &Output) -> Result<()> {
    let description: Description = client
        .in_namespace(Method::GET, &["workflows", &args.target.workflow_id])
        .query_if("run_id", args.target.run_id.as_ref())
        .send()
        .await?;
    if output.is_json() {
        return output.json(&description);
    }
    output.text(&text(&description, output))
}

fn text(description: &Description, output: &Output) -> String {
    let execution = &description.execution;
    let (tone, status) = list::status(execution);
    let mut text = String::new();
    let mut line = |label: &str, tone, value: &str| {
        text.push_str(&format!("{label:<12} {}\n", output.paint(tone, value)));
    };
    line("workflow id", Tone::Strong, &execution.workflow_id);
    line("run id", Tone::Plain, &execution.run_id);
    line("type", Tone::Plain, &execution.workflow_type);
    line("status", tone, status);
    line("started", Tone::Plain, &execution.started_at.to_string());
    if let Some(closed_at) = execution.closed_at {
        line("closed", Tone::Plain, &closed_at.to_string());
    }
    line(
        "history",
        Tone::Plain,
        &count(description.history_length, "event"),
    );
    line("task queue", Tone::Plain, &execution.task_queue);
    line("component", Tone::Plain, &execution.component);
    for (label, text) in chain_lines(description) {
        line(label, Tone::Plain, &text);
    }
    if description.cancel_requested {
        line("cancel", Tone::Warning, "requested");
    }
    for activity in &description.activities {
        line("activity", Tone::Plain, &activity_text(activity));
        if let Some(details) = &activity.heartbeat_details {
            line(
                "",
                Tone::Faint,
                &format!("heartbeat {}", Payload::get(details)),
            );
        }
        if let Some(failure) = &activity.last_failure {
            line("", Tone::Bad, &format!("last failure: {failure}"));
        }
    }
    for timer in &description.timers {
        line(
            "timer",
            Tone::Plain,
            &format!("#{} fires {}", timer.seq, until(timer.fire_at)),
        );
    }
    for text in child_lines(description) {
        line("child", Tone::Plain, &text);
    }
    for update in &description.updates {
        let stage = if update.is_accepted {
            "accepted, its handler runs"
        } else {
            "waits for the workflow"
        };
        line(
            "update",
            Tone::Plain,
            &format!(
                "{} [{}]: {stage} since {}",
                update.name, update.update_id, update.since
            ),
        );
    }
    if let Some(blocked) = &execution.blocked {
        text.push_str(&blocked_text(blocked, output));
    }
    text
}

/// What was asked for at the start, and where the run stands in its chain.
fn chain_lines(description: &Description) -> Vec<(&'static str, String)> {
    let (options, link) = (&description.options, &description.link);
    let mut lines = Vec::new();
    let mut line = |label, text: Option<String>| lines.extend(text.map(|text| (label, text)));
    let given = |text: &str| (!text.is_empty()).then(|| clean_lines(text));
    line("summary", given(&options.summary));
    line("details", given(&options.details));
    line("cron", given(&options.cron));
    let parent = description.parent.as_ref();
    line(
        "parent",
        parent.map(|parent| format!("{} (run {})", parent.workflow_id, parent.run_id)),
    );
    let delayed = description.execution.delayed_until;
    line(
        "delayed",
        delayed.map(|at| format!("its code runs {}", until(at))),
    );
    line("expires", link.expires_at.map(until));
    let limit = options.run_timeout_ms;
    line("run timeout", limit.map(duration::show));
    line("first run", link.first_run_id.clone());
    line("run before", link.continued_run_id.clone());
    let lost = description.execution.undelivered_signals;
    line(
        "signals",
        lost.map(|lost| format!("{lost} never reached the code")),
    );
    for (name, value) in &options.memo {
        line(
            "memo",
            Some(format!("{name} = {}", clean_lines(value.get()))),
        );
    }
    lines
}

fn child_lines(description: &Description) -> impl Iterator<Item = String> + '_ {
    description.children.iter().map(|child| {
        let state = match &child.run_id {
            Some(run_id) => format!("runs (first run {run_id})"),
            None => "is being started".to_owned(),
        };
        let (id, kind) = (&child.workflow_id, &child.workflow_type);
        format!("#{} {id} ({kind}): {state}", child.seq)
    })
}

fn activity_text(activity: &PendingActivity) -> String {
    let state = match activity.state {
        TaskState::Ready => {
            format!(
                "waits for a worker of queue {:?}",
                activity.options.task_queue
            )
        }
        TaskState::Backoff => match activity.next_attempt_at {
            Some(time) => format!("next attempt {}", until(time)),
            None => "waits for its next attempt".to_owned(),
        },
        TaskState::Started => {
            format!(
                "runs on {}",
                activity.worker.as_deref().unwrap_or("a worker")
            )
        }
    };
    let since = activity
        .since
        .map(|since| format!(" for {}", duration::show(wiring::now().since(since.0).0)));
    let cancel = if activity.cancel_requested {
        ", cancel requested"
    } else {
        ""
    };
    format!(
        "#{} {}: attempt {}, {state}{}{cancel}",
        activity.seq,
        activity.activity_type,
        activity.attempt,
        since.unwrap_or_default()
    )
}

/// `in 5s (2026-...)`.
fn until(time: Time) -> String {
    let left = time.0.since(wiring::now()).0;
    if left == 0 {
        format!("now ({time})")
    } else {
        format!("in {} ({time})", duration::show(left))
    }
}

fn blocked_text(blocked: &Blocked, output: &Output) -> String {
    let retry = match blocked.retry_at {
        Some(time) => format!("tried again {}", until(time)),
        None => {
            "not tried again by itself: deploy code that fits, then `steadfast unblock`".to_owned()
        }
    };
    let message = clean_lines(&blocked.message).replace('\n', "\n             ");
    format!(
        "{:<12} {} since {}, {}; {retry}\n             {message}\n",
        "blocked",
        output.paint(Tone::Bad, &blocked.code),
        blocked.since,
        count(u64::from(blocked.attempts), "attempt"),
    )
}
