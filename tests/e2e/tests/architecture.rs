//! Who may depend on whom. Adding a forbidden edge fails here with the rule that it breaks.
#![allow(clippy::expect_used, clippy::panic, reason = "test code")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// A crate of ours and what it may depend on of ours.
const EDGES: &[(&str, &[&str])] = &[
    ("steadfast-model", &[]),
    ("steadfast-engine", &["steadfast-model"]),
    ("steadfast-ports", &["steadfast-model"]),
    (
        "steadfast-store-redb",
        &["steadfast-model", "steadfast-ports"],
    ),
    ("steadfast-sandbox", &["steadfast-model", "steadfast-ports"]),
    (
        "steadfast-runtime",
        &["steadfast-model", "steadfast-engine", "steadfast-ports"],
    ),
    (
        "steadfast-activities",
        &["steadfast-model", "steadfast-runtime"],
    ),
    ("steadfast-api", &["steadfast-model", "steadfast-runtime"]),
    (
        "steadfast",
        &[
            "steadfast-activities",
            "steadfast-api",
            "steadfast-engine",
            "steadfast-model",
            "steadfast-ports",
            "steadfast-runtime",
            "steadfast-sandbox",
            "steadfast-store-redb",
        ],
    ),
    ("steadfast-sdk-macros", &[]),
    ("steadfast-sdk", &["steadfast-sdk-macros"]),
    (
        "steadfast-sim",
        &[
            "steadfast-engine",
            "steadfast-model",
            "steadfast-ports",
            "steadfast-runtime",
        ],
    ),
];

/// Third-party crates with one owner each: nobody else may depend on them directly.
const OWNERS: &[(&str, &[&str])] = &[
    ("wasmtime", &["steadfast-sandbox"]),
    // The benchmark measures a bare commit as its yardstick.
    ("redb", &["steadfast-store-redb", "steadfast-bench"]),
    ("axum", &["steadfast-api"]),
    ("reqwest", &["steadfast", "steadfast-activities"]),
];

/// What the pure crates must never depend on, however indirectly.
const IMPURE: &[&str] = &[
    "tokio",
    "wasmtime",
    "redb",
    "axum",
    "tracing",
    "libc",
    "getrandom",
];

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("cargo writes JSON")
}

/// Normal dependencies of each crate of the workspace, by package name.
fn dependencies(metadata: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let members: BTreeSet<&str> = metadata["workspace_members"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages
        .filter(|package| {
            package["id"]
                .as_str()
                .is_some_and(|id| members.contains(id))
        })
        .map(|package| {
            let names = package["dependencies"].as_array().into_iter().flatten();
            let names = names.filter(|dependency| dependency["kind"].is_null());
            let names = names.filter_map(|dependency| dependency["name"].as_str());
            let name = package["name"].as_str().unwrap_or_default().to_owned();
            (name, names.map(str::to_owned).collect())
        })
        .collect()
}

#[test]
fn crates_depend_only_on_what_they_may() {
    let all = dependencies(&metadata());
    for (name, allowed) in EDGES {
        let found = all
            .get(*name)
            .unwrap_or_else(|| panic!("there is no crate {name}"));
        let ours = found
            .iter()
            .filter(|dependency| dependency.starts_with("steadfast"));
        for dependency in ours {
            assert!(
                allowed.contains(&dependency.as_str()),
                "{name} must not depend on {dependency}; it may depend on {allowed:?} \
                 (see ARCHITECTURE.md, one direction)"
            );
        }
    }
}

#[test]
fn heavy_crates_have_one_owner() {
    for (name, dependencies) in dependencies(&metadata()) {
        for (crate_name, owners) in OWNERS {
            assert!(
                !dependencies.contains(*crate_name) || owners.contains(&name.as_str()),
                "{name} must not name {crate_name}: only {owners:?} may"
            );
        }
    }
}

#[test]
fn the_pure_crates_stay_pure() {
    for name in ["steadfast-model", "steadfast-engine"] {
        let output = Command::new(env!("CARGO"))
            .args([
                "tree",
                "--offline",
                "--locked",
                "-e",
                "normal",
                "--prefix",
                "none",
                "-p",
                name,
            ])
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
            .output()
            .expect("cargo runs");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let tree = String::from_utf8_lossy(&output.stdout);
        for impure in IMPURE {
            let is_there = tree
                .lines()
                .any(|line| line.split(' ').next() == Some(*impure));
            assert!(!is_there, "{name} reaches {impure}: it must do no I/O");
        }
    }
}
