//! Sessions that nobody uses: their processes are ended, and nobody can tell.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(
    clippy::disallowed_methods,
    reason = "nobody tells when processes are given up"
)]

use std::time::{Duration, Instant};

use sandbox_api_tests::{Options, Server, Storage};
use serde_json::json;

const SESSIONS: usize = 12;

/// How many sessions have processes.
fn raised(server: &Server) -> usize {
    let text = server.call("GET", "/metrics").send().text();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("sandbox_sessions_raised "));
    line.unwrap().trim().parse().unwrap()
}

#[test]
fn an_idle_session_gives_up_its_processes_and_nobody_can_tell() {
    let server = Options::on(Storage::SqliteAndFiles)
        .with(&["--hibernate-after", "1s"])
        .start();
    let ids: Vec<_> = (0..SESSIONS)
        .map(|_| server.session_with(json!({ "pool": "never" })))
        .collect();
    for id in &ids {
        server.shell(id, "echo kept > kept");
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    // Those of the pool stay.
    while raised(&server) >= SESSIONS {
        assert!(Instant::now() < deadline, "{}", raised(&server));
        std::thread::sleep(Duration::from_millis(50));
    }
    for id in &ids {
        let session = server.get(&format!("/sessions/{id}")).json(200);
        assert_eq!(session["status"], "running");
        assert_eq!(server.shell(id, "cat kept"), "kept");
        server.delete(&format!("/sessions/{id}")).json(200);
        let mut events = server.events(id);
        let mut names = Vec::new();
        while names
            .last()
            .is_none_or(|(_, status)| *status != "terminated")
        {
            let event = events.next().unwrap();
            names.push((event.name, event.data["detail"]["status"].clone()));
        }
        let is_lost = |(name, _): &(String, _)| name == "executor_ended";
        assert!(!names.iter().any(is_lost), "{names:?}");
    }
    assert!(
        !server.log().contains("ended by themselves"),
        "{}",
        server.log()
    );
}
