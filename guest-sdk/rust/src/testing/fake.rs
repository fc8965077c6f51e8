//! A host that notes what it is asked and answers from counters.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use super::Call;
use crate::bindings::steadfast::workflow::activities::ActivityOptions;
use crate::bindings::steadfast::workflow::children::ChildOptions;
use crate::bindings::steadfast::workflow::executions::Target;
use crate::host::{ChainInfo, WorkflowInfo};
use crate::log::Level;
use crate::operation::Outcome;
use crate::payload::Payload;
use crate::run;
use crate::time::Timestamp;

/// The event from which on a run is advised to continue as new.
const CONTINUE_SUGGESTED_FROM: u64 = 4096;

/// The time at which every run starts.
const START_MS: u64 = 1_000_000;

struct Host {
    info: WorkflowInfo,
    calls: Vec<Call>,
    operations: u32,
    events: u64,
    now: Timestamp,
    /// State of the random stream, a SplitMix64.
    random: u64,
    /// Patches that came after the run had passed their place.
    unpatched: Vec<String>,
}

impl Host {
    fn new(mut info: WorkflowInfo) -> Self {
        let now = Timestamp::from_millis(START_MS);
        info.started = now;
        Self {
            info,
            calls: Vec::new(),
            operations: 0,
            events: 1,
            now,
            random: 7,
            unpatched: Vec::new(),
        }
    }

    fn next_byte(&mut self) -> u8 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed.to_le_bytes()[7]
    }
}

thread_local! {
    static HOST: RefCell<Host> = RefCell::new(Host::new(WorkflowInfo::default()));
}

fn with<R>(action: impl FnOnce(&mut Host) -> R) -> R {
    HOST.with_borrow_mut(action)
}

pub(crate) fn reset(info: WorkflowInfo) {
    with(|host| *host = Host::new(info));
}

pub(crate) fn unpatch(ids: &[&str]) {
    with(|host| host.unpatched = ids.iter().map(|id| (*id).to_owned()).collect());
}

pub(crate) fn calls() -> Vec<Call> {
    with(|host| host.calls.clone())
}

pub(crate) fn advance(duration: Duration) {
    with(|host| host.now += duration);
}

pub(crate) fn now() -> Timestamp {
    with(|host| host.now)
}

pub(crate) fn next_event() -> u64 {
    with(|host| {
        host.events += 1;
        host.events
    })
}

fn next_operation(call: impl FnOnce(u32) -> Call) -> u32 {
    with(|host| {
        host.operations += 1;
        host.calls.push(call(host.operations));
        host.operations
    })
}

fn note(call: Call) {
    with(|host| host.calls.push(call));
}

pub(crate) fn schedule_activity(
    activity_type: &str,
    input: Payload,
    options: &ActivityOptions,
) -> u32 {
    let activity_type = activity_type.to_owned();
    let options = options_set(options);
    // Like a real host, keep a copy and leave the buffer to the guest.
    let copy = input.clone();
    run::recycle(input.data);
    next_operation(|operation| Call::ScheduleActivity {
        operation,
        activity_type,
        input: copy,
        options,
    })
}

/// Returns the options that are not the default, by name.
fn options_set(options: &ActivityOptions) -> Vec<(String, String)> {
    let numbers = [
        ("schedule-to-close-ms", options.schedule_to_close_ms),
        ("schedule-to-start-ms", options.schedule_to_start_ms),
        ("start-to-close-ms", options.start_to_close_ms),
        ("heartbeat-ms", options.heartbeat_ms),
        ("initial-interval-ms", options.initial_interval_ms),
        ("backoff-permille", u64::from(options.backoff_permille)),
        ("maximum-interval-ms", options.maximum_interval_ms),
        ("maximum-attempts", u64::from(options.maximum_attempts)),
    ];
    given(numbers, &options.settings)
}

fn given<const N: usize>(
    numbers: [(&str, u64); N],
    settings: &[(String, String)],
) -> Vec<(String, String)> {
    let numbers = numbers.into_iter().filter(|(_, value)| *value > 0);
    let numbers = numbers.map(|(name, value)| (name.to_owned(), value.to_string()));
    numbers.chain(settings.iter().cloned()).collect()
}

pub(crate) fn cancel_activity(operation: u32) {
    note(Call::CancelActivity(operation));
}

pub(crate) fn start_child(workflow_type: &str, input: Payload, options: &ChildOptions) -> u32 {
    let numbers = [
        ("execution-timeout-ms", options.execution_timeout_ms),
        ("run-timeout-ms", options.run_timeout_ms),
        ("initial-interval-ms", options.initial_interval_ms),
        ("backoff-permille", u64::from(options.backoff_permille)),
        ("maximum-interval-ms", options.maximum_interval_ms),
        ("maximum-attempts", u64::from(options.maximum_attempts)),
    ];
    let workflow_type = workflow_type.to_owned();
    let options = given(numbers, &options.settings);
    let operation = next_operation(|operation| Call::StartChild {
        operation,
        workflow_type,
        input,
        options,
    });
    // The next number is the outcome's.
    with(|host| host.operations += 1);
    operation
}

pub(crate) fn cancel_child(operation: u32) {
    note(Call::CancelChild(operation));
}

pub(crate) fn signal_execution(target: &Target, name: &str, input: Payload) -> u32 {
    let (workflow_id, name) = (target.workflow_id.clone(), name.to_owned());
    next_operation(|operation| Call::SignalExecution {
        operation,
        workflow_id,
        name,
        input,
    })
}

pub(crate) fn cancel_execution(target: &Target, reason: &str) -> u32 {
    let (workflow_id, reason) = (target.workflow_id.clone(), reason.to_owned());
    next_operation(|operation| Call::CancelExecution {
        operation,
        workflow_id,
        reason,
    })
}

pub(crate) fn start_timer(duration_ms: u64) -> u32 {
    next_operation(|operation| Call::StartTimer {
        operation,
        duration_ms,
    })
}

pub(crate) fn cancel_timer(operation: u32) {
    note(Call::CancelTimer(operation));
}

pub(crate) fn patched(id: &str) -> bool {
    note(Call::Patched(id.to_owned()));
    with(|host| !host.unpatched.iter().any(|unpatched| unpatched == id))
}

pub(crate) fn deprecate_patch(id: &str) {
    note(Call::DeprecatePatch(id.to_owned()));
}

pub(crate) fn side_effect(name: &str, value: Payload) -> Payload {
    note(Call::SideEffect(name.to_owned(), value.clone()));
    value
}

pub(crate) fn complete_update(update_id: &str, outcome: Outcome) {
    note(Call::CompleteUpdate(update_id.to_owned(), outcome));
}

pub(crate) fn now_ms() -> u64 {
    now().as_millis()
}

pub(crate) fn random_bytes(length: u32) -> Vec<u8> {
    note(Call::Random(length));
    with(|host| (0..length).map(|_| host.next_byte()).collect())
}

pub(crate) fn write_log(level: Level, message: &str) {
    note(Call::Log(level, message.to_owned()));
}

pub(crate) fn workflow_info() -> WorkflowInfo {
    with(|host| host.info.clone())
}

pub(crate) fn is_continue_as_new_suggested(event: u64) -> bool {
    event >= CONTINUE_SUGGESTED_FROM
}

pub(crate) fn chain() -> ChainInfo {
    with(|host| ChainInfo {
        first_run_id: host.info.run_id.clone(),
        ..ChainInfo::default()
    })
}

pub(crate) fn upsert_memo(memo: BTreeMap<String, Payload>) {
    note(Call::UpsertMemo(memo));
}
