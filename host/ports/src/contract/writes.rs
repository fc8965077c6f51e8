//! Laws of writing: all or nothing, dense, claimed once, fenced, in order.

use steadfast_model::{EventNumber, RunKey, Seq, Status, Timestamp};

use crate::contract::{Factory, make};
use crate::store::{Batch, Error, FencingToken, Write};

fn one_of_each(run: u64) -> Vec<Write> {
    vec![
        make::put(make::execution(run, "w")),
        Write::PutActivity(Box::new(make::activity(run, 1))),
        Write::PutTimer(make::timer(10, run, 1)),
        Write::PutTask(make::task("queue", 10, run, 1)),
        Write::PutReady(RunKey(run)),
        Write::PutLetter(make::letter(run, 1, 1)),
        Write::PutComponent {
            record: Box::new(make::component(7, 3)),
            bytes: b"abc".to_vec(),
        },
        Write::PutRoute {
            namespace: make::namespace(),
            workflow_type: make::workflow_type("type"),
            component: make::component(7, 3).digest,
        },
    ]
}

/// A batch with one expectation that does not hold leaves nothing behind, wherever in the batch
/// the expectation is.
pub fn failed_expectations_leave_nothing(factory: Factory<'_>) {
    let subject = factory();
    let store = &subject.store;
    store
        .commit(make::batch(vec![
            make::append(1, 1, 2),
            make::claim("w", 1, None),
        ]))
        .expect("ok");
    let broken = [
        make::append(1, 2, 1),
        make::append(2, 2, 1),
        make::claim("w", 2, None),
    ];
    for bad in broken {
        for at in [0, 4, 7] {
            let mut writes = one_of_each(2);
            writes.insert(at, bad.clone());
            // These would hold on their own.
            writes.insert(0, make::append(3, 1, 1));
            writes.push(make::append(1, 3, 1));
            writes.push(make::claim("other", 2, None));
            let result = store.commit(make::batch(writes));
            assert!(matches!(result, Err(Error::Conflict(_))), "{result:?}");
        }
    }
    assert_eq!(store.execution(RunKey(2)), Ok(None));
    assert_eq!(store.activities(RunKey(2)), Ok(vec![]));
    assert_eq!(store.timers(None, Timestamp(u64::MAX), 10), Ok(vec![]));
    assert_eq!(store.tasks(None, 10), Ok(vec![]));
    assert_eq!(store.ready(None, 10), Ok(vec![]));
    assert_eq!(store.letters(None, 10), Ok(vec![]));
    assert_eq!(store.components(), Ok(vec![]));
    let digest = make::component(7, 3).digest;
    assert_eq!(store.component_bytes(digest), Ok(None));
    assert_eq!(
        store.route(&make::namespace(), &make::workflow_type("type")),
        Ok(None)
    );
    assert_eq!(store.history(RunKey(3), EventNumber(1), 9999), Ok(vec![]));
    assert_eq!(
        store.history(RunKey(1), EventNumber(1), 9999),
        Ok(vec![make::chunk(1, 2)])
    );
    let current = store.current_run(&make::namespace(), &make::workflow_id("other"));
    assert_eq!(current, Ok(None));
    // A refused batch does not get in the way of the right one.
    store
        .commit(make::batch(vec![
            make::append(1, 3, 1),
            make::append(3, 1, 1),
        ]))
        .expect("ok");
}

/// Events are numbered from 1 without gaps and never overwritten, also within one batch.
pub fn event_numbers_are_dense(factory: Factory<'_>) {
    let subject = factory();
    let store = &subject.store;
    let conflicts = |writes: Vec<Write>| {
        let result = store.commit(make::batch(writes));
        assert!(matches!(result, Err(Error::Conflict(_))), "{result:?}");
    };
    conflicts(vec![make::append(1, 0, 1)]);
    conflicts(vec![make::append(1, 2, 1)]);
    store
        .commit(make::batch(vec![make::append(1, 1, 3)]))
        .expect("the first chunk");
    conflicts(vec![make::append(1, 1, 3)]);
    conflicts(vec![make::append(1, 3, 2)]);
    conflicts(vec![make::append(1, 5, 1)]);
    conflicts(vec![make::append(1, 4, 1), make::append(1, 4, 1)]);
    conflicts(vec![make::append(1, 5, 1), make::append(1, 4, 1)]);
    let mut empty = make::chunk(4, 1);
    empty.count = 0;
    conflicts(vec![Write::Append {
        run: RunKey(1),
        chunk: empty,
    }]);
    let two = vec![
        make::append(1, 4, 2),
        make::append(2, 1, 1),
        make::append(1, 6, 1),
    ];
    store
        .commit(make::batch(two))
        .expect("two chunks of one run in one batch");
    store
        .commit(make::batch(vec![make::append(1, 7, 1)]))
        .expect("the next");
    let chunks = store
        .history(RunKey(1), EventNumber(1), 9999)
        .expect("readable");
    let expected = [
        make::chunk(1, 3),
        make::chunk(4, 2),
        make::chunk(6, 1),
        make::chunk(7, 1),
    ];
    assert_eq!(chunks, expected);
}

