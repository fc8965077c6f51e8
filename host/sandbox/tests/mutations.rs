//! Hostile uploads: seeded mutations of a valid component give an answer, never a panic or a hang.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "test code"
)]

#[path = "../../../tests/fuzz/checks/admission.rs"]
mod admission;
mod common;
#[path = "../../../tests/fuzz/checks/mutate.rs"]
mod mutate;

use std::path::Path;

use admission::{admit_anything, impatient_sandbox};
use common::Recorder;
use mutate::Seeded;
use steadfast_model::Payload;
use steadfast_model::command::Step;
use steadfast_ports::Guests;

/// The component that the fuzz target mutates too.
fn sample() -> Vec<u8> {
    let path = "../../tests/fixtures/components/minimal.wasm";
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("the fixture is there")
}

#[test]
fn the_sample_is_admitted_and_runs() {
    let sandbox = impatient_sandbox();
    let admitted = admit_anything(&sandbox, &sample()).expect("it is admitted");
    let mut guest = common::instantiate(&sandbox, admitted.digest);
    let (step, recorder) = common::start(guest.as_mut(), Recorder::default());
    assert_eq!(step, Ok(Step::Blocked));
    assert_eq!(recorder.calls.len(), 1);
}

#[test]
fn mutated_components_are_admitted_or_refused() {
    let sandbox = impatient_sandbox();
    let sample = sample();
    let mut random = Seeded(3);
    let mut admitted = 0;
    for _ in 0..2_000 {
        let bytes = random.mutate(&sample);
        let Ok(component) = admit_anything(&sandbox, &bytes) else {
            continue;
        };
        admitted += 1;
        // What got in is driven too: its code may be nonsense.
        let mut guest = sandbox
            .instantiate(component.digest, &|| Ok(None))
            .expect("admitted components are instantiated");
        let (_, calls) = guest.start("w", &Payload::json("1"), Box::new(Recorder::default()));
        let (_, _) = guest.resume(&[common::completed(1, "2")], calls);
    }
    assert!(
        admitted > 20,
        "the mutations reach past validation: {admitted} were admitted"
    );
}

#[test]
fn random_bytes_are_refused() {
    let sandbox = impatient_sandbox();
    let mut random = Seeded(4);
    let header = &sample()[..8];
    for _ in 0..3_000 {
        let length = random.below(300);
        let mut bytes: Vec<u8> = (0..length).map(|_| random.byte()).collect();
        if random.below(2) == 0 && bytes.len() >= 8 {
            bytes[..8].copy_from_slice(header);
        }
        assert!(admit_anything(&sandbox, &bytes).is_err());
    }
}
