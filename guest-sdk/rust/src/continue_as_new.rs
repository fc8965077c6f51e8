//! Going on in a new run with a fresh history.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Pending;
use std::future::{self, IntoFuture};
use std::time::Duration;

use crate::failure::Failure;
use crate::payload::{Encode, Payload};
use crate::run::{self, End};
use crate::time;

/// What the run that follows is started with. Awaiting it ends this run; the await never comes
/// back, which `match` without arms says:
///
/// ```ignore
/// match ctx.continue_as_new(&state).await {}
/// ```
///
/// Signals that no code has read move to the new run. Activities and timers of this run end with
/// it.
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct ContinueAsNew {
    input: Result<Payload, Failure>,
    workflow_type: String,
    task_queue: String,
    run_timeout: Option<Duration>,
    memo: Option<BTreeMap<String, Payload>>,
}

/// A run that goes on in a new one, with everything decided but the signals that move.
#[derive(Debug, PartialEq)]
pub(crate) struct Continued {
    pub(crate) input: Payload,
    pub(crate) workflow_type: String,
    pub(crate) task_queue: String,
    pub(crate) memo: Option<BTreeMap<String, Payload>>,
    pub(crate) settings: Vec<(String, String)>,
}

impl ContinueAsNew {
    pub(crate) fn new(input: &(impl Encode + ?Sized)) -> Self {
        Self {
            input: input.encode(run::spare_buffer()),
            workflow_type: String::new(),
            task_queue: String::new(),
            run_timeout: None,
            memo: None,
        }
    }

    /// Sets the workflow type of the new run. Default: the same.
    pub fn workflow_type(mut self, workflow_type: impl Into<String>) -> Self {
        self.workflow_type = workflow_type.into();
        self
    }

    /// Sets where activities of the new run go. Default: as before.
    pub fn task_queue(mut self, task_queue: impl Into<String>) -> Self {
        self.task_queue = task_queue.into();
        self
    }

    /// Limits the new run, and those after it. Default: as before.
    pub fn run_timeout(mut self, limit: Duration) -> Self {
        self.run_timeout = Some(limit);
        self
    }

    /// Replaces the whole memo. Default: it stays as it is now.
    pub fn memo(mut self, memo: BTreeMap<String, Payload>) -> Self {
        self.memo = Some(memo);
        self
    }

    fn end(self) -> Result<Continued, Failure> {
        let limit = self.run_timeout.map(time::to_millis);
        let setting = |ms: u64| ("run-timeout-ms".to_owned(), ms.to_string());
        Ok(Continued {
            input: self.input?,
            workflow_type: self.workflow_type,
            task_queue: self.task_queue,
            memo: self.memo,
            settings: limit.map(setting).into_iter().collect(),
        })
    }
}

impl IntoFuture for ContinueAsNew {
    type Output = Infallible;
    type IntoFuture = Pending<Infallible>;

    fn into_future(self) -> Self::IntoFuture {
        let end = match self.end() {
            Ok(continued) => End::Continued(Box::new(continued)),
            Err(failure) => End::Failed(failure),
        };
        run::with(|run| run.end_now(end));
        future::pending()
    }
}
