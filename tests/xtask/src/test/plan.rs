//! The steps of `test`, in the order of how soon they tell something.

use std::process::Command;

use anyhow::Result;

use crate::guests;
use crate::paths::Paths;
use crate::process;

/// One thing to check.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) job: Job,
}

/// How a step is done.
pub(crate) enum Job {
    /// A command, whose tests are counted.
    Run(Command),
    /// Something of this program.
    Call(fn(&Paths) -> Result<()>),
    /// Nothing, because of this.
    Skip(&'static str),
}

/// All steps; the quick ones are those that find wrong behaviour.
pub(crate) fn steps(paths: &Paths, quick: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut add = |name, job| steps.push(Step { name, job });
    if !quick {
        add("format", run(paths, &["fmt", "--all", "--check"]));
        add(
            "format of the samples",
            run_guests(paths, &["fmt", "--all", "--check"]),
        );
        let clippy = [
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ];
        add("clippy", run(paths, &clippy));
        let clippy = [
            "clippy",
            "--all",
            "--target",
            guests::TARGET,
            "--",
            "-D",
            "warnings",
        ];
        add("clippy of the samples", run_guests(paths, &clippy));
    }
    add(
        "host",
        Job::Call(|paths| guests::build_host(paths, "dev").map(drop)),
    );
    add("samples", Job::Call(build_guests));
    add("tests", tests(paths));
    add("doctests", run(paths, &["test", "--workspace", "--doc"]));
    if !quick {
        add("documents", documents(paths));
        let engine = [
            "check",
            "--package",
            "steadfast-engine",
            "--target",
            guests::TARGET,
        ];
        add("engine without a system", run(paths, &engine));
        add("fuzz targets", fuzz(paths));
    }
    steps
}

fn build_guests(paths: &Paths) -> Result<()> {
    guests::build(paths, &paths.host_binary("dev"), guests::ALL, None).map(drop)
}

fn cargo(paths: &Paths, args: &[&str]) -> Command {
    let mut command = Command::new(process::cargo());
    // The quiet alias that started this program must not make these steps silent.
    command
        .args(args)
        .current_dir(&paths.root)
        .env_remove("CARGO_TERM_QUIET");
    command
}

fn run(paths: &Paths, args: &[&str]) -> Job {
    Job::Run(cargo(paths, args))
}

/// The samples are a workspace of their own with a target directory of its own.
fn run_guests(paths: &Paths, args: &[&str]) -> Job {
    let mut command = cargo(paths, args);
    command.current_dir(paths.root.join("workflows"));
    command.env("CARGO_TARGET_DIR", paths.guests_target());
    Job::Run(command)
}

/// Tests get the binary and the components, so that they need not be built once more.
fn tests(paths: &Paths) -> Job {
    let has_nextest = process::exists("cargo", &["nextest", "--version"]);
    let mut command = if has_nextest {
        cargo(paths, &["nextest", "run", "--workspace", "--no-fail-fast"])
    } else {
        let kinds = ["--lib", "--bins", "--tests", "--examples"];
        let mut command = cargo(paths, &["test", "--workspace", "--no-fail-fast"]);
        command.args(kinds);
        command
    };
    command.env("STEADFAST_BIN", paths.host_binary("dev"));
    command.env("STEADFAST_GUESTS", paths.guests());
    Job::Run(command)
}

fn documents(paths: &Paths) -> Job {
    let mut command = cargo(
        paths,
        &[
            "doc",
            "--workspace",
            "--no-deps",
            "--document-private-items",
        ],
    );
    command.env("RUSTDOCFLAGS", "-D warnings");
    Job::Run(command)
}

fn fuzz(paths: &Paths) -> Job {
    let manifest = paths.root.join("tests/fuzz/Cargo.toml");
    if !manifest.is_file() {
        return Job::Skip("there are no fuzz targets");
    }
    let mut command = cargo(paths, &["check", "--all-targets"]);
    command.current_dir(paths.root.join("tests/fuzz"));
    command.env("CARGO_TARGET_DIR", paths.target.join("fuzz"));
    Job::Run(command)
}
