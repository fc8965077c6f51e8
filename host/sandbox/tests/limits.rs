//! What stops a guest, and how it is reported.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

mod common;

use std::sync::mpsc;
use std::time::Duration;

use common::{Guestlet, Recorder, import, instance, sandbox, sandbox_with, start};
use steadfast_model::Millis;
use steadfast_ports::Guests;
use steadfast_ports::guest::Error;

fn failure(guest: &Guestlet) -> Error {
    let sandbox = sandbox_with(|o| o.activation_time_max = Millis(100));
    let mut instance = instance(&sandbox, &guest.component());
    let (result, recorder) = start(instance.as_mut(), Recorder::default());
    let error = result.expect_err("it must fail");
    // The instance stays refused afterwards, and the calls always come back.
    let (again, _recorder) = start(instance.as_mut(), recorder);
    assert_eq!(again.expect_err("it is dead").code(), "component");
    error
}

#[test]
fn a_spinning_guest_is_interrupted() {
    let guest = Guestlet {
        start: "(loop (br 0)) unreachable".to_owned(),
        ..Guestlet::default()
    };
    let error = failure(&guest);
    assert_eq!(error, Error::Timeout { limit: Millis(100) });
    assert!(error.to_string().contains("100 ms"));
}

#[test]
fn memory_past_the_limit_is_a_limit_and_not_a_trap() {
    let grow = "(if (i32.eq (memory.grow (i32.const 1024)) (i32.const -1)) (then unreachable))
                (i32.const 1024)";
    let guest = Guestlet {
        start: grow.to_owned(),
        ..Guestlet::default()
    };
    assert_eq!(
        failure(&guest),
        Error::LimitExceeded(
            "the guest asked for 67174400 bytes of memory; the limit is 67108864".to_owned()
        )
    );
}

#[test]
fn a_guest_that_survives_a_denied_growth_goes_on() {
    let grow = "(drop (memory.grow (i32.const 5000))) (i32.const 1024)";
    let guest = Guestlet {
        start: grow.to_owned(),
        ..Guestlet::default()
    };
    let sandbox = sandbox();
    let mut instance = instance(&sandbox, &guest.component());
    let before = instance.memory_bytes();
    let (result, _) = start(instance.as_mut(), Recorder::default());
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(instance.memory_bytes(), before);
}

#[test]
fn memory_up_to_the_limit_is_given_and_counted() {
    let grow = "(if (i32.eq (memory.grow (i32.const 1023)) (i32.const -1)) (then unreachable))
                (i32.store (i32.const 67108860) (i32.const 1)) (i32.const 1024)";
    let guest = Guestlet {
        start: grow.to_owned(),
        ..Guestlet::default()
    };
    let sandbox = sandbox();
    let mut instance = instance(&sandbox, &guest.component());
    let before = instance.memory_bytes();
    assert!(before < 256 * 1024, "{before}");
    let (result, _) = start(instance.as_mut(), Recorder::default());
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(instance.memory_bytes(), before + 1023 * 65_536);
}

#[test]
fn tables_are_limited_too() {
    let guest = Guestlet {
        more: "(table 1 funcref)".to_owned(),
        start: "(if (i32.eq (table.grow (ref.null func) (i32.const 20000)) (i32.const -1))
                  (then unreachable)) (i32.const 1024)"
            .to_owned(),
        ..Guestlet::default()
    };
    let text = failure(&guest).to_string();
    assert!(
        text.contains("20001 table elements; the limit is 20000"),
        "{text}"
    );
}

#[test]
fn deep_recursion_is_a_limit() {
    let guest = Guestlet {
        more: "(func $deep (result i32) (i32.add (i32.const 1) (call $deep)))".to_owned(),
        start: "(call $deep)".to_owned(),
        ..Guestlet::default()
    };
    assert_eq!(
        failure(&guest),
        Error::LimitExceeded("the guest's call stack exceeds its limit of 524288 bytes".to_owned())
    );
}

#[test]
fn a_trap_has_a_message_and_function_names() {
    let guest = Guestlet {
        more: "(func $_ZN3abc5inner17h0123456789abcdefE (result i32) unreachable)
               (func $outer (result i32) (call $_ZN3abc5inner17h0123456789abcdefE))"
            .to_owned(),
        start: "(call $outer)".to_owned(),
        ..Guestlet::default()
    };
    let Error::Trap { message, backtrace } = failure(&guest) else {
        panic!("not a trap")
    };
    assert_eq!(message, "wasm `unreachable` instruction executed");
    assert_eq!(backtrace, "  at abc::inner\n  at outer\n  at start");
}

