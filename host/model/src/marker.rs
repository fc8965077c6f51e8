//! Answers that the code of a run got from itself, recorded so that a replay gets the same ones.

use minicbor::{Decode, Encode};

use crate::id::MarkerName;
use crate::payload::Payload;

/// What a marker records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum MarkerKind {
    /// The code asked whether it is patched, and was told so.
    #[n(0)]
    Patch,
    /// The same of a patch whose old branch is gone. Code that no longer makes this call still
    /// fits the history.
    #[n(1)]
    DeprecatedPatch,
    /// A value that the code computed once.
    #[n(2)]
    SideEffect,
}

impl MarkerKind {
    /// The kind's name in messages and on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Patch => "patch",
            Self::DeprecatedPatch => "deprecated-patch",
            Self::SideEffect => "side-effect",
        }
    }
}

/// One marker.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Marker {
    /// What it records.
    #[n(0)]
    pub kind: MarkerKind,
    /// The patch's id, or the side effect's name.
    #[n(1)]
    pub name: MarkerName,
    /// The recorded value, if there is one.
    #[n(2)]
    pub details: Option<Payload>,
}

impl core::fmt::Display for Marker {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} {:?}", self.kind.name(), self.name)
    }
}
