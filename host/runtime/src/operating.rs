//! The operators' and outside systems' side of the handle: pending activities by their ids.

use std::time::Duration;

use steadfast_engine::decide::Request;
use steadfast_engine::operate::{Operation, Report, Which};
use steadfast_model::limits::{LIST_PAGE_MAX, PAYLOAD_BYTES_MAX};
use steadfast_model::{
    ActivityTask, ExecutionRecord, Failure, Millis, Namespace, RunKey, Status, Timestamp,
};
use steadfast_ports::store::ListQuery;

use crate::error::Error;
use crate::handle::{Handle, Target, blocking, check_namespace, check_payload};
use crate::message::{Answer, Beat, Input};

/// Runs that one read of the list asks for.
const RUNS_PER_PAGE: usize = 1000;

/// Reads of the list for one page of dead letters.
const PAGES_MAX: usize = 10;

/// Which pending activities need an operator: paused ones, and those that fail again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetters {
    /// Failed attempts from which on an activity counts.
    pub attempts_min: u32,
    /// Age from which on an activity whose last attempt failed counts.
    pub age_min: Millis,
    /// Only those of runs before this one: where the page before ended.
    pub before: Option<RunKey>,
    /// Most activities of a page; the last run's are complete even if they exceed it.
    pub limit: u32,
}

impl Default for DeadLetters {
    fn default() -> Self {
        Self {
            attempts_min: 10,
            age_min: Millis(3_600_000),
            before: None,
            limit: 100,
        }
    }
}

impl DeadLetters {
    fn means(&self, task: &ActivityTask, now: Timestamp) -> bool {
        let failed = task.shown_attempt().saturating_sub(1);
        let is_old = now.since(task.scheduled_at) >= self.age_min;
        task.control.paused.is_some() || (failed > 0 && (failed >= self.attempts_min || is_old))
    }
}

impl Handle {
    /// Pauses, resets or changes pending activities of a run, and says how many were meant.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown execution or activity id, [`Error::Closed`],
    /// [`Error::Invalid`] for options that make no sense.
    pub async fn operate_activities(
        &self,
        target: &Target,
        which: Which,
        operation: Operation,
        identity: String,
    ) -> Result<u32, Error> {
        let request = Request::OperateActivities {
            which,
            operation,
            identity,
            seed: self.seed(),
        };
        match self.ask(target, request).await? {
            Answer::Count(count) => Ok(count),
            Answer::Done | Answer::Task(_) | Answer::Heartbeat(_) | Answer::Update(_) => Ok(0),
        }
    }

    /// Says how the current attempt of an activity stands, by the activity's id. The answer of a
    /// heartbeat tells what others want of the activity.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown execution or an activity that is not pending,
    /// [`Error::Closed`], [`Error::TaskGone`] for a heartbeat when no attempt runs,
    /// [`Error::Invalid`] for a cancellation that the workflow did not ask for,
    /// [`Error::TooLarge`].
    pub async fn report_activity(
        &self,
        target: &Target,
        activity_id: String,
        report: Report,
    ) -> Result<Beat, Error> {
        match &report {
            Report::Complete(payload) => check_payload("result", payload)?,
            Report::Fail(failure) => check_failure(failure)?,
            Report::Cancel(Some(details)) => check_payload("cancellation details", details)?,
            Report::Heartbeat(Some(details)) => check_payload("heartbeat details", details)?,
            Report::Cancel(None) | Report::Heartbeat(None) => {}
        }
        let request = Request::ReportActivity {
            activity_id,
            report,
        };
        match self.ask(target, request).await? {
            Answer::Heartbeat(beat) => Ok(beat),
            Answer::Done | Answer::Task(_) | Answer::Count(_) | Answer::Update(_) => {
                Ok(Beat::default())
            }
        }
    }

    /// Activities that need an operator, newest execution first, and where to read on. It looks
    /// at the pending activities of every open run, a bounded number of runs at a time.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown namespace.
    pub async fn dead_letters(
        &self,
        namespace: &Namespace,
        query: DeadLetters,
    ) -> Result<(Vec<(ExecutionRecord, ActivityTask)>, Option<RunKey>), Error> {
        check_namespace(namespace)?;
        let (shared, namespace) = (self.shared.clone(), namespace.clone());
        blocking(move || {
            let now = shared.clock.now();
            let limit = query.limit.clamp(1, LIST_PAGE_MAX) as usize;
            let mut found = Vec::new();
            let mut before = query.before;
            for _ in 0..PAGES_MAX {
                let runs = shared.store.list(&ListQuery {
                    namespace: namespace.clone(),
                    status: Some(Status::Running),
                    workflow_type: None,
                    workflow_id: None,
                    blocked: false,
                    before,
                    limit: RUNS_PER_PAGE,
                })?;
                for record in &runs {
                    if found.len() >= limit {
                        return Ok((found, before));
                    }
                    let tasks = shared.store.activities(record.run)?.into_iter();
                    let dead = tasks.filter(|task| query.means(task, now));
                    found.extend(dead.map(|task| (record.clone(), task)));
                    before = Some(record.run);
                }
                if runs.len() < RUNS_PER_PAGE {
                    return Ok((found, None));
                }
            }
            Ok((found, before))
        })
        .await
    }

    async fn ask(&self, target: &Target, request: Request) -> Result<Answer, Error> {
        let record = self.record(target)?;
        if record.status.is_closed() {
            return Err(Error::Closed {
                status: record.status.name(),
            });
        }
        let run = record.run;
        let input = |reply| Input::Request {
            run,
            request: Box::new(request),
            reply: Some(reply),
        };
        Ok(self.shared.call(run, input).await?)
    }
}

/// How often a worker need say that it is alive: at four fifths of the limit, at most every
/// minute; every half minute when there is no limit. More often costs without being of use, and
/// the last details before a failure should be sent whatever the pace.
#[must_use]
pub fn heartbeat_interval(limit: Option<Millis>) -> Duration {
    let ms = limit.map_or(30_000, |limit| (limit.0 / 5 * 4).clamp(1, 60_000));
    Duration::from_millis(ms)
}

pub(crate) fn check_failure(failure: &Failure) -> Result<(), Error> {
    let bytes = failure.size_bytes();
    if bytes > PAYLOAD_BYTES_MAX {
        return Err(Error::TooLarge {
            what: "failure",
            bytes,
            limit: PAYLOAD_BYTES_MAX,
        });
    }
    Ok(())
}
