//! Measures a store in a folder: `measure [folder]`. Prints what the numbers in
//! `docs/storage-format.md` are made of.

#![allow(
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a measurement: it reads the clock and stops at the first error"
)]

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use steadfast_model::codec::Chunk;
use steadfast_model::{EventNumber, RunKey, Status, Timestamp};
use steadfast_ports::Store;
use steadfast_ports::contract::make;
use steadfast_ports::store::Write;
use steadfast_store_redb::{Options, RedbStore};

const GROUP: usize = 100;
const RUNS: u64 = 1000;
const PARKED: u64 = 100_000;

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let folder = arguments
        .next()
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let path = folder.join("measure.redb");
    if let Some(mode) = arguments.next() {
        park(&path, mode == "quick");
    }
    single_appends(&path);
    for quick_repair_bytes_min in [u64::MAX, 0] {
        groups(
            &path,
            &Options {
                quick_repair_bytes_min,
                ..Options::default()
            },
        );
    }
    reads(&path);
    recovery(&folder, &path);
    drop(std::fs::remove_file(&path));
}

fn fresh(path: &Path, options: Options) -> RedbStore {
    drop(std::fs::remove_file(path));
    RedbStore::open(path, options).expect("a new store")
}

/// About 150 bytes of one event.
fn append(run: u64, first: u64) -> Write {
    let text = "x".repeat(110);
    let chunk = Chunk::encode(&make::events(first, &[&text])).expect("there is an event");
    Write::Append {
        run: RunKey(run),
        chunk,
    }
}

/// A different number of 32 bits for each, in no order.
fn scattered(i: u64) -> u64 {
    i.wrapping_mul(0x9e37_79b9) & 0xffff_ffff
}

fn median(times: &[Duration]) -> Duration {
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn single_appends(path: &Path) {
    let store = fresh(path, Options::default());
    let times = times(500, |i| {
        store
            .commit(make::batch(vec![append(1, i + 1)]))
            .expect("ok");
    });
    println!("append, one per commit: p50 {:?}", median(&times));
    drop(store);
    drop(std::fs::remove_file(path));
    let database = redb::Builder::new()
        .set_cache_size(32 << 20)
        .create(path)
        .expect("a new database");
    let table = redb::TableDefinition::<u64, &[u8]>::new("t");
    let times = self::times(500, |i| {
        let redb = database.begin_write().expect("ok");
        redb.open_table(table)
            .expect("ok")
            .insert(i, [7; 150].as_slice())
            .expect("ok");
        redb.commit().expect("ok");
    });
    println!("bare redb, one insert per commit: p50 {:?}", median(&times));
}

fn times(count: u64, mut work: impl FnMut(u64)) -> Vec<Duration> {
    let mut times: Vec<Duration> = (0..count)
        .map(|i| {
            let start = Instant::now();
            work(i);
            start.elapsed()
        })
        .collect();
    times.sort();
    times
}

fn groups(path: &Path, options: &Options) {
    let per_run = |i: u64| (i % RUNS + 1, i / RUNS + 1);
    rate("append, 1000 runs interleaved", path, options, |i| {
        let (run, first) = per_run(i);
        vec![append(run, first)]
    });
    rate("append, one run", path, options, |i| vec![append(1, i + 1)]);
    rate("PutTimer + DeleteTimer, one batch", path, options, |i| {
        let timer = make::timer(1_000_000 + i * 7919 % 1_000_000, i, 1);
        vec![Write::PutTimer(timer), Write::DeleteTimer(timer)]
    });
    rate("PutTimer, DeleteTimer of 1000 before", path, options, |i| {
        let timer = |i: u64| make::timer(1_000_000 + i, i * 7919 % 1_000_000, 1);
        vec![
            Write::PutTimer(timer(i)),
            Write::DeleteTimer(timer(i.saturating_sub(1000))),
        ]
    });
    rate("PutExecution, new", path, options, |i| {
        vec![make::put(make::execution(
            i + 1,
            &format!("order-{:08x}", scattered(i)),
        ))]
    });
    rate("PutExecution, 1000 runs rewritten", path, options, |i| {
        vec![make::put(make::execution(i % RUNS + 1, "w"))]
    });
    rate("Claim", path, options, |i| {
        vec![make::claim(
            &format!("order-{:08x}", scattered(i)),
            i + 1,
            None,
        )]
    });
    rate(
        "start: append, claim, execution, ready, timer",
        path,
        options,
        |i| {
            let id = format!("order-{:08x}", scattered(i));
            vec![
                append(i + 1, 1),
                make::claim(&id, i + 1, None),
                make::put(make::execution(i + 1, &id)),
                Write::PutReady(RunKey(i + 1)),
                Write::PutTimer(make::timer(1_000_000 + i, i + 1, 1)),
            ]
        },
    );
}

/// Batches per second when 100 at a time wait for the writer.
fn rate(name: &str, path: &Path, options: &Options, batch: impl Fn(u64) -> Vec<Write>) {
    let store = fresh(path, *options);
    let (mut submitted, mut spent) = (0, Duration::ZERO);
    let count = 20_000;
    let cpu = cpu_us();
    while submitted < count {
        let batches: Vec<_> = (submitted..)
            .take(GROUP)
            .map(|i| make::batch(batch(i)))
            .collect();
        submitted += GROUP as u64;
        let start = Instant::now();
        let (sender, receiver) = mpsc::channel();
        for batch in batches {
            let sender = sender.clone();
            store.submit(batch, Box::new(move |result| drop(sender.send(result))));
        }
        drop(sender);
        for result in receiver {
            result.expect("ok");
        }
        spent += start.elapsed();
    }
    let each = |us: f64| us / count as f64;
    let (wall, cpu) = (each(spent.as_secs_f64() * 1e6), each(cpu_us() - cpu));
    println!(
        "{}: {name}: {wall:.1} us each ({cpu:.1} us of processors), {:.0}/s, {:.2} ms per {GROUP}",
        if options.quick_repair_bytes_min == 0 {
            "quick repair"
        } else {
            "full repair"
        },
        1e6 / wall,
        wall * GROUP as f64 / 1e3,
    );
}

/// Processor time of all threads so far, where Linux tells it (in steps of 10 ms).
fn cpu_us() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split(' ')
        .collect();
    let ticks = |at: usize| fields.get(at).and_then(|f| f.parse().ok()).unwrap_or(0.0);
    (ticks(12) + ticks(13)) * 10_000.0
}

