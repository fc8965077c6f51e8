//! What guests call: arguments and answers cross the boundary unchanged and within bounds.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

mod common;

use common::{
    Call, Guestlet, Recorder, call_schedule, import, import_schedule, instance, sandbox, start,
    taken,
};
use steadfast_model::command::{LogLevel, Step};
use steadfast_model::limits::LOG_LINE_BYTES_MAX;
use steadfast_model::{Millis, Payload, Seq, Timestamp};
use steadfast_ports::guest::{CallOptions, Error, Stop};

/// Runs `start` of a guest once.
fn started(guest: &Guestlet) -> (Result<Step, Error>, Recorder) {
    started_with(guest, Recorder::default())
}

fn started_with(guest: &Guestlet, recorder: Recorder) -> (Result<Step, Error>, Recorder) {
    let sandbox = sandbox();
    let mut instance = instance(&sandbox, &guest.component());
    start(instance.as_mut(), recorder)
}

#[test]
fn an_activity_call_arrives_as_it_was_made() {
    let guest = Guestlet {
        imports: import_schedule(),
        more: r#"(data (i32.const 2048) "charge{\22a\22:1}binary/plaintask-queuefastsummaryx")
                 ;; Two settings: task-queue=fast, summary=x.
                 (data (i32.const 3000) "\19\08\00\00\0a\00\00\00\23\08\00\00\04\00\00\00")
                 (data (i32.const 3016) "\27\08\00\00\07\00\00\00\2e\08\00\00\01\00\00\00")"#
            .to_owned(),
        start: "(i32.store8 (i32.const 4096) (i32.const 4))
                (i32.store (i32.const 4100) (call $schedule
                  (i32.const 2048) (i32.const 6) (i32.const 2061) (i32.const 12)
                  (i32.const 2054) (i32.const 7)
                  (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4) (i64.const 5)
                  (i32.const 6) (i64.const 7) (i32.const 8) (i32.const 3000) (i32.const 2)))
                (i32.const 4096)"
            .to_owned(),
        ..Guestlet::default()
    };
    let (result, recorder) = started(&guest);
    assert_eq!(
        result,
        Ok(Step::UnknownOperation(Seq(1))),
        "the answer comes back"
    );
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    let options = CallOptions {
        schedule_to_close: Millis(1),
        schedule_to_start: Millis(2),
        start_to_close: Millis(3),
        heartbeat: Millis(4),
        initial_interval: Millis(5),
        backoff_permille: 6,
        maximum_interval: Millis(7),
        maximum_attempts: 8,
        settings: vec![pair("task-queue", "fast"), pair("summary", "x")],
    };
    assert_eq!(
        recorder.calls,
        [Call::Schedule {
            activity_type: "charge".to_owned(),
            input: b"{\"a\":1}".to_vec(),
            encoding: "binary/plain".to_owned(),
            options,
        }]
    );
}

#[test]
fn settings_are_bounded() {
    let guest = Guestlet {
        imports: import_schedule(),
        start: "(drop (call $schedule (i32.const 32) (i32.const 1) (i32.const 0) (i32.const 0)
                  (i32.const 0) (i32.const 0)
                  (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)
                  (i32.const 0) (i64.const 0) (i32.const 0) (i32.const 8192) (i32.const 257)))
                (i32.const 1024)"
            .to_owned(),
        ..Guestlet::default()
    };
    let (result, _) = started(&guest);
    let text = result.expect_err("too many").to_string();
    assert_eq!(text, "a call has 257 settings; the limit is 256");
}

#[test]
fn a_stop_ends_the_activation_and_comes_through_unchanged() {
    let guest = Guestlet {
        imports: import_schedule(),
        start: format!("(drop {}) (i32.const 1024)", call_schedule((32, 1), (0, 0))),
        ..Guestlet::default()
    };
    for stop in [
        Stop::Nondeterminism("the history has a timer here".to_owned()),
        Stop::Limit("too many commands".to_owned()),
        Stop::Invalid("no such operation".to_owned()),
    ] {
        let recorder = Recorder {
            stop: Some(stop.clone()),
            ..Recorder::default()
        };
        let (result, recorder) = started_with(&guest, recorder);
        assert_eq!(result, Err(Error::Stopped(stop)));
        assert!(recorder.calls.is_empty());
    }
}

