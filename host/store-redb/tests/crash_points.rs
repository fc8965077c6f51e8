//! Every point at which the machine may stop: what was acknowledged is there afterwards, and
//! every batch is there as a whole or not at all.
//!
//! Pass 1 counts the writes and flushes of a script; pass *k* stops at each of them: before the
//! operation, half way through it, after it, or with the operation failing while the process lives
//! on. What a disk may then hold is every flushed write and any subset of the others.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod disk;

use std::sync::{Arc, Mutex};

use disk::{Disk, Lost, Stop};
use steadfast_model::codec::Chunk;
use steadfast_model::{EventNumber, RunKey, Timestamp};
use steadfast_ports::Store;
use steadfast_ports::contract::make;
use steadfast_ports::store::{Batch, Error, FencingToken, Write};
use steadfast_store_redb::{Options, RedbStore};

const BATCHES: u64 = 12;
const RUNS: u64 = 3;

/// Batch number `number` touches every table: it appends to a run, moves that run's timer, and
/// rewrites its summary. Every third makes a new run.
fn batch(fence: FencingToken, number: u64) -> Batch {
    let run = number % RUNS + 1;
    let first = (number / RUNS) * 2 + 1;
    let mut record = make::execution(run, &format!("w{run}"));
    record.started_at = Timestamp(number);
    let mut writes = vec![
        make::append(run, first, 2),
        Write::PutTimer(make::timer(1000 + number, run, 1)),
        make::put(record),
        Write::PutActivity(Box::new(make::activity(
            run,
            u32::try_from(number).expect("small"),
        ))),
        Write::PutTask(make::task("q", number, run, 1)),
    ];
    if number < RUNS {
        writes.push(make::claim(&format!("w{run}"), run, None));
        let bytes = vec![7; 9000];
        let record = Box::new(make::component(
            u8::try_from(run).expect("small"),
            bytes.len(),
        ));
        writes.push(Write::PutComponent { record, bytes });
    } else {
        writes.push(Write::DeleteTimer(make::timer(
            1000 + number - RUNS,
            run,
            1,
        )));
    }
    Batch { fence, writes }
}

/// How far a script got: the batches whose acknowledgement came, in order.
#[derive(Default)]
struct Progress {
    fence: Option<FencingToken>,
    acknowledged: u64,
}

/// Opens a store on the disk and runs the script until something fails. With `grouped`, batches
/// are submitted in threes, so that they share a flush.
fn script(disk: &Disk, options: &Options, grouped: bool) -> Progress {
    let mut progress = Progress::default();
    let Ok(store) = RedbStore::with_backend(disk.clone(), *options) else {
        return progress;
    };
    let Ok(fence) = store.acquire() else {
        return progress;
    };
    progress.fence = Some(fence);
    let step = if grouped { 3 } else { 1 };
    for start in (0..BATCHES).step_by(step) {
        let results = Arc::new(Mutex::new(Vec::new()));
        for number in start..start + step as u64 - 1 {
            let results = Arc::clone(&results);
            let done = move |result| results.lock().expect("not poisoned").push(result);
            store.submit(batch(fence, number), Box::new(done));
        }
        let last = store.commit(batch(fence, start + step as u64 - 1));
        results.lock().expect("not poisoned").push(last);
        for result in results.lock().expect("not poisoned").drain(..) {
            match result {
                Ok(()) => progress.acknowledged += 1,
                Err(error) => {
                    assert!(is_failure(&error), "{error}");
                    // Nothing is acknowledged after a failure.
                    let next = store.commit(batch(fence, 999));
                    assert!(matches!(next, Err(Error::Poisoned(_))), "{next:?}");
                    return progress;
                }
            }
        }
    }
    progress
}

fn is_failure(error: &Error) -> bool {
    matches!(error, Error::Unavailable(_) | Error::Poisoned(_))
}

/// Checks what a new process finds.
fn check(image: Vec<u8>, options: &Options, progress: &Progress, at: &str) {
    let found = RedbStore::with_backend(Disk::new(image), *options);
    let store = match found {
        Ok(store) => store,
        Err(error) => {
            assert!(progress.fence.is_none(), "{at}: the store is lost: {error}");
            return;
        }
    };
    let token = store.acquire().expect(at);
    assert!(
        Some(token) > progress.fence,
        "{at}: {token:?} was given out twice"
    );
    let survivors = survivors(&store, at);
    let (low, high) = (progress.acknowledged, BATCHES);
    assert!(
        (low..=high).contains(&survivors),
        "{at}: {survivors} batches of {low}..={high}"
    );
    // The next batch fits exactly where the survivors end.
    if survivors < BATCHES {
        store.commit(batch(token, survivors)).expect(at);
        assert_eq!(self::survivors(&store, at), survivors + 1, "{at}");
    }
}

