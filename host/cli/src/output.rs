//! What reaches the terminal: text or JSON, colours where they are wanted, nothing that a value
//! from elsewhere could do to the terminal.

use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;
use serde::Serialize;

use crate::error::{Error, Result};

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    // For people. (A document comment would make the help of every verb longer.)
    Text,
    // For programs.
    Json,
}

/// What a text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Strong,
    Faint,
    Good,
    Warning,
    Bad,
}

impl Tone {
    fn ansi(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "\x1b[1m",
            Self::Faint => "\x1b[2m",
            Self::Good => "\x1b[32m",
            Self::Warning => "\x1b[33m",
            Self::Bad => "\x1b[31m",
        }
    }
}

/// Where results go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    pub(crate) format: Format,
    has_colors: bool,
    has_colors_on_stderr: bool,
    /// Columns of the terminal; `None`: nothing is cut.
    pub(crate) width: Option<usize>,
}

impl Output {
    /// The process's standard streams.
    pub(crate) fn new(format: Format) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let wants_colors = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let width = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        Self {
            format,
            has_colors: is_terminal && wants_colors,
            has_colors_on_stderr: io::stderr().is_terminal() && wants_colors,
            width: is_terminal.then(width).flatten(),
        }
    }

    /// Text without colours, for a terminal of a width.
    #[cfg(test)]
    pub(crate) fn plain(width: Option<usize>) -> Self {
        Self {
            format: Format::Text,
            has_colors: false,
            has_colors_on_stderr: false,
            width,
        }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// A text in the colours of its tone. It is cleaned of control characters.
    pub(crate) fn paint(&self, tone: Tone, text: &str) -> String {
        paint(self.has_colors, tone, &clean(text))
    }

    /// Prints lines.
    pub(crate) fn text(&self, text: &str) -> Result<()> {
        write(&mut io::stdout().lock(), text)
    }

    /// Prints a value as JSON.
    pub(crate) fn json<T: Serialize>(&self, value: &T) -> Result<()> {
        let text = serde_json::to_string_pretty(value)
            .map_err(|error| Error::failure(format!("cannot print JSON: {error}")))?;
        self.text(&format!("{text}\n"))
    }

    /// Prints a value as one line of JSON.
    pub(crate) fn json_line<T: Serialize>(&self, value: &T) -> Result<()> {
        let text = serde_json::to_string(value)
            .map_err(|error| Error::failure(format!("cannot print JSON: {error}")))?;
        self.text(&format!("{text}\n"))
    }

    /// Says what is going on, beside the results: on the standard error stream.
    pub(crate) fn progress(&self, text: &str) {
        let line = paint(self.has_colors_on_stderr, Tone::Faint, &clean(text));
        // Nobody can be told that standard error is gone.
        let _written = writeln!(io::stderr().lock(), "{line}");
    }

    /// Prints an error with its hints.
    pub(crate) fn error(&self, error: &Error) {
        let mut stderr = io::stderr().lock();
        let text = if self.is_json() {
            let kind = format!("{:?}", error.kind).to_lowercase();
            serde_json::json!({
                "error": {
                    "kind": kind, "code": error.code, "message": error.message,
                    "hints": error.hints, "exit_code": error.kind.exit_code(),
                }
            })
            .to_string()
        } else {
            let label = paint(self.has_colors_on_stderr, Tone::Bad, "error:");
            let mut text = format!("{label} {}", clean_lines(&error.message));
            for hint in &error.hints {
                let label = paint(self.has_colors_on_stderr, Tone::Strong, "hint:");
                text.push_str(&format!("\n{label} {}", clean_lines(hint)));
            }
            text
        };
        // Nobody can be told that standard error is gone.
        let _written = writeln!(stderr, "{text}");
    }
}

/// A reader that goes away early (`steadfast list | head`) is no failure.
fn write(out: &mut impl Write, text: &str) -> Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Error::failure(format!("cannot write the output: {error}"))),
        Ok(()) => Ok(()),
    }
}

fn paint(has_colors: bool, tone: Tone, text: &str) -> String {
    if has_colors && tone != Tone::Plain {
        format!("{}{text}\x1b[0m", tone.ansi())
    } else {
        text.to_owned()
    }
}

/// The text on one line, without characters that could command the terminal.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// As [`clean`], with line breaks and tabs kept.
pub(crate) fn clean_lines(text: &str) -> String {
    let keep = |c: char| !c.is_control() || c == '\n' || c == '\t';
    text.chars()
        .map(|c| if keep(c) { c } else { ' ' })
        .collect()
}

/// Prints a size: `312 B`, `12.5 KiB`, `3.0 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    const KIB: u64 = 1024;
    let with_unit =
        |unit: u64, name: &str| format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit);
    match bytes {
        0..KIB => format!("{bytes} B"),
        KIB..0x10_0000 => with_unit(KIB, "KiB"),
        0x10_0000..0x4000_0000 => with_unit(KIB * KIB, "MiB"),
        _ => with_unit(KIB * KIB * KIB, "GiB"),
    }
}

/// `1 event`, `2 events`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_cannot_command_the_terminal() {
        assert_eq!(clean("a\x1b[31mb\nc"), "a [31mb c");
        assert_eq!(clean_lines("a\x1b[31mb\nc"), "a [31mb\nc");
    }

    #[test]
    fn sizes_and_counts_read_well() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1536, "1.5 KiB"),
            (3 << 20, "3.0 MiB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(size(bytes), text);
        }
        assert_eq!(count(1, "event"), "1 event");
        assert_eq!(count(0, "event"), "0 events");
    }
}
