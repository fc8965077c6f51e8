//! Reading: snapshots that never wait for the writer.
//!
//! A snapshot is shared by all readers until the next commit, so that a read costs its lookups
//! and not the making of a transaction. The writer drops the shared one when it commits: an old
//! snapshot would keep the pages that it can see from being used again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use redb::{Key, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable};
use redb::{TableDefinition, Value};
use steadfast_model::codec::{self, Chunk};
use steadfast_model::{
    ActivityTask, AdmittedUpdate, ComponentDigest, ComponentRecord, EventNumber, ExecutionRecord,
    LetterKey, RunKey, Seq, Timestamp,
};
use steadfast_ports::store::{Error, TaskKey, TimerKey};

use crate::fault::{corrupt, fault, undecodable};
use crate::key::{self, ActivityBytes, EventBytes, LetterBytes, PieceBytes, RunBytes, TimerBytes};
use crate::open::Open;
use crate::schema;

type Executions = ReadOnlyTable<&'static RunBytes, &'static [u8]>;
type History = ReadOnlyTable<&'static EventBytes, &'static [u8]>;

/// The state after one commit.
pub(crate) struct Snapshot {
    redb: ReadTransaction,
    executions: OnceLock<Executions>,
    history: OnceLock<History>,
}

/// Gives out the newest snapshot.
pub(crate) struct Snapshots {
    database: Arc<Open>,
    /// Commits so far. Readers that see the same number see the same state.
    commits: AtomicU64,
    newest: Mutex<Option<Arc<Snapshot>>>,
}

impl Snapshots {
    /// Snapshots of a database.
    pub(crate) fn new(database: Arc<Open>) -> Self {
        Self {
            database,
            commits: AtomicU64::new(0),
            newest: Mutex::new(None),
        }
    }

    /// A snapshot that shows every commit after which [`Self::advance`] has been called.
    pub(crate) fn newest(&self) -> Result<Arc<Snapshot>, Error> {
        if let Some(snapshot) = &*self.lock() {
            return Ok(Arc::clone(snapshot));
        }
        let commits = self.commits.load(Ordering::Acquire);
        let redb = self.database.database()?.begin_read().map_err(fault)?;
        let snapshot = Arc::new(Snapshot {
            redb,
            executions: OnceLock::new(),
            history: OnceLock::new(),
        });
        let mut newest = self.lock();
        // Began before a commit that is acknowledged by now: good for this reader, who asked
        // before, but not for those to come.
        if self.commits.load(Ordering::Acquire) == commits {
            *newest = Some(Arc::clone(&snapshot));
        }
        Ok(snapshot)
    }

