//! What waits for the writer thread: a bounded queue that hands over everything at once.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use steadfast_ports::store::{Done, Error, FencingToken};

use crate::op::Encoded;

/// Answers [`Request::Acquire`].
pub(crate) type Acquired = Box<dyn FnOnce(Result<FencingToken, Error>) + Send>;

/// One thing for the writer to do.
pub(crate) enum Request {
    /// Write a batch.
    Commit(Encoded, Done),
    /// Tell a caller that its batch did not fit into the queue: the refusal waits its turn, so
    /// that answers come in the order of submission and from the writer's thread.
    Refuse(Done),
    /// Take ownership.
    Acquire(Acquired),
}

impl Request {
    fn bytes(&self) -> usize {
        match self {
            Self::Commit(batch, _) => batch.bytes,
            Self::Refuse(_) | Self::Acquire(_) => 0,
        }
    }
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Request>,
    bytes: usize,
    closed: bool,
}

/// The queue.
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    bytes_max: usize,
}

impl Queue {
    /// A queue that holds batches of at most `bytes_max` bytes, or one larger one.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            bytes_max,
        }
    }

    /// Adds a request; gives it back when the queue is closed.
    pub(crate) fn push(&self, request: Request) -> Result<(), Request> {
        let bytes = request.bytes();
        let mut state = self.lock();
        if state.closed {
            return Err(request);
        }
        let bytes_waiting = state.bytes.saturating_add(bytes);
        let fits = state.bytes == 0 || bytes_waiting <= self.bytes_max;
        match request {
            Request::Commit(_, done) if !fits => state.waiting.push_back(Request::Refuse(done)),
            Request::Commit(..) | Request::Refuse(_) | Request::Acquire(_) => {
                state.bytes = bytes_waiting;
                state.waiting.push_back(request);
            }
        }
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Waits for requests and takes all there are; `None` once the queue is closed and empty.
    pub(crate) fn take(&self) -> Option<VecDeque<Request>> {
        let mut state = self.lock();
        while state.waiting.is_empty() {
            if state.closed {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.bytes = 0;
        Some(std::mem::take(&mut state.waiting))
    }

    /// Lets no more requests in; the writer still answers those that wait.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that runs under the lock panics half way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(bytes: usize) -> Request {
        let batch = Encoded {
            fence: FencingToken(0),
            ops: Vec::new(),
            bytes,
        };
        Request::Commit(batch, Box::new(|_| ()))
    }

    #[test]
    fn a_full_queue_refuses_in_turn_and_a_closed_one_gives_back() {
        let queue = Queue::new(100);
        for bytes in [150, 1, 0] {
            assert!(queue.push(commit(bytes)).is_ok());
        }
        let kinds: Vec<bool> = queue
            .take()
            .unwrap()
            .iter()
            .map(|r| matches!(r, Request::Commit(..)))
            .collect();
        assert_eq!(kinds, [true, false, false]);
        assert!(queue.push(commit(1)).is_ok());
        queue.close();
        assert!(queue.push(commit(1)).is_err());
        assert_eq!(queue.take().map(|requests| requests.len()), Some(1));
        assert!(queue.take().is_none());
    }
}
