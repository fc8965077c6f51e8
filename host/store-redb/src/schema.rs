//! Tables and the format's version.

use redb::TableDefinition;

use crate::key::{ActivityBytes, EventBytes, LetterBytes, PieceBytes, RunBytes, TimerBytes};

/// The format that this build writes and the newest that it reads. An older format is upgraded
/// when the store is opened; there is none yet.
pub(crate) const FORMAT: u64 = 1;

/// Facts about the store: [`META_FORMAT`], [`META_FENCE`].
pub(crate) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// Version of the tables' layout.
pub(crate) const META_FORMAT: &str = "format";
/// The newest fencing token.
pub(crate) const META_FENCE: &str = "fence";

/// Run: a byte of flags, then its summary.
pub(crate) const EXECUTIONS: TableDefinition<'_, &RunBytes, &[u8]> =
    TableDefinition::new("executions");
/// Namespace and workflow id: the current run.
pub(crate) const CURRENT: TableDefinition<'_, &[u8], &RunBytes> = TableDefinition::new("current");
/// Index of executions: namespace, workflow id, run.
pub(crate) const BY_ID: TableDefinition<'_, &[u8], ()> = TableDefinition::new("by_id");
/// Index of executions: open runs.
pub(crate) const OPEN: TableDefinition<'_, &RunBytes, ()> = TableDefinition::new("open");
/// Index of executions: blocked runs.
pub(crate) const BLOCKED: TableDefinition<'_, &RunBytes, ()> = TableDefinition::new("blocked");
/// Run and number of the first event: a chunk's bytes, then its count as four bytes.
pub(crate) const HISTORY: TableDefinition<'_, &EventBytes, &[u8]> = TableDefinition::new("history");
/// Run and seq: a pending activity.
pub(crate) const ACTIVITIES: TableDefinition<'_, &ActivityBytes, &[u8]> =
    TableDefinition::new("activities");
/// Run and number: an admitted update.
pub(crate) const UPDATES: TableDefinition<'_, &ActivityBytes, &[u8]> =
    TableDefinition::new("updates");
/// Due times.
pub(crate) const TIMERS: TableDefinition<'_, &TimerBytes, ()> = TableDefinition::new("timers");
/// Tasks in the order of their queues.
pub(crate) const TASKS: TableDefinition<'_, &[u8], ()> = TableDefinition::new("tasks");
/// Runs that are owed an activation.
pub(crate) const READY: TableDefinition<'_, &RunBytes, ()> = TableDefinition::new("ready");
/// Messages that runs owe each other.
pub(crate) const OUTBOX: TableDefinition<'_, &LetterBytes, ()> = TableDefinition::new("outbox");
/// Digest: what is known about a component.
pub(crate) const COMPONENTS: TableDefinition<'_, &[u8; 32], &[u8]> =
    TableDefinition::new("components");
/// Digest and index: a piece of a component's bytes.
pub(crate) const PIECES: TableDefinition<'_, &PieceBytes, &[u8]> =
    TableDefinition::new("component_pieces");
/// Namespace and workflow type: digest of the current version.
pub(crate) const ROUTES: TableDefinition<'_, &[u8], &[u8; 32]> = TableDefinition::new("routes");

/// How many tables there are.
pub(crate) const TABLES: usize = 16;

/// Bytes per stored piece of a component: a piece with its key fits a page of 1 MiB, where one
/// value of up to 64 MiB would take a page of the next power of two.
pub(crate) const PIECE_BYTES: usize = (1 << 20) - 4096;
