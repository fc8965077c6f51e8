//! What goes into a shard and what comes out of it: two closed enums, each one screen.

use std::sync::Arc;

use steadfast_engine::decide::{Execution, Rejection, Request};
use steadfast_model::event::{Started, UpdateOutcome};
use steadfast_model::{
    ActivityTask, Event, EventNumber, ExecutionRecord, Failure, LetterKey, Payload, RunKey, Seq,
    Status, Timestamp, UpdateId,
};
use steadfast_ports::store::{self, Batch, TaskKey, TimerKey};

use crate::activation::{Finished, Job};
use crate::outbox::{Carried, Letter};

/// Names a caller who waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReplyId(pub u64);

/// Names a commit on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// What a caller asked for and got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is done, and durable.
    Done,
    /// Where the update stands; `None`: the run does not know it.
    Update(Option<UpdateProgress>),
    /// The worker's task.
    Task(Box<Assignment>),
    /// The heartbeat counts.
    Heartbeat(Beat),
    /// So many pending activities were meant.
    Count(u32),
}

/// What a worker learns from its heartbeat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Beat {
    /// True once the workflow asked for the activity's cancellation: stop, and confirm it.
    pub cancel_requested: bool,
    /// True while an operator wants no further attempt: this one may go on.
    pub paused: bool,
    /// True once an operator reset the activity: if this attempt fails, the next is the first.
    pub reset: bool,
}

impl Beat {
    /// What the worker of this task learns.
    #[must_use]
    pub fn of(task: &ActivityTask) -> Self {
        Self {
            cancel_requested: task.cancel_requested,
            paused: task.control.paused.is_some(),
            reset: task.control.reset_requested,
        }
    }
}

/// Where an update stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateProgress {
    /// It waits for the workflow's validator.
    Admitted,
    /// The validator let it in, and the activation that was told of it is over.
    Accepted,
    /// Its handler has ended.
    Completed(UpdateOutcome),
    /// Its handler has ended: the event holds the outcome.
    CompletedAt(EventNumber),
    /// The validator refused it. Nothing of it is kept.
    Refused(Failure),
    /// The run ended after it was accepted and before its handler did.
    Abandoned,
    /// The run ended before it was accepted, and the run that follows has it now.
    Moved(RunKey),
    /// The run ended before it was accepted, and none follows.
    Closed(Status),
    /// The store failed: where it stands is unknown.
    Unknown,
}

/// Why a caller did not get what it asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// There is no such run.
    #[error("there is no run {0}")]
    NoSuchRun(RunKey),
    /// The engine refused.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The workflow id was taken meanwhile.
    #[error("conflict: {0}")]
    Conflict(String),
    /// The store failed. Whether the request took effect is unknown: ask again with the same
    /// request id.
    #[error("unavailable: {0}")]
    Unavailable(String),
}

/// A task in the hands of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The pending activity, claimed.
    pub task: ActivityTask,
    /// Its input.
    pub input: Arc<Payload>,
    /// Whose it is.
    pub started: Arc<Started>,
}

impl Assignment {
    /// The same for every attempt of an activity and for no other: namespace, workflow id, run id
    /// and command number. What an external service should deduplicate by.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        format!(
            "{}/{}/{}/{}",
            self.started.namespace, self.started.workflow_id, self.started.run_id, self.task.seq
        )
    }
}

/// A run to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    /// Its summary.
    pub record: ExecutionRecord,
    /// Its first events: the start, and the messages that it is handed.
    pub events: Vec<Event>,
    /// The run that was current before, if any.
    pub replaces: Option<RunKey>,
    /// What reaches the run in the same batch, before its code has run.
    pub first: Option<Request>,
}

/// A run read from the store.
#[derive(Debug)]
pub struct Loaded {
    /// Its summary.
    pub record: ExecutionRecord,
    /// Its fold.
    pub execution: Execution,
    /// Its history, for the replay that usually follows.
    pub history: Vec<Event>,
    /// True if the store marks it as owed an activation.
    pub is_ready: bool,
    /// For a run that has ended: the letters that it still owes.
    pub letters: Vec<LetterKey>,
}

