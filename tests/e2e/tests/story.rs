//! A person's first hour: the command line from upload to result, with restarts in between.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "test code"
)]

use serde_json::Value;
use steadfast_e2e::cli::{run, stderr, stdout};
use steadfast_e2e::effects::Effects;
use steadfast_e2e::host::{Host, guest};
use steadfast_e2e::worker::Worker;

const ORDER: &str = r#"{"order_id": "o-1", "amount_cents": 4200, "items": [{"sku": "b", "quantity": 9007199254740993}]}"#;

struct Story {
    dir: tempfile::TempDir,
    host: Host,
}

impl Story {
    fn begin() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let data = dir.path().join("data");
        let host = Host::start(&data, &["--dev-activities"]).expect("a host");
        Self { dir, host }
    }

    fn ok(&self, args: &[&str]) -> String {
        let output = run(&self.host.address, args);
        assert!(
            output.status.success(),
            "{args:?}: {}{}",
            stdout(&output),
            stderr(&output)
        );
        stdout(&output)
    }

    fn json(&self, args: &[&str]) -> Value {
        let mut args = args.to_vec();
        args.extend(["--output", "json"]);
        let text = self.ok(&args);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{args:?}: {error}: {text}"))
    }
}

#[test]
fn an_order_from_upload_to_replay() {
    let mut story = Story::begin();
    let order = guest("order");
    let order = order.to_str().expect("UTF-8");
    story.ok(&["deploy", order]);
    let effects = Effects::default();
    let worker = Worker::start(&story.host.address, &effects, 1);
    let mut input: Value = serde_json::from_str(ORDER).expect("JSON");
    input["items"][0]["quantity"] = 2.into();
    story.ok(&[
        "start",
        "--type",
        "order",
        "--workflow-id",
        "o-1",
        "--input",
        &input.to_string(),
    ]);
    story.host.kill().expect("killed");
    story.host.launch().expect("up again");
    story.ok(&[
        "signal",
        "o-1",
        "approve",
        "--input",
        r#"{"approved": true}"#,
    ]);
    let result = story.ok(&["result", "o-1", "--timeout", "90s"]);
    assert!(result.contains("o-1"), "{result}");
    drop(worker);

    let table = story.ok(&["list"]);
    assert!(
        table.contains("o-1") && table.contains("completed"),
        "{table}"
    );
    let described = story.ok(&["describe", "o-1"]);
    assert!(described.contains("completed"), "{described}");
    let history = story.ok(&["history", "o-1"]);
    assert!(history.contains("ActivityTaskCompleted"), "{history}");

    // The exported history replays against the code that made it, and not against other code.
    let export = story.dir.path().join("o-1.json");
    std::fs::write(&export, story.ok(&["history", "o-1", "--output", "json"])).expect("written");
    let export = export.to_str().expect("UTF-8");
    story.ok(&["replay", "--component", order, export]);
    let other = guest("account");
    let other = other.to_str().expect("UTF-8");
    let refused = run(
        &story.host.address,
        &["replay", "--component", other, export],
    );
    assert_eq!(
        refused.status.code(),
        Some(7),
        "{}{}",
        stdout(&refused),
        stderr(&refused)
    );
}

#[test]
fn a_rejected_order_is_undone_in_reverse() {
    let story = Story::begin();
    story.ok(&["deploy", guest("order").to_str().expect("UTF-8")]);
    let effects = Effects::default();
    let worker = Worker::start(&story.host.address, &effects, 1);
    let input = r#"{"order_id": "o-2", "amount_cents": 1}"#;
    story.ok(&[
        "start",
        "--type",
        "order",
        "--workflow-id",
        "o-2",
        "--input",
        input,
    ]);
    story.ok(&[
        "signal",
        "o-2",
        "approve",
        "--input",
        r#"{"approved": false}"#,
    ]);
    let result = run(&story.host.address, &["result", "o-2", "--timeout", "90s"]);
    assert_eq!(
        result.status.code(),
        Some(7),
        "{}{}",
        stdout(&result),
        stderr(&result)
    );
    drop(worker);
    let history = story.json(&["history", "o-2"]);
    let scheduled: Vec<_> = history["events"]
        .as_array()
        .expect("events")
        .iter()
        .filter(|event| event["type"] == "ActivityTaskScheduled")
        .map(|event| {
            event["activity_type"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect();
    assert_eq!(scheduled, ["reserve", "charge", "refund", "release"]);
}

#[test]
fn fan_out_and_entity_samples_work() {
    let story = Story::begin();
    story.ok(&["deploy", guest("fan-out").to_str().expect("UTF-8")]);
    story.ok(&["deploy", guest("account").to_str().expect("UTF-8")]);
    let effects = Effects::default();
    let _worker = Worker::start(&story.host.address, &effects, 2);
    let input = r#"{"items": 100}"#;
    story.ok(&[
        "start",
        "--type",
        "fan-out",
        "--workflow-id",
        "f-1",
        "--input",
        input,
    ]);
    let sum = story.ok(&["result", "f-1", "--timeout", "60s"]);
    assert!(
        sum.contains("328350"),
        "the sum of the squares below 100: {sum}"
    );

    let input = r#"{"balance_cents": 100}"#;
    story.ok(&[
        "start",
        "--type",
        "account",
        "--workflow-id",
        "a-1",
        "--input",
        input,
    ]);
    for (name, input) in [
        ("deposit", r#"{"cents": 500}"#),
        ("withdraw", r#"{"cents": 50}"#),
        ("close", "null"),
    ] {
        story.ok(&["signal", "a-1", name, "--input", input]);
    }
    let statement = story.ok(&["result", "a-1", "--timeout", "60s"]);
    assert!(statement.contains("550"), "{statement}");
}

#[test]
fn mistakes_have_hints_and_exit_codes() {
    let story = Story::begin();
    let address = &story.host.address;
    let missing = run(address, &["result", "nobody"]);
    assert_eq!(missing.status.code(), Some(3), "{}", stderr(&missing));
    assert!(stderr(&missing).contains("hint"), "{}", stderr(&missing));
    let unknown = run(address, &["start", "--type", "nothing"]);
    assert_eq!(unknown.status.code(), Some(3), "{}", stderr(&unknown));
    let down = run("127.0.0.1:1", &["list"]);
    assert_eq!(down.status.code(), Some(6), "{}", stderr(&down));
    assert!(stderr(&down).contains("steadfast dev"), "{}", stderr(&down));
    let usage = run(address, &["start"]);
    assert_eq!(usage.status.code(), Some(2));
}
