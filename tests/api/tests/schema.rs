//! The API as its description has it, asked by somebody who knows only that.
//!
//! schemathesis makes requests from the server's own openapi.json: its examples, every bound and a step beyond it,
//! random ones that are valid and that are not, and chains of them. No answer may be an error of the server's, be
//! other than described, take what the description forbids or refuse what it allows. How it asks is in
//! schemathesis/schemathesis.toml; which answers are right nevertheless, and why, in schemathesis/hooks.py.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sandbox_api_tests::{Options, Server, Storage, User};
use serde_json::{Value, json};

const SETTINGS: &str = include_str!("../schemathesis/schemathesis.toml");
const HOOKS: &str = include_str!("../schemathesis/hooks.py");

/// What set-up installed, at the version that the requirements pin.
#[track_caller]
fn schemathesis() -> PathBuf {
    let cache = std::env::var_os("CACHE").map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("HOME")?;
        Some(PathBuf::from(home).join(".cache/sandbox-build"))
    });
    let program = cache.unwrap().join("tools/schemathesis/bin/schemathesis");
    assert!(
        program.is_file(),
        "this test needs `{}`, which is not installed\nhint: run `scripts/set-up test`",
        program.display()
    );
    program
}

/// A session that lives longer than the test.
fn session(server: &Server, mut fields: Value) -> String {
    fields["timeout"] = json!(3600);
    server.session_with(fields)
}

/// A session that changed the directory it started from.
fn sourced(server: &Server, source: &Path) -> String {
    let session = session(server, json!({ "source": { "directory": source } }));
    server.shell(&session, "echo after > changed.txt && echo made > made.txt");
    session
}

/// Something of every kind, by the names that the settings have for it. All code that is run ends, because
/// schemathesis learns it and runs it again.
fn made(server: &Server, source: &Path) -> Value {
    let plain = || session(server, json!({}));
    let (used, idle, ended) = (plain(), plain(), plain());
    let run = |session: &str, code: &str, until: &str| {
        let execution = server.submit(session, json!({ "language": "shell", "code": code }));
        server.until(&execution, until);
        execution
    };
    let code = "mkdir data; echo a,b > data/table.csv; echo hello > report.txt";
    let wrote = run(&used, code, "completed");
    let failed = run(&used, "exit 3", "failed");
    server.delete(&format!("/sessions/{ended}")).json(200);
    for id in ["own-one", "own-two"] {
        let template = json!({ "id": id, "name": "Our own", "image": "host" });
        server.post("/templates", &template).json(201);
    }
    let key = json!({ "name": "ci", "scope": "read" });
    let key = server.post("/api-keys", &key).json(201)["key_id"].clone();
    json!({
        "sessions": [used, idle, ended],
        "stopped": [plain(), plain(), plain()],
        "sourced": [sourced(server, source), sourced(server, source)],
        "executions": [wrote, failed],
        "templates": ["python-basic", "nodejs-basic"],
        "own_templates": ["own-one", "own-two"],
        "keys": [key],
        "nodes": ["elsewhere"],
        "paths": ["report.txt", "data", "data/table.csv"],
        "directories": ["data"],
    })
}

/// Where schemathesis runs: its settings, with what was made, and its hooks.
fn prepare(place: &Path, made: &Value) {
    let made = made.as_object().unwrap().iter();
    let dictionaries: String = made
        .map(|(name, values)| format!("{name} = {{ values = {values} }}\n"))
        .collect();
    let settings = format!("{SETTINGS}\n[dictionaries]\n{dictionaries}");
    fs::write(place.join("schemathesis.toml"), settings).unwrap();
    fs::write(place.join("hooks.py"), HOOKS).unwrap();
}

/// How many operations the server describes.
fn described(server: &Server) -> usize {
    let description = server.get("/openapi.json").json(200);
    let paths = description["paths"].as_object().unwrap().values();
    paths
        .map(|methods| methods.as_object().unwrap().len())
        .sum()
}

#[test]
fn every_answer_is_as_described() {
    let place = tempfile::Builder::new()
        .prefix("sandbox-schema.")
        .tempdir_in("/srv")
        .unwrap();
    let source = place.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("changed.txt"), "before\n").unwrap();
    for path in [&source, &source.join("changed.txt")] {
        User::Tester.own(path);
    }
    let (root, (uid, gid)) = (source.to_str().unwrap(), User::Tester.ids());
    let server = Options::on(Storage::SqliteAndFiles)
        .with(&["--source-root", root, "--promote", "on"])
        // Sessions belong to whom the directory does, so that they may change it.
        .with(&["--user", &format!("{uid}:{gid}")])
        .with(&["--requests-per-second", "100000"])
        .start();
    prepare(place.path(), &made(&server, &source));
    let output = Command::new(schemathesis())
        .arg("run")
        .arg(format!("http://{}/api/v1/openapi.json", server.address()))
        .env("SANDBOX_API_KEY", server.admin())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("NO_PROXY", "127.0.0.1")
        .current_dir(place.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let also = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}:\n{said}{also}", output.status);
    let tested = format!("Tested: {}\n", described(&server));
    assert!(said.contains(&tested), "not {tested}{said}");
}
