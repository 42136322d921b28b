//! Every error message a person can meet at the command line, in one snapshot.
//!
//! What must hold for each: one line that says what is wrong, causes below it, a hint where there is
//! a way out, the right exit status, nothing printed to stdout. Paths of the test itself are
//! filtered out; everything else is exact.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod stage;

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use stage::{Stage, finish};

/// Error messages as they are met, with the command that met them.
struct Album {
    stage: Stage,
    text: String,
}

impl Album {
    fn new() -> Album {
        Album {
            stage: Stage::new(),
            text: String::new(),
        }
    }

    fn title(&mut self, title: &str) {
        let _ = write!(self.text, "\n## {title}\n");
    }

    fn meet(&mut self, arguments: &[&str]) {
        let command = self.stage.command(arguments);
        self.meet_command(arguments, command);
    }

    fn meet_command(&mut self, arguments: &[&str], mut command: Command) {
        let ended = finish(&mut command);
        assert_eq!(ended.out, "", "{arguments:?} printed data");
        assert!(ended.err.contains("error: "), "{arguments:?}: {ended:?}");
        let status = ended.status.code().unwrap();
        let words: Vec<String> = arguments.iter().map(|word| shown(word)).collect();
        let _ = write!(
            self.text,
            "\n$ sandbox {}\n{}exit {status}\n",
            words.join(" "),
            ended.err
        );
    }

    fn finish(self) -> String {
        let place = self.stage.path().to_str().unwrap().to_owned();
        self.text.replace(&place, "/PLACE")
    }
}

/// As one would type it.
fn shown(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:*,".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.escape_debug()),
    }
}

fn assert_album(name: &str, album: Album) {
    insta::assert_snapshot!(name, album.finish());
}

#[test]
fn usage() {
    let mut album = Album::new();
    album.stage.boxed();
    for arguments in [
        &["lst"][..],
        &["frobnicate"],
        &["--frobnicate"],
        &["run"],
        &["run", "box"],
        &["run", "box", "--"],
        &["run", "--frobnicate", "box", "true"],
        &["run", "--memory", "box", "true"],
        &["run", "--memory", "lots", "box", "true"],
        &["run", "--memory", "0", "box", "true"],
        &["run", "--cpus", "-1", "box", "true"],
        &["run", "--cpus", "none-such", "box", "true"],
        &["run", "--pids", "0", "box", "true"],
        &["run", "--size", "1Q", "box", "true"],
        &["run", "--with-ports", "0", "box", "true"],
        &["run", "--with-ports", "80,http", "box", "true"],
        &["run", "--allow-host", "http://example.com", "box", "true"],
        &["run", "--publish", "80:x", "box", "true"],
        &["run", "--env", "novalue", "box", "true"],
        &["run", "--isolation", "none", "box", "true"],
        &["run", "--host-network", "--isolated-network", "box", "true"],
        &["try"],
        &["try", "--keep", "--discard", "true"],
        &["create", "a", "b"],
        &["create", "--backend", "zfs"],
        &["diff"],
        &["diff", "box", "--stat", "--files"],
        &["diff", "box", "--since", "yesteryear"],
        &["diff", "box", "/etc"],
        &["promote"],
        &["promote", "box", "--ours", "--theirs"],
        &["promote", "box", "--resolve", "a.txt"],
        &["promote", "box", "--resolve", "a.txt=mine"],
        &["discard"],
        &["fork", "box"],
        &["fork", "box", "new", "-n", "0"],
        &["rollback", "box"],
        &["sync", "box", "--direction", "sideways"],
        &["history", "-n", "many"],
        &["completions", "tcsh"],
        &["completions"],
    ] {
        album.meet(arguments);
    }
    assert_album("usage", album);
}

