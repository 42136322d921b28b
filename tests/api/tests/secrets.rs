//! Nothing that is secret is written where people look who need not know it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;

use sandbox_api_tests::{Options, Storage};
use sandbox_test_servers::Database;
use serde_json::json;

/// A secret, and what it is.
type Secret = (&'static str, String);

#[track_caller]
fn must_not_hold(place: &str, text: &str, secrets: &[Secret]) {
    for (what, secret) in secrets {
        let line = text.lines().find(|line| line.contains(secret.as_str()));
        assert!(
            line.is_none(),
            "{place} has {what}: {}",
            line.unwrap_or_default()
        );
    }
}

/// The arguments and the environment of every process on the machine that we may see.
fn processes() -> String {
    let mut told = String::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        for file in ["cmdline", "environ"] {
            let bytes = fs::read(entry.path().join(file)).unwrap_or_default();
            told.push_str(&String::from_utf8_lossy(&bytes).replace('\0', "\n"));
            told.push('\n');
        }
    }
    told
}

#[test]
fn no_secret_is_in_the_log_however_much_is_logged() {
    let database = Database::postgres();
    let url = database.fresh_database();
    let base = tempfile::tempdir().unwrap();
    let keep = |name: &str, secret: &str| {
        let path = base.path().join(name);
        fs::write(&path, secret).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let options = Options::on(Storage::SqliteAndFiles)
        .with(&["--log-level", "trace"])
        .env("DATABASE_URL_FILE", keep("url", &url))
        .env(
            "INTERNAL_API_TOKEN_FILE",
            keep("token", "an-internal-token-of-some-length"),
        );
    let server = options.start();
    let made = server.post("/api-keys", &json!({ "name": "looking", "scope": "read" }));
    let made = made.json(201)["secret"].as_str().unwrap().to_owned();
    let listed = server.stranger("GET", "/api/v1/sessions").key(&made).send();
    listed.expect(200);
    let wrong = format!("sbx_{}", "5ec4e7".repeat(10));
    server
        .stranger("GET", "/api/v1/sessions")
        .key(&wrong)
        .send()
        .expect(401);
    let variables = json!({ "env_vars": { "PAYMENT_TOKEN": "a-token-for-payments" } });
    let session = server.session_with(variables);
    assert_eq!(
        server.shell(&session, "echo $PAYMENT_TOKEN"),
        "a-token-for-payments"
    );
    let session_shown = server.get(&format!("/sessions/{session}")).expect(200);
    let run = json!({ "language": "python", "code": "def handler(event):\n    return 1", "event": { "password": "swordfish-4711" } });
    server.run_with(&session, run);
    server
        .upload(&session, "notes.txt", b"what-is-in-the-file")
        .expect(200);
    server.get("/sessions/nothing").expect(404);

    let secrets = [
        ("the admin's key", server.admin().to_owned()),
        ("a key", made),
        ("a wrong key", wrong),
        ("the database's password", database.password().to_owned()),
        (
            "the internal token",
            "an-internal-token-of-some-length".to_owned(),
        ),
        ("a session's variable", "a-token-for-payments".to_owned()),
        ("an event", "swordfish-4711".to_owned()),
        ("a file's content", "what-is-in-the-file".to_owned()),
    ];
    let log = server.log();
    assert!(
        log.contains("POST /api/v1/sessions 201"),
        "nothing was logged"
    );
    must_not_hold("the log", &log, &secrets);
    must_not_hold("a session", &session_shown.text(), &secrets);
}

#[test]
fn no_secret_of_the_server_is_in_arguments_or_what_code_can_read() {
    let server = Options::on(Storage::SqliteAndFiles).start();
    let internal = fs::read_to_string(server.data().join("internal.token")).unwrap();
    let links = fs::read_to_string(server.data().join("links.key")).unwrap();
    let secrets = [
        ("the admin's key", server.admin().to_owned()),
        ("the internal token", internal.trim().to_owned()),
        ("the key of links", links.trim().to_owned()),
    ];
    let session = server.session();
    must_not_hold("a process", &processes(), &secrets);
    // Everything that code can find about itself and around it.
    let hunt = "cat /proc/*/environ /proc/*/cmdline /proc/*/maps 2>/dev/null; env; ls -lR /proc/self/fd /run /tmp /dev/shm; \
        grep -rs -m1 . /etc/hostname; find / -xdev -name '*.key' -o -xdev -name '*.token' 2>/dev/null | xargs -r cat 2>/dev/null; true";
    let found = server.shell(&session, hunt);
    must_not_hold("a session", &found.replace('\0', "\n"), &secrets);
    for file in ["admin.key", "internal.token", "links.key"] {
        let path = server.data().join(file);
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600, "{file}");
        let read = format!("cat {} 2>&1 || true", path.display());
        assert!(
            server.shell(&session, &read).contains("No such file"),
            "{file}"
        );
    }
}
