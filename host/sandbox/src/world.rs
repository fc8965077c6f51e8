//! Whether a component's outside fits the world `workflow` or `blocking-workflow`.

use steadfast_ports::guest::Refusal;

use crate::abi::{BLOCKING_EXPORTS, EXPORTS, FUNCTIONS, PACKAGE, TYPES_ONLY, VERSION, WAITING};
use crate::shape::Shape;

/// Checks names of imports and exports. Their types are checked when the component is linked.
///
/// # Errors
/// [`Refusal::WrongWorld`] or [`Refusal::ForbiddenImport`].
pub(crate) fn check(shape: &Shape) -> Result<(), Refusal> {
    let is_blocking = is_blocking(shape);
    for import in &shape.imports {
        if !is_allowed(import) {
            return Err(Refusal::ForbiddenImport {
                import: import.clone(),
                hint: hint(import),
            });
        }
    }
    let wanted: &[&str] = if is_blocking {
        &BLOCKING_EXPORTS
    } else {
        &EXPORTS
    };
    if !is_blocking && shape.imports.contains(&interface_name(WAITING)) {
        return Err(Refusal::WrongWorld(
            "it imports `waiting`, which is of the world `blocking-workflow`, but exports no `run`"
                .to_owned(),
        ));
    }
    let missing: Vec<&str> = wanted
        .iter()
        .copied()
        .filter(|name| !shape.exports_function(name))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let exported: Vec<&str> = shape
        .exports
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    let exported = if exported.is_empty() {
        "nothing".to_owned()
    } else {
        exported.join(", ")
    };
    let missing = missing.join("`, `");
    Err(Refusal::WrongWorld(format!(
        "it does not export `{missing}`; it exports {exported}"
    )))
}

/// A component of the world `blocking-workflow` is known by its exports.
fn is_blocking(shape: &Shape) -> bool {
    shape.exports_function("run") && !shape.exports_function("start")
}

fn interface_name(interface: &str) -> String {
    format!("{PACKAGE}{interface}{VERSION}")
}

fn is_allowed(import: &str) -> bool {
    let interface = import
        .strip_prefix(PACKAGE)
        .and_then(|rest| rest.strip_suffix(VERSION));
    interface.is_some_and(|name| {
        TYPES_ONLY.contains(&name) || FUNCTIONS.iter().any(|(function, _)| *function == name)
    })
}

/// What to do about an import that is not available.
fn hint(import: &str) -> String {
    if import.starts_with("wasi:") {
        return "a workflow has no WASI; build for wasm32-unknown-unknown, and leave files, \
                environment, network and real time to activities"
            .to_owned();
    }
    if import.starts_with(PACKAGE) {
        return format!(
            "this host offers the worlds `workflow` and `blocking-workflow` of steadfast:workflow{VERSION}; use an SDK \
             made for that version"
        );
    }
    "a workflow may import only the interfaces of steadfast:workflow; move the code that needs it \
     into an activity"
        .to_owned()
}
