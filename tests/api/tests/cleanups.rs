//! What the server ends and removes by itself: sessions that nobody uses, that expired, that are too old, and
//! workspaces whose session ended long ago.
//!
//! Nobody waits for hours here. Time passes in the records, for one session at a time, and a server that looks
//! every second finds it as old as that.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::Command;

use sandbox_api_tests::{Options, Server, Storage, eventually, id_of};
use sandbox_test_servers::Database;
use serde_json::{Value, json};

/// What there is when nothing is chosen, in minutes.
const IDLE_TIMEOUT: u32 = 30;
const MAX_LIFETIME: u32 = 6 * 60;
const RETENTION: u32 = 24 * 60;

/// Every time that the record of a session has.
const TIMES: [&str; 8] = [
    "created_at",
    "started_at",
    "updated_at",
    "last_activity_at",
    "expires_at",
    "terminated_at",
    "ended_at",
    "unclean_since",
];

/// Why a session ended by itself: the cause that its events name, and what the audit says.
const IDLE: (&str, &str) = ("idle", "it was idle for too long");
const EXPIRED: (&str, &str) = ("expired", "it expired");
const OUTLIVED: (&str, &str) = ("outlived", "it reached the age that no session may pass");

/// A way to use a session.
type Use<'u> = (&'u str, &'u dyn Fn(&str));

/// A server that looks every second, and its records.
struct Stage {
    server: Server,
    /// Ends after its server.
    database: Option<(Database, String)>,
}

impl Stage {
    fn new(arguments: &[&str]) -> Stage {
        Stage::on(None, arguments)
    }

    fn on(database: Option<Database>, arguments: &[&str]) -> Stage {
        let mut options = Options::on(Storage::SqliteAndFiles)
            .with(&["--reap-interval", "1s"])
            .with(arguments);
        let database = database.map(|database| {
            let url = database.fresh_database();
            options = options.clone().with(&["--database", &url]);
            let name = url.rsplit('/').next().unwrap().to_owned();
            (database, name)
        });
        Stage {
            server: options.start(),
            database,
        }
    }

    /// One that expires after so many minutes.
    fn session(&self, minutes: u32) -> String {
        self.server.session_with(json!({ "timeout": 60 * minutes }))
    }

    /// So many minutes pass for sessions.
    fn pass(&self, sessions: &[&str], minutes: u32) {
        self.earlier(sessions, minutes, &TIMES);
    }

    /// Sessions were last used so many minutes earlier. A use of the last two seconds may still be written down.
    fn unused(&self, sessions: &[&str], minutes: u32) {
        self.earlier(sessions, minutes, &["last_activity_at"]);
    }

    /// A session was made so many minutes earlier.
    fn age(&self, session: &str, minutes: u32) {
        self.earlier(&[session], minutes, &["created_at", "started_at"]);
    }

    fn earlier(&self, sessions: &[&str], minutes: u32, times: &[&str]) {
        let microseconds = u64::from(minutes) * 60_000_000;
        let set = |time: &&str| format!("{time} = {time} - {microseconds}");
        let sets: Vec<_> = times.iter().map(set).collect();
        let (sets, ids) = (sets.join(", "), sessions.join("', '"));
        self.write(&format!("UPDATE sessions SET {sets} WHERE id IN ('{ids}')"));
    }

