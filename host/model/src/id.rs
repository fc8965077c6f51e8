//! Names and numbers that identify things. Each is its own type, so that two of them are never
//! swapped by accident.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;

use minicbor::{Decode, Encode};

use crate::limits::ID_BYTES_MAX;

/// Why a name was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// The text is empty.
    #[error("{what} must not be empty")]
    Empty {
        /// Which name.
        what: &'static str,
    },
    /// The text is longer than [`ID_BYTES_MAX`].
    #[error("{what} is {bytes} bytes long; the limit is {ID_BYTES_MAX}")]
    TooLong {
        /// Which name.
        what: &'static str,
        /// Its length.
        bytes: usize,
    },
    /// The text is not of the required form.
    #[error("{what} is malformed: {text:?} ({expected})")]
    Malformed {
        /// Which name.
        what: &'static str,
        /// What was given.
        text: String,
        /// What would have been right.
        expected: &'static str,
    },
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
        #[cbor(transparent)]
        pub struct $type(#[n(0)] String);

        impl $type {
            /// Checks and wraps a text of 1 to [`ID_BYTES_MAX`] bytes.
            ///
            /// # Errors
            /// [`Invalid`] when the text is empty or too long.
            pub fn new(text: impl Into<String>) -> Result<Self, Invalid> {
                let text = text.into();
                if text.is_empty() {
                    return Err(Invalid::Empty { what: $what });
                }
                if text.len() > ID_BYTES_MAX {
                    return Err(Invalid::TooLong { what: $what, bytes: text.len() });
                }
                Ok(Self(text))
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.0)
            }
        }

        impl core::str::FromStr for $type {
            type Err = Invalid;
            fn from_str(text: &str) -> Result<Self, Invalid> {
                Self::new(text.to_owned())
            }
        }
    };
}

name!(
    /// A tenant boundary.
    Namespace, "namespace"
);
name!(
    /// The user's name of an execution; at most one run of it is open at any time.
    WorkflowId, "workflow id"
);
name!(
    /// The name of a workflow definition.
    WorkflowType, "workflow type"
);
name!(
    /// The name of an activity definition.
    ActivityType, "activity type"
);
name!(
    /// Where workers look for tasks.
    TaskQueue, "task queue"
);
name!(
    /// The name of a signal.
    SignalName, "signal name"
);
name!(
    /// The id of a patch or the name of a side effect.
    MarkerName, "marker name"
);
name!(
    /// The name of a query.
    QueryName, "query name"
);
name!(
    /// The name of an update's handler.
    UpdateName, "update name"
);
name!(
    /// Made by a client; within a run, the same id twice is the same update.
    UpdateId, "update id"
);
name!(
    /// Made by a client; the same id twice is the same request.
    RequestId, "request id"
);

/// The store's number of a run: dense, ascending in the order of creation, never reused.
///
/// Rows of one run lie together in the store and new runs are written at the end, which is what
/// makes inserts cheap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct RunKey(#[n(0)] pub u64);

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One run of an execution, as clients see it: a UUID (version 8) that carries its [`RunKey`], so
/// that looking a run up by id needs no index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct RunId(#[cbor(n(0), with = "minicbor::bytes")] [u8; 16]);

impl RunId {
    /// Makes the id of a run from its key and eight random bytes.
    ///
    /// The key takes the first 48 bits; 2^48 runs are far beyond what a store holds.
    #[must_use]
    pub fn new(key: RunKey, random: [u8; 8]) -> Self {
        let [_, _, k2, k3, k4, k5, k6, k7] = key.0.to_be_bytes();
        let [r0, r1, r2, r3, r4, r5, r6, r7] = random;
        let version = 0x80 | (r0 & 0x0f);
        let variant = 0x80 | (r2 & 0x3f);
        Self([
            k2, k3, k4, k5, k6, k7, version, r1, variant, r3, r4, r5, r6, r7, r0, r2,
        ])
    }

    /// The key inside the id. A foreign UUID gives some key too: compare the run's stored id.
    #[must_use]
    pub fn key(&self) -> RunKey {
        let [k2, k3, k4, k5, k6, k7, ..] = self.0;
        RunKey(u64::from_be_bytes([0, 0, k2, k3, k4, k5, k6, k7]))
    }

    /// The sixteen bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Wraps sixteen stored bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::str::FromStr for RunId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let malformed = || Invalid::Malformed {
            what: "run id",
            text: text.chars().take(64).collect(),
            expected: "a UUID such as 00000000-002a-8000-8000-000000000000",
        };
        let mut bytes = [0_u8; 16];
        let mut digits = 0_usize;
        for c in text.bytes() {
            if c == b'-' && matches!(digits, 8 | 12 | 16 | 20) {
                continue;
            }
            let value = char::from(c).to_digit(16).ok_or_else(malformed)?;
            let byte = bytes.get_mut(digits / 2).ok_or_else(malformed)?;
            // `to_digit(16)` is below 16, so the conversion keeps the value.
            *byte = (*byte << 4) | u8::try_from(value).unwrap_or(0);
            digits += 1;
        }
        if digits == 32 {
            Ok(Self(bytes))
        } else {
            Err(malformed())
        }
    }
}

/// The number of a command within its run: 1, 2, 3, ... in the order of the guest's calls. An
/// event that a command made carries it, and so does the event that answers the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct Seq(#[n(0)] pub u32);

impl Seq {
    /// The number after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// For the number of a child's start: the number of its outcome.
    #[must_use]
    pub fn outcome(self) -> Self {
        self.next()
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of an event within its run, dense from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct EventNumber(#[n(0)] pub u64);

impl EventNumber {
    /// The first event of every history.
    pub const FIRST: Self = Self(1);

    /// The event `count` places later.
    #[must_use]
    pub fn plus(self, count: u64) -> Self {
        Self(self.0.saturating_add(count))
    }
}

impl fmt::Display for EventNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The SHA-256 of a component's bytes: its identity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct ComponentDigest(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 32]);

impl ComponentDigest {
    /// The first twelve hexadecimal digits, for tables.
    #[must_use]
    pub fn short(&self) -> String {
        use alloc::string::ToString;
        self.to_string().chars().take(12).collect()
    }
}

impl fmt::Display for ComponentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for ComponentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::str::FromStr for ComponentDigest {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let malformed = || Invalid::Malformed {
            what: "component digest",
            text: text.chars().take(80).collect(),
            expected: "64 hexadecimal digits",
        };
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(malformed());
        }
        let mut bytes = [0_u8; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = core::str::from_utf8(pair).map_err(|_e| malformed())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_e| malformed())?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn run_id_carries_its_key_and_parses_back() {
        let id = RunId::new(RunKey(42), [0xff; 8]);
        assert_eq!(id.key(), RunKey(42));
        let text = id.to_string();
        assert_eq!(text.len(), 36);
        assert_eq!(text.parse(), Ok(id));
        assert_eq!(text.as_bytes()[14], b'8', "a version 8 UUID: {text}");
    }

    #[test]
    fn malformed_ids_say_what_was_expected() {
        for text in [
            "",
            "x",
            "00000000-0000-0000-0000-00000000000",
            "-0000000000000000000000000000000-",
        ] {
            let error = text.parse::<RunId>().unwrap_err().to_string();
            assert!(error.contains("run id is malformed"), "{error}");
        }
        assert!("zz".parse::<ComponentDigest>().is_err());
        assert!(WorkflowId::new("").is_err());
        assert!(
            WorkflowId::new("x".repeat(1001))
                .unwrap_err()
                .to_string()
                .contains("1001 bytes")
        );
    }
}
