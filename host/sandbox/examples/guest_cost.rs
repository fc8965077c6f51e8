//! Measures what a component costs on this machine.
//!
//! ```text
//! cargo run --release -p steadfast-sandbox --example guest_cost -- bench.wasm
//! ```
//!
//! The component must have the workflow `steps` of `workflows/bench`: it runs `{"steps":n}`
//! activities one after the other. Times are medians.
#![allow(clippy::print_stdout, reason = "a program that prints")]
#![allow(clippy::disallowed_methods, reason = "it measures real time")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a measurement"
)]

use std::any::Any;
use std::time::{Duration, Instant};

use steadfast_model::chain::Fields;
use steadfast_model::command::{LogLevel, Step};
use steadfast_model::{
    ChainOptions, ComponentDigest, Event, EventKind, EventNumber, Failure, Link, Millis, Payload,
    RunId, Seq, Timestamp,
};
use steadfast_ports::guest::{ActivityCall, ChildCall, RunInfo, Stop, TargetCall};
use steadfast_ports::{Guests, HostCalls};
use steadfast_sandbox::{Options, Sandbox};

/// A replay: calls are numbered and otherwise ignored.
struct Replay {
    next: u32,
    info: RunInfo,
}

impl Replay {
    fn new() -> Self {
        let info = RunInfo {
            namespace: "default".to_owned(),
            workflow_id: "id".to_owned(),
            run_id: RunId::from_bytes([1; 16]),
            workflow_type: "steps".to_owned(),
            task_queue: "default".to_owned(),
            attempt: 1,
            started: Timestamp(1),
            options: ChainOptions::default(),
            link: Link::default(),
        };
        Self { next: 1, info }
    }
}

impl HostCalls for Replay {
    fn schedule_activity(&mut self, call: ActivityCall<'_>) -> Result<Seq, Stop> {
        std::hint::black_box(call);
        self.next += 1;
        Ok(Seq(self.next - 1))
    }
    fn cancel_activity(&mut self, _seq: Seq) -> Result<(), Stop> {
        Ok(())
    }
    fn start_timer(&mut self, _duration: Millis) -> Result<Seq, Stop> {
        self.next += 1;
        Ok(Seq(self.next - 1))
    }
    fn cancel_timer(&mut self, _seq: Seq) -> Result<(), Stop> {
        Ok(())
    }
    fn patched(&mut self, _id: &str) -> Result<bool, Stop> {
        Ok(true)
    }
    fn deprecate_patch(&mut self, _id: &str) -> Result<(), Stop> {
        Ok(())
    }
    fn side_effect(&mut self, _name: &str, value: Payload) -> Result<Payload, Stop> {
        Ok(value)
    }
    fn complete_update(
        &mut self,
        _update_id: &str,
        _outcome: Result<Payload, Failure>,
    ) -> Result<(), Stop> {
        Ok(())
    }
    fn upsert_memo(&mut self, memo: Fields) -> Result<(), Stop> {
        std::hint::black_box(memo);
        Ok(())
    }

    fn is_continue_as_new_suggested(&self, event: EventNumber) -> bool {
        event.0 >= 10
    }

    fn start_child(&mut self, _call: ChildCall<'_>) -> Result<Seq, Stop> {
        self.next += 2;
        Ok(Seq(self.next - 2))
    }
    fn cancel_child(&mut self, _seq: Seq, _reason: &str) -> Result<(), Stop> {
        Ok(())
    }
    fn signal_external(
        &mut self,
        _target: TargetCall<'_>,
        _name: &str,
        _input: &[u8],
        _encoding: &str,
    ) -> Result<Seq, Stop> {
        self.next += 1;
        Ok(Seq(self.next - 1))
    }
    fn cancel_external(&mut self, _target: TargetCall<'_>, _reason: &str) -> Result<Seq, Stop> {
        self.next += 1;
        Ok(Seq(self.next - 1))
    }
    fn now(&mut self) -> Timestamp {
        Timestamp(1)
    }
    fn random(&mut self, bytes: &mut [u8]) {
        bytes.fill(4);
    }
    fn log(&mut self, _level: LogLevel, _message: &str) {}
    fn info(&self) -> &RunInfo {
        &self.info
    }
    fn history_length(&self) -> u64 {
        1
    }
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

fn main() {
    let path = std::env::args().nth(1).expect("give the component's file");
    let bytes = std::fs::read(&path).expect("the file is readable");
    let folder = std::env::temp_dir().join(format!("steadfast-measure-{}", std::process::id()));
    println!("component        {:>10} bytes", bytes.len());
    let digest = compile(&bytes);
    let options = Options {
        cache_dir: Some(folder.clone()),
        ..Options::default()
    };
    let sandbox = time("set up", || {
        Sandbox::new(options.clone()).expect("it starts")
    });
    sandbox.admit(&bytes).expect("it is admitted");
    load_from_disk(&options, digest);
    for (what, instances_max) in [("pooled", 1000), ("one by one", 0)] {
        let sandbox = Sandbox::new(Options {
            instances_max,
            ..options.clone()
        })
        .expect("it starts");
        instances(&sandbox, digest, what);
        activities(&sandbox, digest, what);
        residents(&sandbox, digest, what);
    }
    drop(std::fs::remove_dir_all(folder));
}

fn time<R>(what: &str, work: impl FnOnce() -> R) -> R {
    let before = Instant::now();
    let result = work();
    println!(
        "{what:<16} {:>10.3} ms",
        before.elapsed().as_secs_f64() * 1e3
    );
    result
}

/// The median duration of one call of `work`, made `count` times.
fn median(count: usize, mut work: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..count)
        .map(|_| {
            let before = Instant::now();
            work();
            before.elapsed()
        })
        .collect();
    times.sort();
    times[count / 2]
}

