//! Running cargo and rustup for `component build`.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::error::{Error, Result};
use crate::output::Output;

/// The target that guests are built for.
pub(crate) const GUEST_TARGET: &str = "wasm32-unknown-unknown";

/// A core module that cargo has built.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Artifact {
    pub(crate) path: PathBuf,
    pub(crate) name: String,
}

/// Builds the crate in a folder for guests, and finds its module.
pub(crate) fn build_guest(
    dir: &Path,
    features: &[String],
    offline: bool,
    output: &Output,
) -> Result<Artifact> {
    if !dir.join("Cargo.toml").is_file() {
        return Err(Error::usage(format!("{} has no Cargo.toml", dir.display()))
            .hint("give the directory of a Rust crate, or a .wasm file"));
    }
    if !has_guest_target(dir)? {
        add_guest_target(dir, output)?;
    }
    output.progress(&format!("building {} for {GUEST_TARGET}", dir.display()));
    let mut command = Command::new(cargo());
    command
        .args(["build", "--release", "--target", GUEST_TARGET])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(dir)
        .stdout(Stdio::piped());
    if !features.is_empty() {
        command.arg("--features").arg(features.join(","));
    }
    if offline {
        command.arg("--offline");
    }
    let mut child = command.spawn().map_err(|error| missing("cargo", &error))?;
    let mut artifacts = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout)
            .lines()
            .map_while(std::io::Result::ok)
        {
            artifacts.extend(artifact(&line));
        }
    }
    let status = child
        .wait()
        .map_err(|error| Error::failure(format!("cargo: {error}")))?;
    if !status.success() {
        return Err(Error::failure(format!("cargo build failed ({status})")));
    }
    single(artifacts, dir)
}

fn single(mut artifacts: Vec<Artifact>, dir: &Path) -> Result<Artifact> {
    match (artifacts.pop(), artifacts.first()) {
        (Some(artifact), None) => Ok(artifact),
        (None, _) => Err(
            Error::refused(format!("{} builds no module", dir.display()))
                .hint("its Cargo.toml needs [lib] crate-type = [\"cdylib\"]"),
        ),
        (Some(last), Some(_)) => {
            let names = artifacts.iter().chain([&last]).map(|a| a.name.as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            Err(
                Error::usage(format!("{} builds several modules: {names}", dir.display()))
                    .hint("give the directory of one crate of the workspace"),
            )
        }
    }
}

/// The module of one line of cargo's output, if it is about one.
fn artifact(line: &str) -> Option<Artifact> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message.get("reason")?.as_str()? != "compiler-artifact" {
        return None;
    }
    let target = message.get("target")?;
    let is_library = target
        .get("crate_types")?
        .as_array()?
        .iter()
        .any(|kind| kind == "cdylib");
    if !is_library {
        return None;
    }
    let name = target.get("name")?.as_str()?.replace('_', "-");
    let files = message
        .get("filenames")?
        .as_array()?
        .iter()
        .filter_map(Value::as_str);
    let path = files
        .map(PathBuf::from)
        .find(|path| path.extension() == Some("wasm".as_ref()))?;
    Some(Artifact { path, name })
}

/// True if the toolchain of a folder can build guests.
pub(crate) fn has_guest_target(dir: &Path) -> Result<bool> {
    let output = Command::new("rustc")
        .args(["--print", "sysroot"])
        .current_dir(dir)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| missing("rustc", &error))?;
    let sysroot = String::from_utf8_lossy(&output.stdout);
    Ok(Path::new(sysroot.trim())
        .join("lib/rustlib")
        .join(GUEST_TARGET)
        .join("lib")
        .is_dir())
}

fn add_guest_target(dir: &Path, output: &Output) -> Result<()> {
    output.progress(&format!(
        "the target {GUEST_TARGET} is missing: rustup target add {GUEST_TARGET}"
    ));
    let hint = format!("install it yourself: rustup target add {GUEST_TARGET}");
    let status = Command::new("rustup")
        .args(["target", "add", GUEST_TARGET])
        .current_dir(dir)
        .status()
        .map_err(|error| missing("rustup", &error).hint(&hint))?;
    if status.success() {
        Ok(())
    } else {
        let text = format!("the target {GUEST_TARGET} could not be installed ({status})");
        Err(Error::failure(text).hint(hint))
    }
}

/// The first line of what a tool says about its version; `None` when it cannot be run.
pub(crate) fn version_of(tool: &str) -> Option<String> {
    let output = Command::new(tool)
        .arg("--version")
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    output
        .status
        .success()
        .then(|| text.lines().next().unwrap_or_default().to_owned())
}

fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn missing(tool: &str, error: &std::io::Error) -> Error {
    let error = Error::failure(format!("cannot run {tool}: {error}"));
    error.hint("install the Rust toolchain from https://rustup.rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_found_among_cargos_messages() {
        let line = r#"{"reason":"compiler-artifact","target":{"name":"fan_out","crate_types":
            ["cdylib"]},"filenames":["/t/fan_out.wasm"]}"#;
        let found = artifact(line).unwrap();
        assert_eq!(
            (found.name.as_str(), found.path),
            ("fan-out", PathBuf::from("/t/fan_out.wasm"))
        );
        for line in ["", "x", r#"{"reason":"build-finished","success":true}"#] {
            assert_eq!(artifact(line), None);
        }
    }

    #[test]
    fn a_workspace_of_several_modules_is_ambiguous() {
        let module = |name: &str| Artifact {
            path: PathBuf::new(),
            name: name.to_owned(),
        };
        let error = single(vec![module("a"), module("b")], Path::new("w")).unwrap_err();
        assert!(error.message.contains("several modules: a, b"), "{error}");
        assert!(single(Vec::new(), Path::new("w")).unwrap_err().hints[0].contains("cdylib"));
        assert_eq!(
            single(vec![module("a")], Path::new("w")).unwrap(),
            module("a")
        );
    }
}
