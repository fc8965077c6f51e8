//! Records the store of the current format: `record_fixture`. See
//! `tests/fixtures/stores/README.md` for when that is right.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a tool that stops at the first error"
)]

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use steadfast_ports::Store;
use steadfast_store_redb::{Options, RedbStore};

fn main() {
    let folder = fixture::folder();
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("store.redb");
    drop(std::fs::remove_file(&path));
    let store = RedbStore::open(&path, Options::default()).expect("a new store");
    let token = store.acquire().expect("an owner");
    for batch in fixture::batches(token) {
        store.commit(batch).expect("ok");
    }
    drop(store);
    std::fs::write(folder.join("rows.txt"), fixture::dump(&path)).expect("written");
    println!(
        "recorded {}: {} events",
        folder.display(),
        fixture::events().len()
    );
}
