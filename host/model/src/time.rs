//! Times and durations in milliseconds. There is no `now` here: time enters with a request.

use core::fmt;

use minicbor::{Decode, Encode};

use crate::limits::DURATION_MAX;

/// Milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Encode, Decode)]
#[cbor(transparent)]
pub struct Timestamp(#[n(0)] pub u64);

impl Timestamp {
    /// The time `by` later; stays at the end of time instead of overflowing.
    #[must_use]
    pub fn after(self, by: Millis) -> Self {
        Self(self.0.saturating_add(by.0))
    }

    /// How long `self` is after `earlier`; zero when it is not.
    #[must_use]
    pub fn since(self, earlier: Self) -> Millis {
        Millis(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Timestamp {
    /// ISO 8601 in UTC with milliseconds, for messages: `2026-01-31T12:00:00.000Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, in_day) = (self.0 / 86_400_000, self.0 % 86_400_000);
        let (year, month, day) = civil_from_days(days);
        let (seconds, ms) = (in_day / 1000, in_day % 1000);
        let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{ms:03}Z"
        )
    }
}

/// The Gregorian date of a day counted from 1970-01-01, by whole 400-year cycles that start on
/// the first of March (so that the leap day is the last of a year).
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (cycle, day_of_cycle) = (shifted / 146_097, shifted % 146_097);
    let year_of_cycle =
        (day_of_cycle - day_of_cycle / 1460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
    let day_of_year =
        day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_cycle + cycle * 400 + u64::from(month <= 2);
    (year, month, day)
}

/// A duration in milliseconds, at most [`DURATION_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Encode, Decode)]
#[cbor(transparent)]
pub struct Millis(#[n(0)] pub u64);

impl Millis {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// The duration, cut to 100 years of 365 days as Temporal does.
    #[must_use]
    pub fn capped(self) -> Self {
        self.min(DURATION_MAX)
    }

    /// `None` for zero, which means "not given" in options.
    #[must_use]
    pub fn given(self) -> Option<Self> {
        (self.0 > 0).then_some(self)
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn dates_print_as_iso_8601() {
        let cases = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (1_796_083_200_123, "2026-12-01T00:00:00.123Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ];
        for (ms, text) in cases {
            assert_eq!(Timestamp(ms).to_string(), text);
        }
        // The end of time neither panics nor wraps.
        assert!(Timestamp(u64::MAX).to_string().ends_with('Z'));
        assert_eq!(Timestamp(u64::MAX).after(Millis(1)), Timestamp(u64::MAX));
    }
}
