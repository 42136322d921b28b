//! What is left of a promote that was interrupted, and what the user did to the source since.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod project;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use project::*;
use sandbox_model::{BackendKind, Class, Failure};
use sandbox_workspace::Root;
use sandbox_workspace::discard::discard;
use sandbox_workspace::garbage::{self, GarbageKind};
use sandbox_workspace::progress::{Phase, Progress, Silent};
use sandbox_workspace::promote::fault::{self, Action};
use sandbox_workspace::promote::{
    self, Backup, PromoteError, Recovered, Recovery, Review, recover, recover_all,
    recover_thoroughly,
};
use sandbox_workspace::undo::{self, Changed, UndoError, UndoOptions, Which};

/// Does `work`, which fails just before its commit mark and cannot put anything back: as if it had been
/// killed there.
fn interrupted(work: impl FnOnce() -> bool) {
    let error = rustix::io::Errno::IO.raw_os_error();
    fault::inject(Box::new(move |point| match point {
        "commit written" | "put back" | "attributes back" => Action::Error(error),
        _ => Action::Continue,
    }));
    let done = work();
    fault::clear();
    assert!(!done, "it was not interrupted");
}

fn interrupted_promote(project: &Project) {
    interrupted(|| project.promote().is_ok());
}

fn interrupted_undo(project: &Project, which: &Which) {
    interrupted(|| undo::undo(&project.root, &project.source, which, &[], &mut Silent).is_ok());
}

fn recovered(project: &Project) -> Recovered {
    let recovered = recover(&project.root, &project.source).unwrap().unwrap();
    assert_eq!(recover(&project.root, &project.source).unwrap(), None);
    assert_eq!(project.leftovers(), Vec::<String>::new());
    recovered
}

/// The same on every backend that needs no filesystem of its own.
fn each_backend(plant: &str, work: &str, test: impl Fn(&Project)) {
    for backend in [BackendKind::Overlay, BackendKind::Copy] {
        let dir = tempfile::tempdir().unwrap();
        let project = Project::at(dir.path(), &dir.path().join("root"), plant, backend);
        project.run(work);
        test(&project);
        // An overlay's scratch directory has no mode at all.
        shell(dir.path(), "chmod -R u+rwX .");
    }
}

#[test]
fn keeps_an_edit_made_after_an_interrupted_promote() {
    each_backend(
        "echo a > a; echo b > b",
        "echo A > a; echo B > b",
        |project| {
            interrupted_promote(project);
            assert_eq!(project.read("a"), "A\n", "it is half done");
            shell(&project.source, "echo mine >> a");
            let recovered = recovered(project);
            assert_eq!(recovered.outcome, Recovery::RolledBack);
            assert_eq!(recovered.left, [path("a")]);
            assert_eq!(project.read("a"), "A\nmine\n");
            assert_eq!(project.read("b"), "b\n", "the rest goes back");
            let kept = recovered.kept.unwrap();
            assert_eq!(fs::read_to_string(kept.join("a")).unwrap(), "a\n");
            assert!(project.changes().iter().any(|change| change.ends_with('a')));
        },
    );
}

#[test]
fn keeps_an_edit_that_hides_its_times() {
    each_backend("mkdir d; echo a > d/a", "echo A > d/a", |project| {
        interrupted_promote(project);
        shell(
            &project.source,
            "touch -r d/a ../stamp; printf 'M\\n' > d/a; touch -r ../stamp d/a",
        );
        let recovered = recovered(project);
        assert_eq!(recovered.left, [path("d/a")]);
        assert_eq!(project.read("d/a"), "M\n");
        let kept = recovered.kept.unwrap();
        assert_eq!(fs::read_to_string(kept.join("d/a")).unwrap(), "a\n");
    });
}

#[test]
fn keeps_an_edit_of_an_undone_file_that_hides_its_times() {
    let work = "echo A > d/a; rm -r e";
    each_backend("mkdir d e; echo a > d/a; echo b > e/b", work, |project| {
        project.promote().unwrap();
        interrupted_undo(project, &Which::Latest);
        shell(
            &project.source,
            "for file in d/a e/b; do
                touch -r $file ../stamp; printf 'M\\n' > $file; touch -r ../stamp $file
            done",
        );
        assert_eq!(recovered(project).left, ["d/a", "e", "e/b"].map(path));
        assert_eq!(project.read("d/a"), "M\n");
        assert_eq!(project.read("e/b"), "M\n");
    });
}

