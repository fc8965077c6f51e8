//! The entrance for questions: queries and updates.

use std::time::Duration;

use steadfast_engine::decide::Request;
use steadfast_model::event::UpdateOutcome;
use steadfast_model::limits::QUERY_TIME_MAX;
use steadfast_model::{
    EventKind, EventNumber, ExecutionRecord, Failure, Payload, QueryName, RunId, RunKey, Status,
    UpdateId, UpdateName, WorkflowId,
};
use steadfast_ports::guest;

use crate::error::Error;
use crate::handle::{
    Handle, StartWorkflow, StartedWorkflow, Target, blocking, check_payload, long_poll_max,
};
use crate::message::{Answer, Input, UpdateProgress};
use crate::query::Question;
use crate::reading::read_page;

/// The query that the host answers itself: what the workflow understands.
pub const METADATA_QUERY: &str = "__metadata";

/// Runs of which states are not asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RejectCondition {
    /// Every run is asked.
    #[default]
    None,
    /// Only an open run is asked.
    NotOpen,
    /// Only a run that is open or has ended with a result is asked.
    NotCompletedCleanly,
}

impl RejectCondition {
    fn rejects(self, status: Status) -> bool {
        match self {
            Self::None => false,
            Self::NotOpen => status.is_closed(),
            Self::NotCompletedCleanly => status.is_closed() && status != Status::Completed,
        }
    }
}

/// What a query answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryAnswer {
    /// The run that was asked.
    pub run_id: RunId,
    /// Where it stood.
    pub status: Status,
    /// The answer.
    pub result: Payload,
    /// The last event that the answer rests on.
    pub event: EventNumber,
}

/// How far an update must have come before its sender is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WaitFor {
    /// The workflow's validator let it in.
    Accepted,
    /// Its handler has ended.
    #[default]
    Completed,
}

/// An update to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendUpdate {
    /// The handler's name.
    pub name: UpdateName,
    /// Its input.
    pub input: Payload,
    /// Within a run, the same id again is the same update; `None`: a random one.
    pub update_id: Option<UpdateId>,
    /// What to wait for...
    pub wait_for: WaitFor,
    /// ... for at most this long.
    pub wait: Duration,
    /// Who sends it; may be empty.
    pub identity: String,
}

/// How far an update has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateStage {
    /// It waits for the workflow's validator.
    Admitted,
    /// The validator let it in.
    Accepted,
    /// The validator refused it; nothing of it is kept.
    Refused(Failure),
    /// Its handler ended, or never will: see [`ABANDONED`].
    Completed(Result<Payload, Failure>),
}

/// Code of the failure that an update gets whose run ended after its acceptance and before its
/// handler did.
pub const ABANDONED: &str = "update-abandoned";

/// Where an update stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdateStatus {
    /// The execution.
    pub workflow_id: WorkflowId,
    /// The run that took it.
    pub run_id: RunId,
    /// The update.
    pub update_id: UpdateId,
    /// How far it has come.
    pub stage: UpdateStage,
}

impl Handle {
    /// Asks a run's code something. The answer rests on everything that was acknowledged before
    /// the call. Closed and blocked runs answer too; a run whose code fails answers as of the
    /// event before the one that it fails at.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::QueryRejected`] by the condition; [`Error::QueryFailed`] when
    /// the handler fails, does not exist, or its code does what a query may not;
    /// [`Error::LimitReached`] when too many queries of the run wait.
    pub async fn query(
        &self,
        target: &Target,
        name: QueryName,
        input: Payload,
        reject: RejectCondition,
    ) -> Result<QueryAnswer, Error> {
        check_payload("query input", &input)?;
        let run = self.record(target)?.run;
        self.flush(run).await?;
        let record = self.record_of(run)?;
        if reject.rejects(record.status) {
            return Err(Error::QueryRejected {
                status: record.status.name(),
            });
        }
        let until = self.shared.store.last_event(run)?;
        if name.as_str() == METADATA_QUERY {
            let result = self.metadata(&record)?;
            return Ok(answer(&record, result, until));
        }
        let question = Question {
            run,
            component: record.component,
            until,
            name: name.as_str().to_owned(),
            input,
        };
        let limit = Duration::from_millis(QUERY_TIME_MAX.0);
        let reply = tokio::time::timeout(limit, self.shared.ask(question))
            .await
            .map_err(|_elapsed| {
                query_failed(&guest::Error::Timeout {
                    limit: QUERY_TIME_MAX,
                })
            })??;
        match reply.answer {
            Ok(result) => Ok(answer(&record, result, reply.seen)),
            Err(failure) => Err(Error::QueryFailed(failure)),
        }
    }

    fn record_of(&self, run: RunKey) -> Result<ExecutionRecord, Error> {
        let missing = || Error::NotFound {
            what: "run",
            name: run.to_string(),
        };
        self.shared.store.execution(run)?.ok_or_else(missing)
    }

