//! `steadfast-sim [--seed N] [--count N] [--trace]`: runs seeds and prints what they did.
#![allow(clippy::expect_used, reason = "test code")]

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1)?.parse::<u64>().ok()
    };
    let first = value("--seed").unwrap_or(1);
    let count = value("--count").unwrap_or(1);
    let trace = args.iter().any(|arg| arg == "--trace");
    for seed in first..first + count {
        let report = steadfast_sim::run(seed, trace);
        println!("seed {seed}: {report:?}");
    }
}
