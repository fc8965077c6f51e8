//! The same random batches into the reference and the store under test: every answer and every
//! read must be equal.

use steadfast_model::{ComponentDigest, EventNumber, LetterKey, RunKey, Seq, Status, Timestamp};

use crate::Store;
use crate::contract::{Factory, make};
use crate::fake::{MemStore, Rng};
use crate::store::{Batch, Error, FencingToken, ListQuery, TaskKey, TimerKey, Write};

const SEEDS: u64 = 6;
const BATCHES: usize = 150;
const RUNS: u64 = 12;

/// Random batches, right and wrong ones, do the same to the store as to the reference.
pub fn same_as_the_reference(factory: Factory<'_>) {
    for seed in 0..SEEDS {
        let subject = factory();
        let reference = MemStore::new();
        let mut script = Script {
            rng: Rng::new(seed),
            fence: FencingToken(0),
        };
        for number in 0..BATCHES {
            if script.rng.chance(20) {
                let token = reference.acquire();
                assert_eq!(subject.store.acquire(), token, "seed {seed}");
                script.fence = token.expect("the reference has no faults");
            }
            let batch = script.batch(&reference);
            let expected = reference.commit(batch.clone());
            let found = subject.store.commit(batch);
            assert_eq!(kind(&found), kind(&expected), "seed {seed}, batch {number}");
            if number % 10 == 9 {
                compare(&*subject.store, &reference, &mut script.rng, seed);
            }
        }
    }
}

/// Errors are compared without their texts, which are each store's own.
fn kind(result: &Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(Error::Conflict(_)) => Err(Error::Conflict(String::new())),
        other => other.clone(),
    }
}

struct Script {
    rng: Rng,
    fence: FencingToken,
}

impl Script {
    fn batch(&mut self, reference: &MemStore) -> Batch {
        let stale = self.rng.chance(20) && self.fence.0 > 0;
        let fence = if stale {
            FencingToken(self.fence.0 - 1)
        } else {
            self.fence
        };
        let count = 1 + self.rng.below(12);
        let writes = (0..count).map(|_| self.write(reference)).collect();
        Batch { fence, writes }
    }

    fn run(&mut self) -> u64 {
        1 + self.rng.below(RUNS)
    }

    fn seq(&mut self) -> u32 {
        u32::try_from(self.rng.below(4)).expect("below four")
    }

    fn timer(&mut self) -> TimerKey {
        make::timer(self.rng.below(20), self.run(), self.seq())
    }

    fn task(&mut self) -> TaskKey {
        let name = ["q", "q\0", "r"][self.rng.index(3)];
        make::task(name, self.rng.below(5), self.run(), self.seq())
    }

    fn letter(&mut self) -> LetterKey {
        let kind = 1 + u8::try_from(self.rng.below(7)).expect("below seven");
        make::letter(self.run(), self.seq(), kind)
    }

    fn write(&mut self, reference: &MemStore) -> Write {
        match self.rng.below(20) {
            0..4 => self.append(reference),
            4 => self.claim(reference),
            5 | 6 => self.execution(),
            7 => Write::PutActivity(Box::new(make::activity(self.run(), self.seq()))),
            8 => Write::DeleteActivity(RunKey(self.run()), Seq(self.seq())),
            9 => Write::PutTimer(self.timer()),
            10 => Write::DeleteTimer(self.timer()),
            11 => Write::PutTask(self.task()),
            12 => Write::DeleteTask(self.task()),
            13 => Write::PutReady(RunKey(self.run())),
            14 => Write::DeleteReady(RunKey(self.run())),
            15 => Write::PutUpdate(Box::new(make::update(self.run(), self.seq()))),
            16 => Write::DeleteUpdate(RunKey(self.run()), self.seq()),
            17 => Write::PutLetter(self.letter()),
            18 => Write::DeleteLetter(self.letter()),
            _ => self.upload(),
        }
    }

    /// Mostly the next events of a run; now and then wrong ones, which refuse the batch.
    fn append(&mut self, reference: &MemStore) -> Write {
        let run = self.run();
        let chunks = reference.history(RunKey(run), EventNumber(1), usize::MAX);
        let next = chunks
            .expect("readable")
            .last()
            .map_or(1, |chunk| chunk.end().0);
        let first = if self.rng.chance(30) {
            self.rng.below(next + 3)
        } else {
            next
        };
        let count = 1 + self.rng.index(3);
        make::append(run, first, count)
    }

