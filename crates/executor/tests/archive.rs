//! Directories as archives, unpacked by the system's own tar.
#![allow(clippy::unwrap_used)]

mod session;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;

use sandbox_executor::protocol::{Answer, Ask, Question, Refusal, RefusalKind, Reply};
use sandbox_executor::{Happening, Link, Outcome, Request};
use sandbox_model::execution::Language::{Python, Shell};
use session::{on_a_line, request};

/// The answer to what was asked under `number`, whatever else is answered.
async fn answer(link: &Link, number: u64) -> Result<(Answer, Option<OwnedFd>), Refusal> {
    loop {
        let (reply, mut descriptors) = link.receive::<Reply>().await.unwrap().unwrap();
        if reply.number == number {
            return reply.answer.map(|answer| (answer, descriptors.pop()));
        }
    }
}

async fn ask(link: &Link, number: u64, ask: Ask) -> Result<(Answer, Option<OwnedFd>), Refusal> {
    link.send(&Question { number, ask }, &[]).await.unwrap();
    answer(link, number).await
}

async fn outcome(link: &Link, number: u64) -> Outcome {
    match answer(link, number).await.unwrap().0 {
        Answer::Happening(Happening::Outcome(outcome)) => *outcome,
        other => panic!("{other:?}"),
    }
}

async fn run(link: &Link, request: Request) -> String {
    ask(link, 1, Ask::Execute(request)).await.unwrap();
    let outcome = outcome(link, 1).await;
    assert_eq!(outcome.result.exit_code, 0, "{outcome:?}");
    outcome.result.stdout
}

async fn archive(link: &Link, path: &str) -> File {
    match ask(link, 2, Ask::Archive(path.into())).await.unwrap() {
        (Answer::Archive, Some(from)) => from.into(),
        other => panic!("{other:?}"),
    }
}

