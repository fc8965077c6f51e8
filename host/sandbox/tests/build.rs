//! Core modules become components, or it is said why not.
#![allow(clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

use common::{Guestlet, sandbox};
use steadfast_ports::Guests;
use steadfast_sandbox::build::{componentize, inspect};

fn refused(bytes: &[u8]) -> String {
    componentize(bytes)
        .expect_err("it must be refused")
        .to_string()
}

fn module(text: &str) -> Vec<u8> {
    wat::parse_str(text).expect("valid text")
}

#[test]
fn what_cannot_become_a_component_gets_a_hint() {
    let cases: [(&[u8], &str); 5] = [
        (b"", "cargo build --target wasm32-unknown-unknown"),
        (&module("(module)"), "no world is embedded"),
        (
            &module(r#"(module (import "wasi_snapshot_preview1" "random_get" (func)))"#),
            "build for wasm32-unknown-unknown instead",
        ),
        (
            &module(r#"(module (import "__wbindgen_placeholder__" "x" (func)))"#),
            "a dependency expects a browser",
        ),
        (
            &module(r#"(module (import "env" "puts" (func)))"#),
            "a native library is missing",
        ),
    ];
    for (bytes, expected) in cases {
        let text = refused(bytes);
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("hint: "), "{text}");
    }
}

#[test]
fn a_component_stays_what_it_is() {
    let component = Guestlet::default().component();
    assert_eq!(
        componentize(&component).expect("it is one already"),
        component
    );
}

#[test]
fn inspection_shows_the_outside_and_the_verdict() {
    let component = Guestlet {
        imports: common::import_schedule(),
        ..Guestlet::default()
    };
    let component = component.component();
    let inspection = inspect(&component).expect("it is a component");
    let admitted = sandbox().admit(&component).expect("it is admitted");
    assert_eq!(inspection.digest, admitted.digest);
    assert_eq!(usize::try_from(inspection.size_bytes), Ok(component.len()));
    assert_eq!(inspection.imports, admitted.description.imports);
    assert!(inspection.exports.iter().any(|name| name == "describe"));
    assert_eq!(inspection.verdict, Ok(admitted));
}

#[test]
fn a_refused_component_can_be_inspected() {
    let component = module(r#"(component (import "wasi:cli/environment@0.2.0" (instance)))"#);
    let inspection = inspect(&component).expect("it is a component");
    assert_eq!(inspection.imports, ["wasi:cli/environment@0.2.0"]);
    let refusal = inspection.verdict.expect_err("it is refused");
    assert_eq!(refusal.code(), "forbidden-import");
    assert!(inspect(b"text").is_err());
}
