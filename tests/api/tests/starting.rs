//! What a server says when it starts, and when it cannot.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use rustix::process::{Signal, getpgid};
use sandbox_api_tests::{Options, Server, Storage, User, eventually};
use serde_json::{Value, json};

fn server() -> Server {
    Options::on(Storage::SqliteAndFiles).start()
}

/// What it says to people when it listens: the log is beside it, as JSON.
#[track_caller]
fn banner(server: &Server) -> Vec<String> {
    const LINES: usize = 6;
    eventually("it says where it is", || {
        let log = server.log();
        let lines = log.lines().filter(|line| !line.starts_with('{'));
        let lines: Vec<String> = lines.map(str::to_owned).collect();
        (lines.len() >= LINES).then_some(lines)
    })
}

fn refusal(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn the_first_request_that_is_told_works_as_it_is_pasted() {
    for user in [User::Root, User::Tester] {
        let server = Options::on(Storage::SqliteAndFiles).by(user).start();
        let lines = banner(&server);
        let pasted: String = lines
            .iter()
            .skip(4)
            .map(|line| format!("{line}\n"))
            .collect();
        assert!(pasted.trim_start().starts_with("curl "), "{lines:?}");
        let output = Command::new("bash").args(["-c", &pasted]).output().unwrap();
        let session: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(session["status"], "running", "{session}");
    }
}

#[test]
fn it_says_where_its_key_and_its_reference_are() {
    let server = server();
    let lines = banner(&server);
    let key = server.data().join("admin.key");
    assert_eq!(lines[1], format!("  admin's key  {}", key.display()));
    let reference = lines[2].split_whitespace().last().unwrap();
    let path = reference
        .split_once("//")
        .unwrap()
        .1
        .split_once('/')
        .unwrap()
        .1;
    let page = server
        .stranger("GET", &format!("/{path}"))
        .send()
        .expect(200);
    assert!(page.text().contains("<title>sandbox API</title>"));
    let policy = page
        .headers
        .iter()
        .find(|(name, _)| name == "content-security-policy");
    assert!(
        policy.unwrap().1.starts_with("default-src 'none';"),
        "{policy:?}"
    );
    assert!(
        !server.log().contains(server.admin()),
        "the key is in the log"
    );
}

#[test]
fn a_second_server_on_the_same_data_is_told_what_to_do() {
    let server = server();
    let second = server.command().output().unwrap();
    let expected = format!(
        "error: another server uses the data directory {}\n\
         hint: end that server, or choose another directory with --data and another address with --bind\n",
        server.data().display()
    );
    assert_eq!(refusal(&second), expected);
    assert_eq!(second.status.code(), Some(5));
}

#[test]
fn a_port_that_is_taken_is_named() {
    let server = server();
    let address = server.address().to_string();
    let elsewhere = server.base().join("elsewhere");
    let second = Command::new(server.command().get_program())
        .args(["serve", "--bind", &address, "--data"])
        .arg(elsewhere)
        .output()
        .unwrap();
    let said = refusal(&second);
    assert!(
        said.contains(&format!("error: cannot listen on {address}\n")),
        "{said}"
    );
    let hint = "hint: something else listens there: end it, or choose another port with --bind\n";
    assert!(said.ends_with(hint), "{said}");
}

#[test]
fn beyond_the_loopback_a_key_must_be_chosen() {
    let server = server();
    let elsewhere = server.base().join("elsewhere");
    for address in ["0.0.0.0:0", "[::]:0", "203.0.113.9:8000"] {
        let exposed = Command::new(server.command().get_program())
            .args(["serve", "--bind", address, "--data"])
            .arg(&elsewhere)
            .output()
            .unwrap();
        let said = refusal(&exposed);
        assert!(said.contains("no API key was chosen"), "{said}");
        assert!(said.contains("hint: set SANDBOX_API_KEY"), "{said}");
    }
    assert!(
        !elsewhere.exists(),
        "something was made before it was refused"
    );
}

#[test]
fn a_key_that_others_could_find_is_refused_before_they_can_try() {
    let server = server();
    let elsewhere = server.base().join("elsewhere");
    let exposed = Command::new(server.command().get_program())
        .args(["serve", "--bind", "0.0.0.0:0", "--data"])
        .arg(&elsewhere)
        .env("SANDBOX_API_KEY", "fifteen-letters")
        .output()
        .unwrap();
    let expected = "error: 0.0.0.0:0 can be reached from other machines, and its API key has fewer than 16 characters\n\
         hint: choose a longer one, such as `openssl rand -hex 32` prints, or bind to 127.0.0.1\n";
    assert_eq!(refusal(&exposed), expected);
    assert!(!elsewhere.exists());
}

#[test]
fn a_check_refuses_what_a_start_would() {
    let server = server();
    for (key, arguments) in [
        ("", &["--check"][..]),
        ("fifteen-letters", &["--check", "--json"]),
    ] {
        let start = |arguments: &[&str]| {
            Command::new(server.command().get_program())
                .args(["serve", "--bind", "0.0.0.0:8000", "--data"])
                .arg(server.base().join("elsewhere"))
                .args(arguments)
                .env("SANDBOX_API_KEY", key)
                .output()
                .unwrap()
        };
        let checked = start(arguments);
        assert_eq!(refusal(&checked), refusal(&start(&[])));
        // What would be used is told all the same.
        let told = String::from_utf8(checked.stdout).unwrap();
        assert!(told.contains("0.0.0.0:8000"), "{told}");
    }
    for database in [
        "postgres://ada@127.0.0.1:1/sandbox?sslmod=require",
        "mysql://ada@127.0.0.1:1:2/sandbox",
        "sqlite:records.db?mode=ro",
    ] {
        let start = |arguments: &[&str]| {
            let mut command = server.command();
            command.args(["--database", database]).args(arguments);
            refusal(&command.output().unwrap())
        };
        let checked = start(&["--check"]);
        assert!(checked.contains("error: "), "{checked}");
        assert_eq!(checked, start(&[]));
    }
    let checked = server.command().arg("--check").output().unwrap();
    assert!(checked.status.success(), "{}", refusal(&checked));
}

#[test]
fn a_data_directory_that_was_there_keeps_its_mode() {
    for (user, kept) in [(User::Root, 0o755), (User::Tester, 0o700)] {
        let mut server = Options::on(Storage::SqliteAndFiles).by(user).start();
        server.stop();
        set_mode(&server.data(), kept);
        server.start();
        assert_eq!(mode(&server.data()), kept, "{user:?}");
        let session = server.session();
        assert_eq!(server.shell(&session, "echo there"), "there");
    }
}

#[test]
fn a_data_directory_that_others_can_write_to_is_refused_and_stays_as_it_is() {
    let mut server = server();
    server.stop();
    let data = server.data();
    let before = mode(&data);
    set_mode(&data, 0o1777);
    let expected = format!(
        "error: others can change what is in the data directory {0}\n\
         hint: choose a directory that is yours with --data, or make this one so: chmod go-w {0}\n",
        data.display()
    );
    assert_eq!(refusal(&server.command().output().unwrap()), expected);
    assert_eq!(mode(&data), 0o1777);
    set_mode(&data, before);
    server.start();
}

#[test]
fn a_data_directory_that_sessions_cannot_get_to_is_refused_and_stays_closed() {
    let mut server = server();
    server.stop();
    for closed in [server.data(), server.base().to_owned()] {
        let before = mode(&closed);
        set_mode(&closed, 0o700);
        let expected = format!(
            "error: user 59999, whom sessions belong to, cannot get through {0}\n\
             hint: choose another directory with --data, or open this one with chmod o+x {0}\n",
            closed.display()
        );
        assert_eq!(refusal(&server.command().output().unwrap()), expected);
        assert_eq!(mode(&closed), 0o700);
        set_mode(&closed, before);
    }
    server.start();
}

#[test]
fn an_interrupt_ends_it_well_and_leaves_nothing() {
    let mut server = server();
    server.session();
    let processes = server.processes();
    server.signal(Signal::INT);
    let status = server.wait();
    assert!(status.success(), "{status}: {}", server.log());
    server.must_be_clean(&processes);
}

#[test]
fn an_interrupt_at_the_terminal_reaches_the_server_alone() {
    let server = server();
    let session = server.session();
    let code = json!({ "language": "shell", "code": "echo here > started; until [ -e go ]; do sleep 0.01; done" });
    server.submit(&session, code);
    server.until_file(&session, "started");
    // A terminal sends it to everybody in the group; so that what runs can be seen through, that is nobody else.
    let group = |pid| getpgid(Some(pid)).unwrap();
    let (own, processes) = (group(server.pid()), server.processes());
    assert!(processes.len() > 3, "{processes:?}");
    for pid in processes {
        assert!(pid == server.pid() || group(pid) != own, "{pid:?}");
    }
    server.upload(&session, "go", b"").expect(200);
}
