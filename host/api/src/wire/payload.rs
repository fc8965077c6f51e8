//! User data inside JSON documents, byte for byte.
//!
//! A payload whose encoding is `json/plain` appears as the JSON value that it is: never parsed into
//! numbers, never formatted anew, so integers above 2^53, the order of keys and repeated keys
//! survive. Every other payload appears as
//! `{"$payload": {"encoding": "binary/plain", "data": "<base64>"}}`. The second form is also used
//! for JSON that the first cannot carry: text that is not valid JSON, that has blanks around it, or
//! that looks like the second form itself.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType};

use crate::wire::Invalid;

/// User data as a JSON value.
#[derive(Debug, Clone)]
pub struct Payload(Box<RawValue>);

/// The form of what is not JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wrapped<'a> {
    #[serde(rename = "$payload", borrow)]
    payload: Inner<'a>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inner<'a> {
    #[serde(borrow)]
    encoding: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    data: std::borrow::Cow<'a, str>,
}

/// Decides which of the two forms a JSON text is, in both directions alike. A key that is written
/// with escapes is not taken for the second form.
fn is_wrapped(text: &str) -> bool {
    let inside = text.strip_prefix('{').map(str::trim_start);
    inside.is_some_and(|inside| inside.starts_with("\"$payload\""))
}

impl Payload {
    /// The JSON value `null`: what a missing input stands for.
    #[must_use]
    pub fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }

    /// A value that is already JSON text.
    ///
    /// # Errors
    /// [`Invalid`] when the text is not one JSON value.
    pub fn from_json_text(text: impl Into<String>) -> Result<Self, Invalid> {
        let raw = RawValue::from_string(text.into());
        raw.map(Self)
            .map_err(|error| Invalid::new("payload", error.to_string()))
    }

    /// The JSON text, as it stands in the document.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The wire form of a payload. Reading it back gives an equal payload.
    #[must_use]
    pub fn from_model(payload: steadfast_model::Payload) -> Self {
        if payload.encoding.is_empty() {
            match String::from_utf8(payload.data) {
                Ok(text) => Self::from_text(text),
                Err(error) => Self::wrapped("json/plain", error.as_bytes()),
            }
        } else {
            Self::wrapped(&payload.encoding, &payload.data)
        }
    }

    fn from_text(text: String) -> Self {
        let is_blank = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_whitespace);
        let bytes = text.as_bytes();
        if is_wrapped(&text) || is_blank(bytes.first()) || is_blank(bytes.last()) {
            return Self::wrapped("json/plain", bytes);
        }
        // The copy is for the rare case that the text is not JSON; a check beforehand would scan
        // every text twice.
        match serde_json::from_str::<&RawValue>(&text) {
            Ok(_) => RawValue::from_string(text).map_or_else(|_| Self::null(), Self),
            Err(_) => Self::wrapped("json/plain", text.as_bytes()),
        }
    }

    fn wrapped(encoding: &str, data: &[u8]) -> Self {
        let data = STANDARD.encode(data);
        let inner = Inner {
            encoding: encoding.into(),
            data: data.into(),
        };
        let raw = serde_json::value::to_raw_value(&Wrapped { payload: inner });
        // Two strings always have a JSON form.
        Self(raw.unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }

    /// The payload that the JSON value stands for.
    ///
    /// # Errors
    /// [`Invalid`] when it has a `$payload` that is not of the documented form.
    pub fn to_model(&self) -> Result<steadfast_model::Payload, Invalid> {
        let text = self.0.get();
        if !is_wrapped(text) {
            return Ok(steadfast_model::Payload::json(text));
        }
        let form = "expected {\"$payload\": {\"encoding\": \"...\", \"data\": \"<base64>\"}}";
        let wrapped: Wrapped<'_> = serde_json::from_str(text)
            .map_err(|error| Invalid::new("$payload", format!("{form}: {error}")))?;
        let data = STANDARD
            .decode(wrapped.payload.data.as_bytes())
            .map_err(|error| Invalid::new("$payload.data", format!("not base64: {error}")))?;
        Ok(steadfast_model::Payload::encoded(
            &wrapped.payload.encoding,
            data,
        ))
    }
}

/// Texts decide: two payloads are the same only if their bytes are.
impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Payload {}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self)
    }
}

impl utoipa::PartialSchema for Payload {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        let text = "Any JSON value, kept byte for byte. Data that is not JSON is written \
                    {\"$payload\": {\"encoding\": \"binary/plain\", \"data\": \"<base64>\"}}.";
        ObjectBuilder::new()
            .schema_type(SchemaType::AnyValue)
            .description(Some(text))
            .into()
    }
}

impl utoipa::ToSchema for Payload {}

/// A JSON value that is not user data, such as a JSON Schema.
#[derive(Debug, Clone)]
pub struct Json(Box<RawValue>);

impl Json {
    /// The value of a text; `None` when the text is not JSON.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        RawValue::from_string(text.to_owned()).ok().map(Self)
    }

    /// The JSON text.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Json {}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self)
    }
}

impl utoipa::PartialSchema for Json {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        ObjectBuilder::new()
            .schema_type(SchemaType::AnyValue)
            .description(Some("A JSON Schema."))
            .into()
    }
}

impl utoipa::ToSchema for Json {}
