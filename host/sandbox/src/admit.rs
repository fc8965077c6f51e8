//! Admission: from bytes that anybody may have sent to a component that can run.
//!
//! Cheap checks come first (`shape`, `world`), then compilation, then the component is run for the
//! first time, under the limits of any activation, to describe itself.

use std::collections::BTreeSet;

use steadfast_model::ComponentDescription;
use steadfast_model::component::{MessageDescription, WorkflowDescription};
use steadfast_model::limits::ID_BYTES_MAX;
use steadfast_ports::guest::{Error, Refusal};
use wasmtime::Engine;
use wasmtime::component::types::{Component as ComponentType, ComponentItem};

use crate::abi::{FUNCTIONS, PACKAGE, VERSION};
use crate::fault;
use crate::limit::DESCRIPTION_BYTES_MAX;
use crate::state::Unanswerable;

/// Checks that the imported interfaces have no function that the host does not offer.
///
/// # Errors
/// [`Refusal::ForbiddenImport`] with `interface#function`.
pub(crate) fn check_functions(engine: &Engine, ty: &ComponentType) -> Result<(), Refusal> {
    for (name, item) in ty.imports(engine) {
        let ComponentItem::ComponentInstance(instance) = item.ty else {
            continue;
        };
        let interface = name
            .strip_prefix(PACKAGE)
            .and_then(|rest| rest.strip_suffix(VERSION));
        let offered = FUNCTIONS
            .iter()
            .find(|(offered, _)| Some(*offered) == interface);
        let offered: &[&str] = offered.map_or(&[], |(_, functions)| functions);
        for (function, item) in instance.exports(engine) {
            let is_function = matches!(item.ty, ComponentItem::ComponentFunc(_));
            if is_function && !offered.contains(&function) {
                return Err(Refusal::ForbiddenImport {
                    import: format!("{name}#{function}"),
                    hint: "this version of the interface has no such function".to_owned(),
                });
            }
        }
    }
    Ok(())
}

/// Says why a component that passed the cheap checks could not be linked or instantiated.
pub(crate) fn cannot_link(error: &wasmtime::Error) -> Refusal {
    Refusal::WrongWorld(fault::chain(error))
}

/// Says why a component failed before it had described itself. `what` was running, `error` is
/// what wasmtime said, and `class` what that means.
pub(crate) fn cannot_describe(what: &str, error: &wasmtime::Error, class: Error) -> Refusal {
    if let Some(Unanswerable { call }) = error.downcast_ref::<Unanswerable>() {
        return Refusal::Description(format!(
            "{what} called {call}; only log.write may be called there"
        ));
    }
    match class {
        Error::LimitExceeded(text) => Refusal::TooLarge(text),
        Error::Timeout { limit } => {
            Refusal::Description(format!("{what} exceeded its time limit of {limit}"))
        }
        Error::Trap { message, backtrace } if backtrace.is_empty() => {
            Refusal::Description(format!("{what} failed: {message}"))
        }
        Error::Trap { message, backtrace } => {
            Refusal::Description(format!("{what} failed: {message}\n{backtrace}"))
        }
        Error::Stopped(_) | Error::Unavailable(_) => Refusal::Description(class.to_string()),
    }
}

/// Checks what a component says about itself.
///
/// # Errors
/// [`Refusal::Description`] naming the first thing that is wrong.
pub(crate) fn check_description(description: &ComponentDescription) -> Result<(), Refusal> {
    check(description).map_err(Refusal::Description)
}

/// Checks that described queries and updates can be asked for. `missing`: whether the component
/// lacks the exports `query` and `validate-update`.
///
/// # Errors
/// [`Refusal::WrongWorld`] naming the missing export.
pub(crate) fn check_handlers(
    description: &ComponentDescription,
    missing: (bool, bool),
) -> Result<(), Refusal> {
    for workflow in &description.workflows {
        let lacks = [
            (missing.0, "queries", &workflow.queries, "query"),
            (missing.1, "updates", &workflow.updates, "validate-update"),
        ];
        for (is_missing, what, described, export) in lacks {
            if is_missing && !described.is_empty() {
                return Err(Refusal::WrongWorld(format!(
                    "workflow {:?} describes {what}, but the component does not export `{export}`",
                    workflow.name
                )));
            }
        }
    }
    Ok(())
}

fn check(description: &ComponentDescription) -> Result<(), String> {
    let bytes = text_bytes(description);
    if bytes > DESCRIPTION_BYTES_MAX {
        return Err(format!(
            "it has {bytes} bytes of text; the limit is {DESCRIPTION_BYTES_MAX}"
        ));
    }
    if description.resume_batch_max == 0 {
        return Err("resume-batch-max is 0; it must be at least 1".to_owned());
    }
    if description.workflows.is_empty() {
        return Err("it names no workflow".to_owned());
    }
    check_names(
        "workflow",
        description.workflows.iter().map(|w| w.name.as_str()),
    )?;
    description.workflows.iter().try_for_each(check_workflow)
}

fn check_workflow(workflow: &WorkflowDescription) -> Result<(), String> {
    let name = &workflow.name;
    check_schema(&workflow.input_schema, || {
        format!("input of workflow {name:?}")
    })?;
    check_schema(&workflow.output_schema, || {
        format!("output of workflow {name:?}")
    })?;
    check_messages(name, "signal", &workflow.signals)?;
    check_messages(name, "query", &workflow.queries)?;
    check_messages(name, "update", &workflow.updates)
}

fn check_messages(
    workflow: &str,
    what: &str,
    messages: &[MessageDescription],
) -> Result<(), String> {
    check_names(what, messages.iter().map(|message| message.name.as_str()))?;
    for message in messages {
        let name = &message.name;
        check_schema(&message.input_schema, || {
            format!("input of {what} {name:?} of workflow {workflow:?}")
        })?;
        check_schema(&message.output_schema, || {
            format!("output of {what} {name:?} of workflow {workflow:?}")
        })?;
    }
    Ok(())
}

fn check_names<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for name in names {
        if name.is_empty() {
            return Err(format!("the name of a {what} is empty"));
        }
        if name.len() > ID_BYTES_MAX {
            let length = name.len();
            return Err(format!(
                "the name of a {what} is {length} bytes long; the limit is {ID_BYTES_MAX}"
            ));
        }
        if !seen.insert(name) {
            return Err(format!("there are two of the {what} {name:?}"));
        }
    }
    Ok(())
}

/// A schema is JSON: an object, `true` or `false`; empty means that there is none.
fn check_schema(schema: &str, whose: impl Fn() -> String) -> Result<(), String> {
    if schema.is_empty() {
        return Ok(());
    }
    match serde_json::from_str(schema) {
        Ok(serde_json::Value::Object(_) | serde_json::Value::Bool(_)) => Ok(()),
        Ok(_) => Err(format!(
            "the schema of the {} is neither an object nor a boolean",
            whose()
        )),
        Err(error) => Err(format!(
            "the schema of the {} is not JSON: {error}",
            whose()
        )),
    }
}

fn text_bytes(description: &ComponentDescription) -> usize {
    let message = |m: &MessageDescription| {
        m.name.len() + m.doc.len() + m.input_schema.len() + m.output_schema.len()
    };
    let workflow = |w: &WorkflowDescription| {
        let messages = w.signals.iter().chain(&w.queries).chain(&w.updates);
        w.name.len()
            + w.doc.len()
            + w.input_schema.len()
            + w.output_schema.len()
            + messages.map(message).sum::<usize>()
    };
    description.sdk.len() + description.workflows.iter().map(workflow).sum::<usize>()
}
