//! The operations of a script.

use crate::guest::{CallOptions, ChildCallOptions};

/// One operation of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Runs an activity and waits for it. Observes the result or the failure.
    Activity {
        /// What to run.
        activity_type: String,
        /// Its input.
        input: String,
        /// How to run it.
        options: CallOptions,
    },
    /// Runs many activities at once with the inputs `0`, `1`, ... and waits for all. Observes
    /// their results in the order of their inputs.
    Parallel {
        /// What to run.
        activity_type: String,
        /// How many.
        count: u32,
    },
    /// Waits so many milliseconds. Observes `fired`.
    Sleep(u64),
    /// Waits so many milliseconds, or for a cancel request, which cancels the timer. Observes
    /// `fired`, or `cancel:` and the reason.
    SleepOrCancel(u64),
    /// Starts a timer of so many milliseconds and cancels it at once. Waits for nothing.
    StartTimerAndCancel(u64),
    /// Starts an activity and a timer; the first to be resolved wins and the other is cancelled.
    /// Observes `timer`, or `activity:` and the result.
    RaceTimerActivity {
        /// The timer, in milliseconds.
        timer_ms: u64,
        /// What to run.
        activity_type: String,
        /// Its input.
        input: String,
    },
    /// Waits for a signal of that name, or takes the oldest that has come. Observes its payload.
    WaitSignal(String),
    /// Draws eight random bytes, observes them, and runs an activity of this type with them as
    /// its input.
    Random(String),
    /// Asks for the time, observes it, and runs an activity of this type with it as its input.
    Now(String),
    /// Asks whether the patch of this id applies, observes the answer, and runs an activity of
    /// the first type if it does and of the second if not.
    Patched(String, String, String),
    /// Marks the patch of this id as deprecated.
    DeprecatePatch(String),
    /// Computes a value, one that differs in every instance, and observes what was recorded.
    SideEffect(String),
    /// Waits for a cancel request. Observes its reason.
    WaitCancel,
    /// Waits until so many updates were accepted over the run's life.
    WaitUpdates(usize),
    /// Waits until every accepted update is completed, those of the name `never` left aside.
    WaitHandlers,
    /// Writes a line to the log.
    Log(String),
    /// Traps. The same script traps again at every try.
    Trap(String),
    /// Ends the workflow with the record as its result. The end of a script does so too.
    Complete,
    /// Goes on in a new run, with the number that the input holds, less one, as its input; the
    /// signals that nobody took go along. At zero, or when the input is no number, the script goes
    /// on instead. The input is a JSON number.
    ContinueAsNew,
    /// Changes the memo: sets this name to a JSON text, or takes the name away.
    UpsertMemo(String, Option<String>),
    /// Starts a child of this type with this input and waits for its end. Observes its result, or
    /// how else it ended.
    Child(String, String, ChildCallOptions),
    /// Starts a child and waits until it has started. Observes `started` or why not.
    StartChild(String, String, ChildCallOptions),
    /// Starts a child and waits for nothing.
    BeginChild(String, String, ChildCallOptions),
    /// Cancels the child that was started last, and waits for its end.
    CancelChild,
    /// Signals another execution by its workflow id, with this name and JSON text, and waits for
    /// the answer.
    SignalExternal(String, String, String),
    /// The same, for an execution that must be a child of this one.
    SignalChild(String, String, String),
    /// Asks another execution to cancel itself, and waits for the answer.
    CancelExternal(String),
    /// Ends the workflow with a failure of this code.
    Fail(String),
    /// Ends the workflow as cancelled.
    AcceptCancel,
}

impl Op {
    /// An activity with default options.
    #[must_use]
    pub fn activity(activity_type: &str, input: &str) -> Self {
        Self::Activity {
            activity_type: activity_type.to_owned(),
            input: input.to_owned(),
            options: CallOptions::default(),
        }
    }
}