    fn write(&self, sql: &str) {
        if let Some((database, name)) = &self.database {
            database.query(name, sql);
            return;
        }
        let script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], timeout=30); \
            c.execute(sys.argv[2]); c.commit()";
        let written = Command::new("python3")
            .args(["-c", script])
            .arg(self.server.data().join("records.db"))
            .arg(sql)
            .status();
        assert!(written.unwrap().success(), "{sql}");
    }

    /// The server looks once more at everything: it ends another session that is due.
    fn look(&self) {
        let other = self.session(1);
        self.pass(&[&other], 2 * MAX_LIFETIME);
        self.until_over(&other);
    }

    #[track_caller]
    fn until_over(&self, session: &str) {
        eventually("it ends by itself", || {
            (self.status(session) == "timeout").then_some(())
        });
    }

    fn status(&self, session: &str) -> Value {
        let path = format!("/sessions/{session}");
        self.server.get(&path).json(200)["status"].clone()
    }

    /// What the audit has of an action on a session.
    fn audit(&self, action: &str, session: &str) -> Vec<Value> {
        let page = self.server.get("/audit?limit=200").json(200);
        let records = page["records"].as_array().unwrap().iter();
        let is_it = |record: &&Value| record["action"] == action && record["object"] == session;
        records.filter(is_it).cloned().collect()
    }

    /// Waits for the end of a session, which must be told in every way that there is.
    #[track_caller]
    fn ends(&self, session: &str, (cause, reason): (&str, &str)) {
        self.until_over(session);
        let event = self.server.events(session).until_status("timeout");
        let told = json!({ "status": "timeout", "cause": cause, "error": null });
        assert_eq!(event.data["detail"], told);
        let ended = self.server.get(&format!("/sessions/{session}")).json(200);
        assert!(ended["terminated_at"].is_string(), "{ended:#}");
        let records = eventually("its audit record", || {
            let found = self.audit("session.end", session);
            (!found.is_empty()).then_some(found)
        });
        assert_eq!(records.len(), 1, "{records:?}");
        assert_eq!(records[0]["detail"], json!({ "reason": reason }));
        // Nobody asked for it.
        assert_eq!(records[0]["key_id"], Value::Null);
        assert_eq!(records[0]["request_id"], Value::Null);
    }

    /// Waits until the workspace of a session is removed.
    #[track_caller]
    fn loses_its_workspace(&self, session: &str) {
        let records = eventually("it is removed", || {
            let found = self.audit("session.clean", session);
            (!found.is_empty()).then_some(found)
        });
        assert_eq!(records.len(), 1, "{records:?}");
        assert_eq!(records[0]["key_id"], Value::Null);
    }

    /// Is there anything on disk that has the session's name?
    fn is_on_disk(&self, session: &str) -> bool {
        let found = Command::new("find")
            .arg(self.server.data())
            .args(["-name", &format!("*{session}*")])
            .output();
        !found.unwrap().stdout.is_empty()
    }

    /// Has code run that does not end before it is told to.
    fn busy(&self, session: &str) -> String {
        let code = "echo here > started; until [ -e go ]; do sleep 0.05; done; echo done";
        let code = json!({ "language": "shell", "code": code, "timeout": 600 });
        let execution = self.server.submit(session, code);
        self.server.until_file(session, "started");
        self.server.until(&execution, "running");
        execution
    }

    fn act(&self, session: &str, action: &str) {
        let path = format!("/sessions/{session}/{action}");
        self.server.post(&path, &json!({})).json(200);
    }
}

#[test]
fn a_session_that_nobody_uses_ends_and_whatever_use_keeps_it() {
    let stage = Stage::new(&[]);
    let server = &stage.server;
    let uses: [Use<'_>; 7] = [
        ("code", &|id| drop(server.shell(id, "true"))),
        ("upload", &|id| {
            drop(server.upload(id, "new", b"x").expect(200))
        }),
        ("download", &|id| {
            server
                .get(&format!("/sessions/{id}/files/kept"))
                .expect(200);
        }),
        ("file that is not there", &|id| {
            server.get(&format!("/sessions/{id}/files/no")).expect(404);
        }),
        ("deletion of a file", &|id| {
            server
                .delete(&format!("/sessions/{id}/files/kept"))
                .expect(204);
        }),
        ("renewal", &|id| stage.act(id, "renew")),
        ("pause and resumption", &|id| {
            stage.act(id, "pause");
            stage.act(id, "resume");
        }),
    ];
    let session = || {
        let source = json!({ "files": { "kept": "as it was" } });
        server.session_with(json!({ "timeout": 3600, "source": source }))
    };
    let used = uses.map(|(name, used)| (name, used, session()));
    let kept: Vec<&str> = used.iter().map(|(_, _, id)| id.as_str()).collect();
    let idle = session();
    let all = [&kept[..], &[&idle]].concat();
    stage.unused(&all, IDLE_TIMEOUT - 1);
    used.iter().for_each(|(_, used, id)| used(id));
    // To look at a session is no use of it.
    assert_eq!(stage.status(&idle), "running");
    stage.unused(&all, 2);
    stage.ends(&idle, IDLE);
    stage.look();
    for (name, _, id) in &used {
        assert_eq!(stage.status(id), "running", "{name}");
    }
    stage.unused(&kept, IDLE_TIMEOUT);
    kept.iter().for_each(|id| stage.ends(id, IDLE));
}

