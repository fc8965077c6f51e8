//! Signals of several names, read in the order of their arrival.

use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use crate::payload::Payload;
use crate::run;

/// The signals of several names. Where `select!` over single signals prefers a name, a set keeps
/// the order in which the signals arrived. Its channels are those of [`crate::Signal`].
#[derive(Clone, Debug)]
pub struct SignalSet {
    /// Each name with its channel.
    channels: Vec<(&'static str, usize)>,
}

impl SignalSet {
    pub(crate) fn open(names: &[&'static str]) -> Self {
        let open = |name: &&'static str| (*name, run::with(|run| run.signals.open(name)));
        Self {
            channels: names.iter().map(open).collect(),
        }
    }

    /// Returns a future of the next signal of any of the names: its name and its payload, to be
    /// read with [`crate::Decode`]. Dropping the future takes nothing out of the channels.
    pub fn recv(&self) -> RecvAny<'_> {
        RecvAny {
            set: self,
            tickets: vec![0; self.channels.len()],
        }
    }

    /// Returns the next signal if one is there.
    #[must_use]
    pub fn try_recv(&self) -> Option<(&'static str, Payload)> {
        run::with(|run| {
            let arrived = self.channels.iter().filter_map(|(name, index)| {
                run.signals
                    .next_arrival(*index)
                    .map(|arrival| (arrival, *name, *index))
            });
            let (_, name, index) = arrived.min()?;
            run.signals.try_recv(index).map(|payload| (name, payload))
        })
    }
}

/// The future of the next signal of a set; see [`SignalSet::recv`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct RecvAny<'a> {
    set: &'a SignalSet,
    /// The place in each channel's queue; 0 before the first wait.
    tickets: Vec<u64>,
}

impl Future for RecvAny<'_> {
    type Output = (&'static str, Payload);

    fn poll(self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Some(signal) = this.set.try_recv() {
            this.leave();
            return Poll::Ready(signal);
        }
        run::with(|run| {
            for ((_, index), ticket) in this.set.channels.iter().zip(&mut this.tickets) {
                run.signals.wait(*index, ticket, task.waker());
            }
        });
        Poll::Pending
    }
}

impl RecvAny<'_> {
    fn leave(&mut self) {
        for ((_, index), ticket) in self.set.channels.iter().zip(&mut self.tickets) {
            if *ticket != 0 {
                run::try_with(|run| run.signals.leave(*index, *ticket));
                *ticket = 0;
            }
        }
    }
}

impl Drop for RecvAny<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}
