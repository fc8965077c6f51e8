//! Making components out of core modules, and looking into finished ones, for the command line.

use steadfast_model::ComponentDigest;
use steadfast_ports::Guests;
use steadfast_ports::guest::{Admitted, Refusal};
use wasmparser::Parser;
use wit_component::ComponentEncoder;

use crate::sandbox::digest_of;
use crate::{Options, Sandbox, SetupError, shape};

/// Why a core module could not be made into a component.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the module cannot be made into a component: {message}\nhint: {hint}")]
pub struct Error {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

/// Makes a component out of a core module that was built with generated bindings: these embed
/// the world in a custom section. The names of its functions are kept, for backtraces.
///
/// A file that is a component already is returned as it is.
///
/// # Errors
/// [`Error`] with a hint, when the module has no world, imports something else than the world
/// offers, or is invalid.
pub fn componentize(core_module: &[u8]) -> Result<Vec<u8>, Error> {
    if Parser::is_component(core_module) {
        return Ok(core_module.to_vec());
    }
    if !Parser::is_core_wasm(core_module) {
        return Err(Error {
            message: "it is not a WebAssembly module".to_owned(),
            hint: "give the .wasm file that `cargo build --target wasm32-unknown-unknown` wrote, \
                   of a crate with crate-type = [\"cdylib\"]"
                .to_owned(),
        });
    }
    check_imports(core_module)?;
    if !embeds_a_world(core_module) {
        return Err(Error {
            message: "no world is embedded in it".to_owned(),
            hint:
                "its crate must use steadfast-sdk and declare its workflows with it, or bindings \
                   generated from the package steadfast:workflow"
                    .to_owned(),
        });
    }
    ComponentEncoder::default()
        .validate(true)
        .module(core_module)
        .and_then(|encoder| encoder.encode())
        .map_err(|error| Error {
            message: format!("{error:#}"),
            hint: "the module was built against another version of steadfast:workflow, or exports \
                   are missing; use the SDK of this release"
                .to_owned(),
        })
}

/// Imports that no world explains, found before the encoder gives a less helpful answer.
fn check_imports(core_module: &[u8]) -> Result<(), Error> {
    for payload in Parser::new(0).parse_all(core_module) {
        let Ok(wasmparser::Payload::ImportSection(section)) = payload else {
            continue;
        };
        for import in section.into_imports().filter_map(Result::ok) {
            let hint = match import.module {
                "wasi_snapshot_preview1" | "wasi_unstable" => {
                    "build for wasm32-unknown-unknown instead of a WASI target"
                }
                "__wbindgen_placeholder__" | "__wbindgen_externref_xform__" => {
                    "a dependency expects a browser: switch its `js`, `wasmbind` or `wasm-bindgen` \
                     feature off (chrono, getrandom, uuid and time have one)"
                }
                "env" => "a native library is missing: leave the code that needs it to an activity",
                _ => continue,
            };
            return Err(Error {
                message: format!("it imports {}::{}", import.module, import.name),
                hint: hint.to_owned(),
            });
        }
    }
    Ok(())
}

/// Generated bindings leave the world in a custom section.
fn embeds_a_world(core_module: &[u8]) -> bool {
    Parser::new(0).parse_all(core_module).any(|payload| {
        matches!(
            payload,
            Ok(wasmparser::Payload::CustomSection(section))
                if section.name().starts_with("component-type")
        )
    })
}

/// What a component shows from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// SHA-256 of the bytes.
    pub digest: ComponentDigest,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Names of the imports, in the component's order.
    pub imports: Vec<String>,
    /// Names of the exports, in the component's order.
    pub exports: Vec<String>,
    /// What a host with default limits says to it: its description, or why it is refused.
    pub verdict: Result<Admitted, Refusal>,
}

/// Why a file could not be looked into.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The bytes are not a component.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The sandbox does not start on this machine.
    #[error(transparent)]
    Setup(#[from] SetupError),
}

/// Looks into a component: compiles it and has it describe itself, with nothing kept.
///
/// # Errors
/// [`InspectError`] when the bytes are not a component at all; everything else is in the verdict.
pub fn inspect(bytes: &[u8]) -> Result<Inspection, InspectError> {
    let options = Options {
        instances_max: 0,
        ..Options::default()
    };
    let shape = shape::look(bytes, &options)?;
    let verdict = Sandbox::new(options)?.admit(bytes);
    Ok(Inspection {
        digest: digest_of(bytes),
        // A slice's length fits.
        size_bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        imports: shape.imports,
        exports: shape.exports.into_iter().map(|(name, _)| name).collect(),
        verdict,
    })
}
