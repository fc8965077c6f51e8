//! Random requests: plausible ones, aimed at what the run has pending, and arbitrary ones.

use proptest::collection::vec;
use proptest::prelude::*;
use steadfast_engine::decide::Issued;
use steadfast_engine::operate::{Operation, Report};
use steadfast_engine::options::Patch;
use steadfast_engine::{Request, activity};
use steadfast_model::command::{Command, Step};
use steadfast_model::{
    ActivityOptions, Cancellation, Failure, FailureKind, Frame, MarkerKind, Millis, Payload,
    RetryPolicy, Seq, Timestamp, UpdateId,
};

use crate::common::{self, World};

/// One step of a random script. What it means depends on the run that it meets.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    clock: Clock,
    kind: Kind,
    aim: Aim,
}

/// How the clock moves before the request.
#[derive(Debug, Clone)]
enum Clock {
    Forward(u64),
    Back(u64),
    /// To the due time of what is aimed at, or that many milliseconds before it.
    Due(u64),
}

/// What the request is about.
#[derive(Debug, Clone)]
enum Aim {
    /// The n-th pending operation of the right kind, and its current attempt.
    Pending(usize),
    /// Any numbers.
    Any(u32, u32),
}

#[derive(Debug, Clone)]
enum Kind {
    Yield(Vec<(Make, Aim)>, End, u64),
    Signal(u8),
    Admit(u8),
    /// The first admitted update is let in, or refused.
    Judge(bool),
    Cancel(u8),
    Terminate,
    TimerDue,
    ActivityDue,
    Claim,
    Release,
    Heartbeat(Option<u8>),
    Complete,
    Fail(Failure),
    Defer,
    Report(Report),
    Operate(Operation),
}

#[derive(Debug, Clone)]
enum Make {
    Schedule(Box<ActivityOptions>),
    Timer(u64),
    CancelActivity,
    CancelTimer,
    Marker(MarkerKind, Option<u8>),
    CompleteUpdate,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Blocked,
    Completed,
    Failed,
    Canceled,
    Unknown,
}

impl Ask {
    /// The request, and the time at which it reaches the run.
    pub(crate) fn request(&self, world: &World, now: u64) -> (u64, Request) {
        let now = match self.clock {
            Clock::Forward(by) => now.saturating_add(by),
            Clock::Back(by) => now.saturating_sub(by),
            Clock::Due(early) => self.due(world).unwrap_or(now).saturating_sub(early),
        };
        (now, self.build(world, now))
    }

    fn due(&self, world: &World) -> Option<u64> {
        let task = || {
            world
                .execution
                .tasks
                .get(&Seq(self.task(world).0))
                .and_then(activity::due)
        };
        match self.kind {
            Kind::TimerDue => {
                let aimed = self.timer(world);
                timers(world)
                    .into_iter()
                    .find(|(seq, _)| *seq == aimed)
                    .map(|(_, at)| at.0)
            }
            _ => task().map(|at| at.0),
        }
    }

    fn task(&self, world: &World) -> (u32, u32) {
        aim_at_task(&self.aim, world)
    }

    fn timer(&self, world: &World) -> Seq {
        aim_at_timer(&self.aim, world)
    }

    fn build(&self, world: &World, now: u64) -> Request {
        let (seq, attempt) = self.task(world);
        match &self.kind {
            Kind::Yield(makes, end, late) => yielded(world, makes, *end, now.saturating_sub(*late)),
            Kind::Signal(id) => common::signal(&format!("signal-{id}")),
            Kind::Admit(id) => common::admit(&format!("update-{id}")),
            Kind::Judge(is_good) => judged(&self.aim, world, *is_good),
            Kind::Cancel(id) => common::cancel(&format!("cancel-{id}")),
            Kind::Terminate => common::terminate(),
            Kind::TimerDue => Request::TimerDue {
                seq: self.timer(world),
            },
            Kind::ActivityDue => common::activity_due(seq),
            Kind::Claim => common::claim(seq),
            Kind::Release => common::release(seq),
            Kind::Heartbeat(details) => {
                common::beat(seq, attempt, details.map(|d| d.to_string()).as_deref())
            }
            Kind::Complete => common::complete(seq, attempt),
            Kind::Fail(failure) => common::fail(seq, attempt, failure.clone()),
            Kind::Defer => Request::DeferActivity {
                seq: Seq(seq),
                attempt,
            },
            Kind::Report(report) => common::report(&seq.to_string(), report.clone()),
            Kind::Operate(operation) => common::operate(&seq.to_string(), operation.clone()),
        }
    }
}

fn timers(world: &World) -> Vec<(Seq, Timestamp)> {
    use steadfast_engine::state::Pending;
    let pending = world.execution.state.pending.iter();
    pending
        .filter_map(|(seq, pending)| match pending {
            Pending::Timer { fire_at } => Some((*seq, *fire_at)),
            Pending::Activity { .. } | Pending::Child | Pending::Signal | Pending::Cancel => None,
        })
        .collect()
}

