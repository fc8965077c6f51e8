//! What is let in, and what is told to those that are not.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

mod common;

use common::{Guestlet, component_of, import, sandbox, sandbox_with};
use steadfast_model::limits::COMPONENT_BYTES_MAX;
use steadfast_ports::Guests;
use steadfast_ports::guest::Refusal;

fn refusal(bytes: &[u8]) -> Refusal {
    sandbox().admit(bytes).expect_err("it must be refused")
}

/// The import that a component in text is refused for, and the hint.
fn forbidden(text: &str) -> (String, String) {
    let refusal = refusal(&wat::parse_str(text).expect("valid text"));
    let Refusal::ForbiddenImport { import, hint } = refusal else {
        panic!("{refusal}")
    };
    (import, hint)
}

#[test]
fn a_component_is_admitted_with_its_description() {
    let component = Guestlet {
        imports: common::import_schedule(),
        start: format!(
            "{} drop (i32.const 1024)",
            common::call_schedule((32, 1), (0, 0))
        ),
        ..Guestlet::default()
    }
    .component();
    let admitted = sandbox().admit(&component).expect("it is admitted");
    assert_eq!(admitted.description.sdk, "test/1");
    assert_eq!(admitted.description.resume_batch_max, 1);
    assert_eq!(admitted.description.workflows.len(), 1);
    assert_eq!(admitted.description.workflows[0].name, "w");
    assert!(
        admitted
            .description
            .imports
            .contains(&"steadfast:workflow/activities@0.1.0".to_owned())
    );
    let again = sandbox().admit(&component).expect("it is admitted");
    assert_eq!(again, admitted, "admission is a function of the bytes");
}

#[test]
fn what_is_not_a_component_is_named() {
    let core = wat::parse_str("(module)").expect("valid text");
    let mut unknown = core.clone();
    unknown[4] = 9;
    let cases: [(&[u8], &str); 6] = [
        (b"", "the file is empty"),
        (b"(component)", "this is text, not WebAssembly"),
        (
            b"\x7fELF\xff\xfe\x00",
            "the bytes do not begin like WebAssembly",
        ),
        (
            &core,
            "this is a core module; use `steadfast component build`",
        ),
        (&unknown, "this is WebAssembly of an unknown version"),
        (b"\0asm\x0d\0\x01\0\xff", "it is malformed"),
    ];
    for (bytes, expected) in cases {
        let refusal = refusal(bytes);
        assert_eq!(refusal.code(), "not-a-component");
        assert!(refusal.to_string().contains(expected), "{refusal}");
    }
}

#[test]
fn missing_exports_are_named() {
    let component = wat::parse_str("(component)").expect("valid text");
    let text = refusal(&component).to_string();
    assert!(
        text.contains("does not export `describe`, `start`, `resume`"),
        "{text}"
    );
    assert!(text.contains("it exports nothing"), "{text}");
}

#[test]
fn waiting_belongs_to_the_blocking_world_only() {
    let core = r#"(module
        (import "steadfast:workflow/waiting@0.1.0" "is-cancel-requested" (func (result i32)))
        (memory (export "memory") 1)
        (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 0))
        (func (export "describe") (result i32) (i32.const 0))
        (func (export "run") (param i32 i32 i32 i32 i32 i32) (result i32) (i32.const 0)))"#;
    // The world is taken, the empty answer of `describe` is not.
    let refusal = refusal(&component_of("blocking-workflow", core));
    assert_eq!(refusal.code(), "invalid-description", "{refusal}");
    let without_run = r#"(component
        (import "steadfast:workflow/waiting@0.1.0" (instance
            (export "is-cancel-requested" (func (result bool))))))"#;
    let refusal = self::refusal(&wat::parse_str(without_run).expect("valid text"));
    assert_eq!(refusal.code(), "wrong-world");
    assert!(
        refusal.to_string().contains("`blocking-workflow`"),
        "{refusal}"
    );
}

