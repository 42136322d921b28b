//! Whether to ask again, and when.
//!
//! A server that has too much to do says when to come back. That is done where asking twice does
//! nothing twice, a few times at most, and not when the wait would be long: then it is told.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// How often the same is asked again.
const MOST_TIMES: u32 = 3;

/// The longest that is waited for one more try.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// What happens when a request is made twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// The same as once: it only looks, or has a key that tells the server that it knows it.
    Safe,
    /// It may be done twice.
    Unsafe,
}

/// How long to wait before asking for the `times`th time again; `None` when that is no use.
pub(super) fn wait(
    repeat: Repeat,
    status: StatusCode,
    headers: &HeaderMap,
    times: u32,
) -> Option<Duration> {
    let worth_it = match status {
        // Refused before anything was done, whatever it was.
        StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::SERVICE_UNAVAILABLE => repeat == Repeat::Safe,
        _ => false,
    };
    if !worth_it || times >= MOST_TIMES {
        return None;
    }
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse();
    let wait = Duration::from_secs(seconds.ok()?);
    (wait <= LONGEST_WAIT).then_some(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(repeat: Repeat, status: u16, header: Option<&str>, times: u32) -> Option<u64> {
        let mut headers = HeaderMap::new();
        if let Some(value) = header {
            headers.insert(RETRY_AFTER, value.parse().unwrap());
        }
        let status = StatusCode::from_u16(status).unwrap();
        wait(repeat, status, &headers, times).map(|wait| wait.as_secs())
    }

    #[test]
    fn what_is_safe_is_asked_again_when_the_server_says() {
        assert_eq!(after(Repeat::Safe, 429, Some("2"), 0), Some(2));
        assert_eq!(after(Repeat::Safe, 503, Some("1"), 2), Some(1));
        assert_eq!(after(Repeat::Safe, 503, Some("0"), 0), Some(0));
    }

    #[test]
    fn nothing_is_done_twice_and_nobody_waits_for_ever() {
        assert_eq!(after(Repeat::Unsafe, 503, Some("1"), 0), None);
        assert_eq!(after(Repeat::Unsafe, 429, Some("1"), 0), Some(1));
        assert_eq!(after(Repeat::Safe, 503, Some("1"), 3), None);
        assert_eq!(after(Repeat::Safe, 503, Some("3600"), 0), None);
        assert_eq!(after(Repeat::Safe, 503, None, 0), None);
        assert_eq!(after(Repeat::Safe, 429, Some("Wed, 21 Oct"), 0), None);
        for status in [200, 400, 404, 409, 500, 502] {
            assert_eq!(after(Repeat::Safe, status, Some("1"), 0), None);
        }
    }
}
