//! Reading histories: whole, or piece by piece while they are replayed, so that a replay's memory
//! does not grow with its history.

use std::sync::Arc;

use steadfast_model::{Event, EventNumber, RunKey};
use steadfast_ports::{Store, store};

/// Bytes that reading a whole history asks for at a time.
const READ_BYTES: usize = 4 * 1024 * 1024;

/// Bytes that a replay reads at a time: what stays in a core's cache, decoded.
const PIECE_BYTES: usize = 32 * 1024;

/// Reads a history up to and including event `until`.
///
/// # Errors
/// [`store::Error`] of a read; [`store::Error::Corrupt`] when chunks cannot be decoded.
pub fn read_history(
    store: &dyn Store,
    run: RunKey,
    until: EventNumber,
) -> Result<Vec<Event>, store::Error> {
    let mut events = Vec::new();
    while read_piece(
        store,
        run,
        until,
        READ_BYTES,
        EventNumber::FIRST,
        &mut events,
    )? {}
    Ok(events)
}

/// Appends events to `events`, which begins with event `first`. False at the end.
fn read_piece(
    store: &dyn Store,
    run: RunKey,
    until: EventNumber,
    bytes: usize,
    first: EventNumber,
    events: &mut Vec<Event>,
) -> Result<bool, store::Error> {
    let from = first.plus(events.len() as u64);
    if from > until {
        return Ok(false);
    }
    let before = events.len();
    for chunk in store.history(run, from, bytes)? {
        let skip = from.0.saturating_sub(chunk.first.0);
        let at = events.len();
        chunk.decode_into(events).map_err(|error| {
            store::Error::Corrupt(format!(
                "history of run {run}, event {}: {error}",
                chunk.first
            ))
        })?;
        if at == before && skip > 0 {
            events.drain(at..at + usize::try_from(skip).unwrap_or(usize::MAX));
        }
    }
    let excess = (first.0 + events.len() as u64).saturating_sub(until.0.saturating_add(1));
    events.truncate(events.len() - usize::try_from(excess).unwrap_or(events.len()));
    Ok(events.len() > before)
}

/// The recorded history that a replay has yet to see.
pub(crate) enum Recorded {
    /// It is in memory.
    Memory(Vec<Event>),
    /// It is read from the store.
    Stored {
        /// Where from.
        store: Arc<dyn Store>,
        /// Whose.
        run: RunKey,
        /// The next event to read.
        next: EventNumber,
        /// The last one.
        until: EventNumber,
    },
}

impl Recorded {
    /// The next events; none at the end.
    ///
    /// # Errors
    /// As [`read_history`].
    pub(crate) fn next(&mut self) -> Result<Vec<Event>, store::Error> {
        match self {
            Self::Memory(events) => Ok(std::mem::take(events)),
            Self::Stored {
                store,
                run,
                next,
                until,
            } => {
                let mut events = Vec::new();
                read_piece(&**store, *run, *until, PIECE_BYTES, *next, &mut events)?;
                *next = next.plus(events.len() as u64);
                Ok(events)
            }
        }
    }
}

impl std::fmt::Debug for Recorded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Memory(events) => f.debug_tuple("Memory").field(&events.len()).finish(),
            Self::Stored {
                run, next, until, ..
            } => f
                .debug_struct("Stored")
                .field("run", run)
                .field("next", next)
                .field("until", until)
                .finish_non_exhaustive(),
        }
    }
}
