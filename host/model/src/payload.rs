//! Opaque user data.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

/// The encoding that an empty name stands for.
pub const JSON_PLAIN: &str = "json/plain";

/// Bytes with the name of their encoding. The host never looks inside.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
#[cbor(array)]
pub struct Payload {
    /// The bytes.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub data: Vec<u8>,
    /// The encoding's name; empty means [`JSON_PLAIN`]. Other names follow Temporal's data
    /// converters (`binary/null`, `binary/plain`, `json/protobuf`, `binary/protobuf`).
    #[n(1)]
    pub encoding: String,
}

impl Payload {
    /// JSON text.
    #[must_use]
    pub fn json(text: impl Into<Vec<u8>>) -> Self {
        Self {
            data: text.into(),
            encoding: String::new(),
        }
    }

    /// The encoding's full name.
    #[must_use]
    pub fn encoding_name(&self) -> &str {
        if self.encoding.is_empty() {
            JSON_PLAIN
        } else {
            &self.encoding
        }
    }

    /// A payload with a named encoding; `json/plain` is stored as the empty name.
    #[must_use]
    pub fn encoded(encoding: &str, data: Vec<u8>) -> Self {
        let encoding = if encoding == JSON_PLAIN {
            String::new()
        } else {
            encoding.to_owned()
        };
        Self { data, encoding }
    }

    /// Bytes that the payload adds to whatever holds it.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.data.len().saturating_add(self.encoding.len())
    }
}
