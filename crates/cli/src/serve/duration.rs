//! Durations as people write them: `90s`, `30m`, `1h30m`, `2d`. A bare number is seconds.

use std::time::Duration;

/// What stands for an end that never comes: nobody keeps a server running for so long.
const EVER: Duration = Duration::from_secs(100 * 365 * DAY);

const DAY: u64 = 24 * 60 * 60;

/// A duration that is longer than nothing.
pub(super) fn some(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is not a duration like 30s, 5m, 6h or 2d");
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, after) = rest.split_at(digits);
        let letters = after.len()
            - after
                .trim_start_matches(|c: char| c.is_ascii_alphabetic())
                .len();
        let (unit, after) = after.split_at(letters);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let unit = match unit {
            "ms" => Duration::from_millis(1),
            "s" | "" => Duration::from_secs(1),
            "m" | "min" => Duration::from_secs(60),
            "h" => Duration::from_secs(60 * 60),
            "d" => Duration::from_secs(DAY),
            _ => return Err(wrong()),
        };
        let count = u32::try_from(number).map_err(|_| wrong())?;
        let part = unit.checked_mul(count).ok_or_else(wrong)?;
        total = total.checked_add(part).ok_or_else(wrong)?;
        rest = after;
    }
    match total {
        Duration::ZERO => Err(format!("'{text}' is no time at all")),
        total if total > EVER => Err(format!("'{text}' is longer than a hundred years")),
        total => Ok(total),
    }
}

/// A duration, or `off`.
pub(super) fn or_off(text: &str) -> Result<Option<Duration>, String> {
    match text.trim() {
        "off" => Ok(None),
        text => some(text).map(Some).map_err(|problem| match problem {
            problem if problem.ends_with("at all") => format!("{problem}; `off` switches it off"),
            problem => format!("{problem}, or off"),
        }),
    }
}

/// A duration, or `off` for what shall never happen.
pub(super) fn or_never(text: &str) -> Result<Duration, String> {
    Ok(or_off(text)?.unwrap_or(EVER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        let seconds = |text| some(text).unwrap().as_secs();
        assert_eq!(seconds("90"), 90);
        assert_eq!(seconds("90s"), 90);
        assert_eq!(seconds("30m"), 1800);
        assert_eq!(seconds("1h30m"), 5400);
        assert_eq!(seconds("2d"), 2 * DAY);
        assert_eq!(some("250ms").unwrap(), Duration::from_millis(250));
        assert_eq!(or_off("off").unwrap(), None);
        assert_eq!(or_off("6h").unwrap(), Some(Duration::from_secs(21_600)));
        assert_eq!(or_never("off").unwrap(), EVER);
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in [
            "",
            "soon",
            "-1s",
            "1.5h",
            "m",
            "5 m",
            "1w",
            "off",
            "99999999999s",
            "4000000000d",
            "5m-",
        ] {
            assert!(some(text).is_err(), "{text}");
        }
        assert_eq!(some("0").unwrap_err(), "'0' is no time at all");
        let refused = or_off("0s").unwrap_err();
        assert_eq!(refused, "'0s' is no time at all; `off` switches it off");
        let refused = or_off("never").unwrap_err();
        assert!(refused.ends_with("6h or 2d, or off"), "{refused}");
    }
}