    /// What the run's component says about its workflow type, as JSON.
    fn metadata(&self, record: &ExecutionRecord) -> Result<Payload, Error> {
        let components = self.shared.store.components()?;
        let workflow = components
            .iter()
            .find(|component| component.digest == record.component)
            .and_then(|component| {
                let workflows = &component.description.workflows;
                workflows
                    .iter()
                    .find(|workflow| workflow.name == record.workflow_type.as_str())
            })
            .ok_or_else(|| Error::NotFound {
                what: "component",
                name: record.component.to_string(),
            })?;
        Ok(Payload::json(crate::metadata::json(workflow)))
    }

    /// Sends an update and waits for it.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::NotFound`], [`Error::LimitReached`], [`Error::TooLarge`].
    pub async fn update(&self, target: &Target, update: SendUpdate) -> Result<UpdateStatus, Error> {
        check_payload("update input", &update.input)?;
        let update_id = self.update_id(update.update_id.clone())?;
        let deadline = tokio::time::Instant::now() + update.wait.min(long_poll_max());
        loop {
            let record = self.record(target)?;
            let request = request(&update, &update_id);
            let run = record.run;
            let input = |reply| Input::Request {
                run,
                request: Box::new(request),
                reply: Some(reply),
            };
            let status = self
                .follow_update(&record, &update_id, update.wait_for, deadline, input)
                .await;
            match status {
                // The next run of the chain takes it.
                Err(Error::Closed { .. })
                    if target.run_id.is_none() && self.record(target)?.run != run => {}
                status => return status,
            }
        }
    }

    /// Waits for an update that was sent before.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the run does not know it: it was refused, or never sent to this run.
    pub async fn update_status(
        &self,
        target: &Target,
        update_id: &UpdateId,
        wait_for: WaitFor,
        wait: Duration,
    ) -> Result<UpdateStatus, Error> {
        let record = self.record(target)?;
        let deadline = tokio::time::Instant::now() + wait.min(long_poll_max());
        let (run, id) = (record.run, update_id.clone());
        let input = |reply| Input::UpdateStatus {
            run,
            update_id: id,
            reply,
        };
        self.follow_update(&record, update_id, wait_for, deadline, input)
            .await
    }

    /// Starts a workflow with an update in its first batch, or sends the update to the open run if
    /// the id has one that `join` lets it join.
    ///
    /// # Errors
    /// Those of [`Handle::start`] and [`Handle::update`]. Nothing is started without the update.
    pub async fn update_with_start(
        &self,
        start: StartWorkflow,
        update: SendUpdate,
        join: bool,
    ) -> Result<(StartedWorkflow, UpdateStatus), Error> {
        check_payload("update input", &update.input)?;
        let update_id = self.update_id(update.update_id.clone())?;
        let update = SendUpdate {
            update_id: Some(update_id.clone()),
            ..update
        };
        let first = request(&update, &update_id);
        let started = match self.start_with(start.clone(), Some(first)).await {
            Err(Error::AlreadyStarted { run_id }) if join => StartedWorkflow {
                workflow_id: start.workflow_id.ok_or_else(|| {
                    Error::Invalid("a start that may join a run names its workflow id".to_owned())
                })?,
                run_id,
                is_new: false,
            },
            started => started?,
        };
        let target = Target {
            namespace: start.namespace,
            workflow_id: started.workflow_id.clone(),
            // An update of a start that was done before goes to the run that is open now.
            run_id: started.is_new.then_some(started.run_id),
        };
        let status = self.update(&target, update).await?;
        Ok((started, status))
    }

    fn update_id(&self, given: Option<UpdateId>) -> Result<UpdateId, Error> {
        match given {
            Some(id) => Ok(id),
            None => Ok(UpdateId::new(self.random_name())?),
        }
    }

    /// Asks the shard about an update, then waits until it has come far enough.
    async fn follow_update(
        &self,
        record: &ExecutionRecord,
        update_id: &UpdateId,
        wait_for: WaitFor,
        deadline: tokio::time::Instant,
        input: impl FnOnce(crate::message::ReplyId) -> Input,
    ) -> Result<UpdateStatus, Error> {
        let (mut run, mut run_id) = (record.run, record.run_id);
        let mut progress = self
            .follow_in(run, update_id, wait_for, deadline, input)
            .await?;
        // The run ended before it let the update in, and handed it to the one that follows.
        while let UpdateProgress::Moved(next) = progress {
            (run, run_id) = (next, self.record_of(next)?.run_id);
            let id = update_id.clone();
            let input = |reply| Input::UpdateStatus {
                run,
                update_id: id,
                reply,
            };
            progress = self
                .follow_in(run, update_id, wait_for, deadline, input)
                .await?;
        }
        let stage = self.stage(run, progress).await?;
        Ok(UpdateStatus {
            workflow_id: record.workflow_id.clone(),
            run_id,
            update_id: update_id.clone(),
            stage,
        })
    }

