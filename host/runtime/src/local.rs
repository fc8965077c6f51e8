//! Activities that run in this process: functions registered by the program that embeds the host.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use steadfast_engine::decide::Request;
use steadfast_model::{ActivityType, Failure, Payload, RunKey, Seq};
use tokio_util::sync::CancellationToken;

use crate::message::{Assignment, Input};
use crate::worker::TaskToken;

type Run = dyn Fn(ActivityContext, Payload) -> Outcome + Send + Sync;
type Outcome = Pin<Box<dyn Future<Output = Result<Payload, Failure>> + Send>>;

/// Activity types and the functions that run them.
#[derive(Clone, Default)]
pub struct Activities {
    functions: BTreeMap<ActivityType, Arc<Run>>,
}

impl Activities {
    /// No activities.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a function under an activity type, replacing one of the same type. Tasks of this
    /// type never go to a worker outside, whatever their queue.
    ///
    /// The function runs at least once per activity. It is dropped at its next await when the
    /// workflow cancels the activity, when the attempt times out, or when the run ends.
    #[must_use]
    pub fn register<F, R>(mut self, activity_type: ActivityType, function: F) -> Self
    where
        F: Fn(ActivityContext, Payload) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Payload, Failure>> + Send + 'static,
    {
        let run = move |context, input| -> Outcome { Box::pin(function(context, input)) };
        self.functions.insert(activity_type, Arc::new(run));
        self
    }

    /// The registered types.
    #[must_use]
    pub fn types(&self) -> BTreeSet<ActivityType> {
        self.functions.keys().cloned().collect()
    }

    pub(crate) fn function(&self, activity_type: &ActivityType) -> Option<Arc<Run>> {
        self.functions.get(activity_type).cloned()
    }
}

impl fmt::Debug for Activities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.functions.keys()).finish()
    }
}

/// What a running activity may know and do.
#[derive(Clone)]
pub struct ActivityContext {
    pub(crate) assignment: Arc<Assignment>,
    pub(crate) cancellation: CancellationToken,
    pub(crate) shard: crossbeam_channel::Sender<Input>,
    pub(crate) is_deferred: Arc<AtomicBool>,
}

impl ActivityContext {
    /// The attempt, from 1; from 1 again after a reset.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.assignment.task.shown_attempt()
    }

    /// The command number of the activity within its run.
    #[must_use]
    pub fn seq(&self) -> Seq {
        self.assignment.task.seq
    }

    /// The task with everything known about it.
    #[must_use]
    pub fn assignment(&self) -> &Assignment {
        &self.assignment
    }

    /// The same for every attempt of this activity and for no other.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        self.assignment.idempotency_key()
    }

    /// Details of the last heartbeat of an earlier attempt.
    #[must_use]
    pub fn heartbeat_details(&self) -> Option<&Payload> {
        self.assignment.task.heartbeat_details.as_ref()
    }

    /// Says that the activity is alive, and where it stands.
    pub fn heartbeat(&self, details: Option<Payload>) {
        let run = self.assignment.task.run;
        let request = Request::Heartbeat {
            seq: self.seq(),
            attempt: self.assignment.task.attempt,
            details,
        };
        self.tell(run, request);
    }

    /// Says that the activity is completed later and from elsewhere, with the token returned here
    /// or by the activity's id. What the function then returns is not used, and what it held is
    /// free for others. The limits of the attempt go on, heartbeats included.
    ///
    /// Give the token away after this call: an attempt that ends before it is known to go on
    /// elsewhere would be run again after a crash.
    #[must_use = "only the token or the activity's id completes it now"]
    pub fn complete_later(&self) -> TaskToken {
        self.is_deferred.store(true, Ordering::Release);
        let request = Request::DeferActivity {
            seq: self.seq(),
            attempt: self.assignment.task.attempt,
        };
        self.tell(self.assignment.task.run, request);
        TaskToken::of(&self.assignment)
    }

    fn tell(&self, run: RunKey, request: Request) {
        let input = Input::Request {
            run,
            request: Box::new(request),
            reply: None,
        };
        // The shard is gone only when the host is shutting down.
        drop(self.shard.send(input));
    }

    /// Waits until the activity should stop.
    pub async fn cancelled(&self) {
        self.cancellation.cancelled().await;
    }
}

impl fmt::Debug for ActivityContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActivityContext")
            .field("task", &self.assignment.task)
            .finish()
    }
}
