//! Whether a component's outside fits the world `workflow`.

use steadfast_ports::guest::Refusal;

use crate::abi::{EXPORTS, FUNCTIONS, PACKAGE, TYPES_ONLY, VERSION};
use crate::shape::Shape;

/// Checks names of imports and exports. Their types are checked when the component is linked.
///
/// # Errors
/// [`Refusal::WrongWorld`] or [`Refusal::ForbiddenImport`].
pub(crate) fn check(shape: &Shape) -> Result<(), Refusal> {
    check_not_blocking(shape)?;
    for import in &shape.imports {
        if !is_allowed(import) {
            return Err(Refusal::ForbiddenImport {
                import: import.clone(),
                hint: hint(import),
            });
        }
    }
    let missing: Vec<&str> = EXPORTS
        .into_iter()
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

/// The other world of the package deserves a better message than a missing export.
fn check_not_blocking(shape: &Shape) -> Result<(), Refusal> {
    let waiting = interface_name("waiting");
    let waits = shape.imports.contains(&waiting);
    let runs = shape.exports_function("run") && shape.exports_function("describe");
    if waits || (runs && !shape.exports_function("start")) {
        return Err(Refusal::WrongWorld(
            "it is of the world `blocking-workflow`, which this version of the host does not run \
             yet; build it for the world `workflow`"
                .to_owned(),
        ));
    }
    Ok(())
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
            "this host offers the world `workflow` of steadfast:workflow{VERSION}; use an SDK \
             made for that version"
        );
    }
    "a workflow may import only the interfaces of steadfast:workflow; move the code that needs it \
     into an activity"
        .to_owned()
}
