//! Seeds of the simulator: fixed ones, those that once failed, and fresh ones.
#![allow(clippy::expect_used, clippy::panic, reason = "test code")]

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::panic::catch_unwind;

/// Fixed seeds in every test run.
const FIXED: u64 = 200;

/// Fresh seeds in every test run.
const FRESH: u64 = 50;

fn run_all(seeds: impl Iterator<Item = u64>) {
    let (mut crashes, mut closed) = (0, 0);
    for seed in seeds {
        match catch_unwind(|| steadfast_sim::run(seed, false)) {
            Ok(report) => {
                crashes += report.crashes;
                closed += report.closed;
            }
            Err(_) => panic!(
                "seed {seed} failed. Repeat it with:\n  \
                 cargo run -p steadfast-sim -- --seed {seed} --trace\n\
                 and add it to tests/sim/seeds.txt"
            ),
        }
    }
    println!("{closed} runs ended, {crashes} crashes");
    assert!(closed > 0, "nothing was simulated");
}

#[test]
fn fixed_seeds() {
    run_all(1..=FIXED);
}

#[test]
fn seeds_that_failed_once() {
    let text = include_str!("../seeds.txt");
    let seeds = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    run_all(seeds.map(|line| line.trim().parse().expect("a number")));
}

#[test]
fn fresh_seeds() {
    // Random keys of the standard hasher are the only entropy that needs no clock.
    let first = RandomState::new().build_hasher().finish() >> 16;
    println!("fresh seeds {first}..{}", first + FRESH);
    run_all(first..first + FRESH);
}

#[test]
fn the_same_seed_does_the_same_twice() {
    for seed in [3, 14, 159, 2653] {
        assert_eq!(
            steadfast_sim::run(seed, false),
            steadfast_sim::run(seed, false)
        );
    }
}
