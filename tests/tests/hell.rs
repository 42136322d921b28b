//! Names and paths from hell: a one-line cause, a hint, the right exit status, nothing changed.
#![allow(clippy::unwrap_used, reason = "a panic is a test's verdict")]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use sandbox_tests::{BOX, Fixture, Outcome, Snapshot, User, as_both, finish};

const NAMES: &[&str] = &[
    "../escape",
    "a/b",
    "/etc",
    "..",
    ".",
    "",
    "-rf",
    "--help-me",
    ".hidden",
    "a b",
    "a\nb",
    "a\u{1b}[31m",
    "café",
    "a\u{202e}b",
    "a*",
    "$(touch 0wned)",
    "`id`",
    "a;b",
    "a:b",
    "~",
    "con\\x",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];

fn told_plainly(outcome: &Outcome) {
    let err = outcome.err();
    assert!(err.contains("error: "), "{outcome}");
    assert!(
        !err.contains("panicked") && !err.contains('\u{1b}'),
        "{outcome}"
    );
    assert!(err.lines().count() <= 8, "an essay: {outcome}");
}

as_both! {
    fn bad_names_are_refused_by_every_command(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        let before = Snapshot::of(&fixture.source());
        for name in NAMES {
            for arguments in [
                &["create", "--", name][..], &["fork", "--", BOX, name], &["run", "--", name, "true", "x"],
                &["diff", "--", name], &["promote", "--yes", "--", name], &["discard", "-f", "--", name],
                &["info", "--", name], &["path", "--", name], &["snapshot", "--", name], &["pause", "--", name],
            ] {
                let outcome = fixture.sandbox(arguments);
                assert!([1, 2].contains(&outcome.code()), "{arguments:?}: {outcome}");
                told_plainly(&outcome);
            }
            let outcome = fixture.sandbox(["snapshot", "--", BOX, name]);
            if !["aaaa", "a:b", "con\\x"].iter().any(|ok| name.starts_with(ok)) || name.is_empty() {
                assert_eq!(outcome.code(), 1, "a label {name:?}: {outcome}");
            }
        }
        Snapshot::of(&fixture.source()).must_equal(&before, "a bad name touched the source");
        let names: Vec<_> = fs::read_dir(fixture.base()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names.len(), 4, "something was made beside the root: {names:?}");
        assert!(fixture.root().join(BOX).is_dir());
    }

    fn unknown_sandboxes_are_exit_2_with_the_nearest_name(user) {
        let fixture = Fixture::new(user);
        fixture.ok(["create", "risky-refactor"]);
        for arguments in [
            &["run", "risky-refacto", "true"][..], &["diff", "risky-refacto"], &["promote", "risky-refacto"],
            &["discard", "risky-refacto", "-f"], &["info", "risky-refacto"], &["enter", "risky-refacto"],
            &["fork", "risky-refacto", "x"], &["snapshot", "risky-refacto"], &["path", "risky-refacto"],
            &["pause", "risky-refacto"], &["resume", "risky-refacto"], &["sync", "risky-refacto"],
            &["rollback", "risky-refacto", "x", "--yes"],
        ] {
            let outcome = fixture.sandbox(arguments).failed(2);
            assert!(outcome.err().contains("risky-refactor"), "{arguments:?}: {outcome}");
        }
    }

    fn sources_that_are_none_are_exit_4(user) {
        let fixture = Fixture::new(user);
        let file = fixture.write("host/file", "a file");
        for source in ["/no/such/place", file.to_str().unwrap(), "/dev/null", ""] {
            let outcome = fixture.sandbox(["create", "never", "--from", source]);
            assert!([1, 4].contains(&outcome.code()), "{source:?}: {outcome}");
            told_plainly(&outcome);
        }
        fixture.sandbox(["create", "never", "--from", "/no/such/place"]).failed(4);
        assert!(!fixture.root().join("never").exists());
    }

    fn sources_of_every_name_work(user) {
        for name in [
            OsStr::new(" leading and trailing "), OsStr::new("-rf"), OsStr::new("line\nbreak"),
            OsStr::new("comma,colon:back\\slash"), OsStr::new("quote'\"$(id)`id`"), OsStr::from_bytes(b"\xff\xfe"),
            OsStr::new("esc\u{1b}]0;0wned\u{7}"), OsStr::new("lowerdir=x,upperdir=y"), OsStr::new("%s%n*?[a]"),
        ] {
            for backend in ["overlay", "copy"] {
                let fixture = Fixture::new(user);
                let source = fixture.base().join(name);
                fs::create_dir(&source).unwrap();
                user.own(&source);
                let file = fixture.write(source.join("file"), "original\n");
                let mut create = fixture.command(["create", BOX, "--backend", backend]);
                let outcome = finish(create.current_dir(&source)).succeeded();
                assert!(!outcome.err().contains('\u{1b}'), "{outcome}");
                let mut run = fixture.command(["run", BOX, "sh", "-c", "cat file; echo changed > file; pwd"]);
                let seen = finish(run.current_dir(&source)).succeeded();
                assert!(seen.out().starts_with("original\n"), "{name:?}: {seen}");
                for arguments in [&["list"][..], &["info", BOX], &["diff", BOX], &["history"]] {
                    let outcome = fixture.ok(arguments);
                    assert!(!outcome.out().contains('\u{1b}'), "{arguments:?}: {outcome}");
                }
                let json = fixture.ok(["list", "--json"]).json();
                assert_eq!(json.as_array().map(Vec::len), Some(1));
                fixture.ok(["promote", BOX, "--yes"]);
                assert_eq!(fs::read_to_string(&file).unwrap(), "changed\n", "{name:?}");
                fixture.ok(["promote", BOX, "--undo", "--yes"]);
                assert_eq!(fs::read_to_string(&file).unwrap(), "original\n", "{name:?}");
                fixture.ok(["discard", BOX, "-f"]);
            }
        }
    }

    fn files_of_every_name_are_promoted_and_taken_back(user) {
        let names: Vec<OsString> = [
            b"-".as_slice(), b"--", b"-rf", b" ", b"a b ", b"\n", b"a\nb", b"\t", b"\xff", b"\xc3\x28", b"\x01\x02",
            b"\x1b[31m", b"\\", b"a\\n", b"\"", b"'", b"*", b"?", b"[a]", b"$HOME", b"~", b"#", b"...", b".x.swp",
            "é".as_bytes(), "e\u{301}".as_bytes(), "\u{202e}rtl".as_bytes(), b"con", b"{}", b"a:b", b"a,b", b"%00",
        ]
        .iter()
        .map(|bytes| OsStr::from_bytes(bytes).to_owned())
        .chain([OsString::from("n".repeat(255))])
        .collect();
        for backend in ["overlay", "copy"] {
            let fixture = Fixture::new(user);
            fixture.create(&["--backend", backend]);
            let before = Snapshot::of(&fixture.source()).without_directory_times();
            let script = fixture.base().join("make.py");
            let list: Vec<String> =
                names.iter().map(|name| format!("bytes({:?})", name.as_bytes())).collect();
            fs::write(&script, format!(
                "import os\nfor n in [{}]:\n  open(n, 'w').write('x\\n'); os.mkdir(b'in-' + n[:200]); open(b'in-' + n[:200] + b'/' + n, 'w').write('y\\n')\n",
                list.join(", ")
            )).unwrap();
            fixture.ok(["run", BOX, "python3", script.to_str().unwrap()]);
            let diff = fixture.ok(["diff", BOX]);
            let patch = fixture.base().join("patch");
            fs::write(&patch, &diff.stdout).unwrap();
            fixture.shell("mkdir ../home/plain && cd ../home/plain && git apply ../../patch").succeeded();
            for name in &names {
                let applied = fixture.home().join("plain").join(name);
                assert_eq!(fs::read_to_string(&applied).unwrap(), "x\n", "git apply lost {name:?}");
            }
            fixture.ok(["promote", BOX, "--yes"]);
            for name in &names {
                assert_eq!(fs::read_to_string(fixture.source().join(name)).unwrap(), "x\n", "{name:?}");
            }
            assert!(fixture.changes().is_empty());
            fixture.ok(["promote", BOX, "--undo", "--yes"]);
            Snapshot::of(&fixture.source()).without_directory_times().must_equal(&before, "undo");
        }
    }

    fn a_root_that_cannot_be_used_is_told(user) {
        let fixture = Fixture::new(user);
        let file = fixture.write("host/file", "a file");
        let mut roots = vec![file.join("below"), file];
        if user == User::Tester {
            roots.push("/root/never".into());
            roots.push("/proc/never".into());
        }
        for root in roots {
            for arguments in [&["create", "never"][..], &["run", "never", "true"], &["list"]] {
                let outcome = finish(fixture.command(arguments).env("SANDBOX_ROOT", &root));
                assert_ne!(outcome.code(), 0, "{arguments:?} with {}: {outcome}", root.display());
                told_plainly(&outcome);
            }
        }
    }

    fn wrong_usage_is_exit_1_with_a_hint(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        for arguments in [
            &["frobnicate"][..], &["create", "a", "b"], &["run"], &["run", BOX], &["run", BOX, "--"], &["diff"],
            &["create", "--backend", "zfs"], &["create", "x", "--publish", "80"], &["promote", BOX, "--yes", "--interactive"],
            &["run", "--with-ports", "0", BOX, "true"], &["run", "--allow-host", "http://x", BOX, "true"],
            &["run", "--env", "novalue", BOX, "true"], &["completions", "powershell"], &["diff", BOX, "--since", "yesteryear"],
            &["fork", BOX], &["fork", BOX, BOX],
        ] {
            let outcome = fixture.sandbox(arguments);
            if arguments.contains(&"--publish") && outcome.code() == 0 {
                continue; // a single port is both ends
            }
            assert_eq!(outcome.code(), 1, "{arguments:?}: {outcome}");
            assert!(outcome.err().contains("error: "), "{arguments:?}: {outcome}");
            assert!(!outcome.err().contains("panicked"), "{arguments:?}: {outcome}");
        }
    }

    /// Records that were damaged, or made by someone else's hand, are errors and not crashes.
    fn damaged_records_are_told_and_touch_nothing(user) {
        let fixture = Fixture::new(user);
        fixture.write("source/file", "original\n");
        fixture.create(&[]);
        fixture.run("echo changed > file").succeeded();
        let meta = fixture.root().join(BOX).join("meta.json");
        let whole = fs::read(&meta).unwrap();
        for damage in [&b""[..], b"{", b"null", b"[]", b"\xff\xfe", &whole[..whole.len() / 2]] {
            fs::write(&meta, damage).unwrap();
            for arguments in [&["run", BOX, "true"][..], &["diff", BOX], &["promote", BOX, "--yes"], &["info", BOX]] {
                let outcome = fixture.sandbox(arguments);
                assert!((1..=6).contains(&outcome.code()), "{arguments:?}: {outcome}");
                told_plainly(&outcome);
            }
            let listed = fixture.sandbox(["list"]);
            assert!(!listed.err().contains("panicked"), "{listed}");
        }
        fs::write(&meta, whole).unwrap();
        fixture.ok(["diff", BOX]);
        assert_eq!(fs::read_to_string(fixture.source().join("file")).unwrap(), "original\n");
    }

    fn a_closed_pipe_is_no_error(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        fixture.run("for i in $(seq 2000); do echo $i > f$i; done").succeeded();
        let binary = fixture.binary();
        let script = format!("set -o pipefail; {} diff {BOX} | head -1", binary.display());
        let outcome = finish(fixture.outside("bash").args(["-c", &script])).succeeded();
        assert_eq!(outcome.err(), "", "{outcome}");
    }
}