/// Counts the batches that are there, and checks that each is there as a whole.
fn survivors(store: &RedbStore, at: &str) -> u64 {
    let mut count = 0;
    for run in 1..=RUNS {
        let chunks: Vec<Chunk> = store
            .history(RunKey(run), EventNumber(1), usize::MAX)
            .expect(at);
        for (i, chunk) in chunks.iter().enumerate() {
            assert_eq!(*chunk, make::chunk(2 * i as u64 + 1, 2), "{at}");
        }
        count += chunks.len() as u64;
    }
    let mut timers = Vec::new();
    for number in 0..count {
        let run = number % RUNS + 1;
        if number + RUNS >= count {
            timers.push(make::timer(1000 + number, run, 1));
            let record = store.execution(RunKey(run)).expect(at).expect(at);
            assert_eq!(record.started_at, Timestamp(number), "{at}");
        }
        let id = make::workflow_id(&format!("w{run}"));
        assert_eq!(
            store.current_run(&make::namespace(), &id),
            Ok(Some(RunKey(run))),
            "{at}"
        );
    }
    assert_eq!(
        store.timers(None, Timestamp(u64::MAX), 99),
        Ok(timers),
        "{at}"
    );
    assert_eq!(store.tasks(None, 99).expect(at).len() as u64, count, "{at}");
    let activities: usize = (1..=RUNS)
        .map(|run| store.activities(RunKey(run)).expect(at).len())
        .sum();
    assert_eq!(activities as u64, count, "{at}");
    for record in store.components().expect(at) {
        let bytes = store.component_bytes(record.digest).expect(at);
        assert_eq!(bytes, Some(vec![7; 9000]), "{at}");
    }
    assert_eq!(
        store.list(&make::everything()).expect(at).len() as u64,
        count.min(RUNS),
        "{at}"
    );
    count
}

fn cut_everywhere(options: &Options, grouped: bool) {
    let whole = Disk::new(Vec::new());
    let progress = script(&whole, options, grouped);
    assert_eq!(progress.acknowledged, BATCHES);
    let operations = whole.operations();
    assert!(
        operations > 50,
        "only {operations} operations: the script tests nothing"
    );
    for at in 0..operations {
        for stop in [Stop::Before, Stop::Torn, Stop::After, Stop::Fail] {
            let disk = Disk::new(Vec::new());
            disk.stop_at(at, stop);
            let progress = script(&disk, options, grouped);
            let losses = [
                Lost::Nothing,
                Lost::Everything,
                Lost::Some(at),
                Lost::Some(at + 1_000_000),
            ];
            for lost in losses {
                let name = format!("operation {at} of {operations}, {stop:?}, {lost:?}");
                check(disk.after_power_loss(lost), options, &progress, &name);
            }
        }
    }
}

#[test]
fn nothing_acknowledged_is_lost() {
    cut_everywhere(&Options::default(), false);
}

#[test]
fn nothing_acknowledged_is_lost_when_batches_share_a_flush() {
    cut_everywhere(&Options::default(), true);
}

#[test]
fn nothing_acknowledged_is_lost_with_quick_repair() {
    cut_everywhere(
        &Options {
            quick_repair_bytes_min: 0,
            ..Options::default()
        },
        true,
    );
}

#[test]
fn a_full_disk_refuses_and_then_poisons() {
    let disk = Disk::new(Vec::new());
    let store = RedbStore::with_backend(disk.clone(), Options::default()).expect("a new store");
    let fence = store.acquire().expect("an owner");
    store.commit(batch(fence, 0)).expect("there is room");
    disk.fill_up();
    let full = store.commit(batch(fence, 1));
    assert!(
        matches!(&full, Err(Error::Poisoned(m)) if m.contains("no space")),
        "{full:?}"
    );
    let next = store.commit(batch(fence, 2));
    assert!(
        matches!(&next, Err(Error::Poisoned(m)) if m.contains("no space")),
        "{next:?}"
    );
    assert!(matches!(store.acquire(), Err(Error::Poisoned(_))));
    // Reads go on as far as pages are cached; they never show the failed batch.
    match store.history(RunKey(1), EventNumber(1), usize::MAX) {
        Ok(chunks) => assert_eq!(chunks, [make::chunk(1, 2)]),
        Err(error) => assert!(is_failure(&error), "{error}"),
    }
    assert_eq!(
        store
            .history(RunKey(2), EventNumber(1), usize::MAX)
            .unwrap_or_default(),
        []
    );
    drop(store);
    let progress = Progress {
        fence: Some(fence),
        acknowledged: 1,
    };
    check(
        disk.after_power_loss(Lost::Everything),
        &Options::default(),
        &progress,
        "full disk",
    );
}
