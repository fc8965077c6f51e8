//! Tests of the fakes themselves.

use std::sync::{Arc, Mutex};

use steadfast_model::{EventNumber, RunKey, Seq, Timestamp};

use crate::fake::{FaultPlan, MemStore, Rng};
use crate::store::{Batch, Done, Error, FencingToken, TimerKey, TimerKind, Write};
use crate::{Clock, Entropy, Store};

type Answers = Arc<Mutex<Vec<Result<(), Error>>>>;

fn note(answers: &Answers) -> Done {
    let answers = Arc::clone(answers);
    Box::new(move |result| answers.lock().unwrap().push(result))
}

fn timer(due: u64) -> TimerKey {
    TimerKey {
        due: Timestamp(due),
        run: RunKey(1),
        kind: TimerKind::Workflow,
        seq: Seq(1),
    }
}

fn put(due: u64) -> Batch {
    Batch {
        fence: FencingToken(0),
        writes: vec![Write::PutTimer(timer(due))],
    }
}

fn dues(store: &MemStore) -> Vec<u64> {
    let timers = store.timers(None, Timestamp(u64::MAX), 9999).unwrap();
    timers.iter().map(|timer| timer.due.0).collect()
}

#[test]
fn a_manual_store_writes_when_it_is_told_to() {
    let store = MemStore::manual();
    let answers = Answers::default();
    for due in 1..=3 {
        store.submit(put(due), note(&answers));
    }
    assert_eq!((store.queued(), dues(&store).len()), (3, 0));
    assert!(store.step());
    assert_eq!((dues(&store), answers.lock().unwrap().len()), (vec![1], 1));
    assert_eq!(store.flush(9), 2);
    assert_eq!(dues(&store), [1, 2, 3]);
    assert!(!store.step());
}

#[test]
fn a_crash_keeps_what_is_durable_and_nothing_else() {
    let store = MemStore::manual();
    let answers = Answers::default();
    for due in 1..=3 {
        store.submit(put(due), note(&answers));
    }
    assert!(store.step());
    let after = store.crash();
    assert_eq!(dues(&after), [1]);
    assert_eq!(after.queued(), 0);
    assert_eq!(
        answers.lock().unwrap().len(),
        1,
        "the others are never answered"
    );
    store.submit(put(9), note(&answers));
    store.flush(1);
    assert!(matches!(
        answers.lock().unwrap().last(),
        Some(Err(Error::Poisoned(_)))
    ));
    assert_eq!(dues(&after), [1]);
}

#[test]
fn the_old_owner_is_fenced_off_though_its_batch_waited() {
    let store = MemStore::manual();
    let answers = Answers::default();
    store.submit(put(1), note(&answers));
    let current = store.acquire().unwrap();
    store.flush(1);
    let held = FencingToken(0);
    assert_eq!(
        *answers.lock().unwrap(),
        [Err(Error::Fenced { held, current })]
    );
}

#[test]
fn faults_do_what_they_say() {
    let run = |plan: FaultPlan| {
        let store = MemStore::new();
        store.set_faults(plan);
        let results: Vec<_> = (0..200).map(|due| store.commit(put(due))).collect();
        store.set_faults(FaultPlan::default());
        let failed = results.iter().filter(|result| result.is_err()).count();
        (failed, dues(&store).len(), store.is_poisoned())
    };
    let seed = 7;
    assert_eq!(run(FaultPlan::default()), (0, 200, false));
    let (failed, written, _) = run(FaultPlan {
        seed,
        unavailable_permille: 200,
        ..FaultPlan::default()
    });
    assert!(
        failed > 10 && written == 200 - failed,
        "{failed} failed, {written} written"
    );
    let (failed, written, _) = run(FaultPlan {
        seed,
        lost_ack_permille: 200,
        ..FaultPlan::default()
    });
    assert!(
        failed > 10 && written == 200,
        "{failed} failed, {written} written"
    );
    let (failed, written, poisoned) = run(FaultPlan {
        seed,
        poison_permille: 50,
        ..FaultPlan::default()
    });
    assert!(poisoned && (200 - failed..=201 - failed).contains(&written));
    assert!(failed > 1);
}

#[test]
fn stalls_hold_up_all_behind_them_and_end() {
    let store = MemStore::manual();
    let plan = FaultPlan {
        stall_permille: 1000,
        stall_steps_max: 5,
        ..FaultPlan::default()
    };
    store.set_faults(plan);
    let answers = Answers::default();
    for due in 1..=10 {
        store.submit(put(due), note(&answers));
    }
    let mut steps = 0;
    while store.step() {
        steps += 1;
        let seen = dues(&store);
        assert_eq!(seen, (1..=seen.len() as u64).collect::<Vec<_>>());
    }
    assert!((20..=60).contains(&steps), "{steps} steps");
    assert_eq!(answers.lock().unwrap().len(), 10);
}

#[test]
fn the_same_seed_is_the_same_luck() {
    let run = |seed| {
        let store = MemStore::new();
        let plan = FaultPlan {
            seed,
            unavailable_permille: 100,
            lost_ack_permille: 100,
            read_permille: 100,
            ..FaultPlan::default()
        };
        store.set_faults(plan);
        let writes: Vec<_> = (0..50).map(|due| store.commit(put(due))).collect();
        let reads: Vec<_> = (0..50)
            .map(|_| store.history(RunKey(1), EventNumber(1), 1))
            .collect();
        assert!(reads.iter().any(Result::is_err) && reads.iter().any(Result::is_ok));
        (writes, reads)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn clock_and_randomness_do_as_they_are_told() {
    let clock = super::super::ManualClock::new(Timestamp(5));
    assert_eq!(clock.advance(steadfast_model::Millis(3)), Timestamp(8));
    clock.set(Timestamp(2));
    assert_eq!(clock.now(), Timestamp(2));
    let draw = |seed| {
        let entropy = super::super::SeededEntropy::new(seed);
        let mut bytes = [0; 20];
        entropy.fill(&mut bytes);
        bytes
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    // The numbers are part of every recorded seed: they must never change.
    assert_eq!(Rng::new(0).next_u64(), 0xe220_a839_7b1d_cdaf);
}
