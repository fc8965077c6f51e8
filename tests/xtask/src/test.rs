//! `test`: every check and every test, and a count at the end.

mod count;
mod plan;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::paths::Paths;
use crate::process;
use crate::test::count::Count;
use crate::test::plan::{Job, Step};

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Passed,
    Failed,
    Skipped,
}

/// One line of the summary.
#[derive(Debug)]
struct Done {
    name: &'static str,
    state: State,
    took: Duration,
    count: Count,
}

/// Runs all steps, whatever becomes of the ones before, and sums up.
pub(crate) fn run(paths: &Paths, quick: bool) -> Result<ExitCode> {
    let steps = plan::steps(paths, quick);
    let total = steps.len();
    let mut done = Vec::new();
    for (index, step) in steps.into_iter().enumerate() {
        println!("\n[{}/{total}] {}", index + 1, step.name);
        done.push(run_step(paths, step));
    }
    print!("\n{}", summary(&done));
    let all = done
        .iter()
        .fold(Count::default(), |sum, done| sum + done.count);
    println!("{} passed, {} failed", all.passed, all.failed);
    let is_fine = done.iter().all(|done| done.state != State::Failed);
    Ok(if is_fine {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn run_step(paths: &Paths, step: Step) -> Done {
    let began = Instant::now();
    let (state, count) = match step.job {
        Job::Skip(reason) => {
            println!("skipped: {reason}");
            (State::Skipped, Count::default())
        }
        Job::Call(call) => match call(paths) {
            Ok(()) => (State::Passed, Count::default()),
            Err(error) => {
                eprintln!("error: {error:#}");
                (State::Failed, Count::FAILURE)
            }
        },
        Job::Run(mut command) => match process::tee(&mut command) {
            Ok((is_success, text)) => judge(is_success, count::count(&text)),
            Err(error) => {
                eprintln!("error: {error:#}");
                (State::Failed, Count::FAILURE)
            }
        },
    };
    Done {
        name: step.name,
        state,
        took: began.elapsed(),
        count,
    }
}

/// A step that failed without a failed test, say because it did not compile, counts as one: the last
/// line must not look like success.
fn judge(is_success: bool, count: Count) -> (State, Count) {
    match (is_success, count.failed) {
        (true, 0) => (State::Passed, count),
        (false, 0) => (State::Failed, count + Count::FAILURE),
        (_, _) => (State::Failed, count),
    }
}

fn summary(done: &[Done]) -> String {
    let width = done.iter().map(|done| done.name.len()).max().unwrap_or(0);
    let mut text = format!(
        "{:<7}  {:<width$}  {:>8}  {:>6}  {:>6}\n",
        "", "step", "time", "passed", "failed"
    );
    for Done {
        name,
        state,
        took,
        count,
    } in done
    {
        let state = match state {
            State::Passed => "ok",
            State::Failed => "FAILED",
            State::Skipped => "skipped",
        };
        let seconds = format!("{:.1} s", took.as_secs_f64());
        let counts = match count {
            Count {
                passed: 0,
                failed: 0,
            } => String::new(),
            Count { passed, failed } => format!("  {passed:>6}  {failed:>6}"),
        };
        text.push_str(&format!(
            "{state:<7}  {name:<width$}  {seconds:>8}{counts}\n"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_is_never_without_a_failure() {
        assert_eq!(
            judge(
                true,
                Count {
                    passed: 3,
                    failed: 0
                }
            )
            .0,
            State::Passed
        );
        assert_eq!(
            judge(false, Count::default()),
            (State::Failed, Count::FAILURE)
        );
        let count = Count {
            passed: 3,
            failed: 2,
        };
        assert_eq!(judge(false, count), (State::Failed, count));
        assert_eq!(judge(true, count).0, State::Failed);
    }

    #[test]
    fn the_summary_has_a_line_per_step() {
        let step = |name, state, count| Done {
            name,
            state,
            took: Duration::from_millis(1250),
            count,
        };
        let text = summary(&[
            step("format", State::Passed, Count::default()),
            step(
                "tests",
                State::Failed,
                Count {
                    passed: 12,
                    failed: 1,
                },
            ),
        ]);
        assert!(text.contains("ok       format     1.2 s\n"), "{text}");
        assert!(
            text.contains("FAILED   tests      1.2 s      12       1\n"),
            "{text}"
        );
    }
}
