//! `bench`: the benchmarks of `tests/bench`, in release mode.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::paths::Paths;
use crate::{guests, process};

pub(crate) fn run(paths: &Paths, json: Option<&Path>, names: &[String]) -> Result<()> {
    let host = guests::build_host(paths, "release")?;
    let components = guests::build(paths, &host, guests::ALL, None)?;
    let mut command = Command::new(host.with_file_name("steadfast-bench"));
    command
        .args(names)
        .env("STEADFAST_BIN", &host)
        .env("STEADFAST_GUESTS", &components)
        .current_dir(&paths.root);
    if let Some(json) = json {
        // The caller's folder counts, not the repository's.
        command.arg("--json").arg(std::path::absolute(json)?);
    }
    process::run(&mut command)
}