#[test]
fn timers_and_cancellations_reach_the_host() {
    let guest = Guestlet {
        imports: [
            import("timers", "start", "timer", "(param i64) (result i32)"),
            import("timers", "cancel", "stop-timer", "(param i32)"),
            import("activities", "cancel", "stop-activity", "(param i32)"),
        ]
        .concat(),
        start: "(call $stop-timer (call $timer (i64.const 60000)))
                (call $stop-activity (i32.const 9)) (i32.const 1024)"
            .to_owned(),
        ..Guestlet::default()
    };
    let (result, recorder) = started(&guest);
    assert_eq!(result, Ok(Step::Blocked));
    assert_eq!(
        recorder.calls,
        [
            Call::StartTimer(Millis(60_000)),
            Call::CancelTimer(Seq(1)),
            Call::CancelActivity(Seq(9))
        ]
    );
}

#[test]
fn random_bytes_are_copied_and_bounded() {
    let random = |length: u32| Guestlet {
        imports: import("random", "random-bytes", "random", "(param i32 i32)"),
        // The result is a payload without encoding: its pointer and length come from the import.
        start: format!(
            "(call $random (i32.const {length}) (i32.const 4108))
             (i32.store8 (i32.const 4096) (i32.const 1))
             (i32.const 4096)"
        ),
        ..Guestlet::default()
    };
    let (result, _) = started(&random(300));
    let expected: Vec<u8> = (0..300)
        .map(|i| u8::try_from(i % 251).expect("below 251"))
        .collect();
    assert_eq!(result, Ok(Step::Completed(Payload::json(expected))));
    let (result, _) = started(&random(0));
    assert_eq!(result, Ok(Step::Completed(Payload::json(""))));
    let (result, _) = started(&random(4097));
    assert_eq!(
        result,
        Err(Error::Stopped(Stop::Invalid(
            "random-bytes was asked for 4097 bytes; the limit is 4096".to_owned()
        )))
    );
}

#[test]
fn time_and_history_length_are_what_the_host_says() {
    let guest = Guestlet {
        imports: [
            import("clock", "now", "now", "(result i64)"),
            import("workflow-info", "history-length", "length", "(result i64)"),
            import("timers", "start", "timer", "(param i64) (result i32)"),
        ]
        .concat(),
        start: "(drop (call $timer (call $now))) (drop (call $timer (call $length)))
                (i32.const 1024)"
            .to_owned(),
        ..Guestlet::default()
    };
    let recorder = Recorder {
        now: Timestamp(123_456),
        ..Recorder::default()
    };
    let (_, recorder) = started_with(&guest, recorder);
    assert_eq!(
        recorder.calls,
        [
            Call::StartTimer(Millis(123_456)),
            Call::StartTimer(Millis(42))
        ]
    );
}

#[test]
fn facts_about_the_run_are_given() {
    let guest = Guestlet {
        imports: import("workflow-info", "get", "get", "(param i32)"),
        // The record: five strings, attempt at 40, started-ms at 48. Answer with the run id.
        start: "(call $get (i32.const 4112))
                (i32.store8 (i32.const 4096) (i32.const 1))
                (i32.store (i32.const 4100) (i32.const 0)) (i32.store (i32.const 4104) (i32.const 0))
                (i32.store (i32.const 4108) (i32.load (i32.const 4128)))
                (i32.store (i32.const 4112) (i32.load (i32.const 4132)))
                (if (i32.ne (i32.load (i32.const 4152)) (i32.const 1)) (then unreachable))
                (if (i64.ne (i64.load (i32.const 4160)) (i64.const 500)) (then unreachable))
                (i32.const 4096)"
            .to_owned(),
        ..Guestlet::default()
    };
    let (result, _) = started(&guest);
    let id = "07070707-0707-0707-0707-070707070707";
    assert_eq!(result, Ok(Step::Completed(Payload::json(id))));
}

