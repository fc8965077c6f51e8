//! The changes of many batches, gathered before they reach the tables.
//!
//! Of several changes to one row only the last is written, and rows go in in the order of their
//! keys. A removal of a row that the group itself would have put is still made, because the table
//! may hold the row from before; removing what is absent costs one lookup.

use std::collections::BTreeMap;

use steadfast_model::RunKey;

use crate::key::{ActivityBytes, EventBytes, LetterBytes, RunBytes, TimerBytes};
use crate::op::{ExecutionRow, Op};
use crate::{key, op::Encoded};

/// A component's record and bytes.
pub(crate) struct ComponentRow {
    /// What is known about it.
    pub(crate) record: Vec<u8>,
    /// The component.
    pub(crate) bytes: Vec<u8>,
}

/// Rows to put (`Some`, `true`) or to remove, by table.
#[derive(Default)]
pub(crate) struct Group {
    /// History chunks. Never replaced: the density check sees to it.
    pub(crate) appends: Vec<(EventBytes, Vec<u8>)>,
    /// Current runs.
    pub(crate) claims: BTreeMap<Vec<u8>, RunKey>,
    /// Summaries.
    pub(crate) executions: BTreeMap<RunBytes, ExecutionRow>,
    /// Pending activities.
    pub(crate) activities: BTreeMap<ActivityBytes, Option<Vec<u8>>>,
    /// Admitted updates.
    pub(crate) updates: BTreeMap<ActivityBytes, Option<Vec<u8>>>,
    /// Due times.
    pub(crate) timers: BTreeMap<TimerBytes, bool>,
    /// Tasks.
    pub(crate) tasks: BTreeMap<Vec<u8>, bool>,
    /// Ready marks.
    pub(crate) ready: BTreeMap<RunBytes, bool>,
    /// Letters.
    pub(crate) letters: BTreeMap<LetterBytes, bool>,
    /// Components.
    pub(crate) components: BTreeMap<[u8; 32], ComponentRow>,
    /// Routes.
    pub(crate) routes: BTreeMap<Vec<u8>, [u8; 32]>,
    /// The newest fencing token, if it changed.
    pub(crate) fence: Option<u64>,
}

impl Group {
    /// Adds a batch whose expectations hold.
    pub(crate) fn add(&mut self, batch: Encoded) {
        for op in batch.ops {
            self.add_op(op);
        }
    }

    fn add_op(&mut self, op: Op) {
        match op {
            Op::Append {
                run,
                first,
                end: _,
                value,
            } => {
                self.appends.push((key::event(run, first), value));
            }
            Op::Claim {
                key,
                run,
                replaces: _,
            } => {
                self.claims.insert(key, run);
            }
            Op::Execution { key, row } => {
                self.executions.insert(key, row);
            }
            Op::Activity { key, value } => {
                self.activities.insert(key, value);
            }
            Op::Update { key, value } => {
                self.updates.insert(key, value);
            }
            Op::Timer { key, put } => {
                self.timers.insert(key, put);
            }
            Op::Task { key, put } => {
                self.tasks.insert(key, put);
            }
            Op::Ready { key, put } => {
                self.ready.insert(key, put);
            }
            Op::Letter { key, put } => {
                self.letters.insert(key, put);
            }
            Op::Component {
                digest,
                record,
                bytes,
            } => {
                self.components
                    .insert(digest, ComponentRow { record, bytes });
            }
            Op::Route { key, digest } => {
                self.routes.insert(key, digest);
            }
        }
    }

    /// True when there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            appends,
            claims,
            executions,
            activities,
            updates,
            timers,
            tasks,
            ready,
            letters,
            components,
            routes,
            fence,
        } = self;
        appends.is_empty()
            && claims.is_empty()
            && executions.is_empty()
            && activities.is_empty()
            && updates.is_empty()
            && timers.is_empty()
            && tasks.is_empty()
            && ready.is_empty()
            && letters.is_empty()
            && components.is_empty()
            && routes.is_empty()
            && fence.is_none()
    }
}