#[test]
fn code_that_runs_for_longer_than_a_session_may_be_idle_is_use_of_it() {
    let stage = Stage::new(&["--idle-timeout", "4s"]);
    let busy = stage.session(60);
    let execution = stage.busy(&busy);
    // Made after it was last heard of the other.
    let idle = stage.session(60);
    stage.ends(&idle, IDLE);
    stage.look();
    assert_eq!(stage.status(&busy), "running");
    stage.server.until(&execution, "running");
    stage.server.upload(&busy, "go", b"").expect(200);
    stage.server.until(&execution, "completed");
    stage.ends(&busy, IDLE);
}

#[test]
fn a_session_expires_when_it_is_told_and_later_when_it_is_renewed() {
    let stage = Stage::new(&[]);
    let [plain, used, renewed] = [(); 3].map(|()| stage.session(10));
    let all = [&*plain, &used, &renewed];
    stage.pass(&all, 9);
    stage.look();
    for id in all {
        assert_eq!(stage.status(id), "running");
    }
    stage.act(&renewed, "renew");
    // To use it is not to renew it.
    stage.server.shell(&used, "true");
    stage.pass(&all, 2);
    stage.ends(&plain, EXPIRED);
    stage.ends(&used, EXPIRED);
    stage.look();
    assert_eq!(stage.status(&renewed), "running");
    stage.pass(&[&renewed], 9);
    stage.ends(&renewed, EXPIRED);
}

#[test]
fn the_highest_age_ends_even_a_session_that_is_busy_and_renewed() {
    let stage = Stage::new(&[]);
    let [old, younger] = [(); 2].map(|()| stage.session(60));
    let execution = stage.busy(&old);
    stage.age(&younger, MAX_LIFETIME - 1);
    stage.age(&old, MAX_LIFETIME - 1);
    stage.act(&old, "renew");
    stage.look();
    assert_eq!(stage.status(&old), "running");
    stage.age(&old, 2);
    stage.ends(&old, OUTLIVED);
    // What ran in it is told as lost.
    stage.server.until(&execution, "crashed");
    stage.look();
    assert_eq!(stage.status(&younger), "running");
}

#[test]
fn a_session_that_is_held_ends_as_any_other() {
    let stage = Stage::new(&[]);
    let [idle, expiring, old] = [60, 10, 60].map(|minutes| stage.session(minutes));
    let execution = stage.busy(&expiring);
    stage.server.shell(&idle, "echo kept > kept");
    for id in [&idle, &expiring, &old] {
        stage.act(id, "pause");
    }
    stage.look();
    for id in [&idle, &expiring, &old] {
        assert_eq!(stage.status(id), "paused");
    }
    stage.unused(&[&idle], IDLE_TIMEOUT + 1);
    stage.pass(&[&expiring], 11);
    stage.age(&old, MAX_LIFETIME + 1);
    stage.ends(&idle, IDLE);
    stage.ends(&expiring, EXPIRED);
    stage.ends(&old, OUTLIVED);
    stage.server.until(&execution, "crashed");
    let resume = format!("/sessions/{idle}/resume");
    let refused = stage.server.post(&resume, &json!({}));
    refused.error(409, "Sandbox.StateConflict");
    let kept = format!("/sessions/{idle}/files/kept");
    assert_eq!(stage.server.get(&kept).expect(200).text(), "kept\n");
}