/// Unpacks into `directory`: whether tar had nothing to complain of, and what it said.
fn unpack(from: File, directory: &Path) -> (bool, String) {
    let tar = Command::new("tar")
        .args(["--extract", "--verbose", "--preserve-permissions"])
        .current_dir(directory)
        .stdin(from)
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    let said = [tar.stdout, tar.stderr].concat();
    (
        tar.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

/// Prints everything below the working directory, in words that are the same wherever it is.
const DESCRIBE: &str = "find . -mindepth 1 -printf '%y %m %P %l\\n' | LC_ALL=C sort; \
                        find . -type f -exec sha256sum {} + | LC_ALL=C sort";

#[test]
fn what_is_unpacked_is_what_was_there() {
    let make = "import os, socket\nos.umask(0o22)\nos.makedirs('tree/empty')\nos.makedirs('tree/' + 'd' * 90 + '/' + 'e' * 90)\n\
                long = 'tree/' + 'd' * 90 + '/' + 'e' * 90\nopen(long + '/' + 'f' * 200, 'w').write('long')\n\
                os.symlink('x' * 300, 'tree/long-link')\nos.symlink('/etc/passwd', 'tree/link')\n\
                open('tree/.hidden', 'w').write('h')\nopen('tree/new\\nline', 'w').write('n')\n\
                open(b'tree/\\xff\\xfe', 'w').write('bytes')\nopen(b'tree/' + b'\\xff' * 150, 'w').write('b')\n\
                open('tree/exactly', 'wb').write(os.urandom(1024))\nopen('tree/large', 'wb').write(os.urandom(3 << 20))\n\
                open('tree/run', 'w').write('#!/bin/sh')\nos.chmod('tree/run', 0o751)\nopen('tree/none', 'w')\n\
                os.mkfifo('tree/pipe')\nsocket.socket(socket.AF_UNIX).bind('tree/socket')";
    on_a_line(async |link| {
        run(link, request(Python, make)).await;
        for (path, down) in [("tree", "."), ("", "tree")] {
            let directory = tempfile::tempdir().unwrap();
            let (complete, said) = unpack(archive(link, path).await, directory.path());
            assert!(complete, "{said}");
            let unpacked = Command::new("bash")
                .args(["-c", DESCRIBE])
                .current_dir(directory.path().join(down))
                .output()
                .unwrap();
            let unpacked = String::from_utf8_lossy(&unpacked.stdout).into_owned();
            let there = format!("cd tree; rm -f pipe socket; {DESCRIBE}");
            assert_eq!(unpacked, run(link, request(Shell, &there)).await);
            assert!(unpacked.lines().count() > 20);
        }
    });
}

#[test]
fn only_directories_inside_have_archives() {
    on_a_line(async |link| {
        run(link, request(Shell, "echo > file; ln -s /usr out")).await;
        for path in ["file", "out", "..", "/usr", "missing"] {
            let refused = ask(link, 2, Ask::Archive(path.into())).await.unwrap_err();
            assert_eq!(refused.kind, RefusalKind::NotFound, "{path}");
        }
        run(link, request(Shell, "mkdir empty")).await;
        let directory = tempfile::tempdir().unwrap();
        let unpacked = unpack(archive(link, "empty").await, directory.path());
        assert_eq!(unpacked, (true, String::new()));
    });
}

#[test]
fn one_that_nobody_reads_holds_nobody_up() {
    on_a_line(async |link| {
        run(link, request(Shell, "head -c 20M /dev/urandom > large")).await;
        let mut unread: Vec<File> = Vec::new();
        for _ in 0..4 {
            unread.push(archive(link, "").await);
        }
        let refused = ask(link, 2, Ask::Archive("".into())).await.unwrap_err();
        assert_eq!(refused.kind, RefusalKind::Busy);
        assert_eq!(run(link, request(Shell, "echo on")).await, "on\n");
        // Who reads it later gets all of it.
        let directory = tempfile::tempdir().unwrap();
        let (complete, said) = unpack(unread.remove(0), directory.path());
        assert!(complete, "{said}");
        let size = directory.path().join("large").metadata().unwrap().len();
        assert_eq!(size, 20 << 20);
        // Who does not makes room for others.
        drop(unread);
        let mut tries = 0;
        while ask(link, 2, Ask::Archive("".into())).await.is_err() {
            tries += 1;
            assert!(tries < 1_000);
        }
    });
}

#[test]
fn a_tree_that_changes_meanwhile_leads_nowhere_and_breaks_nothing() {
    let changes = "import os\nos.makedirs('tree/sub/usr')\nopen('tree/sub/usr/inside', 'w').write('x' * 100_000)\n\
                   open('ready', 'w')\nwhile not os.path.exists('stop'):\n    os.rename('tree/sub', 'aside')\n    \
                   os.symlink('/', 'tree/sub')\n    os.unlink('tree/sub')\n    os.rename('aside', 'tree/sub')\n    \
                   os.truncate('tree/sub/usr/inside', 10)\n    os.truncate('tree/sub/usr/inside', 200_000)";
    on_a_line(async |link| {
        let request = Request {
            timeout_seconds: 300,
            ..request(Python, changes)
        };
        ask(link, 1, Ask::Execute(request)).await.unwrap();
        while ask(link, 2, Ask::Read("ready".into())).await.is_err() {}
        for _ in 0..100 {
            let directory = tempfile::tempdir().unwrap();
            let (complete, said) = unpack(archive(link, "tree").await, directory.path());
            assert!(complete, "{said}");
            for line in said.lines() {
                let expected = ["sub/", "sub", "sub/usr/", "sub/usr/inside"];
                assert!(expected.contains(&line), "{said}");
            }
        }
        match ask(link, 2, Ask::Write("stop".into())).await.unwrap().0 {
            Answer::Upload(number) => ask(link, 2, Ask::Commit(number)).await.unwrap(),
            other => panic!("{other:?}"),
        };
        // On a busy machine it lived long enough to say so meanwhile.
        let ended = loop {
            match answer(link, 1).await.unwrap().0 {
                Answer::Happening(Happening::Outcome(outcome)) => break outcome,
                Answer::Happening(Happening::Heartbeat { .. }) => {}
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(ended.result.exit_code, 0, "{ended:?}");
    });
}

#[test]
fn one_that_is_not_complete_can_be_told() {
    on_a_line(async |link| {
        let deep = "import os\nfor _ in range(200):\n    os.mkdir('d')\n    os.chdir('d')";
        run(link, request(Python, deep)).await;
        let directory = tempfile::tempdir().unwrap();
        let (complete, said) = unpack(archive(link, "").await, directory.path());
        let last = said.lines().rev().take(3).collect::<String>();
        assert!(!complete && last.contains("Unexpected EOF"), "{last}");
    });
}
