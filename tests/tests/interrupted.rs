//! A promote that was interrupted: signals put everything back, the next command repairs what a kill left,
//! and nothing that the user did meanwhile is lost.
#![allow(clippy::unwrap_used, reason = "a panic is a test's verdict")]

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use sandbox_tests::{BOX, Fixture, Running, Snapshot, User, as_both};

const FILES: usize = 400;

/// A source of many files, each of them changed in [`BOX`].
fn many_changes(user: User) -> Fixture {
    let fixture = Fixture::new(user);
    for number in 0..FILES {
        fixture.write(format!("source/many/{number}"), "before\n");
    }
    fixture.create(&[]);
    let script =
        format!("i=0; while [ $i -lt {FILES} ]; do echo after > many/$i; i=$((i+1)); done");
    fixture.run(&script).succeeded();
    fixture
}

fn file(fixture: &Fixture, number: usize) -> String {
    fs::read_to_string(fixture.source().join(format!("many/{number}"))).unwrap()
}

/// Starts a promote and waits until it has begun to change the source.
fn begun(fixture: &Fixture) -> Running {
    let mut promote = fixture.start(["promote", BOX, "--yes"]);
    while file(fixture, 0) == "before\n" && promote.is_running() {
        std::thread::yield_now();
    }
    promote
}

/// Kills a promote between its first change and its commit mark.
fn kill_half_way(fixture: &Fixture) {
    for _ in 0..20 {
        let promote = begun(fixture);
        promote.signal(Signal::KILL);
        let _ = promote.end();
        let undo = fixture.root().join(".undo");
        if find(&undo, "pending").is_some() && find(&undo, "committed").is_none() {
            assert_eq!(file(fixture, 0), "after\n", "the control: it is half done");
            return;
        }
        // Too late: all of it is promoted.
        fixture.ok(["list"]);
        fixture.ok(["promote", BOX, "--undo", "--yes"]);
        fs::remove_dir_all(undo).unwrap();
        fixture.ok(["discard", BOX, "-f"]);
        fixture.create(&[]);
        fixture
            .run("for f in many/*; do echo after > $f; done")
            .succeeded();
    }
    panic!("no promote was killed in time");
}

