//! Any bytes, and mutations of a valid component, given to admission.
//!
//! The input's first byte chooses: below 128 the rest is taken as it is, otherwise it is a list of
//! changes (two bytes of address, one of value) to the sample component.
#![no_main]

#[path = "../checks/admission.rs"]
mod admission;

use std::sync::LazyLock;

use steadfast_sandbox::Sandbox;

static SANDBOX: LazyLock<Sandbox> = LazyLock::new(admission::impatient_sandbox);

/// A component made by `steadfast component build`.
static SAMPLE: &[u8] = include_bytes!("../../fixtures/components/minimal.wasm");

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((choice, rest)) = bytes.split_first() else {
        return;
    };
    if *choice < 128 {
        drop(admission::admit_anything(&SANDBOX, rest));
        return;
    }
    let mut component = SAMPLE.to_vec();
    for change in rest.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]]));
        let length = component.len();
        component[at % length] = change[2];
    }
    drop(admission::admit_anything(&SANDBOX, &component));
});
