//! What a seed decides: the workload, and how often what goes wrong.

use steadfast_model::Millis;
use steadfast_ports::fake::{FaultPlan, Op, Rng};
use steadfast_ports::guest::CallOptions;

/// The plan of one run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where it all comes from.
    pub seed: u64,
    /// Shards of the host.
    pub shards: u64,
    /// Workflows to start.
    pub workflows: u64,
    /// Virtual milliseconds of faults; then everything heals.
    pub faults_ms: u64,
    /// Faults of the store.
    pub store: FaultPlan,
    /// Wait between two crashes of the host; 0: none.
    pub crash_every_ms: u64,
    /// Wait between two jumps of the clock; 0: none.
    pub clock_jump_every_ms: u64,
    /// Wait between two evictions; 0: none.
    pub evict_every_ms: u64,
    /// How many attempts in a thousand fail.
    pub attempt_fails_permille: u32,
    /// How many attempts in a thousand never come back.
    pub attempt_dies_permille: u32,
    /// Longest virtual delay of anything.
    pub latency_ms: u64,
    /// Bytes of the instance cache of each shard.
    pub cache_bytes: usize,
    /// True if activities run in the host, false if workers outside poll for them.
    pub local_activities: bool,
}

impl Plan {
    /// Draws a plan. A fault is absent in about half of the seeds (swarm testing): rare faults
    /// show best when the common ones do not hide them.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut rate = |max: u64| {
            if rng.chance(500) {
                0
            } else {
                u32::try_from(rng.below(max)).unwrap_or(0)
            }
        };
        let store = FaultPlan {
            seed: seed ^ 0xabcd,
            unavailable_permille: rate(100),
            lost_ack_permille: rate(100),
            stall_permille: rate(200),
            stall_steps_max: 20,
            poison_permille: rate(10),
            read_permille: rate(50),
        };
        let (attempt_fails_permille, attempt_dies_permille) = (rate(400), rate(150));
        let mut every = |min: u64, max: u64| {
            if rng.chance(500) {
                0
            } else {
                min + rng.below(max - min)
            }
        };
        let crash_every_ms = every(50, 5000);
        let clock_jump_every_ms = every(500, 10_000);
        let evict_every_ms = every(1, 200);
        Self {
            seed,
            shards: 1 + rng.below(3),
            workflows: 5 + rng.below(25),
            faults_ms: 20_000 + rng.below(40_000),
            store,
            crash_every_ms,
            clock_jump_every_ms,
            evict_every_ms,
            attempt_fails_permille,
            attempt_dies_permille,
            latency_ms: 1 + rng.below(20),
            cache_bytes: if rng.chance(300) { 20_000 } else { 100_000_000 },
            local_activities: rng.chance(500),
        }
    }
}

/// Signals that a client owes a workflow, and whether it must be asked to cancel itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owed {
    /// Names, in order.
    pub signals: Vec<String>,
    /// A cancel request.
    pub cancel: bool,
    /// Names and inputs of updates, in order.
    pub updates: Vec<(String, String)>,
}

/// Draws a script that ends, given what it is owed.
pub fn script(rng: &mut Rng) -> (Vec<Op>, Owed) {
    let mut ops = Vec::new();
    let mut owed = Owed::default();
    for i in 0..1 + rng.below(7) {
        ops.push(match rng.below(14) {
            0 | 1 => Op::Activity {
                activity_type: "act".to_owned(),
                input: format!("\"{i}\""),
                options: options(rng),
            },
            2 => Op::Parallel {
                activity_type: "act".to_owned(),
                count: 1 + small(rng, 12),
            },
            3 => Op::Sleep([0, 1, 50, 3000, 70_000][rng.index(5)]),
            4 => Op::StartTimerAndCancel(rng.below(200)),
            5 => Op::RaceTimerActivity {
                timer_ms: rng.below(100),
                activity_type: "act".to_owned(),
                input: "\"race\"".to_owned(),
            },
            6 => {
                let name = format!("s{}", rng.below(2));
                owed.signals.push(name.clone());
                Op::WaitSignal(name)
            }
            7 => Op::Random("act".to_owned()),
            8 => Op::Now("act".to_owned()),
            10 => {
                let id = format!("p{}", rng.below(3));
                Op::Patched(id, "act".to_owned(), "old".to_owned())
            }
            11 => Op::SideEffect(format!("v{}", rng.below(2))),
            13 => Op::SleepOrCancel([0, 40, 2000][rng.index(3)]),
            12 => Op::DeprecatePatch(format!("p{}", rng.below(3))),
            _ if !owed.cancel && rng.chance(300) => {
                owed.cancel = true;
                Op::WaitCancel
            }
            _ => Op::activity("act", "\"x\""),
        });
    }
    owe_updates(rng, &mut ops, &mut owed);
    ops.push(match rng.below(10) {
        0 => Op::Fail("scripted".to_owned()),
        1 if owed.cancel => Op::AcceptCancel,
        _ => Op::Complete,
    });
    (ops, owed)
}

/// Updates of every kind at any time; some scripts wait for those that are accepted.
fn owe_updates(rng: &mut Rng, ops: &mut Vec<Op>, owed: &mut Owed) {
    if rng.chance(500) {
        return;
    }
    let mut accepted = 0;
    for i in 0..1 + rng.below(5) {
        let name = ["echo", "fail", "work", "never", "other"][rng.index(5)];
        let input = ["bad", "trap", "command", "a", "b", "c", "d"][rng.index(7)];
        accepted += usize::from(name != "other" && input.len() == 1);
        let suffix = if input.len() == 1 {
            i.to_string()
        } else {
            String::new()
        };
        owed.updates
            .push((name.to_owned(), format!("\"{input}{suffix}\"")));
    }
    if rng.chance(600) {
        ops.push(Op::WaitUpdates(accepted));
        if rng.chance(700) {
            ops.push(Op::WaitHandlers);
        }
    }
}

fn small(rng: &mut Rng, bound: u64) -> u32 {
    u32::try_from(rng.below(bound)).unwrap_or(0)
}

fn options(rng: &mut Rng) -> CallOptions {
    CallOptions {
        start_to_close: Millis(500 + rng.below(3000)),
        schedule_to_close: Millis(if rng.chance(200) {
            2000 + rng.below(20_000)
        } else {
            0
        }),
        heartbeat: Millis(if rng.chance(200) {
            200 + rng.below(1000)
        } else {
            0
        }),
        initial_interval: Millis(1 + rng.below(500)),
        maximum_interval: Millis(5000),
        maximum_attempts: if rng.chance(200) {
            1 + small(rng, 5)
        } else {
            0
        },
        ..CallOptions::default()
    }
}