#[test]
fn a_logged_panic_becomes_the_message() {
    let guest = Guestlet {
        imports: import("log", "write", "write", "(param i32 i32 i32)"),
        more: r#"(data (i32.const 2048) "panic: no money left")"#.to_owned(),
        start: "(call $write (i32.const 3) (i32.const 2048) (i32.const 20)) unreachable".to_owned(),
        ..Guestlet::default()
    };
    let Error::Trap { message, backtrace } = failure(&guest) else {
        panic!("not a trap")
    };
    assert_eq!(message, "no money left");
    assert_eq!(backtrace, "  at start");
}

#[test]
fn arithmetic_and_memory_traps_are_traps() {
    for (body, expected) in [
        (
            "(i32.div_u (i32.const 1) (i32.const 0))",
            "integer divide by zero",
        ),
        (
            "(i32.load (i32.const 65536))",
            "out of bounds memory access",
        ),
        (
            "(i32.load (i32.const 0x7fffffff))",
            "out of bounds memory access",
        ),
        (
            "(i32.load offset=0xfffffff0 (i32.const -1))",
            "out of bounds memory access",
        ),
    ] {
        let guest = Guestlet {
            start: body.to_owned(),
            ..Guestlet::default()
        };
        let error = failure(&guest);
        assert_eq!(error.code(), "trap");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn a_spinning_guest_delays_nobody() {
    let spin = Guestlet {
        start: "(loop (br 0)) unreachable".to_owned(),
        ..Guestlet::default()
    };
    let sandbox = sandbox_with(|o| o.activation_time_max = Millis(60_000));
    let mut spinning = instance(&sandbox, &spin.component());
    let mut quick = instance(&sandbox, &Guestlet::default().component());
    let (entered, is_entered) = mpsc::channel();
    std::thread::spawn(move || {
        entered.send(()).expect("the test waits");
        start(spinning.as_mut(), Recorder::default())
    });
    is_entered.recv().expect("the thread runs");
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        for _ in 0..100 {
            let (result, _) = start(quick.as_mut(), Recorder::default());
            assert!(result.is_ok());
        }
        done.send(()).expect("the test waits");
    });
    // A generous bound: the calls take microseconds, the spinning guest takes a minute.
    assert!(is_done.recv_timeout(Duration::from_secs(20)).is_ok());
}

#[test]
fn instances_beyond_the_pool_are_made_one_by_one() {
    let sandbox = sandbox_with(|o| o.instances_max = 2);
    assert!(sandbox.is_pooling());
    let component = Guestlet::default().component();
    let digest = sandbox.admit(&component).expect("it is admitted").digest;
    let mut instances: Vec<_> = (0..7)
        .map(|_| common::instantiate(&sandbox, digest))
        .collect();
    for instance in &mut instances {
        assert!(start(instance.as_mut(), Recorder::default()).0.is_ok());
    }
    drop(instances);
    assert!(
        start(
            common::instantiate(&sandbox, digest).as_mut(),
            Recorder::default()
        )
        .0
        .is_ok()
    );
}

#[test]
fn a_sandbox_without_a_pool_runs_guests_too() {
    let sandbox = sandbox_with(|o| o.instances_max = 0);
    assert!(!sandbox.is_pooling());
    let mut guest = instance(&sandbox, &Guestlet::default().component());
    assert!(start(guest.as_mut(), Recorder::default()).0.is_ok());
}

#[test]
fn an_idle_sandbox_still_interrupts_later_guests() {
    // Long enough for the ticking thread to park.
    let sandbox = sandbox_with(|o| {
        o.activation_time_max = Millis(20);
        o.tick = Duration::from_millis(1);
    });
    let spin = Guestlet {
        start: "(loop (br 0)) unreachable".to_owned(),
        ..Guestlet::default()
    };
    let digest = sandbox
        .admit(&spin.component())
        .expect("it is admitted")
        .digest;
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(200));
        let mut guest = common::instantiate(&sandbox, digest);
        let (result, _) = start(guest.as_mut(), Recorder::default());
        assert_eq!(result, Err(Error::Timeout { limit: Millis(20) }));
    }
}