fn aim_at_task(aim: &Aim, world: &World) -> (u32, u32) {
    let tasks = &world.execution.tasks;
    match aim {
        Aim::Any(seq, attempt) => (*seq, *attempt),
        Aim::Pending(n) => tasks
            .values()
            .nth(n % tasks.len().max(1))
            .map_or((1, 1), |t| (t.seq.0, t.attempt)),
    }
}

fn aim_at_timer(aim: &Aim, world: &World) -> Seq {
    let timers = timers(world);
    match aim {
        Aim::Any(seq, _) => Seq(*seq),
        Aim::Pending(n) => timers
            .get(n % timers.len().max(1))
            .map_or(Seq(1), |(seq, _)| *seq),
    }
}

fn judged(aim: &Aim, world: &World, is_good: bool) -> Request {
    let first = world.execution.updates.first_key_value();
    let number = match aim {
        Aim::Any(number, _) => *number,
        Aim::Pending(_) => first.map_or(1, |(number, _)| *number),
    };
    if is_good {
        Request::AcceptUpdate { number }
    } else {
        Request::RefuseUpdate { number }
    }
}

fn aim_at_update(aim: &Aim, world: &World) -> UpdateId {
    let updates = &world.execution.state.updates;
    let aimed = match aim {
        Aim::Any(..) => None,
        Aim::Pending(n) => updates.keys().nth(n % updates.len().max(1)),
    };
    aimed.map_or_else(|| common::update_id("nobody"), Clone::clone)
}

fn yielded(world: &World, makes: &[(Make, Aim)], end: End, at: u64) -> Request {
    let at = Timestamp(at);
    let commands = makes
        .iter()
        .map(|(make, aim)| match make {
            Make::Schedule(options) => common::schedule("work", (**options).clone()),
            Make::Timer(ms) => common::timer(*ms),
            Make::CancelActivity => Command::CancelActivity {
                seq: Seq(aim_at_task(aim, world).0),
            },
            Make::CompleteUpdate => Command::CompleteUpdate {
                update_id: aim_at_update(aim, world),
                outcome: Ok(Payload::json("7")).into(),
            },
            Make::CancelTimer => Command::CancelTimer {
                seq: aim_at_timer(aim, world),
            },
            Make::Marker(kind, value) => {
                common::record(*kind, "m", value.map(|v| v.to_string()).as_deref())
            }
        })
        .map(|command| Issued { at, command })
        .collect();
    let step = match end {
        End::Blocked => Step::Blocked,
        End::Completed => Step::Completed(Payload::json("5")),
        End::Failed => Step::Failed(common::boom()),
        End::Canceled => Step::Canceled(Failure::canceled("as asked")),
        End::Unknown => Step::UnknownOperation(Seq(1)),
    };
    Request::Yield {
        commands,
        step,
        at,
        closing: None,
    }
}

/// A duration: short, odd, or extreme.
fn span() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 1..60_u64, 2 => 1..100_000_u64, 1 => Just(3_153_600_000_000)]
}

/// Limits as normalisation leaves them: never zero.
pub(crate) fn options() -> impl Strategy<Value = ActivityOptions> {
    let limit = || proptest::option::of(span().prop_map(Millis));
    let codes = prop_oneof![
        Just(vec![]),
        Just(vec!["boom".to_owned()]),
        Just(vec![
            "timeout:heartbeat".to_owned(),
            "timeout:start-to-close".to_owned()
        ]),
    ];
    let retry = (
        span(),
        1000..4000_u32,
        prop_oneof![Just(0), span()],
        0..4_u32,
        codes,
    )
        .prop_map(
            |(initial, backoff_permille, maximum, maximum_attempts, non_retryable_codes)| {
                RetryPolicy {
                    initial_interval: Millis(initial),
                    backoff_permille,
                    maximum_interval: Millis(maximum),
                    maximum_attempts,
                    non_retryable_codes,
                }
            },
        );
    let cancellation = prop::sample::select(Cancellation::ALL.to_vec());
    let more = (cancellation, prop::bool::weighted(0.2));
    (limit(), limit(), span(), limit(), retry, more).prop_map(
        |(all, queue, one, beat, retry, (cancellation, parks))| ActivityOptions {
            schedule_to_close: all,
            schedule_to_start: queue,
            start_to_close: Millis(one),
            heartbeat: beat,
            retry,
            cancellation,
            parks,
            ..common::options()
        },
    )
}

pub(crate) fn failure() -> impl Strategy<Value = Failure> {
    let kind = prop_oneof![
        4 => Just(FailureKind::Application),
        2 => Just(FailureKind::Canceled),
        1 => Just(FailureKind::Timeout),
        1 => Just(FailureKind::Terminated),
        1 => Just(FailureKind::Activity),
    ];
    let delay = prop_oneof![4 => Just(0), 1 => span(), 1 => Just(u64::MAX)];
    let frame = (
        kind,
        "boom|bang|heartbeat",
        prop::bool::weighted(0.1),
        delay,
        0..9000_usize,
    )
        .prop_map(|(kind, code, non_retryable, delay, length)| Frame {
            non_retryable,
            next_retry_delay: Millis(delay),
            details: (length % 3 == 0).then(|| Payload::json("6")),
            ..Frame::new(kind, &code, "x".repeat(length))
        });
    vec(frame, 0..4).prop_map(Failure::from_frames)
}

