//! Activities: attempts that succeed, fail, or never come back, and what they did to the world.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_engine::decide::Request;
use steadfast_model::{Failure, Payload, RunKey, Seq, TaskQueue};
use steadfast_ports::store::TaskKey;
use steadfast_runtime::message::{Answer, Assignment, CallError, Input, ReplyId};

use crate::world::{Event, World};

/// One attempt of an activity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    run: RunKey,
    seq: Seq,
    number: u32,
    is_local: bool,
    fails: bool,
    key: String,
    input: Payload,
}

/// What workers did and do.
#[derive(Debug, Default)]
pub struct Workers {
    /// How often each effect was applied, by idempotency key.
    effects: BTreeMap<String, u64>,
    /// Attempts inside the host that were told to stop.
    stopped: BTreeSet<(RunKey, Seq, u32)>,
    claims: BTreeMap<ReplyId, TaskKey>,
    reports: BTreeMap<ReplyId, Attempt>,
    next: u64,
    attempts: u64,
}

/// Reply ids of workers are odd, those of clients even.
pub(crate) fn is_workers(id: ReplyId) -> bool {
    id.0 % 2 == 1
}

impl Workers {
    /// True if the effect of this key was applied.
    #[must_use]
    pub fn has_effect(&self, key: &str) -> bool {
        self.effects.contains_key(key)
    }

    /// How many attempts there were.
    #[must_use]
    pub fn attempts(&self) -> u64 {
        self.attempts
    }

    /// What was inside the host is gone, and so are answers on their way.
    pub(crate) fn host_died(&mut self) {
        self.stopped.clear();
        self.claims.clear();
        self.reports.clear();
    }

    fn id(&mut self) -> ReplyId {
        self.next += 1;
        ReplyId(self.next * 2 + 1)
    }
}

/// The result of an activity: a function of its input and of nothing else.
#[must_use]
pub fn result_of(input: &Payload) -> Payload {
    let mut data = b"\"r:".to_vec();
    data.extend(input.data.iter().filter(|byte| **byte != b'"'));
    data.push(b'"');
    Payload::json(data)
}

impl World {
    /// Workers look for work.
    pub(crate) fn poll(&mut self) {
        let wait = 1 + self.rng.below(50);
        self.after(wait, Event::Poll);
        if !self.is_up {
            return;
        }
        let queue = TaskQueue::new("default").expect("a name");
        for key in self.task_queues.take(&queue, 5) {
            let reply = self.workers.id();
            let request = Request::ClaimActivity {
                seq: key.seq,
                worker: "w1".to_owned(),
            };
            let run = key.run;
            self.workers.claims.insert(reply, key);
            let request = Box::new(request);
            self.send(
                run,
                Input::Request {
                    run,
                    request,
                    reply: Some(reply),
                },
            );
        }
    }

    /// An answer for a worker.
    pub(crate) fn worker_reply(&mut self, id: ReplyId, result: Result<Answer, CallError>) {
        if let Some(key) = self.workers.claims.remove(&id) {
            match result {
                Ok(Answer::Task(assignment)) => self.begin_attempt(&assignment, false),
                Err(CallError::Unavailable(_)) => self.task_queues.offer(key),
                Ok(Answer::Done | Answer::Heartbeat(_) | Answer::Count(_) | Answer::Update(_))
                | Err(_) => {}
            }
        } else if let Some(attempt) = self.workers.reports.remove(&id)
            && matches!(result, Err(CallError::Unavailable(_)))
        {
            // The worker does not know whether its report counted: it reports again.
            self.after(100, Event::AttemptEnds(attempt));
        }
    }

    pub(crate) fn begin_attempt(&mut self, assignment: &Assignment, is_local: bool) {
        self.workers.attempts += 1;
        let task = &assignment.task;
        let attempt = Attempt {
            run: task.run,
            seq: task.seq,
            number: task.attempt,
            is_local,
            fails: self.rng.chance(self.plan.attempt_fails_permille),
            key: assignment.idempotency_key(),
            input: (*assignment.input).clone(),
        };
        if let Some(beat) = task.options.heartbeat {
            self.after(beat.0 / 2, Event::AttemptBeats(attempt.clone()));
        }
        if !self.rng.chance(self.plan.attempt_dies_permille) {
            let takes = self.rng.below(300);
            self.after(takes, Event::AttemptEnds(attempt));
        }
    }

    pub(crate) fn attempt_beats(&mut self, attempt: &Attempt) {
        let Attempt {
            run, seq, number, ..
        } = *attempt;
        let request = Request::Heartbeat {
            seq,
            attempt: number,
            details: None,
        };
        self.send(
            run,
            Input::Request {
                run,
                request: Box::new(request),
                reply: None,
            },
        );
    }

    pub(crate) fn attempt_ends(&mut self, attempt: &Attempt) {
        let (run, seq, number) = (attempt.run, attempt.seq, attempt.number);
        let was_stopped = self.workers.stopped.remove(&(run, seq, number));
        let request = if was_stopped {
            Request::FailActivity {
                seq,
                attempt: number,
                failure: Failure::canceled("stopped"),
            }
        } else if attempt.fails {
            let failure = Failure::application("boom", "scripted");
            Request::FailActivity {
                seq,
                attempt: number,
                failure,
            }
        } else {
            *self.workers.effects.entry(attempt.key.clone()).or_default() += 1;
            let result = result_of(&attempt.input);
            Request::CompleteActivity {
                seq,
                attempt: number,
                result,
            }
        };
        let request = Box::new(request);
        if attempt.is_local {
            let input = Input::ActivityEnded {
                run,
                seq,
                attempt: number,
                request,
            };
            self.send(run, input);
        } else {
            let reply = self.workers.id();
            self.workers.reports.insert(reply, attempt.clone());
            self.send(
                run,
                Input::Request {
                    run,
                    request,
                    reply: Some(reply),
                },
            );
        }
    }

    pub(crate) fn stop_attempt(&mut self, run: RunKey, seq: Seq, attempt: u32) {
        self.workers.stopped.insert((run, seq, attempt));
    }
}
