//! A host in small: drives a guest against a run, with requests that arrive while it runs.

use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;
use steadfast_engine::child::{Answer, ChildOutcome};
use steadfast_engine::decide::Issued;
use steadfast_engine::state::{ChildCancel, Pending};
use steadfast_engine::{Mismatch, Replay, Request};
use steadfast_model::command::Step;
use steadfast_model::{Event, Seq, TaskState, Timestamp};

use crate::common::{self, World};
use crate::guest::{End, Guest, Op, Script};

/// What happens next, as far as it can.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Happening {
    /// The guest takes what is owed to it, and runs; what it asked for is on its way.
    Drive,
    /// What it asked for is decided.
    Yield,
    Signal,
    Cancel,
    /// The n-th task moves on: it is claimed, or its worker completes or fails.
    Work(usize, bool),
    /// The n-th timer fires.
    Fire(usize),
    /// Another execution answers the n-th thing that it was asked for, or ends.
    Outside(usize, bool),
}

/// A run with its live guest.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) world: World,
    pub(crate) guest: Guest,
    pub(crate) replay: Replay,
    owed: VecDeque<Event>,
    in_flight: Option<(Vec<Issued>, Step, Timestamp)>,
    clock: u64,
    signals: u32,
}

/// The run as it was stored at some moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) world: World,
    clock: u64,
    /// The guest, if it had been told everything and had nothing on its way.
    pub(crate) settled: Option<Guest>,
}

/// Replays a history into a new guest, and on to where it waits or ends.
pub(crate) fn replay(
    history: &[Event],
    script: &Script,
) -> Result<(Guest, Replay, Step), Mismatch> {
    let seed = common::started().random_seed;
    let mut replay = Replay::new(seed, history[0].time);
    let mut deliveries = replay.load(history[1..].to_vec());
    let mut guest = Guest::new(script);
    let step = drive(&mut guest, &mut replay, &mut deliveries)?;
    Ok((guest, replay, step))
}

/// Tells the guest of one event, at that event's time.
fn deliver(guest: &mut Guest, replay: &mut Replay, event: &Event) -> Result<(), Mismatch> {
    replay.deliver(event)?;
    assert_eq!(
        (replay.now(), replay.delivered()),
        (event.time, event.number)
    );
    guest.see(event);
    Ok(())
}

/// Delivers one event at a time until the guest ends or there is none.
fn drive(
    guest: &mut Guest,
    replay: &mut Replay,
    deliveries: &mut VecDeque<Event>,
) -> Result<Step, Mismatch> {
    loop {
        let step = guest.run(replay)?;
        replay.end(&step)?;
        if step != Step::Blocked {
            return Ok(step);
        }
        let Some(event) = deliveries.pop_front() else {
            break;
        };
        deliver(guest, replay, &event)?;
    }
    replay.finish()?;
    Ok(Step::Blocked)
}

impl Live {
    /// A new run whose guest has made its first calls.
    pub(crate) fn begin(script: &Script) -> Self {
        Self::resume(World::begin(0), 0, script).expect("nothing is recorded yet")
    }

    /// Recovers a run from what is stored.
    pub(crate) fn resume(world: World, clock: u64, script: &Script) -> Result<Self, Mismatch> {
        let (guest, mut replay, step) = replay(&world.history, script)?;
        let in_flight = Some((replay.take_issued(), step, replay.now()));
        Ok(Self {
            world,
            guest,
            replay,
            owed: VecDeque::new(),
            in_flight,
            clock,
            signals: 0,
        })
    }

    pub(crate) fn recover(snapshot: &Snapshot, script: &Script) -> Result<Self, Mismatch> {
        let mut live = Self::resume(snapshot.world.clone(), snapshot.clock, script)?;
        live.signals = 1000;
        Ok(live)
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.world.execution.state.status.is_closed()
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let is_settled = self.owed.is_empty() && self.in_flight.is_none();
        let settled = is_settled.then(|| self.guest.clone());
        Snapshot {
            world: self.world.clone(),
            clock: self.clock,
            settled,
        }
    }

