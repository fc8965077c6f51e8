//! The command line: global options and the verbs.

use clap::{Parser, Subcommand};

use crate::client::{Connection, GLOBAL};
use crate::command;
use crate::output::Format;

/// What the numbers mean that the process exits with.
const EXIT_CODES: &str = "\
Exit codes:
   0  done
   1  failure
   2  usage: the command line makes no sense
   3  not found
   4  conflict: already started, already closed, port or data directory in use
   5  refused: invalid, too large, not a component
   6  unavailable: the server cannot be reached or cannot answer now
   7  the workflow did not complete (result, start --wait), the update was refused or failed;
      the history does not fit (replay)
  70  the store failed (dev): start the server again";

/// Durable workflows on WebAssembly: write plain code, and it survives every crash
#[derive(Debug, Parser)]
#[command(
    name = "steadfast", version, after_help = EXIT_CODES, arg_required_else_help = true,
    infer_subcommands = false, max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) connection: Connection,

    /// How results are printed
    #[arg(
        long, global = true, value_enum, default_value_t = Format::Text,
        value_name = "FORMAT", help_heading = GLOBAL
    )]
    pub(crate) output: Format,

    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Dev(command::dev::DevArgs),
    Deploy(command::deploy::DeployArgs),
    Start(command::start::StartArgs),
    Signal(command::signal::SignalArgs),
    Query(command::query::QueryArgs),
    Update(command::update::UpdateArgs),
    Result(command::result::ResultArgs),
    Describe(command::describe::DescribeArgs),
    History(command::history::HistoryArgs),
    List(command::list::ListArgs),
    Cancel(command::cancel::CancelArgs),
    Terminate(command::terminate::TerminateArgs),
    Unblock(command::unblock::UnblockArgs),
    /// Look after activities that keep failing, or finish them by hand
    #[command(subcommand, arg_required_else_help = true)]
    Activity(command::activity::ActivityCommand),
    Replay(command::replay::ReplayArgs),
    /// Build, inspect and list components
    #[command(subcommand, arg_required_else_help = true)]
    Component(command::component::ComponentCommand),
    Doctor(command::doctor::DoctorArgs),
    Completions(command::completions::CompletionsArgs),
}