#[test]
fn forbidden_imports_are_named_exactly_with_a_hint() {
    let cases = [
        (
            "wasi:cli/environment@0.2.6",
            "build for wasm32-unknown-unknown",
        ),
        (
            "steadfast:workflow/clock@0.2.0",
            "use an SDK made for that version",
        ),
        (
            "steadfast:workflow/secrets@0.1.0",
            "use an SDK made for that version",
        ),
        ("acme:tools/mail@1.0.0", "into an activity"),
    ];
    for (import, hint) in cases {
        let text = format!(r#"(component (import "{import}" (instance)))"#);
        let (named, given) = forbidden(&text);
        assert_eq!(named, import);
        assert!(given.contains(hint), "{given}");
    }
}

#[test]
fn an_unknown_function_of_a_known_interface_is_named() {
    let text = r#"(component
        (import "steadfast:workflow/clock@0.1.0" (instance (export "later" (func))))
        (core module $m (func (export "f")))
        (core instance $i (instantiate $m))
        (func $f (canon lift (core func $i "f")))
        (export "describe" (func $f)) (export "start" (func $f)) (export "resume" (func $f)))"#;
    assert_eq!(forbidden(text).0, "steadfast:workflow/clock@0.1.0#later");
}

#[test]
fn exports_and_imports_of_the_wrong_type_are_named() {
    let body = r#"
        (core module $m (func (export "f")))
        (core instance $i (instantiate $m))
        (func $f (canon lift (core func $i "f")))
        (export "describe" (func $f)) (export "start" (func $f)) (export "resume" (func $f)))"#;
    let exports = refusal(&wat::parse_str(format!("(component {body}")).expect("valid text"));
    assert_eq!(exports.code(), "wrong-world");
    assert!(exports.to_string().contains("export `start`"), "{exports}");
    let import = r#"(import "steadfast:workflow/clock@0.1.0" (instance (export "now" (func))))"#;
    let imports =
        refusal(&wat::parse_str(format!("(component {import} {body}")).expect("valid text"));
    assert_eq!(imports.code(), "wrong-world");
    assert!(imports.to_string().contains("clock@0.1.0"), "{imports}");
}

#[test]
fn what_exceeds_a_bound_is_refused_before_it_is_compiled() {
    let huge = vec![0; COMPONENT_BYTES_MAX + 1];
    let mut nested = "(component".to_owned();
    nested.push_str(&"(component".repeat(20));
    nested.push_str(&")".repeat(21));
    // Each level instantiates the one before twice: 2^30 instances if nobody counted.
    let mut bomb = "(component (component $c0)".to_owned();
    for level in 1..=30 {
        let below = level - 1;
        bomb.push_str(&format!(
            "(component $c{level} (alias outer 1 $c{below} (component $b))
               (instance (instantiate $b)) (instance (instantiate $b)))"
        ));
    }
    bomb.push_str("(instance (instantiate $c30)))");
    let memory = Guestlet {
        pages: 1025,
        ..Guestlet::default()
    }
    .component();
    let table = Guestlet {
        more: "(table 20001 funcref)".to_owned(),
        ..Guestlet::default()
    };
    let cases = [
        (huge, "it is 67108865 bytes long; the limit is 67108864"),
        (
            wat::parse_str(nested).expect("valid text"),
            "too many nested components",
        ),
        (
            wat::parse_str(bomb).expect("valid text"),
            "too many instances of nested components",
        ),
        (
            memory,
            "its memory begins with 67174400 bytes; the limit is 67108864",
        ),
        (
            table.component(),
            "its tables begin with 20001 elements; the limit is 20000",
        ),
    ];
    for (bytes, expected) in cases {
        let refusal = refusal(&bytes);
        assert_eq!(refusal.code(), "component-too-large", "{refusal}");
        assert!(refusal.to_string().contains(expected), "{refusal}");
    }
}

#[test]
fn shared_memory_does_not_validate() {
    let text = r#"(component (core module (memory 1 2 shared)))"#;
    let refusal = refusal(&wat::parse_str(text).expect("valid text"));
    assert!(
        refusal.to_string().contains("does not validate"),
        "{refusal}"
    );
}

#[test]
fn describe_may_log_and_call_nothing_else() {
    let log = Guestlet {
        imports: import("log", "write", "write", "(param i32 i32 i32)"),
        describe: "(call $write (i32.const 1) (i32.const 32) (i32.const 1)) (i32.const 64)"
            .to_owned(),
        ..Guestlet::default()
    };
    assert!(sandbox().admit(&log.component()).is_ok());
    let cases = [
        (
            "clock",
            "now",
            "(result i64)",
            "(drop (call $f)) (i32.const 64)",
            "clock.now",
        ),
        (
            "timers",
            "start",
            "(param i64) (result i32)",
            "(drop (call $f (i64.const 1))) (i32.const 64)",
            "timers.start",
        ),
    ];
    for (interface, function, ty, describe, call) in cases {
        let guest = Guestlet {
            imports: import(interface, function, "f", ty),
            describe: describe.to_owned(),
            ..Guestlet::default()
        };
        let refusal = refusal(&guest.component());
        assert_eq!(refusal.code(), "invalid-description");
        assert!(refusal.to_string().contains(call), "{refusal}");
    }
}

