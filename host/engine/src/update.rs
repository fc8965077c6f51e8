//! What becomes of an update: admitted, accepted or refused, completed.

use alloc::string::String;

use steadfast_model::event::UpdateOutcome;
use steadfast_model::limits::{UPDATES_IN_FLIGHT_BYTES_MAX, UPDATES_IN_FLIGHT_MAX, UPDATES_MAX};
use steadfast_model::{AdmittedUpdate, EventKind, Payload, Timestamp, UpdateId, UpdateName};

use crate::decide::{Rejection, Request, UpdateChange};
use crate::draft::Draft;

impl Draft<'_> {
    /// Decides a request about an update; others change nothing.
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "requests about other things do not come here"
    )]
    pub(crate) fn update(&mut self, request: Request, now: Timestamp) -> Result<(), Rejection> {
        match request {
            Request::AdmitUpdate {
                update_id,
                name,
                input,
                identity,
            } => self.admit(update_id, name, input, identity, now),
            Request::AcceptUpdate { number } => {
                let update = self.admitted(number)?.clone();
                let kind = EventKind::WorkflowExecutionUpdateAccepted {
                    update_id: update.update_id,
                    name: update.name,
                    input: update.input,
                    identity: update.identity,
                };
                self.record(kind, now);
                self.decision.updates.push(UpdateChange::Remove(number));
                Ok(())
            }
            Request::RefuseUpdate { number } => {
                self.admitted(number)?;
                self.decision.updates.push(UpdateChange::Remove(number));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn admitted(&self, number: u32) -> Result<&AdmittedUpdate, Rejection> {
        let update = self.execution.updates.get(&number);
        update.ok_or(Rejection::NoSuchUpdate(number))
    }

    /// The same id again is the same update, wherever it stands.
    fn admit(
        &mut self,
        update_id: UpdateId,
        name: UpdateName,
        input: Payload,
        identity: String,
        now: Timestamp,
    ) -> Result<(), Rejection> {
        let (state, admitted) = (&self.execution.state, &self.execution.updates);
        let is_known = state.updates.contains_key(&update_id)
            || admitted
                .values()
                .any(|update| update.update_id == update_id);
        if is_known {
            return Ok(());
        }
        if state.updates.len() + admitted.len() >= UPDATES_MAX {
            return Err(Rejection::TooManyUpdates);
        }
        if state.updates_running + admitted.len() >= UPDATES_IN_FLIGHT_MAX {
            return Err(Rejection::TooManyUpdatesInFlight);
        }
        let waiting: usize = admitted.values().map(|u| u.input.size_bytes()).sum();
        let bytes = state.updates_running_bytes + waiting;
        if bytes + input.size_bytes() > UPDATES_IN_FLIGHT_BYTES_MAX {
            return Err(Rejection::UpdatesTooLarge);
        }
        let last = admitted.last_key_value();
        let number = last.map_or(1, |(number, _)| number.saturating_add(1));
        self.decision
            .updates
            .push(UpdateChange::Put(AdmittedUpdate {
                run: self.execution.run,
                number,
                update_id,
                name,
                input,
                identity,
                admitted_at: now,
            }));
        Ok(())
    }

    /// Answers an accepted update; one that is not running stays as it is.
    pub(crate) fn complete_update(
        &mut self,
        update_id: UpdateId,
        outcome: UpdateOutcome,
        at: Timestamp,
    ) {
        let Some(known) = self.execution.state.updates.get(&update_id) else {
            return;
        };
        if known.completed.is_some() || !self.completed.insert(update_id.clone()) {
            return;
        }
        let kind = EventKind::WorkflowExecutionUpdateCompleted {
            update_id,
            accepted: known.accepted,
            outcome,
        };
        self.record(kind, at);
    }
}