    /// Lets something happen; false if it could not.
    pub(crate) fn happen(&mut self, happening: Happening) -> bool {
        if !self.is_open() {
            return false;
        }
        self.clock += 1;
        match happening {
            Happening::Drive => self.drive(),
            Happening::Yield => match self.in_flight.take() {
                Some((commands, step, at)) => self.take(&Request::Yield {
                    commands,
                    step,
                    at,
                    closing: None,
                }),
                None => false,
            },
            Happening::Signal => {
                self.signals += 1;
                self.take(&common::signal(&format!("s{}", self.signals)))
            }
            Happening::Cancel => self.take(&common::cancel("c")),
            Happening::Work(n, is_good) => self.work(n, is_good),
            Happening::Fire(n) => self.fire(n),
            Happening::Outside(n, is_good) => self.outside(n, is_good),
        }
    }

    fn drive(&mut self) -> bool {
        if self.in_flight.is_some() || self.owed.is_empty() {
            return false;
        }
        // The guest blocked before, so the next event comes first.
        let event = self.owed.pop_front().expect("checked above");
        deliver(&mut self.guest, &mut self.replay, &event)
            .expect("a live run cannot differ from itself");
        let step = drive(&mut self.guest, &mut self.replay, &mut self.owed)
            .expect("a live run cannot differ from itself");
        self.in_flight = Some((self.replay.take_issued(), step, self.replay.now()));
        true
    }

    fn take(&mut self, request: &Request) -> bool {
        match self.world.step(self.clock, request) {
            Ok(decision) => {
                self.owed.extend(
                    decision
                        .events
                        .into_iter()
                        .filter(|e| e.kind.is_delivered()),
                );
                true
            }
            Err(_) => false,
        }
    }

    fn work(&mut self, n: usize, is_good: bool) -> bool {
        let tasks = &self.world.execution.tasks;
        let Some(task) = tasks.values().nth(n % tasks.len().max(1)) else {
            return false;
        };
        let (seq, attempt) = (task.seq.0, task.attempt);
        let request = match &task.state {
            TaskState::Ready { .. } => common::claim(seq),
            TaskState::Backoff { until } => {
                self.clock = self.clock.max(until.0);
                common::activity_due(seq)
            }
            TaskState::Started { .. } if is_good => common::complete(seq, attempt),
            TaskState::Started { .. } if task.cancel_requested => {
                common::fail(seq, attempt, steadfast_model::Failure::canceled("stopped"))
            }
            TaskState::Started { .. } => common::fail(seq, attempt, common::boom()),
        };
        self.take(&request)
    }

    fn fire(&mut self, n: usize) -> bool {
        let timers: Vec<(Seq, Timestamp)> = self.timers();
        let Some((seq, at)) = timers.get(n % timers.len().max(1)).copied() else {
            return false;
        };
        self.clock = self.clock.max(at.0);
        self.take(&Request::TimerDue { seq })
    }

    fn outside(&mut self, n: usize, is_good: bool) -> bool {
        let state = &self.world.execution.state;
        let result = || {
            if is_good {
                Ok(())
            } else {
                Err(common::outside::taken())
            }
        };
        let mut answers = Vec::new();
        for (seq, child) in &state.children {
            let seq = *seq;
            answers.push(match child.run_id {
                None => Answer::ChildStarted {
                    seq,
                    result: result().map(|()| common::outside::CHILD_RUN),
                },
                Some(_) if child.cancel == ChildCancel::Owed => Answer::CancelRequested {
                    seq,
                    of_child: true,
                    result: result(),
                },
                Some(_) if !child.is_awaited => continue,
                Some(run_id) => Answer::ChildClosed {
                    seq,
                    run_id,
                    outcome: if is_good {
                        ChildOutcome::Completed(steadfast_model::Payload::json("7"))
                    } else {
                        ChildOutcome::Failed(common::boom())
                    },
                },
            });
        }
        for (seq, pending) in &state.pending {
            let (seq, result) = (*seq, result());
            match pending {
                Pending::Signal => answers.push(Answer::Signaled { seq, result }),
                Pending::Cancel => answers.push(Answer::CancelRequested {
                    seq,
                    of_child: false,
                    result,
                }),
                Pending::Child | Pending::Activity { .. } | Pending::Timer { .. } => {}
            }
        }
        let count = answers.len().max(1);
        match answers.into_iter().nth(n % count) {
            Some(answer) => self.take(&Request::Answer(answer)),
            None => false,
        }
    }

