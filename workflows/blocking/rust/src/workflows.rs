//! The workflows. Each does one thing, as in the sample `bench`.

use serde_json::{Value, json};

use crate::bindings::steadfast::workflow::types::Failure;
use crate::bindings::steadfast::workflow::{clock, log, random, timers, waiting};
use crate::host::{activity, canceled, schedule, take};

/// A workflow: its input in, its result out.
pub type Run = fn(Value) -> Result<Value, Failure>;

/// All workflows by type.
pub const ALL: &[(&str, Run)] = &[
    ("blocking-steps", steps),
    ("blocking-parallel", parallel),
    ("blocking-approval", approval),
    ("blocking-signals-count", signals_count),
    ("blocking-cancel", cancel),
    ("blocking-random-now", random_now),
    ("blocking-deadlock", deadlock),
    ("blocking-spin", spin),
    ("blocking-trap", trap),
];

/// `{steps}`: runs that many activities `echo` one after the other; returns how many answered
/// rightly.
fn steps(input: Value) -> Result<Value, Failure> {
    let mut answers = 0;
    for step in 0..input["steps"].as_u64().unwrap_or(0) {
        let echo = activity("echo", &json!(step))?;
        answers += u64::from(echo == json!(step));
    }
    Ok(json!(answers))
}

/// The same, all at once; results are taken in the order of their arrival.
fn parallel(input: Value) -> Result<Value, Failure> {
    let steps = input["steps"].as_u64().unwrap_or(0);
    let mut waiting: Vec<(u32, u64)> = (0..steps)
        .map(|step| (schedule("echo", &json!(step)), step))
        .collect();
    let mut answers = 0;
    while !waiting.is_empty() {
        let operations: Vec<u32> = waiting.iter().map(|(operation, _)| *operation).collect();
        let first = waiting::wait_any(&operations) as usize;
        let (operation, step) = waiting.swap_remove(first);
        answers += u64::from(take(operation)? == json!(step));
    }
    Ok(json!(answers))
}

/// `{deadline_ms}`: waits for the signal `approve` until the deadline, then ships what was
/// approved.
fn approval(input: Value) -> Result<Value, Failure> {
    let deadline = timers::start(input["deadline_ms"].as_u64().unwrap_or(60_000));
    let approval = waiting::receive_signal("approve");
    if waiting::wait_any(&[approval, deadline]) == 1 {
        waiting::release(approval);
        return Ok(json!("too late"));
    }
    timers::cancel(deadline);
    let who = take(approval)?;
    let shipped = activity("echo", &json!({ "shipped_for": who }))?;
    Ok(shipped)
}

/// `{expect}`: collects that many signals `n` and returns them in the order of their arrival.
fn signals_count(input: Value) -> Result<Value, Failure> {
    let expect = input["expect"].as_u64().unwrap_or(0);
    let received = (0..expect).map(|_| take(waiting::receive_signal("n")));
    Ok(Value::Array(received.collect::<Result<_, _>>()?))
}

/// Waits for a cancel request, cleans up by the activity `cleanup`, and ends as cancelled.
fn cancel(_input: Value) -> Result<Value, Failure> {
    let reason = take(waiting::receive_cancel())?;
    activity("cleanup", &reason)?;
    Err(canceled())
}

/// Returns random bytes, and the times before and after a sleep of 5 ms.
fn random_now(_input: Value) -> Result<Value, Failure> {
    let first = clock::now();
    let drawn = random::random_bytes(8);
    take(timers::start(5))?;
    log::write(log::Level::Info, "slept");
    Ok(json!({ "random": drawn, "now_ms": [first, clock::now()] }))
}

/// Waits for nothing, for ever: the host says so.
fn deadlock(_input: Value) -> Result<Value, Failure> {
    Ok(json!(waiting::wait_any(&[])))
}

/// Never comes back.
fn spin(_input: Value) -> Result<Value, Failure> {
    let mut turns = 0_u64;
    loop {
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
}

/// Traps after a wait.
fn trap(_input: Value) -> Result<Value, Failure> {
    take(timers::start(1))?;
    let nothing: Option<Value> = std::hint::black_box(None);
    Ok(nothing.expect("there is nothing"))
}
