//! Uploaded components.

use serde::{Deserialize, Serialize};
use steadfast_model::ComponentRecord;
use steadfast_model::component::{MessageDescription, WorkflowDescription};
use utoipa::ToSchema;

use crate::wire::{Json, Time};

/// An uploaded component and what it says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Component {
    /// SHA-256 of its bytes, 64 hexadecimal digits: its identity.
    pub digest: String,
    /// Its size.
    pub size_bytes: u64,
    /// When it was first uploaded.
    pub uploaded_at: Time,
    /// Name and version of the SDK that built it.
    pub sdk: String,
    /// Interfaces it imports, as `package/interface@version`.
    pub imports: Vec<String>,
    /// Its workflow types.
    pub workflows: Vec<WorkflowType>,
    /// Only in the answer to an upload: false if the same bytes were there before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_new: Option<bool>,
}

/// One workflow type of a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkflowType {
    /// The workflow type.
    pub name: String,
    /// Text for people; may be empty.
    pub doc: String,
    /// JSON Schema of the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Json>,
    /// JSON Schema of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Json>,
    /// Signals it receives.
    pub signals: Vec<Message>,
    /// Queries it answers.
    pub queries: Vec<Message>,
    /// Updates it accepts.
    pub updates: Vec<Message>,
}

/// A message that a workflow understands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Message {
    /// Its name.
    pub name: String,
    /// Text for people; may be empty.
    pub doc: String,
    /// JSON Schema of the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Json>,
    /// JSON Schema of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Json>,
}

/// The body of an upload, for the document only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComponentBytes;

impl utoipa::PartialSchema for ComponentBytes {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)))
            .description(Some("A WebAssembly component."))
            .into()
    }
}

impl ToSchema for ComponentBytes {}

/// All components.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ComponentList {
    /// In the order of their digests.
    pub components: Vec<Component>,
}

impl Component {
    /// The wire form of a component.
    #[must_use]
    pub fn from_model(record: ComponentRecord) -> Self {
        let ComponentRecord {
            digest,
            size_bytes,
            uploaded_at,
            description,
        } = record;
        Self {
            digest: digest.to_string(),
            size_bytes,
            uploaded_at: uploaded_at.into(),
            sdk: description.sdk,
            imports: description.imports,
            workflows: description
                .workflows
                .into_iter()
                .map(WorkflowType::from_model)
                .collect(),
            is_new: None,
        }
    }
}

impl WorkflowType {
    fn from_model(workflow: WorkflowDescription) -> Self {
        let messages = |list: Vec<MessageDescription>| -> Vec<Message> {
            list.into_iter().map(Message::from_model).collect()
        };
        Self {
            name: workflow.name,
            doc: workflow.doc,
            input_schema: Json::from_text(&workflow.input_schema),
            output_schema: Json::from_text(&workflow.output_schema),
            signals: messages(workflow.signals),
            queries: messages(workflow.queries),
            updates: messages(workflow.updates),
        }
    }
}

impl Message {
    fn from_model(message: MessageDescription) -> Self {
        Self {
            name: message.name,
            doc: message.doc,
            input_schema: Json::from_text(&message.input_schema),
            output_schema: Json::from_text(&message.output_schema),
        }
    }
}