fn marker_kind() -> impl Strategy<Value = MarkerKind> {
    prop_oneof![
        Just(MarkerKind::Patch),
        Just(MarkerKind::DeprecatedPatch),
        Just(MarkerKind::SideEffect),
    ]
}

/// Without delays and changes of the policy, which the laws could not look past.
fn operation() -> impl Strategy<Value = Operation> {
    let flags = any::<(bool, bool, bool)>();
    prop_oneof![
        2 => Just(Operation::Pause { reason: String::new() }),
        2 => flags.prop_map(|(reset_attempts, reset_heartbeat, _)| Operation::Unpause {
            reset_attempts,
            reset_heartbeat,
            jitter: Millis::ZERO,
        }),
        2 => flags.prop_map(|(reset_heartbeat, keep_paused, restore_options)| Operation::Reset {
            reset_heartbeat,
            keep_paused,
            restore_options,
            jitter: Millis::ZERO,
        }),
        1 => span().prop_map(|ms| {
            let start_to_close = Some(Millis(ms));
            let patch = Box::new(Patch { start_to_close, ..Patch::default() });
            Operation::Update { restore_options: false, patch }
        }),
        1 => Just(Operation::Drop { reason: String::new() }),
    ]
}

fn report() -> impl Strategy<Value = Report> {
    prop_oneof![
        Just(Report::Complete(Payload::json("3"))),
        failure().prop_map(Report::Fail),
        Just(Report::Cancel(None)),
        Just(Report::Heartbeat(Some(Payload::json("4")))),
    ]
}

fn make() -> impl Strategy<Value = Make> {
    prop_oneof![
        3 => options().prop_map(|options| Make::Schedule(Box::new(options))),
        2 => prop_oneof![span(), Just(0), Just(u64::MAX)].prop_map(Make::Timer),
        2 => Just(Make::CancelActivity),
        1 => Just(Make::CancelTimer),
        1 => (marker_kind(), proptest::option::of(any::<u8>()))
            .prop_map(|(kind, value)| Make::Marker(kind, value)),
        2 => Just(Make::CompleteUpdate),
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    let end = prop_oneof![
        60 => Just(End::Blocked),
        1 => Just(End::Completed),
        1 => Just(End::Failed),
        1 => Just(End::Canceled),
        1 => Just(End::Unknown),
    ];
    let late = prop_oneof![3 => Just(0), 1 => 0..500_u64];
    let details = proptest::option::of(any::<u8>());
    prop_oneof![
        18 => (vec((make(), aim()), 0..4), end, late).prop_map(|(m, e, l)| Kind::Yield(m, e, l)),
        4 => (0..6_u8).prop_map(Kind::Signal),
        6 => (0..30_u8).prop_map(Kind::Admit),
        4 => prop::bool::weighted(0.8).prop_map(Kind::Judge),
        1 => (0..2_u8).prop_map(Kind::Cancel),
        1 => prop::bool::weighted(0.3)
            .prop_map(|rare| if rare { Kind::Terminate } else { Kind::TimerDue }),
        6 => Just(Kind::TimerDue),
        12 => Just(Kind::ActivityDue),
        20 => Just(Kind::Claim),
        2 => Just(Kind::Release),
        6 => details.prop_map(Kind::Heartbeat),
        6 => Just(Kind::Complete),
        10 => failure().prop_map(Kind::Fail),
        1 => Just(Kind::Defer),
        2 => report().prop_map(Kind::Report),
        3 => operation().prop_map(Kind::Operate),
    ]
}

fn aim() -> impl Strategy<Value = Aim> {
    prop_oneof![
        9 => (0..8_usize).prop_map(Aim::Pending),
        1 => (0..12_u32, 0..5_u32).prop_map(|(seq, attempt)| Aim::Any(seq, attempt)),
        1 => (any::<u32>(), any::<u32>()).prop_map(|(seq, attempt)| Aim::Any(seq, attempt)),
    ]
}

fn clock() -> impl Strategy<Value = Clock> {
    prop_oneof![
        6 => (0..20_u64).prop_map(Clock::Forward),
        1 => (0..200_000_u64).prop_map(Clock::Forward),
        1 => any::<u64>().prop_map(Clock::Back),
        2 => (0..100_u64).prop_map(Clock::Back),
        5 => Just(Clock::Due(0)),
        2 => Just(Clock::Due(1)),
    ]
}

/// A script: mostly plausible, always legal to send.
pub(crate) fn script(length: usize) -> impl Strategy<Value = Vec<Ask>> {
    vec(
        (clock(), kind(), aim()).prop_map(|(clock, kind, aim)| Ask { clock, kind, aim }),
        1..length,
    )
}
