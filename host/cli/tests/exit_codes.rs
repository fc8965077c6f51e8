//! What scripts rely on: exit codes, hints, and JSON that is JSON even when something is wrong.
#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod common;

use serde_json::Value;

use crate::common::{Server, run};

#[test]
fn an_unreachable_server_is_unavailable_with_a_hint() {
    let said = run(&["list"]);
    assert_eq!(said.code, 6, "{said:?}");
    assert!(
        said.stderr.contains("is `steadfast dev` running?"),
        "{said:?}"
    );
    assert!(said.stdout.is_empty(), "{said:?}");
}

#[test]
fn errors_are_json_when_json_is_asked_for() {
    let said = run(&["list", "--output", "json"]);
    let error: Value = serde_json::from_str(&said.stderr).expect("the error is JSON");
    assert_eq!(error["error"]["exit_code"], 6);
    assert_eq!(error["error"]["code"], "unreachable");
}

#[test]
fn nonsense_on_the_command_line_is_a_usage_error() {
    let cases: [&[&str]; 6] = [
        &[],
        &["frobnicate"],
        &["start", "--type", "x", "--input", "{"],
        &["start", "--type", "x", "--input", "1", "--input-file", "-"],
        &["result", "x", "--timeout", "5"],
        &["--address", "https://example.org", "list"],
    ];
    for args in cases {
        let said = run(args);
        assert_eq!(said.code, 2, "{args:?}: {said:?}");
    }
}

#[test]
fn missing_files_are_not_found() {
    for args in [
        ["component", "inspect", "no-such-file.wasm"].as_slice(),
        &["deploy", "no-such-file.wasm"],
        &["start", "--type", "x", "--input-file", "no-such-file.json"],
        &["replay", "--component", "no-such-file.wasm", "x.json"],
    ] {
        let said = run(args);
        assert_eq!(said.code, 3, "{args:?}: {said:?}");
    }
}

#[test]
fn what_is_no_component_is_refused() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = dir.path().join("x.wasm");
    std::fs::write(&file, b"hello").expect("a file");
    let path = file.to_str().expect("a path of text");
    for args in [["component", "inspect", path], ["component", "build", path]] {
        let said = run(&args);
        assert_eq!(said.code, 5, "{args:?}: {said:?}");
        assert!(said.stderr.contains("hint: "), "{said:?}");
    }
}

#[test]
fn the_servers_answers_keep_their_meaning() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(dir.path());
    let call = |args: &[&str]| run(&[&["--address", &server.address], args].concat());
    for args in [
        ["describe", "nobody"].as_slice(),
        &["history", "nobody"],
        &["result", "nobody"],
        &["signal", "nobody", "hello"],
        &["cancel", "nobody"],
        &["terminate", "nobody"],
        &["unblock", "nobody"],
        &["start", "--type", "nothing"],
        &["--namespace", "elsewhere", "list"],
    ] {
        let said = call(args);
        assert_eq!(said.code, 3, "{args:?}: {said:?}");
        assert!(said.stderr.contains("not found"), "{args:?}: {said:?}");
    }
    let file = dir.path().join("x.wasm");
    std::fs::write(&file, b"hello").expect("a file");
    let said = call(&["deploy", file.to_str().expect("a path of text")]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.stderr.contains("x.wasm: not a component"), "{said:?}");
}

#[test]
fn ids_with_slashes_and_dots_reach_the_server_whole() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(dir.path());
    let said = run(&["--address", &server.address, "describe", "a/b c?d#e%2Ff"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(
        said.stderr.contains("execution not found: a/b c?d#e%2Ff"),
        "{said:?}"
    );
}

#[test]
fn completions_are_printed_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let said = run(&["completions", shell]);
        assert_eq!(said.code, 0, "{said:?}");
        assert!(said.stdout.contains("steadfast"), "{shell}");
    }
}
