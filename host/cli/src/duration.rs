//! Durations as people write them: `500ms`, `2s`, `5m`, `1h30m`.

use std::time::Duration;

/// Units, with their length in milliseconds.
const UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// Reads a duration; a number needs a unit, except 0.
///
/// # Errors
/// A text for the command line that says what would have been right.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration such as 500ms, 2s, 5m or 1h30m");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut total_ms = 0_u64;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let letters = after
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let number: u64 = number.parse().ok().ok_or_else(wrong)?;
        let (_, factor) = UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(wrong)?;
        let ms = number
            .checked_mul(*factor)
            .and_then(|ms| ms.checked_add(total_ms));
        total_ms = ms.ok_or_else(|| format!("{text:?} is too long"))?;
        rest = after;
    }
    if text.is_empty() {
        Err(wrong())
    } else {
        Ok(Duration::from_millis(total_ms))
    }
}

/// Prints milliseconds with the two largest units that matter: `1h 5m`, `2.3s`, `12ms`.
pub(crate) fn show(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms}ms"),
        1000..60_000 if ms.is_multiple_of(1000) => format!("{}s", ms / 1000),
        1000..60_000 => format!("{}.{}s", ms / 1000, ms % 1000 / 100),
        60_000..3_600_000 => two(ms / 60_000, "m", ms / 1000 % 60, "s"),
        3_600_000..86_400_000 => two(ms / 3_600_000, "h", ms / 60_000 % 60, "m"),
        _ => two(ms / 86_400_000, "d", ms / 3_600_000 % 24, "h"),
    }
}

fn two(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    match small {
        0 => format!("{large}{large_unit}"),
        _ => format!("{large}{large_unit} {small}{small_unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_add_their_parts() {
        let cases = [
            ("0", 0),
            ("500ms", 500),
            ("2s", 2000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
        ];
        for (text, ms) in cases {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn nonsense_says_what_would_be_right() {
        for text in ["", "5", "s", "5 s", "-1s", "1.5s", "5x", "1s5"] {
            assert!(parse(text).unwrap_err().contains("1h30m"), "{text}");
        }
        assert!(parse("99999999999999999999d").is_err());
        assert!(parse("9999999999999999d").unwrap_err().contains("too long"));
    }

    #[test]
    fn durations_are_shown_short() {
        let cases = [
            (12, "12ms"),
            (2000, "2s"),
            (2340, "2.3s"),
            (65_000, "1m 5s"),
            (7_200_000, "2h"),
        ];
        for (ms, text) in cases {
            assert_eq!(show(ms), text);
        }
    }
}