#[test]
fn takes_back_a_file_of_which_only_the_time_changed() {
    each_backend("echo a > a", "echo A > a", |project| {
        interrupted_promote(project);
        shell(&project.source, "touch a");
        assert_eq!(recovered(project).left, []);
        assert_eq!(project.read("a"), "a\n");
        project.promote().unwrap();
        assert_eq!(project.read("a"), "A\n", "no false conflict");
    });
}

#[test]
fn keeps_what_was_put_into_a_promoted_directory() {
    let work = "mkdir -p new/sub; echo x > new/x; echo y > new/sub/y; echo z > new/sub/z; chmod 555 new/sub";
    each_backend("echo a > a", work, |project| {
        interrupted_promote(project);
        shell(
            &project.source,
            "echo mine > new/mine; chmod 755 new/sub; echo edited >> new/sub/y; chmod 555 new/sub",
        );
        let recovered = recovered(project);
        assert_eq!(recovered.left, [path("new/mine"), path("new/sub/y")]);
        let listed = listing(&project.source);
        let files: Vec<&str> = listed
            .lines()
            .filter_map(|line| line.split_once(" f ").map(|(name, _)| name))
            .collect();
        assert_eq!(files, ["./a", "./new/mine", "./new/sub/y"]);
        assert_eq!(project.read("new/sub/y"), "y\nedited\n");
        shell(&project.source, "chmod -R u+w new");
    });
}

#[test]
fn keeps_attributes_set_after_an_interrupted_promote() {
    each_backend(
        "echo a > a; echo b > b; chmod 644 a b",
        "chmod 600 a b",
        |project| {
            interrupted_promote(project);
            shell(&project.source, "chmod 640 a");
            assert_eq!(recovered(project).left, [path("a")]);
            let mode = |name: &str| {
                let found = fs::metadata(project.source.join(name)).unwrap();
                found.permissions().mode() & 0o777
            };
            assert_eq!((mode("a"), mode("b")), (0o640, 0o644));
        },
    );
}

#[test]
fn keeps_an_edit_made_after_an_interrupted_undo() {
    each_backend(
        "echo a > a; echo b > b",
        "echo A > a; echo B > b",
        |project| {
            project.promote().unwrap();
            interrupted_undo(project, &Which::Latest);
            assert_eq!(project.read("a"), "a\n", "it is half done");
            shell(&project.source, "echo mine >> a");
            let recovered = recovered(project);
            assert_eq!(recovered.left, [path("a")]);
            assert_eq!(project.read("a"), "a\nmine\n");
            assert_eq!(project.read("b"), "B\n");
            let kept = recovered.kept.unwrap();
            assert_eq!(fs::read_to_string(kept.join("a")).unwrap(), "A\n");
        },
    );
}

/// What the user does between an interruption and its recovery.
const EDIT_DOCS: &str = "echo mine >> docs/a; echo mine > docs/sub/new";

/// `docs` was put there by an interrupted undo or redo, and [`EDIT_DOCS`] done.
fn assert_docs_stay_whole(project: &Project, recovered: &Recovered) {
    let edited = ["docs", "docs/a", "docs/sub/new"].map(path);
    assert_eq!(recovered.left[..3], edited);
    assert_eq!(project.read("docs/a"), "a\nmine\n");
    assert_eq!(project.read("docs/b"), "b\n");
    assert_eq!(project.read("docs/sub/c"), "c\n");
    assert_eq!(project.read("docs/sub/new"), "mine\n");
}