    /// Asks about an update of one run, then waits until it has come far enough, or has moved on.
    async fn follow_in(
        &self,
        run: RunKey,
        update_id: &UpdateId,
        wait_for: WaitFor,
        deadline: tokio::time::Instant,
        input: impl FnOnce(crate::message::ReplyId) -> Input,
    ) -> Result<UpdateProgress, Error> {
        let mut follower = self.shared.follow_update(run, update_id);
        let progress = match self.shared.call(run, input).await? {
            Answer::Update(Some(progress)) => progress,
            Answer::Update(None)
            | Answer::Done
            | Answer::Task(_)
            | Answer::Count(_)
            | Answer::Heartbeat(_) => {
                return Err(Error::NotFound {
                    what: "update",
                    name: update_id.to_string(),
                });
            }
        };
        if is_enough(&progress, wait_for) {
            return Ok(progress);
        }
        let reached = follower.wait_for(|progress| is_enough(progress, wait_for));
        match tokio::time::timeout_at(deadline, reached).await {
            Ok(Some(reached)) => Ok(reached),
            Ok(None) => Err(Error::Unavailable("the host is shutting down".to_owned())),
            // Whoever is told that it is admitted may rely on it.
            Err(_elapsed) => {
                self.flush(run).await?;
                Ok(follower.latest().unwrap_or(progress))
            }
        }
    }

    async fn stage(&self, run: RunKey, progress: UpdateProgress) -> Result<UpdateStage, Error> {
        Ok(match progress {
            UpdateProgress::Admitted => UpdateStage::Admitted,
            UpdateProgress::Accepted => UpdateStage::Accepted,
            UpdateProgress::Refused(failure) => UpdateStage::Refused(failure),
            UpdateProgress::Completed(outcome) => UpdateStage::Completed(result(outcome)),
            UpdateProgress::CompletedAt(event) => {
                UpdateStage::Completed(self.outcome_at(run, event).await?)
            }
            UpdateProgress::Abandoned => UpdateStage::Completed(Err(abandoned())),
            // Whoever follows it goes on in the next run; this is for the compiler.
            UpdateProgress::Moved(_) => UpdateStage::Admitted,
            UpdateProgress::Closed(status) => {
                return Err(Error::Closed {
                    status: status.name(),
                });
            }
            UpdateProgress::Unknown => {
                let text = "the store failed; send the update again with the same id";
                return Err(Error::Unavailable(text.to_owned()));
            }
        })
    }

    async fn outcome_at(
        &self,
        run: RunKey,
        event: EventNumber,
    ) -> Result<Result<Payload, Failure>, Error> {
        let shared = self.shared.clone();
        let found = blocking(move || Ok(read_page(&*shared.store, run, event, 1)?.pop())).await?;
        match found.map(|event| event.kind) {
            Some(EventKind::WorkflowExecutionUpdateCompleted { outcome, .. }) => {
                Ok(result(outcome))
            }
            _ => Err(Error::Unavailable(format!(
                "event {event} of run {run} is not the end of an update"
            ))),
        }
    }
}

fn answer(record: &ExecutionRecord, result: Payload, event: EventNumber) -> QueryAnswer {
    QueryAnswer {
        run_id: record.run_id,
        status: record.status,
        result,
        event,
    }
}

/// A query whose code could not be run, as its caller sees it.
pub(crate) fn query_failed(error: &guest::Error) -> Error {
    Error::QueryFailed(Failure::application(
        &format!("query-{}", error.code()),
        error.to_string(),
    ))
}

fn request(update: &SendUpdate, update_id: &UpdateId) -> Request {
    Request::AdmitUpdate {
        update_id: update_id.clone(),
        name: update.name.clone(),
        input: update.input.clone(),
        identity: update.identity.clone(),
    }
}

fn result(outcome: UpdateOutcome) -> Result<Payload, Failure> {
    match outcome {
        UpdateOutcome::Success { result } => Ok(result),
        UpdateOutcome::Failure { failure } => Err(failure),
    }
}

fn abandoned() -> Failure {
    Failure::application(
        ABANDONED,
        "the run ended after it accepted the update and before the update's handler ended",
    )
}

fn is_enough(progress: &UpdateProgress, wait_for: WaitFor) -> bool {
    match progress {
        UpdateProgress::Admitted => false,
        UpdateProgress::Accepted => wait_for == WaitFor::Accepted,
        UpdateProgress::Completed(_)
        | UpdateProgress::CompletedAt(_)
        | UpdateProgress::Refused(_)
        | UpdateProgress::Abandoned
        | UpdateProgress::Moved(_)
        | UpdateProgress::Closed(_)
        | UpdateProgress::Unknown => true,
    }
}
