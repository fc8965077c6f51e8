//! The stored form: CBOR with numbered fields, fields only ever appended.
//!
//! A stored value begins with one format byte. Decoders are total: any bytes give a value or an
//! [`Error`], never a panic, and recursion is bounded because no stored type is recursive. The
//! bytes are documented in `docs/storage-format.md`; fixtures of every released format stay in
//! `tests/fixtures`.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use minicbor::encode::write::Write;
use minicbor::{Decode, Decoder, Encode, Encoder};

use crate::event::{Event, EventKind};
use crate::id::EventNumber;
use crate::time::Timestamp;

/// The format that this build writes.
pub const FORMAT: u8 = 1;

/// For fields that were appended: what they do not say is not written, so that values without
/// them have the same bytes as before.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Why stored bytes could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The value was written by a newer build.
    #[error("format {found} is newer than this build reads ({FORMAT})")]
    Newer {
        /// The value's format byte.
        found: u8,
    },
    /// The bytes are not a value of this type.
    #[error("corrupt value: {0}")]
    Corrupt(String),
}

fn corrupt(error: &minicbor::decode::Error) -> Error {
    Error::Corrupt(error.to_string())
}

/// Appends the stored form of one value.
pub fn encode_into<T: Encode<()>>(value: &T, bytes: &mut Vec<u8>) {
    bytes.push(FORMAT);
    infallible(minicbor::encode(value, Unbounded(bytes)));
}

/// The stored form of one value.
#[must_use]
pub fn encode<T: Encode<()>>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_into(value, &mut bytes);
    bytes
}

/// Reads one value that fills the bytes exactly.
///
/// # Errors
/// [`Error`] when the bytes were written by a newer build or are not such a value.
pub fn decode<T: for<'b> Decode<'b, ()>>(bytes: &[u8]) -> Result<T, Error> {
    let mut decoder = Decoder::new(body(bytes)?);
    let value = decoder.decode().map_err(|e| corrupt(&e))?;
    if decoder.position() == decoder.input().len() {
        Ok(value)
    } else {
        Err(Error::Corrupt(
            "bytes after the end of the value".to_owned(),
        ))
    }
}

fn body(bytes: &[u8]) -> Result<&[u8], Error> {
    match bytes.split_first() {
        Some((&FORMAT, body)) => Ok(body),
        Some((&found, _)) if found > FORMAT => Err(Error::Newer { found }),
        _ => Err(Error::Corrupt("no format byte".to_owned())),
    }
}

/// Some consecutive events of one history, encoded: the unit in which histories are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Number of the first event.
    pub first: EventNumber,
    /// How many events; never 0.
    pub count: u32,
    /// Format byte, then for each event its time and kind.
    pub bytes: Vec<u8>,
}

impl Chunk {
    /// Encodes consecutive events; `None` when there are none.
    #[must_use]
    pub fn encode(events: &[Event]) -> Option<Self> {
        let first = events.first()?.number;
        let mut bytes = Vec::with_capacity(64 * events.len());
        bytes.push(FORMAT);
        let mut encoder = Encoder::new(Unbounded(&mut bytes));
        for event in events {
            infallible(encoder.encode(event.time).map(drop));
            infallible(encoder.encode(&event.kind).map(drop));
        }
        let count = u32::try_from(events.len()).unwrap_or(u32::MAX);
        Some(Self {
            first,
            count,
            bytes,
        })
    }

    /// Number of the event after the last.
    #[must_use]
    pub fn end(&self) -> EventNumber {
        self.first.plus(u64::from(self.count))
    }

    /// Decodes the events and appends them.
    ///
    /// # Errors
    /// [`Error`] when the bytes are not `count` events.
    pub fn decode_into(&self, events: &mut Vec<Event>) -> Result<(), Error> {
        decode_events(self.first, self.count, &self.bytes, events)
    }
}

/// Decodes `count` events numbered from `first` out of a chunk's bytes and appends them.
///
/// # Errors
/// [`Error`] when the bytes are not exactly that many events.
pub fn decode_events(
    first: EventNumber,
    count: u32,
    bytes: &[u8],
    events: &mut Vec<Event>,
) -> Result<(), Error> {
    let mut decoder = Decoder::new(body(bytes)?);
    for i in 0..u64::from(count) {
        let time: Timestamp = decoder.decode().map_err(|e| corrupt(&e))?;
        let kind: EventKind = decoder.decode().map_err(|e| corrupt(&e))?;
        events.push(Event {
            number: first.plus(i),
            time,
            kind,
        });
    }
    if decoder.position() == decoder.input().len() {
        Ok(())
    } else {
        Err(Error::Corrupt("bytes after the last event".to_owned()))
    }
}

/// A growing buffer as minicbor's writer.
struct Unbounded<'a>(&'a mut Vec<u8>);

impl Write for Unbounded<'_> {
    type Error = core::convert::Infallible;

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Self::Error> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Our types have no encoder that refuses a value and the writer cannot fail, so the only way to
/// get here with an error is a bug in a derive.
fn infallible(result: Result<(), minicbor::encode::Error<core::convert::Infallible>>) {
    debug_assert!(result.is_ok(), "encoding into memory cannot fail");
    drop(result);
}
