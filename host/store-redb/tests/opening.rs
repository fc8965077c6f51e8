//! Opening files that are fine, damaged, newer, locked or something else.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

use std::path::Path;

use redb::backends::InMemoryBackend;
use redb::{Database, ReadableDatabase, StorageBackend, TableDefinition};
use steadfast_model::{EventNumber, RunKey, Timestamp};
use steadfast_ports::Store;
use steadfast_ports::contract::make;
use steadfast_ports::fake::Rng;
use steadfast_ports::store::{Error, FencingToken, Write};
use steadfast_store_redb::{Options, RedbStore};

fn open(path: &Path) -> Result<RedbStore, Error> {
    RedbStore::open(path, Options::default())
}

fn fill(store: &RedbStore) {
    for run in 1..=40 {
        let bytes = vec![u8::try_from(run).expect("small"); 3000];
        let record = Box::new(make::component(
            u8::try_from(run).expect("small"),
            bytes.len(),
        ));
        let writes = vec![
            make::claim(&format!("w{run}"), run, None),
            make::append(run, 1, 5),
            make::put(make::execution(run, &format!("w{run}"))),
            Write::PutActivity(Box::new(make::activity(run, 1))),
            Write::PutTimer(make::timer(run, run, 1)),
            Write::PutTask(make::task("q", run, run, 1)),
            Write::PutReady(RunKey(run)),
            Write::PutComponent { record, bytes },
            Write::PutRoute {
                namespace: make::namespace(),
                workflow_type: make::workflow_type("t"),
                component: make::component(1, 1).digest,
            },
        ];
        store.commit(make::batch(writes)).expect("ok");
    }
}

/// Does every read; each must return, with a value or an error.
fn read_everything(store: &RedbStore) -> Result<(), Error> {
    let last = store.last_run()?;
    let mut query = make::everything();
    store.list(&query)?;
    query.blocked = true;
    store.list(&query)?;
    query.workflow_id = Some(make::workflow_id("w3"));
    store.list(&query)?;
    store.timers(None, Timestamp(u64::MAX), 1000)?;
    store.ready(None, 1000)?;
    store.tasks(None, 1000)?;
    store.route(&make::namespace(), &make::workflow_type("t"))?;
    for record in store.components()? {
        store.component_bytes(record.digest)?;
    }
    for run in (1..=last.0.min(50)).map(RunKey) {
        store.execution(run)?;
        store.activities(run)?;
        store.current_run(&make::namespace(), &make::workflow_id(&format!("w{run}")))?;
        for chunk in store.history(run, EventNumber(1), usize::MAX)? {
            let mut events = Vec::new();
            chunk
                .decode_into(&mut events)
                .map_err(|e| Error::Corrupt(e.to_string()))?;
        }
    }
    Ok(())
}

#[test]
fn a_store_is_found_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.redb");
    let store = open(&path).expect("a new store");
    fill(&store);
    let token = store.acquire().expect("an owner");
    drop(store);
    let store = open(&path).expect("the same store");
    read_everything(&store).expect("all of it");
    assert_eq!(store.last_run(), Ok(RunKey(40)));
    assert_eq!(store.acquire(), Ok(FencingToken(token.0 + 1)));
    assert_eq!(
        store.disk_bytes(),
        Ok(std::fs::metadata(&path).expect("a file").len())
    );
    assert!(!folder.path().join("store.redb.unfinished").exists());
}

#[test]
fn an_open_store_is_not_opened_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.redb");
    let store = open(&path).expect("a new store");
    let error = open(&path).expect_err("it is open already");
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains("another process has the store open"),
        "{text}"
    );
    assert!(text.contains("store.redb"), "{text}");
    drop(store);
    open(&path).expect("it is closed now");
}

#[test]
fn a_store_in_a_missing_folder_is_unavailable() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = open(&folder.path().join("missing/store.redb")).expect_err("no folder");
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
}

#[test]
fn an_unfinished_store_is_begun_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("store.redb.unfinished"), b"half").expect("written");
    open(&folder.path().join("store.redb")).expect("a new store");
}

#[test]
fn a_newer_format_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.redb");
    drop(open(&path).expect("a new store"));
    let database = Database::open(&path).expect("a database");
    let redb = database.begin_write().expect("a transaction");
    {
        let mut meta = redb
            .open_table(TableDefinition::<&str, u64>::new("meta"))
            .expect("a table");
        meta.insert("format", 2).expect("written");
    }
    redb.commit().expect("committed");
    drop(database);
    assert_eq!(
        open(&path).map(drop),
        Err(Error::Newer {
            found: 2,
            supported: 1
        })
    );
}

#[test]
fn files_of_other_kinds_are_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("other");
    let refused = |what: &str| {
        let error = open(&path).map(drop).expect_err(what);
        assert!(matches!(error, Error::Corrupt(_)), "{what}: {error:?}");
        assert!(error.to_string().contains("other"), "{what}: {error}");
    };
    for bytes in [&b""[..], b"x", b"redb", &[0; 4096], &[0xff; 100_000]] {
        std::fs::write(&path, bytes).expect("written");
        refused("not a database");
    }
    std::fs::remove_file(&path).expect("removed");
    let database = Database::create(&path).expect("a database");
    assert!(database.begin_read().is_ok());
    drop(database);
    refused("somebody else's database");
}

/// A backend over bytes that are given, for damage.
fn with_bytes(bytes: &[u8]) -> Result<RedbStore, Error> {
    let backend = InMemoryBackend::new();
    backend.set_len(bytes.len() as u64).expect("room");
    backend.write(0, bytes).expect("room");
    RedbStore::with_backend(backend, Options::default())
}

fn image() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.redb");
    let store = open(&path).expect("a new store");
    fill(&store);
    drop(store);
    std::fs::read(&path).expect("readable")
}

/// Opens damaged bytes and reads all: anything may come of it except a panic.
fn survive(bytes: &[u8]) -> Result<(), Error> {
    let store = with_bytes(bytes)?;
    let outcome = read_everything(&store);
    // Writing to it must not panic in our threads either.
    let written = store.commit(make::batch(vec![make::append(90, 1, 1)]));
    assert!(written.is_ok() || outcome.is_err() || written.is_err());
    outcome
}

#[test]
fn flipped_bytes_give_values_or_errors() {
    let image = image();
    survive(&image).expect("undamaged");
    let mut rng = Rng::new(1);
    let mut noticed = 0;
    // Every byte of the header, and many bytes of everything else.
    let header = 0..320;
    let elsewhere: Vec<usize> = (0..700).map(|_| rng.index(image.len())).collect();
    for at in header.chain(elsewhere) {
        let mut damaged = image.clone();
        damaged[at] ^= 1 << rng.below(8);
        noticed += usize::from(survive(&damaged).is_err());
    }
    assert!(
        noticed > 50,
        "only {noticed} were noticed: the test damages nothing"
    );
}

#[test]
fn overwritten_pages_give_values_or_errors() {
    let image = image();
    for page in 0..image.len() / 4096 {
        for fill in [0, 0xff] {
            let mut damaged = image.clone();
            damaged[page * 4096..(page + 1) * 4096].fill(fill);
            let _outcome = survive(&damaged);
        }
    }
}

#[test]
fn cut_files_are_errors() {
    let image = image();
    let lengths = (1..image.len())
        .step_by(4096)
        .chain([1, 4095, image.len() / 2]);
    for length in lengths {
        let error = survive(&image[..length]).expect_err("a cut file");
        assert!(matches!(error, Error::Corrupt(_)), "{length}: {error:?}");
    }
}
