//! Laws of many callers: everybody is answered once, in order, and nobody sees half a batch.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use steadfast_model::{EventNumber, RunKey, Timestamp};

use crate::Store;
use crate::contract::{Factory, Subject, make};
use crate::store::{Done, Error, Write};

type Answers = Arc<Mutex<Vec<(u64, Result<(), Error>)>>>;

fn note(answers: &Answers, number: u64) -> Done {
    let answers = Arc::clone(answers);
    Box::new(move |result| answers.lock().expect("not poisoned").push((number, result)))
}

fn wait_for(store: &dyn Store) {
    // Batches become durable in the order of submission, so this one is the last.
    store
        .commit(make::batch(Vec::new()))
        .expect("an empty batch");
}

/// Batches that were submitted without waiting are answered once each, in order, and each sees
/// the effects of those before it.
pub fn batches_finish_in_order_and_once(factory: Factory<'_>) {
    let subject = factory();
    let answers = Answers::default();
    let mut next = 1;
    for number in 1..=500 {
        // Every tenth repeats an event number that the batch before it has used up.
        let is_wrong = number % 10 == 0;
        let write = make::append(1, if is_wrong { next - 1 } else { next }, 1);
        next += u64::from(!is_wrong);
        subject
            .store
            .submit(make::batch(vec![write]), note(&answers, number));
    }
    wait_for(&*subject.store);
    let answers = answers.lock().expect("not poisoned");
    let numbers: Vec<u64> = answers.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=500).collect::<Vec<_>>());
    for (number, result) in &*answers {
        assert_eq!(
            result.is_err(),
            number % 10 == 0,
            "batch {number}: {result:?}"
        );
    }
    let read = subject
        .store
        .history(RunKey(1), EventNumber(1), usize::MAX)
        .expect("readable");
    assert_eq!(read.last().map(|chunk| chunk.first), Some(EventNumber(450)));
}

/// Dropping a store answers every batch that waits: written, or closed.
pub fn closing_answers_everybody(factory: Factory<'_>) {
    for count in [0, 1, 300] {
        let Subject { store, keep } = factory();
        let answers = Answers::default();
        for number in 1..=count {
            let write = make::append(1, number, 1);
            store.submit(make::batch(vec![write]), note(&answers, number));
        }
        drop(store);
        let answers = answers.lock().expect("not poisoned");
        assert_eq!(answers.len() as u64, count);
        let mut closed = false;
        for (_, result) in &*answers {
            closed |= *result == Err(Error::Closed);
            let expected = if closed { Err(Error::Closed) } else { Ok(()) };
            assert_eq!(
                *result, expected,
                "no batch is written after one that was not"
            );
        }
        drop(keep);
    }
}

/// A callback may submit the next batch, and may hold the last reference to the store.
pub fn callbacks_may_submit(factory: Factory<'_>) {
    let Subject { store, keep } = factory();
    let (sender, receiver) = mpsc::channel();
    submit_next(&store, 1, sender);
    for number in 1..=50 {
        assert_eq!(receiver.recv(), Ok((number, Ok(()))));
    }
    drop(store);
    assert!(
        receiver.recv().is_err(),
        "the last callback let go of everything"
    );
    drop(keep);
}

fn submit_next(
    store: &Arc<dyn Store>,
    number: u64,
    sender: mpsc::Sender<(u64, Result<(), Error>)>,
) {
    let batch = make::batch(vec![make::append(1, number, 1)]);
    let next = Arc::clone(store);
    let done = Box::new(move |result| {
        sender.send((number, result)).expect("the test listens");
        if number < 50 {
            submit_next(&next, number + 1, sender);
        }
    });
    store.submit(batch, done);
}

/// Eight threads at once: all their batches are written, each run's in its order.
pub fn many_threads_write_at_once(factory: Factory<'_>) {
    const THREADS: u64 = 8;
    const BATCHES: u64 = 100;
    let subject = factory();
    let written = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for run in 1..=THREADS {
            let (store, written) = (&subject.store, &written);
            scope.spawn(move || {
                for number in 1..=BATCHES {
                    let due = make::timer(number, run, 1);
                    // One id that all of them fight for: whoever wins, the others conflict.
                    let fight = vec![make::claim("w", run, None)];
                    let won = store.commit(make::batch(fight)).is_ok();
                    written.fetch_add(u64::from(won), Ordering::SeqCst);
                    let writes = vec![make::append(run, number, 1), Write::PutTimer(due)];
                    store
                        .commit(make::batch(writes))
                        .expect("nobody else writes to this run");
                    let read = store.history(RunKey(run), EventNumber(number), 1);
                    assert_eq!(read, Ok(vec![make::chunk(number, 1)]));
                }
            });
        }
    });
    assert_eq!(written.load(Ordering::SeqCst), 1, "the id was claimed once");
    let timers = subject
        .store
        .timers(None, Timestamp(BATCHES), 9999)
        .expect("readable");
    assert_eq!(timers.len() as u64, THREADS * BATCHES);
}

/// A reader beside a writer never sees a part of a batch.
pub fn readers_see_whole_batches(factory: Factory<'_>) {
    let subject = factory();
    let finished = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (store, finished) = (&subject.store, &finished);
        scope.spawn(move || {
            for round in 1..=200 {
                // The timer is moved: there is always exactly one.
                let mut writes = vec![Write::PutTimer(make::timer(round, 1, 1))];
                if round > 1 {
                    writes.push(Write::DeleteTimer(make::timer(round - 1, 1, 1)));
                }
                store.commit(make::batch(writes)).expect("ok");
            }
            finished.store(true, Ordering::SeqCst);
        });
        let mut newest = 0;
        while !finished.load(Ordering::SeqCst) {
            let timers = store
                .timers(None, Timestamp(u64::MAX), 9)
                .expect("readable");
            assert!(
                timers.len() == 1 || (newest == 0 && timers.is_empty()),
                "{timers:?}"
            );
            if let Some(timer) = timers.first() {
                assert!(timer.due.0 >= newest, "time went backwards");
                newest = timer.due.0;
            }
        }
    });
}
