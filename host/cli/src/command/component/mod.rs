//! `component`: making, checking and listing components.

mod build;
mod inspect;
mod list;

use clap::Subcommand;

pub(crate) use self::inspect::refused;

use crate::client::Client;
use crate::error::Result;
use crate::output::Output;

/// What to do with components.
#[derive(Debug, Subcommand)]
pub(crate) enum ComponentCommand {
    Build(build::BuildArgs),
    Inspect(inspect::InspectArgs),
    List(list::ListArgs),
}

impl ComponentCommand {
    pub(crate) async fn run(
        self,
        client: impl FnOnce() -> Result<Client>,
        output: &Output,
    ) -> Result<()> {
        match self {
            Self::Build(args) => build::run(&args, output),
            Self::Inspect(args) => inspect::run(&args, output),
            Self::List(_) => list::run(&client()?, output).await,
        }
    }
}
