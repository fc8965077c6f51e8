//! How a run ends, and what follows it.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use steadfast_model::chain::ContinueAsNew;
use steadfast_model::child::Ward;
use steadfast_model::event::TimeoutScope;
use steadfast_model::failure::START_TO_CLOSE;
use steadfast_model::{
    EventKind, Failure, FailureKind, Frame, Payload, RetryState, RunId, Timestamp,
};

use super::Draft;
use crate::chain::{self, Cause, Closing, CronOutcome};
use crate::child::{outlives_run, ward};
use crate::decide::Rejection;

impl Draft<'_> {
    pub(super) fn close_completed(
        &mut self,
        result: Payload,
        at: Timestamp,
        closing: Option<Box<Closing>>,
        now: Timestamp,
    ) {
        let next = chain::next_cron(&self.execution.state.started, closing.as_deref());
        let cause = next.map(|at| Cause::Cron {
            at,
            outcome: CronOutcome::Completed(result.clone()),
        });
        let new_run_id = self.follow(cause, closing, now);
        let kind = EventKind::WorkflowExecutionCompleted { result, new_run_id };
        self.close(kind, at);
    }

    pub(super) fn close_failed(
        &mut self,
        failure: Failure,
        at: Timestamp,
        closing: Option<Box<Closing>>,
        now: Timestamp,
    ) {
        let (cause, retry_state) = self.after_failure(&failure, closing.as_deref(), now);
        let new_run_id = self.follow(cause, closing, now);
        let kind = EventKind::WorkflowExecutionFailed {
            failure,
            new_run_id,
            retry_state: Some(retry_state),
        };
        self.close(kind, at);
    }

    /// Ends a run whose time is over.
    pub(crate) fn run_due(
        &mut self,
        closing: Option<Box<Closing>>,
        now: Timestamp,
    ) -> Result<(), Rejection> {
        let state = &self.execution.state;
        let (due, scope) = chain::deadline(&state.started, state.started_at)
            .filter(|(due, _)| *due <= now)
            .ok_or(Rejection::RunNotDue)?;
        if closing.is_none() && chain::may_follow_timeout(&state.started) {
            return Err(Rejection::Unminted);
        }
        self.time_out(due, scope, closing, now);
        Ok(())
    }

    /// A run that took too long is killed. Its next attempt, or the next run of its schedule,
    /// follows unless the whole chain is out of time.
    fn time_out(
        &mut self,
        due: Timestamp,
        scope: TimeoutScope,
        closing: Option<Box<Closing>>,
        now: Timestamp,
    ) {
        let (cause, retry_state) = match scope {
            TimeoutScope::Execution => (None, RetryState::Timeout),
            TimeoutScope::Run => {
                let message = format!("the run did not end before {due}");
                let frame = Frame::new(FailureKind::Timeout, START_TO_CLOSE, message);
                self.after_failure(&Failure::new(frame), closing.as_deref(), now)
            }
        };
        let new_run_id = self.follow(cause, closing, now);
        let kind = EventKind::WorkflowExecutionTimedOut {
            scope,
            new_run_id,
            retry_state,
        };
        self.close(kind, now);
    }

    pub(super) fn continue_as_new(
        &mut self,
        next: Box<ContinueAsNew>,
        at: Timestamp,
        closing: Closing,
        now: Timestamp,
    ) {
        let started = &self.execution.state.started;
        let workflow_type = next.workflow_type.clone();
        let workflow_type = workflow_type.unwrap_or_else(|| started.workflow_type.clone());
        let input = next.input.clone();
        let new_run_id = closing.minted.run_id;
        let cause = Cause::ContinueAsNew(next);
        self.follow(Some(cause), Some(Box::new(closing)), now);
        let not_before = self.not_before();
        let kind = EventKind::WorkflowExecutionContinuedAsNew {
            new_run_id,
            workflow_type,
            input,
            not_before,
        };
        self.close(kind, at);
    }

    /// When the code of the run that follows may run.
    fn not_before(&self) -> Option<Timestamp> {
        let first = self.decision.successor.as_ref()?.events.first()?;
        if let EventKind::WorkflowExecutionStarted { started } = &first.kind {
            started.link.not_before
        } else {
            None
        }
    }

    /// Another attempt first; the schedule only when there is none.
    fn after_failure(
        &self,
        failure: &Failure,
        closing: Option<&Closing>,
        now: Timestamp,
    ) -> (Option<Cause>, RetryState) {
        let started = &self.execution.state.started;
        let failure_of = || failure.clone();
        match chain::next_attempt(started, failure, now) {
            Ok(wait) => {
                let failure = failure_of();
                (Some(Cause::Retry { failure, wait }), RetryState::InProgress)
            }
            Err(state) => {
                let cron = chain::next_cron(started, closing).map(|at| Cause::Cron {
                    at,
                    outcome: CronOutcome::Failed(failure_of()),
                });
                (cron, state)
            }
        }
    }

    /// Makes the run that follows and returns its id.
    fn follow(
        &mut self,
        cause: Option<Cause>,
        closing: Option<Box<Closing>>,
        now: Timestamp,
    ) -> Option<RunId> {
        let (cause, closing) = (cause?, closing?);
        let run_id = closing.minted.run_id;
        let state = &self.execution.state;
        let memo = self.memo.take().unwrap_or_else(|| state.memo.clone());
        let wards = self.wards(&closing);
        let at = now.max(self.last_time);
        let successor = chain::successor(self.execution, memo, wards, cause, *closing, at);
        self.decision.successor = Some(Box::new(successor));
        Some(run_id)
    }

    /// Children that live as long as the chain, those of earlier runs first.
    fn wards(&self, closing: &Closing) -> Vec<Ward> {
        let started = &self.execution.state.started;
        let earlier = started.link.wards.iter().enumerate();
        let earlier = earlier
            .filter(|(place, _)| !closing.ended_wards.contains(place))
            .map(|(_, ward)| ward.clone());
        let before = self.execution.state.children.iter();
        let before = before.filter(|(seq, _)| !self.children.contains_key(seq));
        let here = self.children.iter();
        let here = here.filter_map(|(seq, child)| Some((seq, child.as_ref()?)));
        let own = before
            .chain(here)
            .filter(|(_, child)| outlives_run(&child.options))
            .map(|(seq, child)| ward(started, *seq, &child.options));
        earlier.chain(own).collect()
    }
}
