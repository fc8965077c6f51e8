//! A shard: a synchronous machine over one closed [`Input`] enum that returns [`Output`]s.
//!
//! It owns some of the runs and knows nothing of threads, sockets, disks or real time, so the
//! simulator drives the very same code as the driver does. The order of a step:
//!
//! 1. a request is decided and applied in memory;
//! 2. what was decided is submitted as one batch, together with whatever else the run has not
//!    written yet;
//! 3. once it is durable, callers are answered and the guest is told;
//! 4. what the guest then asks for is decided, and dispatched at once: a crash would re-derive it
//!    from what is durable. It is written with the next batch, or a few milliseconds later.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use steadfast_engine::chain::{may_follow, may_follow_timeout};
use steadfast_engine::decide::Request;
use steadfast_model::command::Step;
use steadfast_model::{ActivityType, LetterKey, Millis, RunKey, Seq, Timestamp};
use steadfast_ports::store::{self, FencingToken, TimerKey, TimerKind};

use crate::activation::{Finished, Yielded};
use crate::blocked::block;
use crate::chain::{Minter, Undelivered, new_run, run_timer};
use crate::message::{Answer, Beat, CallError, Input, Loaded, NewRun, Output, ReplyId, Ticket};
use crate::rows::HOST_WORKER_PREFIX;
use crate::run::{Run, Slot};
use crate::timer::{READ_MAX, Timers};
use crate::update::is_for_code;
use crate::wanted::Wanted;

/// How long what nobody waits for may stay unwritten.
pub const LAZY_FLUSH: Millis = Millis(5);

/// Wait before a failed read or a failed commit's run is read again.
pub(crate) const RELOAD: Millis = Millis(100);

/// Most runs being read at a time.
pub(crate) const LOADS_MAX: usize = 64;

/// Most due times handled in one go.
const FIRE_MAX: usize = 1000;

/// What a shard is told at its start.
#[derive(Debug, Clone)]
pub struct ShardOptions {
    /// This shard's index...
    pub index: u64,
    /// ... of so many. A run belongs to the shard of its key modulo this.
    pub count: u64,
    /// Proof of owning the store.
    pub fence: FencingToken,
    /// Tells this process from all before it; part of its worker name.
    pub process: String,
    /// Activity types that run in this process.
    pub local_activities: Arc<BTreeSet<ActivityType>>,
    /// Bytes that resident runs may take; instances beyond are dropped, least recently used first.
    pub cache_bytes: usize,
    /// Makes what new runs are known by.
    pub minter: Arc<dyn Minter>,
}

/// The machine.
#[derive(Debug)]
pub struct Shard {
    pub(crate) options: ShardOptions,
    pub(crate) worker: String,
    pub(crate) runs: BTreeMap<RunKey, Run>,
    pub(crate) timers: Timers,
    pub(crate) outputs: Vec<Output>,
    /// Ready tasks of the run at hand that were not handed out yet.
    pub(crate) undispatched: Vec<Seq>,
    /// Attempts that this process runs.
    pub(crate) running: BTreeSet<(RunKey, Seq, u32)>,
    pub(crate) tickets: BTreeMap<Ticket, RunKey>,
    next_ticket: u64,
    generations: u64,
    /// Runs with something to write that nobody waits for, by when that began.
    lazy: VecDeque<(Timestamp, RunKey)>,
    /// Inputs that wait for their run to be read.
    pub(crate) loading: BTreeMap<RunKey, Vec<Input>>,
    pub(crate) load_queue: VecDeque<RunKey>,
    pub(crate) loads: usize,
    pub(crate) reloads: BTreeSet<(Timestamp, RunKey)>,
    /// Inputs whose run could not be read; given again when it is read again.
    pub(crate) delayed: BTreeMap<RunKey, Vec<Input>>,
    pub(crate) recency: BTreeMap<u64, RunKey>,
    pub(crate) use_count: u64,
    pub(crate) resident_bytes: usize,
    /// Letters that the courier has, so that none is sent twice at a time.
    pub(crate) in_post: BTreeSet<LetterKey>,
    /// Letters of those that are to be sent again, by when.
    pub(crate) resend: BTreeSet<(Timestamp, LetterKey)>,
    /// Set by the first failure that only a restart can heal.
    pub(crate) fatal: Option<store::Error>,
}

