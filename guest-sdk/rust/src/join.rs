//! Waiting for many futures: all of them, the first of them, or one with a limit of time.
//!
//! Everything here is deterministic. Each child has a waker of its own, so that n children cost
//! O(n) polls in total, not O(n) per event. Losers are dropped, which cancels what they started.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};

use crate::context::Context;
use crate::failure::Failure;

/// Waits for all futures and returns their outputs in the order of the futures.
///
/// The futures are started in that order when the returned one is first polled.
pub async fn join_all<I>(futures: I) -> Vec<<I::Item as IntoFuture>::Output>
where
    I: IntoIterator,
    I::Item: IntoFuture,
{
    let (mut children, mut outputs) = start_all(futures);
    while let Some((index, output)) = children.next().await {
        put(&mut outputs, index, output);
    }
    outputs.into_iter().flatten().collect()
}

/// Waits for all futures or for the first error, in the order of events; the outputs are in the
/// order of the futures.
///
/// # Errors
///
/// The first error; the other futures are dropped.
pub async fn try_join_all<I, T, E>(futures: I) -> Result<Vec<T>, E>
where
    I: IntoIterator,
    I::Item: IntoFuture<Output = Result<T, E>>,
{
    let (mut children, mut outputs) = start_all(futures);
    while let Some((index, output)) = children.next().await {
        put(&mut outputs, index, output?);
    }
    Ok(outputs.into_iter().flatten().collect())
}

/// Waits for the first of the futures and returns its output; of several that are ready at the
/// same event, the one that was woken first. The others are dropped.
///
/// It never ends when there are no futures.
pub async fn race<I>(futures: I) -> <I::Item as IntoFuture>::Output
where
    I: IntoIterator,
    I::Item: IntoFuture,
{
    let (mut children, _) = start_all::<I, ()>(futures);
    match children.next().await {
        Some((_, output)) => output,
        None => std::future::pending().await,
    }
}

/// The time limit of [`timeout`] passed. It turns into a timeout failure with `?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed(Duration);

impl Elapsed {
    pub(crate) const fn new(limit: Duration) -> Self {
        Self(limit)
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "not ready within {:?}", self.0)
    }
}

impl From<Elapsed> for Failure {
    fn from(elapsed: Elapsed) -> Self {
        Self::timeout("elapsed", elapsed.to_string())
    }
}

/// Waits for a future, but not longer than `limit` on a durable timer that starts now.
///
/// # Errors
///
/// [`Elapsed`] when the timer fires first; the future is then dropped.
pub async fn timeout<F: IntoFuture>(
    ctx: &Context,
    limit: Duration,
    future: F,
) -> Result<F::Output, Elapsed> {
    let mut future = pin!(future.into_future());
    let mut timer = pin!(ctx.sleep(limit));
    poll_fn(|task| {
        if let Poll::Ready(output) = future.as_mut().poll(task) {
            return Poll::Ready(Ok(output));
        }
        timer.as_mut().poll(task).map(|()| Err(Elapsed(limit)))
    })
    .await
}

/// The children of a wait, and an empty place for the output of each.
type Started<F, T> = (FuturesUnordered<F>, Vec<Option<T>>);

/// Starts the futures in their order.
fn start_all<I, T>(
    futures: I,
) -> Started<impl Future<Output = (usize, <I::Item as IntoFuture>::Output)>, T>
where
    I: IntoIterator,
    I::Item: IntoFuture,
{
    let children: FuturesUnordered<_> = futures
        .into_iter()
        .enumerate()
        .map(|(index, future)| {
            let future = future.into_future();
            async move { (index, future.await) }
        })
        .collect();
    let outputs = std::iter::repeat_with(|| None)
        .take(children.len())
        .collect();
    (children, outputs)
}

fn put<T>(outputs: &mut [Option<T>], index: usize, output: T) {
    if let Some(place) = outputs.get_mut(index) {
        *place = Some(output);
    }
}
