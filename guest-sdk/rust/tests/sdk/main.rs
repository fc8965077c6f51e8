//! The SDK against its fake host, through its public surface alone.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "test code")]
#![allow(clippy::panic, clippy::indexing_slicing, reason = "test code")]

use steadfast_sdk::testing::{Call, TestRun};

mod activity;
mod cancel;
mod child;
mod concurrency;
mod description;
mod handler;
mod marker;
mod run;
mod scale;
mod scope;
mod signal;

/// Returns a run's calls in a short form: `charge#1`, `timer#2(50)`, `cancel-timer#2`.
fn calls(run: &TestRun) -> Vec<String> {
    run.calls().iter().map(short).collect()
}

fn short(call: &Call) -> String {
    match call {
        Call::ScheduleActivity {
            operation,
            activity_type,
            ..
        } => {
            format!("{activity_type}#{operation}")
        }
        Call::CancelActivity(operation) => format!("cancel-activity#{operation}"),
        Call::StartTimer {
            operation,
            duration_ms,
        } => format!("timer#{operation}({duration_ms})"),
        Call::CancelTimer(operation) => format!("cancel-timer#{operation}"),
        Call::Patched(id) => format!("patched({id})"),
        Call::DeprecatePatch(id) => format!("deprecate({id})"),
        Call::SideEffect(name, value) => {
            format!("{name}={}", String::from_utf8_lossy(&value.data))
        }
        Call::CompleteUpdate(id, outcome) => match outcome {
            Ok(_) => format!("complete {id}"),
            Err(failure) => format!("fail {id}: {}", failure.code()),
        },
        Call::StartChild {
            operation,
            workflow_type,
            ..
        } => format!("child {workflow_type}#{operation}"),
        Call::CancelChild(operation) => format!("cancel-child#{operation}"),
        Call::SignalExecution {
            operation,
            workflow_id,
            name,
            ..
        } => format!("signal {workflow_id} {name}#{operation}"),
        Call::CancelExecution {
            operation,
            workflow_id,
            ..
        } => format!("cancel {workflow_id}#{operation}"),
        Call::UpsertMemo(memo) => format!("memo({})", memo.len()),
        Call::Random(length) => format!("random({length})"),
        Call::Log(level, message) => format!("{level:?}: {message}"),
    }
}
