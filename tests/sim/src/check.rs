//! Checkers: they see what a user could see, and the disk.

use std::collections::BTreeMap;

use steadfast_engine::state::State;
use steadfast_model::command::Step;
use steadfast_model::{Event, EventKind, EventNumber, RunKey, Seq, Timestamp};
use steadfast_ports::fake::MemStore;
use steadfast_ports::{Guests, Store};
use steadfast_runtime::activation::begin;
use steadfast_runtime::read_history;

use crate::client::Client;
use crate::family::check_family;
use crate::kin::check_kin;
use crate::plan::Plan;
use crate::work::{Workers, result_of};

/// Everything seen so far.
#[derive(Debug)]
pub struct Checker {
    seed: u64,
    /// True if the wall clock never jumps.
    is_steady: bool,
    /// The durable history of each run when it was last looked at: it may only grow.
    seen: BTreeMap<RunKey, Vec<Event>>,
    /// The ends that were announced.
    announced: BTreeMap<RunKey, Event>,
}

impl Checker {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            seed: plan.seed,
            is_steady: plan.clock_jump_every_ms == 0,
            seen: BTreeMap::new(),
            announced: BTreeMap::new(),
        }
    }

    /// A run's end was announced.
    pub(crate) fn announced(&mut self, run: RunKey, close: &Event) {
        let before = self.announced.insert(run, close.clone());
        assert!(
            before.is_none_or(|before| before == *close),
            "seed {}: run {run} ended twice, differently",
            self.seed
        );
    }

    /// True if a run has ended durably.
    #[must_use]
    pub fn is_closed(&self, store: &MemStore, run: RunKey) -> bool {
        let record = store.execution(run).ok().flatten();
        record.is_some_and(|record| record.status.is_closed())
    }

    /// Reads all histories: none may have changed in what was there before.
    pub fn look(&mut self, store: &MemStore) {
        let last = store.last_run().expect("readable").0;
        for run in (1..=last).map(RunKey) {
            let history =
                read_history(store, run, EventNumber(u64::MAX)).expect("a readable history");
            let before = self.seen.get(&run).map_or(&[][..], Vec::as_slice);
            assert!(
                history.starts_with(before),
                "seed {}: the history of run {run} was rewritten:\n{before:#?}\nnow\n{history:#?}",
                self.seed
            );
            self.seen.insert(run, history);
        }
    }

    /// Checks what must hold once everything has ended.
    pub fn finish(
        &self,
        store: &MemStore,
        guests: &dyn Guests,
        client: &Client,
        workers: &Workers,
    ) {
        check_family(self.seed, &self.seen);
        check_kin(self.seed, self.is_steady, &self.seen);
        for (run, history) in &self.seen {
            if !history.is_empty() {
                self.check_history(*run, history, workers);
                self.check_rows(store, *run);
            }
        }
        for run in client.runs() {
            let history = self.seen.get(&run).unwrap_or_else(|| {
                panic!(
                    "seed {}: run {run} was acknowledged and is not there",
                    self.seed
                )
            });
            self.check_replay(run, history, guests);
            let close = history.last().expect("it has events");
            if let Some(announced) = self.announced.get(&run) {
                assert_eq!(
                    announced, close,
                    "seed {}: a client saw another end",
                    self.seed
                );
            }
        }
        let history_of = |run| self.seen.get(&run).cloned().unwrap_or_default();
        client.updates.check(self.seed, history_of);
        for (run, request_id) in client.acknowledged() {
            let times = self.seen[run]
                .iter()
                .filter(|event| {
                    matches!(&event.kind, EventKind::WorkflowExecutionSignaled { request_id: id, .. } if id == request_id)
                })
                .count();
            assert_eq!(
                times, 1,
                "seed {}: signal {request_id} is in run {run} {times} times",
                self.seed
            );
        }
    }

    fn check_history(&self, run: RunKey, history: &[Event], workers: &Workers) {
        let seed = self.seed;
        let state = State::fold(history)
            .unwrap_or_else(|error| panic!("seed {seed}: run {run} does not fold: {error}"));
        state.check();
        assert!(state.status.is_closed(), "seed {seed}: run {run} is open");
        let mut due: BTreeMap<Seq, Timestamp> = BTreeMap::new();
        let mut inputs = BTreeMap::new();
        let started = &state.started;
        for event in history {
            match &event.kind {
                EventKind::TimerStarted { seq, fire_at, .. } => {
                    due.insert(*seq, *fire_at);
                }
                EventKind::TimerFired { seq } => {
                    assert!(
                        event.time >= due[seq],
                        "seed {seed}: run {run}: timer {seq} fired early"
                    );
                }
                EventKind::ActivityTaskScheduled { seq, input, .. } => {
                    inputs.insert(*seq, input.clone());
                }
                EventKind::ActivityTaskCompleted { seq, result, .. } => {
                    let key = format!(
                        "{}/{}/{}/{seq}",
                        started.namespace, started.workflow_id, started.run_id
                    );
                    assert!(
                        workers.has_effect(&key),
                        "seed {seed}: a result without an effect: {key}"
                    );
                    assert_eq!(
                        *result,
                        result_of(&inputs[seq]),
                        "seed {seed}: a foreign result"
                    );
                }
                _ => {}
            }
        }
    }

    /// A fresh instance given the history ends the same way, without any new command.
    fn check_replay(&self, run: RunKey, history: &[Event], guests: &dyn Guests) {
        let seed = self.seed;
        let EventKind::WorkflowExecutionStarted { started } = &history[0].kind else {
            panic!("seed {seed}: run {run} does not begin with a start")
        };
        let fetch = || Ok(Some(b"component".to_vec()));
        let (_, result) = begin(guests, started.component, &fetch, history.to_vec(), false);
        let yielded = result
            .unwrap_or_else(|error| panic!("seed {seed}: run {run} does not replay: {error}"));
        assert!(
            yielded.commands.is_empty(),
            "seed {seed}: run {run}: replay made new commands"
        );
        let close = &history.last().expect("not empty").kind;
        let is_same = match (&yielded.step, close) {
            (Step::Completed(a), EventKind::WorkflowExecutionCompleted { result: b, .. }) => a == b,
            (Step::Failed(a), EventKind::WorkflowExecutionFailed { failure: b, .. })
            | (Step::Canceled(a), EventKind::WorkflowExecutionCanceled { failure: b }) => a == b,
            _ => false,
        };
        assert!(
            is_same,
            "seed {seed}: run {run} replays to {:?}, not to {close:?}",
            yielded.step
        );
    }

    /// A run that has ended leaves no timers, tasks or marks behind.
    fn check_rows(&self, store: &MemStore, run: RunKey) {
        let seed = self.seed;
        let end = Timestamp(u64::MAX);
        let timers = store.timers(None, end, usize::MAX).expect("readable");
        assert!(
            timers.iter().all(|key| key.run != run),
            "seed {seed}: run {run} left timers"
        );
        let tasks = store.tasks(None, usize::MAX).expect("readable");
        assert!(
            tasks.iter().all(|key| key.run != run),
            "seed {seed}: run {run} left tasks"
        );
        assert!(
            store.activities(run).expect("readable").is_empty(),
            "seed {seed}: activities left"
        );
        assert!(
            store.updates(run).expect("readable").is_empty(),
            "seed {seed}: admitted updates left"
        );
        let ready = store.ready(None, usize::MAX).expect("readable");
        assert!(
            !ready.contains(&run),
            "seed {seed}: run {run} is still marked ready"
        );
    }
}
