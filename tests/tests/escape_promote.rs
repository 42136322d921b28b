//! What a hostile sandbox leaves for diff, promote and discard to trip over: links, set-user-id
//! bits, devices, bombs, names that speak to terminals.
#![allow(clippy::unwrap_used, reason = "a panic is a test's verdict")]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::time::Instant;

use sandbox_tests::{BOX, Fixture, Running, SECRET, Snapshot, User, as_both};

/// Each backend that works on any filesystem.
const BACKENDS: [&str; 2] = ["overlay", "copy"];

fn each_backend(user: User, test: impl Fn(&Fixture)) {
    for backend in BACKENDS {
        let fixture = Fixture::new(user);
        fixture.write("source/dir/file", "original\n");
        fixture.write("source/tool", "#!/bin/sh\n");
        fixture.write("host/file", SECRET);
        fixture.create(&["--backend", backend]);
        test(&fixture);
    }
}

fn promote(fixture: &Fixture) -> sandbox_tests::Outcome {
    fixture.sandbox(["promote", BOX, "--yes"])
}

as_both! {
    fn set_user_id_bits_do_not_survive_a_promote(user) {
        each_backend(user, |fixture| {
            fixture.run("cp /bin/true rootshell && chmod 6755 rootshell tool; mkdir d; chmod 2755 d").succeeded();
            let preview = fixture.sandbox(["promote", BOX, "--dry-run"]);
            promote(fixture).succeeded();
            for name in ["rootshell", "tool"] {
                let mode = fs::metadata(fixture.source().join(name)).unwrap().permissions().mode();
                assert_eq!(mode & 0o6000, 0, "{name} is {mode:o}; {preview}");
                assert_eq!(mode & 0o111, 0o111, "{name} stays executable: {mode:o}");
            }
        });
    }

    fn file_capabilities_do_not_survive_a_promote(user) {
        // cap_setuid+ep, revision 2. Without CAP_SETFCAP the kernel refuses; if it ever does not,
        // promote has to strip it.
        each_backend(user, |fixture| {
            let capability = "0100000280000000000000000000000000000000";
            fixture.run("cp /bin/true able").succeeded();
            let able = fixture.source().join("able");
            let attempt = ["set-attribute", able.to_str().unwrap(), "security.capability", capability];
            fixture.inside(&attempt).must_fail();
            // As if it had: put it there with the host's hands.
            for layer in ["upper", "work"] {
                let planted = fixture.root().join(BOX).join(layer).join("able");
                if planted.is_file() {
                    let setting = ["set-attribute", planted.to_str().unwrap(), "security.capability", capability];
                    let mut command = std::process::Command::new(sandbox_tests::attacker_binary());
                    sandbox_tests::finish(command.args(setting)).succeeded();
                }
            }
            let outcome = promote(fixture);
            let mut value = [0; 64];
            let left = rustix::fs::lgetxattr(&able, "security.capability", &mut value[..]);
            assert!(left.is_err(), "a capability was promoted: {outcome}");
        });
    }

    /// A link in the sandbox is promoted as a link; later contents replace it, not its target.
    fn promote_never_writes_through_a_link(user) {
        each_backend(user, |fixture| {
            let target = fixture.host().join("file");
            fixture.run(&format!("rm tool; ln -s {} tool", target.display())).succeeded();
            promote(fixture).succeeded();
            assert_eq!(fs::read_link(fixture.source().join("tool")).unwrap(), target);
            fixture.run("rm tool; echo harmless > tool").succeeded();
            promote(fixture).succeeded();
            assert_eq!(fs::read_to_string(&target).unwrap(), SECRET, "written through a link");
            assert_eq!(fs::read_to_string(fixture.source().join("tool")).unwrap(), "harmless\n");
        });
    }

    /// The source's directory became a link out of it: nothing may be read or written through it.
    fn a_directory_swapped_for_a_link_is_a_conflict(user) {
        each_backend(user, |fixture| {
            fixture.run("echo changed > dir/file; echo new > dir/new").succeeded();
            fs::rename(fixture.source().join("dir"), fixture.source().join("moved")).unwrap();
            symlink(fixture.host(), fixture.source().join("dir")).unwrap();
            let before = Snapshot::of(fixture.base()).without("root");
            let diff = fixture.sandbox(["diff", BOX]);
            assert!(!diff.out().contains(SECRET), "diff read through the link: {diff}");
            promote(fixture).failed(5);
            let after = Snapshot::of(fixture.base()).without("root");
            after.must_equal(&before, "promote touched something");
        });
    }

    /// The same, but the swap happens while promote looks: CVE-2021-30465's race, our way round.
    fn a_directory_that_flips_to_a_link_never_leads_promote_out(user) {
        let fixture = Fixture::new(user);
        fixture.write("source/dir/file", "original\n");
        fixture.write("host/file", SECRET);
        let host = Snapshot::of(&fixture.host());
        let (real, link) = (fixture.source().join("dir"), fixture.base().join("host-link"));
        symlink(fixture.host(), &link).unwrap();
        for round in 0..6 {
            fixture.create(&["--backend", BACKENDS[round % 2]]);
            fixture.run("echo changed > dir/file; echo new > dir/new; mkdir dir/sub").succeeded();
            let mut command = fixture.outside(fixture.attacker());
            let mut flipping =
                Running::start(command.arg("flip").arg(&real).arg(&link));
            flipping.wait_for("flipping");
            for _ in 0..4 {
                let diff = fixture.sandbox(["diff", BOX]);
                assert!(!diff.out().contains(SECRET), "diff read through the link: {diff}");
                let _ = promote(&fixture);
            }
            drop(flipping);
            Snapshot::of(&fixture.host()).must_equal(&host, "promote was led out of the source");
            fixture.ok(["discard", BOX, "-f"]);
            // The names may have ended either way round.
            if fs::symlink_metadata(&real).unwrap().is_symlink() {
                rustix::fs::renameat_with(
                    rustix::fs::CWD, &real, rustix::fs::CWD, &link, rustix::fs::RenameFlags::EXCHANGE,
                ).unwrap();
            }
            let _ = fs::remove_dir_all(&real);
            fixture.write("source/dir/file", "original\n");
        }
    }

    fn discard_follows_no_link(user) {
        each_backend(user, |fixture| {
            let before = Snapshot::of(&fixture.host());
            fixture
                .run(&format!("ln -s {host} out; mkdir -p a/b; ln -s {host} a/b/out; ln -s / root; \
                               ln -s {host} ~/out", host = fixture.host().display()))
                .succeeded();
            fixture.ok(["discard", BOX, "-f"]);
            Snapshot::of(&fixture.host()).must_equal(&before, "discard deleted outside");
            assert!(!fixture.root().join(BOX).exists());
        });
    }

    fn fifos_and_sockets_neither_block_nor_break(user) {
        each_backend(user, |fixture| {
            fixture.run("mkfifo pipe; rm tool; mkfifo tool; echo x > plain").succeeded();
            let script = "import socket; socket.socket(socket.AF_UNIX).bind('sock')";
            fixture.ok(["run", BOX, "python3", "-c", script]);
            let diff = fixture.ok(["diff", BOX]);
            assert!(diff.out().contains("plain"), "{diff}");
            let listed = fixture.changes();
            assert!(listed.contains_key("pipe"), "{listed:?}");
            let outcome = promote(fixture);
            assert!([0, 1, 3].contains(&outcome.code()), "{outcome}");
            if outcome.code() == 0 {
                assert_eq!(fs::read_to_string(fixture.source().join("plain")).unwrap(), "x\n");
            }
        });
    }

    /// A character device 0:0 is a whiteout to an overlay, and anyone may make one.
    fn forged_whiteouts_delete_nothing(user) {
        each_backend(user, |fixture| {
            for name in ["dir/file", "tool"] {
                fixture.run(&format!("rm -f {name}")).succeeded();
                let forged = fixture.source().join(name);
                let _ = fixture.inside(&["make-node", forged.to_str().unwrap(), "0", "0"]);
            }
            fixture.run("ls -la . dir; mkdir fresh; true").succeeded();
            let forged = fixture.source().join("fresh/node");
            let _ = fixture.inside(&["make-node", forged.to_str().unwrap(), "0", "0"]);
            fixture.ok(["diff", BOX]);
            let outcome = promote(fixture);
            assert!([0, 1, 3].contains(&outcome.code()), "{outcome}");
            let made = fixture.source().join("fresh/node");
            if let Ok(found) = fs::symlink_metadata(made) {
                panic!("a device was promoted: {:o}", found.mode());
            }
        });
    }

    /// Marks that mean something to an overlay must not be forged by a process in one.
    fn forged_overlay_attributes_mean_nothing(user) {
        each_backend(user, |fixture| {
            let dir = fixture.source().join("dir");
            for (name, value) in [
                ("user.overlay.opaque", "79"),
                ("user.overlay.redirect", "2f2e2e2f2e2e2f657463"),
                ("user.overlay.metacopy", "00"),
                ("trusted.overlay.opaque", "79"),
                ("trusted.overlay.redirect", "2f2e2e2f2e2e2f657463"),
            ] {
                let _ = fixture.inside(&["set-attribute", dir.to_str().unwrap(), name, value]);
            }
            let seen = fixture.run("cat dir/file; ls dir").succeeded();
            assert_eq!(seen.out(), "original\nfile\n", "{seen}");
            fixture.ok(["diff", BOX]);
            promote(fixture);
            assert_eq!(fs::read_to_string(dir.join("file")).unwrap(), "original\n");
        });
    }

    fn a_sparse_bomb_costs_neither_time_nor_space(user) {
        each_backend(user, |fixture| {
            fixture.run("truncate -s 2T bomb; truncate -s 64G tool").succeeded();
            let began = Instant::now();
            fixture.ok(["diff", BOX]);
            fixture.ok(["diff", BOX, "--stat"]);
            assert!(began.elapsed().as_secs() < 20, "diff read the holes: {:?}", began.elapsed());
            let outcome = promote(fixture);
            assert!([0, 6].contains(&outcome.code()), "{outcome}");
            assert!(began.elapsed().as_secs() < 40, "promote read the holes: {:?}", began.elapsed());
            if outcome.code() == 0 {
                let bomb = fs::metadata(fixture.source().join("bomb")).unwrap();
                assert_eq!(bomb.len(), 2 << 40);
                assert!(bomb.blocks() < 2048, "the holes were filled: {} blocks", bomb.blocks());
            }
        });
    }

    /// Deeper than a path can be long: walkers that join strings fail, walkers that recurse crash.
    fn a_bottomless_directory_is_walked_and_removed(user) {
        each_backend(user, |fixture| {
            let shaft = fixture.source().join("shaft");
            fixture.inside(&["dig", shaft.to_str().unwrap(), "100"]).must_work();
            fixture.ok(["diff", BOX, "--files"]);
            let outcome = fixture.sandbox(["diff", BOX]);
            assert_eq!(outcome.code(), 0, "{}", outcome.err());
            fixture.ok(["list"]);
            fixture.ok(["info", BOX]);
            fixture.ok(["discard", BOX, "-f"]);
            assert!(!fixture.root().join(BOX).exists());
        });
    }

    /// What runs on the host by itself is not applied by a yes to everything.
    fn git_hooks_are_not_promoted_by_yes_alone(user) {
        each_backend(user, |fixture| {
            fixture.run("mkdir -p .git/hooks; echo 'touch /0wned' > .git/hooks/pre-commit; \
                         chmod +x .git/hooks/pre-commit; echo '[core] fsmonitor = evil' > .git/config; \
                         echo ok > normal").succeeded();
            let outcome = promote(fixture);
            assert!(!fixture.source().join(".git/hooks/pre-commit").exists(), "{outcome}");
            assert!(!fixture.source().join(".git/config").exists(), "{outcome}");
            assert!(outcome.err().contains("git") || outcome.out().contains("git"), "unsaid: {outcome}");
            let preview = fixture.sandbox(["promote", BOX, "--dry-run"]);
            assert!(preview.out().contains("hooks/pre-commit") || preview.err().contains("hooks/pre-commit"));
        });
    }

    /// Git takes any directory with the right names in it for a repository, also one whose parts are in
    /// two places or come by two promotes, and runs what its configuration names.
    fn planted_repositories_run_nothing_on_the_host(user) {
        each_backend(user, |fixture| {
            let sprung = fixture.source().join("sprung");
            let program = format!("fsmonitor = \\\"touch {}; false\\\"", sprung.display());
            let plant = [
                "mkdir -p docs x/objects x/refs; echo 'ref: refs/heads/main' > docs/HEAD; echo ../x > docs/commondir; \
                 printf '[core]\\n\\trepositoryformatversion = 1\\n\\tworktree = ..\\n[extensions]\\n\\tworktreeConfig = true\\n' > x/config"
                    .to_owned(),
                format!("printf \"[core]\\n\\t{program}\\n\" > docs/config.worktree"),
                format!("mkdir bare; printf \"[core]\\n\\tworktree = ..\\n\\t{program}\\n\" > bare/config"),
                "mkdir bare/objects bare/refs".to_owned(),
                "echo 'ref: refs/heads/main' > bare/HEAD".to_owned(),
            ];
            for script in plant {
                fixture.run(&script).succeeded();
                promote(fixture).succeeded();
            }
            for dir in ["docs", "x", "bare", "."] {
                let at = fixture.source().join(dir);
                if at.is_dir() {
                    let _ = fixture.outside("git").arg("status").current_dir(at).output();
                    assert!(!sprung.exists(), "git ran a program of the sandbox in {dir}");
                }
            }
            // They are traps indeed: promoted by consent, git runs them.
            fixture.ok(["promote", BOX, "--yes", "--allow-git-control"]);
            let _ = fixture.outside("git").arg("status").current_dir(fixture.source().join("docs")).output();
            assert!(sprung.exists(), "the trap does not work, so the test shows nothing");
        });
    }
}

