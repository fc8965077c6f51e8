//! Running other programs.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// How cargo is called.
pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Runs a command whose output goes to the terminal.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let name = name(command);
    let status = command
        .status()
        .with_context(|| format!("cannot run {name}"))?;
    if !status.success() {
        bail!("{name} failed ({status})");
    }
    Ok(())
}

/// What a finished command has said.
#[derive(Debug)]
pub(crate) struct Captured {
    /// Its exit code; -1 when a signal has ended it.
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
}

/// Runs a command and keeps what it says.
pub(crate) fn capture(command: &mut Command) -> Result<Captured> {
    let name = name(command);
    let output = command
        .output()
        .with_context(|| format!("cannot run {name}"))?;
    Ok(Captured {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// Runs a command whose output goes to the terminal and is kept as well. Returns whether it
/// succeeded, and both streams together.
pub(crate) fn tee(command: &mut Command) -> Result<(bool, String)> {
    let name = name(command);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot run {name}"))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let text = std::thread::scope(|scope| {
        let out = scope.spawn(|| stdout.map_or_else(String::new, |s| copy(s, std::io::stdout())));
        let error = stderr.map_or_else(String::new, |s| copy(s, std::io::stderr()));
        // A thread that panicked has nothing to say; the exit status still counts.
        error + &out.join().unwrap_or_default()
    });
    let status = child.wait().with_context(|| format!("{name} is lost"))?;
    Ok((status.success(), text))
}

fn copy(from: impl Read, mut to: impl Write) -> String {
    let mut kept = String::new();
    let mut reader = BufReader::new(from);
    let mut line = Vec::new();
    while reader
        .read_until(b'\n', &mut line)
        .is_ok_and(|count| count > 0)
    {
        let text = String::from_utf8_lossy(&line);
        // Whoever closed the terminal does not want to see it.
        let _shown = to.write_all(text.as_bytes());
        kept.push_str(&text);
        line.clear();
    }
    kept
}

/// True if a command exists and answers to `--version`.
pub(crate) fn exists(program: &str, args: &[&str]) -> bool {
    let command = Command::new(program)
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    command.is_ok_and(|status| status.success())
}

fn name(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let program = program.file_stem().unwrap_or(program.as_os_str());
    let words = std::iter::once(program).chain(command.get_args());
    words
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}
