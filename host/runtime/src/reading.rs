//! What callers read: descriptions, histories, results, lists.
//!
//! Reads make what memory holds of a run durable first, so nothing is shown that a crash could
//! take back.

use std::time::Duration;

use steadfast_engine::state::Pending;
use steadfast_model::child::{Parent, ParentClosePolicy};
use steadfast_model::limits::{HISTORY_PAGE_MAX, LIST_PAGE_MAX};
use steadfast_model::{
    ActivityTask, ChainOptions, Event, EventKind, EventNumber, ExecutionRecord, Link, RunId,
    RunKey, Seq, Timestamp, UpdateId, UpdateName, WorkflowId, WorkflowType,
};
use steadfast_ports::store::{self, ListQuery};

use crate::error::Error;
use crate::handle::{
    Handle, StartWorkflow, StartedWorkflow, Target, blocking, check_namespace, long_poll_max,
};
use crate::message::{Input, Loaded, ReplyId};

/// Everything known about an execution now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Its summary.
    pub record: ExecutionRecord,
    /// Events so far.
    pub history_length: u64,
    /// Activities without an outcome.
    pub activities: Vec<ActivityTask>,
    /// Timers without an outcome: command number and due time.
    pub timers: Vec<(u32, Timestamp)>,
    /// True once somebody asked it to cancel itself.
    pub cancel_requested: bool,
    /// Updates that are admitted or accepted and not completed, oldest first.
    pub updates: Vec<PendingUpdate>,
    /// What every run of its chain carries; the memo is the present one.
    pub options: ChainOptions,
    /// Where the run stands in its chain.
    pub link: Link,
    /// Children without an outcome, in the order of their starts.
    pub children: Vec<PendingChild>,
    /// Who started it as a child.
    pub parent: Option<Box<Parent>>,
}

/// A child without an outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingChild {
    /// The number of its start.
    pub seq: Seq,
    /// What it runs.
    pub workflow_type: WorkflowType,
    /// Its name.
    pub workflow_id: WorkflowId,
    /// Its first run; `None`: it has not started yet.
    pub run_id: Option<RunId>,
    /// What happens to it when this run ends.
    pub parent_close_policy: ParentClosePolicy,
}

/// An update in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingUpdate {
    /// The client's name of it.
    pub update_id: UpdateId,
    /// The handler's name.
    pub name: UpdateName,
    /// False while it waits for the validator.
    pub is_accepted: bool,
    /// Since when it stands there.
    pub since: Timestamp,
}

/// Some events of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryPage {
    /// In order.
    pub events: Vec<Event>,
    /// Where to read on; `None` after the last event of a closed run.
    pub next: Option<EventNumber>,
    /// True if the run has ended.
    pub is_closed: bool,
}