/// Three sessions are due, each for one reason; the one whose reason is switched off lives on.
fn lives_on(off: &str, spared: &str) {
    let stage = Stage::new(&[off, "off"]);
    let [idle, expired, old] = [60, 10, 60].map(|minutes| stage.session(minutes));
    stage.unused(&[&idle], IDLE_TIMEOUT + 1);
    stage.pass(&[&expired], 11);
    stage.age(&old, MAX_LIFETIME + 1);
    let due = [(&idle, IDLE), (&expired, EXPIRED), (&old, OUTLIVED)];
    let (spared, ending): (Vec<_>, Vec<_>) = due
        .into_iter()
        .partition(|(_, (cause, _))| *cause == spared);
    for (id, why) in ending {
        stage.ends(id, why);
    }
    stage.look();
    assert_eq!(spared.len(), 1);
    for (id, _) in spared {
        assert_eq!(stage.status(id), "running");
        assert_eq!(stage.server.shell(id, "echo here"), "here");
    }
}

#[test]
fn nothing_ends_for_being_idle_where_that_is_off() {
    lives_on("--idle-timeout", "idle");
}

#[test]
fn nothing_ends_for_having_expired_where_that_is_off() {
    lives_on("--expire", "expired");
}

#[test]
fn nothing_ends_for_its_age_where_that_is_off() {
    lives_on("--max-lifetime", "outlived");
}

#[test]
fn a_workspace_is_removed_a_day_after_the_end_and_what_was_done_in_it_stays_known() {
    let stage = Stage::new(&[]);
    let server = &stage.server;
    let [ended, later] = [60, 10].map(|minutes| stage.session(minutes));
    for id in [&ended, &later] {
        server.shell(id, "mkdir d; echo kept > d/kept");
    }
    let code = json!({ "language": "python", "code": "def handler(event):\n    return event + 1", "event": 41 });
    let ran = server.run_with(&ended, code);
    server.delete(&format!("/sessions/{ended}")).json(200);
    stage.pass(&[&ended], RETENTION - 1);
    // However a session ends, its workspace is kept.
    stage.pass(&[&later], 11);
    stage.ends(&later, EXPIRED);
    stage.look();
    let kept = |id: &str| server.get(&format!("/sessions/{id}/files/d/kept"));
    for id in [&ended, &later] {
        assert_eq!(kept(id).expect(200).text(), "kept\n");
        assert!(stage.is_on_disk(id));
    }

    stage.pass(&[&ended], 2);
    stage.loses_its_workspace(&ended);
    assert!(!stage.is_on_disk(&ended));
    for (method, path) in [
        ("GET", "files"),
        ("GET", "files/d/kept"),
        ("DELETE", "files/d/kept"),
        ("GET", "archive"),
        ("GET", "changes"),
        ("POST", "fork"),
    ] {
        let target = format!("/api/v1/sessions/{ended}/{path}");
        let error = server.call(method, &target).send();
        let error = error.error(409, "Sandbox.StateConflict");
        let detail = error["error_detail"].as_str().unwrap();
        assert!(detail.contains("was removed at"), "{path}: {detail}");
    }
    assert!(!stage.is_on_disk(&ended), "asking made it again");
    assert_eq!(stage.status(&ended), "terminated");
    let execution = ran["execution_id"].as_str().unwrap();
    let result = server
        .get(&format!("/executions/{execution}/result"))
        .json(200);
    assert_eq!(result, ran);
    assert_eq!(result["return_value"], 42);
    let listed = server
        .get(&format!("/sessions/{ended}/executions"))
        .json(200);
    assert_eq!(listed["total"], 2);
    assert_eq!(kept(&later).expect(200).text(), "kept\n");
}

