//! The steadfast binary: parses the command line, runs one verb, exits with what came of it.
//!
//! Read `args.rs` (what can be asked for) and `wiring.rs` (which parts a server is made of) next.

mod args;
mod cargo;
mod client;
mod command;
mod duration;
mod error;
mod event_line;
mod export;
mod input;
mod logging;
mod outcome;
mod output;
mod signals;
mod start_options;
mod table;
mod wiring;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::args::{Cli, Verb};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::output::Output;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let output = Output::new(cli.output);
    match run(cli, &output) {
        Ok(code) => code,
        Err(error) => {
            output.error(&error);
            error.exit_code()
        }
    }
}

fn run(cli: Cli, output: &Output) -> Result<ExitCode> {
    let mut runtime = if matches!(cli.verb, Verb::Dev(_)) {
        tokio::runtime::Builder::new_multi_thread()
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    let runtime = runtime.enable_all().build();
    let runtime =
        runtime.map_err(|error| Error::failure(format!("cannot start the runtime: {error}")))?;
    runtime.block_on(dispatch(cli, output))
}

async fn dispatch(cli: Cli, output: &Output) -> Result<ExitCode> {
    let client = || Client::new(&cli.connection);
    match cli.verb {
        Verb::Dev(args) => return command::dev::run(args, output).await,
        Verb::Deploy(args) => command::deploy::run(args, &client()?, output).await,
        Verb::Start(args) => command::start::run(args, &client()?, output).await,
        Verb::Signal(args) => command::signal::run(args, &client()?, output).await,
        Verb::Query(args) => command::query::run(args, &client()?, output).await,
        Verb::Update(args) => command::update::run(args, &client()?, output).await,
        Verb::Result(args) => command::result::run(args, &client()?, output).await,
        Verb::Describe(args) => command::describe::run(args, &client()?, output).await,
        Verb::History(args) => command::history::run(args, &client()?, output).await,
        Verb::List(args) => command::list::run(args, &client()?, output).await,
        Verb::Cancel(args) => command::cancel::run(args, &client()?, output).await,
        Verb::Terminate(args) => command::terminate::run(args, &client()?, output).await,
        Verb::Unblock(args) => command::unblock::run(args, &client()?, output).await,
        Verb::Activity(command) => command.run(&client()?, output).await,
        Verb::Replay(args) => command::replay::run(&args, output),
        Verb::Component(command) => command.run(client, output).await,
        Verb::Doctor(args) => command::doctor::run(args, &client()?, output).await,
        Verb::Completions(args) => command::completions::run(&args, Cli::command(), output),
    }?;
    Ok(ExitCode::SUCCESS)
}
