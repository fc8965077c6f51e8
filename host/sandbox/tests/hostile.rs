//! Components made to be expensive: each is refused or compiled within its size's worth of work.
#![allow(clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

use std::fmt::Write;

use common::{Guestlet, sandbox};
use steadfast_ports::Guests;

fn wat(text: &str) -> Vec<u8> {
    wat::parse_str(text).expect("valid text")
}

/// A component whose exports have the type `t`, after the given types.
fn with_types(types: &str) -> Vec<u8> {
    wat(&format!(
        r#"(component {types}
            (core module $m
              (func (export "f") (param i32 i32) (result i32) unreachable)
              (memory (export "memory") 1)
              (func (export "realloc") (param i32 i32 i32 i32) (result i32) unreachable))
            (core instance $i (instantiate $m))
            (func $f (param "x" (list $t)) (result (list $t))
              (canon lift (core func $i "f") (memory (core memory $i "memory"))
                (realloc (core func $i "realloc"))))
            (export "describe" (func $f)) (export "start" (func $f)) (export "resume" (func $f)))"#
    ))
}

#[test]
fn types_nested_without_end_are_refused() {
    let mut types = "(type $t0 u8)".to_owned();
    for i in 1..=20_000 {
        write!(types, "(type $t{i} (list $t{}))", i - 1).expect("a string");
    }
    types.push_str("(type $t (list $t20000))");
    assert!(sandbox().admit(&with_types(&types)).is_err());
}

#[test]
fn types_that_double_at_each_step_are_refused() {
    let mut types = "(type $t0 (tuple u8 u8))".to_owned();
    for i in 1..=60 {
        write!(types, "(type $t{i} (tuple $t{0} $t{0}))", i - 1).expect("a string");
    }
    types.push_str("(type $t (list $t60))");
    assert!(sandbox().admit(&with_types(&types)).is_err());
}

#[test]
fn type_declarations_inside_each_other_are_refused() {
    let depth = 50_000;
    // component-type section: one type: `component { type: component { ... } }`.
    let mut section = vec![1];
    for _ in 0..depth {
        section.extend([0x41, 0x01, 0x01]);
    }
    section.extend([0x41, 0x00]);
    let mut bytes = b"\0asm\x0d\0\x01\0\x07".to_vec();
    let mut length = u32::try_from(section.len()).expect("small");
    while length >= 0x80 {
        bytes.push(u8::try_from(length & 0x7f).expect("seven bits") | 0x80);
        length >>= 7;
    }
    bytes.push(u8::try_from(length).expect("seven bits"));
    bytes.extend(section);
    let refusal = sandbox().admit(&bytes).expect_err("nested too deeply");
    assert_eq!(refusal.code(), "not-a-component", "{refusal}");
}

#[test]
fn deeply_nested_blocks_compile() {
    let depth = 20_000;
    let body = format!(
        "{}{} (i32.const 1024)",
        "(block ".repeat(depth),
        ")".repeat(depth)
    );
    let guest = Guestlet {
        start: body,
        ..Guestlet::default()
    };
    // Whether it is admitted does not matter; that the compiler's stack survives does.
    drop(sandbox().admit(&guest.component()));
}

#[test]
fn a_function_too_long_to_compile_quickly_is_refused() {
    let guest = Guestlet {
        start: format!(
            "{} (i32.const 1024)",
            "(drop (i32.const 1))".repeat(400_000)
        ),
        ..Guestlet::default()
    };
    let refusal = sandbox()
        .admit(&guest.component())
        .expect_err("it is too long");
    assert_eq!(refusal.code(), "component-too-large", "{refusal}");
}

#[test]
fn many_variables_over_many_blocks_compile_in_bounded_time() {
    // The known bad case of single-assignment construction: every block joins every variable.
    let (variables, blocks) = (2_000, 2_000);
    let mut body = String::new();
    for _ in 0..variables {
        body.push_str("(local i32) ");
    }
    for i in 0..blocks {
        let variable = 6 + i % variables;
        write!(
            body,
            "(block (br_if 0 (local.get 0)) (local.set {variable} (i32.add (local.get {variable}) (i32.const 1))))"
        )
        .expect("a string");
    }
    body.push_str("(i32.const 1024)");
    let guest = Guestlet {
        start: body,
        ..Guestlet::default()
    };
    assert!(sandbox().admit(&guest.component()).is_ok());
}