#[test]
fn a_component_that_cannot_describe_itself_is_refused() {
    let spin = Guestlet {
        describe: "(loop (br 0)) unreachable".to_owned(),
        ..Guestlet::default()
    };
    let sandbox = sandbox_with(|o| o.activation_time_max = steadfast_model::Millis(50));
    let refusal = sandbox.admit(&spin.component()).expect_err("it spins");
    assert!(
        refusal.to_string().contains("time limit of 50 ms"),
        "{refusal}"
    );
    let trap = Guestlet {
        describe: "unreachable".to_owned(),
        ..Guestlet::default()
    };
    let refusal = sandbox.admit(&trap.component()).expect_err("it traps");
    assert_eq!(refusal.code(), "invalid-description");
    assert!(refusal.to_string().contains("unreachable"), "{refusal}");
    assert!(refusal.to_string().contains("at describe"), "{refusal}");
}

/// A description at 2048: the batch, and workflows at 65536 which are `count` times the same.
fn described(batch: u32, workflow: &[(u32, u32)], count: u32) -> Vec<u8> {
    let word = |n: u32| n.to_le_bytes().map(|b| format!("\\{b:02x}")).concat();
    let fields: String = workflow
        .iter()
        .map(|(at, length)| word(*at) + &word(*length))
        .collect();
    let record = [16, 6, batch, 65_536, count].map(word).concat();
    Guestlet {
        describe: "(i32.const 2048)".to_owned(),
        more: format!(
            r#"(data (i32.const 2048) "{record}")
               (data (i32.const 65536) "{all}")
               (data (i32.const 4096) "{name}")
               (data (i32.const 6000) "{{}}[1]{{")
               (data (i32.const 6100) "\ff\fe")"#,
            all = fields.repeat(usize::try_from(count).expect("small")),
            name = "n".repeat(1001),
        ),
        pages: 2,
        ..Guestlet::default()
    }
    .component()
}

#[test]
fn descriptions_are_checked() {
    let none = (0, 0);
    let w = |name: (u32, u32), input: (u32, u32)| [name, none, input, none, none, none, none];
    assert!(
        sandbox()
            .admit(&described(1, &w((32, 1), (6000, 2)), 1))
            .is_ok()
    );
    let cases = [
        (described(0, &w((32, 1), none), 1), "resume-batch-max is 0"),
        (described(1, &w((32, 1), none), 0), "it names no workflow"),
        (
            described(1, &w((32, 1), none), 2),
            "there are two of the workflow \"w\"",
        ),
        (
            described(1, &w(none, none), 1),
            "the name of a workflow is empty",
        ),
        (
            described(1, &w((4096, 1001), none), 1),
            "1001 bytes long; the limit is 1000",
        ),
        (
            described(1, &w((32, 1), (6000, 1)), 1),
            "the schema of the input of workflow \"w\" is not JSON",
        ),
        (
            described(1, &w((32, 1), (6002, 3)), 1),
            "neither an object nor a boolean",
        ),
        (described(1, &w((6100, 2), none), 1), "utf-8"),
        (
            described(1, &w((32, 1), (131_000, 2000)), 1),
            "out of bounds",
        ),
    ];
    for (component, expected) in cases {
        let refusal = refusal(&component);
        assert_eq!(refusal.code(), "invalid-description", "{refusal}");
        assert!(
            refusal.to_string().contains(expected),
            "{expected}: {refusal}"
        );
    }
}

#[test]
fn a_description_that_refers_to_the_same_text_a_thousand_times_costs_no_memory() {
    // 1,000 workflows whose doc is the same 57,000 bytes: 57 MB for the host if nobody counted.
    let name = (4096, 1);
    let doc = (8192, 57_000);
    let none = (0, 0);
    let component = described(1, &[name, none, none, none, none, none, none], 1);
    assert!(sandbox().admit(&component).is_ok());
    let component = described(1, &[name, doc, none, none, none, none, none], 1_000);
    let refusal = refusal(&component);
    assert!(refusal.to_string().contains("too much data"), "{refusal}");
}
