//! One write transaction: checks what batches expect, then writes what they changed.

use std::collections::BTreeMap;

use redb::{ReadableTable, Table, WriteTransaction};
use steadfast_model::{EventNumber, RunKey};
use steadfast_ports::store::Error;

use crate::fault::fault;
use crate::group::{ComponentRow, Group};
use crate::key;
use crate::key::{ActivityBytes, EventBytes, PieceBytes, RunBytes};
use crate::op::{Encoded, ExecutionRow, FLAG_BLOCKED, FLAG_OPEN, Op};
use crate::schema;
use crate::tails::Tails;

/// An open transaction with the group that it will write. Tables are opened when first needed.
pub(crate) struct Transaction<'t> {
    redb: &'t WriteTransaction,
    history: Option<Table<'t, &'static EventBytes, &'static [u8]>>,
    current: Option<Table<'t, &'static [u8], &'static RunBytes>>,
    /// What will be written.
    pub(crate) group: Group,
}

/// What one batch would change of the things that batches expect something of.
#[derive(Default)]
struct Expected<'b> {
    tails: BTreeMap<u64, u64>,
    claims: BTreeMap<&'b [u8], RunKey>,
}

impl<'t> Transaction<'t> {
    /// A transaction that has not looked at anything yet.
    pub(crate) fn new(redb: &'t WriteTransaction) -> Self {
        Self {
            redb,
            history: None,
            current: None,
            group: Group::default(),
        }
    }

    /// Adds a batch if all its expectations hold, and otherwise changes nothing.
    ///
    /// The inner error refuses this batch alone; the outer one is the disk's and ends the
    /// transaction.
    pub(crate) fn add(
        &mut self,
        batch: Encoded,
        tails: &mut Tails,
    ) -> Result<Result<(), Error>, Error> {
        let mut expected = Expected::default();
        for op in &batch.ops {
            let refusal = match op {
                Op::Append {
                    run, first, end, ..
                } => self.expect_append(&mut expected, tails, *run, *first, *end)?,
                Op::Claim { key, run, replaces } => {
                    self.expect_claim(&mut expected, key, *run, *replaces)?
                }
                Op::Execution { .. }
                | Op::Activity { .. }
                | Op::Update { .. }
                | Op::Timer { .. }
                | Op::Task { .. }
                | Op::Ready { .. }
                | Op::Letter { .. }
                | Op::Component { .. }
                | Op::Route { .. } => None,
            };
            if let Some(message) = refusal {
                return Ok(Err(Error::Conflict(message)));
            }
        }
        for (run, next) in expected.tails {
            tails.set(run, next);
        }
        self.group.add(batch);
        Ok(Ok(()))
    }

    fn expect_append(
        &mut self,
        expected: &mut Expected<'_>,
        tails: &Tails,
        run: RunKey,
        first: EventNumber,
        end: EventNumber,
    ) -> Result<Option<String>, Error> {
        if end <= first {
            return Ok(Some(format!("an empty chunk for run {run}")));
        }
        let known = expected
            .tails
            .get(&run.0)
            .copied()
            .or_else(|| tails.get(run.0));
        let next = match known {
            Some(next) => next,
            None => self.next_event(run)?,
        };
        if first.0 != next {
            return Ok(Some(format!(
                "run {run} is at event {next}, not {first}: somebody else has written to it"
            )));
        }
        expected.tails.insert(run.0, end.0);
        Ok(None)
    }

