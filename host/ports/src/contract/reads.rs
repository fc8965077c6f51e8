//! Laws of reading one thing: visibility, histories, activities.

use steadfast_model::{EventNumber, RunKey, Seq, Timestamp};

use crate::contract::{Factory, make};
use crate::store::Write;

/// Every read of an empty store gives nothing, without an error.
pub fn an_empty_store_reads_as_nothing(factory: Factory<'_>) {
    let subject = factory();
    let store = &subject.store;
    let digest = make::component(1, 1).digest;
    assert_eq!(store.last_run(), Ok(RunKey(0)));
    assert_eq!(store.execution(RunKey(1)), Ok(None));
    assert_eq!(
        store.current_run(&make::namespace(), &make::workflow_id("w")),
        Ok(None)
    );
    assert_eq!(store.history(RunKey(1), EventNumber(1), 1), Ok(vec![]));
    assert_eq!(store.activities(RunKey(1)), Ok(vec![]));
    assert_eq!(store.timers(None, Timestamp(u64::MAX), 1), Ok(vec![]));
    assert_eq!(store.ready(None, 1), Ok(vec![]));
    assert_eq!(store.tasks(None, 1), Ok(vec![]));
    assert_eq!(store.list(&make::everything()), Ok(vec![]));
    assert_eq!(store.components(), Ok(vec![]));
    assert_eq!(store.component_bytes(digest), Ok(None));
    assert_eq!(
        store.route(&make::namespace(), &make::workflow_type("t")),
        Ok(None)
    );
    assert!(store.disk_bytes().is_ok());
}

/// What has been acknowledged is seen by the very next read.
pub fn acknowledged_batches_are_visible(factory: Factory<'_>) {
    let subject = factory();
    let store = &subject.store;
    for run in 1..50 {
        let record = make::execution(run, "w");
        let replaces = (run > 1).then_some(run - 1);
        let writes = vec![
            make::append(run, 1, 1),
            make::claim("w", run, replaces),
            make::put(record.clone()),
        ];
        store.commit(make::batch(writes)).expect("ok");
        let current = store.current_run(&make::namespace(), &make::workflow_id("w"));
        assert_eq!(current, Ok(Some(RunKey(run))));
        assert_eq!(store.execution(RunKey(run)), Ok(Some(record)));
        assert_eq!(
            store.history(RunKey(run), EventNumber(1), 1),
            Ok(vec![make::chunk(1, 1)])
        );
    }
}

/// A history is read from the chunk that holds an event, also from its middle.
pub fn histories_are_read_from_anywhere(factory: Factory<'_>) {
    let subject = factory();
    let store = &subject.store;
    let writes = vec![
        make::append(1, 1, 1),
        make::append(3, 1, 1),
        make::append(2, 1, 3),
    ];
    store.commit(make::batch(writes)).expect("ok");
    store
        .commit(make::batch(vec![make::append(2, 4, 4)]))
        .expect("ok");
    store
        .commit(make::batch(vec![make::append(2, 8, 1)]))
        .expect("ok");
    let chunks = [make::chunk(1, 3), make::chunk(4, 4), make::chunk(8, 1)];
    let first_chunk = [0, 0, 0, 0, 1, 1, 1, 1, 2];
    for (from, skipped) in (0..).zip(first_chunk) {
        let read = store
            .history(RunKey(2), EventNumber(from), 9999)
            .expect("readable");
        assert_eq!(read, chunks[skipped..], "from event {from}");
    }
    for from in [9, 10, u64::MAX] {
        assert_eq!(
            store.history(RunKey(2), EventNumber(from), 9999),
            Ok(vec![])
        );
    }
    assert_eq!(store.history(RunKey(4), EventNumber(1), 9999), Ok(vec![]));
    let mut events = Vec::new();
    for chunk in store
        .history(RunKey(2), EventNumber(1), 9999)
        .expect("readable")
    {
        chunk
            .decode_into(&mut events)
            .expect("what was appended can be decoded");
    }
    assert_eq!(events, make::events(1, &["{}"; 8]));
}

