//! The host's functions, as the rest of the SDK calls them.
//!
//! On wasm they are the component's imports; elsewhere a fake answers (see `testing`), so that
//! everything above this file can be tested natively.

use std::collections::BTreeMap;

#[cfg(not(target_arch = "wasm32"))]
use crate::testing::fake as host;
#[cfg(target_arch = "wasm32")]
use wasm as host;

use crate::bindings::steadfast::workflow::activities::ActivityOptions;
use crate::bindings::steadfast::workflow::children::ChildOptions;
use crate::bindings::steadfast::workflow::executions::Target;
use crate::failure::Failure;
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

/// Where a run stands in its chain of runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChainInfo {
    /// The first run of the chain; this one if nothing went before.
    pub first_run_id: String,
    /// The run before this one.
    pub continued_run_id: Option<String>,
    /// Why this run follows it: `continue-as-new`, `retry` or `cron`.
    pub initiator: Option<String>,
    /// The cron schedule.
    pub cron: Option<String>,
    /// What the last run that completed returned; see [`crate::Decode`].
    pub last_completion_result: Option<Payload>,
    /// Why the run before this one failed, if it did.
    pub last_failure: Option<Failure>,
    /// The memo that this run began with.
    pub memo: BTreeMap<String, Payload>,
    /// Values that travel along with calls.
    pub headers: BTreeMap<String, Payload>,
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

/// Starts a child: its start has the number returned, its outcome the next one.
pub(crate) fn start_child(workflow_type: &str, input: Payload, options: &ChildOptions) -> u32 {
    may_command("children.start");
    host::start_child(workflow_type, input, options)
}

pub(crate) fn cancel_child(operation: u32) {
    may_command("children.cancel");
    host::cancel_child(operation);
}

pub(crate) fn signal_execution(target: &Target, name: &str, input: Payload) -> u32 {
    may_command("executions.signal");
    host::signal_execution(target, name, input)
}

pub(crate) fn cancel_execution(target: &Target, reason: &str) -> u32 {
    may_command("executions.request-cancel");
    host::cancel_execution(target, reason)
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

pub(crate) fn is_continue_as_new_suggested(event: u64) -> bool {
    host::is_continue_as_new_suggested(event)
}

pub(crate) fn chain() -> ChainInfo {
    host::chain()
}

pub(crate) fn upsert_memo(memo: BTreeMap<String, Payload>) {
    host::upsert_memo(memo);
}

#[cfg(target_arch = "wasm32")]
mod wasm {
    use crate::bindings::steadfast::workflow::{
        activities, children, clock, executions, log, markers, random, timers, types, updates,
        workflow_info,
    };
    use crate::component::{failure_to_wire, to_wire};
    use crate::log::Level;
    use crate::operation::Outcome;
    use crate::payload::Payload;
    use crate::time::Timestamp;
    use crate::{component, run};
    use std::collections::BTreeMap;

    pub(super) use activities::cancel as cancel_activity;
    pub(super) use clock::now as now_ms;
    pub(super) use markers::{deprecate_patch, patched};
    pub(super) use random::random_bytes;
    pub(super) use timers::{cancel as cancel_timer, start as start_timer};
    pub(super) use workflow_info::continue_as_new_suggested as is_continue_as_new_suggested;

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

    pub(super) fn start_child(
        workflow_type: &str,
        input: Payload,
        options: &children::ChildOptions,
    ) -> u32 {
        let input = types::Payload {
            encoding: input.encoding,
            data: input.data,
        };
        let (started, _outcome) = children::start(workflow_type, &input, options);
        run::recycle(input.data);
        started
    }

    pub(super) fn cancel_child(operation: u32) {
        children::cancel(operation, "");
    }

    pub(super) fn signal_execution(target: &executions::Target, name: &str, input: Payload) -> u32 {
        let input = types::Payload {
            encoding: input.encoding,
            data: input.data,
        };
        let operation = executions::signal(target, name, &input);
        run::recycle(input.data);
        operation
    }

    pub(super) use executions::request_cancel as cancel_execution;

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

    pub(super) fn upsert_memo(memo: BTreeMap<String, Payload>) {
        crate::bindings::steadfast::workflow::memo::upsert(&component::fields_to_wire(memo));
    }

    pub(super) fn chain() -> super::ChainInfo {
        let given = |text: String| (!text.is_empty()).then_some(text);
        let fields = |list: Vec<(String, types::Payload)>| {
            let list = list.into_iter();
            list.map(|(name, value)| (name, component::from_wire(value)))
                .collect()
        };
        let info = workflow_info::chain();
        super::ChainInfo {
            first_run_id: info.first_run_id,
            continued_run_id: given(info.continued_run_id),
            initiator: given(info.initiator),
            cron: given(info.cron),
            last_completion_result: info.last_completion_result.map(component::from_wire),
            last_failure: info.last_failure.map(component::failure_from_wire),
            memo: fields(info.memo),
            headers: fields(info.headers),
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
