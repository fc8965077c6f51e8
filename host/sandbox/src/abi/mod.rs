//! The WIT package `steadfast:workflow@0.1.0` in Rust types: what guests give ([`lift`]), what
//! they get ([`lower`]), what they call ([`imports`]) and what they offer ([`exports`]).
//!
//! Bindings are written by hand, because generated ones copy every argument; the check that they
//! agree with the WIT is wasmtime's own type check when a component is linked.

mod children;
pub(crate) mod exports;
pub(crate) mod imports;
pub(crate) mod lift;
pub(crate) mod lower;
pub(crate) mod waiting;

/// The package, and the version, that this module speaks.
pub(crate) const PACKAGE: &str = "steadfast:workflow/";
/// Version suffix of its interfaces.
pub(crate) const VERSION: &str = "@0.1.0";

/// Interfaces of the `workflow` world that hold only types: nothing is linked for them.
pub(crate) const TYPES_ONLY: [&str; 3] = ["types", "events", "description"];

/// The interface that only the world `blocking-workflow` has.
pub(crate) const WAITING: &str = "waiting";

/// Interfaces with functions, and those functions.
pub(crate) const FUNCTIONS: [(&str, &[&str]); 12] = [
    ("activities", &["schedule", "cancel"]),
    ("timers", &["start", "cancel"]),
    ("markers", &["patched", "deprecate-patch", "side-effect"]),
    ("updates", &["complete"]),
    ("children", &["start", "cancel"]),
    ("executions", &["signal", "request-cancel"]),
    ("clock", &["now"]),
    ("random", &["random-bytes"]),
    ("log", &["write"]),
    (
        "workflow-info",
        &[
            "get",
            "history-length",
            "continue-as-new-suggested",
            "chain",
        ],
    ),
    ("memo", &["upsert"]),
    (
        WAITING,
        &[
            "wait-any",
            "take",
            "release",
            "receive-signal",
            "receive-cancel",
            "is-cancel-requested",
        ],
    ),
];

/// Exports that a component of the `workflow` world must have. `query` and `validate-update` may
/// be left out by one that describes no queries and updates.
pub(crate) const EXPORTS: [&str; 3] = ["describe", "start", "resume"];

/// Exports of the `blocking-workflow` world.
pub(crate) const BLOCKING_EXPORTS: [&str; 2] = ["describe", "run"];