#[test]
fn a_directory_edited_after_an_interrupted_undo_stays_whole() {
    let docs = "mkdir -p docs/sub; echo a > docs/a; echo b > docs/b; echo c > docs/sub/c";
    let plant = format!("{docs}; cp -r docs man; echo e > e");
    let work = "rm -r docs man; echo file > man; echo E > e";
    each_backend(&plant, work, |project| {
        project.promote().unwrap();
        interrupted_undo(project, &Which::Latest);
        shell(&project.source, EDIT_DOCS);
        shell(&project.source, "echo mine >> man/b");
        let recovered = recovered(project);
        assert_eq!(recovered.outcome, Recovery::RolledBack);
        assert_docs_stay_whole(project, &recovered);
        assert_eq!(recovered.left[3..], ["man", "man/b"].map(path));
        assert_eq!(project.read("man/sub/c"), "c\n");
        let kept = recovered.kept.unwrap();
        assert_eq!(fs::read_to_string(kept.join("man")).unwrap(), "file\n");
        assert_eq!(project.read("e"), "E\n", "the rest is taken back");

        // What was left is a change of the user's: the next undo says so, and can do the rest.
        let (root, source) = (&project.root, &project.source);
        let error = undo::undo(root, source, &Which::Latest, &[], &mut Silent).unwrap_err();
        let UndoError::Changed { paths, rest, .. } = error else {
            panic!("{error}");
        };
        assert_eq!((paths, rest), (vec![path("docs"), path("man")], true));
        let options = UndoOptions {
            changed: Changed::Leave,
            ..UndoOptions::default()
        };
        undo::undo_with(root, source, &Which::Latest, &options, &mut Silent).unwrap();
        assert_eq!(project.read("e"), "e\n");
        assert_eq!(project.read("docs/sub/c"), "c\n");
    });
}

#[test]
fn a_directory_edited_after_an_interrupted_redo_stays_whole() {
    let work = "mkdir -p docs/sub; echo a > docs/a; echo b > docs/b; echo c > docs/sub/c";
    for discarded in [false, true] {
        each_backend("echo e > e", work, |project| {
            project.promote().unwrap();
            project.undo(&[]);
            if discarded {
                discard(project.root.sandbox("risky").unwrap(), &mut Silent).unwrap();
            }
            interrupted_undo(project, &Which::LatestUndo);
            shell(&project.source, EDIT_DOCS);
            assert_docs_stay_whole(project, &recovered(project));
        });
    }
}

#[test]
fn a_directory_not_edited_after_an_interrupted_redo_can_be_redone() {
    let work = "mkdir -p docs/sub; echo a > docs/a; echo c > docs/sub/c";
    each_backend("echo e > e", work, |project| {
        project.promote().unwrap();
        project.undo(&[]);
        discard(project.root.sandbox("risky").unwrap(), &mut Silent).unwrap();
        interrupted_undo(project, &Which::LatestUndo);
        assert_eq!(recovered(project).left, []);
        assert!(!project.source.join("docs").exists());
        project.redo();
        assert_eq!(project.read("docs/sub/c"), "c\n");
    });
}

/// Stops after so many steps.
struct Cancel {
    after: usize,
    asked: usize,
}

impl Progress for Cancel {
    fn begin(&mut self, _: Phase, _: Option<u64>) {}
    fn advance(&mut self, _: u64) {}
    fn finish(&mut self) {}
    fn is_cancelled(&mut self) -> bool {
        self.asked += 1;
        self.asked > self.after
    }
}

#[test]
fn a_promote_stopped_between_any_two_steps_is_put_back() {
    let project = Project::new(PLANT);
    project.run(WORK);
    let before = snapshot(&project.source, Closeness::Inodes);
    let mut stopped = 0;
    for after in 0.. {
        let mut cancel = Cancel { after, asked: 0 };
        match promote::apply(
            &project.sandbox,
            project.plan_all(),
            Backup::None,
            &mut cancel,
        ) {
            Ok(_) => break,
            Err(PromoteError::Interrupted) => stopped += 1,
            Err(error) => panic!("{error} at {after}"),
        }
        assert_same(
            &snapshot(&project.source, Closeness::Inodes),
            &before,
            "stopped",
        );
        assert_eq!(project.leftovers(), Vec::<String>::new());
    }
    assert!(stopped > 15, "only {stopped} steps");
    assert_eq!(
        project.changes(),
        Vec::<String>::new(),
        "promoted in the end"
    );
}

#[test]
fn an_undo_stopped_between_any_two_steps_is_put_back() {
    let project = Project::new(PLANT);
    project.run(WORK);
    project.promote().unwrap();
    let before = snapshot(&project.source, Closeness::Inodes);
    for after in 0.. {
        let mut cancel = Cancel { after, asked: 0 };
        match undo::undo(
            &project.root,
            &project.source,
            &Which::Latest,
            &[],
            &mut cancel,
        ) {
            Ok(_) => {
                assert!(after > 10, "only {after} steps");
                break;
            }
            Err(undo::UndoError::Promote(PromoteError::Interrupted)) => {}
            Err(error) => panic!("{error} at {after}"),
        }
        assert_same(
            &snapshot(&project.source, Closeness::Inodes),
            &before,
            "stopped",
        );
    }
}

