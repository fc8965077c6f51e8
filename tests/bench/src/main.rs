//! Benchmarks of the hot path, durability on: every acknowledged step is flushed.
//!
//! `steadfast-bench [--json FILE] [NAME...]` prints a table, and writes a JSON array of
//! `{name, value, unit}`. Machines differ and are noisy: compare ratios measured in one run.

mod host;
mod http;
mod messages;
mod parked;
mod replay;
mod report;
mod starts;
mod steps;

use anyhow::{Context, Result, bail};

use report::Report;

/// A group of figures that are measured together.
struct Bench {
    name: &'static str,
    figures: &'static [&'static str],
    run: fn(&mut Report) -> Result<()>,
}

const BENCHES: &[Bench] = &[
    Bench {
        name: "seq_step",
        figures: &["commit_p50_ms", "seq_step_p50_ms", "seq_step_over_commit"],
        run: steps::sequential,
    },
    Bench {
        name: "steps_in_process",
        figures: &["steps_per_s_in_process", "disk_bytes_per_step"],
        run: steps::in_process,
    },
    Bench {
        name: "steps_external",
        figures: &["steps_per_s_external"],
        run: steps::external,
    },
    Bench {
        name: "replay",
        figures: &["replay_events_per_s", "replay_linearity"],
        run: replay::long_history,
    },
    Bench {
        name: "resume",
        figures: &[
            "instantiate_us",
            "resume_100_us",
            "resume_100_over_instantiate",
        ],
        run: replay::resume,
    },
    Bench {
        name: "parked",
        figures: &["parked_bytes_per_run", "restart_100k_parked_s"],
        run: parked::parked,
    },
    Bench {
        name: "updates",
        figures: &["update_p50_ms", "updates_per_s"],
        run: messages::updates,
    },
    Bench {
        name: "signals",
        figures: &["signals_per_s_one_run"],
        run: messages::signals,
    },
    Bench {
        name: "starts",
        figures: &["start_p50_ms", "starts_per_s"],
        run: starts::starts,
    },
];

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    // Processes of the benchmarks themselves.
    match args.first().map(String::as_str) {
        Some("host") => return host::serve(&args),
        Some("worker") => return steps::worker(&args),
        _ => {}
    }
    let mut names = Vec::new();
    let mut json = None;
    let mut rest = args.into_iter();
    while let Some(arg) = rest.next() {
        if arg == "--json" {
            json = Some(rest.next().context("--json needs a file name")?);
        } else if arg.starts_with('-') {
            bail!("unknown option {arg}; usage: [--json FILE] [NAME...]");
        } else {
            names.push(arg);
        }
    }
    for name in &names {
        let is_known = |bench: &Bench| bench.name == name || bench.figures.contains(&name.as_str());
        if !BENCHES.iter().any(is_known) {
            let known: Vec<_> = BENCHES.iter().map(|bench| bench.name).collect();
            bail!(
                "no benchmark is named {name}; there are: {}",
                known.join(", ")
            );
        }
    }
    let mut report = Report::default();
    for bench in BENCHES {
        let is_wanted =
            |name: &String| bench.name == name || bench.figures.contains(&name.as_str());
        if names.is_empty() || names.iter().any(is_wanted) {
            eprintln!("measuring {} ...", bench.name);
            (bench.run)(&mut report).with_context(|| format!("benchmark {}", bench.name))?;
        }
    }
    report.print();
    if let Some(path) = json {
        report.write_json(&path)?;
    }
    Ok(())
}
