//! The recorded store of format 1 is read by this build, and this build writes the same bytes.

#![allow(clippy::expect_used, clippy::panic, reason = "test code")]

mod fixture;

use std::path::Path;

use steadfast_model::{ComponentDigest, EventNumber, RunKey, Timestamp};
use steadfast_ports::Store;
use steadfast_ports::contract::make;
use steadfast_ports::fake::{MemStore, Rng};
use steadfast_ports::store::FencingToken;
use steadfast_store_redb::{Options, RedbStore};

fn recorded_rows() -> String {
    std::fs::read_to_string(fixture::folder().join("rows.txt")).expect("the recorded rows")
}

/// The recorded store is copied: opening a store writes to its file.
fn copy_recorded(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("store.redb");
    std::fs::copy(fixture::folder().join("store.redb"), &path).expect("the recorded store");
    path
}

#[test]
fn the_recorded_store_reads_as_it_was_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = copy_recorded(folder.path());
    let store = RedbStore::open(&path, Options::default()).expect("a store of format 1");
    let mut events = Vec::new();
    for chunk in store
        .history(RunKey(1), EventNumber(1), usize::MAX)
        .expect("readable")
    {
        chunk.decode_into(&mut events).expect("decodable");
    }
    assert_eq!(events, fixture::events());
    let reference = MemStore::new();
    let token = reference.acquire().expect("an owner");
    for batch in fixture::batches(token) {
        reference.commit(batch).expect("ok");
    }
    steadfast_ports::contract::differential::compare(&store, &reference, &mut Rng::new(1), 1);
    let digest = ComponentDigest([1; 32]);
    assert_eq!(
        store.component_bytes(digest),
        reference.component_bytes(digest)
    );
    let until = Timestamp(u64::MAX);
    assert_eq!(
        store.timers(None, until, 9),
        reference.timers(None, until, 9)
    );
    let (ns, workflow_type) = (make::namespace(), make::workflow_type("type"));
    assert_eq!(store.route(&ns, &workflow_type), Ok(Some(digest)));
    assert_eq!(store.acquire(), Ok(FencingToken(2)));
}

#[test]
fn the_recorded_rows_are_what_the_file_holds() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(
        fixture::dump(&copy_recorded(folder.path())),
        recorded_rows()
    );
}

#[test]
fn the_same_batches_write_the_same_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.redb");
    let store = RedbStore::open(&path, Options::default()).expect("a new store");
    let token = store.acquire().expect("an owner");
    for batch in fixture::batches(token) {
        store.commit(batch).expect("ok");
    }
    drop(store);
    assert_eq!(
        fixture::dump(&path),
        recorded_rows(),
        "see tests/fixtures/stores/README.md"
    );
}
