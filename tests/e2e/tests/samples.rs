//! The samples of the guide do what their pages say.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "test code"
)]

use serde_json::{Value, json};
use steadfast_e2e::cli::{run, stderr, stdout};
use steadfast_e2e::effects::Effects;
use steadfast_e2e::host::{Host, guest};
use steadfast_e2e::worker::Worker;

struct Desk {
    dir: tempfile::TempDir,
    host: Host,
}

impl Desk {
    fn with(samples: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let host = Host::start(&dir.path().join("data"), &["--dev-activities"]).expect("a host");
        for sample in samples {
            host.upload(sample).expect("uploaded");
        }
        Self { dir, host }
    }

    fn ok(&self, args: &[&str]) -> String {
        let output = run(&self.host.address, args);
        let text = format!("{args:?}: {}{}", stdout(&output), stderr(&output));
        assert!(output.status.success(), "{text}");
        stdout(&output)
    }

    fn start(&self, workflow: &str, id: &str, input: &Value) {
        let input = input.to_string();
        self.ok(&[
            "start",
            "--type",
            workflow,
            "--workflow-id",
            id,
            "--input",
            &input,
        ]);
    }

    fn result(&self, id: &str) -> Value {
        let text = self.ok(&["result", id, "--timeout", "90s", "--output", "json"]);
        let mut value: Value = serde_json::from_str(&text).expect("JSON");
        value["result"].take()
    }

    fn export(&self, id: &str) -> Value {
        let text = self.ok(&["history", id, "--output", "json"]);
        serde_json::from_str(&text).expect("JSON")
    }

    /// The names of a run's events, with the activity's type behind them.
    fn events(&self, id: &str) -> Vec<String> {
        let export = self.export(id);
        let events = export["events"].as_array().expect("events").iter();
        let text = |event: &Value| {
            let kind = event["type"].as_str().unwrap_or_default();
            let detail = event["activity_type"].as_str().unwrap_or_default();
            format!("{kind} {detail}").trim().to_owned()
        };
        events.map(text).collect()
    }

