//! Which runs are in memory: reading them when something reaches them, dropping the least recently
//! used when the cache is full. Dropping is free, because replay rebuilds.

use std::sync::Arc;

use steadfast_engine::activity::due;
use steadfast_engine::state::Pending;
use steadfast_model::activity::TaskState;
use steadfast_model::{EventKind, RunKey, Timestamp};

use crate::chain::run_timers;
use crate::effects::{activity_timer, workflow_timer};
use crate::letters::Letters;
use crate::message::{CallError, Input, Loaded, Output, ReplyId};
use crate::rows::Rows;
use crate::run::Run;
use crate::shard::{LOADS_MAX, LoadResult, RELOAD, Shard};

impl Shard {
    /// Queues an input until its run has been read.
    pub(crate) fn load(&mut self, run: RunKey, input: Input) {
        let waiting = self.loading.entry(run).or_default();
        let is_new = waiting.is_empty();
        waiting.push(input);
        if is_new {
            self.load_queue.push_back(run);
            self.pump_loads();
        }
    }

    fn pump_loads(&mut self) {
        while self.loads < LOADS_MAX
            && let Some(run) = self.load_queue.pop_front()
        {
            self.loads += 1;
            self.outputs.push(Output::Load { run });
        }
    }

    pub(crate) fn loaded(&mut self, key: RunKey, result: LoadResult, now: Timestamp) {
        self.loads = self.loads.saturating_sub(1);
        self.pump_loads();
        let Some(inputs) = self.loading.remove(&key) else {
            return;
        };
        match result {
            Ok(Some(loaded)) => {
                let mut run = self.take_in(*loaded, now);
                for input in inputs {
                    self.run_input(&mut run, input, now);
                }
                self.settle(run, now);
            }
            Ok(None) => {
                for reply in inputs.iter().filter_map(reply_of) {
                    self.outputs
                        .push(Output::Reply(reply, Err(CallError::NoSuchRun(key))));
                }
            }
            Err(error) => {
                tracing::error!(run = key.0, %error, "a run could not be read");
                let mut owed = Vec::new();
                for input in inputs {
                    match reply_of(&input) {
                        Some(reply) => {
                            let error = CallError::Unavailable(error.to_string());
                            self.outputs.push(Output::Reply(reply, Err(error)));
                        }
                        // Nobody will ask again for what nobody waits for.
                        None => owed.push(input),
                    }
                }
                if !owed.is_empty() {
                    self.delayed.entry(key).or_default().extend(owed);
                    self.reloads.insert((now.after(RELOAD), key));
                }
            }
        }
    }

    /// Makes a run of what was read: its timers run, its waiting tasks are handed out.
    fn take_in(&mut self, loaded: Loaded, now: Timestamp) -> Run {
        let Loaded {
            record,
            execution,
            history,
            is_ready,
            letters,
        } = loaded;
        let mut run = Run::new(record, execution);
        let key = run.key();
        run.durable = run.execution.state.last;
        run.is_ready_on_disk = is_ready;
        run.needs_replay = is_ready && !run.is_closed();
        run.find_unannounced();
        run.rows = Rows::loaded(&run.execution, |task| self.is_local(task));
        for event in &history {
            if let EventKind::ActivityTaskScheduled { seq, input, .. } = &event.kind
                && run.execution.tasks.contains_key(seq)
            {
                run.inputs.insert(*seq, Arc::new(input.clone()));
            }
        }
        run.letters = Letters::loaded(&run, &history, &letters);
        run.history = Some(history);
        for (seq, pending) in &run.execution.state.pending {
            if let Pending::Timer { fire_at } = pending {
                self.timers.arm(workflow_timer(key, *seq, *fire_at));
            }
        }
        for task in run.execution.tasks.values() {
            if let Some(due) = due(task) {
                self.timers.arm(activity_timer(task, due));
            }
            if matches!(task.state, TaskState::Ready { .. }) {
                self.undispatched.push(task.seq);
            }
        }
        if !run.is_closed() {
            for (kind, due) in run_timers(&run) {
                run.rows.loaded_of_run(kind, due);
            }
            self.arm_run(&run);
        }
        self.dispatch(&mut run, now);
        self.release_lost(&mut run, now);
        self.note_dirty(&mut run, now);
        self.post(&mut run);
        run
    }

    /// Reads again what could not be read or written before.
    pub(crate) fn reload_due(&mut self, now: Timestamp) {
        while let Some((at, run)) = self.reloads.first().copied() {
            // Far in the future means that the clock jumped back: do not wait for it.
            if at > now && at.since(now) <= RELOAD {
                break;
            }
            self.reloads.pop_first();
            for input in self.delayed.remove(&run).unwrap_or_default() {
                self.give(run, input, now);
            }
            if !self.knows(run) {
                self.load(run, Input::Touch { run });
            }
        }
    }

    /// Keeps a run in memory, unless it is over and everything about it is written.
    pub(crate) fn keep(&mut self, mut run: Run) {
        self.uncount(&run);
        let is_over = run.is_closed() && run.is_evictable() && run.letters.is_empty();
        if is_over {
            return;
        }
        self.use_count += 1;
        run.touched = self.use_count;
        run.bytes = run.memory_bytes();
        self.resident_bytes += run.bytes;
        self.recency.insert(run.touched, run.key());
        self.runs.insert(run.key(), run);
    }

    /// Drops a run that was taken out of `runs`.
    pub(crate) fn forget(&mut self, run: &Run) {
        self.uncount(run);
    }

    fn uncount(&mut self, run: &Run) {
        if run.touched > 0 {
            self.recency.remove(&run.touched);
            self.resident_bytes = self.resident_bytes.saturating_sub(run.bytes);
        }
    }

    /// Drops the least recently used runs until the cache is within its budget.
    pub(crate) fn evict(&mut self, now: Timestamp) {
        if self.resident_bytes <= self.options.cache_bytes {
            return;
        }
        // A busy run is skipped, so the look must be bounded.
        let oldest: Vec<RunKey> = self.recency.values().take(64).copied().collect();
        for key in oldest {
            if self.resident_bytes <= self.options.cache_bytes {
                return;
            }
            self.evict_one(key, now);
        }
    }

    /// Drops a run from memory if nothing is lost by it; writes what is in the way otherwise.
    pub fn evict_one(&mut self, key: RunKey, now: Timestamp) -> bool {
        let Some(mut run) = self.runs.remove(&key) else {
            return false;
        };
        if run.is_evictable() {
            self.forget(&run);
            return true;
        }
        let is_idle = !matches!(run.slot, crate::run::Slot::Busy);
        if is_idle && run.is_dirty() && run.in_flight.is_none() {
            run.wants_flush = true;
            self.settle(run, now);
        } else {
            self.runs.insert(key, run);
        }
        false
    }

    /// The runs in memory.
    pub fn resident_runs(&self) -> impl Iterator<Item = RunKey> + '_ {
        self.runs.keys().copied()
    }
}

fn reply_of(input: &Input) -> Option<ReplyId> {
    match input {
        Input::Start { reply, .. }
        | Input::UpdateStatus { reply, .. }
        | Input::Replace { reply, .. }
        | Input::Flush { reply, .. }
        | Input::Unblock { reply, .. } => Some(*reply),
        Input::Request { reply, .. } => *reply,
        Input::Touch { .. }
        | Input::Retry { .. }
        | Input::Committed { .. }
        | Input::Loaded { .. }
        | Input::Finished { .. }
        | Input::TimersLoaded { .. }
        | Input::TimersFailed { .. }
        | Input::Carried { .. }
        | Input::Shutdown
        | Input::ActivityEnded { .. } => None,
    }
}
