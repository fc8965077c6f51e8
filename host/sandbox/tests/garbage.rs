//! Guests that hand nonsense through the canonical ABI: each gives an error, none harms the host.
#![allow(clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

use common::{Guestlet, Recorder, import, instance, sandbox, start};
use steadfast_ports::guest::Error;

fn error(guest: &Guestlet) -> Error {
    let sandbox = sandbox();
    let mut instance = instance(&sandbox, &guest.component());
    start(instance.as_mut(), Recorder::default())
        .0
        .expect_err("nonsense is refused")
}

/// `start` stores these words from address 4096 on and returns that address.
fn step(words: &[u32]) -> Guestlet {
    let stores: String = words
        .iter()
        .enumerate()
        .map(|(i, word)| {
            format!(
                "(i32.store (i32.const {}) (i32.const {word}))",
                4096 + 4 * i
            )
        })
        .collect();
    Guestlet {
        start: format!("{stores} (i32.const 4096)"),
        ..Guestlet::default()
    }
}

#[test]
fn bad_results_are_traps() {
    let pointer = |at: i64| Guestlet {
        start: format!("(i32.const {at})"),
        ..Guestlet::default()
    };
    let cases = [
        (pointer(-4), "out of bounds"),
        (pointer(65_532), "out of bounds"),
        (pointer(4_097), "not aligned"),
        // A variant case that does not exist.
        (step(&[6]), "discriminant"),
        (step(&[255]), "discriminant"),
        // completed: the encoding's string, then the data's list, out of bounds.
        (step(&[1, 65_000, 1_000, 0, 0]), "out of bounds"),
        (step(&[1, 0, 0, 4, 0xffff_ffff]), "out of bounds"),
        (step(&[1, 0, 0, 0xffff_fff0, 32]), "out of bounds"),
        // failed: frames out of bounds, unaligned, more than an address space.
        (step(&[2, 65_000, 1_000]), "out of bounds"),
        (step(&[2, 4, 1]), "aligned"),
        (step(&[2, 0, 0x0fff_ffff]), "out of bounds"),
        // continued: the input out of bounds.
        (step(&[5, 65_000, 1_000]), "out of bounds"),
    ];
    for (guest, expected) in cases {
        let error = error(&guest);
        assert_eq!(error.code(), "trap", "{error}");
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
}

#[test]
fn a_result_with_text_that_is_not_utf_8_is_a_trap() {
    let guest = Guestlet {
        more: r#"(data (i32.const 2048) "a\ff")"#.to_owned(),
        ..step(&[1, 2048, 2, 0, 0])
    };
    let error = error(&guest);
    assert!(error.to_string().contains("utf-8"), "{error}");
}

#[test]
fn bad_arguments_of_calls_are_traps() {
    let write = |call: &str| Guestlet {
        imports: import("log", "write", "write", "(param i32 i32 i32)"),
        more: r#"(data (i32.const 2048) "a\ff")"#.to_owned(),
        start: format!("{call} (i32.const 1024)"),
        ..Guestlet::default()
    };
    let cases = [
        (
            write("(call $write (i32.const 4) (i32.const 32) (i32.const 1))"),
            "discriminant",
        ),
        (
            write("(call $write (i32.const -1) (i32.const 32) (i32.const 1))"),
            "discriminant",
        ),
        (
            write("(call $write (i32.const 0) (i32.const 2048) (i32.const 2))"),
            "utf-8",
        ),
        (
            write("(call $write (i32.const 0) (i32.const 65536) (i32.const 1))"),
            "out of bounds",
        ),
        (
            write("(call $write (i32.const 0) (i32.const -1) (i32.const -1))"),
            "out of bounds",
        ),
    ];
    for (guest, expected) in cases {
        let error = error(&guest);
        assert_eq!(error.code(), "trap", "{error}");
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
}

#[test]
fn a_realloc_that_gives_nonsense_is_a_trap() {
    let component = |realloc: &str| {
        let text = Guestlet::default().text();
        let text = text.replace("(func $realloc (export \"cabi_realloc\")", "(func $realloc");
        let more = format!(
            "(func (export \"cabi_realloc\") (param i32 i32 i32 i32) (result i32) {realloc})
             (func $describe"
        );
        common::component_of("workflow", &text.replacen("(func $describe", &more, 1))
    };
    for realloc in [
        "(i32.const -1)",
        "(i32.const 65535)",
        "unreachable",
        "(loop (br 0)) unreachable",
    ] {
        let sandbox = common::sandbox_with(|o| {
            o.activation_time_max = steadfast_model::Millis(50);
        });
        let mut instance = instance(&sandbox, &component(realloc));
        let (result, _) = start(instance.as_mut(), Recorder::default());
        assert!(result.is_err(), "{realloc}: {result:?}");
    }
}

#[test]
fn a_result_that_refers_to_the_same_bytes_a_thousand_times_is_refused() {
    // 1,000 frames, all of whose details are the same 60,000 bytes.
    let guest = Guestlet {
        start: "(local $i i32) (local $at i32)
                (local.set $at (i32.const 65536))
                (drop (memory.grow (i32.const 2)))
                (loop $next
                  ;; details: some, at 40 of 64 bytes: encoding, data.
                  (i32.store8 offset=40 (local.get $at) (i32.const 1))
                  (i32.store offset=56 (local.get $at) (i32.const 60000))
                  (local.set $at (i32.add (local.get $at) (i32.const 64)))
                  (local.set $i (i32.add (local.get $i) (i32.const 1)))
                  (br_if $next (i32.lt_u (local.get $i) (i32.const 1000))))
                (i32.store (i32.const 4096) (i32.const 2))
                (i32.store (i32.const 4100) (i32.const 65536))
                (i32.store (i32.const 4104) (i32.const 1000))
                (i32.const 4096)"
            .to_owned(),
        ..Guestlet::default()
    };
    let error = error(&guest);
    assert_eq!(error.code(), "limit", "{error}");
}
