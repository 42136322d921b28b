//! Both sides changed: promote says so (exit 5), shows which, and applies nothing until each is
//! resolved. Nothing is ever overwritten unasked.
#![allow(clippy::unwrap_used, reason = "a panic is a test's verdict")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use sandbox_tests::{BOX, Fixture, Outcome, Snapshot, Terminal, User, as_both};

const TEXT: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n";

fn each_backend(user: User, test: impl Fn(&Fixture)) {
    for backend in ["overlay", "copy"] {
        let fixture = Fixture::new(user);
        fixture.write("source/dir/file", TEXT);
        fixture.write("source/other", "other\n");
        fixture.create(&["--backend", backend]);
        test(&fixture);
    }
}

fn promote(fixture: &Fixture, options: &[&str]) -> Outcome {
    fixture.sandbox(["promote", BOX, "--yes"].iter().chain(options))
}

/// The sandbox edits, then the source does what `meanwhile` does: a conflict on `path`, nothing
/// applied, not even what does not conflict.
fn conflicts(user: User, edit: &str, path: &str, meanwhile: impl Fn(&Fixture)) {
    each_backend(user, |fixture| {
        fixture
            .run(&format!("{edit}; echo harmless > harmless"))
            .succeeded();
        meanwhile(fixture);
        let before = Snapshot::of(&fixture.source());
        let outcome = promote(fixture, &[]).failed(5);
        assert!(
            outcome.err().contains(path) || outcome.out().contains(path),
            "{path} is not named: {outcome}"
        );
        Snapshot::of(&fixture.source())
            .must_equal(&before, "a conflicting promote touched the source");
        assert!(
            !fixture.changes().is_empty(),
            "the sandbox lost its changes"
        );
    });
}

const EDIT: &str = "sed -i s/two/TWO/ dir/file";

