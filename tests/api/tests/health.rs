//! How a server says that it is well, and that it is not.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Instant;

use sandbox_api_tests::{Options, Storage, eventually};
use sandbox_test_servers::Database;
use serde_json::{Value, json};

#[test]
fn a_server_without_its_database_is_not_ready_until_it_is_back() {
    let mut database = Database::postgres();
    let url = database.fresh_database();
    let options = Options::on(Storage::SqliteAndFiles).with(&["--database", &url]);
    let server = options.start();
    let ready = || server.stranger("GET", "/ready").send();
    assert_eq!(ready().expect(200).text(), "ready\n");
    let named = json!({ "name": "probe", "scope": "read" });
    let made = server.post("/api-keys", &named).json(201);
    let key = made["secret"].as_str().unwrap();

    database.kill();
    let error = ready().error(503, "Sandbox.Unavailable");
    assert_eq!(error["description"], "the database does not answer");
    let health: Value = server.stranger("GET", "/health").send().json(503);
    assert_eq!(health["status"], "unhealthy");
    assert_eq!(health["components"]["database"]["status"], "unhealthy");
    assert_eq!(health["components"]["object_store"]["status"], "healthy");
    // Nor is it needed to know who asks.
    let holder = |target: &str| server.stranger("GET", target).key(key).send();
    assert_eq!(holder("/health").json(503)["status"], "unhealthy");
    let error = holder("/ready").error(503, "Sandbox.Unavailable");
    assert_eq!(error["description"], "the database does not answer");
    assert!(holder("/metrics").expect(200).text().contains("sandbox_"));

    database.restart();
    eventually("it is ready again", || {
        (ready().status == 200).then_some(())
    });
    // What was said a moment ago is said for a second.
    eventually("it is well again", || {
        let health = server.stranger("GET", "/health").send();
        (health.status == 200).then_some(())
    });
    let health: Value = server.stranger("GET", "/health").send().json(200);
    assert_eq!(health["status"], "healthy");
}

#[test]
fn the_parts_are_asked_for_everybody_together() {
    let server = Options::on(Storage::SqliteAndFiles).start();
    let asked = || {
        let health = server.stranger("GET", "/health").send().json(200);
        // No two measurements are the same.
        health["components"].clone()
    };
    std::thread::scope(|scope| {
        let begin = Instant::now();
        let asking: Vec<_> = (0..50).map(|_| scope.spawn(asked)).collect();
        let mut told: Vec<_> = asking
            .into_iter()
            .map(|asking| asking.join().unwrap().to_string())
            .collect();
        let seconds = begin.elapsed().as_secs();
        told.sort();
        told.dedup();
        // Once for each second that began, however many ask.
        assert!(told.len() as u64 <= seconds + 1, "{told:#?}");
    });
}