#[test]
fn names() {
    let mut album = Album::new();
    album.stage.ok(["create", "risky-refactor"]);
    let long = "a".repeat(65);
    for name in [
        "",
        "../x",
        "a/b",
        "-rf",
        ".hidden",
        "a b",
        "a\x1b[2Jb",
        "é",
        &long,
    ] {
        album.meet(&["create", "--", name]);
    }
    album.meet(&["create", "risky-refactor"]);
    for arguments in [
        &["run", "risky-refacto", "true"][..],
        &["enter", "risky-refacto"],
        &["diff", "nobody"],
        &["promote", "nobody"],
        &["promote", "nobody", "--undo", "--yes"],
        &["discard", "nobody", "-f"],
        &["sync", "nobody"],
        &["fork", "nobody", "new"],
        &["snapshot", "nobody"],
        &["rollback", "nobody", "label"],
        &["pause", "nobody"],
        &["resume", "nobody"],
        &["info", "nobody"],
        &["path", "nobody"],
        &["path", "../../etc"],
    ] {
        album.meet(arguments);
    }
    assert_album("names", album);
}

#[test]
fn sources() {
    let mut album = Album::new();
    let home = album.stage.home().display().to_string();
    album.meet(&["create", "--from", "/no/such/place"]);
    album.meet(&["create", "--from", "a.txt"]);
    album.meet(&["create", "--from", "/"]);
    let mut command = album.stage.command(["create", "--from", &home]);
    command.current_dir("/");
    album.meet_command(&["create", "--from", "$HOME"], command);
    album.stage.boxed();
    album.meet(&["create", "--from", "../root/box"]);
    album.meet(&["create", "--backend", "btrfs"]);
    album.title("a source that vanished");
    fs::rename(album.stage.source(), album.stage.path().join("away")).unwrap();
    for arguments in [
        &["run", "box", "true"][..],
        &["enter", "box"],
        &["diff", "box"],
        &["promote", "box", "--yes"],
        &["sync", "box"],
    ] {
        let mut command = album.stage.command(arguments);
        command.current_dir("/");
        album.meet_command(arguments, command);
    }
    assert_album("sources", album);
}

#[test]
fn surroundings() {
    let mut album = Album::new();
    album.title("no home");
    let mut command = album.stage.command(["list"]);
    command.env_remove("HOME").env_remove("SANDBOX_ROOT");
    album.meet_command(&["list"], command);
    let mut command = album.stage.command(["list"]);
    command.env("HOME", "here").env_remove("SANDBOX_ROOT");
    album.meet_command(&["list"], command);
    album.title("SANDBOX_BACKEND=zfs");
    let mut command = album.stage.command(["create"]);
    command.env("SANDBOX_BACKEND", "zfs");
    album.meet_command(&["create"], command);
    album.title("a root that is a file");
    let mut command = album.stage.command(["list"]);
    command.env("SANDBOX_ROOT", album.stage.source().join("a.txt"));
    album.meet_command(&["list"], command);
    for text in [
        "backened = \"copy\"\n",
        "backend = \"zfs\"\n",
        "backend = \n",
        "stale_days = -1\n",
        "[isolation]\nmemory = \"lots\"\n",
        "[isolation]\ncpus = 0\n",
        "[isolation]\nhide = [\"relative\"]\n",
        "[isolation]\nwith_ports = [99999]\n",
        "[isolated]\n",
    ] {
        album.title(&format!(
            "config.toml: {}",
            text.trim_end().replace('\n', " ")
        ));
        album.stage.config(text);
        album.meet(&["create", "never"]);
    }
    assert_album("surroundings", album);
}

#[test]
fn running() {
    let mut album = Album::new();
    album.stage.boxed();
    for arguments in [
        &["run", "box", "no-such-command", "x"][..],
        &["run", "box", "./a.txt", "x"],
        &["run", "--expose", "/no/such/path", "box", "true"],
        &["path", "box"],
    ] {
        album.meet(arguments);
    }
    album.title("meta.json is damaged");
    fs::write(album.stage.root().join("box/meta.json"), "{").unwrap();
    album.meet(&["run", "box", "true"]);
    album.meet(&["info", "box"]);
    assert_album("running", album);
}