/// A workflow id passes from run to run only with the consent of whoever read who holds it.
pub fn claims_conflict(factory: Factory<'_>) {
    let subject = factory();
    let store = &subject.store;
    let (ns, id) = (make::namespace(), make::workflow_id("w"));
    let conflicts = |writes: Vec<Write>| {
        let result = store.commit(make::batch(writes));
        assert!(matches!(result, Err(Error::Conflict(_))), "{result:?}");
    };
    conflicts(vec![make::claim("w", 2, Some(1))]);
    store
        .commit(make::batch(vec![make::claim("w", 1, None)]))
        .expect("free");
    assert_eq!(store.current_run(&ns, &id), Ok(Some(RunKey(1))));
    conflicts(vec![make::claim("w", 2, None)]);
    conflicts(vec![make::claim("w", 2, Some(3))]);
    conflicts(vec![make::claim("v", 2, None), make::claim("v", 3, None)]);
    store
        .commit(make::batch(vec![make::claim("w", 2, Some(1))]))
        .expect("handed over");
    assert_eq!(store.current_run(&ns, &id), Ok(Some(RunKey(2))));
    let chain = vec![make::claim("v", 3, None), make::claim("v", 4, Some(3))];
    store
        .commit(make::batch(chain))
        .expect("handed over within a batch");
    assert_eq!(
        store.current_run(&ns, &make::workflow_id("v")),
        Ok(Some(RunKey(4)))
    );
    // Names that begin alike, or hold each other's bytes, are different ids.
    for name in ["w\0", "wv", "w\0\u{1}"] {
        assert_eq!(store.current_run(&ns, &make::workflow_id(name)), Ok(None));
        store
            .commit(make::batch(vec![make::claim(name, 9, None)]))
            .expect("free");
    }
    assert_eq!(store.current_run(&ns, &id), Ok(Some(RunKey(2))));
}

/// Tokens count up; only the newest writes, and an old one never spoils anything.
pub fn only_the_newest_owner_writes(factory: Factory<'_>) {
    let subject = factory();
    let store = &subject.store;
    let write = |fence, first| {
        store.commit(Batch {
            fence,
            writes: vec![make::append(1, first, 1)],
        })
    };
    let first = store.acquire().expect("the first owner");
    assert!(first > FencingToken(0));
    let held = FencingToken(0);
    assert_eq!(
        write(held, 1),
        Err(Error::Fenced {
            held,
            current: first
        })
    );
    write(first, 1).expect("the owner writes");
    let second = store.acquire().expect("the second owner");
    assert!(second > first);
    assert_eq!(
        write(first, 2),
        Err(Error::Fenced {
            held: first,
            current: second
        })
    );
    let empty = Batch {
        fence: first,
        writes: Vec::new(),
    };
    assert_eq!(
        store.commit(empty),
        Err(Error::Fenced {
            held: first,
            current: second
        })
    );
    let never = write(FencingToken(second.0 + 1), 2);
    assert!(matches!(never, Err(Error::Conflict(_))), "{never:?}");
    write(second, 2).expect("the new owner writes on");
    store
        .commit(Batch {
            fence: second,
            writes: Vec::new(),
        })
        .expect("nothing to write is fine");
}

