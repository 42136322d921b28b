//! What is left when something ends that should not have: nothing running, nothing mounted,
//! nothing half done.
#![allow(clippy::unwrap_used, reason = "a panic is a test's verdict")]

use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use sandbox_tests::{BOX, Filesystem, Fixture, Running, Snapshot, User, as_both, marked_processes};

/// Processes of every kind that tends to survive: detached, ignoring signals, reparented.
const CLINGING: &str = "trap '' TERM HUP INT; setsid sleep 1000 & (sleep 1000 & sleep 1000) & \
    nohup sleep 1000 >/dev/null 2>&1 & echo changed > file; echo up; cat";

as_both! {
    fn killing_the_cli_leaves_no_process_and_no_mount(user) {
        for options in [&[][..], &["--isolated-network"], &["--pids", "100", "--size", "50M"]] {
            let fixture = Fixture::new(user);
            fixture.write("source/file", "original\n");
            let name = BOX;
            fixture.create(options);
            let mut run = fixture.start(["run", name, "sh", "-c", CLINGING]);
            run.wait_for("up");
            assert!(marked_processes(fixture.mark()).len() >= 5, "the control: they are there");
            let launcher = run.pid().as_raw_nonzero();
            run.signal(Signal::KILL);
            run.end();
            fixture.must_be_clean();
            let diff = fixture.ok(["diff", name]);
            assert!(diff.out().contains("+changed"), "the work survives: {diff}");
            fixture.ok(["run", name, "true"]);
            // Nobody was left to remove its control group; the next run did.
            let groups = sandbox_tests::control_groups(&format!("sandbox-run-{launcher}"));
            assert!(groups.is_empty(), "{groups:?}");
            fixture.ok(["promote", name, "--yes"]);
            fixture.ok(["discard", name, "-f"]);
        }
    }

    fn killing_the_cli_of_one_run_spares_the_others(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        let mut first = fixture.start(["run", BOX, "sh", "-c", "echo up; cat"]);
        first.wait_for("up");
        let mut second = fixture.start(["run", BOX, "sh", "-c", CLINGING]);
        second.wait_for("up");
        second.signal(Signal::KILL);
        second.end();
        assert!(first.is_running());
        first.end().succeeded();
        fixture.must_be_clean();
    }

    fn what_a_command_leaves_running_goes_with_it(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        let outcome = fixture.run("setsid sleep 1000 >/dev/null 2>&1 & (sleep 1000 >/dev/null 2>&1 &); exit 7");
        assert_eq!(outcome.code(), 7, "{outcome}");
        fixture.must_be_clean();
    }

    /// Signals to the CLI are the command's; its death by one is told as shells tell it.
    fn signals_pass_through(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        let mut run = fixture.start(["run", BOX, "sh", "-c",
            "trap 'echo caught; exit 9' TERM; echo up; while :; do sleep 0.05; done"]);
        run.wait_for("up");
        run.signal(Signal::TERM);
        let outcome = run.end();
        assert_eq!(outcome.code(), 9, "{outcome}");
        assert!(outcome.out().contains("caught"), "{outcome}");
        assert_eq!(fixture.run("kill -SEGV $$").code(), 139);
        assert_eq!(fixture.run("exit 42").code(), 42);
        assert_eq!(fixture.sandbox(["run", BOX, "no-such-program", "x"]).code(), 127);
        assert_eq!(fixture.sandbox(["run", BOX, "/etc/passwd", "x"]).code(), 126);
    }

    fn streams_pass_untouched(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        let mut run = fixture.start(["run", BOX, "sh", "-c", "cat; echo error >&2"]);
        let bytes: Vec<u8> = (0..=255).cycle().take(1 << 18).collect();
        let mut stdin = run.stdin();
        let sent = bytes.clone();
        std::thread::spawn(move || std::io::Write::write_all(&mut stdin, &sent));
        let outcome = run.end().succeeded();
        assert!(outcome.stdout == bytes, "{} bytes came back", outcome.stdout.len());
        assert_eq!(outcome.err(), "error\n");
    }

    /// The directory of a create under way is swept by whoever comes next.
    fn a_create_killed_midway_leaves_nothing(user) {
        let fixture = Fixture::new(user);
        for number in 0..3000 {
            fs::write(fixture.source().join(format!("file-{number}")), "contents").unwrap();
        }
        let source = Snapshot::of(&fixture.source());
        for milliseconds in [5, 15, 30, 60] {
            let create = fixture.start(["create", "killed", "--backend", "copy"]);
            // A moment chosen, not awaited: the kill has to strike somewhere inside.
            let _ = sandbox_tests::await_exit(create.pid(), Duration::from_millis(milliseconds));
            drop(create);
            let _ = fixture.sandbox(["discard", "killed", "-f"]);
            fixture.ok(["create", "next", "--backend", "overlay"]);
            fixture.ok(["discard", "next", "-f"]);
            let left: Vec<String> = fs::read_dir(fixture.root()).unwrap()
                .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
                .filter(|name| name.starts_with(".new-") || name == "killed")
                // Killed before it could even lock its directory: that is given a minute.
                .filter(|name| fs::read_dir(fixture.root().join(name)).unwrap().count() > 0)
                .collect();
            assert!(left.is_empty(), "{left:?}");
        }
        Snapshot::of(&fixture.source()).must_equal(&source, "a create touched the source");
    }

    /// Wherever the kill strikes, the next command finds the source wholly before or wholly after.
    fn a_promote_killed_anywhere_is_whole_afterwards(user) {
        let fixture = Fixture::new(user);
        for number in 0..300 {
            fixture.write(format!("source/d{}/file-{number}", number % 7), "before\n");
        }
        fixture.create(&[]);
        let before = Snapshot::of(&fixture.source()).without_times();
        fixture.run("for f in d*/file-*; do echo after > $f; done; rm -r d0; mkdir new; \
                     for i in 1 2 3; do echo n > new/$i; done").succeeded();
        for milliseconds in [2, 8, 14, 20, 30, 45, 60, 80, 110, 150] {
            let promote = fixture.start(["promote", BOX, "--yes"]);
            let _ = sandbox_tests::await_exit(promote.pid(), Duration::from_millis(milliseconds));
            drop(promote);
            // Any command recovers; this one looks only.
            fixture.ok(["diff", BOX, "--files"]);
            let now = Snapshot::of(&fixture.source()).without_times();
            if now == before {
                continue;
            }
            let files = fs::read_dir(fixture.source().join("new")).map(Iterator::count).unwrap_or(0);
            assert_eq!(files, 3, "half of the new directory at {milliseconds} ms");
            assert!(!fixture.source().join("d0").exists(), "d0 is half gone at {milliseconds} ms");
            for number in (0..300).filter(|number| number % 7 != 0) {
                let path = fixture.source().join(format!("d{}/file-{number}", number % 7));
                assert_eq!(fs::read_to_string(&path).unwrap(), "after\n", "{} at {milliseconds} ms", path.display());
            }
            return;
        }
        // Every kill came too early: then a whole promote must still work.
        fixture.ok(["promote", BOX, "--yes"]);
    }

    fn a_full_disk_in_the_middle_of_a_create_leaves_nothing(user) {
        let small = Filesystem::Tmpfs.mount(8);
        let fixture = Fixture::new(user);
        fixture.write("source/large", vec![7; 24 << 20]);
        let root = small.path().join("root");
        fs::create_dir(&root).unwrap();
        user.own(&root);
        let mut command = fixture.command(["create", "never", "--backend", "copy"]);
        command.env("SANDBOX_ROOT", &root);
        sandbox_tests::finish(&mut command).failed(6);
        let left: Vec<String> = fs::read_dir(&root).unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with(".new-") || name == "never")
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }

    fn a_full_disk_in_the_middle_of_a_promote_strikes_before_the_source(user) {
        for filesystem in [Filesystem::Ext4, Filesystem::Tmpfs] {
            let small = filesystem.mount(24);
            let fixture = Fixture::new(user);
            let source = small.path().join("source");
            fs::create_dir(&source).unwrap();
            fs::write(source.join("edited"), "original\n").unwrap();
            fs::write(source.join("deleted"), "original\n").unwrap();
            for path in [source.clone(), source.join("edited"), source.join("deleted")] {
                user.own(&path);
            }
            fixture.ok(["create", BOX, "--backend", "copy", "--from", source.to_str().unwrap()]);
            fixture.run("echo changed > edited; rm deleted; dd if=/dev/zero of=large bs=1M count=40 2>/dev/null; mkdir made").succeeded();
            let before = Snapshot::of(&source);
            fixture.sandbox(["promote", BOX, "--yes"]).failed(6);
            Snapshot::of(&source).must_equal(&before, "a promote that did not fit touched the source");
            fixture.run("rm large").succeeded();
            fixture.ok(["promote", BOX, "--yes"]);
            assert_eq!(fs::read_to_string(source.join("edited")).unwrap(), "changed\n");
            assert!(!source.join("deleted").exists());
        }
    }

    fn a_full_disk_under_a_run_is_the_commands_error_not_ours(user) {
        let small = Filesystem::Ext4.mount(16);
        let fixture = Fixture::new(user);
        fixture.write("source/file", "original\n");
        let root = small.path().join("root");
        fs::create_dir(&root).unwrap();
        user.own(&root);
        let sandbox = |arguments: &[&str]| {
            sandbox_tests::finish(fixture.command(arguments).env("SANDBOX_ROOT", &root))
        };
        sandbox(&["create", BOX]).succeeded();
        let outcome = sandbox(&["run", BOX, "sh", "-c", "cat /dev/zero > filler"]);
        assert!(outcome.err().contains("No space left"), "{outcome}");
        assert!(!outcome.err().contains("panicked"), "{outcome}");
        sandbox(&["discard", BOX, "-f"]).succeeded();
        assert_eq!(fs::read_to_string(fixture.source().join("file")).unwrap(), "original\n");
    }

    fn a_source_that_vanished_is_exit_4_and_can_be_discarded(user) {
        let fixture = Fixture::new(user);
        fixture.write("source/file", "original\n");
        fixture.create(&[]);
        fixture.run("echo changed > file").succeeded();
        let away = fixture.base().join("away");
        fs::rename(fixture.source(), &away).unwrap();
        let from_home = |arguments: &[&str]| {
            sandbox_tests::finish(fixture.command(arguments).current_dir(fixture.home()))
        };
        for arguments in [&["run", BOX, "true"][..], &["diff", BOX], &["promote", BOX, "--yes"], &["sync", BOX]] {
            from_home(arguments).failed(4);
        }
        from_home(&["create", "other", "--from", fixture.source().to_str().unwrap()]).failed(4);
        let list = from_home(&["list"]).succeeded();
        assert!(list.out().contains(BOX), "{list}");
        from_home(&["info", BOX]).succeeded();
        fs::rename(&away, fixture.source()).unwrap();
        assert!(fixture.ok(["diff", BOX]).out().contains("+changed"), "it came back");
        fs::rename(fixture.source(), &away).unwrap();
        from_home(&["discard", BOX, "-f"]).succeeded();
        fs::rename(&away, fixture.source()).unwrap();
    }

    /// Nor is a link that now stands there, wherever it leads.
    fn a_source_swapped_for_a_link_is_not_followed(user) {
        for backend in ["overlay", "copy"] {
            let fixture = Fixture::new(user);
            fixture.write("source/file", "original\n");
            fixture.write("host/file", "the host's\n");
            fixture.create(&["--backend", backend]);
            fixture.run("echo changed > file; echo new > new").succeeded();
            fs::rename(fixture.source(), fixture.base().join("away")).unwrap();
            std::os::unix::fs::symlink(fixture.host(), fixture.source()).unwrap();
            let before = Snapshot::of(&fixture.host());
            for arguments in [&["promote", BOX, "--yes"][..], &["sync", BOX], &["run", BOX, "sh", "-c", "echo x > y"]] {
                let mut command = fixture.command(arguments);
                let outcome = sandbox_tests::finish(command.current_dir(fixture.home()));
                assert_ne!(outcome.code(), 0, "{arguments:?}: {outcome}");
            }
            Snapshot::of(&fixture.host()).must_equal(&before, "it was led to another directory");
        }
    }

    /// Another directory at the same path is not the source.
    fn a_source_that_was_replaced_is_not_promoted_into(user) {
        let fixture = Fixture::new(user);
        fixture.write("source/file", "original\n");
        fixture.create(&[]);
        fixture.run("echo changed > file; echo new > new").succeeded();
        fs::rename(fixture.source(), fixture.base().join("away")).unwrap();
        fs::create_dir(fixture.source()).unwrap();
        user.own(&fixture.source());
        fixture.write("source/file", "another project\n");
        let before = Snapshot::of(&fixture.source());
        let outcome = fixture.sandbox(["promote", BOX, "--yes"]);
        assert!([4, 5].contains(&outcome.code()), "{outcome}");
        Snapshot::of(&fixture.source()).must_equal(&before, "another project was overwritten");
    }
}

/// Nothing of the fixture is needed here but its user.
#[test]
fn a_process_killed_inside_is_only_its_own_end() {
    let fixture = Fixture::new(User::Tester);
    fixture.create(&[]);
    let mut run = fixture.start(["run", BOX, "sh", "-c", "./attacker wait-here; echo on"]);
    run.wait_for("waiting");
    let inner = marked_processes(fixture.mark())
        .into_iter()
        .find(|(_, command)| command.starts_with("./attacker"))
        .expect("the attacker runs inside")
        .0;
    rustix::process::kill_process(inner, Signal::KILL).unwrap();
    let outcome = Running::end(run);
    assert_eq!(outcome.code(), 0, "{outcome}");
    assert!(outcome.out().contains("on"), "{outcome}");
}
