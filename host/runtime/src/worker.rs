//! The worker's side of the handle: poll, heartbeat, complete, fail.

use std::sync::Arc;
use std::time::Duration;

use steadfast_engine::decide::Request;
use steadfast_model::limits::POLL_TASKS_MAX;
use steadfast_model::{Failure, Payload, RunId, Seq, TaskQueue};
use steadfast_ports::store::TaskKey;
use tokio::sync::Notify;

use crate::driver::lock;
use crate::error::Error;
use crate::handle::{Handle, check_payload, long_poll_max};
use crate::message::{Answer, Assignment, Beat, Input};
use crate::operating::check_failure;
use crate::rows::HOST_WORKER_PREFIX;

/// A worker's proof that a task is its own: the run, the activity and the attempt. It survives a
/// restart of the host, and is void once the attempt is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskToken {
    /// The run.
    pub run_id: RunId,
    /// The activity.
    pub seq: Seq,
    /// The attempt.
    pub attempt: u32,
}

impl TaskToken {
    /// The token of an assignment.
    #[must_use]
    pub fn of(assignment: &Assignment) -> Self {
        Self {
            run_id: assignment.started.run_id,
            seq: assignment.task.seq,
            attempt: assignment.task.attempt,
        }
    }
}

impl std::fmt::Display for TaskToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.run_id, self.seq, self.attempt)
    }
}

impl std::str::FromStr for TaskToken {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let malformed =
            || Error::Invalid("malformed task token: pass it on as it was given".into());
        let mut parts = text.split('.');
        let (Some(run), Some(seq), Some(attempt), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(malformed());
        };
        let run_id = run.parse().ok().ok_or_else(malformed)?;
        let seq = Seq(seq.parse().ok().ok_or_else(malformed)?);
        let attempt = attempt.parse().ok().ok_or_else(malformed)?;
        Ok(Self {
            run_id,
            seq,
            attempt,
        })
    }
}

/// A claim without an answer yet. A poller that goes away in between does not take the task with
/// it: it is offered again.
struct Claim<'a> {
    handle: &'a Handle,
    key: Option<TaskKey>,
    worker: &'a str,
}

impl Claim<'_> {
    fn answered(&mut self) {
        self.key = None;
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if let Some(TaskKey { run, seq, .. }) = self.key.take() {
            let request = Request::ReleaseActivity {
                seq,
                worker: self.worker.to_owned(),
            };
            // Behind the claim in the same channel, so it finds what the claim did.
            let input = Input::Request {
                run,
                request: Box::new(request),
                reply: None,
            };
            self.handle.shared.send(run, input);
        }
    }
}

impl Handle {
    /// Takes tasks of a queue, at most `max`; waits for the first one, at most `wait`. An empty
    /// answer means that none came.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a worker name that is empty or reserved.
    pub async fn poll(
        &self,
        queue: &TaskQueue,
        worker: &str,
        max: u32,
        wait: Duration,
    ) -> Result<Vec<Assignment>, Error> {
        if worker.is_empty() || worker.starts_with(HOST_WORKER_PREFIX) {
            let text = format!("worker name {worker:?} is empty or reserved for the host");
            return Err(Error::Invalid(text));
        }
        let max = max.clamp(1, POLL_TASKS_MAX) as usize;
        let deadline = tokio::time::Instant::now() + wait.min(long_poll_max());
        let notify = self.notify_of(queue);
        loop {
            // Registered before the look, so that a task offered in between is not missed.
            let offered = notify.notified();
            tokio::pin!(offered);
            offered.as_mut().enable();
            let keys = lock(&self.shared.queues).take(queue, max);
            if !keys.is_empty() {
                let assignments = self.claim_all(keys, worker).await;
                if !assignments.is_empty() {
                    return Ok(assignments);
                }
                continue;
            }
            if tokio::time::timeout_at(deadline, offered).await.is_err() {
                return Ok(Vec::new());
            }
        }
    }

    fn notify_of(&self, queue: &TaskQueue) -> Arc<Notify> {
        let mut offered = lock(&self.shared.offered);
        // Queues that nobody polls any more are dropped, so the map stays as small as its use.
        offered.retain(|_, notify| Arc::strong_count(notify) > 1);
        offered.entry(queue.clone()).or_default().clone()
    }

