//! Updates of the simulated client: each is sent until its end is known.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_engine::decide::{Rejection, Request};
use steadfast_model::event::UpdateOutcome;
use steadfast_model::{Event, EventKind, EventNumber, Payload, RunKey, UpdateId, UpdateName};
use steadfast_runtime::message::{Answer, CallError, Input, ReplyId, UpdateProgress};

use crate::client::{Client, Todo};
use crate::world::World;

/// One update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// Whom.
    pub workflow: u64,
    /// Which of its updates.
    pub index: usize,
    /// The handler's name.
    pub name: String,
    /// Its input.
    pub input: String,
}

impl Update {
    fn id(&self) -> UpdateId {
        UpdateId::new(format!("update-{}-{}", self.workflow, self.index)).expect("a name")
    }
}

/// What the client knows of its updates.
#[derive(Debug, Default)]
pub struct Updates {
    waiting: BTreeMap<ReplyId, (RunKey, UpdateId)>,
    /// Sent, and not ended as far as the client knows.
    followed: BTreeMap<(RunKey, UpdateId), Update>,
    /// Told that it was accepted.
    accepted: BTreeSet<(RunKey, UpdateId)>,
    /// Told how it ended.
    ended: BTreeMap<(RunKey, UpdateId), UpdateProgress>,
}

impl Updates {
    pub(crate) fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.followed.is_empty()
    }

    pub(crate) fn is_waiting(&self, id: ReplyId) -> bool {
        self.waiting.contains_key(&id)
    }

    /// Answers on their way are gone.
    pub(crate) fn host_died(&mut self) -> Vec<Todo> {
        self.waiting.clear();
        self.lost(|_| true)
    }

    /// Nobody will tell how these updates end: they are to be sent again.
    pub(crate) fn lost(&mut self, whose: impl Fn(RunKey) -> bool) -> Vec<Todo> {
        let all = std::mem::take(&mut self.followed);
        let (lost, kept): (BTreeMap<_, _>, BTreeMap<_, _>) =
            all.into_iter().partition(|((run, _), _)| whose(*run));
        self.followed = kept;
        lost.into_values().map(Todo::Update).collect()
    }

    /// Checks what the client was told against the histories.
    pub(crate) fn check(&self, seed: u64, history_of: impl Fn(RunKey) -> Vec<Event>) {
        for (run, id) in &self.accepted {
            let times = accepted(&history_of(*run), id);
            assert_eq!(
                times, 1,
                "seed {seed}: update {id} was accepted {times} times by run {run}"
            );
        }
        for ((run, id), progress) in &self.ended {
            let history = history_of(*run);
            let recorded = outcome(&history, id);
            let times = accepted(&history, id);
            let is_told = match progress {
                UpdateProgress::Completed(told) => recorded.is_some_and(|(_, o)| o == *told),
                UpdateProgress::CompletedAt(told) => recorded.is_some_and(|(n, _)| n == *told),
                UpdateProgress::Refused(_) | UpdateProgress::Closed(_) => times == 0,
                UpdateProgress::Abandoned => times == 1 && recorded.is_none(),
                UpdateProgress::Admitted
                | UpdateProgress::Accepted
                | UpdateProgress::Moved(_)
                | UpdateProgress::Unknown => false,
            };
            assert!(
                is_told,
                "seed {seed}: the client was told {progress:?} of update {id} of run {run}, which \
                 was accepted {times} times"
            );
        }
    }
}

fn accepted(history: &[Event], id: &UpdateId) -> usize {
    let is_it = |event: &&Event| {
        matches!(&event.kind, EventKind::WorkflowExecutionUpdateAccepted { update_id, .. }
            if update_id == id)
    };
    history.iter().filter(is_it).count()
}

fn outcome(history: &[Event], id: &UpdateId) -> Option<(EventNumber, UpdateOutcome)> {
    history.iter().find_map(|event| match &event.kind {
        EventKind::WorkflowExecutionUpdateCompleted {
            update_id, outcome, ..
        } if update_id == id => Some((event.number, outcome.clone())),
        _ => None,
    })
}

impl World {
    pub(crate) fn client_update(&mut self, update: Update) {
        let Some(run) = self.client.started(update.workflow) else {
            return self.client.again(Todo::Update(update));
        };
        let request = Request::AdmitUpdate {
            update_id: update.id(),
            name: UpdateName::new(update.name.clone()).expect("a name"),
            input: Payload::json(update.input.clone()),
            identity: String::new(),
        };
        let reply = self.client.id();
        let Client { updates, .. } = &mut self.client;
        updates.waiting.insert(reply, (run, update.id()));
        updates.followed.insert((run, update.id()), update);
        self.send(
            run,
            Input::Request {
                run,
                request: Box::new(request),
                reply: Some(reply),
            },
        );
    }

    /// An answer to the sending of an update arrives.
    pub(crate) fn update_reply(&mut self, id: ReplyId, result: Result<Answer, CallError>) {
        let Some((run, update_id)) = self.client.updates.waiting.remove(&id) else {
            return;
        };
        match result {
            Ok(Answer::Update(Some(progress))) => self.update_advanced(run, &update_id, progress),
            Err(CallError::Rejected(Rejection::Closed(status))) => {
                self.update_advanced(run, &update_id, UpdateProgress::Closed(status));
            }
            Ok(answer) => panic!("seed {}: {answer:?} to an update", self.plan.seed),
            // The run has too many at the moment, or the store failed.
            Err(_) => self.update_advanced(run, &update_id, UpdateProgress::Unknown),
        }
    }

    /// The client is told of an update.
    pub(crate) fn update_advanced(
        &mut self,
        run: RunKey,
        update_id: &UpdateId,
        progress: UpdateProgress,
    ) {
        let seed = self.plan.seed;
        let updates = &mut self.client.updates;
        let key = (run, update_id.clone());
        match progress {
            UpdateProgress::Admitted => {}
            UpdateProgress::Accepted => drop(updates.accepted.insert(key)),
            // The run that follows has it: what becomes of it is told of that one.
            UpdateProgress::Moved(next) => {
                if let Some(update) = updates.followed.remove(&key) {
                    updates.followed.insert((next, key.1), update);
                }
            }
            UpdateProgress::Unknown => {
                if let Some(update) = updates.followed.remove(&key) {
                    self.client.again(Todo::Update(update));
                }
            }
            progress @ (UpdateProgress::Completed(_)
            | UpdateProgress::CompletedAt(_)
            | UpdateProgress::Refused(_)
            | UpdateProgress::Abandoned
            | UpdateProgress::Closed(_)) => {
                if updates.followed.remove(&key).is_some() {
                    let before = updates.ended.insert(key, progress);
                    assert!(
                        before.is_none(),
                        "seed {seed}: update {update_id} ended twice"
                    );
                }
            }
        }
    }

    /// The host does not know any more what it may have told of a run's updates.
    pub(crate) fn updates_unknown(&mut self, run: RunKey) {
        for todo in self.client.updates.lost(|found| found == run) {
            self.client.again(todo);
        }
    }
}
