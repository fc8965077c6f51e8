//! `deploy`: gives components to a server.

use std::path::{Path, PathBuf};

use clap::Args;
use reqwest::Method;
use steadfast_api::wire::Component;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::output::{Output, Tone, size};

/// Upload components and make them the current version of their workflow types
///
/// New workflows take the new version; running ones stay with the one that they started with.
#[derive(Debug, Args)]
pub(crate) struct DeployArgs {
    /// Components, as `component build` makes them
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

pub(crate) async fn run(args: DeployArgs, client: &Client, output: &Output) -> Result<()> {
    // Everything is read first: a typing error in the last name must not deploy the others.
    let mut components = Vec::new();
    for file in &args.files {
        let bytes = std::fs::read(file).map_err(|error| Error::file("read", file, &error))?;
        components.push((file, bytes));
    }
    let mut deployed = Vec::new();
    for (file, bytes) in components {
        output.progress(&format!(
            "uploading {} ({})",
            file.display(),
            size(bytes.len() as u64)
        ));
        let call = client
            .call(Method::POST, &["components"])
            .bytes("application/wasm", bytes);
        let component: Component = call.send().await.map_err(|error| named(file, error))?;
        if !output.is_json() {
            output.text(&line(file, &component, output))?;
        }
        deployed.push(component);
    }
    if output.is_json() {
        output.json(&deployed)
    } else {
        Ok(())
    }
}

fn named(file: &Path, mut error: Error) -> Error {
    error.message = format!("{}: {}", file.display(), error.message);
    error
}

fn line(file: &Path, component: &Component, output: &Output) -> String {
    let types: Vec<_> = component
        .workflows
        .iter()
        .map(|workflow| workflow.name.as_str())
        .collect();
    let (tone, verb) = if component.is_new == Some(false) {
        (Tone::Plain, "already there")
    } else {
        (Tone::Good, "deployed")
    };
    format!(
        "{} {} {} ({})\n",
        output.paint(tone, verb),
        output.paint(Tone::Strong, &file.display().to_string()),
        component.digest.chars().take(12).collect::<String>(),
        output.paint(Tone::Plain, &types.join(", ")),
    )
}