/// A read of a history returns at least one chunk, and no more bytes than asked for after it.
pub fn histories_keep_to_their_byte_limit(factory: Factory<'_>) {
    let subject = factory();
    let store = &subject.store;
    for first in 1..=20 {
        store
            .commit(make::batch(vec![make::append(1, first, 1)]))
            .expect("ok");
    }
    let one = make::chunk(20, 1).bytes.len();
    let count = |from, bytes_max| {
        let read = store
            .history(RunKey(1), EventNumber(from), bytes_max)
            .expect("readable");
        assert_eq!(read.first().map(|chunk| chunk.first.0), Some(from));
        read.len()
    };
    assert_eq!(count(1, 0), 1);
    assert_eq!(count(10, one), 1);
    assert_eq!(count(10, 3 * one), 3);
    assert_eq!(count(10, 4 * one - 1), 3);
    assert_eq!(count(10, usize::MAX), 11);
    let (mut next, mut pages) = (EventNumber(1), 0);
    while let Some(last) = store
        .history(RunKey(1), next, 4 * one)
        .expect("readable")
        .last()
    {
        next = last.end();
        pages += 1;
    }
    assert_eq!(next, EventNumber(21));
    assert!((5..=7).contains(&pages), "{pages} pages");
}

/// The pending activities of a run are its own, by number.
pub fn activities_are_their_runs_alone(factory: Factory<'_>) {
    let subject = factory();
    let store = &subject.store;
    let seqs = [300, 1, 2, u32::MAX, 0];
    for run in [1, 2, 3] {
        let writes = seqs
            .iter()
            .map(|seq| Write::PutActivity(Box::new(make::activity(run, *seq))));
        store.commit(make::batch(writes.collect())).expect("ok");
    }
    let delete = vec![Write::DeleteActivity(RunKey(2), Seq(2))];
    store.commit(make::batch(delete)).expect("ok");
    let read = |run| -> Vec<u32> {
        let tasks = store.activities(RunKey(run)).expect("readable");
        assert!(tasks.iter().all(|task| task.run == RunKey(run)));
        tasks.iter().map(|task| task.seq.0).collect()
    };
    assert_eq!(read(1), [0, 1, 2, 300, u32::MAX]);
    assert_eq!(read(2), [0, 1, 300, u32::MAX]);
    assert_eq!(read(3), [0, 1, 2, 300, u32::MAX]);
    assert_eq!(read(4), [0_u32; 0]);
}

/// The admitted updates of a run are its own, by number.
pub fn updates_are_their_runs_alone(factory: Factory<'_>) {
    let subject = factory();
    let store = &subject.store;
    for run in [1, 2, 3] {
        let writes = [300, 1, u32::MAX, 0]
            .into_iter()
            .map(|number| Write::PutUpdate(Box::new(make::update(run, number))));
        store.commit(make::batch(writes.collect())).expect("ok");
    }
    let delete = vec![
        Write::DeleteUpdate(RunKey(2), 1),
        Write::DeleteUpdate(RunKey(2), 7),
    ];
    store.commit(make::batch(delete)).expect("ok");
    let read = |run| -> Vec<u32> {
        let updates = store.updates(RunKey(run)).expect("readable");
        assert!(
            updates
                .iter()
                .all(|update| *update == make::update(run, update.number))
        );
        updates.iter().map(|update| update.number).collect()
    };
    assert_eq!(read(1), [0, 1, 300, u32::MAX]);
    assert_eq!(read(2), [0, 300, u32::MAX]);
    assert_eq!(read(3), [0, 1, 300, u32::MAX]);
    assert_eq!(read(4), [0_u32; 0]);
}

/// The last event of a history is known without reading it.
pub fn last_events_are_known(factory: Factory<'_>) {
    let subject = factory();
    let store = &subject.store;
    let last = |run| store.last_event(RunKey(run)).expect("readable").0;
    assert_eq!(last(1), 0);
    for (run, first, count, expected) in [(1, 1, 3, 3), (2, 1, 1, 1), (1, 4, 2, 5)] {
        let writes = vec![make::append(run, first, count)];
        store.commit(make::batch(writes)).expect("ok");
        assert_eq!(last(run), expected);
    }
    assert_eq!((last(1), last(2), last(3)), (5, 1, 0));
}

/// The largest run key is known, whatever was written last.
pub fn last_run_counts_up(factory: Factory<'_>) {
    let subject = factory();
    let store = &subject.store;
    for (run, largest) in [
        (3, 3),
        (1, 3),
        (256, 256),
        (7, 256),
        (u64::from(u32::MAX) + 1, 1 << 32),
    ] {
        let writes = vec![
            make::append(run, 1, 1),
            make::put(make::execution(run, "w")),
        ];
        store.commit(make::batch(writes)).expect("ok");
        assert_eq!(store.last_run(), Ok(RunKey(largest)));
    }
}
