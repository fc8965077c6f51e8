//! Workflows that wait inside their calls, on the real host: killed while they wait, evicted, asked
//! to cancel. Every one is replayed from its history afterwards.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "test code"
)]

use steadfast_e2e::cli::{run, stderr, stdout};
use steadfast_e2e::effects::Effects;
use steadfast_e2e::host::{Host, guest};
use steadfast_e2e::worker::Worker;

struct Story {
    dir: tempfile::TempDir,
    host: Host,
}

impl Story {
    fn begin(args: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let data = dir.path().join("data");
        let mut all = vec!["--dev-activities"];
        all.extend(args);
        let host = Host::start(&data, &all).expect("a host");
        let story = Self { dir, host };
        story.ok(&["deploy", guest("blocking").to_str().expect("UTF-8")]);
        story
    }

    fn ok(&self, args: &[&str]) -> String {
        let output = run(&self.host.address, args);
        let (out, err) = (stdout(&output), stderr(&output));
        assert!(output.status.success(), "{args:?}: {out}{err}");
        out
    }

    fn start(&self, workflow: &str, id: &str, input: &str) {
        let workflow = format!("blocking-{workflow}");
        self.ok(&[
            "start",
            "--type",
            &workflow,
            "--workflow-id",
            id,
            "--input",
            input,
        ]);
    }

    fn result(&self, id: &str) -> String {
        self.ok(&["result", id, "--timeout", "60s"])
    }

    /// The exported history of a closed run replays without a difference.
    fn replays(&self, id: &str) {
        let file = self.dir.path().join(format!("{id}.json"));
        let history = self.ok(&["history", id, "--output", "json"]);
        std::fs::write(&file, history).expect("written");
        self.ok(&[
            "replay",
            "--component",
            guest("blocking").to_str().expect("UTF-8"),
            file.to_str().expect("UTF-8"),
        ]);
    }
}

#[test]
fn runs_that_wait_inside_their_calls_survive_kills() {
    let mut story = Story::begin(&[]);
    let effects = Effects::default();
    let worker = Worker::start(&story.host.address, &effects, 2);
    story.start("approval", "approved", r#"{"deadline_ms": 600000}"#);
    story.start("approval", "late", r#"{"deadline_ms": 1500}"#);
    story.start("signals-count", "count", r#"{"expect": 4}"#);
    story.start("cancel", "cancelled", "null");
    story.start("random-now", "drawn", "null");
    for round in 0..3 {
        story.ok(&["signal", "count", "n", "--input", &round.to_string()]);
        story.host.kill().expect("killed");
        story.host.launch().expect("started again");
    }
    story.ok(&["signal", "approved", "approve", "--input", "\"ada\""]);
    story.ok(&["signal", "count", "n", "--input", "3"]);
    story.ok(&["cancel", "cancelled", "--reason", "enough"]);
    assert!(story.result("approved").contains("ada"));
    assert!(story.result("late").contains("too late"));
    let count = story.result("count").replace([' ', '\n'], "");
    assert!(count.contains("[0,1,2,3]"), "{count}");
    story.result("drawn");
    let cancelled = run(&story.host.address, &["result", "cancelled"]);
    assert!(
        stderr(&cancelled).contains("cancel"),
        "{}",
        stderr(&cancelled)
    );
    for id in ["approved", "late", "count", "cancelled", "drawn"] {
        story.replays(id);
    }
    drop(worker);
}

#[test]
fn a_thousand_steps_are_the_same_with_hardly_any_cache() {
    // Far less than two runs take: every other step evicts somebody.
    let story = Story::begin(&["--cache-mib", "1"]);
    let ids: Vec<String> = (0..8).map(|i| format!("s-{i}")).collect();
    for id in &ids {
        story.start("parallel", id, r#"{"steps": 100}"#);
    }
    for id in &ids {
        assert!(story.result(id).contains("100"));
        story.replays(id);
    }
}

#[test]
fn what_cannot_go_on_is_blocked_with_its_reason() {
    let story = Story::begin(&[]);
    for (workflow, reason) in [
        ("deadlock", "wait-any"),
        ("trap", "unreachable"),
        ("spin", "time limit"),
    ] {
        story.start(workflow, workflow, "null");
        let begun = std::time::Instant::now();
        loop {
            let text = story.ok(&["describe", workflow]);
            if text.contains(reason) {
                break;
            }
            assert!(begun.elapsed().as_secs() < 60, "{workflow}: {text}");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}
