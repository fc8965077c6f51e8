//! Reads of the store for shards: runs and due times.

use steadfast_engine::decide::recover;
use steadfast_model::{EventNumber, RunKey, Timestamp};
use steadfast_ports::Store;
use steadfast_ports::store::{self, TimerKey};

use crate::message::{Input, Loaded};
use crate::outbox::letters_of;
use crate::recorded::read_history;
use crate::timer::READ_MAX;

/// Reads a run with its history.
///
/// # Errors
/// Any [`store::Error`] of a read; [`store::Error::Corrupt`] when the history does not fold.
pub fn load(store: &dyn Store, run: RunKey) -> Result<Option<Box<Loaded>>, store::Error> {
    let Some(record) = store.execution(run)? else {
        return Ok(None);
    };
    let history = read_history(store, run, EventNumber(u64::MAX))?;
    let tasks = store.activities(run)?;
    let updates = store.updates(run)?;
    let corrupt = |error| store::Error::Corrupt(format!("history of run {run}: {error}"));
    let execution = recover(run, &history, tasks, updates).map_err(corrupt)?;
    let after = run.0.checked_sub(1).map(RunKey);
    let is_ready = store.ready(after, 1)?.first() == Some(&run);
    let letters = if record.status.is_closed() {
        letters_of(store, run)?
    } else {
        Vec::new()
    };
    Ok(Some(Box::new(Loaded {
        record,
        execution,
        history,
        is_ready,
        letters,
    })))
}

/// Reads due times.
pub fn load_timers(store: &dyn Store, after: Option<TimerKey>, until: Timestamp) -> Input {
    match store.timers(after, until, READ_MAX) {
        Ok(keys) => {
            let more_after = (keys.len() == READ_MAX)
                .then(|| keys.last().copied())
                .flatten();
            Input::TimersLoaded { keys, more_after }
        }
        Err(error) => {
            tracing::error!(%error, "due times could not be read; trying again");
            Input::TimersFailed { after }
        }
    }
}
