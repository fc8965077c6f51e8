//! Compiled code on disk: found again, never trusted when it is damaged.
#![allow(clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

use common::{Guestlet, Recorder, sandbox_with, start};
use steadfast_model::{ComponentDigest, Millis};
use steadfast_ports::Guests;
use steadfast_ports::guest::Error;
use steadfast_sandbox::Sandbox;

fn open(dir: &Path) -> Sandbox {
    sandbox_with(|o| o.cache_dir = Some(dir.to_owned()))
}

/// The files of the folder that are compiled code.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("the folder is there");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("readable").path())
        .collect();
    files.sort();
    files
}

/// Instantiates and starts; answers how often the component's bytes were asked for.
fn run(sandbox: &Sandbox, digest: ComponentDigest, component: &[u8]) -> u32 {
    let fetched = Cell::new(0);
    let fetch = || {
        fetched.set(fetched.get() + 1);
        Ok(Some(component.to_vec()))
    };
    let mut guest = sandbox
        .instantiate(digest, &fetch)
        .expect("it is instantiated");
    assert!(start(guest.as_mut(), Recorder::default()).0.is_ok());
    fetched.get()
}

#[test]
fn compiled_code_survives_the_process() {
    let dir = tempfile::tempdir().expect("a folder");
    let component = Guestlet::default().component();
    let admitted = open(dir.path()).admit(&component).expect("it is admitted");
    let files = files(dir.path());
    assert_eq!(files.len(), 1, "one file, and no temporary one: {files:?}");
    assert!(
        files[0]
            .to_string_lossy()
            .contains(&admitted.digest.to_string())
    );
    let reopened = open(dir.path());
    assert_eq!(
        run(&reopened, admitted.digest, &component),
        0,
        "no need for the bytes"
    );
    assert_eq!(run(&reopened, admitted.digest, &component), 0);
}

#[test]
fn a_refused_component_leaves_no_file() {
    let dir = tempfile::tempdir().expect("a folder");
    let guest = Guestlet {
        describe: "unreachable".to_owned(),
        ..Guestlet::default()
    };
    assert!(open(dir.path()).admit(&guest.component()).is_err());
    assert!(files(dir.path()).is_empty());
}

#[test]
fn damaged_code_is_compiled_again_and_replaced() {
    let dir = tempfile::tempdir().expect("a folder");
    let component = Guestlet::default().component();
    let digest = open(dir.path())
        .admit(&component)
        .expect("it is admitted")
        .digest;
    let path = files(dir.path()).remove(0);
    let good = fs::read(&path).expect("readable");
    let flipped = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 0x40;
        bytes
    };
    let cases = [
        ("empty", Vec::new()),
        ("truncated", good[..good.len() / 2].to_vec()),
        ("truncated by one", good[..good.len() - 1].to_vec()),
        ("longer", [good.as_slice(), b"x"].concat()),
        ("flipped in the header", flipped(20)),
        ("flipped in the middle", flipped(good.len() / 2)),
        ("flipped in the hash", flipped(good.len() - 1)),
        ("text", b"this is not code".to_vec()),
    ];
    for (what, bytes) in cases {
        fs::write(&path, bytes).expect("writable");
        assert_eq!(
            run(&open(dir.path()), digest, &component),
            1,
            "{what}: compiled again"
        );
        assert_eq!(
            fs::read(&path).expect("readable"),
            good,
            "{what}: the file is good again"
        );
    }
    fs::write(&path, flipped(100)).expect("writable");
    assert!(open(dir.path()).admit(&component).is_ok());
    assert_eq!(fs::read(&path).expect("readable"), good);
}

#[test]
fn code_of_another_component_or_engine_under_a_wrong_name_is_not_used() {
    let dir = tempfile::tempdir().expect("a folder");
    let component = Guestlet::default().component();
    let digest = open(dir.path())
        .admit(&component)
        .expect("it is admitted")
        .digest;
    let path = files(dir.path()).remove(0);
    let other = Guestlet {
        start: "unreachable".to_owned(),
        ..Guestlet::default()
    }
    .component();
    let elsewhere = tempfile::tempdir().expect("a folder");
    open(elsewhere.path())
        .admit(&other)
        .expect("it is admitted");
    fs::copy(files(elsewhere.path()).remove(0), &path).expect("copied");
    assert_eq!(run(&open(dir.path()), digest, &component), 1);
    // Another memory limit means other code: both files live side by side.
    let smaller = sandbox_with(|o| {
        o.cache_dir = Some(dir.path().to_owned());
        o.memory_bytes_max = 32 * 1024 * 1024;
    });
    assert_eq!(run(&smaller, digest, &component), 1);
    assert_eq!(files(dir.path()).len(), 2);
}

#[test]
fn a_folder_that_cannot_be_written_costs_only_time() {
    let dir = tempfile::tempdir().expect("a folder");
    let inner = dir.path().join("deep/er");
    let sandbox = open(&inner);
    fs::remove_dir_all(&inner).expect("removed");
    assert!(sandbox.admit(&Guestlet::default().component()).is_ok());
}

#[test]
fn what_fetch_says_is_reported() {
    let sandbox = sandbox_with(|_| {});
    let digest = ComponentDigest([1; 32]);
    let text = |result: Result<_, Error>| match result {
        Ok(_) => panic!("there is no such component"),
        Err(error) => {
            assert_eq!(error.code(), "component");
            error.to_string()
        }
    };
    assert!(text(sandbox.instantiate(digest, &|| Ok(None))).contains("there is no component"));
    let failed = sandbox.instantiate(digest, &|| Err("the disk is gone".to_owned()));
    assert!(text(failed).contains("the disk is gone"));
    let damaged = sandbox.instantiate(digest, &|| Ok(Some(b"other bytes".to_vec())));
    assert!(text(damaged).contains("are damaged"));
}

#[test]
fn the_least_recently_used_component_is_forgotten() {
    let sandbox = sandbox_with(|o| o.components_max = 2);
    let components: Vec<_> = (1..=3)
        .map(|pages| {
            Guestlet {
                pages,
                ..Guestlet::default()
            }
            .component()
        })
        .collect();
    let digests: Vec<_> = components
        .iter()
        .map(|c| sandbox.admit(c).expect("it is admitted").digest)
        .collect();
    assert_eq!(run(&sandbox, digests[1], &components[1]), 0);
    assert_eq!(
        run(&sandbox, digests[0], &components[0]),
        1,
        "the first made room for the third"
    );
    assert_eq!(run(&sandbox, digests[1], &components[1]), 0);
    assert_eq!(run(&sandbox, digests[2], &components[2]), 1);
}

#[test]
fn threads_that_need_the_same_component_compile_it_once() {
    let sandbox = sandbox_with(|o| o.activation_time_max = Millis(60_000));
    let component = Guestlet::default().component();
    let digest = open(tempfile::tempdir().expect("a folder").path())
        .admit(&component)
        .expect("it is admitted")
        .digest;
    let fetches: u32 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| run(&sandbox, digest, &component)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .sum()
    });
    assert_eq!(fetches, 1);
}
