//! `component build`: from Rust sources, or a core module, to a component that a host takes.

use std::path::{Path, PathBuf};

use clap::Args;
use steadfast_sandbox::build::{Inspection, componentize};

use crate::cargo;
use crate::command::component::inspect;
use crate::error::{Error, Result};
use crate::output::{Output, Tone, size};

/// Build a component from a Rust crate, or from a core WebAssembly module
///
/// DIR is a crate with `crate-type = ["cdylib"]` that uses steadfast-sdk: it is built with
/// `cargo build --release --target wasm32-unknown-unknown`, and the target is installed with rustup
/// when it is missing. FILE is a .wasm file that has been built already. The component is checked
/// as a host would check it before it is written.
#[derive(Debug, Args)]
pub(crate) struct BuildArgs {
    /// Crate or .wasm file
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    source: PathBuf,

    /// Component to write; default: the crate's name with .wasm, in the current directory
    #[arg(short, long, value_name = "OUT")]
    out: Option<PathBuf>,

    /// Features of the crate to turn on, separated by commas
    #[arg(long, value_name = "FEATURES", value_delimiter = ',')]
    features: Vec<String>,

    /// Pass --offline to cargo
    #[arg(long)]
    offline: bool,
}

pub(crate) fn run(args: &BuildArgs, output: &Output) -> Result<()> {
    let (module, name) = if args.source.is_dir() {
        let artifact = cargo::build_guest(&args.source, &args.features, args.offline, output)?;
        (artifact.path, artifact.name)
    } else {
        (args.source.clone(), default_name(&args.source))
    };
    let bytes = std::fs::read(&module).map_err(|error| Error::file("read", &module, &error))?;
    let component = componentize(&bytes).map_err(|error| {
        Error::refused(error.message)
            .code("not-componentizable")
            .hint(error.hint)
    })?;
    output.progress("checking the component");
    let inspection = inspect::look(&component)?;
    if let Err(refusal) = &inspection.verdict {
        return Err(inspect::refused(refusal));
    }
    let out = args
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("{name}.wasm")));
    write(&out, &component)?;
    report(&out, &inspection, output)
}

/// The name of a component that is made from a file: never the file itself.
fn default_name(source: &Path) -> String {
    let stem = source
        .file_stem()
        .map_or("component".into(), |stem| stem.to_string_lossy());
    format!("{stem}.component")
}

fn write(out: &Path, component: &[u8]) -> Result<()> {
    if let Some(folder) = out.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| Error::file("make", folder, &error))?;
    }
    std::fs::write(out, component).map_err(|error| Error::file("write", out, &error))
}

fn report(out: &Path, inspection: &Inspection, output: &Output) -> Result<()> {
    if output.is_json() {
        let mut value = inspect::json(inspection);
        if let Some(fields) = value.as_object_mut() {
            fields.insert("path".to_owned(), out.display().to_string().into());
        }
        return output.json(&value);
    }
    let types = inspect::workflow_types(inspection);
    let line = |label: &str, value: &str| format!("  {label:<10} {value}\n");
    let mut text = format!(
        "{} {}\n",
        output.paint(Tone::Good, "built"),
        output.paint(Tone::Strong, &out.display().to_string())
    );
    text.push_str(&line("size", &size(inspection.size_bytes)));
    text.push_str(&line("digest", &inspection.digest.to_string()));
    text.push_str(&line(
        "workflows",
        &output.paint(Tone::Plain, &types.join(", ")),
    ));
    output.text(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_not_overwritten_by_its_component() {
        assert_eq!(default_name(Path::new("a/order.wasm")), "order.component");
    }
}
