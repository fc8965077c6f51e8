//! `completions`: a script for the shell.

use clap::Args;
use clap_complete::Shell;

use crate::error::Result;
use crate::output::Output;

/// Print a completion script for a shell
///
/// For example: `steadfast completions bash > /etc/bash_completion.d/steadfast`
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, mut cli: clap::Command, output: &Output) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli, "steadfast", &mut script);
    output.text(&String::from_utf8_lossy(&script))
}
