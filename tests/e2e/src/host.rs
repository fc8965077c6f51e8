//! A host process that can be killed and started again.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::http;

/// The binary under test.
#[must_use]
pub fn binary() -> PathBuf {
    PathBuf::from(
        std::env::var_os("STEADFAST_BIN")
            .expect("STEADFAST_BIN is not set: run the tests with `cargo xtask test`"),
    )
}

/// A component under test, by the name of its sample.
#[must_use]
pub fn guest(name: &str) -> PathBuf {
    let dir = std::env::var_os("STEADFAST_GUESTS")
        .expect("STEADFAST_GUESTS is not set: run the tests with `cargo xtask test`");
    Path::new(&dir).join(format!("{name}.wasm"))
}

/// A free port. Another process may take it before it is used; tests run few at a time.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A host with its data directory.
pub struct Host {
    /// Where it keeps its data.
    pub data: PathBuf,
    /// Where it listens.
    pub address: String,
    args: Vec<String>,
    child: Option<Child>,
}

impl Host {
    /// Starts a host on a data directory; `args` go to `steadfast dev`.
    pub fn start(data: &Path, args: &[&str]) -> Result<Self> {
        let mut host = Self {
            data: data.to_owned(),
            address: format!("127.0.0.1:{}", free_port()?),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            child: None,
        };
        host.launch()?;
        Ok(host)
    }

    /// The command that starts it.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(binary());
        command
            .arg("dev")
            .args(["--listen", &self.address, "--data-dir"])
            .arg(&self.data)
            .args(&self.args)
            .env("RUST_LOG", "warn")
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    /// Starts it again on the same address and data.
    pub fn launch(&mut self) -> Result<()> {
        let mut child = self.command().spawn().context("starting the host")?;
        let stderr = child.stderr.take().context("no stderr")?;
        // Its log goes to the test's output, which is shown when the test fails.
        std::thread::spawn(move || {
            for line in BufReader::new(stderr)
                .lines()
                .map_while(std::result::Result::ok)
            {
                println!("host: {line}");
            }
        });
        self.child = Some(child);
        self.wait_ready()
    }

    fn wait_ready(&mut self) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(30) {
            if http::get(&self.address, "/readyz").is_ok_and(|answer| answer.status == 200) {
                return Ok(());
            }
            if let Some(status) = self
                .child
                .as_mut()
                .and_then(|c| c.try_wait().ok())
                .flatten()
            {
                bail!("the host ended at its start: {status}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        bail!("the host was not ready within 30 s");
    }

    /// Kills it with SIGKILL.
    pub fn kill(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// Uploads a sample's component.
    pub fn upload(&self, name: &str) -> Result<()> {
        let bytes = std::fs::read(guest(name)).with_context(|| format!("component {name}"))?;
        let answer = http::raw(
            &self.address,
            "POST",
            "/api/v1/components",
            "application/wasm",
            &bytes,
        )?;
        if answer.status >= 300 {
            bail!(
                "upload of {name}: {}",
                String::from_utf8_lossy(&answer.body)
            );
        }
        Ok(())
    }

    /// A path below the default namespace.
    #[must_use]
    pub fn path(rest: &str) -> String {
        format!("/api/v1/namespaces/default/{rest}")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.kill());
    }
}
