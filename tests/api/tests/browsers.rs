//! What pages in browsers may ask: nothing, unless the operator says where they come from.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use sandbox_api_tests::{Answer, Options, Server, Storage};

const HERE: &str = "https://app.example.com";

/// What a browser asks before it lets a page from `origin` make a session.
fn preflight(server: &Server, origin: &str) -> Answer {
    let call = server.stranger("OPTIONS", "/api/v1/sessions");
    call.header("Origin", origin)
        .header("Access-Control-Request-Method", "POST")
        .header("Access-Control-Request-Headers", "authorization")
        .send()
}

fn allowed(answer: &Answer) -> Option<&str> {
    let name = "access-control-allow-origin";
    let found = answer.headers.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str())
}

#[test]
fn no_page_may_ask_unless_the_operator_says_so() {
    let server = Options::on(Storage::SqliteAndFiles).start();
    assert_eq!(allowed(&preflight(&server, HERE)), None);
    let listed = server.call("GET", "/api/v1/sessions");
    let listed = listed.header("Origin", HERE).send();
    assert_eq!((listed.status, allowed(&listed)), (200, None));
}

#[test]
fn pages_of_the_origins_that_are_named_may_ask_with_their_key() {
    let options = Options::on(Storage::SqliteAndFiles).with(&["--allowed-origin", HERE]);
    let server = options.start();
    let asked = preflight(&server, HERE);
    assert_eq!((asked.status, allowed(&asked)), (200, Some(HERE)));
    let other = preflight(&server, "https://app.example.com.elsewhere.example");
    assert_eq!(allowed(&other), None);
    // Errors can be read, too.
    for (path, status) in [("/sessions", 200), ("/sessions/sess_0000000000000000", 404)] {
        let call = server.call("GET", &format!("/api/v1{path}"));
        let answer = call.header("Origin", HERE).send();
        assert_eq!((answer.status, allowed(&answer)), (status, Some(HERE)));
    }
    // The key is all that counts: a browser sends nothing that it knows of its own.
    let credentials = "access-control-allow-credentials";
    assert!(asked.headers.iter().all(|(name, _)| name != credentials));
}
