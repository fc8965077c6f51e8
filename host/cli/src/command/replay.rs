//! `replay`: whether recorded histories fit a component, without any server.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use steadfast_engine::replay::Drift;
use steadfast_model::{ComponentDigest, Event};
use steadfast_ports::Guests;
use steadfast_ports::guest::{self, Stop};
use steadfast_runtime::activation;

use crate::command::component;
use crate::error::{Error, Kind, Result};
use crate::export::Export;
use crate::input;
use crate::output::{Output, Tone, clean_lines, count};
use crate::wiring;

/// Replay exported histories against a component, without a server
///
/// Each HISTORY is a file that `steadfast history ID --output json` wrote (`-` reads standard
/// input). A history is compatible when the component makes every recorded command again. A command
/// whose input differs drifts: the recorded input stays what the activity got. Exits with 7 when a
/// history diverges.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Component to replay against
    #[arg(long, value_name = "FILE")]
    component: PathBuf,

    /// Exported histories
    #[arg(value_name = "HISTORY", required = true)]
    histories: Vec<PathBuf>,

    /// Take drifting inputs for a failure too
    #[arg(long)]
    strict: bool,
}

/// What came of one history.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Compatible {
        new_commands: usize,
        drifts: Vec<Drift>,
        drift_count: u64,
    },
    Diverging(Divergence),
    /// The code failed: a trap, a limit, a type that it does not have.
    Failed(String),
}

/// Where code and history part.
#[derive(Debug, PartialEq, Eq)]
struct Divergence {
    event: String,
    expected: String,
    actual: String,
}

pub(crate) fn run(args: &ReplayArgs, output: &Output) -> Result<()> {
    let component = std::fs::read(&args.component)
        .map_err(|error| Error::file("read", &args.component, &error))?;
    let sandbox = wiring::scratch_sandbox()?;
    let admitted = sandbox
        .admit(&component)
        .map_err(|refusal| component::refused(&refusal))?;
    let mut results = Vec::new();
    for path in &args.histories {
        let whose = path.display().to_string();
        let events = Export::parse(&input::text_of(path)?, &whose)?;
        let length = events.len();
        let verdict = replay(&sandbox, admitted.digest, &component, events);
        if !output.is_json() {
            output.text(&text(path, length, &verdict, args.strict, output))?;
        }
        results.push((path, length, verdict));
    }
    if output.is_json() {
        let values = results.iter().map(|(path, length, verdict)| {
            json!({
                "history": path.display().to_string(),
                "events": length,
                "is_failure": is_failure(verdict, args.strict),
                "result": json(verdict),
            })
        });
        output.json(&values.collect::<Vec<_>>())?;
    }
    let failures = results
        .iter()
        .filter(|(.., verdict)| is_failure(verdict, args.strict))
        .count();
    if failures == 0 {
        return Ok(());
    }
    let total = results.len();
    Err(Error::new(
        Kind::Unsuccessful,
        format!("{failures} of {total} histories do not fit"),
    ))
}

fn replay(
    guests: &dyn Guests,
    digest: ComponentDigest,
    component: &[u8],
    events: Vec<Event>,
) -> Verdict {
    let fetch = || Ok(Some(component.to_vec()));
    let (_live, result) = activation::begin(guests, digest, &fetch, events, false);
    match result {
        Ok(yielded) => Verdict::Compatible {
            new_commands: yielded.commands.len(),
            drifts: yielded.drifts.0,
            drift_count: yielded.drifts.1,
        },
        Err(guest::Error::Stopped(Stop::Nondeterminism(text))) => {
            Verdict::Diverging(divergence(&text))
        }
        Err(error @ guest::Error::Trap { .. }) => {
            let guest::Error::Trap { backtrace, .. } = &error else {
                return Verdict::Failed(error.to_string());
            };
            Verdict::Failed(format!("{error}\n{backtrace}").trim_end().to_owned())
        }
        Err(error) => Verdict::Failed(error.to_string()),
    }
}

/// Takes the engine's sentence about a mismatch apart; one of another form is kept whole.
fn divergence(text: &str) -> Divergence {
    let parts = text
        .strip_prefix("nondeterminism at event ")
        .and_then(|rest| rest.split_once(": the history has "))
        .and_then(|(event, rest)| Some((event, rest.rsplit_once(", the code made ")?)));
    match parts {
        Some((event, (expected, actual))) => Divergence {
            event: event.to_owned(),
            expected: expected.to_owned(),
            actual: actual.to_owned(),
        },
        None => Divergence {
            event: String::new(),
            expected: "the recorded history".to_owned(),
            actual: text.to_owned(),
        },
    }
}

