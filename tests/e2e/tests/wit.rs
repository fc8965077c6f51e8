//! The contract with guests changes only on purpose, and keeps the rules that it states.
#![allow(clippy::expect_used, clippy::panic, reason = "test code")]

use std::path::{Path, PathBuf};

use wit_component::WitPrinter;
use wit_parser::abi::AbiVariant;
use wit_parser::{PackageId, Resolve};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn contract() -> (Resolve, PackageId) {
    let mut resolve = Resolve::default();
    let dir = root().join("wit/steadfast-workflow@0.1.0");
    let (package, _) = resolve.push_dir(dir).expect("the package parses");
    (resolve, package)
}

#[test]
fn the_published_package_is_unchanged() {
    let (resolve, package) = contract();
    let mut printer = WitPrinter::default();
    printer.print(&resolve, package, &[]).expect("it prints");
    let printed = printer.output.to_string();
    let golden = root().join("tests/golden/steadfast-workflow@0.1.0.wit");
    if std::env::var_os("STEADFAST_UPDATE_GOLDEN").is_some() {
        std::fs::write(&golden, &printed).expect("written");
    }
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    assert!(
        printed == expected,
        "wit/steadfast-workflow@0.1.0 differs from {}: a published package never changes, add a \
         new version; before the release, accept it with STEADFAST_UPDATE_GOLDEN=1",
        golden.display()
    );
}

/// Bindings must be possible by hand: see the rules at the top of the package.
#[test]
fn every_import_passes_its_parameters_flat() {
    let (resolve, package) = contract();
    let interfaces = resolve.packages[package].interfaces.values();
    let mut count = 0;
    for interface in interfaces {
        for (name, function) in &resolve.interfaces[*interface].functions {
            count += 1;
            let signature = resolve.wasm_signature(AbiVariant::GuestImport, function);
            assert!(
                !signature.indirect_params,
                "{name} takes more than 16 flat parameters"
            );
        }
    }
    assert!(
        count >= 10,
        "only {count} functions found: the walk is broken"
    );
}

/// A world with an unknown name would be refused at upload; these two are what SDKs build for.
#[test]
fn both_worlds_are_there() {
    let (resolve, package) = contract();
    let worlds: Vec<_> = resolve.packages[package]
        .worlds
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(worlds, ["workflow", "blocking-workflow"]);
}