#[test]
fn servers() {
    let mut album = Album::new();
    let id = "sess_0123456789abcdef";
    for arguments in [
        &["session", "make"][..],
        &["session", "get"],
        &["session", "get", "sess_short"],
        &["session", "create"],
        &["session", "create", "python-basic", "--pool", "maybe"],
        &["session", "list", "--status", "asleep"],
        &["exec"],
        &["exec", id],
        &["exec", id, "--frobnicate", "true"],
        &["exec", id, "--language", "perl", "print"],
        &["exec", id, "true", "--event", "{"],
        &["exec", "sess_short", "true"],
        &["execution", "get", "exec_1"],
        &["key", "create", "ci"],
        &["health", "--ready", "--metrics"],
    ] {
        album.meet(arguments);
    }
    let with = |album: &mut Album, arguments: &[&str], variables: &[(&str, &str)]| {
        album.title(
            &variables
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect::<Vec<_>>()
                .join(" "),
        );
        let mut command = album.stage.command(arguments);
        // As root, it would look for the key of the machine's own server.
        command.env("SANDBOX_DATA", "/nowhere");
        command.envs(variables.iter().copied());
        album.meet_command(arguments, command);
    };
    let list = ["session", "list"];
    let nobody = ("SANDBOX_SERVER", "http://127.0.0.1:1");
    let key = ("SANDBOX_API_KEY", "secret");
    with(&mut album, &list, &[nobody]);
    with(&mut album, &list, &[nobody, key]);
    with(&mut album, &["exec", id, "true"], &[nobody, key]);
    with(&mut album, &["health"], &[nobody]);
    with(
        &mut album,
        &list,
        &[key, ("SANDBOX_API_KEY_FILE", "/nowhere")],
    );
    with(&mut album, &list, &[("SANDBOX_API_KEY_FILE", "/nowhere")]);
    with(&mut album, &list, &[("SANDBOX_API_KEY", "two words")]);
    with(
        &mut album,
        &list,
        &[key, ("SANDBOX_SERVER", "127.0.0.1:8000")],
    );
    with(
        &mut album,
        &list,
        &[key, ("SANDBOX_SERVER", "http://ada:hunter2@example.com")],
    );
    with(
        &mut album,
        &list,
        &[key, ("SANDBOX_SERVER", "http://example.com")],
    );
    with(&mut album, &["file", "get", id, "../x"], &[nobody, key]);
    with(
        &mut album,
        &["session", "create", "python-basic", "--env", "NOWHERE"],
        &[nobody, key],
    );
    with(&mut album, &["template", "update", "mine"], &[nobody, key]);
    assert_album("servers", album);
}

#[test]
fn deciding() {
    let mut album = Album::new();
    album.stage.boxed();
    album
        .stage
        .ok(["run", "box", "echo sandbox > a.txt; echo new > new.txt"]);
    album.meet(&["promote", "box"]);
    album.meet(&["promote", "box", "--interactive"]);
    album.meet(&["promote", "box", "--undo", "--yes"]);
    album.meet(&["discard", "box"]);
    album.meet(&["rollback", "box", "never"]);
    album.meet(&["snapshot", "box", "../label"]);
    album.meet(&["fork", "box", "box"]);
    album.title("the source changed, too");
    album.stage.write("a.txt", "source\n");
    album.meet(&["promote", "box", "--yes"]);
    album.meet(&["promote", "box", "--yes", "--merge"]);
    album.title("something runs in it");
    let mut command = album.stage.command(["run", "box", "echo up; sleep 1000"]);
    let mut running = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Read::read_exact(running.stdout.as_mut().unwrap(), &mut [0; 3]).unwrap();
    for arguments in [
        &["promote", "box", "--yes", "--ours"][..],
        &["discard", "box", "--force"],
        &["snapshot", "box"],
        &["fork", "box", "new"],
        &["run", "--isolated-network", "box", "true"],
    ] {
        album.meet(arguments);
    }
    album.stage.ok(["pause", "box", "--stop"]);
    running.wait().unwrap();
    assert_album("deciding", album);
}
