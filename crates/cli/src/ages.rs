//! Times as people write and read them.

use jiff::{Timestamp, civil, tz::TimeZone};

/// How long ago, in the largest unit that fits: `just now`, `5 min ago`, `3 days ago`.
pub(crate) fn ago(then: Timestamp, now: Timestamp) -> String {
    let seconds = (now.as_second() - then.as_second()).max(0);
    let (number, unit) = match seconds {
        0..60 => return "just now".to_owned(),
        60..3600 => return format!("{} min ago", seconds / 60),
        3600..86_400 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{number} {unit}{} ago", if number == 1 { "" } else { "s" })
}

/// How long until then, in the largest unit that fits: `now`, `in 5 min`, `in 2 hours`.
pub(crate) fn until(then: Timestamp, now: Timestamp) -> String {
    let seconds = then.as_second() - now.as_second();
    let (number, unit) = match seconds {
        ..=0 => return "now".to_owned(),
        1..60 => return format!("in {seconds} s"),
        60..3600 => return format!("in {} min", seconds / 60),
        3600..86_400 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("in {number} {unit}{}", if number == 1 { "" } else { "s" })
}

/// A moment in the local time zone: `2026-11-15 21:15:02`.
pub(crate) fn local(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system())
        .strftime("%Y-%m-%d %H:%M:%S")
        .to_string()
}

/// A moment as typed: an age (`90s`, `10m`, `2h`, `3d`, `1w`), a date, a date and time in the local
/// time zone, or an RFC 3339 timestamp.
pub(crate) fn parse(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    if let Some(age) = parse_age(text) {
        let then = now
            .as_second()
            .checked_sub(age)
            .map(|second| (second, now.subsec_nanosecond()));
        if let Some(Ok(then)) = then.map(|(second, nano)| Timestamp::new(second, nano)) {
            return Ok(then);
        }
    }
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(moment);
    }
    let local = text.parse::<civil::DateTime>().ok();
    local
        .and_then(|moment| moment.to_zoned(TimeZone::system()).ok())
        .map(|zoned| zoned.timestamp())
        .ok_or_else(|| format!("'{text}' is not a time"))
}

fn parse_age(text: &str) -> Option<i64> {
    let unit = match text.chars().next_back()? {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return None,
    };
    let digits = &text[..text.len() - 1];
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    digits
        .parse::<i64>()
        .ok()
        .filter(|_| plain)?
        .checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn ages_and_moments_are_understood() {
        let now = at("2026-11-15T12:00:00Z");
        assert_eq!(parse("90s", now), Ok(at("2026-11-15T11:58:30Z")));
        assert_eq!(parse("2h", now), Ok(at("2026-11-15T10:00:00Z")));
        assert_eq!(parse("1w", now), Ok(at("2026-11-08T12:00:00Z")));
        assert_eq!(
            parse("2026-11-15T01:02:03Z", now),
            Ok(at("2026-11-15T01:02:03Z"))
        );
        assert!(parse("2026-11-15 01:02", now).is_ok());
        assert!(parse("2026-11-15", now).is_ok());
    }

    #[test]
    fn times_from_hell_are_refused() {
        for text in [
            "",
            "h",
            "-1h",
            "+1h",
            "1y",
            "yesterday-ish",
            "99999999999999999999d",
            "9999999999999d",
            "é",
        ] {
            assert!(parse(text, at("2026-11-15T12:00:00Z")).is_err(), "{text:?}");
        }
    }

    #[test]
    fn ages_are_told_in_the_largest_unit() {
        let now = at("2026-11-15T12:00:00Z");
        for (then, told) in [
            ("2026-11-15T11:59:30Z", "just now"),
            ("2026-11-15T11:55:00Z", "5 min ago"),
            ("2026-11-15T11:00:00Z", "1 hour ago"),
            ("2026-11-12T11:00:00Z", "3 days ago"),
            ("2027-01-01T00:00:00Z", "just now"),
        ] {
            assert_eq!(ago(at(then), now), told);
        }
        for (then, told) in [
            ("2026-11-15T11:00:00Z", "now"),
            ("2026-11-15T12:00:09Z", "in 9 s"),
            ("2026-11-15T12:05:00Z", "in 5 min"),
            ("2026-11-15T13:59:00Z", "in 1 hour"),
            ("2026-11-17T12:00:00Z", "in 2 days"),
        ] {
            assert_eq!(until(at(then), now), told);
        }
    }
}
