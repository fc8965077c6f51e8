//! Listing runs, newest first.
//!
//! The index that leads to the fewest rows is walked backwards: all runs of a workflow id, the
//! blocked ones, the open ones, or else every run. What the index does not decide is decided by
//! reading the row.

use steadfast_model::{ExecutionRecord, RunKey, Status};
use steadfast_ports::store::{Error, ListQuery};

use crate::fault::{corrupt, fault};
use crate::key::{self, RunBytes};
use crate::reader::{Snapshot, decode_execution};
use crate::schema;

/// The rows that the query asks for.
pub(crate) fn list(snapshot: &Snapshot, query: &ListQuery) -> Result<Vec<ExecutionRecord>, Error> {
    let end = match query.before {
        None => RunKey(u64::MAX),
        Some(RunKey(0)) => return Ok(Vec::new()),
        Some(RunKey(before)) => RunKey(before - 1),
    };
    if query.limit == 0 {
        return Ok(Vec::new());
    }
    let mut page = Page {
        snapshot,
        query,
        rows: Vec::new(),
    };
    if let Some(workflow_id) = &query.workflow_id {
        let table = snapshot.open(schema::BY_ID)?;
        let low = key::by_id(&query.namespace, workflow_id, RunKey(0));
        let high = key::by_id(&query.namespace, workflow_id, end);
        let range = low.as_slice()..=high.as_slice();
        for row in table.range::<&[u8]>(range).map_err(fault)?.rev() {
            let (key, _) = row.map_err(fault)?;
            let run = key::read_by_id(key.value()).ok_or_else(|| corrupt("a malformed index"))?;
            if page.look_up(run)? {
                break;
            }
        }
    } else if query.blocked || query.status == Some(Status::Running) {
        let index = if query.blocked {
            schema::BLOCKED
        } else {
            schema::OPEN
        };
        let table = snapshot.open(index)?;
        for row in table
            .range::<&RunBytes>(..=&key::run(end))
            .map_err(fault)?
            .rev()
        {
            let (key, _) = row.map_err(fault)?;
            if page.look_up(RunKey(u64::from_be_bytes(*key.value())))? {
                break;
            }
        }
    } else {
        let table = snapshot.executions()?;
        for row in table
            .range::<&RunBytes>(..=&key::run(end))
            .map_err(fault)?
            .rev()
        {
            let (_, value) = row.map_err(fault)?;
            if page.add(decode_execution(value.value())?) {
                break;
            }
        }
    }
    Ok(page.rows)
}

struct Page<'a> {
    snapshot: &'a Snapshot,
    query: &'a ListQuery,
    rows: Vec<ExecutionRecord>,
}

impl Page<'_> {
    /// Adds the run if the query asks for it; true when the page is full.
    fn look_up(&mut self, run: RunKey) -> Result<bool, Error> {
        let record = self.snapshot.execution(run)?;
        let record = record.ok_or_else(|| corrupt("an index names a run that does not exist"))?;
        Ok(self.add(record))
    }

    fn add(&mut self, record: ExecutionRecord) -> bool {
        if matches(self.query, &record) {
            self.rows.push(record);
        }
        self.rows.len() >= self.query.limit
    }
}

fn matches(query: &ListQuery, record: &ExecutionRecord) -> bool {
    let ListQuery {
        namespace,
        status,
        workflow_type,
        workflow_id,
        blocked,
        before: _,
        limit: _,
    } = query;
    record.namespace == *namespace
        && status.is_none_or(|status| record.status == status)
        && workflow_type
            .as_ref()
            .is_none_or(|wanted| record.workflow_type == *wanted)
        && workflow_id
            .as_ref()
            .is_none_or(|wanted| record.workflow_id == *wanted)
        && (!blocked || record.blocked.is_some())
}
