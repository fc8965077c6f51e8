//! Every bound of the system, in one place. Defaults follow Temporal's where it has one.

use crate::time::Millis;

/// Longest name: workflow id, type, task queue, signal name, patch id, request id. Temporal: `limit.maxIDLength`.
pub const ID_BYTES_MAX: usize = 1000;

/// Largest payload. Temporal: blob size error limit, 2 MiB.
pub const PAYLOAD_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Longest duration, 100 years of 365 days; longer ones are cut. Temporal: `timestamp.MaxDuration`.
pub const DURATION_MAX: Millis = Millis(100 * 365 * 24 * 3600 * 1000);

/// Most events of one history: beyond it code can start nothing new. Temporal's limit is 51,200;
/// ours only guards against runaways, because replay is fast.
pub const HISTORY_EVENTS_MAX: u64 = 1_000_000;

/// Most signals of one run. Temporal: `history.maximumSignalsPerExecution`.
pub const SIGNALS_MAX: u32 = 10_000;

/// Most updates of one run that are admitted or running. Temporal:
/// `history.maxInFlightUpdates`.
pub const UPDATES_IN_FLIGHT_MAX: usize = 10;

/// Most bytes of input of the updates of one run that are admitted or running. Temporal:
/// `history.maxInFlightUpdatePayloads`.
pub const UPDATES_IN_FLIGHT_BYTES_MAX: usize = 20 * 1024 * 1024;

/// Most updates of one run over its life. Temporal: `history.maxTotalUpdates`.
pub const UPDATES_MAX: usize = 2000;

/// Updates of a run from which on it is advised to continue as new: nine tenths of what it may
/// have, as Temporal does.
pub const UPDATES_SUGGESTED: u64 = UPDATES_MAX as u64 * 9 / 10;

/// Most queries of one run that wait or are answered at a time; they are answered one by one.
pub const QUERIES_PER_RUN_MAX: usize = 64;

/// Longest that a query may take, its wait and the replay included.
pub const QUERY_TIME_MAX: Millis = Millis(10_000);

/// Most replayed copies of runs that are kept for further queries.
pub const QUERY_COPIES_MAX: usize = 32;
/// Request ids of signals that a run hands on to the one that follows it, newest first: a
/// repetition of an older signal is taken for a new one.
pub const SIGNAL_IDS_CARRIED_MAX: usize = 256;

/// Shortest life of a run that continues as new without having been told anything but the signals
/// that it hands on: the next one waits so that such a loop does not spin. Temporal:
/// `history.workflowIdReuseMinimalInterval`, which it applies to every run.
pub const IDLE_RUN_LIFE_MIN: Millis = Millis(1000);

/// Events of a history from which on a workflow is advised to continue as new. Temporal:
/// `limit.historyCount.suggestContinueAsNew`.
pub const HISTORY_EVENTS_SUGGESTED: u64 = 4096;

/// Bytes of results and signals told to a run from which on it is advised to continue as new.
/// Temporal: `limit.historySize.suggestContinueAsNew`, which counts the whole history.
pub const HISTORY_BYTES_SUGGESTED: u64 = 4 * 1024 * 1024;

/// Most bytes of a memo, and of headers, names included. Temporal: `limit.memoSize.error`.
pub const FIELDS_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Longest summary of an execution. Temporal: `limit.userMetadataSummarySize`.
pub const SUMMARY_BYTES_MAX: usize = 400;

/// Longest details of an execution. Temporal: `limit.userMetadataDetailsSize`.
pub const DETAILS_BYTES_MAX: usize = 20_000;

/// Most operations (activities and timers) that one run may wait for. Temporal allows 2,000
/// pending activities; a fan-out of 10,000 must fit.
pub const PENDING_OPERATIONS_MAX: u64 = 100_000;

/// Most children that one run may wait for. Temporal: `limit.numPendingChildExecutions.error`.
pub const PENDING_CHILDREN_MAX: u64 = 2_000;

/// Most signals to other executions that one run may wait for. Temporal:
/// `limit.numPendingSignals.error`.
pub const PENDING_SIGNALS_MAX: u64 = 2_000;

/// Most cancel requests to other executions that one run may wait for. Temporal:
/// `limit.numPendingCancelRequests.error`.
pub const PENDING_CANCELS_MAX: u64 = 2_000;

/// Most commands of one activation.
pub const ACTIVATION_COMMANDS_MAX: u64 = 200_000;

/// Most bytes of random that one call may ask for.
pub const RANDOM_BYTES_MAX: u32 = 4096;

/// Longest log line; longer ones are cut.
pub const LOG_LINE_BYTES_MAX: usize = 16 * 1024;

/// Most frames of a failure; deeper chains lose their middle.
pub const FAILURE_FRAMES_MAX: usize = 32;

/// Longest message or stack trace of one failure frame; longer ones are cut.
pub const FAILURE_TEXT_BYTES_MAX: usize = 16 * 1024;

/// Largest failure kept as the last failure of a running activity. Temporal:
/// `limit.mutableStateActivityFailureSize.error`.
pub const LAST_FAILURE_BYTES_MAX: usize = 4 * 1024;

/// Largest component.
pub const COMPONENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Largest linear memory of a workflow.
pub const GUEST_MEMORY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Most elements of a workflow's tables.
pub const GUEST_TABLE_ELEMENTS_MAX: usize = 20_000;

/// Largest wasm stack of a workflow.
pub const GUEST_STACK_BYTES_MAX: usize = 512 * 1024;

/// Longest activation before it is interrupted.
pub const ACTIVATION_TIME_MAX: Millis = Millis(2_000);

/// Most tasks that one poll may take.
pub const POLL_TASKS_MAX: u32 = 256;

/// Longest wait of one long poll.
pub const LONG_POLL_MAX: Millis = Millis(60_000);

/// Most rows of one page of a listing.
pub const LIST_PAGE_MAX: u32 = 1000;

/// Most events of one page of a history.
pub const HISTORY_PAGE_MAX: u32 = 1000;

// A failure must fit into a payload-sized row.
const _: () = assert!(FAILURE_FRAMES_MAX * 2 * FAILURE_TEXT_BYTES_MAX <= PAYLOAD_BYTES_MAX);
const _: () = assert!(LAST_FAILURE_BYTES_MAX <= FAILURE_TEXT_BYTES_MAX);