fn reads(path: &Path) {
    let store = fresh(path, Options::default());
    for run in 1..=RUNS {
        let mut writes = vec![make::put(make::execution(run, "w"))];
        writes.extend((1..=20).map(|first| append(run, first)));
        store.commit(make::batch(writes)).expect("ok");
    }
    let many = |name: &str, work: &dyn Fn(u64)| {
        let start = Instant::now();
        for i in 0..100_000 {
            work(i * 7919 % RUNS + 1);
        }
        println!("{name}: {:.2} us", start.elapsed().as_secs_f64() * 10.0);
    };
    many("execution()", &|run| {
        assert!(store.execution(RunKey(run)).expect("ok").is_some());
    });
    many("history() of 20 events", &|run| {
        let chunks = store
            .history(RunKey(run), EventNumber(1), usize::MAX)
            .expect("ok");
        assert_eq!(chunks.len(), 20);
    });
    let mut spent = Duration::ZERO;
    for i in 0..300 {
        store
            .commit(make::batch(vec![append(1, 21 + i)]))
            .expect("ok");
        let start = Instant::now();
        assert!(store.execution(RunKey(7)).expect("ok").is_some());
        spent += start.elapsed();
    }
    println!(
        "execution(), first after a commit: {:.2} us",
        spent.as_secs_f64() / 300.0 * 1e6
    );
    let mut query = make::everything();
    query.status = Some(Status::Completed);
    let start = Instant::now();
    assert_eq!(store.list(&query).expect("ok").len(), 0);
    println!("list(), 1000 rows read, none found: {:?}", start.elapsed());
}

/// Fills a store with parked runs and dies without closing it.
fn park(path: &Path, quick_repair: bool) -> ! {
    let quick_repair_bytes_min = if quick_repair { 0 } else { u64::MAX };
    let options = Options {
        quick_repair_bytes_min,
        ..Options::default()
    };
    let store = fresh(path, options);
    for start in (0..PARKED).step_by(1000) {
        let mut writes = Vec::new();
        for run in start + 1..=start + 1000 {
            let id = format!("order-{:08x}", scattered(run));
            writes.extend([
                append(run, 1),
                append(run, 2),
                make::claim(&id, run, None),
                make::put(make::execution(run, &id)),
                Write::PutTimer(make::timer(10_000_000 + run, run, 1)),
            ]);
        }
        store.commit(make::batch(writes)).expect("ok");
    }
    std::process::abort();
}

fn recovery(folder: &Path, path: &Path) {
    for mode in ["full", "quick"] {
        let program = std::env::current_exe().expect("a program");
        let status = std::process::Command::new(program)
            .arg(folder)
            .arg(mode)
            .status();
        assert!(!status.expect("started").success(), "it dies");
        for what in ["after a kill", "after closing"] {
            let start = Instant::now();
            let store = RedbStore::open(path, Options::default()).expect("repaired");
            let opened = start.elapsed();
            let due = store.timers(None, Timestamp(1), 100).expect("ok");
            let ready = store.ready(None, 100).expect("ok");
            assert_eq!((due.len(), ready.len()), (0, 0));
            store.acquire().expect("writable");
            println!(
                "{PARKED} parked runs, {} MB, {mode} repair, {what}: open {opened:?}, writable {:?}",
                store.disk_bytes().expect("ok") / 1_000_000,
                start.elapsed(),
            );
        }
    }
}