fn is_failure(verdict: &Verdict, strict: bool) -> bool {
    match verdict {
        Verdict::Compatible { drift_count, .. } => strict && *drift_count > 0,
        Verdict::Diverging(_) | Verdict::Failed(_) => true,
    }
}

fn text(path: &Path, length: usize, verdict: &Verdict, strict: bool, output: &Output) -> String {
    let name = output.paint(Tone::Strong, &path.display().to_string());
    let events = count(length as u64, "event");
    let line = |label: &str, value: &str| format!("  {label:<9} {}\n", clean_lines(value));
    match verdict {
        Verdict::Compatible {
            new_commands,
            drifts,
            drift_count,
        } => {
            let tone = if *drift_count > 0 {
                Tone::Warning
            } else {
                Tone::Good
            };
            let label = if strict && *drift_count > 0 {
                "drifting"
            } else {
                "compatible"
            };
            let mut text = format!("{} {name} ({events})\n", output.paint(tone, label));
            if *new_commands > 0 {
                text.push_str(&line("next", &count(*new_commands as u64, "new command")));
            }
            for drift in drifts {
                let event = drift.event;
                text.push_str(&line("drift", &format!("event {event}: {}", drift.what)));
            }
            let hidden = drift_count.saturating_sub(drifts.len() as u64);
            if hidden > 0 {
                text.push_str(&line("drift", &format!("and {hidden} more")));
            }
            text
        }
        Verdict::Diverging(divergence) => {
            let mut text = format!(
                "{} {name} ({events})\n",
                output.paint(Tone::Bad, "diverging")
            );
            if !divergence.event.is_empty() {
                text.push_str(&line("event", &divergence.event));
            }
            text.push_str(&line("expected", &divergence.expected));
            text.push_str(&line("actual", &divergence.actual));
            text
        }
        Verdict::Failed(error) => {
            let label = output.paint(Tone::Bad, "failing");
            format!("{label} {name} ({events})\n{}", line("error", error))
        }
    }
}

fn json(verdict: &Verdict) -> Value {
    match verdict {
        Verdict::Compatible {
            new_commands,
            drifts,
            drift_count,
        } => {
            let drifts = drifts
                .iter()
                .map(|drift| json!({"event": drift.event.0, "what": drift.what}))
                .collect::<Vec<_>>();
            json!({
                "verdict": "compatible", "new_commands": new_commands,
                "drift_count": drift_count, "drifts": drifts,
            })
        }
        Verdict::Diverging(Divergence {
            event,
            expected,
            actual,
        }) => json!({
            "verdict": "diverging", "event": event.parse::<u64>().ok(),
            "expected": expected, "actual": actual,
        }),
        Verdict::Failed(error) => json!({"verdict": "failing", "error": error}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_engine::Mismatch;
    use steadfast_model::EventNumber;

    #[test]
    fn the_engines_sentence_is_taken_apart() {
        let mismatch = Mismatch {
            event: EventNumber(5),
            expected: "ActivityTaskScheduled #2 charge".to_owned(),
            actual: "StartTimer 2000 ms".to_owned(),
        };
        let divergence = divergence(&mismatch.to_string());
        assert_eq!(divergence.event, "5");
        assert_eq!(divergence.expected, mismatch.expected);
        assert_eq!(divergence.actual, mismatch.actual);
    }

    #[test]
    fn another_sentence_is_kept_whole() {
        assert_eq!(divergence("something new").actual, "something new");
    }

    #[test]
    fn drift_is_a_failure_only_when_strict() {
        let drifting = Verdict::Compatible {
            new_commands: 0,
            drifts: vec![Drift {
                event: EventNumber(2),
                what: "input".to_owned(),
            }],
            drift_count: 1,
        };
        assert!(!is_failure(&drifting, false));
        assert!(is_failure(&drifting, true));
        let output = Output::new(crate::output::Format::Text);
        let text = text(Path::new("h.json"), 2, &drifting, true, &output);
        assert!(text.contains("drift     event 2: input"), "{text}");
    }
}
