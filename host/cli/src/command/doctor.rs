//! `doctor`: whether this machine and this setup can work, line by line.

use std::net::{TcpListener, ToSocketAddrs};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use serde_json::Value;

use crate::cargo::{self, GUEST_TARGET};
use crate::client::Client;
use crate::error::{Error, Kind, Result};
use crate::output::{Output, Tone, clean, count, size};
use crate::wiring;

/// Below this much free space a check warns.
const SPACE_MIN: u64 = 1 << 30;

/// Check this machine, the data directory and the server
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Data directory of the server
    #[arg(
        long,
        env = "STEADFAST_DATA_DIR",
        default_value = "./.steadfast",
        value_name = "DIR",
        hide_env_values = true
    )]
    data_dir: PathBuf,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Grade {
    Ok,
    Warn,
    Fail,
}

/// One line.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    grade: Grade,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Check {
    fn ok(name: &'static str, text: impl Into<String>) -> Self {
        Self {
            name,
            grade: Grade::Ok,
            text: text.into(),
            hint: None,
        }
    }

    fn warn(name: &'static str, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            name,
            grade: Grade::Warn,
            text: text.into(),
            hint: Some(hint.into()),
        }
    }

    fn fail(name: &'static str, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            name,
            grade: Grade::Fail,
            text: text.into(),
            hint: Some(hint.into()),
        }
    }
}

pub(crate) async fn run(args: DoctorArgs, client: &Client, output: &Output) -> Result<()> {
    let mut checks = vec![Check::ok(
        "steadfast",
        concat!("version ", env!("CARGO_PKG_VERSION")),
    )];
    checks.push(tool("cargo"));
    checks.push(tool("rustc"));
    checks.push(guest_target());
    checks.push(sandbox());
    checks.push(data_dir(&args.data_dir));
    checks.extend(disk_space(&args.data_dir));
    let server = server(client).await;
    let is_running = server.grade == Grade::Ok;
    checks.push(server);
    if !is_running {
        checks.push(port(client.base()));
        checks.extend(store(&args.data_dir));
    }
    report(&checks, output)
}

fn report(checks: &[Check], output: &Output) -> Result<()> {
    if output.is_json() {
        output.json(&checks)?;
    } else {
        for check in checks {
            let (tone, grade) = match check.grade {
                Grade::Ok => (Tone::Good, "ok"),
                Grade::Warn => (Tone::Warning, "warn"),
                Grade::Fail => (Tone::Bad, "fail"),
            };
            let blanks = " ".repeat(4_usize.saturating_sub(grade.len()));
            let grade = output.paint(tone, grade);
            output.text(&format!(
                "{grade}{blanks}  {:<13} {}\n",
                check.name,
                clean(&check.text)
            ))?;
            if let Some(hint) = &check.hint {
                output.text(&format!("{:<19} hint: {}\n", "", clean(hint)))?;
            }
        }
    }
    let failures = checks
        .iter()
        .filter(|check| check.grade == Grade::Fail)
        .count();
    if failures == 0 {
        return Ok(());
    }
    Err(Error::failure(count(failures as u64, "check") + " failed"))
}

fn tool(name: &'static str) -> Check {
    match cargo::version_of(name) {
        Some(version) => Check::ok(name, version),
        None => Check::warn(
            name,
            "not found; it is needed only to build components",
            "install the Rust toolchain from https://rustup.rs",
        ),
    }
}

fn guest_target() -> Check {
    let name = "wasm target";
    match cargo::has_guest_target(Path::new(".")) {
        Ok(true) => Check::ok(name, GUEST_TARGET),
        Ok(false) => Check::warn(
            name,
            format!("{GUEST_TARGET} is not installed; it is needed only to build components"),
            format!("rustup target add {GUEST_TARGET}"),
        ),
        Err(error) => Check::warn(name, error.message, "install the Rust toolchain first"),
    }
}

fn sandbox() -> Check {
    match wiring::scratch_sandbox() {
        Ok(sandbox) if sandbox.is_pooling() => Check::ok("sandbox", "instances come from a pool"),
        Ok(_) => Check::warn(
            "sandbox",
            "the address space for a pool of instances cannot be had; starts are slower",
            "raise the limit of virtual memory (ulimit -v)",
        ),
        Err(error) => Check::fail(
            "sandbox",
            error.message,
            "this processor or system may not be supported",
        ),
    }
}