impl Shard {
    /// A shard without runs.
    #[must_use]
    pub fn new(options: ShardOptions) -> Self {
        let worker = format!("{HOST_WORKER_PREFIX}{}", options.process);
        Self {
            options,
            worker,
            runs: BTreeMap::new(),
            timers: Timers::new(),
            outputs: Vec::new(),
            undispatched: Vec::new(),
            running: BTreeSet::new(),
            tickets: BTreeMap::new(),
            next_ticket: 0,
            generations: 0,
            lazy: VecDeque::new(),
            loading: BTreeMap::new(),
            load_queue: VecDeque::new(),
            loads: 0,
            reloads: BTreeSet::new(),
            delayed: BTreeMap::new(),
            recency: BTreeMap::new(),
            use_count: 0,
            resident_bytes: 0,
            in_post: BTreeSet::new(),
            resend: BTreeSet::new(),
            fatal: None,
        }
    }

    /// The failure that only a restart can heal, if there was one.
    #[must_use]
    pub fn fatal(&self) -> Option<&store::Error> {
        self.fatal.as_ref()
    }

    /// Runs in memory and the bytes counted for them.
    #[must_use]
    pub fn resident(&self) -> (usize, usize) {
        (self.runs.len(), self.resident_bytes)
    }

    /// How many runs wait to be read.
    #[must_use]
    pub fn loads_waiting(&self) -> usize {
        self.load_queue.len()
    }

    /// The next time at which [`Shard::tick`] has something to do.
    #[must_use]
    pub fn next_wake(&self) -> Option<Timestamp> {
        let lazy = self.lazy.front().map(|(since, _)| since.after(LAZY_FLUSH));
        let reload = self.reloads.first().map(|(at, _)| *at);
        let resend = self.resend.first().map(|(at, _)| *at);
        [self.timers.next(), lazy, reload, resend]
            .into_iter()
            .flatten()
            .min()
    }

    /// Takes in one input. `now` may jump in either direction.
    pub fn handle(&mut self, input: Input, now: Timestamp) -> Vec<Output> {
        match input {
            Input::Start { new, reply } => self.start(*new, reply, now),
            Input::Committed { ticket, result } => self.committed(ticket, result, now),
            Input::Loaded { run, result } => self.loaded(run, result, now),
            Input::Finished {
                run,
                generation,
                finished,
            } => {
                self.finished(run, generation, *finished, now);
            }
            Input::TimersLoaded { keys, more_after } => {
                let (index, count) = (self.options.index, self.options.count);
                let mine = keys.into_iter().filter(|key| key.run.0 % count == index);
                self.timers.loaded(mine, more_after);
            }
            Input::TimersFailed { after } => self.timers.failed(after, now),
            Input::Shutdown => {}
            Input::Carried { key, .. } => self.give(key.run, input, now),
            // What is not in memory is on disk.
            Input::Flush { run, reply } if !self.knows(run) => {
                self.outputs.push(Output::Reply(reply, Ok(Answer::Done)));
            }
            Input::Request { run, .. }
            | Input::UpdateStatus { run, .. }
            | Input::Flush { run, .. }
            | Input::Replace { run, .. }
            | Input::Touch { run }
            | Input::Unblock { run, .. }
            | Input::Retry { run }
            | Input::ActivityEnded { run, .. } => self.give(run, input, now),
        }
        self.tick_inner(now);
        std::mem::take(&mut self.outputs)
    }

    /// Does what time brings: due timers, late writes, reads ahead.
    pub fn tick(&mut self, now: Timestamp) -> Vec<Output> {
        self.tick_inner(now);
        std::mem::take(&mut self.outputs)
    }

    pub(crate) fn knows(&self, run: RunKey) -> bool {
        self.runs.contains_key(&run) || self.loading.contains_key(&run)
    }

