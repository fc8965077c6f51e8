//! Time as a workflow sees it: the time of the event being delivered, in milliseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The largest number of milliseconds that crosses the boundary of a guest.
const MILLIS_MAX: u64 = (1 << 53) - 1;
const MILLIS_PER_DAY: u64 = 86_400_000;

/// Returns a duration in whole milliseconds, rounded up so that no timer fires early, and limited
/// to what may cross the boundary of a guest.
pub(crate) fn to_millis(duration: Duration) -> u64 {
    let millis = duration.as_nanos().div_ceil(1_000_000);
    u64::try_from(millis).unwrap_or(MILLIS_MAX).min(MILLIS_MAX)
}

/// A moment: milliseconds since the Unix epoch. Its JSON form is that number, its text form
/// RFC 3339. Arithmetic stops at the ends of the range instead of overflowing.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Returns the moment this many milliseconds after the Unix epoch.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since the Unix epoch.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Returns the time from `earlier` to this moment; zero when `earlier` is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(to_millis(duration)))
    }
}

impl AddAssign<Duration> for Timestamp {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(to_millis(duration)))
    }
}

impl SubAssign<Duration> for Timestamp {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

impl Sub for Timestamp {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_date(self.0 / MILLIS_PER_DAY);
        let millis = self.0 % MILLIS_PER_DAY;
        let (hour, minute) = (millis / 3_600_000, millis / 60_000 % 60);
        let (second, millis) = (millis / 1000 % 60, millis % 1000);
        write!(
            formatter,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z"
        )
    }
}

/// Returns year, month and day of a day counted from the Unix epoch (Hinnant's algorithm: years
/// begin in March, so that a leap day is a year's last one).
const fn civil_date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_round_up() {
        assert_eq!(to_millis(Duration::ZERO), 0);
        assert_eq!(to_millis(Duration::from_nanos(1)), 1);
        assert_eq!(to_millis(Duration::from_micros(1001)), 2);
        assert_eq!(to_millis(Duration::MAX), MILLIS_MAX);
    }

    #[test]
    fn arithmetic_saturates() {
        let time = Timestamp::from_millis(1000);
        assert_eq!((time + Duration::from_secs(1)).as_millis(), 2000);
        assert_eq!((time - Duration::from_secs(9)).as_millis(), 0);
        assert_eq!(
            time - Timestamp::from_millis(400),
            Duration::from_millis(600)
        );
        assert_eq!(Timestamp::from_millis(400) - time, Duration::ZERO);
    }

    #[test]
    fn text_is_rfc_3339() {
        let text = |millis| Timestamp::from_millis(millis).to_string();
        assert_eq!(text(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(text(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(text(1_796_083_199_999), "2026-11-30T23:59:59.999Z");
    }
}
