//! The host's functions, as the rest of the SDK calls them.
//!
//! On wasm they are the component's imports; elsewhere a fake answers (see `testing`), so that
//! everything above this file can be tested natively.

#[cfg(not(target_arch = "wasm32"))]
use crate::testing::fake as host;
#[cfg(target_arch = "wasm32")]
use wasm as host;

use crate::bindings::steadfast::workflow::activities::ActivityOptions;
use crate::log::Level;
use crate::operation::Outcome;
use crate::payload::Payload;
use crate::run;
use crate::time::Timestamp;

/// The most bytes that one call of `random-bytes` returns.
const RANDOM_BYTES_MAX: u32 = 4096;

/// Facts about a run that never change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkflowInfo {
    /// The namespace that the execution lives in.
    pub namespace: String,
    /// The id of the execution, chosen by whoever started it.
    pub workflow_id: String,
    /// The id of this run.
    pub run_id: String,
    /// The workflow type.
    pub workflow_type: String,
    /// The task queue on which activities are scheduled by default.
    pub task_queue: String,
    /// 1 for the first run; grows with each retry of the workflow.
    pub attempt: u32,
    /// When the run was started.
    pub started: Timestamp,
}

pub(crate) fn schedule_activity(
    activity_type: &str,
    input: Payload,
    options: &ActivityOptions,
) -> u32 {
    may_command("activities.schedule");
    host::schedule_activity(activity_type, input, options)
}

pub(crate) fn cancel_activity(operation: u32) {
    may_command("activities.cancel");
    host::cancel_activity(operation);
}

pub(crate) fn start_timer(duration_ms: u64) -> u32 {
    may_command("timers.start");
    host::start_timer(duration_ms)
}

pub(crate) fn cancel_timer(operation: u32) {
    may_command("timers.cancel");
    host::cancel_timer(operation);
}

pub(crate) fn patched(id: &str) -> bool {
    host::patched(id)
}

pub(crate) fn deprecate_patch(id: &str) {
    may_command("markers.deprecate-patch");
    host::deprecate_patch(id);
}

/// Records a value and returns it; on a replay, returns the recorded one.
pub(crate) fn side_effect(name: &str, value: Payload) -> Payload {
    may_command("markers.side-effect");
    host::side_effect(name, value)
}

pub(crate) fn complete_update(update_id: &str, outcome: Outcome) {
    may_command("updates.complete");
    host::complete_update(update_id, outcome);
}

/// See [`crate::handler::Handlers::may_command`].
fn may_command(call: &str) {
    // Dropped futures cancel what they hold, also while a thread is taken down.
    run::try_with(|run| run.handlers.may_command(call));
}

pub(crate) fn now_ms() -> u64 {
    host::now_ms()
}

/// Returns the next bytes of the run's stream, in as many calls as the host's limit asks for.
pub(crate) fn random_bytes(length: u32) -> Vec<u8> {
    if length <= RANDOM_BYTES_MAX {
        return host::random_bytes(length);
    }
    let mut bytes = Vec::new();
    let mut rest = length;
    while rest > 0 {
        let count = rest.min(RANDOM_BYTES_MAX);
        bytes.extend(host::random_bytes(count));
        rest -= count;
    }
    bytes
}

pub(crate) fn write_log(level: Level, message: &str) {
    host::write_log(level, message);
}

pub(crate) fn workflow_info() -> WorkflowInfo {
    host::workflow_info()
}

pub(crate) fn history_length() -> u64 {
    host::history_length()
}

#[cfg(target_arch = "wasm32")]
mod wasm {
    use crate::bindings::steadfast::workflow::{
        activities, clock, log, markers, random, timers, types, updates, workflow_info,
    };
    use crate::component::{failure_to_wire, to_wire};
    use crate::log::Level;
    use crate::operation::Outcome;
    use crate::payload::Payload;
    use crate::run;
    use crate::time::Timestamp;

    pub(super) use activities::cancel as cancel_activity;
    pub(super) use clock::now as now_ms;
    pub(super) use markers::{deprecate_patch, patched};
    pub(super) use random::random_bytes;
    pub(super) use timers::{cancel as cancel_timer, start as start_timer};
    pub(super) use workflow_info::history_length;

    pub(super) fn schedule_activity(
        activity_type: &str,
        input: Payload,
        options: &activities::ActivityOptions,
    ) -> u32 {
        let input = types::Payload {
            encoding: input.encoding,
            data: input.data,
        };
        let operation = activities::schedule(activity_type, &input, options);
        run::recycle(input.data);
        operation
    }

    pub(super) fn side_effect(name: &str, value: Payload) -> Payload {
        let value = types::Payload {
            encoding: value.encoding,
            data: value.data,
        };
        let recorded = markers::side_effect(name, &value);
        run::recycle(value.data);
        Payload {
            encoding: recorded.encoding,
            data: recorded.data,
        }
    }

    pub(super) fn complete_update(update_id: &str, outcome: Outcome) {
        let outcome = outcome.map(to_wire).map_err(failure_to_wire);
        updates::complete(update_id, outcome.as_ref());
        if let Ok(payload) = outcome {
            run::recycle(payload.data);
        }
    }

    pub(super) fn write_log(level: Level, message: &str) {
        let level = match level {
            Level::Debug => log::Level::Debug,
            Level::Info => log::Level::Info,
            Level::Warn => log::Level::Warn,
            Level::Error => log::Level::Error,
        };
        log::write(level, message);
    }

    pub(super) fn workflow_info() -> super::WorkflowInfo {
        let info = workflow_info::get();
        super::WorkflowInfo {
            namespace: info.namespace,
            workflow_id: info.workflow_id,
            run_id: info.run_id,
            workflow_type: info.workflow_type,
            task_queue: info.task_queue,
            attempt: info.attempt,
            started: Timestamp::from_millis(info.started_ms),
        }
    }
}