    fn tick_inner(&mut self, now: Timestamp) {
        for key in self.timers.take_due(now, FIRE_MAX) {
            self.fire(key, now);
        }
        while let Some((since, run)) = self.lazy.front().copied() {
            // A clock that jumped back must not hold a write back.
            if since.after(LAZY_FLUSH) > now && since <= now {
                break;
            }
            self.lazy.pop_front();
            if let Some(mut run) = self.runs.remove(&run) {
                run.wants_flush |= run.is_lazy;
                run.is_lazy = false;
                self.settle(run, now);
            }
        }
        self.reload_due(now);
        self.resend_due(now);
        if let Some(read) = self.timers.read(now) {
            self.outputs.push(Output::LoadTimers {
                after: read.after,
                until: read.until,
            });
        }
        self.evict(now);
    }

    fn fire(&mut self, key: TimerKey, now: Timestamp) {
        let (run, seq) = (key.run, key.seq);
        let request = match key.kind {
            TimerKind::Workflow => Request::TimerDue { seq },
            TimerKind::Activity => Request::ActivityDue { seq },
            TimerKind::Run => Request::RunDue { closing: None },
            TimerKind::Activation | TimerKind::Start => {
                return self.give(run, Input::Retry { run }, now);
            }
        };
        let input = Input::Request {
            run,
            request: Box::new(request),
            reply: None,
        };
        self.give(run, input, now);
    }

    fn start(&mut self, mut new: NewRun, reply: ReplyId, now: Timestamp) {
        let first = new.first.take();
        match new_run(new) {
            Ok(mut run) => {
                if let Some(first) = first {
                    // A run that has just begun rejects nothing that the entrance lets through.
                    if let Err(rejection) = self.take(&mut run, first, now) {
                        self.outputs
                            .push(Output::Reply(reply, Err(rejection.into())));
                        return;
                    }
                }
                run.held.push((reply, Ok(Answer::Done)));
                self.settle(run, now);
            }
            Err(error) => {
                let error = CallError::Conflict(error.to_string());
                self.outputs.push(Output::Reply(reply, Err(error)));
            }
        }
    }

    /// Ends a run and begins another one of its workflow id with the same batch.
    fn replace(&mut self, run: &mut Run, new: NewRun, end: Request, now: Timestamp) -> Replaced {
        let mut new = NewRun {
            replaces: Some(run.key()),
            ..new
        };
        let first = new.first.take();
        let mut next = new_run(new).map_err(|error| CallError::Conflict(error.to_string()))?;
        if let Some(first) = first {
            self.take(&mut next, first, now)?;
        }
        self.take(run, end, now)?;
        run.successor = Some(Box::new(next));
        Ok(Answer::Done)
    }

    /// Gives an input to its run, which is read first if it is not in memory.
    pub(crate) fn give(&mut self, key: RunKey, input: Input, now: Timestamp) {
        match self.runs.remove(&key) {
            Some(mut run) => {
                self.run_input(&mut run, input, now);
                self.settle(run, now);
            }
            None => self.load(key, input),
        }
    }

    pub(crate) fn run_input(&mut self, run: &mut Run, input: Input, now: Timestamp) {
        match input {
            Input::Request {
                request,
                reply,
                run: _,
            } => {
                if run.holds_back() && is_for_code(&request) {
                    run.backlog.push_back((*request, reply));
                } else {
                    self.request(run, *request, reply, now);
                }
            }
            Input::UpdateStatus {
                update_id, reply, ..
            } => self.update_status(run, &update_id, reply),
            Input::ActivityEnded {
                run: key,
                seq,
                attempt,
                request,
            } => {
                self.running.remove(&(key, seq, attempt));
                if run.holds_back() {
                    run.backlog.push_back((*request, None));
                } else {
                    self.request(run, *request, None, now);
                }
            }
            Input::Flush { reply, run: _ } => self.respond(run, reply, Ok(Answer::Done)),
            Input::Unblock { reply, run: _ } => {
                if let Some(blocked) = &mut run.record.blocked {
                    blocked.retry_at = Some(now);
                }
                self.respond(run, reply, Ok(Answer::Done));
            }
            Input::Replace {
                run: _,
                reason,
                identity,
                new,
                reply,
            } => {
                let end = Request::Terminate { reason, identity };
                let result = self.replace(run, *new, end, now);
                self.respond(run, reply, result);
            }
            // The answer to a batch may be lost: then nobody knows of the run that it began.
            Input::Touch { .. } if run.is_closed() => {
                let next = run.execution.state.new_run_id.map(|id| id.key());
                self.outputs.extend(next.map(|run| Output::Touch { run }));
                self.post(run);
            }
            Input::Carried { key, carried } => self.carried(run, key, carried, now),
            // What is owed is found when the run settles.
            Input::Touch { .. } => self.post(run),
            Input::Retry { .. } => self.wake_if_due(run, now),
            Input::Start { .. }
            | Input::Committed { .. }
            | Input::Loaded { .. }
            | Input::Finished { .. }
            | Input::TimersLoaded { .. }
            | Input::Shutdown
            | Input::TimersFailed { .. } => {}
        }
    }

