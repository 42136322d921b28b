//! Files into sessions and out of them from the command line.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::Command;

use sandbox_api_tests::{Options, Server, Storage, pipe, rows};
use sandbox_tests::{Running, finish};
use serde_json::{Value, json};

#[test]
fn files_go_in_and_come_out_under_any_name() {
    let server = Server::plain();
    let id = server.session();
    let directory = server.base();
    for name in [
        "plain",
        "with space",
        "percent%41",
        "a+b&c=d;e#f?g",
        "ünïcödé",
        "-rf",
        "upload",
        "...",
    ] {
        let content = format!("content of {name}");
        let local = server.file_beside("local", content.as_bytes());
        let put = server.ask([
            "file",
            "put",
            "--json",
            &id,
            &local,
            "--",
            &format!("in/{name}"),
        ]);
        assert_eq!(
            put.succeeded().json(),
            json!({ "session_id": id, "path": format!("in/{name}"), "size": content.len() })
        );
        let got = server.ask(["file", "get", &id, "--", &format!("/workspace/in/{name}")]);
        got.succeeded();
        assert_eq!(
            fs::read_to_string(directory.join(name)).unwrap(),
            content,
            "{name}"
        );
        fs::remove_file(directory.join(name)).unwrap();
        let got = server
            .ask(["file", "get", &id, &format!("./in/{name}"), "-"])
            .succeeded();
        assert_eq!(got.out(), content);
    }
    // To its own name, into a directory, from a pipe, from a device.
    let own = server.file_beside("own.txt", b"own");
    server.ask(["file", "put", &id, &own]).succeeded();
    server
        .ask(["file", "put", &id, &own, "deep/er/"])
        .succeeded();
    let mut put = Running::start(&mut server.sandbox(["file", "put", &id, "-", "piped"]));
    put.stdin().write_all(b"from a pipe").unwrap();
    put.end().succeeded();
    server
        .ask(["file", "put", &id, "/dev/null", "nothing"])
        .succeeded();
    assert_eq!(
        server.shell(&id, "cat own.txt deep/er/own.txt piped nothing"),
        "ownownfrom a pipe"
    );

    let to = directory.join("to");
    fs::create_dir(&to).unwrap();
    let got = server
        .ask([
            "file",
            "get",
            "--json",
            &id,
            "own.txt",
            to.to_str().unwrap(),
        ])
        .succeeded()
        .json();
    let landed = to.join("own.txt");
    assert_eq!(
        got,
        json!({ "session_id": id, "path": "own.txt", "size": 3, "file": landed.to_str() })
    );
    assert_eq!(fs::read(&landed).unwrap(), b"own");
    for (range, content) in [("0-1", "ow"), ("1-", "wn"), ("-1", "n")] {
        assert_eq!(
            server
                .ask(["file", "get", &id, "own.txt", "-", "--range", range])
                .succeeded()
                .out(),
            content
        );
    }

    let listed = server.ask(["file", "list", &id]).succeeded();
    let names: Vec<String> = rows(&listed)
        .into_iter()
        .map(|row| row[..2].join(" "))
        .collect();
    assert_eq!(
        names,
        [
            "deep directory",
            "in directory",
            "nothing file",
            "own.txt file",
            "piped file"
        ]
    );
    let page = server
        .ask(["file", "list", &id, "in", "--limit", "3", "--json"])
        .succeeded()
        .json();
    let next = page["next_cursor"].as_str().unwrap();
    let rest = server
        .ask(["file", "ls", &id, "in", "--cursor", next, "--json"])
        .succeeded()
        .json();
    let all = server
        .ask([
            "file",
            "list",
            &id,
            "/workspace/in",
            "--limit",
            "3",
            "--all",
            "--json",
        ])
        .succeeded()
        .json();
    let count = |page: &Value| page["files"].as_array().unwrap().len();
    assert_eq!((count(&page), count(&rest), count(&all)), (3, 5, 8));
    assert_eq!(
        (&all["path"], &all["next_cursor"]),
        (&json!("in"), &Value::Null)
    );

    let tar = to.join("all.tar");
    server
        .ask(["file", "archive", &id, tar.to_str().unwrap()])
        .succeeded();
    let members = |archive: &std::path::Path| {
        let mut tar = std::process::Command::new("tar");
        finish(tar.arg("-tf").arg(archive))
            .succeeded()
            .out()
            .lines()
            .count()
    };
    assert_eq!(members(&tar), 15);
    let piped = server
        .ask(["file", "archive", &id, "--path", "deep"])
        .succeeded();
    fs::write(&tar, &piped.stdout).unwrap();
    assert_eq!(members(&tar), 2);

    let removed = server
        .ask(["file", "remove", &id, "in", "piped", "--json"])
        .succeeded();
    assert_eq!(removed.out().lines().count(), 2, "{removed}");
    server.ask(["file", "rm", &id, "piped"]).failed(2);
    assert_eq!(server.shell(&id, "ls"), "deep\nnothing\nown.txt");
}

