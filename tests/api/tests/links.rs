//! Links by which anybody has a large file: for an hour, and no longer.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use sandbox_api_tests::{Server, on_every_storage};

/// From which size on a file comes by a link.
const LARGE: usize = 10 << 20;

/// Until when a link is good, by what it says itself.
fn end(link: &str) -> Timestamp {
    let (_, query) = link.split_once('?').unwrap();
    let value = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let (_, value) = pairs.find(|(found, _)| *found == name)?;
        Some(value)
    };
    let seconds = |text: &str| text.parse::<i64>().unwrap();
    if let Some(expires) = value("expires") {
        return Timestamp::from_second(seconds(expires)).unwrap();
    }
    let signed = value("X-Amz-Date").unwrap();
    let signed = DateTime::strptime("%Y%m%dT%H%M%SZ", signed).unwrap();
    let signed = TimeZone::UTC.to_timestamp(signed).unwrap();
    signed + SignedDuration::from_secs(seconds(value("X-Amz-Expires").unwrap()))
}

on_every_storage! {
    fn a_link_is_good_for_an_hour(server: &Server) {
        let id = server.session();
        server.upload(&id, "large", &vec![b'x'; LARGE]).json(200);
        let hour = SignedDuration::from_hours(1);
        // A link says it in whole seconds.
        let begin = Timestamp::now() + hour - SignedDuration::from_secs(1);
        let answer = server.get(&format!("/sessions/{id}/files/large")).expect(307);
        let end = end(answer.header("location").unwrap());
        assert!((begin..=Timestamp::now() + hour).contains(&end), "{end}");
    }
}
