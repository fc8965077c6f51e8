//! `component inspect`: what a file contains, and what a host would say to it.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use steadfast_model::component::{MessageDescription, WorkflowDescription};
use steadfast_ports::guest::Refusal;
use steadfast_sandbox::build::{InspectError, Inspection, inspect};

use crate::error::{Error, Result};
use crate::output::{Output, Tone, size};

/// Show what a component imports, exports and offers, and whether a host takes it
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// Component
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn run(args: &InspectArgs, output: &Output) -> Result<()> {
    let bytes =
        std::fs::read(&args.file).map_err(|error| Error::file("read", &args.file, &error))?;
    let inspection = look(&bytes)?;
    if output.is_json() {
        output.json(&json(&inspection))?;
    } else {
        output.text(&text(&inspection, output))?;
    }
    inspection.verdict.as_ref().map(drop).map_err(refused)
}

/// Looks into a component.
pub(crate) fn look(bytes: &[u8]) -> Result<Inspection> {
    inspect(bytes).map_err(|error| match error {
        InspectError::Refused(refusal) => refused(&refusal),
        InspectError::Setup(error) => Error::failure(error.to_string()),
    })
}

/// A refusal as the command's error.
pub(crate) fn refused(refusal: &Refusal) -> Error {
    let error = Error::refused(refusal.to_string()).code(refusal.code());
    match refusal {
        Refusal::NotAComponent(_) => {
            error.hint("`steadfast component build` makes components out of crates and modules")
        }
        Refusal::ForbiddenImport { .. } => error
            .hint("workflow code sees only the engine; everything else belongs into activities"),
        Refusal::WrongWorld(_) | Refusal::TooLarge(_) | Refusal::Description(_) => error,
    }
}

/// The names of the workflow types; none when the component is refused.
pub(crate) fn workflow_types(inspection: &Inspection) -> Vec<String> {
    let workflows = inspection
        .verdict
        .as_ref()
        .map(|admitted| &admitted.description.workflows);
    workflows.map_or_else(
        |_| Vec::new(),
        |all| all.iter().map(|w| w.name.clone()).collect(),
    )
}

/// Everything as JSON.
pub(crate) fn json(inspection: &Inspection) -> Value {
    let mut value = json!({
        "digest": inspection.digest.to_string(),
        "size_bytes": inspection.size_bytes,
        "imports": inspection.imports,
        "exports": inspection.exports,
    });
    let Some(fields) = value.as_object_mut() else {
        return value;
    };
    match &inspection.verdict {
        Ok(admitted) => {
            let workflows: Vec<_> = admitted
                .description
                .workflows
                .iter()
                .map(workflow)
                .collect();
            fields.insert("admitted".to_owned(), true.into());
            fields.insert("sdk".to_owned(), admitted.description.sdk.clone().into());
            fields.insert("workflows".to_owned(), workflows.into());
        }
        Err(refusal) => {
            fields.insert("admitted".to_owned(), false.into());
            fields.insert("refusal".to_owned(), refusal.to_string().into());
            fields.insert("code".to_owned(), refusal.code().into());
        }
    }
    value
}

fn workflow(workflow: &WorkflowDescription) -> Value {
    let messages = |all: &[MessageDescription]| all.iter().map(message).collect::<Vec<_>>();
    json!({
        "name": workflow.name,
        "doc": workflow.doc,
        "input_schema": schema(&workflow.input_schema),
        "output_schema": schema(&workflow.output_schema),
        "signals": messages(&workflow.signals),
        "queries": messages(&workflow.queries),
        "updates": messages(&workflow.updates),
    })
}

fn message(message: &MessageDescription) -> Value {
    json!({
        "name": message.name,
        "doc": message.doc,
        "input_schema": schema(&message.input_schema),
    })
}

/// A schema is JSON already; an empty one is none.
fn schema(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

fn text(inspection: &Inspection, output: &Output) -> String {
    let mut text = String::new();
    let mut line = |label: &str, tone, value: &str| {
        text.push_str(&format!("{label:<10} {}\n", output.paint(tone, value)));
    };
    line("digest", Tone::Plain, &inspection.digest.to_string());
    line("size", Tone::Plain, &size(inspection.size_bytes));
    for (index, import) in inspection.imports.iter().enumerate() {
        line(if index == 0 { "imports" } else { "" }, Tone::Plain, import);
    }
    for (index, export) in inspection.exports.iter().enumerate() {
        line(if index == 0 { "exports" } else { "" }, Tone::Plain, export);
    }
    match &inspection.verdict {
        Err(_) => line("verdict", Tone::Bad, "a host refuses it"),
        Ok(admitted) => {
            line("verdict", Tone::Good, "a host takes it");
            line("sdk", Tone::Plain, &admitted.description.sdk);
            for workflow in &admitted.description.workflows {
                line("workflow", Tone::Strong, &workflow.name);
                if let Some(first) = workflow.doc.lines().next() {
                    line("", Tone::Plain, first);
                }
                for signal in &workflow.signals {
                    line("", Tone::Plain, &format!("signal {}", signal.name));
                }
            }
        }
    }
    text
}