/// Escape sequences in `bytes` other than colours, and control characters a terminal acts on.
fn speaks_to_terminals(bytes: &[u8]) -> Option<String> {
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            0x1b => {
                let rest = &bytes[at + 1..];
                let colour = rest.first() == Some(&b'[')
                    && rest
                        .iter()
                        .skip(1)
                        .find(|byte| !(byte.is_ascii_digit() || **byte == b';'))
                        .is_some_and(|end| *end == b'm');
                // Clearing the rest of a line, as progress bars and diffs do, is harmless too.
                let clears = rest.starts_with(b"[K") || rest.starts_with(b"[2K");
                if !colour && !clears {
                    let shown = &bytes[at.saturating_sub(20)..bytes.len().min(at + 20)];
                    return Some(String::from_utf8_lossy(shown).escape_debug().to_string());
                }
            }
            0x07 | 0x08 | 0x0b | 0x0c | 0x0e | 0x0f | 0x7f => {
                return Some(format!("control character {:#x}", bytes[at]));
            }
            _ => {}
        }
        at += 1;
    }
    None
}

as_both! {
    /// Names and contents made inside are shown to a person at a terminal: they must not retitle
    /// it, move its cursor over what is shown, or answer for the person.
    fn nothing_shown_on_a_terminal_speaks_to_it(user) {
        use std::os::unix::ffi::OsStrExt as _;
        let fixture = Fixture::new(user);
        fixture.write("source/plain", "one\ntwo\n");
        fixture.create(&[]);
        let script = r#"import os
open(b'evil\x1b]0;0wned\x07name', 'w').write('x\n')
open(b'line\nbreak', 'w').write('x\n')
open(b'not-utf8-\xff\xfe', 'w').write('x\n')
open(b'rtl-\xe2\x80\xaename', 'w').write('x\n')
os.symlink('target\x1b[2J', 'link')
open('plain', 'wb').write(b'one\n\x1b]0;0wned\x07\x1b[2J\x1b[31mtwo\r\x08\x7f\n')
"#;
        fixture.ok(["run", BOX, "python3", "-c", script]);
        for arguments in [
            &["diff", BOX][..], &["diff", BOX, "--stat"], &["diff", BOX, "--files"],
            &["promote", BOX, "--dry-run"], &["info", BOX], &["list"], &["history"],
        ] {
            let mut terminal = sandbox_tests::Terminal::open();
            let mut command = fixture.command(arguments);
            let mut child = terminal.attach(&mut command).spawn().unwrap();
            terminal.until_end(&mut child);
            if let Some(found) = speaks_to_terminals(&terminal.bytes()) {
                panic!("sandbox {arguments:?} let through: {found}\n{:?}", terminal.shown());
            }
        }
        // In a pipe the names are quoted as git quotes them, and the contents are the bytes.
        let piped = fixture.ok(["diff", BOX]);
        for line in piped.stdout.split(|byte| *byte == b'\n') {
            if line.starts_with(b"diff ") || line.starts_with(b"+++ ") || line.starts_with(b"rename ") {
                let line = std::ffi::OsStr::from_bytes(line);
                assert_eq!(speaks_to_terminals(line.as_bytes()), None, "{line:?}");
            }
        }
        assert!(piped.stdout.windows(4).any(|window| window == b"\x1b[2J"), "contents are kept");
    }
}
