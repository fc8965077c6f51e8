//! Cron schedules: the next time of one after a given time.
//!
//! A schedule is a line of five fields (minute, hour, day of the month, month, day of the week),
//! a name such as `@hourly`, or `@every 90s`. `CRON_TZ=Europe/Berlin` (or `TZ=`) in front of it
//! names a time zone; without one it is in UTC. The zones are those of the build, so that every
//! host reckons alike.

use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::TimeZone;
use steadfast_model::{Millis, Timestamp};

/// Shortest `@every`.
const EVERY_MIN_MS: u64 = 1000;

/// Why a schedule was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "cron schedule {schedule:?}: {text} (expected five fields such as \"0 12 * * MON-FRI\", \
     @hourly, @daily, @weekly, @monthly, @yearly or \"@every 90s\", with an optional \
     CRON_TZ=<zone> in front)"
)]
pub struct Refused {
    schedule: String,
    text: String,
}

/// Checks a schedule: it must be well formed and have a next time.
///
/// # Errors
/// [`Refused`] says what is wrong.
pub fn check(schedule: &str, now: Timestamp) -> Result<(), Refused> {
    match next(schedule, now)? {
        Some(_) => Ok(()),
        None => Err(refused(schedule, "it never comes")),
    }
}

/// The first time of a schedule after `after`, in whole seconds; `None` if there is none.
///
/// # Errors
/// [`Refused`] says what is wrong.
pub fn next(schedule: &str, after: Timestamp) -> Result<Option<Timestamp>, Refused> {
    let (zone, pattern) = zone(schedule)?;
    if let Some(every) = pattern.strip_prefix("@every ") {
        let every = duration(every.trim()).map_err(|text| refused(schedule, text))?;
        let next = after.after(every).0.div_ceil(1000).saturating_mul(1000);
        return Ok(Some(Timestamp(next)));
    }
    let parser = CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .build();
    let pattern = if pattern.eq_ignore_ascii_case("@midnight") {
        "@daily"
    } else {
        pattern
    };
    let cron = parser
        .parse(pattern)
        .map_err(|error| refused(schedule, error.to_string()))?;
    let after = i64::try_from(after.0)
        .ok()
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    let Some(after) = after else {
        return Ok(None);
    };
    // A search that finds nothing within the years that it looks at ends here too.
    let next = cron.find_next_occurrence(&after.to_zoned(zone), false).ok();
    let next = next.map(|next| next.timestamp().as_millisecond());
    Ok(next.and_then(|ms| u64::try_from(ms).ok()).map(Timestamp))
}

fn refused(schedule: &str, text: impl Into<String>) -> Refused {
    Refused {
        schedule: schedule.to_owned(),
        text: text.into(),
    }
}

/// The time zone in front of a schedule, and the rest.
fn zone(schedule: &str) -> Result<(TimeZone, &str), Refused> {
    let schedule = schedule.trim();
    let name = schedule
        .strip_prefix("CRON_TZ=")
        .or_else(|| schedule.strip_prefix("TZ="));
    let Some(rest) = name else {
        return Ok((TimeZone::UTC, schedule));
    };
    let (name, pattern) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let zone = jiff::tz::db()
        .get(name)
        .map_err(|error| refused(schedule, error.to_string()))?;
    Ok((zone, pattern.trim()))
}

/// A sum such as `1h30m`, in whole seconds rounded up.
fn duration(text: &str) -> Result<Millis, String> {
    let mut rest = text;
    let mut total = 0_u64;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (count, after) = rest.split_at(digits);
        let units = after
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, next) = after.split_at(units);
        let unit = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(format!("{text:?} is no duration such as 1h30m")),
        };
        let count: u64 = count
            .parse()
            .ok()
            .ok_or_else(|| format!("{text:?} is no duration such as 1h30m"))?;
        total = count
            .checked_mul(unit)
            .and_then(|part| total.checked_add(part))
            .ok_or_else(|| format!("{text:?} is too long"))?;
        rest = next;
    }
    if total < EVERY_MIN_MS {
        return Err(format!("{text:?} is shorter than a second"));
    }
    Ok(Millis(total.div_ceil(1000).saturating_mul(1000)).capped())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-03-01T00:00:00Z, a Sunday.
    const MARCH: u64 = 1_772_323_200_000;

    fn at(schedule: &str, ms: u64) -> String {
        next(schedule, Timestamp(ms)).unwrap().unwrap().to_string()
    }

    #[test]
    fn schedules_have_the_times_that_people_expect() {
        let cases = [
            ("* * * * *", MARCH, "2026-03-01T00:01:00.000Z"),
            ("* * * * *", MARCH + 1, "2026-03-01T00:01:00.000Z"),
            ("* * * * *", MARCH - 1, "2026-03-01T00:00:00.000Z"),
            ("0 12 * * MON-FRI", MARCH, "2026-03-02T12:00:00.000Z"),
            ("@hourly", MARCH, "2026-03-01T01:00:00.000Z"),
            ("@daily", MARCH, "2026-03-02T00:00:00.000Z"),
            ("@midnight", MARCH, "2026-03-02T00:00:00.000Z"),
            ("@weekly", MARCH, "2026-03-08T00:00:00.000Z"),
            ("@monthly", MARCH, "2026-04-01T00:00:00.000Z"),
            ("@yearly", MARCH, "2027-01-01T00:00:00.000Z"),
            ("@every 1h30m", MARCH, "2026-03-01T01:30:00.000Z"),
            ("@every 90s", MARCH + 1, "2026-03-01T00:01:31.000Z"),
            ("0 0 29 2 *", MARCH, "2028-02-29T00:00:00.000Z"),
        ];
        for (schedule, ms, text) in cases {
            assert_eq!(at(schedule, ms), text, "{schedule}");
        }
    }

    #[test]
    fn a_zone_in_front_is_that_of_the_fields() {
        // Berlin is an hour ahead of UTC in winter and two in summer, from 2026-03-29 on.
        for prefix in ["CRON_TZ=", "TZ="] {
            let schedule = format!("{prefix}Europe/Berlin 0 9 * * *");
            assert_eq!(at(&schedule, MARCH), "2026-03-01T08:00:00.000Z");
            let april = MARCH + 31 * 86_400_000;
            assert_eq!(at(&schedule, april), "2026-04-01T07:00:00.000Z");
        }
    }

    #[test]
    fn a_bad_schedule_says_what_was_expected() {
        for schedule in [
            "",
            "x",
            "* * * *",
            "61 * * * *",
            "* * * * * *",
            "@every 5",
            "@every 10ms",
            "@every",
            "@never",
            "CRON_TZ=Mars/Olympus * * * * *",
            "CRON_TZ=Europe/Berlin",
            "@every 99999999999999999999h",
        ] {
            let error = check(schedule, Timestamp(MARCH)).unwrap_err().to_string();
            assert!(error.contains("expected five fields"), "{error}");
        }
        let error = check("0 0 30 2 *", Timestamp(MARCH)).unwrap_err();
        assert!(error.to_string().contains("never comes"), "{error}");
    }

    #[test]
    fn no_time_makes_it_panic() {
        for ms in [0, 1, MARCH, 253_402_300_799_999, u64::MAX / 2, u64::MAX] {
            for schedule in ["* * * * *", "@every 1s", "CRON_TZ=Asia/Tokyo 0 0 1 1 *"] {
                if let Some(next) = next(schedule, Timestamp(ms)).unwrap() {
                    assert!(next.0 >= ms || ms == u64::MAX, "{schedule} after {ms}");
                }
            }
        }
    }
}
