//! House rules, each with a message that says what to do instead.
#![allow(clippy::expect_used, clippy::panic, reason = "test code")]

use std::fs;
use std::path::{Path, PathBuf};

/// Longest file, tests aside; beyond it a file has more than one subject.
const LINES_MAX: usize = 600;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the repository")
}

/// All files of the repository but build output.
fn files(extensions: &[&str]) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)
            .expect("readable")
            .map(|e| e.expect("readable"))
        {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() {
                if !matches!(name.as_str(), "target" | ".git" | "node_modules" | "corpus") {
                    folders.push(path);
                }
            } else if extensions.iter().any(|ext| name.ends_with(ext))
                && let Ok(text) = fs::read_to_string(&path)
            {
                found.push((path.strip_prefix(root()).expect("inside").to_owned(), text));
            }
        }
    }
    assert!(found.len() > 10, "no files found: the walk is broken");
    found
}

#[test]
fn the_top_level_holds_what_it_should() {
    let allowed = [
        "Cargo.toml",
        "Cargo.lock",
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "docs",
        "host",
        "guest-sdk",
        "wit",
        "workflows",
        "tests",
        "target",
        "rust-toolchain.toml",
        "rustfmt.toml",
        "clippy.toml",
        "deny.toml",
        "typos.toml",
    ];
    for entry in fs::read_dir(root())
        .expect("readable")
        .map(|e| e.expect("readable"))
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(
            name.starts_with('.') || allowed.contains(&name.as_str()),
            "{name} does not belong at the top level: see ARCHITECTURE.md, code map"
        );
    }
}

#[test]
fn every_crate_takes_the_workspace_lints() {
    for (path, text) in files(&["Cargo.toml"]) {
        let is_member = text.contains("[package]") && text.contains("version.workspace");
        assert!(
            !is_member || text.contains("[lints]\nworkspace = true"),
            "{}: add `[lints] workspace = true`",
            path.display()
        );
    }
}

#[test]
fn files_have_one_subject_and_a_header() {
    for (path, text) in files(&[".rs"]) {
        let shown = path.display();
        let is_source = path.components().any(|part| part.as_os_str() == "src");
        let code = text
            .split("\n#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default();
        let lines = code.lines().count();
        assert!(
            !is_source || lines <= LINES_MAX,
            "{shown} has {lines} lines without its tests; split it by subject (at most {LINES_MAX})"
        );
        assert!(
            !is_source || text.starts_with("//!") || text.starts_with("#!["),
            "{shown}: begin with a `//!` line that says what the file is for"
        );
    }
}

#[test]
fn sources_are_plain() {
    let banned = [
        ("todo!(", "finish it, or return an error that says so"),
        (
            "unimplemented!(",
            "finish it, or return an error that says so",
        ),
        ("#[ignore", "a test runs always or is not there"),
        ("thread_rng", "randomness enters through ports::Entropy"),
    ];
    for (path, text) in files(&[".rs"]) {
        if path.ends_with("tests/tidy.rs") {
            continue;
        }
        let shown = path.display();
        for (word, instead) in banned {
            assert!(!text.contains(word), "{shown} has {word}: {instead}");
        }
        let odd = text.lines().enumerate().find(|(_, line)| !line.is_ascii());
        assert!(
            odd.is_none(),
            "{shown}: not ASCII at line {:?}: use \\u{{..}}",
            odd.map(|(i, _)| i + 1)
        );
        assert!(!text.contains("\t"), "{shown}: tabs");
    }
}

#[test]
fn only_the_drivers_are_async() {
    let async_files = [
        "driver.rs",
        "follow.rs",
        "asking.rs",
        "operating.rs",
        "query.rs",
        "reading.rs",
        "starting.rs",
        "handle.rs",
        "worker.rs",
        "local.rs",
        "host.rs",
        "message.rs",
        "lib.rs",
    ];
    for (path, text) in files(&[".rs"]) {
        if !path.starts_with("host/runtime/src") {
            continue;
        }
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let is_async = text.lines().any(|line| {
            let code = line.trim_start();
            !code.starts_with("//") && (code.contains("async ") || code.contains(".await"))
        });
        assert!(
            !is_async || async_files.contains(&name.as_str()),
            "{}: shards are synchronous; async belongs into {async_files:?}",
            path.display()
        );
    }
}