    /// Claims tasks, all at once. A claim is refused when the task is no longer waiting.
    async fn claim_all(&self, keys: Vec<TaskKey>, worker: &str) -> Vec<Assignment> {
        let claims = keys.into_iter().map(|key| {
            let request = Request::ClaimActivity {
                seq: key.seq,
                worker: worker.to_owned(),
            };
            let run = key.run;
            let input = move |reply| Input::Request {
                run,
                request: Box::new(request),
                reply: Some(reply),
            };
            let mut claim = Claim {
                handle: self,
                key: Some(key.clone()),
                worker,
            };
            async move {
                let result = self.shared.call(run, input).await;
                claim.answered();
                match result {
                    Ok(Answer::Task(assignment)) => Some(*assignment),
                    Ok(
                        Answer::Done | Answer::Heartbeat(_) | Answer::Count(_) | Answer::Update(_),
                    ) => None,
                    Err(crate::message::CallError::Unavailable(_)) => {
                        // The task is still there; somebody must get it.
                        self.shared.offer(key);
                        None
                    }
                    Err(_) => None,
                }
            }
        });
        futures_util::future::join_all(claims)
            .await
            .into_iter()
            .flatten()
            .collect()
    }

    /// Says that a worker is alive, and tells it what others want of the activity.
    ///
    /// # Errors
    /// [`Error::TaskGone`] when the attempt is over.
    pub async fn heartbeat(
        &self,
        token: TaskToken,
        details: Option<Payload>,
    ) -> Result<Beat, Error> {
        if let Some(details) = &details {
            check_payload("heartbeat details", details)?;
        }
        let TaskToken { seq, attempt, .. } = token;
        match self
            .task_request(
                token,
                Request::Heartbeat {
                    seq,
                    attempt,
                    details,
                },
            )
            .await?
        {
            Answer::Heartbeat(beat) => Ok(beat),
            Answer::Done | Answer::Task(_) | Answer::Count(_) | Answer::Update(_) => {
                Ok(Beat::default())
            }
        }
    }

    /// Says that an attempt goes on outside of its worker: it is reported later, with the same
    /// token or by the activity's id. Its limits still count.
    ///
    /// # Errors
    /// [`Error::TaskGone`] when the attempt is over.
    pub async fn defer(&self, token: TaskToken) -> Result<(), Error> {
        let TaskToken { seq, attempt, .. } = token;
        self.task_request(token, Request::DeferActivity { seq, attempt })
            .await?;
        Ok(())
    }

    /// Hands in an activity's result.
    ///
    /// # Errors
    /// [`Error::TaskGone`] when the attempt is over, [`Error::TooLarge`].
    pub async fn complete(&self, token: TaskToken, result: Payload) -> Result<(), Error> {
        check_payload("result", &result)?;
        let TaskToken { seq, attempt, .. } = token;
        self.task_request(
            token,
            Request::CompleteActivity {
                seq,
                attempt,
                result,
            },
        )
        .await?;
        Ok(())
    }

    /// Hands in an attempt's failure. A failure whose outermost frame is a cancellation confirms a
    /// cancel request.
    ///
    /// # Errors
    /// [`Error::TaskGone`] when the attempt is over, [`Error::TooLarge`].
    pub async fn fail(&self, token: TaskToken, failure: Failure) -> Result<(), Error> {
        check_failure(&failure)?;
        let TaskToken { seq, attempt, .. } = token;
        self.task_request(
            token,
            Request::FailActivity {
                seq,
                attempt,
                failure,
            },
        )
        .await?;
        Ok(())
    }

    async fn task_request(&self, token: TaskToken, request: Request) -> Result<Answer, Error> {
        let run = token.run_id.key();
        let gone = |text: &str| Error::TaskGone(text.to_owned());
        let record = self.shared.store.execution(run)?;
        let record = record.filter(|record| record.run_id == token.run_id);
        let record = record.ok_or_else(|| gone("its run does not exist"))?;
        if record.status.is_closed() {
            return Err(gone("its run has ended"));
        }
        let input = |reply| Input::Request {
            run,
            request: Box::new(request),
            reply: Some(reply),
        };
        match self.shared.call(run, input).await.map_err(Error::from) {
            Err(Error::Closed { .. }) => Err(gone("its run has ended")),
            other => other,
        }
    }
}
