//! Carries letters between runs, with latency, and forgets them when the host dies.

use std::collections::BTreeMap;

use steadfast_model::RunKey;
use steadfast_runtime::chain::Minter;
use steadfast_runtime::courier::{Said, Step, said, step};
use steadfast_runtime::message::{Answer, CallError, Input, ReplyId};
use steadfast_runtime::outbox::{Carried, Letter};

use crate::world::{Event, World};

/// Above the ids of the client's and the workers' requests.
const FIRST_ID: u64 = 1 << 60;

/// How often a receiver is looked for before the letter has to wait.
const TRIES_MAX: u32 = 20;

/// Letters of which a receiver has not spoken yet.
#[derive(Debug, Default)]
pub struct Courier {
    waiting: BTreeMap<ReplyId, (Box<Letter>, u32, Option<steadfast_model::RunId>)>,
    next: u64,
}

impl Courier {
    pub(crate) fn is_waiting(&self, id: ReplyId) -> bool {
        self.waiting.contains_key(&id)
    }
}

impl World {
    pub(crate) fn carry(&mut self, letter: Box<Letter>, tries: u32) {
        if tries >= TRIES_MAX {
            return self.letter_carried(&letter, Carried::Later);
        }
        let mint = self.mint.clone();
        let now = self.wall();
        match step(&*self.store, &letter, || mint.mint(0, 1), now) {
            Ok(Step::Answer(answer)) => self.letter_carried(&letter, Carried::Answered(answer)),
            Ok(Step::Later) => self.letter_carried(&letter, Carried::Later),
            Ok(Step::Start(new)) => {
                let (run, run_id) = (new.record.run, new.record.run_id);
                let input = |reply| Input::Start { new, reply };
                self.ask_shard(letter, tries, Some(run_id), run, input);
            }
            Ok(Step::Give { run, request }) => {
                let input = |reply| Input::Request {
                    run,
                    request,
                    reply: Some(reply),
                };
                self.ask_shard(letter, tries, None, run, input);
            }
            Err(_unreadable) => self.letter_carried(&letter, Carried::Later),
        }
    }

    fn ask_shard(
        &mut self,
        letter: Box<Letter>,
        tries: u32,
        began: Option<steadfast_model::RunId>,
        run: RunKey,
        input: impl FnOnce(ReplyId) -> Input,
    ) {
        self.courier.next += 1;
        let id = ReplyId(FIRST_ID + self.courier.next);
        self.courier.waiting.insert(id, (letter, tries, began));
        self.send(run, input(id));
    }

    pub(crate) fn heard(&mut self, id: ReplyId, result: &Result<Answer, CallError>) {
        let Some((letter, tries, began)) = self.courier.waiting.remove(&id) else {
            return;
        };
        match said(&letter, began, result) {
            Said::Carried(carried) => self.letter_carried(&letter, carried),
            Said::Again => self.soon(Event::Carry(letter, tries + 1)),
        }
    }

    fn letter_carried(&mut self, letter: &Letter, carried: Carried) {
        let key = letter.key;
        self.send(key.run, Input::Carried { key, carried });
    }
}