    fn claim(&mut self, reference: &MemStore) -> Write {
        let id = ["a", "b", "a\0"][self.rng.index(3)];
        let current = reference.current_run(&make::namespace(), &make::workflow_id(id));
        let current = current.expect("readable").map(|run| run.0);
        let replaces = if self.rng.chance(100) {
            Some(self.run())
        } else {
            current
        };
        make::claim(id, self.run(), replaces)
    }

    /// A run keeps its workflow id for life; everything else may change.
    fn execution(&mut self) -> Write {
        let run = self.run();
        let mut record = make::execution(run, ["a", "b", "a\0"][(run % 3) as usize]);
        record.status = Status::ALL[self.rng.index(5)];
        record.workflow_type = make::workflow_type(["t", "u"][(run % 2) as usize]);
        record.blocked = self.rng.chance(300).then(make::blocked);
        make::put(record)
    }

    fn upload(&mut self) -> Write {
        let digest = u8::try_from(self.rng.below(3)).expect("below three");
        if self.rng.chance(500) {
            let workflow_type = make::workflow_type("t");
            let component = ComponentDigest([digest; 32]);
            return Write::PutRoute {
                namespace: make::namespace(),
                workflow_type,
                component,
            };
        }
        let size = self.rng.index(5000);
        let mut bytes = vec![0; size];
        self.rng.fill(&mut bytes);
        Write::PutComponent {
            record: Box::new(make::component(digest, size)),
            bytes,
        }
    }
}

/// Compares every read of two stores.
pub fn compare(found: &dyn Store, expected: &dyn Store, rng: &mut Rng, seed: u64) {
    macro_rules! same {
        ($method:ident, $arguments:tt) => {
            let read = |store: &dyn Store| same!(@call store, $method, $arguments);
            assert_eq!(read(found), read(expected), "{} differs, seed {seed}", stringify!($method));
        };
        (@call $store:ident, $method:ident, ($($argument:expr),*)) => {
            $store.$method($($argument),*)
        };
    }
    same!(last_run, ());
    same!(components, ());
    same!(route, (&make::namespace(), &make::workflow_type("t")));
    for digest in 0..3 {
        same!(component_bytes, (ComponentDigest([digest; 32])));
    }
    for run in (0..=RUNS + 1).map(RunKey) {
        let (from, bytes_max) = (EventNumber(rng.below(12)), rng.index(500));
        same!(execution, (run));
        same!(activities, (run));
        same!(updates, (run));
        same!(last_event, (run));
        same!(history, (run, from, bytes_max));
        same!(history, (run, EventNumber(1), usize::MAX));
    }
    for id in ["a", "b", "a\0", "c"] {
        same!(current_run, (&make::namespace(), &make::workflow_id(id)));
    }
    let limit = rng.index(30);
    let after = make::timer(rng.below(20), rng.below(RUNS), 1);
    let until = Timestamp(rng.below(20));
    same!(timers, (None, Timestamp(u64::MAX), 1000));
    same!(timers, (Some(after), until, limit));
    let after = RunKey(rng.below(RUNS));
    same!(ready, (None, 1000));
    same!(ready, (Some(after), limit));
    let after = make::letter(rng.below(RUNS), 1, 2);
    same!(letters, (None, 1000));
    same!(letters, (Some(after), limit));
    let after = make::task("q", rng.below(5), rng.below(RUNS), 1);
    same!(tasks, (None, 1000));
    same!(tasks, (Some(&after), limit));
    for query in queries(rng, limit) {
        same!(list, (&query));
    }
}

fn queries(rng: &mut Rng, limit: usize) -> Vec<ListQuery> {
    let mut queries = Vec::new();
    for status in [None].into_iter().chain(Status::ALL.map(Some)) {
        for blocked in [false, true] {
            for workflow_id in [None, Some("a"), Some("a\0"), Some("c")] {
                let before = rng.chance(300).then(|| RunKey(rng.below(RUNS + 2)));
                queries.push(ListQuery {
                    status,
                    blocked,
                    workflow_id: workflow_id.map(make::workflow_id),
                    workflow_type: rng.chance(300).then(|| make::workflow_type("t")),
                    before,
                    limit,
                    ..make::everything()
                });
            }
        }
    }
    queries
}