/// Everything that can wake a shard.
#[derive(Debug)]
pub enum Input {
    /// Begin a run.
    Start {
        /// Which.
        new: Box<NewRun>,
        /// Who waits.
        reply: ReplyId,
    },
    /// End a run and begin another one of the same workflow id, both or neither.
    Replace {
        /// The run to end.
        run: RunKey,
        /// Why.
        reason: String,
        /// Who asks.
        identity: String,
        /// The run to begin, of the same shard.
        new: Box<NewRun>,
        /// Who waits.
        reply: ReplyId,
    },
    /// Something reaches a run.
    Request {
        /// The run.
        run: RunKey,
        /// What.
        request: Box<Request>,
        /// Who waits, if anybody.
        reply: Option<ReplyId>,
    },
    /// Say where an update stands.
    UpdateStatus {
        /// The run.
        run: RunKey,
        /// The update.
        update_id: UpdateId,
        /// Who waits.
        reply: ReplyId,
    },
    /// Make what has been decided for a run durable, then answer.
    Flush {
        /// The run.
        run: RunKey,
        /// Who waits.
        reply: ReplyId,
    },
    /// Load a run and do what it is owed.
    Touch {
        /// The run.
        run: RunKey,
    },
    /// The time has come to try a blocked run again, or to begin with a delayed one.
    Retry {
        /// The run.
        run: RunKey,
    },
    /// Try a blocked run again now.
    Unblock {
        /// The run.
        run: RunKey,
        /// Who waits.
        reply: ReplyId,
    },
    /// A commit is durable, or has failed.
    Committed {
        /// Which.
        ticket: Ticket,
        /// How it went.
        result: Result<(), store::Error>,
    },
    /// A run was read.
    Loaded {
        /// The run.
        run: RunKey,
        /// What was found; `None`: there is no such run.
        result: Result<Option<Box<Loaded>>, store::Error>,
    },
    /// A guest blocked, ended or failed.
    Finished {
        /// The run.
        run: RunKey,
        /// Which activation of it.
        generation: u64,
        /// What came of it.
        finished: Box<Finished>,
    },
    /// Due times were read.
    TimersLoaded {
        /// In order.
        keys: Vec<TimerKey>,
        /// There are more after this one.
        more_after: Option<TimerKey>,
    },
    /// Due times could not be read.
    TimersFailed {
        /// Where to read on.
        after: Option<TimerKey>,
    },
    /// A letter was carried, or could not be.
    Carried {
        /// Which.
        key: LetterKey,
        /// What became of it.
        carried: Carried,
    },
    /// Stop: for the driver, which drops the shard.
    Shutdown,
    /// An activity that runs in this process ended.
    ActivityEnded {
        /// The run.
        run: RunKey,
        /// The activity.
        seq: Seq,
        /// Its attempt.
        attempt: u32,
        /// How: the request that says so.
        request: Box<Request>,
    },
}

/// Everything that a shard asks of the world.
#[derive(Debug)]
pub enum Output {
    /// Write this.
    Commit {
        /// Named in the answer.
        ticket: Ticket,
        /// What.
        batch: Batch,
    },
    /// Read this run.
    Load {
        /// Which.
        run: RunKey,
    },
    /// Read due times.
    LoadTimers {
        /// After this one, exclusively.
        after: Option<TimerKey>,
        /// Up to this time.
        until: Timestamp,
    },
    /// Tell the shard of this run to load it and do what it is owed.
    Touch {
        /// Which.
        run: RunKey,
    },
    /// Drive a guest.
    Activate {
        /// Whose.
        run: RunKey,
        /// Named in the answer.
        generation: u64,
        /// What to do.
        job: Box<Job>,
    },
    /// Carry this to another run, and say what became of it.
    Send(Box<Letter>),
    /// Run an activity in this process.
    RunActivity(Box<Assignment>),
    /// Tell a running activity of this process to stop.
    StopActivity {
        /// The run.
        run: RunKey,
        /// The activity.
        seq: Seq,
        /// Its attempt.
        attempt: u32,
    },
    /// A task waits for a worker.
    Offer(TaskKey),
    /// A task no longer waits.
    Withdraw(TaskKey),
    /// Answer a caller.
    Reply(ReplyId, Result<Answer, CallError>),
    /// A history has grown durably; whoever follows it may read on.
    Advanced {
        /// The run.
        run: RunKey,
        /// Its last durable event.
        last: EventNumber,
        /// The event that ended it, if it has ended.
        close: Option<Arc<Event>>,
    },
    /// An update has got on, durably; whoever follows it may be told.
    UpdateAdvanced {
        /// The run.
        run: RunKey,
        /// The update.
        update_id: UpdateId,
        /// Where it stands.
        progress: UpdateProgress,
    },
    /// What is known of a run's updates may be wrong: whoever follows one must ask again.
    UpdatesUnknown {
        /// The run.
        run: RunKey,
    },
    /// The guest wrote to its log.
    Log {
        /// The run.
        run: RunKey,
        /// What it wrote.
        lines: Vec<steadfast_model::command::LogLine>,
    },
}
