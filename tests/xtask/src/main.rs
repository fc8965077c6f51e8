//! Build automation: `cargo xtask demo`, `test`, `bench`, `guests`. Needs nothing but the toolchain.

mod bench;
mod demo;
mod guests;
mod paths;
mod process;
mod test;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::demo::worker::WorkerArgs;
use crate::paths::Paths;

/// Everything one does with this repository.
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run orders on a server, kill the server in the middle, and see that nothing is lost
    Demo,
    /// Check and test everything
    Test {
        /// Only build and test: no lints, no documents, no fuzz targets
        #[arg(long)]
        quick: bool,
    },
    /// Run the benchmarks, in release mode
    Bench {
        /// Write the numbers to a file as well
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// Only these
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
    /// Build the sample workflows into components
    Guests {
        /// Folder for the components; default: `guests` in the target directory
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// The demo's activity worker
    #[command(hide = true)]
    DemoWorker(WorkerArgs),
}

fn main() -> ExitCode {
    match run(Cli::parse().task) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<ExitCode> {
    let paths = Paths::find()?;
    match task {
        Task::Demo => demo::run(&paths)?,
        Task::Test { quick } => return test::run(&paths, quick),
        Task::Bench { json, names } => bench::run(&paths, json.as_deref(), &names)?,
        Task::Guests { out } => {
            let binary = guests::build_host(&paths, "dev")?;
            guests::build(&paths, &binary, guests::ALL, out.as_deref())?;
        }
        Task::DemoWorker(args) => demo::worker::run(&args)?,
    }
    Ok(ExitCode::SUCCESS)
}
