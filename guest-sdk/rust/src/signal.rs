//! Signals: messages that anybody may send to a run.
//!
//! A signal that nobody has asked for stays in its channel, in the order of arrival.
//! Read next: `waiters.rs`, `run.rs`.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll, Waker};

use crate::failure::Failure;
use crate::payload::{Decode, Payload};
use crate::run;
use crate::waiters::Waiters;

mod set;

pub use set::{RecvAny, SignalSet};

struct Channel {
    /// What nobody has taken, each with the number of the event that brought it: its place among
    /// the arrivals of all channels.
    unread: VecDeque<(u64, Payload)>,
    waiters: Waiters,
}

struct Channels {
    by_name: BTreeMap<String, usize>,
    channels: Vec<Channel>,
}

impl Channels {
    const fn new() -> Self {
        Self {
            by_name: BTreeMap::new(),
            channels: Vec::new(),
        }
    }

    fn open(&mut self, name: &str) -> usize {
        if let Some(index) = self.by_name.get(name) {
            return *index;
        }
        let index = self.channels.len();
        self.channels.push(Channel {
            unread: VecDeque::new(),
            waiters: Waiters::new(),
        });
        self.by_name.insert(name.to_owned(), index);
        index
    }
}

/// The channels of a run, one for each signal name.
pub(crate) struct Signals(RefCell<Channels>);

impl Signals {
    pub(crate) const fn new() -> Self {
        Self(RefCell::new(Channels::new()))
    }

    fn open(&self, name: &str) -> usize {
        self.0.borrow_mut().open(name)
    }

    /// Calls `action` with a channel; wakers that it returns are used outside of the borrow.
    fn with<R>(&self, index: usize, action: impl FnOnce(&mut Channel) -> R) -> Option<R> {
        self.0.borrow_mut().channels.get_mut(index).map(action)
    }

    /// Adds a signal to its channel and wakes the receiver that came first.
    pub(crate) fn deliver(&self, event: u64, name: &str, payload: Payload) {
        let waker = {
            let mut channels = self.0.borrow_mut();
            let index = channels.open(name);
            channels.channels.get_mut(index).and_then(|channel| {
                channel.unread.push_back((event, payload));
                channel.waiters.pop()
            })
        };
        wake(waker);
    }

    fn try_recv(&self, index: usize) -> Option<Payload> {
        self.with(index, |channel| channel.unread.pop_front())
            .flatten()
            .map(|(_, payload)| payload)
    }

    /// Returns the place of a channel's next signal among the arrivals of all channels.
    fn next_arrival(&self, index: usize) -> Option<u64> {
        self.with(index, |channel| {
            channel.unread.front().map(|(arrival, _)| *arrival)
        })
        .flatten()
    }

    /// Takes everything that nobody has taken, in the order of arrival: the event's number, the
    /// name, the payload.
    pub(crate) fn take_unread(&self) -> Vec<(u64, String, Payload)> {
        let mut channels = self.0.borrow_mut();
        let names: Vec<(String, usize)> = channels
            .by_name
            .iter()
            .map(|(name, index)| (name.clone(), *index))
            .collect();
        let mut unread = Vec::new();
        for (name, index) in names {
            if let Some(channel) = channels.channels.get_mut(index) {
                let taken = channel.unread.drain(..);
                unread.extend(taken.map(|(event, payload)| (event, name.clone(), payload)));
            }
        }
        unread.sort_by_key(|(event, _, _)| *event);
        unread
    }

    fn unread_count(&self, index: usize) -> usize {
        self.with(index, |channel| channel.unread.len())
            .unwrap_or(0)
    }

    fn wait(&self, index: usize, ticket: &mut u64, waker: &Waker) {
        self.with(index, |channel| channel.waiters.wait(ticket, waker));
    }

    /// Takes a receiver out. When it had been woken for a signal that it has not taken, the next
    /// receiver is woken in its place.
    fn leave(&self, index: usize, ticket: u64) {
        let waker = self.with(index, |channel| match channel.waiters.leave(ticket) {
            Some(waker) => (Some(waker), None),
            None if channel.unread.is_empty() => (None, None),
            None => (None, channel.waiters.pop()),
        });
        let Some((left, next)) = waker else { return };
        drop(left);
        wake(next);
    }

    /// Drops every channel for the next run of the same thread.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn reset(&self) {
        drop(self.0.replace(Channels::new()));
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// The signals of one name, read as `T`. All handles of a name read from the same channel.
pub struct Signal<T> {
    index: usize,
    kind: PhantomData<fn() -> T>,
}

impl<T> Clone for Signal<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Signal<T> {}

impl<T> std::fmt::Debug for Signal<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Signal")
            .field("index", &self.index)
            .finish()
    }
}

impl<T: Decode> Signal<T> {
    pub(crate) fn open(name: &str) -> Self {
        Self {
            index: run::with(|run| run.signals.open(name)),
            kind: PhantomData,
        }
    }

    /// Returns a future of the next signal: `Ok` of its value, or a failure with the code
    /// `decode` and the payload as details when it is not a `T`. Dropping the future takes
    /// nothing out of the channel.
    pub fn recv(&self) -> Recv<T> {
        Recv {
            signal: *self,
            ticket: 0,
        }
    }

    /// Returns the next signal if one is there, as [`recv`](Self::recv) would.
    #[must_use]
    pub fn try_recv(&self) -> Option<Result<T, Failure>> {
        run::with(|run| run.signals.try_recv(self.index)).map(T::decode)
    }

    /// Returns true when a signal is there that nobody has taken.
    #[must_use]
    pub fn has_pending(&self) -> bool {
        self.pending_count() > 0
    }

    /// Returns the number of signals that nobody has taken.
    #[must_use]
    pub fn pending_count(&self) -> usize {
        run::with(|run| run.signals.unread_count(self.index))
    }
}

/// The future of the next signal; see [`Signal::recv`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Recv<T: Decode> {
    signal: Signal<T>,
    /// The place in the channel's queue; 0 before the first wait and after the signal.
    ticket: u64,
}

impl<T: Decode> Future for Recv<T> {
    type Output = Result<T, Failure>;

    fn poll(self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let index = this.signal.index;
        let Some(payload) = run::with(|run| run.signals.try_recv(index)) else {
            run::with(|run| run.signals.wait(index, &mut this.ticket, task.waker()));
            return Poll::Pending;
        };
        this.leave();
        Poll::Ready(T::decode(payload))
    }
}

impl<T: Decode> Recv<T> {
    fn leave(&mut self) {
        if self.ticket != 0 {
            run::try_with(|run| run.signals.leave(self.signal.index, self.ticket));
            self.ticket = 0;
        }
    }
}

impl<T: Decode> Drop for Recv<T> {
    fn drop(&mut self) {
        self.leave();
    }
}
