//! Inputs and outputs of `http.request`.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use hyper::body::Bytes;
use hyper::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What to ask.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpRequest {
    /// Default: `GET`.
    #[serde(default = "get")]
    pub method: String,
    /// An absolute `http` or `https` URL.
    pub url: String,
    /// Headers by name.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body, if any.
    #[serde(default)]
    pub body: Option<Content>,
    /// Longest time of the request, at most the host's own limit.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// True: an answer with a status of 400 and above is a failure. Default: only 429 and those of
    /// 500 and above are, because the same request may do better later.
    #[serde(default)]
    pub fail_on_status: bool,
    /// Redirects to follow, at most 10; each must lead to an allowed host. Default: 0, the
    /// redirect is the result.
    #[serde(default)]
    pub redirects: u32,
}

fn get() -> String {
    "GET".to_owned()
}

/// What was answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// Headers by their names in lower case; several of one name are joined by commas.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Content,
}

/// A body, in the form that suits it: an object with one key.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// JSON, byte for byte. Sent as `application/json`.
    Json(Box<RawValue>),
    /// Text in UTF-8. Sent as `text/plain`.
    Text(String),
    /// Anything. Sent as `application/octet-stream`.
    Base64(String),
}

impl Content {
    /// The bytes, and the content type if no header says otherwise.
    ///
    /// # Errors
    /// A text for what is not base64.
    pub fn to_bytes(&self) -> Result<(Bytes, &'static str), String> {
        match self {
            Self::Json(json) => Ok((json.get().to_owned().into(), "application/json")),
            Self::Text(text) => Ok((text.clone().into(), "text/plain; charset=utf-8")),
            Self::Base64(text) => {
                let bytes = STANDARD.decode(text);
                let bytes = bytes.map_err(|error| format!("body.base64: {error}"))?;
                Ok((bytes.into(), "application/octet-stream"))
            }
        }
    }

    /// The form that suits a body: JSON if it is declared and valid, text if it is UTF-8.
    #[must_use]
    pub fn from_bytes(bytes: &[u8], headers: &HeaderMap) -> Self {
        let declared = headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        let media_type = declared
            .unwrap_or_default()
            .split(';')
            .next()
            .unwrap_or_default()
            .trim();
        let is_json = media_type.eq_ignore_ascii_case("application/json")
            || media_type.to_ascii_lowercase().ends_with("+json");
        let Ok(text) = std::str::from_utf8(bytes) else {
            return Self::Base64(STANDARD.encode(bytes));
        };
        let raw = is_json
            .then(|| serde_json::from_str::<Box<RawValue>>(text).ok())
            .flatten();
        raw.map_or_else(|| Self::Text(text.to_owned()), Self::Json)
    }
}

/// Headers for the output. Values that are not text are read as Latin-1, as browsers do.
#[must_use]
pub fn header_texts(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::<String, String>::new();
    for (name, value) in headers {
        let value: String = value
            .as_bytes()
            .iter()
            .map(|byte| char::from(*byte))
            .collect();
        let joined = texts.entry(name.as_str().to_owned());
        joined
            .and_modify(|known| *known = format!("{known}, {value}"))
            .or_insert(value);
    }
    texts
}
