//! The courier's rounds: carries letters on the pool's threads and hears what receivers say, without
//! a thread that waits.

use std::sync::atomic::Ordering;

use steadfast_model::{LetterKey, RunId, RunKey};
use tokio::sync::oneshot;

use crate::courier::{self, Said, Step};
use crate::driver::{Shared, Task, lock};
use crate::message::{Answer, CallError, Input, ReplyId};
use crate::outbox::{Carried, Letter};

/// How often a receiver is looked for before the letter has to wait.
const TRIES_MAX: u32 = 20;

/// Who waits for an answer of a shard.
pub(crate) enum Waiter {
    /// Somebody outside.
    Caller(oneshot::Sender<Result<Answer, CallError>>),
    /// The courier.
    Courier(Box<Errand>),
}

/// A letter on its way.
pub(crate) struct Errand {
    letter: Box<Letter>,
    /// The run that was to begin.
    began: Option<RunId>,
    tries: u32,
}

impl Errand {
    pub(crate) fn new(letter: Box<Letter>) -> Self {
        Self {
            letter,
            began: None,
            tries: 0,
        }
    }
}

impl Shared {
    /// Looks for the receiver and gives it the letter. Reads the store: for pool threads.
    pub(crate) fn carry(&self, mut errand: Errand) {
        errand.tries += 1;
        let key = errand.letter.key;
        if errand.tries > TRIES_MAX {
            return self.carried(key, Carried::Later);
        }
        let mint = || self.minter.mint(0, 1);
        match courier::step(&*self.store, &errand.letter, mint, self.clock.now()) {
            Ok(Step::Answer(answer)) => self.carried(key, Carried::Answered(answer)),
            Ok(Step::Later) => self.carried(key, Carried::Later),
            Ok(Step::Start(new)) => {
                errand.began = Some(new.record.run_id);
                let run = new.record.run;
                self.ask_shard(errand, run, |reply| Input::Start { new, reply });
            }
            Ok(Step::Give { run, request }) => {
                let input = |reply| Input::Request {
                    run,
                    request,
                    reply: Some(reply),
                };
                self.ask_shard(errand, run, input);
            }
            Err(error) => {
                tracing::warn!(run = key.run.0, %error, "a letter could not be carried; trying again");
                self.carried(key, Carried::Later);
            }
        }
    }

    /// A shard has answered the courier.
    pub(crate) fn heard(&self, errand: Errand, result: &Result<Answer, CallError>) {
        match courier::said(&errand.letter, errand.began, result) {
            Said::Carried(carried) => self.carried(errand.letter.key, carried),
            Said::Again => self.give(Task::Carry(errand)),
        }
    }

    fn ask_shard(&self, errand: Errand, run: RunKey, input: impl FnOnce(ReplyId) -> Input) {
        let id = ReplyId(self.next_reply.fetch_add(1, Ordering::Relaxed));
        lock(&self.replies).insert(id, Waiter::Courier(Box::new(errand)));
        self.send(run, input(id));
    }

    fn carried(&self, key: LetterKey, carried: Carried) {
        self.send(key.run, Input::Carried { key, carried });
    }
}