impl Handle {
    /// Everything known about an execution now.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn describe(&self, target: &Target) -> Result<Description, Error> {
        let run = self.record(target)?.run;
        self.flush(run).await?;
        let shared = self.shared.clone();
        blocking(move || {
            let missing = || Error::NotFound {
                what: "run",
                name: run.to_string(),
            };
            let loaded = crate::loading::load(&*shared.store, run)?.ok_or_else(missing)?;
            let updates = pending_updates(&loaded);
            let state = loaded.execution.state;
            let timers = state
                .pending
                .iter()
                .filter_map(|(seq, pending)| match pending {
                    Pending::Timer { fire_at } => Some((seq.0, *fire_at)),
                    Pending::Activity { .. }
                    | Pending::Child
                    | Pending::Signal
                    | Pending::Cancel => None,
                });
            let mut options = state.started.options;
            options.memo = state.memo;
            let children = state.children.iter().map(|(seq, child)| PendingChild {
                seq: *seq,
                workflow_type: child.workflow_type.clone(),
                workflow_id: child.options.workflow_id.clone(),
                run_id: child.run_id,
                parent_close_policy: child.options.parent_close_policy,
            });
            let children = if state.status.is_closed() {
                Vec::new()
            } else {
                children.collect()
            };
            Ok(Description {
                children,
                parent: state.started.parent,
                options,
                link: state.started.link,
                record: loaded.record,
                history_length: state.last.0,
                timers: timers.collect(),
                cancel_requested: state.cancel_requested,
                updates,
                activities: loaded.execution.tasks.into_values().collect(),
            })
        })
        .await
    }

    /// Makes what memory holds of a run durable, so that reads of the store see it.
    pub(crate) async fn flush(&self, run: RunKey) -> Result<(), Error> {
        self.shared
            .call(run, |reply: ReplyId| Input::Flush { run, reply })
            .await?;
        Ok(())
    }

    /// Reads events from `from`, at most `limit`. With `wait`, an open run's next event is waited
    /// for when there is none yet.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn history(
        &self,
        target: &Target,
        from: EventNumber,
        limit: u32,
        wait: Option<Duration>,
    ) -> Result<HistoryPage, Error> {
        let run = self.record(target)?.run;
        let mut follower = self.shared.follow(run);
        let page = self.history_now(run, from, limit).await;
        let page = match (page, wait) {
            (Ok(page), Some(wait)) if page.events.is_empty() && !page.is_closed => {
                let wait = wait.min(long_poll_max());
                let grown = follower.wait_for(|progress| progress.last.0 >= from.0);
                // Not grown in time, or the host stops: an empty page says so.
                drop(tokio::time::timeout(wait, grown).await);
                self.history_now(run, from, limit).await
            }
            (page, _) => page,
        };
        drop(follower);
        page
    }

    async fn history_now(
        &self,
        run: RunKey,
        from: EventNumber,
        limit: u32,
    ) -> Result<HistoryPage, Error> {
        self.flush(run).await?;
        let shared = self.shared.clone();
        let limit = limit.clamp(1, HISTORY_PAGE_MAX);
        blocking(move || {
            let from = from.max(EventNumber::FIRST);
            let events = read_page(&*shared.store, run, from, limit)?;
            let closes = |event: &Event| event.kind.is_close();
            let is_at_close = events.last().is_some_and(closes);
            let next = (!is_at_close).then(|| events.last().map_or(from, |e| e.number.plus(1)));
            let record = shared.store.execution(run)?;
            let is_closed = record.is_some_and(|record| record.status.is_closed());
            let is_past_end = events.is_empty() && is_closed;
            Ok(HistoryPage {
                events,
                next: next.filter(|_| !is_past_end),
                is_closed,
            })
        })
        .await
    }

    /// Waits for the end of a run and of those that follow it, at most `wait`, and returns the
    /// event that ended the last one. `None`: still open.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn result(&self, target: &Target, wait: Duration) -> Result<Option<Event>, Error> {
        let run = self.record(target)?.run;
        self.result_of_chain(run, wait).await
    }

    /// As [`Handle::result`], of one run only: what follows it is not waited for.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn result_of_run(
        &self,
        target: &Target,
        wait: Duration,
    ) -> Result<Option<Event>, Error> {
        let run = self.record(target)?.run;
        self.result_of(run, wait).await
    }

    /// Goes along the runs that follow, until one has ended that none follows.
    async fn result_of_chain(
        &self,
        mut run: RunKey,
        wait: Duration,
    ) -> Result<Option<Event>, Error> {
        let wait = wait.min(long_poll_max());
        // What has ended is known without waiting, whatever the limit.
        while let Some(close) = self.close_event(run)? {
            match close.kind.new_run_id() {
                Some(next) => run = next.key(),
                None => return Ok(Some(close)),
            }
        }
        let ended = async {
            loop {
                let Some(close) = self.result_of(run, wait).await? else {
                    return Ok(None);
                };
                match close.kind.new_run_id() {
                    Some(next) => run = next.key(),
                    None => return Ok(Some(close)),
                }
            }
        };
        tokio::time::timeout(wait, ended).await.unwrap_or(Ok(None))
    }

    async fn result_of(&self, run: RunKey, wait: Duration) -> Result<Option<Event>, Error> {
        let mut follower = self.shared.follow(run);
        let known = self.close_event(run)?;
        if known.is_some() || wait.is_zero() {
            return Ok(known);
        }
        let closed = follower.wait_for(|progress| progress.close.is_some());
        match tokio::time::timeout(wait.min(long_poll_max()), closed).await {
            Ok(Some(progress)) => Ok(progress.close.as_deref().cloned()),
            Ok(None) => Err(Error::Unavailable("the host is shutting down".to_owned())),
            Err(_) => Ok(None),
        }
    }

    /// Starts a workflow and waits for its end, at most `wait`: one round trip for short ones.
    ///
    /// # Errors
    /// Those of [`Handle::start`].
    pub async fn execute(
        &self,
        start: StartWorkflow,
        wait: Duration,
    ) -> Result<(StartedWorkflow, Option<Event>), Error> {
        let started = self.start(start).await?;
        let close = self.result_of_chain(started.run_id.key(), wait).await?;
        Ok((started, close))
    }

    fn close_event(&self, run: RunKey) -> Result<Option<Event>, Error> {
        let store = &*self.shared.store;
        let Some(last) = store.execution(run)?.and_then(|record| record.last_event) else {
            return Ok(None);
        };
        Ok(read_page(store, run, last, 1)?.pop())
    }

    /// Lists runs, newest first.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown namespace.
    pub async fn list(&self, mut query: ListQuery) -> Result<Vec<ExecutionRecord>, Error> {
        check_namespace(&query.namespace)?;
        query.limit = query.limit.clamp(1, LIST_PAGE_MAX as usize);
        let shared = self.shared.clone();
        blocking(move || Ok(shared.store.list(&query)?)).await
    }

    /// Bytes the store takes on disk.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn disk_bytes(&self) -> Result<u64, Error> {
        let shared = self.shared.clone();
        blocking(move || Ok(shared.store.disk_bytes()?)).await
    }
}

fn pending_updates(loaded: &Loaded) -> Vec<PendingUpdate> {
    let state = &loaded.execution.state;
    let is_running = |id: &UpdateId| {
        let update = state.updates.get(id);
        !state.status.is_closed() && update.is_some_and(|update| update.completed.is_none())
    };
    let accepted = loaded.history.iter().filter_map(|event| {
        let EventKind::WorkflowExecutionUpdateAccepted {
            update_id, name, ..
        } = &event.kind
        else {
            return None;
        };
        is_running(update_id).then(|| PendingUpdate {
            update_id: update_id.clone(),
            name: name.clone(),
            is_accepted: true,
            since: event.time,
        })
    });
    let admitted = loaded.execution.updates.values().map(|u| PendingUpdate {
        update_id: u.update_id.clone(),
        name: u.name.clone(),
        is_accepted: false,
        since: u.admitted_at,
    });
    accepted.chain(admitted).collect()
}

pub(crate) fn read_page(
    store: &dyn steadfast_ports::Store,
    run: RunKey,
    from: EventNumber,
    limit: u32,
) -> Result<Vec<Event>, Error> {
    let mut events = Vec::new();
    let mut next = from;
    let limit = limit as usize;
    while events.len() < limit {
        let chunks = store.history(run, next, 256 * 1024)?;
        if chunks.is_empty() {
            break;
        }
        for chunk in chunks {
            next = chunk.end();
            let decoded = chunk.decode_into(&mut events);
            decoded.map_err(|error| store::Error::Corrupt(error.to_string()))?;
        }
        events.retain(|event| event.number >= from);
    }
    events.truncate(limit);
    Ok(events)
}