fn find(directory: &Path, name: &str) -> Option<PathBuf> {
    for entry in fs::read_dir(directory).ok()?.flatten() {
        if entry.file_name() == name {
            return Some(entry.path());
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Some(found) = find(&entry.path(), name)
        {
            return Some(found);
        }
    }
    None
}

/// Each of `commands` repairs a promote that was killed before it, and says so.
fn each_repairs(user: User, commands: &[&[&str]]) {
    let fixture = many_changes(user);
    fixture.ok(["create", "other"]);
    let before = Snapshot::of(&fixture.source()).without_times();
    for arguments in commands {
        // It is gone where a promote was killed too late, and its sandbox made anew.
        if arguments.contains(&"rollback") {
            let _ = fixture.sandbox(["snapshot", BOX, "label"]);
        }
        kill_half_way(&fixture);
        let outcome = fixture.sandbox(arguments.iter());
        assert!(
            outcome.err().contains("An interrupted promote to"),
            "{arguments:?}: {outcome}"
        );
        let now = Snapshot::of(&fixture.source()).without_times();
        now.must_equal(&before, &format!("{arguments:?} did not repair"));
    }
}

as_both! {
    fn a_signalled_promote_is_put_back_before_it_exits(user) {
        let fixture = many_changes(user);
        let before = Snapshot::of(&fixture.source());
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            let promote = begun(&fixture);
            promote.signal(signal);
            // Impatience changes nothing.
            promote.signal(signal);
            let outcome = promote.end();
            assert_eq!(outcome.code(), 128 + signal.as_raw(), "{outcome}");
            if outcome.err().contains("Promoted") {
                let all = (0..FILES).all(|number| file(&fixture, number) == "after\n");
                assert!(all, "half done: {outcome}");
                fixture.ok(["promote", BOX, "--undo", "--yes"]);
                return;
            }
            assert!(outcome.err().contains("everything was put back"), "{outcome}");
            Snapshot::of(&fixture.source()).must_equal(&before, "it was not put back");
            let list = fixture.ok(["list"]);
            assert!(!list.err().contains("interrupted"), "{list}");
        }
        fixture.ok(["promote", BOX, "--yes"]);
        assert_eq!(file(&fixture, FILES - 1), "after\n");
    }

    /// As nohup and shells have it for what they start in the background.
    fn an_ignored_signal_does_not_stop_a_promote(user) {
        let fixture = many_changes(user);
        let mut shell = fixture.outside("sh");
        shell.args(["-c", "trap '' HUP; exec \"$0\" promote box --yes"]).arg(fixture.binary());
        let mut promote = Running::start(&mut shell);
        while file(&fixture, 0) == "before\n" && promote.is_running() {
            std::thread::yield_now();
        }
        promote.signal(Signal::HUP);
        promote.end().succeeded();
        assert_eq!(file(&fixture, FILES - 1), "after\n");
    }

    fn a_command_that_looks_repairs_a_killed_promote(user) {
        each_repairs(user, &[
            &["list"],
            &["info", BOX],
            &["path", "--layer", BOX],
            &["diff", BOX, "--files"],
            &["promote", BOX, "--dry-run"],
            &["gc"],
            &["history"],
        ]);
    }

    fn a_command_that_changes_repairs_a_killed_promote(user) {
        each_repairs(user, &[
            &["run", BOX, "true"],
            &["try", "--discard", "--", "true"],
            &["create", "third"],
            &["fork", BOX, "copy"],
            &["sync", BOX],
            &["snapshot", BOX, "label"],
            &["discard", "other", "-f"],
            &["rollback", BOX, "label", "--yes"],
        ]);
    }

    fn an_edit_after_a_killed_promote_is_kept_and_named(user) {
        let fixture = many_changes(user);
        kill_half_way(&fixture);
        fixture.shell("echo mine >> many/0").succeeded();
        let outcome = fixture.ok(["run", BOX, "true"]);
        assert!(outcome.err().contains("many/0 was edited meanwhile"), "{outcome}");
        assert_eq!(file(&fixture, 0), "after\nmine\n");
        assert_eq!(file(&fixture, 1), "before\n");
        let kept = outcome.err();
        let kept = kept.lines().find_map(|line| line.strip_prefix("What stood there before is in "));
        let kept = Path::new(kept.unwrap().trim_end_matches('.')).join("many/0");
        assert_eq!(fs::read_to_string(kept).unwrap(), "before\n");
        fixture.sandbox(["promote", BOX, "--yes"]).failed(5);
    }

    fn a_source_made_again_after_a_killed_promote_is_usable(user) {
        let fixture = many_changes(user);
        kill_half_way(&fixture);
        fs::remove_dir_all(fixture.source()).unwrap();
        fs::create_dir(fixture.source()).unwrap();
        user.own(&fixture.source());
        fixture.write("source/file", "cloned\n");
        let outcome = fixture.ok(["try", "--promote", "--", "sh", "-c", "echo new > new"]);
        assert!(outcome.err().contains("was set aside"), "{outcome}");
        assert_eq!(fs::read_to_string(fixture.source().join("new")).unwrap(), "new\n");
        fixture.ok(["create", "other"]);
        let again = fixture.ok(["run", "other", "true"]);
        assert!(!again.err().contains("set aside"), "told once: {again}");
        let shown = fixture.ok(["gc", "--dry-run"]);
        assert!(shown.out().contains("interrupted promote"), "{shown}");
        assert!(find(&fixture.root().join(".undo"), "stage").is_some(), "a dry run deletes nothing");
        let cleaned = fixture.ok(["gc"]);
        assert!(cleaned.out().contains("interrupted promote"), "{cleaned}");
        assert!(!fixture.ok(["gc", "--dry-run"]).out().contains("interrupted promote"));
        fixture.ok(["discard", BOX, "other", "-f"]);
    }
}