#[test]
fn files_that_cannot_be_moved_leave_nothing_behind() {
    let server = Server::plain();
    let id = server.session();
    let before = || fs::read_dir(server.base()).unwrap().count();
    let own = server.file_beside("own.txt", b"own");
    fs::create_dir(server.base().join("directory")).unwrap();
    let count = before();
    for (status, arguments) in [
        (2, &["file", "get", &id, "missing"][..]),
        (2, &["file", "get", "sess_0000000000000000", "missing"]),
        (1, &["file", "get", &id, "../outside"]),
        (1, &["file", "get", &id, "/etc/passwd"]),
        (1, &["file", "get", &id, "a/"]),
        (1, &["file", "get", &id, "missing", "/nowhere/at/all"]),
        (1, &["file", "get", &id, "missing", "-", "--json"]),
        (1, &["file", "put", &id, "missing"]),
        (1, &["file", "put", &id, "directory"]),
        (1, &["file", "put", &id, "-"]),
        (1, &["file", "put", &id, &own, "../outside"]),
        (1, &["file", "put", &id, &own, "/etc/passwd"]),
        (2, &["file", "put", "sess_0000000000000000", &own]),
        (1, &["file", "remove", &id, "."]),
        (2, &["file", "list", &id, "missing"]),
        (2, &["file", "archive", &id, "--path", "missing"]),
    ] {
        let failed = server.ask(arguments).failed(status);
        assert_eq!(failed.out(), "", "{arguments:?}");
        assert_eq!(before(), count, "{arguments:?}");
    }
    // What is inside a session is not obeyed by a terminal, nor by a script.
    server.shell(&id, r"touch $'evil\e]0;owned\a\nname'");
    let listed = server.ask(["file", "list", &id]).succeeded();
    assert!(!listed.out().contains('\x1b'), "{listed}");
    assert_eq!(listed.out().lines().count(), 2, "{listed}");
}

#[test]
fn the_next_page_can_be_pasted_whatever_code_called_its_files() {
    let server = Server::plain();
    let id = server.session();
    server.shell(&id, r"touch -- -rf $'evil\e]0;owned\a; reboot' zz");
    let mut names = Vec::new();
    let mut cursor = None;
    for _ in 0..2 {
        let page = ["file", "list", &id, "--limit", "1"].map(str::to_owned);
        let listed = server.ask(page.into_iter().chain(cursor)).succeeded();
        names.extend(rows(&listed).into_iter().map(|row| row[0].clone()));
        let said = listed.err();
        assert!(!said.contains(['\x1b', '\x07']), "{said:?}");
        let (_, rest) = said.split_once("the rest, ").unwrap();
        let (word, _) = rest.split_once(" the next page").unwrap();
        let mut bash = Command::new("bash");
        let pasted = finish(bash.args(["-c", &format!("printf %s {word}")]));
        cursor = Some(pasted.succeeded().out());
    }
    let last = server.ask(["file", "list", &id]).succeeded();
    let all: Vec<String> = rows(&last).into_iter().map(|row| row[0].clone()).collect();
    assert_eq!(names, all[..2]);
}

/// What a process has for itself in memory, in bytes.
fn memory(running: &Running) -> u64 {
    let status = format!("/proc/{}/status", running.pid().as_raw_nonzero());
    let status = fs::read_to_string(status).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("RssAnon:"))
        .unwrap();
    let kibibytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kibibytes << 10
}

/// Bytes that show when they are not where they belong.
fn pattern(length: usize) -> Vec<u8> {
    (0..length)
        .map(|place| (place ^ (place >> 8) ^ (place >> 16)) as u8)
        .collect()
}

fn a_large_file_goes_through(storage: Storage) {
    const MOST_MEMORY: u64 = 16 << 20;
    let server = Options::on(storage).start();
    let id = server.session();
    let content = pattern(30 << 20);

    // All of it is sent, but its end is not told yet.
    let mut put = Running::start(&mut server.sandbox(["file", "put", &id, "-", "large"]));
    let mut stdin = put.stdin();
    stdin.write_all(&content).unwrap();
    let used = memory(&put);
    assert!(used < MOST_MEMORY, "{used} bytes");
    drop(stdin);
    put.end().succeeded();
    let local = server.file_beside("local", &content);
    server
        .ask(["file", "put", &id, &local, "again"])
        .succeeded();
    assert_eq!(
        server.shell(&id, "cmp large again && wc -c < large"),
        content.len().to_string()
    );

    assert_eq!(
        server.get(&format!("/sessions/{id}/files/large")).status,
        307
    );
    server.ask(["file", "get", &id, "large"]).succeeded();
    assert!(fs::read(server.base().join("large")).unwrap() == content);
    let end = server
        .ask(["file", "get", &id, "large", "-", "--range", "-5"])
        .succeeded();
    assert_eq!(end.stdout, content[content.len() - 5..]);

    // Read slowly, it is not fetched faster.
    let mut get = server.sandbox(["file", "get", &id, "large", "-"]);
    let (mut reader, writer) = pipe();
    let running = Running::start_into(&mut get, writer);
    drop(get);
    let mut got = vec![0; content.len() - (1 << 20)];
    reader.read_exact(&mut got).unwrap();
    let used = memory(&running);
    assert!(used < MOST_MEMORY, "{used} bytes");
    reader.read_to_end(&mut got).unwrap();
    running.end().succeeded();
    assert!(got == content);
}

#[test]
fn a_large_file_goes_through_in_little_memory() {
    a_large_file_goes_through(Storage::SqliteAndFiles);
}

#[test]
fn a_large_file_comes_from_a_bucket() {
    a_large_file_goes_through(Storage::PostgresAndS3);
}
