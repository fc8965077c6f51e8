//! The simulated world: one queue of events in virtual time.

mod ending;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::{Arc, Mutex, PoisonError};

use steadfast_model::{ActivityType, ComponentRecord, Namespace, RunKey, Timestamp, WorkflowType};
use steadfast_ports::fake::{FaultPlan, MemStore, Rng, ScriptedGuests};
use steadfast_ports::store::{self, Batch, FencingToken, TimerKey, Write};
use steadfast_ports::{Guests, Store};
use steadfast_runtime::activation::{Job, perform};
use steadfast_runtime::message::{Input, Output, Ticket};
use steadfast_runtime::outbox::Letter;
use steadfast_runtime::shard::{Shard, ShardOptions};
use steadfast_runtime::task_queue::TaskQueues;
use steadfast_runtime::{load, load_timers};

use crate::check::Checker;
use crate::client::Client;
use crate::courier::Courier;
use crate::family::kids;
use crate::mint::Mint;
use crate::plan::Plan;
use crate::work::{Attempt, Workers};

/// The wall clock at the beginning of every run.
const EPOCH_MS: u64 = 1_700_000_000_000;

/// Virtual time after healing within which everything must end. A script sleeps at most 70 s at a
/// time and an activity is retried at most every 5 s, so an hour is generous.
const HEALED_MS: u64 = 3_600_000;

/// How often an idle host looks at its clock.
const IDLE_MS: u64 = 1000;

/// What happens at a point in time.
#[derive(Debug)]
pub enum Event {
    /// A shard takes in an input.
    Input(usize, Box<Input>),
    /// The store does the next piece of its work.
    StoreStep,
    /// A run is read.
    Load(usize, RunKey),
    /// Due times are read.
    LoadTimers(usize, Option<TimerKey>, Timestamp),
    /// A letter is carried, after so many tries.
    Carry(Box<Letter>, u32),
    /// A guest is driven.
    Activate(usize, RunKey, u64, Box<Job>),
    /// A shard looks at the clock.
    Tick(usize),
    /// An attempt of an activity ends.
    AttemptEnds(Attempt),
    /// An attempt shows that it is alive.
    AttemptBeats(Attempt),
    /// A worker looks for work.
    Poll,
    /// The client does the next thing.
    Client,
    /// The host dies.
    Crash,
    /// The host comes up again.
    Restart,
    /// The clock jumps.
    ClockJump,
    /// A run is dropped from memory.
    Evict,
    /// All faults end.
    Heal,
}

type Acks = Arc<Mutex<Vec<(u64, usize, Ticket, Result<(), store::Error>)>>>;

/// What a run of the simulator did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Events handled.
    pub events: u64,
    /// Crashes of the host.
    pub crashes: u64,
    /// Runs that ended.
    pub closed: u64,
    /// Attempts of activities.
    pub attempts: u64,
    /// A digest of everything that happened, in order: equal for equal seeds.
    pub trace: u64,
}

/// The world.
pub struct World {
    pub(crate) plan: Plan,
    pub(crate) rng: Rng,
    pub(crate) now_ms: u64,
    /// What the wall clock is off by.
    skew_ms: i64,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    events: BTreeMap<(u64, u64), (u64, Event)>,
    next_event: u64,
    /// Counts lives of the host: what belongs to an earlier one is void.
    pub(crate) life: u64,
    pub(crate) store: Arc<MemStore>,
    pub(crate) guests: Arc<ScriptedGuests>,
    shards: Vec<Shard>,
    pub(crate) mint: Arc<Mint>,
    pub(crate) is_up: bool,
    pub(crate) is_healed: bool,
    acks: Acks,
    pub(crate) task_queues: TaskQueues,
    pub(crate) workers: Workers,
    pub(crate) client: Client,
    pub(crate) courier: Courier,
    pub(crate) checker: Checker,
    report: Report,
    trace: bool,
    ticks: BTreeMap<usize, u64>,
}

impl World {
    /// A world that has not begun.
    #[must_use]
    pub fn new(plan: Plan, trace: bool) -> Self {
        let store = Arc::new(MemStore::manual());
        let guests = Arc::new(ScriptedGuests::new());
        let rng = Rng::new(plan.seed ^ 0x77);
        Self {
            rng,
            now_ms: 0,
            skew_ms: 0,
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            next_event: 0,
            life: 0,
            store,
            guests,
            shards: Vec::new(),
            mint: Arc::new(Mint::new(RunKey(0), 0)),
            is_up: false,
            is_healed: false,
            acks: Acks::default(),
            task_queues: TaskQueues::default(),
            workers: Workers::default(),
            client: Client::default(),
            courier: Courier::default(),
            checker: Checker::new(&plan),
            report: Report::default(),
            trace,
            ticks: BTreeMap::new(),
            plan,
        }
    }