fn compile(bytes: &[u8]) -> ComponentDigest {
    let mut digest = None;
    let median = median(5, || {
        let sandbox = Sandbox::new(Options {
            instances_max: 0,
            ..Options::default()
        });
        digest = Some(
            sandbox
                .expect("it starts")
                .admit(bytes)
                .expect("admitted")
                .digest,
        );
    });
    println!("admit, cold      {:>10.3} ms", median.as_secs_f64() * 1e3);
    digest.expect("it ran")
}

fn load_from_disk(options: &Options, digest: ComponentDigest) {
    // Each sandbox has loaded nothing yet, so the first instance reads the file.
    let sandboxes: Vec<_> = (0..9)
        .map(|_| {
            Sandbox::new(Options {
                instances_max: 0,
                ..options.clone()
            })
            .expect("it starts")
        })
        .collect();
    let mut next = sandboxes.iter();
    let first = median(9, || {
        let sandbox = next.next().expect("one each");
        drop(
            sandbox
                .instantiate(digest, &|| Ok(None))
                .expect("it is in the cache"),
        );
    });
    println!("load from disk   {:>10.3} ms", first.as_secs_f64() * 1e3);
}

fn instances(sandbox: &Sandbox, digest: ComponentDigest, what: &str) {
    let input = Payload::json("{\"steps\":1}");
    let median = median(2_000, || {
        let mut guest = sandbox.instantiate(digest, &|| Ok(None)).expect("loaded");
        let (step, _) = guest.start("steps", &input, Box::new(Replay::new()));
        assert_eq!(step, Ok(Step::Blocked));
    });
    println!(
        "instance + start {:>10.3} us, {what}",
        median.as_secs_f64() * 1e6
    );
}

fn activities(sandbox: &Sandbox, digest: ComponentDigest, what: &str) {
    const STEPS: u32 = 100_000;
    let input = Payload::json(format!("{{\"steps\":{STEPS}}}"));
    let events: Vec<Event> = (1..=STEPS)
        .map(|seq| Event {
            number: EventNumber(u64::from(seq) * 2),
            time: Timestamp(u64::from(seq)),
            kind: EventKind::ActivityTaskCompleted {
                seq: Seq(seq),
                result: Payload::json((seq - 1).to_string()),
                attempt: 1,
                worker: String::new(),
                started_at: Timestamp(1),
            },
        })
        .collect();
    for batch in [1, 16, 256] {
        let best = (0..5)
            .map(|_| {
                let mut guest = sandbox.instantiate(digest, &|| Ok(None)).expect("loaded");
                let (_, mut calls) = guest.start("steps", &input, Box::new(Replay::new()));
                let before = Instant::now();
                for events in events.chunks(batch) {
                    let result;
                    (result, calls) = guest.resume(events, calls);
                    result.expect("it goes on");
                }
                before.elapsed() / STEPS
            })
            .min()
            .expect("there are five");
        println!(
            "activity         {:>10} ns, {what}, {batch} events per call",
            best.as_nanos()
        );
    }
}

fn residents(sandbox: &Sandbox, digest: ComponentDigest, what: &str) {
    let input = Payload::json("{\"steps\":1}");
    let before = resident_bytes();
    let guests: Vec<_> = (0..500)
        .map(|_| {
            let mut guest = sandbox.instantiate(digest, &|| Ok(None)).expect("loaded");
            drop(guest.start("steps", &input, Box::new(Replay::new())));
            guest
        })
        .collect();
    let each = resident_bytes().saturating_sub(before) / 500;
    let estimate = guests.first().map_or(0, |guest| guest.memory_bytes());
    println!("resident         {each:>10} bytes each, {what}; the estimate is {estimate}");
    drop(guests);
    let left = resident_bytes().saturating_sub(before) / 500;
    println!("left behind      {left:>10} bytes each, {what}");
}

/// Resident bytes of this process, including page tables; 0 where there is no `/proc`.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = |name: &str| -> usize {
        let line = status.lines().find(|line| line.starts_with(name));
        let digits = line.and_then(|line| line.split_whitespace().nth(1));
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
    };
    (kilobytes("VmRSS:") + kilobytes("VmPTE:")) * 1024
}
