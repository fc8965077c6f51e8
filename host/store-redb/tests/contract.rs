//! The law of a store, run on files and in memory.

#![allow(clippy::expect_used, reason = "test code")]

use std::sync::Arc;

use redb::backends::InMemoryBackend;
use steadfast_ports::contract::Subject;
use steadfast_store_redb::{Options, RedbStore};

fn in_memory() -> RedbStore {
    RedbStore::with_backend(InMemoryBackend::new(), Options::default()).expect("a new store")
}

fn in_a_file(options: Options) -> Subject {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = RedbStore::open(folder.path().join("store.redb"), options).expect("a new store");
    Subject {
        store: Arc::new(store),
        keep: Box::new(folder),
    }
}

steadfast_ports::store_contract!(memory, in_memory());
steadfast_ports::store_contract!(file, in_a_file(Options::default()));
steadfast_ports::store_contract!(
    quick_repair_and_tiny_cache,
    in_a_file(Options {
        cache_bytes: 64 * 1024,
        quick_repair_bytes_min: 0,
        ..Options::default()
    })
);