    pub(crate) fn request(
        &mut self,
        run: &mut Run,
        request: Request,
        reply: Option<ReplyId>,
        now: Timestamp,
    ) {
        if let Request::AdmitUpdate { update_id, .. } = &request {
            let update_id = update_id.clone();
            return self.admit(run, &update_id, request, reply, now);
        }
        if let Request::ClaimActivity { seq, worker } = request {
            return self.claim_for(run, seq, worker, reply, now);
        }
        // A letter of this run was answered while its code was not to be told: see the backlog.
        if reply.is_none()
            && let Request::Answer(answer) = request
        {
            return self.answered(run, answer, now);
        }
        let wanted = Wanted::of(&request, run);
        let request = self.with_closing(run, request, now);
        let result = self.take(run, request, now);
        let Some(reply) = reply else { return };
        match (result, wanted) {
            // Losing a heartbeat in a crash only costs an earlier timeout: nobody waits for it.
            (Ok(()), Wanted::Beat(seq)) => {
                let task = seq.and_then(|seq| run.execution.tasks.get(&seq));
                let answer = Answer::Heartbeat(task.map(Beat::of).unwrap_or_default());
                self.outputs.push(Output::Reply(reply, Ok(answer)));
            }
            (Ok(()), Wanted::Count(count)) => self.respond(run, reply, Ok(Answer::Count(count))),
            (Ok(()), Wanted::Nothing) => self.respond(run, reply, Ok(Answer::Done)),
            (Err(rejection), _) => self.respond(run, reply, Err(rejection.into())),
        }
    }

    /// The worker gets its task at once; a crash would offer the same attempt again.
    fn claim_for(
        &mut self,
        run: &mut Run,
        seq: Seq,
        worker: String,
        reply: Option<ReplyId>,
        now: Timestamp,
    ) {
        let result = match self.claim(run, seq, worker, now) {
            Some(assignment) => Ok(Answer::Task(Box::new(assignment))),
            None => Err(steadfast_engine::Rejection::NotReady(seq).into()),
        };
        if let Some(reply) = reply {
            self.outputs.push(Output::Reply(reply, result));
        }
    }

    /// Answers once everything that the answer rests on is durable.
    pub(crate) fn respond(
        &mut self,
        run: &mut Run,
        reply: ReplyId,
        result: Result<Answer, CallError>,
    ) {
        if run.in_flight.is_some() || run.is_dirty() {
            run.wants_flush = true;
            run.held.push((reply, result));
        } else {
            self.outputs.push(Output::Reply(reply, result));
        }
    }

    /// A run whose time is over may be followed by another.
    fn with_closing(&mut self, run: &Run, request: Request, now: Timestamp) -> Request {
        if matches!(request, Request::RunDue { closing: None }) && may_follow_timeout(&run.started)
        {
            let closing = self.closing(run, Undelivered::default(), BTreeSet::new(), now);
            return Request::RunDue {
                closing: Some(closing),
            };
        }
        request
    }