fn set_asides(project: &Project) -> Vec<garbage::Garbage> {
    let mut found = garbage::find(&project.root, Duration::from_secs(3600), Duration::MAX).unwrap();
    found.retain(|garbage| garbage.kind == GarbageKind::SetAside);
    found
}

#[test]
fn a_journal_whose_source_was_replaced_is_set_aside() {
    each_backend("echo a > a; echo b > b", "echo A > a; rm b", |project| {
        interrupted_promote(project);
        let around = project.source.parent().unwrap();
        shell(
            around,
            "mv project first; mkdir project; echo other > project/a",
        );
        let aside = recovered(project);
        assert_eq!(aside.outcome, Recovery::SetAside);
        assert_eq!(project.read("a"), "other\n", "it is not touched");
        let found = set_asides(project);
        assert_eq!(found.len(), 1);
        assert_eq!(Some(&found[0].path), aside.kept.as_ref());

        // The first one comes back, and is repaired.
        shell(around, "rm -r project; mv first project");
        let back = recover_thoroughly(&project.root, &project.source)
            .unwrap()
            .unwrap();
        assert_eq!(back.outcome, Recovery::RolledBack);
        assert_eq!(
            (project.read("a"), project.read("b")),
            ("a\n".into(), "b\n".into())
        );
        assert_eq!(set_asides(project), []);
        project.promote().unwrap();
    });
}

#[test]
fn garbage_collection_cleans_what_was_set_aside() {
    each_backend("echo a > a", "echo A > a", |project| {
        interrupted_promote(project);
        let around = project.source.parent().unwrap();
        shell(
            around,
            "rm -r project; mkdir project; echo other > project/a",
        );
        recovered(project);
        let found = set_asides(project);
        assert_eq!(found.len(), 1);
        assert!(found[0].is_safe());
        assert!(garbage::clean(&project.root, &found[0], &mut Silent).unwrap());
        assert!(!found[0].path.exists());
        assert_eq!(set_asides(project), []);
    });
}

#[test]
fn a_journal_whose_source_is_missing_waits_for_it() {
    each_backend("echo a > a", "echo A > a", |project| {
        interrupted_promote(project);
        let around = project.source.parent().unwrap();
        shell(around, "mv project elsewhere");
        let all = recover_all(&project.root).unwrap();
        let outcomes: Vec<_> = all
            .iter()
            .map(|found| (&found.source, found.result.as_ref().unwrap().outcome))
            .collect();
        assert_eq!(outcomes, [(&project.source, Recovery::SourceMissing)]);
        assert_eq!(set_asides(project).len(), 1, "it can be cleaned");
        shell(around, "mv elsewhere project");
        assert_eq!(set_asides(project), [], "nor when it is back");
        assert_eq!(recover_all(&project.root).unwrap().len(), 1);
        assert_eq!(project.read("a"), "a\n");

        interrupted_promote(project);
        shell(around, "rm -r project");
        let found = set_asides(project);
        assert!(garbage::clean(&project.root, &found[0], &mut Silent).unwrap());
        assert_eq!(set_asides(project), []);
        assert!(recover_all(&project.root).unwrap().is_empty());
    });
}

/// Makes everything in `dir` unreachable, as a network filesystem that does not answer is. Root is not
/// stopped by a mode, so its way there leads in a circle.
fn hide(dir: &Path) {
    match rustix::process::geteuid().is_root() {
        true => shell(dir, "mv ../around ../hidden; ln -s around ../around"),
        false => shell(dir, "chmod 000 ."),
    }
}

fn unhide(dir: &Path) {
    let above = dir.parent().unwrap();
    match rustix::process::geteuid().is_root() {
        true => shell(above, "rm around; mv hidden around"),
        false => shell(above, "chmod 755 around"),
    }
}