    /// Runs until everything has ended, then checks.
    pub fn run(&mut self) {
        self.prepare();
        while let Some(Reverse(key)) = self.queue.pop() {
            let Some((life, event)) = self.events.remove(&key) else {
                continue;
            };
            self.now_ms = key.0;
            assert!(
                self.now_ms <= self.plan.faults_ms + HEALED_MS,
                "seed {}: not everything ended within {HEALED_MS} ms of healing: {}",
                self.plan.seed,
                self.open_runs()
            );
            let is_void = life != self.life
                && !matches!(
                    event,
                    Event::Restart
                        | Event::Heal
                        | Event::Client
                        | Event::Poll
                        | Event::ClockJump
                        | Event::Evict
                        | Event::Crash
                );
            if is_void {
                continue;
            }
            self.report.events += 1;
            self.note(&format!("{event:?}"));
            self.step(event);
            if self.is_healed && self.client.is_done() && self.all_closed() {
                break;
            }
        }
        self.finish();
    }

    fn prepare(&mut self) {
        self.restart();
        self.client = Client::prepare(&self.plan, &self.guests);
        self.store_component();
        self.store.set_faults(self.plan.store.clone());
        self.at(0, Event::Client);
        self.at(0, Event::Poll);
        self.at(self.plan.faults_ms, Event::Heal);
        let plan = self.plan.clone();
        for (every, event) in [
            (plan.crash_every_ms, Event::Crash),
            (plan.clock_jump_every_ms, Event::ClockJump),
            (plan.evict_every_ms, Event::Evict),
        ] {
            if every > 0 {
                self.after(every, event);
            }
        }
    }

