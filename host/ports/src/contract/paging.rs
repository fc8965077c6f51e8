//! Laws of reading many things: order, exclusive cursors, limits, filters.

use steadfast_model::{Namespace, RunKey, Seq, Status, Timestamp};

use crate::contract::{Factory, make};
use crate::store::{ListQuery, TaskKey, TimerKey, TimerKind, Write};

/// Due times come by due, then run, kind and number; the cursor is exclusive, the end inclusive.
pub fn timers_are_ordered_and_paged(factory: Factory<'_>) {
    let subject = factory();
    let store = &subject.store;
    let mut timers = Vec::new();
    for due in [u64::MAX, 0, 256, 255] {
        for run in [2, 1, 300] {
            for kind in [
                TimerKind::Activation,
                TimerKind::Workflow,
                TimerKind::Activity,
            ] {
                for seq in [1, 0, u32::MAX] {
                    let (due, run) = (Timestamp(due), RunKey(run));
                    timers.push(TimerKey {
                        due,
                        run,
                        kind,
                        seq: Seq(seq),
                    });
                }
            }
        }
    }
    let writes = timers.iter().copied().map(Write::PutTimer).collect();
    store.commit(make::batch(writes)).expect("ok");
    timers.sort();
    let read = |after, until, limit| store.timers(after, Timestamp(until), limit).expect("ok");
    assert_eq!(read(None, u64::MAX, 1000), timers);
    assert_eq!(read(None, 255, 1000), timers[..54]);
    assert_eq!(read(None, 254, 1000), timers[..27]);
    assert_eq!(read(None, 0, 5), timers[..5]);
    assert_eq!(read(None, u64::MAX, 0), []);
    assert_eq!(read(Some(timers[30]), 0, 9), [], "a cursor past the end");
    for limit in [1, 7, 200] {
        let mut paged: Vec<TimerKey> = Vec::new();
        loop {
            let page = read(paged.last().copied(), u64::MAX, limit);
            if page.is_empty() {
                break;
            }
            assert!(page.len() <= limit);
            paged.extend(page);
        }
        assert_eq!(paged, timers);
    }
    // A cursor may be a time that is not there any more.
    store
        .commit(make::batch(vec![Write::DeleteTimer(timers[3])]))
        .expect("ok");
    assert_eq!(read(Some(timers[3]), u64::MAX, 1), timers[4..5]);
}

/// Ready runs come by number; the cursor is exclusive.
pub fn ready_runs_are_ordered_and_paged(factory: Factory<'_>) {
    let subject = factory();
    let store = &subject.store;
    let runs = [0, 1, 2, 255, 256, 70_000, u64::MAX].map(RunKey);
    for run in runs.iter().rev() {
        store
            .commit(make::batch(vec![Write::PutReady(*run)]))
            .expect("ok");
    }
    let read = |after, limit| store.ready(after, limit).expect("ok");
    assert_eq!(read(None, 1000), runs);
    assert_eq!(read(None, 0), []);
    assert_eq!(read(Some(RunKey(2)), 2), runs[3..5]);
    assert_eq!(read(Some(RunKey(3)), 2), runs[3..5]);
    assert_eq!(read(Some(RunKey(u64::MAX)), 2), []);
    store
        .commit(make::batch(vec![Write::DeleteReady(RunKey(256))]))
        .expect("ok");
    assert_eq!(read(Some(RunKey(255)), 1), [RunKey(70_000)]);
}

/// Letters come by sender, number and kind; the cursor is exclusive.
pub fn letters_are_ordered_and_paged(factory: Factory<'_>) {
    let subject = factory();
    let store = &subject.store;
    let mut letters = Vec::new();
    for run in [0, 1, 256, u64::MAX] {
        for seq in [0, 1, 256, u32::MAX] {
            for kind in [1, 7] {
                letters.push(make::letter(run, seq, kind));
            }
        }
    }
    for letter in letters.iter().rev() {
        store
            .commit(make::batch(vec![Write::PutLetter(*letter)]))
            .expect("ok");
    }
    let read = |after, limit| store.letters(after, limit).expect("ok");
    assert_eq!(read(None, 1000), letters);
    assert_eq!(read(None, 0), []);
    assert_eq!(read(Some(letters[9]), 3), letters[10..13]);
    assert_eq!(read(Some(make::letter(1, 1, 3)), 1), letters[11..12]);
    assert_eq!(read(letters.last().copied(), 2), []);
    store
        .commit(make::batch(vec![Write::DeleteLetter(letters[10])]))
        .expect("ok");
    assert_eq!(read(Some(letters[9]), 1), letters[11..12]);
}

/// Tasks come by queue, then by when they became ready, run and number.
pub fn tasks_are_ordered_by_queue_and_paged(factory: Factory<'_>) {
    let subject = factory();
    let store = &subject.store;
    let mut tasks = Vec::new();
    // Names that are prefixes of each other, and bytes that a separator might be made of.
    for name in [
        "b",
        "a",
        "a\0",
        "a\u{1}",
        "ab",
        "a\0\u{ff}",
        "\u{10ffff}",
        "\0",
    ] {
        for ready in [256, 0, u64::MAX] {
            for run in [2, 1] {
                tasks.push(make::task(name, ready, run, 9));
                tasks.push(make::task(name, ready, run, 1));
            }
        }
    }
    let writes = tasks.iter().cloned().map(Write::PutTask).collect();
    store.commit(make::batch(writes)).expect("ok");
    tasks.sort();
    assert_eq!(store.tasks(None, 1000).expect("ok"), tasks);
    assert_eq!(store.tasks(None, 0).expect("ok"), []);
    for limit in [1, 5] {
        let mut paged: Vec<TaskKey> = Vec::new();
        loop {
            let page = store.tasks(paged.last(), limit).expect("ok");
            if page.is_empty() {
                break;
            }
            assert!(page.len() <= limit);
            paged.extend(page);
        }
        assert_eq!(paged, tasks);
    }
    store
        .commit(make::batch(vec![Write::DeleteTask(tasks[3].clone())]))
        .expect("ok");
    assert_eq!(store.tasks(Some(&tasks[3]), 1).expect("ok"), tasks[4..5]);
}

