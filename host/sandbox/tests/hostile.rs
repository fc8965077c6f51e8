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

/// Refused for the time that it would take.
fn is_too_slow(start: String) {
    let guest = Guestlet {
        start,
        ..Guestlet::default()
    };
    let refusal = sandbox()
        .admit(&guest.component())
        .expect_err("it is too slow");
    assert_eq!(refusal.code(), "component-too-large", "{refusal}");
    assert!(
        refusal
            .to_string()
            .contains("to compile; the limit is 10 s"),
        "{refusal}"
    );
}

/// Declares variables, which begin at number 6.
fn variables(count: usize) -> String {
    "(local i32) ".repeat(count)
}

#[test]
fn jumps_that_carry_many_variables_are_refused() {
    let mut body = format!("{}(block ", variables(1_000));
    for i in 0..10_000 {
        let variable = 6 + i % 1_000;
        write!(
            body,
            "(local.set {variable} (i32.const {i})) (br_if 0 (local.get 0))"
        )
        .expect("a string");
    }
    body.push_str(") (i32.const 1024)");
    is_too_slow(body);
}

#[test]
fn jumps_that_carry_many_operands_are_refused() {
    let operands = "i32 ".repeat(200);
    let values = "(local.get 0) ".repeat(200);
    let body = format!(
        "{values} (loop (param {operands}) {} {}) (i32.const 1024)",
        "(br_if 0 (local.get 0))".repeat(10_000),
        "drop ".repeat(200)
    );
    is_too_slow(body);
}

#[test]
fn tables_of_jumps_are_refused() {
    let mut body = format!("{}(block (block (br_if 0 (local.get 0)) ", variables(1_000));
    for variable in 6..1_006 {
        write!(body, "(local.set {variable} (local.get 0))").expect("a string");
    }
    write!(body, ") (br_table {} (local.get 0)))", "0 ".repeat(10_000)).expect("a string");
    body.push_str("(i32.const 1024)");
    // The table is in the outer block, in which everything was assigned.
    is_too_slow(body);
}

#[test]
fn loops_inside_each_other_are_refused() {
    let depth = 8_000;
    let open = "(loop (br_if 0 (local.get 0)) ".repeat(depth);
    is_too_slow(format!("{open}{} (i32.const 1024)", ")".repeat(depth)));
}

#[test]
fn many_blocks_with_many_variables_are_refused() {
    let mut body = variables(16_000);
    for i in 0..16_000 {
        let variable = 6 + i;
        write!(
            body,
            "(block (br_if 0 (local.get 0)) (local.set {variable} (i32.const 1)))"
        )
        .expect("a string");
    }
    body.push_str("(i32.const 1024)");
    is_too_slow(body);
}

#[test]
fn functions_with_too_many_parameters_or_results_are_refused() {
    for more in [
        format!("(func (param {}))", "i32 ".repeat(257)),
        format!("(func (result {}) unreachable)", "i32 ".repeat(17)),
    ] {
        let guest = Guestlet {
            more,
            ..Guestlet::default()
        };
        let refusal = sandbox().admit(&guest.component()).expect_err("too many");
        assert!(refusal.to_string().contains("of one function"), "{refusal}");
    }
}

#[test]
fn many_small_functions_add_up() {
    // Each is within the limit: 1,600 loops in loops take about a second. All together are not.
    let depth = 1_600;
    let open = "(loop (br_if 0 (local.get 0)) ".repeat(depth);
    let function = format!("(func (param i32) {open}{})", ")".repeat(depth));
    let guest = Guestlet {
        more: function.repeat(400),
        ..Guestlet::default()
    };
    let refusal = sandbox()
        .admit(&guest.component())
        .expect_err("it is too slow");
    assert!(
        refusal.to_string().contains("the limit is 240 s"),
        "{refusal}"
    );
}