    fn timers(&self) -> Vec<(Seq, Timestamp)> {
        let pending = self.world.execution.state.pending.iter();
        pending
            .filter_map(|(seq, pending)| match pending {
                Pending::Timer { fire_at } => Some((*seq, *fire_at)),
                Pending::Activity { .. } | Pending::Child | Pending::Signal | Pending::Cancel => {
                    None
                }
            })
            .collect()
    }

    /// Does all that is owed until the run closes.
    pub(crate) fn drain(&mut self) {
        for _ in 0..1000 {
            if !self.is_open() {
                return;
            }
            let is_moved = self.happen(Happening::Yield)
                || self.happen(Happening::Drive)
                || self.happen(Happening::Work(0, true))
                || self.happen(Happening::Fire(0))
                || self.happen(Happening::Outside(0, true));
            if !is_moved {
                self.happen(Happening::Signal);
            }
        }
        panic!("the run does not close: {:?}", self.guest);
    }
}

/// Runs a script to its end. `snapshots` has the run after everything that happened on the way.
pub(crate) fn record(script: &Script, happenings: &[Happening]) -> (Vec<Event>, Vec<Snapshot>) {
    let mut live = Live::begin(script);
    let mut snapshots = vec![live.snapshot()];
    for happening in happenings {
        if live.happen(*happening) {
            snapshots.push(live.snapshot());
        }
    }
    live.drain();
    (live.world.history, snapshots)
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..6_u8).prop_map(Op::Schedule),
        4 => (0..50_u64).prop_map(Op::Timer),
        3 => (0..8_u8).prop_map(Op::Child),
        1 => (0..4_u8).prop_map(Op::SignalOut),
        1 => (0..4_u8).prop_map(Op::CancelOut),
        2 => (0..6_usize).prop_map(Op::Cancel),
        1 => (0..6_usize).prop_map(Op::CancelWrong),
        1 => Just(Op::CancelRest),
        2 => Just(Op::AwaitSignal),
        2 => (0..6_usize).prop_map(Op::Await),
        3 => Just(Op::AwaitAny),
        1 => Just(Op::SkipAfterSignal),
        1 => (0..20_u8).prop_map(Op::Draw),
        2 => (0..3_u8).prop_map(Op::Patched),
        1 => (0..3_u8).prop_map(Op::SideEffect),
    ]
}

pub(crate) fn script() -> impl Strategy<Value = Script> {
    let end = prop_oneof![3 => Just(End::Complete), 1 => Just(End::Fail), 1 => Just(End::Cancel)];
    (vec(op(), 1..16), end).prop_map(|(ops, end)| Script {
        end,
        ..Script::new(ops)
    })
}

pub(crate) fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let one = prop_oneof![
        6 => Just(Happening::Drive),
        6 => Just(Happening::Yield),
        3 => Just(Happening::Signal),
        1 => Just(Happening::Cancel),
        6 => (0..6_usize, prop::bool::weighted(0.7)).prop_map(|(n, good)| Happening::Work(n, good)),
        4 => (0..6_usize).prop_map(Happening::Fire),
        6 => (0..6_usize, prop::bool::weighted(0.7))
            .prop_map(|(n, good)| Happening::Outside(n, good)),
    ];
    vec(one, 0..60)
}