#[test]
fn markers_pass_their_names_and_values() {
    let guest = Guestlet {
        imports: [
            import(
                "markers",
                "patched",
                "patched",
                "(param i32 i32) (result i32)",
            ),
            import("markers", "deprecate-patch", "deprecate", "(param i32 i32)"),
            import(
                "markers",
                "side-effect",
                "effect",
                "(param i32 i32 i32 i32 i32 i32 i32)",
            ),
        ]
        .concat(),
        // Name and value are the byte at 32; the answer is the payload of the result.
        start: "(if (i32.ne (call $patched (i32.const 32) (i32.const 1)) (i32.const 1))
                  (then unreachable))
                (call $deprecate (i32.const 32) (i32.const 1))
                (call $effect (i32.const 32) (i32.const 1) (i32.const 32) (i32.const 0)
                  (i32.const 32) (i32.const 1) (i32.const 4100))
                (i32.store8 (i32.const 4096) (i32.const 1))
                (i32.const 4096)"
            .to_owned(),
        ..Guestlet::default()
    };
    let (result, recorder) = started(&guest);
    assert_eq!(result, Ok(Step::Completed(Payload::json("[1]"))));
    let name = || "w".to_owned();
    assert_eq!(
        recorder.calls,
        [
            Call::Patched(name()),
            Call::DeprecatePatch(name()),
            Call::SideEffect(name(), Payload::json("w")),
        ]
    );
}

#[test]
fn log_lines_are_cut_at_a_character() {
    let guest = Guestlet {
        imports: import("log", "write", "write", "(param i32 i32 i32)"),
        // 20,000 bytes of a two-byte character, shifted by one byte: a cut at the limit would
        // fall into the middle of one.
        start: "(local $i i32)
                (i32.store8 (i32.const 20000) (i32.const 97))
                (local.set $i (i32.const 20001))
                (loop $next
                  (i32.store16 (local.get $i) (i32.const 0xa9c3))
                  (local.set $i (i32.add (local.get $i) (i32.const 2)))
                  (br_if $next (i32.lt_u (local.get $i) (i32.const 40001))))
                (call $write (i32.const 2) (i32.const 20000) (i32.const 20001))
                (call $write (i32.const 0) (i32.const 32) (i32.const 1))
                (i32.const 1024)"
            .to_owned(),
        ..Guestlet::default()
    };
    let (result, recorder) = started(&guest);
    assert_eq!(result, Ok(Step::Blocked));
    let [(LogLevel::Warn, long), (LogLevel::Debug, short)] = &recorder.lines[..] else {
        panic!("{:?}", recorder.lines)
    };
    assert_eq!(long.len(), LOG_LINE_BYTES_MAX - 1);
    assert!(long.ends_with('\u{e9}'));
    assert_eq!(short, "w");
}

#[test]
fn computed_nans_have_one_bit_pattern() {
    // Some 0/0, inf-inf, sqrt(-1) and a NaN with a payload that goes through an addition.
    for float in [
        "(f64.div (f64.const 0) (f64.const 0))",
        "(f64.div (f64.const -0) (f64.const 0))",
        "(f64.sub (f64.const inf) (f64.const inf))",
        "(f64.sqrt (f64.const -1))",
        "(f64.add (f64.const nan:0x8000000000001) (f64.const 1))",
        "(f64.promote_f32 (f32.div (f32.const 0) (f32.const 0)))",
    ] {
        let guest = Guestlet {
            imports: import("timers", "start", "timer", "(param i64) (result i32)"),
            start: format!("(drop (call $timer (i64.reinterpret_f64 {float}))) (i32.const 1024)"),
            ..Guestlet::default()
        };
        let (_, recorder) = started(&guest);
        assert_eq!(
            recorder.calls,
            [Call::StartTimer(Millis(0x7ff8_0000_0000_0000))],
            "{float}"
        );
    }
}

#[test]
fn start_is_given_the_type_and_the_input() {
    // Completes with the input's bytes under the workflow type as encoding.
    let guest = Guestlet {
        start: "(i32.store8 (i32.const 4096) (i32.const 1))
                (i32.store (i32.const 4100) (local.get 0))
                (i32.store (i32.const 4104) (local.get 1))
                (i32.store (i32.const 4108) (local.get 4))
                (i32.store (i32.const 4112) (local.get 5))
                (i32.const 4096)"
            .to_owned(),
        ..Guestlet::default()
    };
    let sandbox = sandbox();
    let mut guest = instance(&sandbox, &guest.component());
    let (result, _) = taken(guest.start(
        "order",
        &Payload::json("[1]"),
        Box::new(Recorder::default()),
    ));
    assert_eq!(
        result,
        Ok(Step::Completed(Payload::encoded("order", b"[1]".to_vec())))
    );
}
