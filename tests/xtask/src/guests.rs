//! Building the host and the sample workflows.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::paths::Paths;
use crate::process;

/// The target of the samples.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// The samples in Rust, by folder.
pub(crate) const ALL: &[&str] = &[
    "order",
    "fan-out",
    "account",
    "basket",
    "bench",
    "blocking",
    "cancellation",
    "children",
    "patching",
    "subscription",
    "timeouts-and-retries",
];

/// Builds the host and returns its binary.
pub(crate) fn build_host(paths: &Paths, profile: &str) -> Result<PathBuf> {
    let mut command = Command::new(process::cargo());
    // Everything at once, always: cargo gives shared dependencies other features for other
    // selections, and wasmtime would be built once more for each.
    let selection: &[&str] = if profile == "release" {
        &["--package", "steadfast", "--package", "steadfast-bench"]
    } else {
        // Not this program itself: replacing its file would leave the demo without its worker.
        &[
            "--workspace",
            "--exclude",
            "steadfast-xtask",
            "--all-targets",
        ]
    };
    command
        .args(["build", "--profile", profile])
        .args(selection);
    process::run(command.current_dir(&paths.root))?;
    Ok(paths.host_binary(profile))
}

/// Builds samples with the host's own `component build`, and returns the folder of the components.
pub(crate) fn build(
    paths: &Paths,
    host: &Path,
    samples: &[&str],
    out: Option<&Path>,
) -> Result<PathBuf> {
    ensure_target(paths)?;
    let folder = out.map_or_else(|| paths.guests(), Path::to_owned);
    let folder = std::path::absolute(folder)?;
    for (sample, features) in samples.iter().flat_map(|sample| versions(sample)) {
        let mut command = Command::new(host);
        let name = match features {
            "" => (*sample).to_owned(),
            version => format!("{sample}-{version}"),
        };
        command
            .args(["component", "build"])
            .arg(format!("workflows/{sample}/rust"))
            .arg("--out")
            .arg(folder.join(format!("{name}.wasm")))
            .args(
                (!features.is_empty())
                    .then_some(["--features", features])
                    .into_iter()
                    .flatten(),
            )
            .env("CARGO_TARGET_DIR", paths.guests_target())
            .current_dir(&paths.root);
        process::run(&mut command)?;
    }
    Ok(folder)
}

/// A sample with the features of each component that is made of it.
fn versions(sample: &str) -> impl Iterator<Item = (&str, &'static str)> {
    let features: &'static [&'static str] = match sample {
        "patching" => &["", "v2", "v3", "v4"],
        _ => &[""],
    };
    features.iter().map(move |features| (sample, *features))
}

/// Installs the samples' target unless it is there already, which works offline.
pub(crate) fn ensure_target(paths: &Paths) -> Result<()> {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "sysroot"]).current_dir(&paths.root);
    let sysroot = process::capture(&mut rustc)?.stdout;
    if Path::new(sysroot.trim())
        .join("lib/rustlib")
        .join(TARGET)
        .join("lib")
        .is_dir()
    {
        return Ok(());
    }
    println!("the target {TARGET} is missing: rustup target add {TARGET}");
    let mut rustup = Command::new("rustup");
    if process::run(
        rustup
            .args(["target", "add", TARGET])
            .current_dir(&paths.root),
    )
    .is_err()
    {
        bail!("the target {TARGET} could not be installed; it is needed to build workflows");
    }
    Ok(())
}
