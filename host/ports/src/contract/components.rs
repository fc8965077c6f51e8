//! Laws of components and routes, and of large things.

use steadfast_model::{ComponentDigest, EventNumber, RunKey, Timestamp};

use crate::contract::{Factory, make};
use crate::fake::Rng;
use crate::store::Write;

fn bytes(seed: u64, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    Rng::new(seed).fill(&mut bytes);
    bytes
}

/// Components are listed by digest and their bytes come back as they were.
pub fn components_come_back_whole(factory: Factory<'_>) {
    let subject = factory();
    let store = &subject.store;
    let sizes = [(9, 0), (3, 1), (200, 1_000_000)];
    for (digest, size) in sizes {
        let record = Box::new(make::component(digest, size));
        let put = Write::PutComponent {
            record,
            bytes: bytes(1, size),
        };
        store.commit(make::batch(vec![put])).expect("ok");
    }
    let records: Vec<_> = [(3, 1), (9, 0), (200, 1_000_000)]
        .into_iter()
        .map(|(digest, size)| make::component(digest, size))
        .collect();
    assert_eq!(store.components(), Ok(records));
    for (digest, size) in sizes {
        let found = store.component_bytes(ComponentDigest([digest; 32]));
        assert_eq!(found, Ok(Some(bytes(1, size))));
    }
    assert_eq!(store.component_bytes(ComponentDigest([1; 32])), Ok(None));
    // A second upload replaces the first, also by a shorter one.
    let record = Box::new(make::component(200, 10));
    let put = Write::PutComponent {
        record,
        bytes: bytes(2, 10),
    };
    store.commit(make::batch(vec![put])).expect("ok");
    assert_eq!(
        store.component_bytes(ComponentDigest([200; 32])),
        Ok(Some(bytes(2, 10)))
    );
}

/// A component of 20 MB is nothing special.
pub fn large_components_come_back_whole(factory: Factory<'_>) {
    let subject = factory();
    let store = &subject.store;
    let large = bytes(3, 20_000_000);
    let record = Box::new(make::component(1, large.len()));
    let put = Write::PutComponent {
        record,
        bytes: large.clone(),
    };
    store
        .commit(make::batch(vec![put, make::append(1, 1, 1)]))
        .expect("ok");
    let found = store
        .component_bytes(ComponentDigest([1; 32]))
        .expect("readable");
    assert!(found == Some(large), "the bytes differ");
    assert_eq!(
        store.history(RunKey(1), EventNumber(1), 1),
        Ok(vec![make::chunk(1, 1)])
    );
}

/// A route names the component that was put last.
pub fn routes_point_to_the_latest(factory: Factory<'_>) {
    let subject = factory();
    let store = &subject.store;
    for digest in [1, 2, 1, 3] {
        for name in ["t", "t\0", "tt"] {
            let component = ComponentDigest([digest; 32]);
            let workflow_type = make::workflow_type(name);
            let put = Write::PutRoute {
                namespace: make::namespace(),
                workflow_type: workflow_type.clone(),
                component,
            };
            store.commit(make::batch(vec![put])).expect("ok");
            assert_eq!(
                store.route(&make::namespace(), &workflow_type),
                Ok(Some(component))
            );
        }
    }
    assert_eq!(
        store.route(&make::namespace(), &make::workflow_type("other")),
        Ok(None)
    );
}

/// Ten thousand changes in one batch are one change.
pub fn batches_may_be_large(factory: Factory<'_>) {
    let subject = factory();
    let store = &subject.store;
    let mut writes = Vec::new();
    for run in 1..=2500 {
        writes.push(make::append(run, 1, 1));
        writes.push(make::append(run, 2, 1));
        writes.push(Write::PutTimer(make::timer(1_000_000 - run, run, 1)));
        writes.push(Write::PutReady(RunKey(run)));
    }
    assert_eq!(writes.len(), 10_000);
    let mut refused = writes.clone();
    refused.push(make::append(1, 4, 1));
    assert!(store.commit(make::batch(refused)).is_err());
    assert_eq!(store.ready(None, 1), Ok(vec![]));
    store.commit(make::batch(writes)).expect("ok");
    assert_eq!(store.last_run(), Ok(RunKey(2500)));
    assert_eq!(store.ready(None, 9999).map(|runs| runs.len()), Ok(2500));
    let timers = store
        .timers(None, Timestamp(1_000_000), 9999)
        .expect("readable");
    assert_eq!(timers.first(), Some(&make::timer(997_500, 2500, 1)));
    assert_eq!(timers.len(), 2500);
    for run in [1, 1250, 2500] {
        let read = store
            .history(RunKey(run), EventNumber(1), 9999)
            .expect("readable");
        assert_eq!(read, [make::chunk(1, 1), make::chunk(2, 1)]);
    }
}
