//! The demo's processes: the host, the worker, and the command line that talks to the host.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::process::{self, Captured};

/// A process that dies with this value.
#[derive(Debug)]
pub(crate) struct Running(Child);

impl Running {
    /// The process's id.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Kills it at once (SIGKILL, where there are signals) and waits until it is gone.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.0.kill().context("cannot kill the process")?;
        self.0.wait().context("the killed process is lost")?;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may be gone already.
        let _killed = self.0.kill();
        let _waited = self.0.wait();
    }
}

/// Everything that the demo's processes share.
#[derive(Debug)]
pub(crate) struct Stage {
    /// The host's binary.
    pub(crate) binary: PathBuf,
    /// A fresh folder.
    pub(crate) folder: PathBuf,
    /// Where the host listens, once it has.
    pub(crate) authority: String,
}

impl Stage {
    /// Starts a host, at a free port the first time, and waits until it is ready. Returns what it
    /// said about itself.
    pub(crate) fn start_host(&mut self) -> Result<(Running, Value)> {
        let log = self.folder.join("host.log");
        let log = File::options().create(true).append(true).open(&log)?;
        let mut command = Command::new(&self.binary);
        command
            .args([
                "dev",
                "--print-ready-json",
                "--listen",
                &self.authority,
                "--data-dir",
            ])
            .arg(self.folder.join("data"))
            .env("RUST_LOG", "info")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
        let mut child = command.spawn().context("cannot start the host")?;
        let stdout = child.stdout.take();
        let running = Running(child);
        let mut line = String::new();
        BufReader::new(stdout.context("the host has no output")?).read_line(&mut line)?;
        let ready: Value = serde_json::from_str(&line).with_context(|| {
            format!(
                "the host did not start; see {}",
                self.folder.join("host.log").display()
            )
        })?;
        let address = ready
            .get("address")
            .and_then(Value::as_str)
            .unwrap_or_default();
        self.authority = address.trim_start_matches("http://").to_owned();
        Ok((running, ready))
    }

    /// Starts the worker.
    pub(crate) fn start_worker(&self, log: &Path) -> Result<Running> {
        let output = File::create(self.folder.join("worker.log"))?;
        let program = std::env::current_exe().context("this program has no path")?;
        let child = Command::new(program)
            .args(["demo-worker", "--authority", &self.authority, "--log"])
            .arg(log)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .context("cannot start the worker")?;
        Ok(Running(child))
    }

    /// Runs the command line against the host.
    pub(crate) fn cli(&self, args: &[&str]) -> Result<Captured> {
        let mut command = Command::new(&self.binary);
        command
            .args(args)
            .env("STEADFAST_ADDRESS", format!("http://{}", self.authority));
        process::capture(&mut command)
    }

    /// Runs the command line for the person who watches: on a terminal it fits and has colours.
    pub(crate) fn show(&self, args: &[&str]) -> Result<()> {
        let mut command = Command::new(&self.binary);
        command
            .args(args)
            .env("STEADFAST_ADDRESS", format!("http://{}", self.authority));
        process::run(&mut command)
    }

    /// Runs the command line, which must succeed.
    pub(crate) fn cli_ok(&self, args: &[&str]) -> Result<String> {
        let said = self.cli(args)?;
        if said.code != 0 {
            bail!(
                "steadfast {} failed with {}: {}",
                args.join(" "),
                said.code,
                said.stderr.trim()
            );
        }
        Ok(said.stdout)
    }
}
