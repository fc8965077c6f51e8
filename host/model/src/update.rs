//! An update between its admission and its acceptance: a row, not an event, because a refused
//! update leaves no trace in the history.

use alloc::string::String;

use minicbor::{Decode, Encode};

use crate::id::{RunKey, UpdateId, UpdateName};
use crate::payload::Payload;
use crate::time::Timestamp;

/// One admitted update: what is owed a look by the workflow's validator.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct AdmittedUpdate {
    /// The run.
    #[n(0)]
    pub run: RunKey,
    /// Its place among the run's admitted updates: they are looked at in this order.
    #[n(1)]
    pub number: u32,
    /// The client's name of it; the same id twice is the same update.
    #[n(2)]
    pub update_id: UpdateId,
    /// The handler's name.
    #[n(3)]
    pub name: UpdateName,
    /// Its input.
    #[n(4)]
    pub input: Payload,
    /// Who sent it; may be empty.
    #[n(5)]
    pub identity: String,
    /// When it was admitted.
    #[n(6)]
    pub admitted_at: Timestamp,
}

impl AdmittedUpdate {
    /// Rough bytes that keeping it costs.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        size_of::<Self>()
            + self.update_id.as_str().len()
            + self.name.as_str().len()
            + self.identity.len()
            + self.input.size_bytes()
    }
}
