//! The whole help text is a golden file: scripts and documents rely on it. Set
//! `STEADFAST_UPDATE_GOLDEN=1` to write it anew.
#![allow(clippy::expect_used, clippy::panic, reason = "test code")]

use std::path::Path;
use std::process::Command;

/// The help of a verb and of all verbs below it.
fn help(words: &[&str], text: &mut String) {
    let output = Command::new(env!("CARGO_BIN_EXE_steadfast"))
        .args(words)
        .arg("--help")
        .env_remove("COLUMNS")
        .env_remove("STEADFAST_ADDRESS")
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{words:?}");
    let help = String::from_utf8(output.stdout).expect("help is text");
    text.push_str(&format!(
        "$ steadfast {}\n\n{help}\n",
        [words, &["--help"]].concat().join(" ")
    ));
    for verb in verbs(&help) {
        help_below(words, &verb, text);
    }
}

fn help_below(words: &[&str], verb: &str, text: &mut String) {
    help(&[words, &[verb]].concat(), text);
}

/// The verbs of a help text, without clap's own.
fn verbs(help: &str) -> Vec<String> {
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = commands
        .take_while(|line| !line.is_empty())
        .filter_map(|line| {
            let name = line
                .strip_prefix("  ")
                .filter(|rest| !rest.starts_with(' '))?;
            name.split_whitespace().next()
        });
    names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_help_is_as_documented() {
    let mut text = String::new();
    help(&[], &mut text);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/cli-help.txt");
    if std::env::var_os("STEADFAST_UPDATE_GOLDEN").is_some() {
        std::fs::write(&golden, &text).expect("the golden file can be written");
    }
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    if text != expected {
        let differs = text
            .lines()
            .zip(expected.lines())
            .find(|(new, old)| new != old);
        panic!(
            "the help has changed, first here: {differs:?}\n\
             run the test with STEADFAST_UPDATE_GOLDEN=1 and say so in CHANGELOG.md"
        );
    }
}

#[test]
fn every_exit_code_is_in_the_help() {
    let mut text = String::new();
    help(&[], &mut text);
    for code in [0, 1, 2, 3, 4, 5, 6, 7, 70] {
        assert!(
            text.lines()
                .any(|line| line.trim_start().starts_with(&format!("{code}  "))),
            "{code}"
        );
    }
}
