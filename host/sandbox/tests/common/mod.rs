//! Small guests written as WebAssembly text, and a host that records what they call.
#![allow(
    dead_code,
    reason = "each test binary uses its own part of this module"
)]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "test code"
)]

use std::any::Any;
use std::path::Path;

use steadfast_model::chain::Fields;
use steadfast_model::command::LogLevel;
use steadfast_model::{
    ChainOptions, ComponentDigest, Event, EventKind, EventNumber, Failure, Link, Millis, Payload,
    RunId, Seq, Timestamp,
};
use steadfast_ports::guest::{
    ActivityCall, CallOptions, ChildCall, ChildCallOptions, Driven, RunInfo, Stop, TargetCall,
};
use steadfast_ports::{Guest, Guests, HostCalls};
use steadfast_sandbox::{Options, Sandbox};
use wit_component::{ComponentEncoder, StringEncoding};
use wit_parser::Resolve;

/// Makes a core module in text a component of a world of the package.
pub fn component_of(world: &str, core: &str) -> Vec<u8> {
    let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit/steadfast-workflow@0.1.0");
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(&wit).expect("the WIT package parses");
    let world = resolve
        .select_world(&[package], Some(world))
        .expect("the world exists");
    // A component may leave these two out; the encoder insists on what the world exports.
    for name in ["query", "validate-update"] {
        if !core.contains(&format!("(export \"{name}\")")) {
            let exports = &mut resolve.worlds[world].exports;
            exports.shift_remove(&wit_parser::WorldKey::Name(name.to_owned()));
        }
    }
    let mut module = wat::parse_str(core).expect("the module is valid text");
    wit_component::embed_component_metadata(
        &mut module,
        &resolve,
        world,
        StringEncoding::UTF8,
        false,
    )
    .expect("metadata can be embedded");
    ComponentEncoder::default()
        .module(&module)
        .and_then(|encoder| encoder.encode())
        .expect("the module fits the world")
}

/// Parts of a guest; whatever is empty does nothing.
#[derive(Default, Clone)]
pub struct Guestlet {
    /// Imports, declared as functions.
    pub imports: String,
    /// Body of `start` (six `i32` parameters), which leaves a pointer to a step.
    pub start: String,
    /// Body of `resume` (pointer and count of the events).
    pub resume: String,
    /// Body of `describe`; the default points to one workflow named `w`.
    pub describe: String,
    /// More definitions.
    pub more: String,
    /// Pages of memory; 0 means 1.
    pub pages: u32,
}

/// Where the default description lies.
pub const DESCRIPTION: u32 = 64;
/// A step that says blocked.
pub const BLOCKED: &str = "(i32.const 1024)";

impl Guestlet {
    /// The core module as text.
    pub fn text(&self) -> String {
        let or = |text: &str, default: &str| -> String {
            if text.is_empty() {
                default.to_owned()
            } else {
                text.to_owned()
            }
        };
        format!(
            r#"(module $guest
              {imports}
              (memory (export "memory") {pages})
              (global $heap (mut i32) (i32.const 16384))
              (func $realloc (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
                (local $at i32)
                (local.set $at (i32.and
                  (i32.add (global.get $heap) (i32.sub (local.get 2) (i32.const 1)))
                  (i32.sub (i32.const 0) (local.get 2))))
                (global.set $heap (i32.add (local.get $at) (local.get 3)))
                (local.get $at))
              ;; 16: the SDK's name, 32: the workflow's name, 64: the description with one
              ;; workflow at 128, 1024: a step that says blocked.
              (data (i32.const 16) "test/1")
              (data (i32.const 32) "w")
              (data (i32.const 64) "\10\00\00\00\06\00\00\00\01\00\00\00\80\00\00\00\01\00\00\00")
              (data (i32.const 128) "\20\00\00\00\01\00\00\00")
              {more}
              (func $describe (export "describe") (result i32) {describe})
              (func $start (export "start") (param i32 i32 i32 i32 i32 i32) (result i32) {start})
              (func $resume (export "resume") (param i32 i32) (result i32) {resume}))"#,
            imports = self.imports,
            pages = self.pages.max(1),
            more = self.more,
            describe = or(&self.describe, &format!("(i32.const {DESCRIPTION})")),
            start = or(&self.start, BLOCKED),
            resume = or(&self.resume, BLOCKED),
        )
    }

    /// The component.
    pub fn component(&self) -> Vec<u8> {
        component_of("workflow", &self.text())
    }
}

