//! Uploaded code: what it says about itself, and what the store keeps of it.

use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use crate::id::ComponentDigest;
use crate::time::Timestamp;

/// A message that a workflow understands.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct MessageDescription {
    /// Its name.
    #[n(0)]
    pub name: String,
    /// Text for people; may be empty.
    #[n(1)]
    pub doc: String,
    /// JSON Schema of the input; empty when not described.
    #[n(2)]
    pub input_schema: String,
    /// JSON Schema of the answer; empty when not described.
    #[n(3)]
    pub output_schema: String,
}

/// One workflow type of a component.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct WorkflowDescription {
    /// The workflow type.
    #[n(0)]
    pub name: String,
    /// Text for people; may be empty.
    #[n(1)]
    pub doc: String,
    /// JSON Schema of the input; empty when not described.
    #[n(2)]
    pub input_schema: String,
    /// JSON Schema of the result; empty when not described.
    #[n(3)]
    pub output_schema: String,
    /// Signals it receives.
    #[n(4)]
    pub signals: Vec<MessageDescription>,
    /// Queries it answers.
    #[n(5)]
    pub queries: Vec<MessageDescription>,
    /// Updates it accepts.
    #[n(6)]
    pub updates: Vec<MessageDescription>,
}

/// What a component tells about itself.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct ComponentDescription {
    /// `name/version` of the SDK that built it.
    #[n(0)]
    pub sdk: String,
    /// Most events it takes in one `resume`.
    #[n(1)]
    pub resume_batch_max: u32,
    /// Its workflow types.
    #[n(2)]
    pub workflows: Vec<WorkflowDescription>,
    /// Interfaces it imports, as `package/interface@version`.
    #[n(3)]
    pub imports: Vec<String>,
}

/// An uploaded component.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct ComponentRecord {
    /// Its identity.
    #[n(0)]
    pub digest: ComponentDigest,
    /// Size of the component in bytes.
    #[n(1)]
    pub size_bytes: u64,
    /// When it was first uploaded.
    #[n(2)]
    pub uploaded_at: Timestamp,
    /// What it says about itself.
    #[n(3)]
    pub description: ComponentDescription,
}