/// Thirty runs: ids `a`, `b`, `c` in turn, types `even` and `odd`, every third completed, every
/// fifth blocked; and one of another namespace.
fn fill(factory: Factory<'_>) -> crate::contract::Subject {
    let subject = factory();
    for run in 1..=30_u64 {
        let mut record = make::execution(run, ["c", "a", "b"][(run % 3) as usize]);
        record.workflow_type = make::workflow_type(["even", "odd"][(run % 2) as usize]);
        if run % 5 == 0 {
            record.blocked = Some(make::blocked());
        }
        let open = make::put(record.clone());
        subject.store.commit(make::batch(vec![open])).expect("ok");
        if run % 3 == 0 {
            record.status = Status::Completed;
            record.closed_at = Some(Timestamp(99));
        }
        if run % 10 == 0 {
            record.blocked = None;
        }
        subject
            .store
            .commit(make::batch(vec![make::put(record)]))
            .expect("ok");
    }
    let mut foreign = make::execution(31, "a");
    foreign.namespace = Namespace::new("other").expect("a valid name");
    subject
        .store
        .commit(make::batch(vec![make::put(foreign)]))
        .expect("ok");
    subject
}

fn runs(subject: &crate::contract::Subject, query: &ListQuery) -> Vec<u64> {
    subject
        .store
        .list(query)
        .expect("ok")
        .iter()
        .map(|record| record.run.0)
        .collect()
}

fn is_open(run: u64) -> bool {
    !run.is_multiple_of(3)
}

fn is_blocked(run: u64) -> bool {
    run.is_multiple_of(5) && !run.is_multiple_of(10)
}

/// A listing shows what passes all filters, newest first.
pub fn lists_filter_newest_first(factory: Factory<'_>) {
    let subject = fill(factory);
    let expect = |query: &ListQuery, wanted: &dyn Fn(u64) -> bool| {
        let wanted: Vec<u64> = (1..=30).rev().filter(|run| wanted(*run)).collect();
        assert_eq!(runs(&subject, query), wanted, "{query:?}");
    };
    let mut query = make::everything();
    expect(&query, &|_| true);
    query.status = Some(Status::Completed);
    expect(&query, &|run| !is_open(run));
    query.status = Some(Status::Failed);
    expect(&query, &|_| false);
    query.status = Some(Status::Running);
    expect(&query, &is_open);
    query.workflow_type = Some(make::workflow_type("odd"));
    expect(&query, &|run| is_open(run) && run % 2 == 1);
    query.status = None;
    expect(&query, &|run| run % 2 == 1);
    query.workflow_id = Some(make::workflow_id("a"));
    expect(&query, &|run| run % 6 == 1);
    query.workflow_type = None;
    expect(&query, &|run| run % 3 == 1);
    query.blocked = true;
    expect(&query, &|run| run % 3 == 1 && is_blocked(run));
    query.status = Some(Status::Running);
    expect(&query, &|run| {
        run % 3 == 1 && is_blocked(run) && is_open(run)
    });
    query.workflow_id = None;
    expect(&query, &|run| is_blocked(run) && is_open(run));
    query.status = None;
    expect(&query, &is_blocked);
    query.workflow_id = Some(make::workflow_id("nobody"));
    expect(&query, &|_| false);
    let other = Namespace::new("other").expect("a valid name");
    let foreign = ListQuery {
        namespace: other,
        ..make::everything()
    };
    assert_eq!(runs(&subject, &foreign), [31]);
}

/// Pages of a listing join without gaps and doubles.
pub fn lists_are_paged(factory: Factory<'_>) {
    let subject = fill(factory);
    let mut queries = vec![make::everything(); 5];
    queries[1].status = Some(Status::Running);
    queries[2].status = Some(Status::Completed);
    queries[3].workflow_id = Some(make::workflow_id("b"));
    queries[4].blocked = true;
    for query in queries {
        let whole = runs(&subject, &query);
        for limit in [1, 4, 30] {
            let mut paged: Vec<u64> = Vec::new();
            loop {
                let before = paged.last().copied().map(RunKey);
                let page = runs(
                    &subject,
                    &ListQuery {
                        before,
                        limit,
                        ..query.clone()
                    },
                );
                if page.is_empty() {
                    break;
                }
                assert!(page.len() <= limit);
                paged.extend(page);
            }
            assert_eq!(paged, whole, "{query:?} by {limit}");
        }
        assert_eq!(
            runs(
                &subject,
                &ListQuery {
                    limit: 0,
                    ..query.clone()
                }
            ),
            [0_u64; 0]
        );
        let before = Some(RunKey(0));
        assert_eq!(runs(&subject, &ListQuery { before, ..query }), [0_u64; 0]);
    }
}