    fn expect_claim<'b>(
        &mut self,
        expected: &mut Expected<'b>,
        key: &'b [u8],
        run: RunKey,
        replaces: Option<RunKey>,
    ) -> Result<Option<String>, Error> {
        let known = expected
            .claims
            .get(key)
            .or_else(|| self.group.claims.get(key))
            .copied();
        let current = match known {
            Some(current) => Some(current),
            None => self.current_run(key)?,
        };
        if current != replaces {
            return Ok(Some(match current {
                Some(current) => format!("run {current} holds this workflow id"),
                None => "no run holds this workflow id".to_owned(),
            }));
        }
        expected.claims.insert(key, run);
        Ok(None)
    }

    fn next_event(&mut self, run: RunKey) -> Result<u64, Error> {
        let table = match &mut self.history {
            Some(table) => table,
            None => self
                .history
                .insert(self.redb.open_table(schema::HISTORY).map_err(fault)?),
        };
        let (low, high) = (
            key::event(run, EventNumber(0)),
            key::event(run, EventNumber(u64::MAX)),
        );
        let last = table
            .range::<&EventBytes>(&low..=&high)
            .map_err(fault)?
            .next_back();
        match last.transpose().map_err(fault)? {
            Some((key, value)) => {
                let count = crate::reader::chunk_count(value.value())?;
                Ok(key::event_number(key.value()).plus(u64::from(count)).0)
            }
            None => Ok(EventNumber::FIRST.0),
        }
    }

    fn current_run(&mut self, key: &[u8]) -> Result<Option<RunKey>, Error> {
        let table = match &mut self.current {
            Some(table) => table,
            None => self
                .current
                .insert(self.redb.open_table(schema::CURRENT).map_err(fault)?),
        };
        let row = table.get(key).map_err(fault)?;
        Ok(row.map(|row| RunKey(u64::from_be_bytes(*row.value()))))
    }

    /// Writes the group's rows. The transaction is not committed yet.
    pub(crate) fn write(mut self) -> Result<(), Error> {
        let group = std::mem::take(&mut self.group);
        if let Some(fence) = group.fence {
            let mut meta = self.redb.open_table(schema::META).map_err(fault)?;
            meta.insert(schema::META_FENCE, fence).map_err(fault)?;
        }
        self.write_history(group.appends)?;
        self.write_claims(&group.claims)?;
        self.write_executions(&group.executions)?;
        self.write_values(schema::ACTIVITIES, &group.activities)?;
        self.write_values(schema::UPDATES, &group.updates)?;
        self.write_marks(schema::TIMERS, &group.timers)?;
        self.write_marks(schema::READY, &group.ready)?;
        self.write_marks(schema::OUTBOX, &group.letters)?;
        self.write_tasks(&group.tasks)?;
        self.write_components(&group.components)?;
        if !group.routes.is_empty() {
            let mut table = self.redb.open_table(schema::ROUTES).map_err(fault)?;
            for (key, digest) in &group.routes {
                table.insert(key.as_slice(), digest).map_err(fault)?;
            }
        }
        Ok(())
    }

    fn write_history(&mut self, mut appends: Vec<(EventBytes, Vec<u8>)>) -> Result<(), Error> {
        if appends.is_empty() {
            return Ok(());
        }
        appends.sort_unstable_by_key(|(key, _)| *key);
        let mut table = match self.history.take() {
            Some(table) => table,
            None => self.redb.open_table(schema::HISTORY).map_err(fault)?,
        };
        for (key, value) in &appends {
            table.insert(key, value.as_slice()).map_err(fault)?;
        }
        Ok(())
    }

    fn write_claims(&mut self, claims: &BTreeMap<Vec<u8>, RunKey>) -> Result<(), Error> {
        if claims.is_empty() {
            return Ok(());
        }
        let mut table = match self.current.take() {
            Some(table) => table,
            None => self.redb.open_table(schema::CURRENT).map_err(fault)?,
        };
        for (key, run) in claims {
            table
                .insert(key.as_slice(), &key::run(*run))
                .map_err(fault)?;
        }
        Ok(())
    }

    fn write_executions(&self, rows: &BTreeMap<RunBytes, ExecutionRow>) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut table = self.redb.open_table(schema::EXECUTIONS).map_err(fault)?;
        let mut by_id = self.redb.open_table(schema::BY_ID).map_err(fault)?;
        let mut open = self.redb.open_table(schema::OPEN).map_err(fault)?;
        let mut blocked = self.redb.open_table(schema::BLOCKED).map_err(fault)?;
        for (run, row) in rows {
            let before = table.insert(run, row.value.as_slice()).map_err(fault)?;
            let before = before.map(|old| old.value().first().copied().unwrap_or(0));
            // A run keeps its workflow id for life, so only its first row touches that index.
            if before.is_none() {
                by_id.insert(row.by_id.as_slice(), ()).map_err(fault)?;
            }
            let (was, is) = (before.unwrap_or(0), row.flags());
            mark(&mut open, run, was & FLAG_OPEN, is & FLAG_OPEN)?;
            mark(&mut blocked, run, was & FLAG_BLOCKED, is & FLAG_BLOCKED)?;
        }
        Ok(())
    }

    fn write_values(
        &self,
        table: redb::TableDefinition<'_, &'static ActivityBytes, &'static [u8]>,
        rows: &BTreeMap<ActivityBytes, Option<Vec<u8>>>,
    ) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut table = self.redb.open_table(table).map_err(fault)?;
        for (key, value) in rows {
            match value {
                Some(value) => drop(table.insert(key, value.as_slice()).map_err(fault)?),
                None => drop(table.remove(key).map_err(fault)?),
            }
        }
        Ok(())
    }

    fn write_marks<const N: usize>(
        &self,
        table: redb::TableDefinition<'_, &'static [u8; N], ()>,
        rows: &BTreeMap<[u8; N], bool>,
    ) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut table = self.redb.open_table(table).map_err(fault)?;
        for (key, put) in rows {
            match put {
                true => drop(table.insert(key, ()).map_err(fault)?),
                false => drop(table.remove(key).map_err(fault)?),
            }
        }
        Ok(())
    }

    fn write_tasks(&self, rows: &BTreeMap<Vec<u8>, bool>) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut table = self.redb.open_table(schema::TASKS).map_err(fault)?;
        for (key, put) in rows {
            match put {
                true => drop(table.insert(key.as_slice(), ()).map_err(fault)?),
                false => drop(table.remove(key.as_slice()).map_err(fault)?),
            }
        }
        Ok(())
    }

    fn write_components(&self, rows: &BTreeMap<[u8; 32], ComponentRow>) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut table = self.redb.open_table(schema::COMPONENTS).map_err(fault)?;
        let mut pieces = self.redb.open_table(schema::PIECES).map_err(fault)?;
        for (digest, row) in rows {
            table.insert(digest, row.record.as_slice()).map_err(fault)?;
            // The digest names the bytes, so pieces of an earlier upload are the same ones; a
            // caller that gives other bytes must not be left with a mixture.
            let (low, high) = (key::piece(digest, 0), key::piece(digest, u32::MAX));
            pieces
                .retain_in::<&PieceBytes, _>(&low..=&high, |_, _| false)
                .map_err(fault)?;
            for (index, bytes) in (0_u32..).zip(row.bytes.chunks(schema::PIECE_BYTES)) {
                pieces
                    .insert(&key::piece(digest, index), bytes)
                    .map_err(fault)?;
            }
        }
        Ok(())
    }
}

/// Puts or removes a run's row of an index when its flag has changed.
fn mark(
    table: &mut Table<'_, &'static RunBytes, ()>,
    run: &RunBytes,
    was: u8,
    is: u8,
) -> Result<(), Error> {
    match (was != 0, is != 0) {
        (false, true) => drop(table.insert(run, ()).map_err(fault)?),
        (true, false) => drop(table.remove(run).map_err(fault)?),
        (true, true) | (false, false) => {}
    }
    Ok(())
}
