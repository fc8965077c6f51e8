// What must hold for any bytes given to admission. Included by the fuzz target `admission` and by
// the seeded test of `steadfast-sandbox`.

use std::time::Duration;

use steadfast_model::Millis;
use steadfast_ports::Guests;
use steadfast_ports::guest::{Admitted, Refusal};
use steadfast_sandbox::{Options, Sandbox};

/// A sandbox whose guests may not waste the fuzzer's time.
pub fn impatient_sandbox() -> Sandbox {
    let options = Options {
        instances_max: 8,
        activation_time_max: Millis(50),
        tick: Duration::from_millis(5),
        ..Options::default()
    };
    Sandbox::new(options).expect("the sandbox starts")
}

/// Admits the bytes: no panic, no hang, the same answer twice, and what is admitted can be
/// instantiated.
pub fn admit_anything(sandbox: &Sandbox, bytes: &[u8]) -> Result<Admitted, Refusal> {
    let first = sandbox.admit(bytes);
    match &first {
        Ok(admitted) => {
            assert_eq!(
                sandbox.admit(bytes).as_ref(),
                Ok(admitted),
                "admission is deterministic"
            );
            let instance = sandbox.instantiate(admitted.digest, &|| Ok(None));
            assert!(instance.is_ok(), "what is admitted can be instantiated");
        }
        Err(refusal) => assert!(!refusal.to_string().is_empty(), "a refusal says why"),
    }
    first
}
