//! Running the binary. Every test binary uses a part of this.
#![allow(dead_code, reason = "shared by several test binaries")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// What the binary said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the binary to its end. Unless the arguments say otherwise, nobody listens at its address.
pub(crate) fn run(args: &[&str]) -> Said {
    let output = Command::new(env!("CARGO_BIN_EXE_steadfast"))
        .args(args)
        .env("STEADFAST_ADDRESS", "http://127.0.0.1:9")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    Said {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A server that dies with this value.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) child: Child,
    /// Its URL.
    pub(crate) address: String,
    /// What it said when it was ready.
    pub(crate) ready: Value,
}

impl Server {
    /// Starts a server on a free port and waits until it is ready.
    pub(crate) fn start(data_dir: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_steadfast"))
            .args([
                "dev",
                "--listen",
                "127.0.0.1:0",
                "--print-ready-json",
                "--data-dir",
            ])
            .arg(data_dir)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("standard output is piped");
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("the server says something");
        let ready: Value = serde_json::from_str(&line).expect("the server is ready");
        let address = ready["address"]
            .as_str()
            .expect("it has an address")
            .to_owned();
        Self {
            child,
            address,
            ready,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
