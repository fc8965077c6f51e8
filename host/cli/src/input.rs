//! What a workflow, a signal or a request is given: `--input` or `--input-file`.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use steadfast_api::wire::Payload;

use crate::error::{Error, Result};

/// Where the input comes from.
#[derive(Debug, Clone, Default, Args)]
#[group(multiple = false)]
pub(crate) struct InputArgs {
    /// Input as JSON text
    #[arg(long, value_name = "JSON")]
    input: Option<String>,

    /// File with the input as JSON; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    input_file: Option<PathBuf>,
}

impl InputArgs {
    /// Reads the input; `None` when none was given.
    pub(crate) fn read(&self) -> Result<Option<Payload>> {
        match (&self.input, &self.input_file) {
            (Some(text), _) => json(text, "--input").map(Some),
            (None, Some(path)) => {
                json(&text_of(path)?, &format!("--input-file {}", path.display())).map(Some)
            }
            (None, None) => Ok(None),
        }
    }
}

/// Reads a text file, or standard input for `-`.
pub(crate) fn text_of(path: &Path) -> Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        let read = std::io::stdin().lock().read_to_string(&mut text);
        read.map_err(|error| Error::failure(format!("cannot read standard input: {error}")))?;
        return Ok(text);
    }
    std::fs::read_to_string(path).map_err(|error| Error::file("read", path, &error))
}

/// The text is passed on as it is: large numbers and the order of keys survive.
pub(crate) fn json(text: &str, whose: &str) -> Result<Payload> {
    Payload::from_json_text(text.trim()).map_err(|error| {
        Error::usage(format!("{whose} is not JSON: {}", error.text))
            .hint("text needs double quotes of its own, for example --input '\"hello\"'")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_must_be_json() {
        let args = InputArgs {
            input: Some("{\"a\": 1}".to_owned()),
            input_file: None,
        };
        assert_eq!(args.read().unwrap().unwrap().get(), "{\"a\": 1}");
        let args = InputArgs {
            input: Some("hello".to_owned()),
            input_file: None,
        };
        let error = args.read().unwrap_err();
        assert_eq!(error.kind, crate::error::Kind::Usage);
        assert!(error.message.contains("--input is not JSON"), "{error}");
    }
}
