//! What follows when a batch is durable, or has failed.

use std::sync::Arc;

use steadfast_model::{Event, RunKey, Timestamp};
use steadfast_ports::store;

use crate::message::{CallError, Input, Output, Ticket};
use crate::run::Run;
use crate::shard::{RELOAD, Shard};

impl Shard {
    pub(crate) fn committed(
        &mut self,
        ticket: Ticket,
        result: Result<(), store::Error>,
        now: Timestamp,
    ) {
        let Some(key) = self.tickets.remove(&ticket) else {
            return;
        };
        let Some(mut run) = self.runs.remove(&key) else {
            return;
        };
        match result {
            Ok(()) => {
                if let Some(mut flight) = run.committed(ticket) {
                    self.announce_updates(&run, &mut flight);
                    for (reply, result) in flight.replies {
                        self.outputs.push(Output::Reply(reply, result));
                    }
                    // A far due time was not kept in memory when it was made; by now it may be
                    // near, and read past before its row was there.
                    for key in flight.timers {
                        self.timers.arm(key);
                    }
                    self.announce(key, flight.events);
                    self.post(&mut run);
                    if let Some(next) = flight.successor {
                        self.begin_successor(*next, ticket, now);
                    }
                }
                self.settle(run, now);
            }
            Err(error) => self.commit_failed(run, &error, now),
        }
    }

    /// The run that follows is durable with the one before it.
    fn begin_successor(&mut self, mut run: Run, ticket: Ticket, now: Timestamp) {
        if let Some(flight) = run.committed(ticket) {
            self.arm_run(&run);
            self.announce(run.key(), flight.events);
        }
        self.settle(run, now);
    }

    fn announce(&mut self, run: RunKey, mut events: Vec<Event>) {
        let Some(last) = events.last().map(|event| event.number) else {
            return;
        };
        let close = events.pop_if(|event| event.kind.is_close()).map(Arc::new);
        self.outputs.push(Output::Advanced { run, last, close });
    }

    /// What is in memory may not be what is on disk: the run is read again.
    fn commit_failed(&mut self, mut run: Run, error: &store::Error, now: Timestamp) {
        let key = run.key();
        let flight = run.in_flight.take();
        let replies = flight
            .into_iter()
            .flat_map(|f| f.replies)
            .chain(run.held.drain(..));
        for (reply, _) in replies {
            let error = if let store::Error::Conflict(text) = error {
                CallError::Conflict(text.clone())
            } else {
                CallError::Unavailable(error.to_string())
            };
            self.outputs.push(Output::Reply(reply, Err(error)));
        }
        self.give_back(&mut run, error);
        self.forget(&run);
        match error {
            // The workflow id was taken: there is no such run.
            store::Error::Conflict(_) if run.durable.0 == 0 => {}
            store::Error::Poisoned(_) | store::Error::Fenced { .. } | store::Error::Closed => {
                self.fatal.get_or_insert_with(|| error.clone());
            }
            store::Error::Conflict(_)
            | store::Error::Corrupt(_)
            | store::Error::Newer { .. }
            | store::Error::Unavailable(_) => {
                tracing::warn!(run = key.0, %error, "a commit failed; the run is read again");
                self.reloads.insert((now.after(RELOAD), key));
            }
        }
    }

    /// Requests that were held back are given again when the run has been read; those that
    /// somebody waits for are that caller's to repeat.
    fn give_back(&mut self, run: &mut Run, error: &store::Error) {
        let key = run.key();
        self.outputs.push(Output::UpdatesUnknown { run: key });
        for (request, reply) in std::mem::take(&mut run.backlog) {
            match reply {
                Some(reply) => {
                    let error = CallError::Unavailable(error.to_string());
                    self.outputs.push(Output::Reply(reply, Err(error)));
                }
                None => self.delayed.entry(key).or_default().push(Input::Request {
                    run: key,
                    request: Box::new(request),
                    reply: None,
                }),
            }
        }
    }
}