/// Whether the directory, or the one that it would be made in, can be written to.
fn data_dir(dir: &Path) -> Check {
    let name = "data dir";
    let existing = nearest_existing(dir);
    let probe = existing.join(format!(".steadfast-doctor-{}", std::process::id()));
    let written = std::fs::write(&probe, b"probe");
    if let Err(error) = written {
        let text = format!("{} cannot be written to: {error}", existing.display());
        return Check::fail(name, text, "give another one with --data-dir");
    }
    if let Err(error) = std::fs::remove_file(&probe) {
        let text = format!("{} cannot be removed: {error}", probe.display());
        return Check::warn(name, text, "remove it by hand");
    }
    let will = if dir.is_dir() { "" } else { " (will be made)" };
    Check::ok(name, format!("{}{will}", dir.display()))
}

fn nearest_existing(dir: &Path) -> PathBuf {
    let absolute = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let found = absolute.ancestors().find(|ancestor| ancestor.is_dir());
    found.unwrap_or_else(|| Path::new(".")).to_owned()
}

#[cfg(unix)]
fn disk_space(dir: &Path) -> Option<Check> {
    let stat = rustix::fs::statvfs(nearest_existing(dir)).ok()?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let text = format!("{} free", size(free));
    Some(if free < SPACE_MIN {
        Check::warn(
            "disk space",
            text,
            "a full disk stops the server: make room",
        )
    } else {
        Check::ok("disk space", text)
    })
}

#[cfg(not(unix))]
fn disk_space(_dir: &Path) -> Option<Check> {
    None
}

async fn server(client: &Client) -> Check {
    let name = "server";
    let base = client.base();
    match client.plain("/openapi.json").send::<Value>().await {
        Ok(document) => {
            let version = document.pointer("/info/version").and_then(Value::as_str);
            let own = env!("CARGO_PKG_VERSION");
            match version {
                Some(version) if version == own => {
                    Check::ok(name, format!("{base} answers, version {version}"))
                }
                Some(version) => Check {
                    hint: Some(format!(
                        "this client is version {own}: use the same for both"
                    )),
                    ..Check::ok(name, format!("{base} answers, version {version}"))
                },
                None => Check::fail(
                    name,
                    format!("{base} answers, but is not steadfast"),
                    "give the server's URL with --address",
                ),
            }
        }
        Err(error) if error.kind == Kind::Unavailable => Check::warn(
            name,
            format!("{base} does not answer"),
            "start one with `steadfast dev`, or give its URL with --address",
        ),
        Err(error) => Check::fail(
            name,
            format!("{base}: {}", error.message),
            "give the server's URL with --address",
        ),
    }
}

/// Whether a server could listen at the address.
fn port(base: &str) -> Check {
    let name = "port";
    let authority = base
        .trim_start_matches("http://")
        .split('/')
        .next()
        .unwrap_or_default();
    let authority = if authority.contains(':') {
        authority.to_owned()
    } else {
        format!("{authority}:80")
    };
    let Some(address) = authority
        .to_socket_addrs()
        .ok()
        .and_then(|mut all| all.next())
    else {
        return Check::warn(
            name,
            format!("{authority} cannot be resolved"),
            "check --address",
        );
    };
    if !address.ip().is_loopback() {
        return Check::ok(
            name,
            format!("{address} is on another machine; not checked"),
        );
    }
    match TcpListener::bind(address) {
        Ok(_listener) => Check::ok(name, format!("{address} is free")),
        Err(error) => Check::warn(
            name,
            format!("{address} cannot be listened on: {error}"),
            "another program uses it: give `steadfast dev --listen` another one",
        ),
    }
}

/// Opens the database when no server has it.
fn store(dir: &Path) -> Option<Check> {
    let name = "store";
    let path = wiring::store_path(dir);
    if !path.is_file() {
        return None;
    }
    let size = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
    let opened = wiring::open_store(dir).and_then(|store| {
        wiring::count_open_runs(&store, false, wiring::COUNT_MAX)
            .map_err(|error| wiring::store_error(&path, &error))
    });
    Some(match opened {
        Ok(open) => Check::ok(
            name,
            format!(
                "{} opens, {}, {}",
                path.display(),
                self::size(size),
                wiring::open_runs(open)
            ),
        ),
        Err(error) if error.kind == Kind::Conflict => Check::warn(
            name,
            error.message,
            "a server at another address uses it: give that with --address",
        ),
        Err(error) => {
            let hint = error.hints.into_iter().next().unwrap_or_default();
            Check::fail(name, error.message, hint)
        }
    })
}