/// The import of one engine call, as a function of that name in the module.
pub fn import(interface: &str, function: &str, name: &str, ty: &str) -> String {
    format!(r#"(import "steadfast:workflow/{interface}@0.1.0" "{function}" (func ${name} {ty}))"#)
}

/// `activities.schedule` as `$schedule`.
pub fn import_schedule() -> String {
    let ty = "(param i32 i32 i32 i32 i32 i32 i64 i64 i64 i64 i64 i32 i64 i32 i32 i32) (result i32)";
    import("activities", "schedule", "schedule", ty)
}

/// A call of `$schedule` with the name and input at given addresses, and default options.
pub fn call_schedule(name: (u32, u32), input: (u32, u32)) -> String {
    let consts = |values: &[u32]| {
        values
            .iter()
            .map(|v| format!("(i32.const {v})"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let zero = "(i64.const 0)";
    format!(
        "(call $schedule {} {zero} {zero} {zero} {zero} {zero} (i32.const 0) {zero} \
         (i32.const 0) (i32.const 0) (i32.const 0))",
        consts(&[name.0, name.1, 0, 0, input.0, input.1])
    )
}

/// A sandbox with few instances, so that a test starts fast.
pub fn sandbox() -> Sandbox {
    sandbox_with(|_| {})
}

/// A sandbox with changed options.
pub fn sandbox_with(change: impl FnOnce(&mut Options)) -> Sandbox {
    let mut options = Options {
        instances_max: 8,
        ..Options::default()
    };
    change(&mut options);
    Sandbox::new(options).expect("the sandbox starts")
}

/// Admits a component and makes an instance.
pub fn instance(sandbox: &Sandbox, component: &[u8]) -> Box<dyn Guest> {
    let admitted = sandbox.admit(component).expect("the component is admitted");
    instantiate(sandbox, admitted.digest)
}

/// Makes an instance of a component that is loaded.
pub fn instantiate(sandbox: &Sandbox, digest: ComponentDigest) -> Box<dyn Guest> {
    sandbox
        .instantiate(digest, &|| Ok(None))
        .expect("the component is there")
}

/// Starts workflow `w` with JSON `null`.
pub fn start(guest: &mut dyn Guest, calls: Recorder) -> (Started, Recorder) {
    taken(guest.start("w", &Payload::json("null"), Box::new(calls)))
}

/// What a start or resume answers.
pub type Started = Result<steadfast_model::command::Step, steadfast_ports::guest::Error>;

/// Takes the recorder back.
pub fn taken((result, mut calls): Driven) -> (Started, Recorder) {
    let recorder = calls
        .as_any()
        .downcast_mut::<Recorder>()
        .expect("it is our own");
    (result, std::mem::take(recorder))
}

/// An activity call, owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// `children.start`.
    StartChild {
        workflow_type: String,
        input: Vec<u8>,
        options: ChildCallOptions,
    },
    /// `children.cancel`.
    CancelChild(Seq, String),
    /// `executions.signal`.
    SignalExternal {
        target: String,
        name: String,
        input: Vec<u8>,
    },
    /// `executions.request-cancel`.
    CancelExternal(String, String),
    /// `activities.schedule`.
    Schedule {
        /// Which.
        activity_type: String,
        /// With what.
        input: Vec<u8>,
        /// In which encoding.
        encoding: String,
        /// How.
        options: CallOptions,
    },
    /// `activities.cancel`.
    CancelActivity(Seq),
    /// `timers.start`.
    StartTimer(Millis),
    /// `timers.cancel`.
    CancelTimer(Seq),
    /// `markers.patched`.
    Patched(String),
    /// `markers.deprecate-patch`.
    DeprecatePatch(String),
    /// `markers.side-effect`.
    SideEffect(String, Payload),
    CompleteUpdate(String, Result<Payload, Failure>),
    /// `memo.upsert`.
    UpsertMemo(Fields),
}

/// Host calls that remember everything.
#[derive(Debug)]
pub struct Recorder {
    /// Commands in order.
    pub calls: Vec<Call>,
    /// Log lines in order.
    pub lines: Vec<(LogLevel, String)>,
    /// The time that the guest sees.
    pub now: Timestamp,
    /// What the next activity call is answered.
    pub stop: Option<Stop>,
    /// The next operation.
    pub next: u32,
    /// Facts about the run.
    pub info: RunInfo,
}

impl Default for Recorder {
    fn default() -> Self {
        Self {
            calls: Vec::new(),
            lines: Vec::new(),
            now: Timestamp(1_000),
            stop: None,
            next: 1,
            info: RunInfo {
                namespace: "default".to_owned(),
                workflow_id: "id".to_owned(),
                run_id: RunId::from_bytes([7; 16]),
                workflow_type: "w".to_owned(),
                task_queue: "queue".to_owned(),
                attempt: 1,
                started: Timestamp(500),
                options: ChainOptions::default(),
                link: Link::default(),
            },
        }
    }
}

impl Recorder {
    fn seq(&mut self) -> Seq {
        let seq = Seq(self.next);
        self.next += 1;
        seq
    }
}

impl HostCalls for Recorder {
    fn schedule_activity(&mut self, call: ActivityCall<'_>) -> Result<Seq, Stop> {
        if let Some(stop) = self.stop.take() {
            return Err(stop);
        }
        self.calls.push(Call::Schedule {
            activity_type: call.activity_type.to_owned(),
            input: call.input.to_vec(),
            encoding: call.encoding.to_owned(),
            options: call.options.clone(),
        });
        Ok(self.seq())
    }

    fn cancel_activity(&mut self, seq: Seq) -> Result<(), Stop> {
        self.calls.push(Call::CancelActivity(seq));
        Ok(())
    }

    fn start_timer(&mut self, duration: Millis) -> Result<Seq, Stop> {
        self.calls.push(Call::StartTimer(duration));
        Ok(self.seq())
    }

    fn cancel_timer(&mut self, seq: Seq) -> Result<(), Stop> {
        self.calls.push(Call::CancelTimer(seq));
        Ok(())
    }

    fn patched(&mut self, id: &str) -> Result<bool, Stop> {
        self.calls.push(Call::Patched(id.to_owned()));
        Ok(id != "refused")
    }

    fn deprecate_patch(&mut self, id: &str) -> Result<(), Stop> {
        self.calls.push(Call::DeprecatePatch(id.to_owned()));
        Ok(())
    }

    fn side_effect(&mut self, name: &str, value: Payload) -> Result<Payload, Stop> {
        let recorded = Payload::json(format!("[{}]", value.data.len()));
        self.calls.push(Call::SideEffect(name.to_owned(), value));
        Ok(recorded)
    }

    fn complete_update(
        &mut self,
        update_id: &str,
        outcome: Result<Payload, Failure>,
    ) -> Result<(), Stop> {
        self.calls
            .push(Call::CompleteUpdate(update_id.to_owned(), outcome));
        Ok(())
    }

    fn upsert_memo(&mut self, memo: Fields) -> Result<(), Stop> {
        self.calls.push(Call::UpsertMemo(memo));
        Ok(())
    }

    fn is_continue_as_new_suggested(&self, event: EventNumber) -> bool {
        event.0 >= 10
    }

    fn start_child(&mut self, call: ChildCall<'_>) -> Result<Seq, Stop> {
        self.calls.push(Call::StartChild {
            workflow_type: call.workflow_type.to_owned(),
            input: call.input.to_vec(),
            options: call.options.clone(),
        });
        let seq = self.seq();
        self.seq();
        Ok(seq)
    }

    fn cancel_child(&mut self, seq: Seq, reason: &str) -> Result<(), Stop> {
        self.calls.push(Call::CancelChild(seq, reason.to_owned()));
        Ok(())
    }

    fn signal_external(
        &mut self,
        target: TargetCall<'_>,
        name: &str,
        input: &[u8],
        _: &str,
    ) -> Result<Seq, Stop> {
        self.calls.push(Call::SignalExternal {
            target: format!("{target:?}"),
            name: name.to_owned(),
            input: input.to_vec(),
        });
        Ok(self.seq())
    }

    fn cancel_external(&mut self, target: TargetCall<'_>, reason: &str) -> Result<Seq, Stop> {
        let target = format!("{target:?}");
        self.calls
            .push(Call::CancelExternal(target, reason.to_owned()));
        Ok(self.seq())
    }

    fn now(&mut self) -> Timestamp {
        self.now
    }

    fn random(&mut self, bytes: &mut [u8]) {
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::try_from(i % 251).expect("below 251");
        }
    }

    fn log(&mut self, level: LogLevel, message: &str) {
        self.lines.push((level, message.to_owned()));
    }

    fn info(&self) -> &RunInfo {
        &self.info
    }

    fn history_length(&self) -> u64 {
        42
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

/// An event of number 7 at time 2000.
pub fn event(kind: EventKind) -> Event {
    Event {
        number: EventNumber(7),
        time: Timestamp(2_000),
        kind,
    }
}

/// An activity's result.
pub fn completed(seq: u32, result: &str) -> Event {
    event(EventKind::ActivityTaskCompleted {
        seq: Seq(seq),
        result: Payload::json(result),
        attempt: 1,
        worker: String::new(),
        started_at: Timestamp(1_500),
    })
}
