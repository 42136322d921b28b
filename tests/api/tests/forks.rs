//! A session that starts where another one is.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use sandbox_api_tests::{Options, Storage};
use sandbox_tests::as_both;
use serde_json::json;

as_both! {
    // Who is not root may be able to limit nothing: what a session has all the same, its copy may have, too.
    fn a_fork_has_what_its_origin_has_and_goes_its_own_way(user) {
        let server = Options::on(Storage::SqliteAndFiles).by(user).start();
        let origin = server.session_with(json!({ "env_vars": { "NAME": "both" } }));
        server.shell(&origin, "echo before > file");
        let made = server.post(&format!("/sessions/{origin}/fork"), &json!({})).json(201);
        let fork = made["session_id"].as_str().unwrap();
        let parent = server.get(&format!("/sessions/{origin}")).json(200);
        for field in ["resources", "limits_enforced", "template_id", "env_vars", "mode"] {
            assert_eq!(made[field], parent[field], "{field}");
        }
        assert_eq!(server.shell(fork, "cat file; echo $NAME"), "before\nboth");
        server.shell(fork, "echo after > file");
        assert_eq!(server.shell(&origin, "cat file"), "before");
        server.delete(&format!("/sessions/{origin}")).json(200);
        assert_eq!(server.shell(fork, "cat file"), "after");
    }
}
