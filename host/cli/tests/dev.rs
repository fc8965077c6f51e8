//! Starting, stopping and failing to start a server.
#![cfg(unix)]
#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod common;

use std::process::Command;

use crate::common::{Server, run};

fn send(signal: &str, pid: u32) {
    let sent = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(sent.expect("kill runs").success());
}

#[test]
fn a_server_says_when_it_is_ready_and_stops_in_order() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut server = Server::start(dir.path());
    assert_eq!(server.ready["ready"], true);
    assert_eq!(server.ready["open"], 0);
    let listed = run(&["--address", &server.address, "list", "--output", "json"]);
    assert_eq!((listed.code, listed.stdout.trim()), (0, "[]"), "{listed:?}");
    send("-TERM", server.child.id());
    let status = server.child.wait().expect("the server ends");
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_killed_server_starts_again_on_its_data() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut server = Server::start(dir.path());
    server.child.kill().expect("the server can be killed");
    server.child.wait().expect("the server ends");
    let server = Server::start(dir.path());
    assert_eq!(server.ready["ready"], true);
}

#[test]
fn a_data_directory_belongs_to_one_server() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let _server = Server::start(dir.path());
    let data_dir = dir.path().to_str().expect("a path of text");
    let second = run(&["dev", "--listen", "127.0.0.1:0", "--data-dir", data_dir]);
    assert_eq!(second.code, 4, "{second:?}");
    assert!(
        second.stderr.contains("another process has it open"),
        "{second:?}"
    );
    assert!(second.stderr.contains("hint: "), "{second:?}");
}

#[test]
fn a_port_belongs_to_one_server() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let dir = tempfile::tempdir().expect("a temporary folder");
    let data_dir = dir.path().join("data");
    let data_dir = data_dir.to_str().expect("a path of text");
    let said = run(&["dev", "--listen", &address, "--data-dir", data_dir]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.stderr.contains("--listen 127.0.0.1:0"), "{said:?}");
    assert!(
        !std::path::Path::new(data_dir).exists(),
        "nothing is made for a server that cannot run"
    );
}

#[test]
fn damaged_data_is_named_and_left_alone() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = dir.path().join("store.redb");
    std::fs::write(&file, b"this is not a database").expect("a file");
    let data_dir = dir.path().to_str().expect("a path of text");
    let said = run(&["dev", "--listen", "127.0.0.1:0", "--data-dir", data_dir]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stderr.contains("store.redb"), "{said:?}");
    let left = std::fs::read(&file).expect("the file is there");
    assert_eq!(left, b"this is not a database");
}

#[test]
fn other_machines_are_kept_out() {
    let said = run(&["dev", "--listen", "0.0.0.0:0"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.stderr.contains("--allow-remote"), "{said:?}");
}

#[test]
fn doctor_sees_a_running_server() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(dir.path());
    let data_dir = dir.path().to_str().expect("a path of text");
    let said = run(&[
        "--address",
        &server.address,
        "doctor",
        "--data-dir",
        data_dir,
    ]);
    assert_eq!(said.code, 0, "{said:?}");
    let version = format!("answers, version {}", env!("CARGO_PKG_VERSION"));
    assert!(said.stdout.contains(&version), "{said:?}");
}
