//! What a workflow can ask of its host.
//!
//! Read next: `activity.rs`, `signal.rs`, `join.rs`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::activity::Activity;
use crate::cancel::Cancelled;
use crate::child::Child;
use crate::condition::WaitUntil;
use crate::continue_as_new::ContinueAsNew;
use crate::execution::Execution;
use crate::failure::Failure;
use crate::handler::{Answer, HandlersFinished};
use crate::host::{self, ChainInfo, WorkflowInfo};
use crate::payload::{Decode, Encode, Payload};
use crate::random::{self, Random};
use crate::scope::{Scope, Shielded, canceled_because};
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

    /// Answers a query: the closure reads what it shares with the workflow (an `Rc<Cell<T>>` or an
    /// `Rc<RefCell<T>>`) and returns a `Result`. It can be asked at any time from now on, also after
    /// the workflow's end. It may not schedule, start, cancel, complete or spawn anything. A second
    /// registration of a name replaces the first.
    pub fn on_query<I: Decode, R: Answer>(&self, name: &str, handler: impl Fn(I) -> R + 'static) {
        run::with(|run| run.handlers.on_query(name, handler));
    }

    /// Handles an update: the closure's future runs as a task of the workflow, and its output is
    /// what the sender gets. Register handlers before the first `.await`, or early updates are
    /// refused as unknown. An update whose input does not decode is refused.
    pub fn on_update<I, O, F>(&self, name: &str, handler: impl Fn(I) -> F + 'static)
    where
        I: Decode,
        O: Encode + 'static,
        F: Future<Output = Result<O, Failure>> + 'static,
    {
        self.on_validated_update(name, |_: &I| Ok(()), handler);
    }

    /// Handles an update as [`on_update`](Self::on_update) does, unless the validator refuses it. A
    /// refused update leaves no trace in the run. Like a query, the validator only reads.
    pub fn on_validated_update<I, O, F>(
        &self,
        name: &str,
        validator: impl Fn(&I) -> Result<(), Failure> + 'static,
        handler: impl Fn(I) -> F + 'static,
    ) where
        I: Decode,
        O: Encode + 'static,
        F: Future<Output = Result<O, Failure>> + 'static,
    {
        run::with(|run| run.handlers.on_update(name, validator, handler));
    }

    /// Returns true when every accepted update is completed. One that is not when the workflow
    /// ends is abandoned, and its sender gets a failure.
    #[must_use]
    pub fn all_handlers_finished(&self) -> bool {
        run::with(|run| run.handlers.running() == 0)
    }

    /// Returns the future of the moment when every accepted update is completed: await it before
    /// the workflow ends.
    pub fn handlers_finished(&self) -> HandlersFinished {
        HandlersFinished::default()
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

    /// Returns a new scope inside the one whose code calls this, for work that is cancelled as a
    /// whole: by [`Scope::cancel`], by a limit of time, with the scope around it, or by a cancel
    /// request.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use steadfast_sdk::{Context, Failure};
    /// # async fn trip(ctx: Context) -> Result<(), Failure> {
    /// let booking = ctx.scope().run(async move {
    ///     ctx.activity::<()>("book-hotel", &()).await?;
    ///     ctx.activity::<()>("book-flight", &()).await
    /// });
    /// let undo = move |_why| async move {
    ///     let undone: Result<(), Failure> = ctx.activity("cancel-bookings", &()).await;
    ///     drop(undone);
    /// };
    /// booking.within(Duration::from_secs(60)).cleanup(undo).await
    /// # }
    /// ```
    pub fn scope(&self) -> Scope {
        Scope::open()
    }

    /// Keeps a future going whatever happens to the scopes around it: they are cancelled, but
    /// their code is dropped only when it waits outside of the shield.
    ///
    /// What was started before, a timer or a handle, belongs to the scope around: start it in an
    /// `async` block that is given here.
    pub fn shielded<F: IntoFuture>(&self, future: F) -> Shielded<F::IntoFuture> {
        Shielded::new(future)
    }

    /// Waits until a condition on the workflow's own state is true. It is looked at now and after
    /// every event; it must not change anything.
    ///
    /// ```
    /// # use std::{cell::Cell, rc::Rc};
    /// # use steadfast_sdk::Context;
    /// # async fn gate(ctx: Context, open: Rc<Cell<u32>>) {
    /// ctx.wait_until(|| open.get() >= 3).await;
    /// # }
    /// ```
    pub fn wait_until<C: FnMut() -> bool>(&self, condition: C) -> WaitUntil<C> {
        WaitUntil::new(condition)
    }

    /// Starts a task that runs beside the workflow. What is left of it when the workflow ends is
    /// abandoned. In a scope the task belongs to the scope: cancelled with it, its handle never
    /// becomes ready.
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

    /// Returns true when this run takes the new branch of code that was changed while runs were
    /// open, false when it had passed this place before the change. The first answer counts for
    /// every later call with the same id. It waits for nothing and lets no other task run.
    ///
    /// ```
    /// # use steadfast_sdk::{Context, Failure};
    /// # async fn pay(ctx: Context, amount: u64) -> Result<(), Failure> {
    /// if ctx.patched("fraud-check") {
    ///     ctx.activity::<()>("check-fraud", &amount).await?;
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use = "the answer decides which branch a replay will take"]
    pub fn patched(&self, id: &str) -> bool {
        host::patched(id)
    }

    /// Takes the place of [`patched`](Self::patched) once no open run needs the old branch. When
    /// all runs that were started with `patched` have ended too, the call can be removed.
    pub fn deprecate_patch(&self, id: &str) {
        host::deprecate_patch(id);
    }

    /// Computes a value and records it: every replay gets the recorded value, whatever the code
    /// computes by then. For values that follow from the code, such as a rate or a table in it.
    ///
    /// # Errors
    ///
    /// A failure with the code `encode` or `decode`.
    pub fn side_effect<T: Encode + Decode>(
        &self,
        name: &str,
        compute: impl FnOnce() -> T,
    ) -> Result<T, Failure> {
        let value = compute().encode(run::spare_buffer())?;
        T::decode(host::side_effect(name, value))
    }

    /// Returns the facts about this run. They are copied from the host on each call.
    #[must_use]
    pub fn info(&self) -> WorkflowInfo {
        host::workflow_info()
    }

    /// Returns the number of events in the history so far, counting the one being delivered.
    #[must_use]
    pub fn history_length(&self) -> u64 {
        run::with(|run| run.event.get())
    }

    /// Returns true when the history is so long that the workflow should continue as new.
    #[must_use]
    pub fn is_continue_as_new_suggested(&self) -> bool {
        host::is_continue_as_new_suggested(run::with(|run| run.event.get()))
    }

    /// Returns where this run stands in its chain of runs, with the result of the last one that
    /// completed. It is copied from the host on each call.
    #[must_use]
    pub fn chain(&self) -> ChainInfo {
        host::chain()
    }

    /// Sets a value of the memo, which anybody may read.
    ///
    /// # Errors
    ///
    /// A failure with the code `encode` when the value does not encode.
    pub fn set_memo(
        &self,
        name: impl Into<String>,
        value: &(impl Encode + ?Sized),
    ) -> Result<(), Failure> {
        let value = value.encode(Vec::new())?;
        host::upsert_memo(BTreeMap::from([(name.into(), value)]));
        Ok(())
    }

    /// Takes a value out of the memo.
    pub fn remove_memo(&self, name: impl Into<String>) {
        let nothing = Payload {
            encoding: "binary/null".to_owned(),
            data: Vec::new(),
        };
        host::upsert_memo(BTreeMap::from([(name.into(), nothing)]));
    }

    /// Describes a child workflow; awaiting it starts it and waits for its end.
    pub fn child<T: Decode>(
        &self,
        workflow_type: &str,
        input: &(impl Encode + ?Sized),
    ) -> Child<T> {
        Child::new(workflow_type, input)
    }

    /// Names another execution, to signal it or to ask it to cancel itself.
    #[must_use]
    pub fn execution(&self, workflow_id: impl Into<String>) -> Execution {
        Execution::new(workflow_id.into())
    }

    /// Describes the run that follows this one; awaiting it ends this run.
    pub fn continue_as_new(&self, input: &(impl Encode + ?Sized)) -> ContinueAsNew {
        ContinueAsNew::new(input)
    }
}
