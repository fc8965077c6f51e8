//! redb's errors as the port's, and its panics as errors.

use std::io::ErrorKind::{InvalidData, UnexpectedEof};
use std::panic::{AssertUnwindSafe, catch_unwind};

use steadfast_model::codec;
use steadfast_ports::store::Error;

use crate::schema::FORMAT;

/// What an operator can do about damaged bytes.
const CORRUPT_ADVICE: &str = "the file is damaged: keep a copy of it and restore a backup";

/// Turns an error of redb into the port's.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "redb may add errors; one that is not known to be damage is a failure of the disk"
)]
pub(crate) fn fault(error: impl Into<redb::Error>) -> Error {
    let error = error.into();
    match &error {
        redb::Error::Corrupted(message) => corrupt(message),
        redb::Error::PreviousIo => {
            Error::Poisoned("an earlier disk error; only cached rows can be read".to_owned())
        }
        redb::Error::DatabaseClosed => Error::Closed,
        redb::Error::DatabaseAlreadyOpen => Error::Unavailable(
            "another process has the store open: stop it, or use another data directory".to_owned(),
        ),
        // A table that is not there or not ours: the file is not what this crate wrote.
        redb::Error::TableTypeMismatch { .. }
        | redb::Error::TableIsMultimap(_)
        | redb::Error::TableIsNotMultimap(_)
        | redb::Error::TypeDefinitionChanged { .. }
        | redb::Error::TableDoesNotExist(_)
        | redb::Error::LockPoisoned(_)
        | redb::Error::UpgradeRequired(_)
        | redb::Error::RepairAborted => corrupt(&error.to_string()),
        // So redb reports bytes that are not a database, and a file that ends too early.
        redb::Error::Io(io) if matches!(io.kind(), InvalidData | UnexpectedEof) => {
            corrupt(&error.to_string())
        }
        _ => Error::Unavailable(error.to_string()),
    }
}

/// Damaged bytes, with what to do.
pub(crate) fn corrupt(message: &str) -> Error {
    Error::Corrupt(format!("{message}; {CORRUPT_ADVICE}"))
}

/// A stored value that cannot be decoded.
pub(crate) fn undecodable(what: &str, error: &codec::Error) -> Error {
    match error {
        codec::Error::Newer { found } => Error::Newer {
            found: u64::from(*found),
            supported: FORMAT,
        },
        codec::Error::Corrupt(message) => corrupt(&format!("{what}: {message}")),
    }
}

/// Runs `work` and turns a panic into [`Error::Corrupt`].
///
/// redb checks a page's bytes with assertions where it trusts that it wrote them itself, so a
/// damaged file can make it panic. Nothing it has locked is used again without a check: its locks
/// are poisoned by the unwinding and answer with an error from then on.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(corrupt(&text(&*panic))))
}

fn text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a check failed")
        .to_owned()
}
