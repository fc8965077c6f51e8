//! Times as RFC 3339 text.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use steadfast_model::Timestamp;

/// A point in time: `2026-01-31T12:00:00.000Z`. Always UTC, always with milliseconds when written;
/// read with or without a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Time(pub Timestamp);

impl From<Timestamp> for Time {
    fn from(time: Timestamp) -> Self {
        Self(time)
    }
}

impl From<Time> for Timestamp {
    fn from(time: Time) -> Self {
        time.0
    }
}

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The text is not a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a time in UTC such as 2026-01-31T12:00:00.000Z")]
pub struct NotATime;

impl std::str::FromStr for Time {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<Self, NotATime> {
        parse(text).map(|ms| Self(Timestamp(ms))).ok_or(NotATime)
    }
}

fn parse(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix(['Z', 'z'])?.split_once(['T', 't'])?;
    let (year, month, day) = split3(date, '-')?;
    let (whole, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let (hour, minute, second) = split3(whole, ':')?;
    let is_clock = hour < 24 && minute < 60 && second < 60;
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_clock || !is_date {
        return None;
    }
    let seconds = (hour * 60 + minute) * 60 + second;
    let days = days_from_civil(year, month, day)?;
    let ms = seconds
        .checked_mul(1000)?
        .checked_add(fraction_ms(fraction)?)?;
    days.checked_mul(86_400_000)?.checked_add(ms)
}

fn split3(text: &str, separator: char) -> Option<(u64, u64, u64)> {
    let mut parts = text.split(separator).map(number);
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(a), Some(b), Some(c), None) => Some((a?, b?, c?)),
        _ => None,
    }
}

/// Digits only: `parse` alone would take a sign.
fn number(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}

fn fraction_ms(fraction: &str) -> Option<u64> {
    number(fraction)?;
    let digits = fraction
        .chars()
        .chain("00".chars())
        .take(3)
        .collect::<String>();
    digits.parse().ok()
}

/// Days since 1970-01-01, in whole 400-year cycles that start on the first of March.
fn days_from_civil(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = if month <= 2 {
        year.checked_sub(1)?
    } else {
        year
    };
    let (cycle, year_of_cycle) = (year / 400, year % 400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_cycle = year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
    cycle
        .checked_mul(146_097)?
        .checked_add(day_of_cycle)?
        .checked_sub(719_468)
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl utoipa::PartialSchema for Time {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some("A time in UTC with milliseconds."))
            .into()
    }
}

impl utoipa::ToSchema for Time {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_millisecond_reads_back_as_written() {
        let times = [
            0,
            1,
            999,
            951_782_400_000,
            951_868_799_999,
            1_796_083_200_123,
            u64::MAX,
        ];
        let many = (0..4000_u64).map(|i| i * 777_777_777);
        for ms in times.into_iter().chain(many) {
            let time = Time(Timestamp(ms));
            assert_eq!(time.to_string().parse(), Ok(time), "{time}");
        }
    }

    #[test]
    fn other_fractions_are_read_and_other_texts_refused() {
        let cases = [
            ("1970-01-01T00:00:01Z", 1000),
            ("1970-01-01T00:00:00.5Z", 500),
        ];
        for (text, ms) in cases {
            assert_eq!(text.parse(), Ok(Time(Timestamp(ms))));
        }
        assert_eq!(
            "1970-01-01T00:00:00.123456Z".parse(),
            Ok(Time(Timestamp(123)))
        );
        for text in [
            "",
            "Z",
            "1970-01-01",
            "1970-01-01T00:00:00",
            "1970-01-01T00:00:00+01:00",
            "1969-12-31T23:59:59Z",
            "1970-13-01T00:00:00Z",
            "1970-01-01T24:00:00Z",
            "1970-01-01T00:00:+1Z",
            "99999999999999999999-01-01T00:00:00Z",
        ] {
            assert_eq!(text.parse::<Time>(), Err(NotATime), "{text}");
        }
    }
}