    /// Uploads the one component that all workflows are of, before anything goes wrong.
    fn store_component(&self) {
        let bytes = b"component".to_vec();
        let admitted = self
            .guests
            .admit(&bytes)
            .expect("any bytes are a component");
        let record = Box::new(ComponentRecord {
            digest: admitted.digest,
            size_bytes: bytes.len() as u64,
            uploaded_at: self.wall(),
            description: admitted.description,
        });
        let fence = FencingToken(1);
        let digest = admitted.digest;
        let routes = kids().into_iter().map(|(name, _)| Write::PutRoute {
            namespace: Namespace::new("default").expect("a name"),
            workflow_type: WorkflowType::new(name).expect("a name"),
            component: digest,
        });
        let component = Write::PutComponent { record, bytes };
        let batch = Batch {
            fence,
            writes: std::iter::once(component).chain(routes).collect(),
        };
        self.store.set_faults(FaultPlan::default());
        self.store
            .submit(batch, Box::new(|result| result.expect("no faults yet")));
        self.store.flush(usize::MAX);
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Input(shard, input) => self.input(shard, *input),
            Event::StoreStep => self.store_step(),
            Event::Load(shard, run) => {
                let result = load(&*self.store, run);
                self.soon(Event::Input(shard, Box::new(Input::Loaded { run, result })));
            }
            Event::LoadTimers(shard, after, until) => {
                let input = load_timers(&*self.store, after, until);
                self.soon(Event::Input(shard, Box::new(input)));
            }
            Event::Activate(shard, run, generation, job) => {
                let store: Arc<dyn Store> = self.store.clone();
                let finished = Box::new(perform(&*self.guests, &store, run, *job));
                let input = Input::Finished {
                    run,
                    generation,
                    finished,
                };
                self.soon(Event::Input(shard, Box::new(input)));
            }
            Event::Carry(letter, tries) => self.carry(letter, tries),
            Event::Tick(shard) => {
                self.ticks.remove(&shard);
                let now = self.wall();
                let outputs = self.shards[shard].tick(now);
                self.outputs(shard, outputs);
            }
            Event::AttemptEnds(attempt) => self.attempt_ends(&attempt),
            Event::AttemptBeats(attempt) => self.attempt_beats(&attempt),
            Event::Poll => self.poll(),
            Event::Client => self.client_step(),
            Event::Crash => self.crash(),
            Event::Restart => self.restart(),
            Event::ClockJump => self.clock_jump(),
            Event::Evict => self.evict(),
            Event::Heal => self.heal(),
        }
    }

    /// Gives an input to a shard and does what it asks for.
    pub(crate) fn input(&mut self, shard: usize, input: Input) {
        let now = self.wall();
        let outputs = self.shards[shard].handle(input, now);
        self.outputs(shard, outputs);
        if self.shards[shard].fatal().is_some() && self.is_up {
            self.crash_now();
        }
    }

    /// Gives an input to the shard of a run, a moment later.
    pub(crate) fn send(&mut self, run: RunKey, input: Input) {
        let shard = usize::try_from(run.0 % self.plan.shards).expect("few shards");
        self.soon(Event::Input(shard, Box::new(input)));
    }

    fn outputs(&mut self, shard: usize, outputs: Vec<Output>) {
        for output in outputs {
            self.note(&format!("  {shard} -> {output:?}"));
            self.output(shard, output);
        }
        self.schedule_tick(shard);
    }

    fn output(&mut self, shard: usize, output: Output) {
        match output {
            Output::Commit { ticket, batch } => {
                let (acks, life) = (self.acks.clone(), self.life);
                let done = move |result| {
                    let mut acks = acks.lock().unwrap_or_else(PoisonError::into_inner);
                    acks.push((life, shard, ticket, result));
                };
                self.store.submit(batch, Box::new(done));
                self.soon(Event::StoreStep);
            }
            Output::Touch { run } => self.send(run, Input::Touch { run }),
            Output::Load { run } => self.soon(Event::Load(shard, run)),
            Output::LoadTimers { after, until } => {
                self.soon(Event::LoadTimers(shard, after, until));
            }
            Output::Activate {
                run,
                generation,
                job,
            } => {
                self.soon(Event::Activate(shard, run, generation, job));
            }
            Output::RunActivity(assignment) => self.begin_attempt(&assignment, true),
            Output::StopActivity { run, seq, attempt } => self.stop_attempt(run, seq, attempt),
            Output::Offer(key) => self.task_queues.offer(key),
            Output::Withdraw(key) => self.task_queues.withdraw(&key),
            Output::Send(letter) => self.soon(Event::Carry(letter, 0)),
            Output::Reply(id, result) if self.courier.is_waiting(id) => self.heard(id, &result),
            Output::Reply(id, result) => self.reply(id, result),
            Output::Advanced {
                run,
                last: _,
                close,
            } => {
                if let Some(close) = close {
                    self.checker.announced(run, &close);
                }
            }
            Output::UpdateAdvanced {
                run,
                update_id,
                progress,
            } => self.update_advanced(run, &update_id, progress),
            Output::UpdatesUnknown { run } => self.updates_unknown(run),
            Output::Log { .. } => {}
        }
    }

    fn store_step(&mut self) {
        self.store.step();
        if self.store.queued() > 0 {
            self.soon(Event::StoreStep);
        }
        let acks: Vec<_> = {
            let mut acks = self.acks.lock().unwrap_or_else(PoisonError::into_inner);
            acks.drain(..).collect()
        };
        for (life, shard, ticket, result) in acks {
            if life == self.life {
                let input = Box::new(Input::Committed { ticket, result });
                self.at(self.now_ms, Event::Input(shard, input));
            }
        }
    }

    fn crash(&mut self) {
        if self.is_healed {
            return;
        }
        self.after_random(self.plan.crash_every_ms, Event::Crash);
        if self.is_up {
            self.crash_now();
        }
    }

    /// The host dies here and now: what was not durable is gone.
    fn crash_now(&mut self) {
        self.report.crashes += 1;
        self.is_up = false;
        self.life += 1;
        self.shards.clear();
        self.ticks.clear();
        self.store = Arc::new(self.store.crash());
        self.task_queues = TaskQueues::default();
        self.workers.host_died();
        self.client.host_died();
        self.courier = Courier::default();
        self.checker.look(&self.store);
        let down = 1 + self.rng.below(2000);
        self.after(down, Event::Restart);
    }

    fn restart(&mut self) {
        self.is_up = true;
        let fence = self.store.acquire().expect("a fresh store is not poisoned");
        let local: BTreeSet<ActivityType> = if self.plan.local_activities {
            BTreeSet::from([ActivityType::new("act").expect("a name")])
        } else {
            BTreeSet::new()
        };
        let local = Arc::new(local);
        self.store.set_faults(FaultPlan::default());
        let last = self.store.last_run().expect("readable");
        self.mint = Arc::new(Mint::new(last, self.plan.seed ^ self.life));
        if !self.is_healed {
            self.store.set_faults(FaultPlan {
                seed: self.plan.store.seed ^ self.life,
                ..self.plan.store.clone()
            });
        }
        self.shards = (0..self.plan.shards)
            .map(|index| {
                Shard::new(ShardOptions {
                    index,
                    count: self.plan.shards,
                    fence,
                    process: fence.0.to_string(),
                    local_activities: local.clone(),
                    cache_bytes: self.plan.cache_bytes,
                    minter: self.mint.clone(),
                })
            })
            .collect();
        self.recover();
        for shard in 0..self.shards.len() {
            self.soon(Event::Tick(shard));
        }
    }

    /// What the host does at its start: wakes the runs that are owed something and offers tasks.
    fn recover(&mut self) {
        let faults = std::mem::take(&mut self.plan.store.read_permille);
        self.store.set_faults(FaultPlan::default());
        let ready = self.store.ready(None, 10_000).expect("readable");
        let tasks = self.store.tasks(None, 10_000).expect("readable");
        let letters = self.store.letters(None, 10_000).expect("readable");
        self.plan.store.read_permille = faults;
        if !self.is_healed {
            self.store.set_faults(self.plan.store.clone());
        }
        for run in ready {
            self.send(run, Input::Touch { run });
        }
        for letter in letters {
            self.send(letter.run, Input::Touch { run: letter.run });
        }
        for key in tasks {
            if key.queue.as_str() == steadfast_runtime::rows::HOST_QUEUE {
                self.send(key.run, Input::Touch { run: key.run });
            } else {
                self.task_queues.offer(key);
            }
        }
    }

    fn clock_jump(&mut self) {
        if self.is_healed {
            return;
        }
        let by = i64::try_from(self.rng.below(20_000)).expect("small") - 10_000;
        self.skew_ms += by;
        self.after_random(self.plan.clock_jump_every_ms, Event::ClockJump);
    }

    fn evict(&mut self) {
        if self.is_healed {
            return;
        }
        self.after_random(self.plan.evict_every_ms, Event::Evict);
        if !self.is_up {
            return;
        }
        let shard = usize::try_from(self.rng.below(self.plan.shards)).expect("few");
        let runs: Vec<RunKey> = self.shards[shard].resident_runs().collect();
        if let Some(run) =
            runs.get(usize::try_from(self.rng.below(runs.len() as u64)).expect("few"))
        {
            let now = self.wall();
            self.shards[shard].evict_one(*run, now);
            let outputs = self.shards[shard].tick(now);
            self.outputs(shard, outputs);
        }
    }

    fn heal(&mut self) {
        self.is_healed = true;
        self.plan.attempt_dies_permille = 0;
        self.store.set_faults(FaultPlan::default());
        if self.store.is_poisoned() && self.is_up {
            self.crash_now();
        }
    }

    fn schedule_tick(&mut self, shard: usize) {
        let wall = self.wall();
        let wait = self.shards[shard]
            .next_wake()
            .map_or(IDLE_MS, |at| at.since(wall).0.min(IDLE_MS));
        let at = self.now_ms + wait.max(u64::from(wait > 0));
        if self.ticks.get(&shard).is_none_or(|known| *known > at) {
            self.ticks.insert(shard, at);
            self.at(at, Event::Tick(shard));
        }
    }

    /// The wall clock.
    pub(crate) fn wall(&self) -> Timestamp {
        Timestamp((EPOCH_MS + self.now_ms).saturating_add_signed(self.skew_ms))
    }

    /// Schedules an event.
    pub(crate) fn at(&mut self, at_ms: u64, event: Event) {
        let key = (at_ms, self.next_event);
        self.next_event += 1;
        self.events.insert(key, (self.life, event));
        self.queue.push(Reverse(key));
    }

    /// Schedules an event in so many milliseconds.
    pub(crate) fn after(&mut self, wait_ms: u64, event: Event) {
        self.at(self.now_ms + wait_ms, event);
    }

    fn after_random(&mut self, about_ms: u64, event: Event) {
        let wait = 1 + self.rng.below(about_ms * 2);
        self.after(wait, event);
    }

    /// Schedules an event after a random latency.
    pub(crate) fn soon(&mut self, event: Event) {
        let latency = self.rng.below(self.plan.latency_ms);
        self.after(latency, event);
    }

    /// Adds to the trace.
    pub(crate) fn note(&mut self, text: &str) {
        if self.trace {
            println!("{:>8} {text}", self.now_ms);
        }
        let mut hash = self.report.trace ^ self.now_ms;
        for byte in text.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.report.trace = hash;
    }

    fn finish(&mut self) {
        let (store, guests) = (self.store.clone(), self.guests.clone());
        self.checker.look(&store);
        self.checker
            .finish(&store, &*guests, &self.client, &self.workers);
        self.report.closed = self.client.runs().count() as u64;
        self.report.attempts = self.workers.attempts();
    }

    /// What happened.
    #[must_use]
    pub fn report(&self) -> Report {
        self.report.clone()
    }
}
