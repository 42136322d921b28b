//! Sessions of one agent, one after the other: the files stay, and nothing else.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;

use rustix::process::{Signal, kill_process};
use sandbox_api_tests::process::{executor, unlikely};
use sandbox_api_tests::{Options, Server, Storage, eventually, id_of, on_every_storage};
use serde_json::{Value, json};

/// A persistent session of an agent, with more fields.
fn persistent(agent: &str, more: Value) -> Value {
    let mut asked =
        json!({ "template_id": "python-basic", "mode": "persistent", "agent_id": agent });
    for (name, value) in more.as_object().unwrap() {
        asked[name] = value.clone();
    }
    asked
}

fn session(server: &Server, agent: &str, more: Value) -> String {
    id_of(&server.post("/sessions", &persistent(agent, more)).json(201))
}

on_every_storage! {
    fn packages_that_are_missing_cost_an_agent_nothing(server: &Server) {
        let needy = json!({
            "id": "needy", "name": "Needy", "image": "host", "pre_installed_packages": ["no-such-package-at-all"],
        });
        server.post("/templates", &needy).json(201);
        let first = session(server, "needy", json!({}));
        server.shell(&first, "echo precious > kept");
        server.delete(&format!("/sessions/{first}")).json(200);
        let refused = server.post("/sessions", &persistent("needy", json!({ "template_id": "needy" })));
        refused.invalid("template_id");
        let next = session(server, "needy", json!({}));
        assert_eq!(server.shell(&next, "cat kept"), "precious");
    }

    fn each_session_of_an_agent_has_its_own_environment(server: &Server) {
        let word = |word: &str| json!({ "env_vars": { "WORD": word } });
        let first = session(server, "words", word("first"));
        server.shell(&first, "echo $WORD > kept");
        server.delete(&format!("/sessions/{first}")).json(200);
        // Its processes are there again to hand out its files, and stay for a while.
        server.get(&format!("/sessions/{first}/files/kept")).expect(200);
        let second = session(server, "words", word("second"));
        assert_eq!(server.shell(&second, "cat kept; echo $WORD"), "first\nsecond");
        server.get(&format!("/sessions/{first}/files/kept")).expect(200);
        assert_eq!(server.shell(&second, "echo $WORD"), "second");
    }

    fn files_that_stand_still_are_not_waited_for(server: &Server) {
        let first = session(server, "still", json!({}));
        server.shell(&first, "echo here > kept");
        server.delete(&format!("/sessions/{first}")).json(200);
        let second = session(server, "still", json!({}));
        server.post(&format!("/sessions/{second}/pause"), &json!({})).json(200);
        let kept = format!("/sessions/{first}/files/kept");
        let error = server.get(&kept).error(409, "Sandbox.StateConflict");
        assert!(error["error_detail"].as_str().unwrap().contains(&second), "{error}");
        server.post(&format!("/sessions/{second}/resume"), &json!({})).json(200);
        assert_eq!(server.get(&kept).expect(200).text(), "here\n");
    }

    fn the_end_of_processes_is_told_to_the_session_that_had_them(server: &Server) {
        let first = session(server, "told", json!({}));
        server.delete(&format!("/sessions/{first}")).json(200);
        let second = session(server, "told", json!({}));
        let word = unlikely(700, 41);
        let sleeping = json!({ "language": "shell", "code": format!("echo > begun; sleep {word}"), "timeout": 900 });
        let execution = server.submit(&second, sleeping);
        server.until_file(&second, "begun");
        kill_process(executor(&word), Signal::KILL).unwrap();
        server.until(&execution, "crashed");
        server.events(&second).until("executor_ended");
        assert_eq!(server.shell(&second, "echo again"), "again");
    }
}

#[test]
fn an_agents_workspace_does_not_become_a_copy_of_a_directory() {
    let root = tempfile::tempdir_in("/srv").unwrap();
    let source = root.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("given"), "").unwrap();
    let server = Options::on(Storage::SqliteAndFiles)
        .with(&["--source-root", root.path().to_str().unwrap()])
        .start();
    let copy = json!({ "source": { "directory": source } });
    let first = session(&server, "copier", copy.clone());
    assert_eq!(server.shell(&first, "ls"), "given");
    server.delete(&format!("/sessions/{first}")).json(200);
    let refused = server.post("/sessions", &persistent("copier", copy));
    refused.error(409, "Sandbox.StateConflict");
    let next = session(&server, "copier", json!({}));
    assert_eq!(server.shell(&next, "ls"), "given");
}

#[test]
fn workspaces_that_no_session_has_are_removed_unless_there_is_something_in_them() {
    let mut server = Options::on(Storage::SqliteAndFiles)
        .with(&["--pool", "none"])
        .start();
    let (empty, full) = (server.session(), server.session());
    server.shell(&full, "echo precious > kept");
    server.stop();
    for entry in fs::read_dir(server.data()).unwrap() {
        let entry = entry.unwrap();
        if entry
            .file_name()
            .to_str()
            .unwrap()
            .starts_with("records.db")
        {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    server.start();
    eventually("the empty one is removed", || {
        server
            .log()
            .contains(&format!("removed workspace {empty}"))
            .then_some(())
    });
    eventually("the other one is told of", || {
        server.log().contains("belong to no session").then_some(())
    });
    assert!(!server.log().contains(&full), "{}", server.log());
}