as_both! {
    fn a_source_edited_meanwhile(user) {
        conflicts(user, EDIT, "dir/file", |fixture| {
            fixture.write("source/dir/file", TEXT.replace("two", "zwei"));
        });
    }

    /// Same length, same modification time: only the contents, or the inode's change time, tell.
    fn a_source_edited_with_its_times_put_back(user) {
        conflicts(user, EDIT, "dir/file", |fixture| {
            fixture.shell("touch -r dir/file ../stamp; sed -i s/two/owt/ dir/file; touch -r ../stamp dir/file").succeeded();
        });
    }

    /// Written in place through a mapping, as databases do.
    fn a_source_edited_through_a_mapping(user) {
        conflicts(user, EDIT, "dir/file", |fixture| {
            let script = "import mmap; f = open('dir/file', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[0:3] = b'ONE'; m.flush()";
            sandbox_tests::finish(fixture.outside("python3").args(["-c", script])).succeeded();
        });
    }

    fn a_source_deleted_meanwhile(user) {
        conflicts(user, EDIT, "dir/file", |fixture| {
            fs::remove_file(fixture.source().join("dir/file")).unwrap();
        });
    }

    fn a_source_renamed_meanwhile(user) {
        conflicts(user, EDIT, "dir/file", |fixture| {
            fs::rename(fixture.source().join("dir/file"), fixture.source().join("dir/moved")).unwrap();
        });
    }

    fn a_source_chmodded_meanwhile(user) {
        conflicts(user, "chmod 600 dir/file", "dir/file", |fixture| {
            fs::set_permissions(fixture.source().join("dir/file"), fs::Permissions::from_mode(0o755)).unwrap();
        });
    }

    fn a_source_whose_directory_moved_meanwhile(user) {
        conflicts(user, EDIT, "dir", |fixture| {
            fs::rename(fixture.source().join("dir"), fixture.source().join("elsewhere")).unwrap();
        });
    }

    /// Another directory of the same name, with the very same file: not what the sandbox saw.
    fn a_source_whose_directory_was_swapped_for_another(user) {
        conflicts(user, EDIT, "dir", |fixture| {
            fs::rename(fixture.source().join("dir"), fixture.base().join("away")).unwrap();
            fixture.write("source/dir/file", TEXT.replace("nine", "neun"));
        });
    }

    fn a_source_that_became_a_link(user) {
        conflicts(user, EDIT, "dir/file", |fixture| {
            fs::remove_file(fixture.source().join("dir/file")).unwrap();
            symlink("../other", fixture.source().join("dir/file")).unwrap();
        });
    }

    fn both_created_the_same_name(user) {
        conflicts(user, "echo inside > created", "created", |fixture| {
            fixture.write("source/created", "outside\n");
        });
    }

    fn one_created_a_file_and_the_other_a_directory(user) {
        conflicts(user, "mkdir created; echo x > created/inner", "created", |fixture| {
            fixture.write("source/created", "outside\n");
        });
    }

    fn deleted_inside_and_edited_outside(user) {
        conflicts(user, "rm dir/file", "dir/file", |fixture| {
            fixture.write("source/dir/file", "edited\n");
        });
    }

    fn a_directory_deleted_inside_that_got_a_new_file_outside(user) {
        conflicts(user, "rm -r dir", "dir", |fixture| {
            fixture.write("source/dir/new", "would be lost\n");
        });
    }

    fn the_same_change_on_both_sides_is_no_conflict(user) {
        each_backend(user, |fixture| {
            fixture.run("echo same > created; rm other").succeeded();
            fixture.write("source/created", "same\n");
            fs::remove_file(fixture.source().join("other")).unwrap();
            let before = Snapshot::of(&fixture.source()).without_times();
            promote(fixture, &[]).succeeded();
            Snapshot::of(&fixture.source()).without_times().must_equal(&before, "equal changes");
        });
    }

    fn changes_elsewhere_are_no_conflict(user) {
        each_backend(user, |fixture| {
            fixture.run(EDIT).succeeded();
            fixture.write("source/other", "edited outside\n");
            fixture.write("source/dir/new", "made outside\n");
            promote(fixture, &[]).succeeded();
            assert!(fs::read_to_string(fixture.source().join("dir/file")).unwrap().contains("TWO"));
            assert_eq!(fs::read_to_string(fixture.source().join("other")).unwrap(), "edited outside\n");
            assert!(fixture.source().join("dir/new").exists());
        });
    }

    fn conflicts_are_resolved_as_the_flags_say(user) {
        let edited = TEXT.replace("nine", "neun");
        for (flag, has, lacks) in [
            ("--ours", "TWO", "neun"), ("--theirs", "neun", "TWO"), ("--merge", "TWO", "nine"),
            ("--resolve=dir/file=ours", "TWO", "neun"), ("--resolve=dir/file=theirs", "neun", "TWO"),
            ("--resolve=dir/file=skip", "neun", "TWO"), ("--resolve=dir/file=merge", "neun", "two"),
        ] {
            each_backend(user, |fixture| {
                fixture.run(&format!("{EDIT}; echo harmless > harmless")).succeeded();
                fixture.write("source/dir/file", &edited);
                promote(fixture, &[]).failed(5);
                promote(fixture, &[flag]).succeeded();
                let now = fs::read_to_string(fixture.source().join("dir/file")).unwrap();
                assert!(now.contains(has) && !now.contains(lacks), "{flag}: {now}");
                assert!(fixture.source().join("harmless").exists(), "{flag}: the rest was not applied");
                fixture.ok(["promote", BOX, "--undo", "--yes"]);
                let now = fs::read_to_string(fixture.source().join("dir/file")).unwrap();
                assert_eq!(now, edited, "{flag}: undo gives back what the source had");
            });
        }
    }

    fn what_cannot_be_merged_stays_a_conflict(user) {
        each_backend(user, |fixture| {
            fixture.run(EDIT).succeeded();
            fixture.write("source/dir/file", TEXT.replace("two", "zwei"));
            let before = Snapshot::of(&fixture.source());
            promote(fixture, &["--merge"]).failed(5);
            Snapshot::of(&fixture.source()).must_equal(&before, "a merge that overlaps was applied");
        });
    }

    /// At a terminal each conflict is a question, and an end of input is no answer.
    fn at_a_terminal_each_conflict_is_asked_about(user) {
        for (answer, expected) in [("o\n", "TWO"), ("t\n", "zwei"), ("s\n", "zwei")] {
            let fixture = Fixture::new(user);
            fixture.write("source/dir/file", TEXT);
            fixture.create(&[]);
            fixture.run(EDIT).succeeded();
            fixture.write("source/dir/file", TEXT.replace("two", "zwei"));
            let mut terminal = Terminal::open();
            let mut command = fixture.command(["promote", BOX]);
            let mut child = terminal.attach(&mut command).spawn().unwrap();
            terminal.wait_for("[q]uit? ");
            terminal.enter(answer);
            // The others leave nothing to apply, and so nothing to ask.
            if answer == "o\n" {
                terminal.wait_for("[y/N] ");
                terminal.enter("y\n");
            }
            terminal.until_end(&mut child);
            let now = fs::read_to_string(fixture.source().join("dir/file")).unwrap();
            assert!(now.contains(expected), "{answer:?}: {now}\n{}", terminal.shown());
        }
    }

    /// The command wrote to the page before: writing again leaves no trace in the file's times.
    fn what_a_live_run_wrote_through_a_mapping_is_not_promoted_unseen(user) {
        each_backend(user, |fixture| {
            fixture.run("printf aaaaaaaa > mapped").succeeded();
            let script = "import mmap, sys; f = open('mapped', 'r+b'); m = mmap.mmap(f.fileno(), 0)\n\
                          m[0:8] = b'reviewed'; print('up', flush=True); sys.stdin.readline(); m[0:8] = b'unseen!!'";
            let mut run = fixture.start(["run", BOX, "python3", "-c", script]);
            run.wait_for("up");
            let mut terminal = Terminal::open();
            let mut command = fixture.command(["promote", BOX]);
            let mut child = terminal.attach(&mut command).spawn().unwrap();
            while !["[y/N]", "is busy"].iter().any(|text| terminal.shown().contains(text)) {
                std::thread::yield_now();
            }
            run.say("go");
            run.end().succeeded();
            terminal.enter("y\n");
            let status = terminal.until_end(&mut child);
            assert!(!status.success(), "{}", terminal.shown());
            assert!(!fixture.source().join("mapped").exists(), "{}", terminal.shown());
        });
    }

    fn a_run_after_the_plan_was_shown_ends_the_promote(user) {
        each_backend(user, |fixture| {
            for options in [&[][..], &["--interactive"]] {
                fixture.run("echo edited > other").succeeded();
                let mut terminal = Terminal::open();
                let mut command = fixture.command(["promote", BOX].iter().chain(options));
                let mut child = terminal.attach(&mut command).spawn().unwrap();
                if !options.is_empty() {
                    terminal.wait_for("Promote it?");
                    terminal.enter("y\n");
                }
                terminal.wait_for("[y/N]");
                // Looking is welcome.
                fixture.ok(["diff", BOX]);
                fixture.run("true").succeeded();
                terminal.enter("y\n");
                let status = terminal.until_end(&mut child);
                assert!(!status.success(), "{}", terminal.shown());
                assert!(terminal.shown().contains("a command ran in sandbox"), "{}", terminal.shown());
                assert_eq!(fs::read_to_string(fixture.source().join("other")).unwrap(), "other\n");
            }
            promote(fixture, &[]).succeeded();
            assert_eq!(fs::read_to_string(fixture.source().join("other")).unwrap(), "edited\n");
        });
    }

    fn without_a_terminal_nothing_is_asked_and_nothing_done(user) {
        let fixture = Fixture::new(user);
        fixture.write("source/file", "x\n");
        fixture.create(&[]);
        fixture.run("echo y > file").succeeded();
        let before = Snapshot::of(&fixture.source());
        let outcome = fixture.sandbox(["promote", BOX]);
        assert!([0, 1].contains(&outcome.code()), "{outcome}");
        let outcome = fixture.sandbox(["discard", BOX]);
        assert_eq!(outcome.code(), 1, "{outcome}");
        assert!(fixture.root().join(BOX).exists());
        Snapshot::of(&fixture.source()).must_equal(&before, "it was applied unasked");
    }

    /// Undo, too, overwrites nothing that changed since, and undoes nothing else then, unless
    /// forced.
    fn undo_is_all_or_nothing_unless_forced(user) {
        each_backend(user, |fixture| {
            fixture.run("echo promoted > dir/file; echo promoted > other").succeeded();
            promote(fixture, &[]).succeeded();
            fixture.write("source/other", "edited after the promote\n");
            fixture.shell("touch dir/file").succeeded();
            let before = Snapshot::of(&fixture.source());
            for options in [&["--yes"][..], &["--dry-run"]] {
                let undo = ["promote", BOX, "--undo"];
                let outcome = fixture.sandbox(undo.iter().chain(options)).failed(5);
                assert!(outcome.err().contains("other"), "{outcome}");
                assert!(!outcome.err().contains("dir/file"), "{outcome}");
                Snapshot::of(&fixture.source()).must_equal(&before, "something was undone");
            }
            let outcome = fixture.ok(["promote", BOX, "--undo", "--yes", "--force"]);
            assert!(outcome.err().contains("other was changed since"), "{outcome}");
            let read = |name: &str| fs::read_to_string(fixture.source().join(name)).unwrap();
            assert_eq!(read("other"), "edited after the promote\n");
            assert_eq!(read("dir/file"), TEXT);
            fixture.sandbox(["promote", BOX, "--force", "--yes"]).failed(1);
        });
    }

    fn undo_gives_back_what_redo_and_promote_apply_again(user) {
        each_backend(user, |fixture| {
            fixture.run("echo promoted > dir/file; rm other; echo new > new").succeeded();
            let changes = fixture.changes();
            promote(fixture, &[]).succeeded();
            let promoted = Snapshot::of(&fixture.source()).without_directory_times();
            let outcome = fixture.ok(["promote", BOX, "--undo", "--yes"]);
            assert!(outcome.err().contains("3 changes are in sandbox 'box' again"), "{outcome}");
            assert_eq!(fixture.changes(), changes);
            let outcome = fixture.ok(["promote", BOX, "--redo", "--yes"]);
            assert!(outcome.err().contains("Applied 3 paths"), "{outcome}");
            Snapshot::of(&fixture.source()).without_directory_times().must_equal(&promoted, "redo");
            assert!(fixture.changes().is_empty());
            fixture.sandbox(["promote", BOX, "--redo", "--yes"]).failed(1);
            fixture.ok(["promote", BOX, "--undo", "--yes"]);
            promote(fixture, &[]).succeeded();
            Snapshot::of(&fixture.source()).without_directory_times().must_equal(&promoted, "promoted again");
            // The sandbox may be gone.
            fixture.ok(["discard", BOX, "-f"]);
            let outcome = fixture.ok(["promote", BOX, "--undo", "--yes"]);
            assert!(outcome.err().contains("3 changes are not in sandbox 'box'"), "{outcome}");
            assert_eq!(fs::read_to_string(fixture.source().join("dir/file")).unwrap(), TEXT);
            fixture.ok(["promote", BOX, "--redo", "--yes"]);
            Snapshot::of(&fixture.source()).without_directory_times().must_equal(&promoted, "redo without a sandbox");
        });
    }

    fn sync_keeps_the_sandboxs_edits(user) {
        each_backend(user, |fixture| {
            fixture.run(&format!("{EDIT}; echo mine > other")).succeeded();
            fixture.write("source/dir/file", TEXT.replace("nine", "neun"));
            fixture.write("source/other", "theirs\n");
            let outcome = fixture.sandbox(["sync", BOX]);
            let seen = fixture.run("cat dir/file other").succeeded().out();
            assert!(seen.contains("TWO") && seen.contains("neun"), "{seen}{outcome}");
            assert!(seen.contains("mine"), "the sandbox's edit was overwritten: {seen}");
            let named = outcome.out() + &outcome.err();
            assert!(named.contains("other"), "what both changed is named: {outcome}");
        });
    }
}