    fn finished(&mut self, key: RunKey, generation: u64, finished: Finished, now: Timestamp) {
        let Some(mut run) = self.runs.remove(&key) else {
            return;
        };
        if run.generation != generation || !matches!(run.slot, Slot::Busy) {
            self.runs.insert(key, run);
            return;
        }
        let (live, result) = finished;
        run.slot = live.map_or(Slot::Absent, Slot::Idle);
        match result {
            Ok(mut yielded) => {
                let verdict = yielded.verdict.take();
                self.yielded(&mut run, yielded, now);
                if let Some(verdict) = verdict {
                    self.judged(&mut run, verdict, now);
                }
            }
            Err(error) => {
                block(&mut run, &error, now);
                if let Some(due) = run.record.blocked.as_ref().and_then(|b| b.retry_at) {
                    self.timers.arm(run_timer(key, TimerKind::Activation, due));
                }
            }
        }
        self.announce_accepted(&mut run);
        self.note_dirty(&mut run, now);
        self.settle(run, now);
    }

    fn yielded(&mut self, run: &mut Run, yielded: Yielded, now: Timestamp) {
        if run.record.blocked.take().is_some() {
            run.is_record_dirty = true;
        }
        if !yielded.log.is_empty() {
            self.outputs.push(Output::Log {
                run: run.key(),
                lines: yielded.log,
            });
        }
        if yielded.drifts.1 > 0 {
            tracing::warn!(run = run.key().0, count = yielded.drifts.1, first = ?yielded.drifts.0.first(),
                "a replay made calls whose inputs differ from the recorded ones");
        }
        let Yielded {
            commands,
            step,
            at,
            left,
            log: _,
            drifts: _,
            verdict: _,
            wards: _,
            ended_wards,
        } = yielded;
        let is_over = !matches!(step, Step::Blocked | Step::UnknownOperation(_));
        let undelivered = if is_over {
            Undelivered::of(left.iter().chain(run.undelivered()))
        } else {
            Undelivered::default()
        };
        let count = u32::try_from(undelivered.signals.len()).unwrap_or(u32::MAX);
        let closing = may_follow(&run.started, &step)
            .then(|| self.closing(run, undelivered, ended_wards, now));
        let request = Request::Yield {
            commands,
            step,
            at,
            closing,
        };
        // Rejected only if the run was closed meanwhile: then what its code wanted is void.
        if self.take(run, request, now).is_ok() && run.successor.is_none() && count > 0 {
            run.record.undelivered_signals = Some(count);
        }
    }

    /// Puts a run back after a change: submits what must be durable, drives its guest if it has
    /// something to do, and lets it go when it is over.
    pub(crate) fn settle(&mut self, mut run: Run, now: Timestamp) {
        let key = run.key();
        self.let_go(&mut run, now);
        if let Some(job) = run.next_job(now) {
            // Counted over all runs: a run that was dropped and read again must not take in what an
            // activation of its former self brings back.
            self.generations += 1;
            let generation = self.generations;
            run.generation = generation;
            self.outputs.push(Output::Activate {
                run: key,
                generation,
                job: Box::new(job),
            });
        }
        if run.wants_flush {
            let ticket = Ticket(self.next_ticket);
            let local = self.options.local_activities.clone();
            let is_local = |task: &steadfast_model::ActivityTask| {
                task.options.is_local || local.contains(&task.activity_type)
            };
            if let Some(batch) = run.submit(ticket, self.options.fence, &is_local) {
                self.next_ticket += 1;
                self.tickets.insert(ticket, key);
                self.outputs.push(Output::Commit { ticket, batch });
            }
        }
        self.keep(run);
    }

    /// Remembers that something waits to be written.
    pub(crate) fn note_dirty(&mut self, run: &mut Run, now: Timestamp) {
        if !run.is_lazy && !run.wants_flush && run.is_dirty() {
            run.is_lazy = true;
            self.lazy.push_back((now, run.key()));
        }
    }
}

const _: () = assert!(
    FIRE_MAX <= READ_MAX,
    "one read holds at least one round of due times"
);

type Replaced = Result<Answer, CallError>;

/// Loaded runs are taken in here; reading them is the driver's.
pub(crate) type LoadResult = Result<Option<Box<Loaded>>, store::Error>;
