//! When a server wants to be asked again.

use hyper::HeaderMap;
use hyper::header::{DATE, HeaderName, RETRY_AFTER};
use steadfast_model::Millis;

/// The pause that `Retry-After` asks for: seconds, or a date, which is compared with the date of
/// the answer and not with a clock of ours that may be wrong.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Millis> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let wanted = text(RETRY_AFTER)?.trim();
    if let Ok(seconds) = wanted.parse::<u64>() {
        return Millis(seconds.saturating_mul(1000)).capped().given();
    }
    let until = httpdate::parse_http_date(wanted).ok()?;
    let now = httpdate::parse_http_date(text(DATE)?.trim()).ok()?;
    let pause = until.duration_since(now).ok()?.as_millis();
    Millis(u64::try_from(pause).unwrap_or(u64::MAX))
        .capped()
        .given()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    #[test]
    fn seconds_and_dates_are_understood() {
        let cases = [
            ("120", Some(Millis(120_000))),
            ("0", None),
            ("Wed, 21 Oct 2026 07:28:30 GMT", Some(Millis(30_000))),
            ("Wed, 21 Oct 2026 07:27:00 GMT", None),
            ("soon", None),
        ];
        for (text, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(text));
            headers.insert(
                DATE,
                HeaderValue::from_static("Wed, 21 Oct 2026 07:28:00 GMT"),
            );
            assert_eq!(retry_after(&headers), expected, "{text}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(
            RETRY_AFTER,
            HeaderValue::from_static("99999999999999999999"),
        );
        assert_eq!(retry_after(&headers), None);
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}