#[test]
fn a_journal_of_an_unreachable_source_is_no_garbage() {
    let dir = tempfile::tempdir().unwrap();
    let around = dir.path().join("around");
    fs::create_dir(&around).unwrap();
    let root = dir.path().join("root");
    let project = Project::at(&around, &root, "echo a > a", BackendKind::Copy);
    project.run("echo A > a");
    interrupted_promote(&project);
    shell(&around, "mv project elsewhere");
    let found = set_asides(&project);
    assert_eq!(found.len(), 1, "it is missing");
    hide(&around);
    assert_eq!(set_asides(&project), [], "it is not known to be missing");
    assert!(!garbage::clean(&project.root, &found[0], &mut Silent).unwrap());
    unhide(&around);
    shell(&around, "mv elsewhere project");
    hide(&around);
    assert_eq!(set_asides(&project), []);
    unhide(&around);
    assert_eq!(recovered(&project).outcome, Recovery::RolledBack);
    assert_eq!(project.read("a"), "a\n");
}

#[test]
fn no_garbage_as_an_ordinary_user() {
    some_as_ordinary_user("unreachable_source");
}

#[test]
#[should_panic(expected = "no test to run")]
fn a_filter_that_no_test_passes_fails() {
    some_as_ordinary_user("there_is_no_such_test");
}

#[test]
fn a_transaction_recovered_while_it_is_cleaned_is_left() {
    each_backend("echo a > a", "echo A > a", |project| {
        let error = rustix::io::Errno::IO.raw_os_error();
        fault::inject(Box::new(move |point| match point {
            "settle" => Action::Error(error),
            _ => Action::Continue,
        }));
        project.promote().unwrap_err();
        fault::clear();
        let around = project.source.parent().unwrap().to_owned();
        shell(&around, "mv project elsewhere");
        let found = set_asides(project);
        let (root, source) = (Root::open(project.root.path()).unwrap(), &project.source);
        let (source, once) = (source.clone(), AtomicBool::new(true));
        fault::inject(Box::new(move |point| {
            if point == "lock kept" && once.swap(false, Ordering::SeqCst) {
                shell(&around, "mv elsewhere project");
                let recovered = recover(&root, &source).unwrap().unwrap();
                assert_eq!(recovered.outcome, Recovery::Finished);
            }
            Action::Continue
        }));
        let cleaned = garbage::clean(&project.root, &found[0], &mut Silent).unwrap();
        fault::clear();
        assert!(!cleaned);
        project.undo(&[]);
        assert_eq!(project.read("a"), "a\n");
    });
}

#[test]
fn a_transaction_of_a_version_that_recorded_no_source_is_recovered() {
    each_backend("echo a > a", "echo A > a", |project| {
        interrupted_promote(project);
        shell(project.root.path(), "rm .undo/*/source");
        let all = recover_all(&project.root).unwrap();
        let sources: Vec<_> = all.iter().map(|found| &found.source).collect();
        assert_eq!(sources, [&project.source]);
        assert_eq!(project.read("a"), "a\n");
    });
}

#[test]
fn a_run_after_the_review_began_refuses_the_promote() {
    each_backend("echo a > a", "echo A > a", |project| {
        let review = Review::begin(&project.sandbox).unwrap();
        let plan = project.plan_all();
        drop(project.sandbox.lock_for_run().unwrap());
        let error =
            promote::apply_reviewed(&project.sandbox, review, plan, Backup::None, &mut Silent)
                .unwrap_err();
        assert!(matches!(error, PromoteError::RanSince { .. }), "{error}");
        assert_eq!(project.read("a"), "a\n");

        // A reader is no run, and neither is somebody who was refused.
        let review = Review::begin(&project.sandbox).unwrap();
        let plan = project.plan_all();
        drop(project.sandbox.lock_shared().unwrap());
        project.sandbox.lock_exclusive().unwrap_err();
        promote::apply_reviewed(&project.sandbox, review, plan, Backup::None, &mut Silent).unwrap();
        assert_eq!(project.read("a"), "A\n");
    });
}

#[test]
fn no_review_begins_while_a_command_runs() {
    let project = Project::new("echo a > a");
    let run = project.sandbox.lock_for_run().unwrap();
    let error = Review::begin(&project.sandbox).unwrap_err();
    assert_eq!(error.class(), Class::Busy);
    drop(run);
    Review::begin(&project.sandbox).unwrap();
}
