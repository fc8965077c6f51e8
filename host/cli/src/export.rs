//! A history as one JSON document: what `history --output json` writes and `replay` reads.

use serde::{Deserialize, Serialize};
use steadfast_api::wire::Event;

use crate::error::{Error, Result};

/// The name of the document's form. It changes only when readers must.
pub(crate) const FORMAT: &str = "steadfast-history/1";

/// An exported history.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Export {
    /// [`FORMAT`]; a page of the API has none.
    #[serde(default)]
    pub(crate) format: String,
    /// True if the run had ended.
    #[serde(default)]
    pub(crate) is_closed: bool,
    /// All events, in order.
    pub(crate) events: Vec<Event>,
}

impl Export {
    pub(crate) fn new(events: Vec<Event>, is_closed: bool) -> Self {
        Self {
            format: FORMAT.to_owned(),
            is_closed,
            events,
        }
    }

    /// Reads a document, and checks that it is a whole history.
    pub(crate) fn parse(text: &str, whose: &str) -> Result<Vec<steadfast_model::Event>> {
        let hint = "`steadfast history ID --output json` writes such files";
        let export: Self = serde_json::from_str(text).map_err(|error| {
            Error::refused(format!("{whose} is no exported history: {error}")).hint(hint)
        })?;
        if !export.format.is_empty() && export.format != FORMAT {
            let format = export.format;
            return Err(
                Error::refused(format!("{whose} has the unknown format {format:?}"))
                    .hint("a newer steadfast may have written it"),
            );
        }
        let mut events = Vec::with_capacity(export.events.len());
        for (event, expected) in export.events.iter().zip(1_u64..) {
            if event.number != expected {
                let text = format!(
                    "{whose}: event {} comes where {expected} should",
                    event.number
                );
                return Err(Error::refused(text).hint(hint));
            }
            events.push(
                event.to_model().map_err(|error| {
                    Error::refused(format!("{whose}: event {expected}: {error}"))
                })?,
            );
        }
        if events.is_empty() {
            return Err(Error::refused(format!("{whose} has no events")).hint(hint));
        }
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_documents_are_refused() {
        let cases = [
            ("[]", "no exported history"),
            ("{}", "no exported history"),
            (r#"{"events": []}"#, "has no events"),
            (
                r#"{"format": "steadfast-history/9", "events": []}"#,
                "unknown format",
            ),
            (
                r#"{"events": [{"number": 2, "time": "2026-01-31T12:00:00Z", "type": "TimerFired"}]}"#,
                "event 2 comes where 1 should",
            ),
        ];
        for (text, message) in cases {
            let error = Export::parse(text, "x.json").unwrap_err();
            assert!(error.message.contains(message), "{error}");
        }
    }
}
