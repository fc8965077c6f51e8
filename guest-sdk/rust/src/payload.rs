//! Bytes that cross the boundary of a run, and how Rust values become them.
//!
//! Any serde type is written as JSON. [`Payload`] itself goes through untouched, which is the way
//! to other encodings. Read next: `failure.rs`, `activity.rs`.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// Opaque bytes with the name of their encoding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    /// The encoding's name; the empty string means `json/plain`. Other names follow Temporal's
    /// data converters, for example `binary/plain` and `binary/null`.
    pub encoding: String,
    /// The bytes. JSON payloads are UTF-8 text.
    pub data: Vec<u8>,
}

impl Payload {
    /// Returns a payload of raw bytes, encoded as `binary/plain`.
    #[must_use]
    pub fn binary(data: Vec<u8>) -> Self {
        Self {
            encoding: String::from("binary/plain"),
            data,
        }
    }

    /// Returns true when the bytes are JSON text.
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.encoding.is_empty() || self.encoding == "json/plain"
    }

    /// Returns true when the payload stands for no value at all.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.encoding == "binary/null" || (self.is_json() && self.data.is_empty())
    }
}

/// A value that can be read from a payload; every `serde` type that owns its data is one.
pub trait Decode: Sized + 'static {
    /// Reads a value.
    ///
    /// # Errors
    ///
    /// A failure with the code `decode`, whose details are the payload that was refused.
    fn decode(payload: Payload) -> Result<Self, Failure>;
}

/// A value that can be written as a payload; every `serde` type is one.
pub trait Encode {
    /// Writes the value, reusing the memory of `buffer`, whose contents are dropped.
    ///
    /// # Errors
    ///
    /// A failure with the code `encode` when the value has no JSON form.
    fn encode(&self, buffer: Vec<u8>) -> Result<Payload, Failure>;
}

impl<T: DeserializeOwned + 'static> Decode for T {
    fn decode(payload: Payload) -> Result<Self, Failure> {
        let json: &[u8] = if payload.is_null() {
            b"null"
        } else if payload.is_json() {
            &payload.data
        } else {
            let message = format!(
                "expected JSON, got a payload encoded as {}",
                payload.encoding
            );
            return Err(Failure::non_retryable("decode", message).with_payload(payload));
        };
        match serde_json::from_slice(json) {
            Ok(value) => {
                crate::run::recycle(payload.data);
                Ok(value)
            }
            Err(error) => {
                let message = format!("payload does not decode: {error}");
                Err(Failure::non_retryable("decode", message).with_payload(payload))
            }
        }
    }
}

impl Decode for Payload {
    fn decode(payload: Payload) -> Result<Self, Failure> {
        Ok(payload)
    }
}

impl<T: Serialize + ?Sized> Encode for T {
    fn encode(&self, mut buffer: Vec<u8>) -> Result<Payload, Failure> {
        buffer.clear();
        match serde_json::to_writer(&mut buffer, self) {
            Ok(()) => Ok(Payload {
                encoding: String::new(),
                data: buffer,
            }),
            Err(error) => {
                let message = format!("value does not encode: {error}");
                Err(Failure::non_retryable("encode", message))
            }
        }
    }
}

impl Encode for Payload {
    fn encode(&self, _buffer: Vec<u8>) -> Result<Payload, Failure> {
        Ok(self.clone())
    }
}

/// The input of a workflow that takes none: any payload is accepted and dropped.
#[derive(Clone, Copy, Debug)]
pub struct NoInput;

impl Decode for NoInput {
    fn decode(_payload: Payload) -> Result<Self, Failure> {
        Ok(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_round_trips_and_reuses_the_buffer() {
        let buffer = Vec::with_capacity(64);
        let payload = [1_u32, 2].encode(buffer).unwrap();
        assert_eq!(payload.data, b"[1,2]");
        assert!(payload.data.capacity() >= 64);
        assert_eq!(Vec::<u32>::decode(payload).unwrap(), [1, 2]);
    }

    #[test]
    fn missing_value_reads_as_unit_and_none() {
        let null = Payload {
            encoding: String::from("binary/null"),
            data: Vec::new(),
        };
        assert_eq!(Option::<u32>::decode(null.clone()).unwrap(), None);
        <()>::decode(null).unwrap();
        <()>::decode(Payload::default()).unwrap();
    }

    #[test]
    fn refused_payload_is_kept_in_the_failure() {
        let payload = "text".encode(Vec::new()).unwrap();
        let failure = u32::decode(payload.clone()).unwrap_err();
        assert_eq!(failure.code(), "decode");
        assert_eq!(failure.details(), Some(&payload));
        let failure = u32::decode(Payload::binary(vec![1])).unwrap_err();
        assert_eq!(failure.details(), Some(&Payload::binary(vec![1])));
    }
}
