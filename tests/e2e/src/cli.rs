//! The command line as a person or a script uses it.

use std::process::{Command, Output};

use crate::host::binary;

/// Runs `steadfast` with arguments against an address.
#[must_use]
pub fn run(address: &str, args: &[&str]) -> Output {
    Command::new(binary())
        .args(args)
        .env("STEADFAST_ADDRESS", format!("http://{address}"))
        .env("NO_COLOR", "1")
        .output()
        .expect("the binary starts")
}

/// What was written to stdout.
#[must_use]
pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What was written to stderr.
#[must_use]
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