    /// Waits until the run has so many events with this name.
    fn until(&self, id: &str, name: &str, count: usize) {
        for _ in 0..3000 {
            let events = self.events(id);
            if events
                .iter()
                .filter(|event| event.starts_with(name))
                .count()
                >= count
            {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        panic!("not {count} of {name}: {:?}", self.events(id));
    }

    /// The exit code of replaying a run's history against a sample, and what was said.
    fn replay(&self, id: &str, sample: &str) -> (Option<i32>, String) {
        let file = self.dir.path().join(format!("{id}.json"));
        std::fs::write(&file, self.export(id).to_string()).expect("written");
        let (component, file) = (guest(sample), file.to_string_lossy().into_owned());
        let component = component.to_string_lossy().into_owned();
        let args = ["replay", "--component", &component, &file];
        let output = run(&self.host.address, &args);
        let text = format!("{}{}", stdout(&output), stderr(&output));
        (output.status.code(), text)
    }
}

#[test]
fn timeouts_and_retries() {
    let desk = Desk::with(&["timeouts-and-retries"]);
    let slow = json!({"failures": 2, "slow_ms": 20_000, "patience_ms": 300});
    desk.start("quote", "slow", &slow);
    let quick = json!({"failures": 0, "slow_ms": 1, "patience_ms": 30_000});
    desk.start("quote", "quick", &quick);
    assert_eq!(
        desk.result("slow"),
        json!({"attempts": 3, "is_fallback": true})
    );
    assert_eq!(
        desk.result("quick"),
        json!({"attempts": 1, "is_fallback": false})
    );
    let events = desk.events("slow");
    let retried: Vec<_> = events
        .iter()
        .filter(|e| e.starts_with("Activity"))
        .collect();
    assert_eq!(
        retried.len(),
        4,
        "attempts are not in the history: {events:?}"
    );
    let hopeless = json!({"failures": 9, "slow_ms": 1, "patience_ms": 30_000});
    desk.start("quote", "hopeless", &hopeless);
    let result = run(
        &desk.host.address,
        &["result", "hopeless", "--timeout", "90s"],
    );
    assert_eq!(result.status.code(), Some(7), "{}", stderr(&result));
}

#[test]
fn a_cancelled_trip_sees_its_bookings_through_and_gives_them_back() {
    let mut desk = Desk::with(&["cancellation"]);
    let input = json!({"stops": ["Rome", "Oslo"], "patience_ms": 60_000});
    desk.start("trip", "booked", &input);
    desk.start("trip", "cancelled", &input);
    desk.ok(&["cancel", "cancelled", "--reason", "stay home"]);
    desk.host.kill().expect("killed");
    desk.host.launch().expect("up again");
    let effects = Effects::default();
    let _worker = Worker::start(&desk.host.address, &effects, 1);
    assert_eq!(desk.result("booked").as_array().map(Vec::len), Some(2));
    let result = run(
        &desk.host.address,
        &["result", "cancelled", "--timeout", "90s"],
    );
    assert_eq!(result.status.code(), Some(7), "{}", stderr(&result));
    let events = desk.events("cancelled");
    let given_back = |e: &&String| *e == "ActivityTaskScheduled give-back";
    assert_eq!(events.iter().filter(given_back).count(), 2, "{events:?}");
    assert_eq!(
        events.last().map(String::as_str),
        Some("WorkflowExecutionCanceled")
    );
    for id in ["booked", "cancelled"] {
        let (code, text) = desk.replay(id, "cancellation");
        assert_eq!(code, Some(0), "{text}");
    }
}

#[test]
fn scenario_16_fifty_scopes_replay_in_the_order_of_their_start() {
    let mut desk = Desk::with(&["cancellation"]);
    desk.start("watches", "w", &json!(50));
    desk.ok(&["signal", "w", "drop", "--input", "7"]);
    desk.until("w", "TimerCanceled", 1);
    desk.host.kill().expect("killed");
    desk.host.launch().expect("up again");
    desk.ok(&["cancel", "w"]);
    assert_eq!(desk.result("w"), json!(50));
    let events = desk.export("w");
    let events = events["events"].as_array().expect("events");
    let seqs = |kind: &str| -> Vec<u64> {
        let of_kind = events.iter().filter(|event| event["type"] == kind);
        of_kind.filter_map(|event| event["seq"].as_u64()).collect()
    };
    let timers = seqs("TimerCanceled");
    assert_eq!((timers.len(), timers[0]), (50, 15), "{timers:?}");
    assert!(timers[1..].is_sorted(), "{timers:?}");
    let activities = seqs("ActivityTaskCancelRequested");
    assert_eq!(
        (activities.len(), activities[0]),
        (50, 16),
        "{activities:?}"
    );
    assert!(activities[1..].is_sorted(), "{activities:?}");
    for _ in 0..20 {
        let (code, text) = desk.replay("w", "cancellation");
        assert_eq!(code, Some(0), "{text}");
    }
}

#[test]
fn a_patch_through_its_four_versions() {
    let desk = Desk::with(&["patching"]);
    let input = json!({"amount_cents": 1000, "delay_ms": 300});
    desk.start("invoice", "first", &input);
    assert_eq!(desk.result("first"), json!(["accepted", "paid, fee 20"]));
    desk.host.upload("patching-v2").expect("uploaded");
    desk.start("invoice", "second", &input);
    assert_eq!(
        desk.result("second"),
        json!(["accepted", "checked", "paid, fee 30"])
    );
    desk.host.upload("patching-v3").expect("uploaded");
    desk.start("invoice", "third", &input);
    assert_eq!(
        desk.result("third"),
        json!(["accepted", "checked", "paid, fee 20"])
    );
    // Which version fits which run.
    let fits = |id: &str, sample: &str| desk.replay(id, sample).0 == Some(0);
    for (id, expected) in [
        ("first", [true, true, false, false]),
        ("second", [false, true, true, false]),
        ("third", [false, true, true, true]),
    ] {
        let found = ["", "-v2", "-v3", "-v4"].map(|v| fits(id, &format!("patching{v}")));
        assert_eq!(found, expected, "{id}");
    }
    let (_, text) = desk.replay("second", "patching-v4");
    assert!(
        text.contains("fraud-check") && text.contains("deprecate_patch"),
        "{text}"
    );
    let history = desk.ok(&["history", "second"]);
    assert!(history.contains("patch fraud-check"), "{history}");
    assert!(history.contains("side effect rate 3"), "{history}");
}

/// Waits until it is so, and fails after a minute.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1200 {
        if is_so() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("it never came to {what}");
}

/// The runs of an id, newest first.
fn runs(desk: &Desk, id: &str) -> Vec<Value> {
    let text = desk.ok(&["list", "--workflow-id", id, "--output", "json"]);
    let list: Value = serde_json::from_str(&text).expect("JSON");
    list.as_array().expect("a list").clone()
}

#[test]
fn a_subscription_outlives_its_runs_and_the_host() {
    let mut desk = Desk::with(&["subscription"]);
    let input = json!({"period_ms": 20, "periods_per_run": 3, "price_cents": 10}).to_string();
    let start = ["start", "--type", "subscription", "--workflow-id", "s"];
    desk.ok(&[
        &start[..],
        &["--input", &input, "--memo", "plan=\"monthly\""],
    ]
    .concat());
    for price in 1..=20 {
        let price = (price * 100).to_string();
        desk.ok(&["signal", "s", "change-price", "--input", &price]);
        if price == "1000" {
            desk.host.kill().expect("killed");
            desk.host.launch().expect("up again");
        }
    }
    eventually("five runs", || runs(&desk, "s").len() >= 5);
    desk.ok(&["signal", "s", "stop"]);
    let result = desk.result("s");
    assert_eq!(result["changes"], 20, "{result}");
    assert_eq!(result["price_cents"], 2000, "{result}");
    let all = runs(&desk, "s");
    let charged = result["charged"].as_u64().expect("a number");
    assert_eq!(all.len() as u64, charged / 3 + 1, "{result}");
    // Every run fits its code, and the chain hangs together.
    for run in &all {
        let run_id = run["run_id"].as_str().expect("an id");
        let text = desk.ok(&["history", "s", "--run-id", run_id, "--output", "json"]);
        let file = desk.dir.path().join(format!("{run_id}.json"));
        std::fs::write(&file, text).expect("written");
        let (component, file) = (guest("subscription"), file.to_string_lossy().into_owned());
        let component = component.to_string_lossy().into_owned();
        desk.ok(&["replay", "--component", &component, &file]);
    }
    let described = desk.ok(&["describe", "s"]);
    assert!(
        described.contains("memo         plan = \"monthly\""),
        "{described}"
    );
    assert!(
        described.contains(&format!("charged = {charged}")),
        "{described}"
    );
    assert!(described.contains("run before"), "{described}");
}

#[test]
fn a_counter_goes_on_where_its_last_run_ended() {
    let desk = Desk::with(&["subscription"]);
    let start = ["start", "--type", "counter", "--workflow-id", "c"];
    desk.ok(&[&start[..], &["--cron", "@every 1s"]].concat());
    let completed = |desk: &Desk| {
        let runs = runs(desk, "c").into_iter();
        runs.filter(|run| run["status"] == "completed").count()
    };
    eventually("three results", || completed(&desk) >= 3);
    desk.ok(&["terminate", "c"]);
    let mut results = Vec::new();
    for run in runs(&desk, "c") {
        let run_id = run["run_id"].as_str().expect("an id");
        if run["status"] == "completed" {
            let text = desk.ok(&[
                "result",
                "c",
                "--run-id",
                run_id,
                "--no-follow",
                "--output",
                "json",
            ]);
            let outcome: Value = serde_json::from_str(&text).expect("JSON");
            results.push(outcome["result"].as_u64().expect("a number"));
        }
    }
    results.reverse();
    let expected: Vec<u64> = (1..=results.len() as u64).collect();
    assert_eq!(results, expected);
}

#[test]
fn children_are_made_all_at_once_and_survive_kills() {
    let mut desk = Desk::with(&["children"]);
    desk.start("assembly", "a", &json!({"parts": 50}));
    desk.host.kill().expect("killed");
    desk.host.launch().expect("up again");
    assert_eq!(desk.result("a"), json!(50 * 51 / 2));
    let events = desk.events("a");
    let count = |name: &str| events.iter().filter(|event| *event == name).count();
    assert_eq!(count("ChildWorkflowExecutionStarted"), 50);
    assert_eq!(count("ChildWorkflowExecutionCompleted"), 50);
    for id in ["a", "a/part-1", "a/part-50"] {
        assert_eq!(runs(&desk, id).len(), 1, "{id}");
    }
    let (code, text) = desk.replay("a", "children");
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn children_end_with_their_parent_and_are_signalled_by_others() {
    let mut desk = Desk::with(&["children"]);
    desk.start("assembly", "a", &json!({"parts": 3, "delivered": true}));
    desk.until("a", "ChildWorkflowExecutionStarted", 3);
    let described = desk.ok(&["describe", "a"]);
    assert!(described.contains("a/part-2 (part): runs"), "{described}");
    let described = desk.ok(&["describe", "a/part-2"]);
    assert!(described.contains("parent       a (run"), "{described}");
    desk.start("relay", "r", &json!("a/part-1"));
    assert_eq!(desk.result("r"), json!("delivered"));
    desk.until("a", "ChildWorkflowExecutionCompleted", 1);
    desk.start("relay", "again", &json!("a/part-1"));
    let gone = json!("external-workflow-execution-not-found");
    assert_eq!(desk.result("again"), gone);
    desk.ok(&["terminate", "a", "--reason", "not needed"]);
    desk.host.kill().expect("killed");
    desk.host.launch().expect("up again");
    for id in ["a/part-2", "a/part-3"] {
        let result = run(&desk.host.address, &["result", id, "--timeout", "60s"]);
        let text = stderr(&result);
        assert!(text.contains("the parent a has ended"), "{text}");
    }
    desk.start(
        "assembly",
        "b",
        &json!({"parts": 3, "delivered": true, "broken": 2}),
    );
    let result = run(&desk.host.address, &["result", "b", "--timeout", "60s"]);
    assert!(
        stderr(&result).contains("the part broke"),
        "{}",
        stderr(&result)
    );
}

#[test]
fn an_operator_looks_after_activities() {
    let desk = Desk::with(&["order"]);
    desk.start("order", "o", &json!({"order_id": "o-1", "amount_cents": 1}));
    desk.until("o", "ActivityTaskScheduled", 1);
    let pause = ["activity", "pause", "o", "--activity-id", "1"];
    let text = desk.ok(&[&pause[..], &["--reason", "wait"]].concat());
    assert_eq!(text, "paused 1 activity of o\n");
    let listed = desk.ok(&["activity", "list"]);
    assert!(
        listed.contains("reserve") && listed.contains("paused"),
        "{listed}"
    );
    desk.ok(&[
        "activity",
        "update-options",
        "o",
        "--all",
        "--maximum-attempts",
        "1",
    ]);
    desk.ok(&["activity", "unpause", "o", "--type", "reserve"]);
    desk.ok(&["activity", "complete", "o", "1", "--input", "\"by hand\""]);
    desk.until("o", "ActivityTaskCompleted", 1);
    let events = desk.events("o");
    assert!(
        events
            .iter()
            .any(|event| event == "ActivityTaskScheduled charge"),
        "{events:?}"
    );
    let missing = run(&desk.host.address, &["activity", "fail", "o", "77"]);
    assert_ne!(missing.status.code(), Some(0));
    let args = ["activity", "pause", "o"];
    let unclear = run(&desk.host.address, &args);
    assert_eq!(unclear.status.code(), Some(2), "{}", stderr(&unclear));
}

#[test]
fn a_basket_is_asked_changed_and_paid_through_a_kill() {
    let mut desk = Desk::with(&["basket"]);
    let tea = |quantity: u64| json!({"sku": "tea", "quantity": quantity}).to_string();
    let first = [
        "update",
        "b",
        "add",
        "--start",
        "basket",
        "--update-id",
        "u1",
    ];
    let two = tea(2);
    let first = [&first[..], &["--input", &two]].concat();
    assert_eq!(desk.ok(&first), "2\n");
    desk.host.kill().expect("killed");
    desk.host.launch().expect("up again");
    // The same update again is the same update; a refused one leaves no trace.
    assert_eq!(desk.ok(&first), "2\n");
    let too_many = tea(200);
    let refused = run(
        &desk.host.address,
        &["update", "b", "add", "--input", &too_many],
    );
    assert_eq!(refused.status.code(), Some(7));
    assert!(
        stderr(&refused).contains("was refused"),
        "{}",
        stderr(&refused)
    );
    let contents: Value =
        serde_json::from_str(&desk.ok(&["query", "b", "contents"])).expect("JSON");
    assert_eq!(contents, json!({"items": {"tea": 2}, "receipt": null}));
    let unknown = run(&desk.host.address, &["query", "b", "colour"]);
    assert!(
        stderr(&unknown).contains("known: contents"),
        "{}",
        stderr(&unknown)
    );
    desk.ok(&["update", "b", "pay", "--input", "{\"card\": \"4711\"}"]);
    let paid = json!("2 pieces by card 4711");
    assert_eq!(desk.result("b")["receipt"], paid);
    let closed: Value = serde_json::from_str(&desk.ok(&["query", "b", "contents"])).expect("JSON");
    assert_eq!(closed["receipt"], paid);
    let events = desk.events("b");
    let accepted = events
        .iter()
        .filter(|event| event.ends_with("UpdateAccepted"));
    assert_eq!(accepted.count(), 2, "{events:?}");
    let (code, text) = desk.replay("b", "basket");
    assert_eq!(code, Some(0), "{text}");
}
