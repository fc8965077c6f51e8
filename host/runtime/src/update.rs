//! Updates on their way through a shard: who is held back, who is told what, and when.
//!
//! An update is admitted (a row), asked about (the validator), accepted (an event), handled and
//! completed (another event). Nothing that the code is told of may come between the validator's
//! answer and the acceptance, so that a replay can ask the validator at the same place: while an
//! update waits, other requests wait behind it.

use steadfast_engine::decide::Request;
use steadfast_model::{EventKind, EventNumber, Timestamp, UpdateId};

use crate::activation::Verdict;
use crate::message::{Answer, Output, ReplyId, UpdateProgress};
use crate::run::{InFlight, Run};
use crate::shard::Shard;

impl Shard {
    /// Admits an update, or finds out where it stands if the run knows it.
    pub(crate) fn admit(
        &mut self,
        run: &mut Run,
        update_id: &UpdateId,
        request: Request,
        reply: Option<ReplyId>,
        now: Timestamp,
    ) {
        if run.update_progress(update_id).is_none()
            && let Err(rejection) = self.take(run, request, now)
        {
            if let Some(reply) = reply {
                self.respond(run, reply, Err(rejection.into()));
            }
            return;
        }
        if let Some(reply) = reply {
            self.update_status(run, update_id, reply);
        }
    }

    /// Says where an update stands, once that is durable. That it is admitted is no promise:
    /// whoever asked learns more as a follower.
    pub(crate) fn update_status(&mut self, run: &mut Run, update_id: &UpdateId, reply: ReplyId) {
        let progress = run.update_progress(update_id);
        let is_promise = progress != Some(UpdateProgress::Admitted);
        let answer = Ok(Answer::Update(progress));
        if is_promise {
            self.respond(run, reply, answer);
        } else {
            self.outputs.push(Output::Reply(reply, answer));
        }
    }

    /// Takes in what the validator said.
    pub(crate) fn judged(&mut self, run: &mut Run, verdict: Verdict, now: Timestamp) {
        let number = verdict.number;
        let update_id = run
            .execution
            .updates
            .get(&number)
            .map(|update| update.update_id.clone());
        match (verdict.result, update_id) {
            // The run ended meanwhile: its followers are told so.
            (_, None) => {}
            (Ok(()), Some(_)) => {
                // It is admitted, so nothing can be rejected.
                drop(self.take(run, Request::AcceptUpdate { number }, now));
            }
            (Err(failure), Some(update_id)) => {
                drop(self.take(run, Request::RefuseUpdate { number }, now));
                let progress = UpdateProgress::Refused(failure);
                // If its row is on disk, a crash could still have it validated again, and let in.
                if run.in_flight.is_some() || run.is_dirty() {
                    run.wants_flush = true;
                    run.announcements.push((update_id, progress));
                } else {
                    self.update_advanced(run, update_id, progress);
                }
            }
        }
        // Between two updates the others have their turn.
        for (request, reply) in std::mem::take(&mut run.backlog) {
            self.request(run, request, reply, now);
        }
    }

    /// Gives the requests that were held back, once nothing holds them.
    pub(crate) fn let_go(&mut self, run: &mut Run, now: Timestamp) {
        while !run.holds_back()
            && let Some((request, reply)) = run.backlog.pop_front()
        {
            self.request(run, request, reply, now);
        }
    }

    /// The activation is over: the updates that it delivered count as accepted, unless it ended
    /// the run.
    pub(crate) fn announce_accepted(&mut self, run: &mut Run) {
        let delivering = run.delivering;
        let all = std::mem::take(&mut run.unannounced);
        for (number, update_id) in all {
            if number > delivering {
                run.unannounced.push((number, update_id));
            } else {
                self.update_advanced(run, update_id, UpdateProgress::Accepted);
            }
        }
    }

    /// Tells followers what a commit made durable.
    pub(crate) fn announce_updates(&mut self, run: &Run, flight: &mut InFlight) {
        for event in &flight.events {
            if let EventKind::WorkflowExecutionUpdateCompleted {
                update_id, outcome, ..
            } = &event.kind
            {
                let progress = UpdateProgress::Completed(outcome.clone());
                self.update_advanced(run, update_id.clone(), progress);
            }
        }
        for (update_id, progress) in std::mem::take(&mut flight.announcements) {
            self.update_advanced(run, update_id, progress);
        }
    }

    fn update_advanced(&mut self, run: &Run, update_id: UpdateId, progress: UpdateProgress) {
        self.outputs.push(Output::UpdateAdvanced {
            run: run.key(),
            update_id,
            progress,
        });
    }
}

impl Run {
    /// After a run was read, its code may not have been told of what was accepted last.
    pub(crate) fn find_unannounced(&mut self) {
        if !self.needs_replay {
            return;
        }
        let updates = self.execution.state.updates.iter();
        let running = updates.filter(|(_, update)| update.completed.is_none());
        self.unannounced = running
            .map(|(id, update)| (update.accepted, id.clone()))
            .collect();
        self.delivering = EventNumber(0);
    }
}

/// True for requests that may record something that the code is told of.
pub(crate) fn is_for_code(request: &Request) -> bool {
    match request {
        Request::Signal { .. }
        | Request::Cancel { .. }
        | Request::TimerDue { .. }
        | Request::ActivityDue { .. }
        | Request::ReleaseActivity { .. }
        | Request::CompleteActivity { .. }
        | Request::FailActivity { .. }
        | Request::ReportActivity { .. }
        | Request::OperateActivities { .. }
        | Request::Answer(_) => true,
        Request::Terminate { .. }
        | Request::RunDue { .. }
        | Request::ClaimActivity { .. }
        | Request::Heartbeat { .. }
        | Request::DeferActivity { .. }
        | Request::AdmitUpdate { .. }
        | Request::AcceptUpdate { .. }
        | Request::RefuseUpdate { .. }
        | Request::Yield { .. } => false,
    }
}