/// Later changes of a batch win over earlier ones.
pub fn changes_apply_in_order(factory: Factory<'_>) {
    let subject = factory();
    let store = &subject.store;
    let mut done = make::execution(1, "w");
    done.status = Status::Completed;
    let writes = vec![
        make::put(make::execution(1, "w")),
        make::put(done.clone()),
        Write::DeleteTimer(make::timer(1, 1, 1)),
        Write::PutTimer(make::timer(1, 1, 1)),
        Write::DeleteReady(RunKey(1)),
        Write::PutReady(RunKey(1)),
        Write::DeleteLetter(make::letter(1, 1, 1)),
        Write::PutLetter(make::letter(1, 1, 1)),
        Write::DeleteTask(make::task("q", 1, 1, 1)),
        Write::PutTask(make::task("q", 1, 1, 1)),
        Write::DeleteActivity(RunKey(1), Seq(1)),
        Write::PutActivity(Box::new(make::activity(1, 1))),
    ];
    store.commit(make::batch(writes)).expect("ok");
    assert_eq!(store.execution(RunKey(1)), Ok(Some(done)));
    assert_eq!(
        store.timers(None, Timestamp(1), 9),
        Ok(vec![make::timer(1, 1, 1)])
    );
    assert_eq!(store.ready(None, 9), Ok(vec![RunKey(1)]));
    assert_eq!(store.letters(None, 9), Ok(vec![make::letter(1, 1, 1)]));
    assert_eq!(store.tasks(None, 9), Ok(vec![make::task("q", 1, 1, 1)]));
    assert_eq!(store.activities(RunKey(1)), Ok(vec![make::activity(1, 1)]));
}

/// Deleting a row that is not there succeeds and changes nothing.
pub fn deleting_what_is_absent_is_allowed(factory: Factory<'_>) {
    let subject = factory();
    let store = &subject.store;
    let deletes = vec![
        Write::DeleteActivity(RunKey(1), Seq(1)),
        Write::DeleteTimer(make::timer(1, 1, 1)),
        Write::DeleteTask(make::task("q", 1, 1, 1)),
        Write::DeleteReady(RunKey(1)),
        Write::DeleteLetter(make::letter(1, 1, 1)),
    ];
    store
        .commit(make::batch(deletes.clone()))
        .expect("on an empty store");
    store.commit(make::batch(one_of_each(2))).expect("ok");
    store
        .commit(make::batch(deletes))
        .expect("beside other rows");
    assert_eq!(store.activities(RunKey(2)), Ok(vec![make::activity(2, 1)]));
    assert_eq!(store.ready(None, 9), Ok(vec![RunKey(2)]));
    assert_eq!(store.letters(None, 9), Ok(vec![make::letter(2, 1, 1)]));
}

/// What a batch puts and then deletes is gone, whether or not it was there before.
pub fn put_and_delete_in_one_batch_cancel_out(factory: Factory<'_>) {
    let subject = factory();
    let store = &subject.store;
    let puts = || {
        vec![
            Write::PutActivity(Box::new(make::activity(1, 1))),
            Write::PutTimer(make::timer(1, 1, 1)),
            Write::PutTask(make::task("q", 1, 1, 1)),
            Write::PutReady(RunKey(1)),
            Write::PutLetter(make::letter(1, 1, 1)),
        ]
    };
    let deletes = [
        Write::DeleteActivity(RunKey(1), Seq(1)),
        Write::DeleteTimer(make::timer(1, 1, 1)),
        Write::DeleteTask(make::task("q", 1, 1, 1)),
        Write::DeleteReady(RunKey(1)),
        Write::DeleteLetter(make::letter(1, 1, 1)),
    ];
    for was_there in [false, true] {
        if was_there {
            store.commit(make::batch(puts())).expect("ok");
        }
        let mut writes = puts();
        writes.extend(deletes.clone());
        store.commit(make::batch(writes)).expect("ok");
        assert_eq!(store.activities(RunKey(1)), Ok(vec![]));
        assert_eq!(store.timers(None, Timestamp(u64::MAX), 9), Ok(vec![]));
        assert_eq!(store.tasks(None, 9), Ok(vec![]));
        assert_eq!(store.ready(None, 9), Ok(vec![]));
        assert_eq!(store.letters(None, 9), Ok(vec![]));
    }
}

/// A second put of the same row replaces the first.
pub fn rows_replace_their_elders(factory: Factory<'_>) {
    let subject = factory();
    let store = &subject.store;
    let mut record = make::execution(1, "w");
    let mut task = make::activity(1, 1);
    for attempt in 1..4 {
        record.blocked = (attempt == 2).then(make::blocked);
        task.attempt = attempt;
        let writes = vec![
            make::put(record.clone()),
            Write::PutActivity(Box::new(task.clone())),
        ];
        store.commit(make::batch(writes)).expect("ok");
        assert_eq!(store.execution(RunKey(1)), Ok(Some(record.clone())));
        assert_eq!(store.activities(RunKey(1)), Ok(vec![task.clone()]));
    }
}