    /// Makes readers see the commit just made. Called before anybody is told of it.
    pub(crate) fn advance(&self) {
        let mut newest = self.lock();
        self.commits.fetch_add(1, Ordering::AcqRel);
        let old = newest.take();
        drop(newest);
        drop(old);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Snapshot>>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Snapshot {
    pub(crate) fn open<K: Key + 'static, V: Value + 'static>(
        &self,
        table: TableDefinition<'_, K, V>,
    ) -> Result<ReadOnlyTable<K, V>, Error> {
        self.redb.open_table(table).map_err(fault)
    }

    /// The summaries.
    pub(crate) fn executions(&self) -> Result<&Executions, Error> {
        if let Some(table) = self.executions.get() {
            return Ok(table);
        }
        let table = self.open(schema::EXECUTIONS)?;
        Ok(self.executions.get_or_init(|| table))
    }

    fn history_table(&self) -> Result<&History, Error> {
        if let Some(table) = self.history.get() {
            return Ok(table);
        }
        let table = self.open(schema::HISTORY)?;
        Ok(self.history.get_or_init(|| table))
    }

    pub(crate) fn last_run(&self) -> Result<RunKey, Error> {
        let executions = self.executions()?.last().map_err(fault)?;
        let history = self.history_table()?.last().map_err(fault)?;
        let by_summary = executions.map_or(0, |(run, _)| u64::from_be_bytes(*run.value()));
        let by_history = history.map_or(0, |(key, _)| key::number(key.value(), 0));
        Ok(RunKey(by_summary.max(by_history)))
    }

    pub(crate) fn execution(&self, run: RunKey) -> Result<Option<ExecutionRecord>, Error> {
        let row = self.executions()?.get(&key::run(run)).map_err(fault)?;
        row.map(|row| decode_execution(row.value())).transpose()
    }

    pub(crate) fn current_run(&self, key: &[u8]) -> Result<Option<RunKey>, Error> {
        let row = self.open(schema::CURRENT)?.get(key).map_err(fault)?;
        Ok(row.map(|row| RunKey(u64::from_be_bytes(*row.value()))))
    }

    pub(crate) fn history(
        &self,
        run: RunKey,
        from: EventNumber,
        bytes_max: usize,
    ) -> Result<Vec<Chunk>, Error> {
        let table = self.history_table()?;
        let (low, at) = (key::event(run, EventNumber(0)), key::event(run, from));
        let before = table
            .range::<&EventBytes>(&low..=&at)
            .map_err(fault)?
            .next_back();
        // The chunk that begins at or before `from`; the one after it if `from` is the end of it.
        let start = match before.transpose().map_err(fault)? {
            Some((key, _)) => *key.value(),
            None => at,
        };
        let high = key::event(run, EventNumber(u64::MAX));
        let (mut chunks, mut bytes) = (Vec::new(), 0_usize);
        for row in table.range::<&EventBytes>(&start..=&high).map_err(fault)? {
            let (key, value) = row.map_err(fault)?;
            let chunk_bytes = value.value().len().saturating_sub(4);
            if !chunks.is_empty() && bytes.saturating_add(chunk_bytes) > bytes_max {
                break;
            }
            let chunk = decode_chunk(key.value(), value.value())?;
            if chunk.end() <= from {
                continue;
            }
            bytes = bytes.saturating_add(chunk_bytes);
            chunks.push(chunk);
        }
        Ok(chunks)
    }

    pub(crate) fn activities(&self, run: RunKey) -> Result<Vec<ActivityTask>, Error> {
        let (low, high) = (
            key::activity(run, Seq(0)),
            key::activity(run, Seq(u32::MAX)),
        );
        let table = self.open(schema::ACTIVITIES)?;
        let rows = table.range::<&ActivityBytes>(&low..=&high).map_err(fault)?;
        rows.map(|row| {
            let (_, value) = row.map_err(fault)?;
            codec::decode(value.value()).map_err(|e| undecodable("a pending activity", &e))
        })
        .collect()
    }

    pub(crate) fn updates(&self, run: RunKey) -> Result<Vec<AdmittedUpdate>, Error> {
        let (low, high) = (key::update(run, 0), key::update(run, u32::MAX));
        let table = self.open(schema::UPDATES)?;
        let rows = table.range::<&ActivityBytes>(&low..=&high).map_err(fault)?;
        rows.map(|row| {
            let (_, value) = row.map_err(fault)?;
            codec::decode(value.value()).map_err(|e| undecodable("an admitted update", &e))
        })
        .collect()
    }

    /// The number of the run's last event; 0 when it has none.
    pub(crate) fn last_event(&self, run: RunKey) -> Result<EventNumber, Error> {
        let (low, high) = (
            key::event(run, EventNumber(0)),
            key::event(run, EventNumber(u64::MAX)),
        );
        let table = self.history_table()?;
        let last = table
            .range::<&EventBytes>(&low..=&high)
            .map_err(fault)?
            .next_back();
        match last.transpose().map_err(fault)? {
            Some((key, value)) => {
                let chunk = decode_chunk(key.value(), value.value())?;
                Ok(EventNumber(chunk.end().0.saturating_sub(1)))
            }
            None => Ok(EventNumber(0)),
        }
    }

    pub(crate) fn timers(
        &self,
        after: Option<TimerKey>,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<TimerKey>, Error> {
        let start = after.map_or([0; 21], |after| key::timer(&after));
        let end = key::timer_end(until);
        if start > end {
            return Ok(Vec::new());
        }
        let table = self.open(schema::TIMERS)?;
        let rows = table.range::<&TimerBytes>(&start..=&end).map_err(fault)?;
        rows.map(|row| {
            let (key, _) = row.map_err(fault)?;
            key::read_timer(key.value()).ok_or_else(|| corrupt("a due time of unknown kind"))
        })
        .filter(|timer| timer.as_ref().map_or(true, |timer| Some(*timer) != after))
        .take(limit)
        .collect()
    }

    pub(crate) fn ready(&self, after: Option<RunKey>, limit: usize) -> Result<Vec<RunKey>, Error> {
        let start = match after {
            None => 0,
            Some(RunKey(u64::MAX)) => return Ok(Vec::new()),
            Some(RunKey(after)) => after + 1,
        };
        let table = self.open(schema::READY)?;
        let rows = table
            .range::<&RunBytes>(&start.to_be_bytes()..)
            .map_err(fault)?;
        rows.take(limit)
            .map(|row| Ok(RunKey(u64::from_be_bytes(*row.map_err(fault)?.0.value()))))
            .collect()
    }

    pub(crate) fn letters(
        &self,
        after: Option<LetterKey>,
        limit: usize,
    ) -> Result<Vec<LetterKey>, Error> {
        let start = after.map_or([0; 13], |after| key::letter(&after));
        let table = self.open(schema::OUTBOX)?;
        let rows = table.range::<&LetterBytes>(&start..).map_err(fault)?;
        rows.map(|row| {
            let (key, _) = row.map_err(fault)?;
            key::read_letter(key.value()).ok_or_else(|| corrupt("a letter of unknown kind"))
        })
        .filter(|letter| {
            letter
                .as_ref()
                .map_or(true, |letter| Some(*letter) != after)
        })
        .take(limit)
        .collect()
    }

    pub(crate) fn tasks(
        &self,
        after: Option<&TaskKey>,
        limit: usize,
    ) -> Result<Vec<TaskKey>, Error> {
        let after = after.map(key::task).unwrap_or_default();
        let table = self.open(schema::TASKS)?;
        let rows = table.range::<&[u8]>(after.as_slice()..).map_err(fault)?;
        let mut tasks = Vec::new();
        for row in rows {
            let (key, _) = row.map_err(fault)?;
            if key.value() == after.as_slice() {
                continue;
            }
            if tasks.len() >= limit {
                break;
            }
            tasks.push(key::read_task(key.value()).ok_or_else(|| corrupt("a malformed task"))?);
        }
        Ok(tasks)
    }

    pub(crate) fn components(&self) -> Result<Vec<ComponentRecord>, Error> {
        let table = self.open(schema::COMPONENTS)?;
        let rows = table.iter().map_err(fault)?;
        rows.map(|row| {
            let (_, value) = row.map_err(fault)?;
            codec::decode(value.value()).map_err(|e| undecodable("a component's record", &e))
        })
        .collect()
    }

    pub(crate) fn component_bytes(
        &self,
        component: ComponentDigest,
    ) -> Result<Option<Vec<u8>>, Error> {
        let Some(record) = self
            .open(schema::COMPONENTS)?
            .get(&component.0)
            .map_err(fault)?
        else {
            return Ok(None);
        };
        drop(record);
        let (low, high) = (
            key::piece(&component.0, 0),
            key::piece(&component.0, u32::MAX),
        );
        let mut bytes = Vec::new();
        let table = self.open(schema::PIECES)?;
        for row in table.range::<&PieceBytes>(&low..=&high).map_err(fault)? {
            bytes.extend_from_slice(row.map_err(fault)?.1.value());
        }
        Ok(Some(bytes))
    }

    pub(crate) fn route(&self, key: &[u8]) -> Result<Option<ComponentDigest>, Error> {
        let row = self.open(schema::ROUTES)?.get(key).map_err(fault)?;
        Ok(row.map(|row| ComponentDigest(*row.value())))
    }
}

/// Decodes an execution's row: a byte of flags, then the record.
pub(crate) fn decode_execution(value: &[u8]) -> Result<ExecutionRecord, Error> {
    let (_, record) = value
        .split_first()
        .ok_or_else(|| corrupt("an empty summary"))?;
    codec::decode(record).map_err(|e| undecodable("a summary", &e))
}

/// The count of events at the end of a stored chunk.
pub(crate) fn chunk_count(value: &[u8]) -> Result<u32, Error> {
    let (_, count) = value
        .split_last_chunk::<4>()
        .ok_or_else(|| corrupt("a chunk without a count"))?;
    Ok(u32::from_be_bytes(*count))
}

fn decode_chunk(key: &EventBytes, value: &[u8]) -> Result<Chunk, Error> {
    let (bytes, count) = value
        .split_last_chunk::<4>()
        .ok_or_else(|| corrupt("a chunk without a count"))?;
    let (first, count) = (key::event_number(key), u32::from_be_bytes(*count));
    Ok(Chunk {
        first,
        count,
        bytes: bytes.to_vec(),
    })
}