#[test]
fn a_workspace_that_a_later_session_of_the_agent_has_is_not_removed() {
    let stage = Stage::new(&[]);
    let server = &stage.server;
    let mine = json!({ "template_id": "python-basic", "mode": "persistent", "agent_id": "ada" });
    let make = || id_of(&server.post("/sessions", &mine).json(201));
    let end = |id: &str| server.delete(&format!("/sessions/{id}")).json(200);
    let first = make();
    server.shell(
        &first,
        "echo remembered > note; head -c 11000000 /dev/zero > large",
    );
    end(&first);
    let second = make();
    // A copy is made among the objects.
    server
        .get(&format!("/sessions/{second}/files/large"))
        .expect(307);
    stage.pass(&[&first], RETENTION + 1);
    stage.loses_its_workspace(&first);
    assert_eq!(server.shell(&second, "cat note"), "remembered");
    let object = server.data().join("objects");
    let objects = || {
        let found = Command::new("find")
            .arg(&object)
            .args(["-size", "+10M"])
            .output();
        found.unwrap().stdout.len()
    };
    assert!(objects() > 0);

    // Nor when that one has ended, before its own time is over.
    end(&second);
    stage.look();
    let third = make();
    assert_eq!(server.shell(&third, "cat note"), "remembered");
    end(&third);
    stage.pass(&[&second, &third], RETENTION + 1);
    stage.loses_its_workspace(&second);
    stage.loses_its_workspace(&third);
    assert!(!stage.is_on_disk(&first));
    assert_eq!(objects(), 0);
    assert_eq!(server.shell(&make(), "ls"), "");
}

#[test]
fn nothing_is_removed_where_that_is_off() {
    let stage = Stage::new(&["--retention", "off"]);
    let id = stage.session(60);
    stage.server.shell(&id, "echo kept > kept");
    stage.server.delete(&format!("/sessions/{id}")).json(200);
    stage.pass(&[&id], 1000 * RETENTION);
    stage.look();
    stage.look();
    let kept = stage.server.get(&format!("/sessions/{id}/files/kept"));
    assert_eq!(kept.expect(200).text(), "kept\n");
}

/// What becomes due while the server is away is done when it is back, and nothing else.
fn is_made_up_for(database: Option<Database>) {
    let mut stage = Stage::on(database, &[]);
    let [idle, expired, old, ended, fine] =
        [60, 10, 60, 60, 60].map(|minutes| stage.session(minutes));
    let execution = stage.server.submit(
        &fine,
        json!({ "language": "shell", "code": "echo kept > kept" }),
    );
    stage.server.until(&execution, "completed");
    stage.server.shell(&ended, "echo kept > kept");
    stage.server.delete(&format!("/sessions/{ended}")).json(200);
    for id in [&idle, &expired, &old, &fine] {
        assert_eq!(stage.status(id), "running");
    }
    stage.server.stop();
    stage.unused(&[&idle], IDLE_TIMEOUT + 1);
    stage.pass(&[&expired], 11);
    stage.age(&old, MAX_LIFETIME + 1);
    stage.pass(&[&ended], RETENTION + 1);
    stage.unused(&[&fine], IDLE_TIMEOUT - 5);
    stage.server.start();
    stage.ends(&idle, IDLE);
    stage.ends(&expired, EXPIRED);
    stage.ends(&old, OUTLIVED);
    stage.loses_its_workspace(&ended);
    assert!(!stage.is_on_disk(&ended));
    stage.look();
    assert_eq!(stage.status(&fine), "running");
    assert_eq!(stage.server.shell(&fine, "cat kept"), "kept");
}

#[test]
fn what_was_due_while_the_server_was_away_is_done_when_it_is_back_with_sqlite() {
    is_made_up_for(None);
}

#[test]
fn what_was_due_while_the_server_was_away_is_done_when_it_is_back_with_postgres() {
    is_made_up_for(Some(Database::postgres()));
}

#[test]
fn what_was_due_while_the_server_was_away_is_done_when_it_is_back_with_mariadb() {
    is_made_up_for(Some(Database::mariadb()));
}
