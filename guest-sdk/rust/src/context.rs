//! What a workflow can ask of its host.
//!
//! Read next: `activity.rs`, `signal.rs`, `join.rs`.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::activity::Activity;
use crate::cancel::Cancelled;
use crate::failure::Failure;
use crate::host::{self, WorkflowInfo};
use crate::payload::{Decode, Encode};
use crate::random::{self, Random};
use crate::signal::{Signal, SignalSet};
use crate::spawn::{self, JoinHandle};
use crate::time::Timestamp;
use crate::timer::Timer;
use crate::{join, run};

/// The workflow's door to its host. It has no state of its own: copy it freely.
#[derive(Clone, Copy, Debug)]
pub struct Context(());

impl Context {
    pub(crate) const fn new() -> Self {
        Self(())
    }

    /// Describes an activity of this type; awaiting it, or [`Activity::start`], schedules it.
    ///
    /// `T` is what the activity returns, usually inferred:
    /// `let receipt: Receipt = ctx.activity("charge", &order).await?;`
    pub fn activity<T: Decode>(
        &self,
        activity_type: impl Into<Cow<'static, str>>,
        input: &(impl Encode + ?Sized),
    ) -> Activity<T> {
        Activity::new(activity_type.into(), input)
    }

    /// Starts a durable timer, which counts from this call. Durations are rounded up to
    /// milliseconds. Dropping the timer cancels it.
    pub fn sleep(&self, duration: Duration) -> Timer {
        Timer::start(duration)
    }

    /// Starts a durable timer that fires at `time`, at once when that has passed.
    pub fn sleep_until(&self, time: Timestamp) -> Timer {
        Timer::start(time.since(self.now()))
    }

    /// Returns the workflow's time: that of the event being delivered. It stands still while the
    /// workflow runs.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(run::with(|run| run.now_ms.get()))
    }

    /// Returns the signals of this name, those included that have arrived already.
    #[must_use]
    pub fn signal<T: Decode>(&self, name: &str) -> Signal<T> {
        Signal::open(name)
    }

    /// Returns the signals of all these names, to be read in the order of their arrival.
    #[must_use]
    pub fn signals(&self, names: &[&'static str]) -> SignalSet {
        SignalSet::open(names)
    }

    /// Returns true when somebody has asked this run to cancel itself.
    #[must_use]
    pub fn is_cancel_requested(&self) -> bool {
        run::with(|run| run.cancel.is_requested())
    }

    /// Returns the future of a cancel request, whose output is the request's reason. To accept it,
    /// clean up and return [`Failure::canceled`].
    pub fn cancelled(&self) -> Cancelled {
        Cancelled::default()
    }

    /// Waits for a future, unless a cancel request arrives first.
    ///
    /// # Errors
    ///
    /// [`Failure::canceled`] with the request's reason; the future is then dropped.
    pub async fn or_cancelled<F: IntoFuture>(&self, future: F) -> Result<F::Output, Failure> {
        crate::select! {
            reason = self.cancelled() => Err(canceled_because(&reason)),
            output = future => Ok(output),
        }
    }

    /// Starts a task that runs beside the workflow. What is left of it when the workflow ends is
    /// abandoned.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        spawn::spawn(future)
    }

    /// Waits for a future with a limit of time; see [`join::timeout`].
    ///
    /// # Errors
    ///
    /// [`join::Elapsed`] when the limit passes first.
    pub async fn timeout<F: IntoFuture>(
        &self,
        limit: Duration,
        future: F,
    ) -> Result<F::Output, join::Elapsed> {
        join::timeout(self, limit, future).await
    }

    /// Returns the next bytes of the run's random stream.
    #[must_use]
    pub fn random_bytes(&self, length: u32) -> Vec<u8> {
        host::random_bytes(length)
    }

    /// Returns a random value of the run's stream.
    #[must_use]
    pub fn random<T: Random>(&self) -> T {
        T::random()
    }

    /// Returns a random number of the range, each with the same probability; of an empty range,
    /// its start.
    #[must_use]
    pub fn random_range(&self, range: RangeInclusive<u64>) -> u64 {
        let (start, end) = range.into_inner();
        match end.saturating_sub(start).checked_add(1) {
            Some(count) => start + random::below(count),
            None => u64::random(),
        }
    }

    /// Returns a random UUID of version 4 in its usual text form.
    #[must_use]
    pub fn uuid(&self) -> String {
        random::uuid()
    }

    /// Returns the facts about this run. They are copied from the host on each call.
    #[must_use]
    pub fn info(&self) -> WorkflowInfo {
        host::workflow_info()
    }

    /// Returns the number of events in the history so far, counting the one being delivered.
    #[must_use]
    pub fn history_length(&self) -> u64 {
        host::history_length()
    }
}

fn canceled_because(reason: &str) -> Failure {
    if reason.is_empty() {
        Failure::canceled()
    } else {
        Failure::canceled().with_message(format!("canceled: {reason}"))
    }
}
