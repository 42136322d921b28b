//! Undo and redo: what goes back, in which order, where the changes are afterwards, and what stops
//! both.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod project;

use project::*;
use sandbox_model::{BackendKind, Class, Failure};
use sandbox_workspace::discard::discard;
use sandbox_workspace::progress::Silent;
use sandbox_workspace::promote::{Resolutions, Selection};
use sandbox_workspace::undo::{self, Changed, UndoError, UndoOptions, Undone, Which};

/// Takes back or applies again, with what changed since left as it is.
fn forced(project: &Project, which: Which) -> Undone {
    let options = UndoOptions {
        changed: Changed::Leave,
        ..UndoOptions::default()
    };
    undo::undo_with(
        &project.root,
        &project.source,
        &which,
        &options,
        &mut Silent,
    )
    .unwrap()
}

fn refused(project: &Project, which: &Which) -> UndoError {
    undo::undo(&project.root, &project.source, which, &[], &mut Silent).unwrap_err()
}

/// The same on every backend that works where the binary runs.
fn on_each_backend(plant: &str, check: impl Fn(&Project)) {
    check(&Project::new(plant));
    check(&Project::with(plant, BackendKind::Copy));
}

#[test]
fn undo_gives_the_changes_back_to_the_sandbox() {
    on_each_backend(PLANT, |project| {
        project.run(WORK);
        let (changes, seen) = (project.changes(), project.seen());
        let before = snapshot(&project.source, Closeness::Times);
        project.promote().unwrap();
        let promoted = snapshot(&project.source, Closeness::Contents);
        assert!(project.changes().is_empty());
        for _ in 0..2 {
            let undone = project.undo(&[]);
            assert!(undone.kept.is_empty(), "{:?}", undone.kept);
            assert_eq!(undone.returned, undone.restored);
            let now = snapshot(&project.source, Closeness::Times);
            assert_same(&now, &before, "the source is as before");
            assert_eq!(project.changes(), changes);
            assert_eq!(project.seen(), seen);
            project.promote().unwrap();
            let now = snapshot(&project.source, Closeness::Contents);
            assert_same(&now, &promoted, "promoted again");
            assert!(project.changes().is_empty());
        }
    });
}

#[test]
fn redo_applies_again_what_undo_took_back() {
    on_each_backend(PLANT, |project| {
        project.run(WORK);
        let changes = project.changes();
        let before = snapshot(&project.source, Closeness::Times);
        project.promote().unwrap();
        let promoted = snapshot(&project.source, Closeness::Contents);
        for _ in 0..2 {
            project.undo(&[]);
            project.redo();
            let now = snapshot(&project.source, Closeness::Contents);
            assert_same(&now, &promoted, "applied again");
            assert_eq!(project.changes(), [""; 0]);
        }
        let nothing = refused(project, &Which::LatestUndo);
        assert!(
            matches!(nothing, UndoError::NothingToRedo { .. }),
            "{nothing}"
        );
        project.undo(&[]);
        let now = snapshot(&project.source, Closeness::Times);
        assert_same(&now, &before, "the source is as before");
        assert_eq!(project.changes(), changes);
    });
}

#[test]
fn undo_keeps_the_names_of_a_file_together() {
    on_each_backend("echo o > o; ln o old; mkdir d; ln o d/old", |project| {
        project.run(
            "rm o old d/old; echo h > h1; ln h1 h2; mkdir locked; ln h1 locked/h3; chmod 555 locked
             mkdir n; echo m > n/m1; ln n/m1 n/m2; ln n/m1 z",
        );
        let together = "test h1 -ef h2; test h1 -ef locked/h3; test n/m1 -ef n/m2; test n/m1 -ef z";
        let before = "test o -ef old; test o -ef d/old";
        for _ in 0..2 {
            project.promote().unwrap();
            shell(&project.source, together);
            project.undo(&[]);
            shell(&project.source, before);
            project.run(together);
            project.redo();
            shell(&project.source, together);
            project.undo(&[]);
            shell(&project.source, before);
            project.run(together);
        }
    });
}

#[test]
fn a_changed_path_stops_the_whole_undo() {
    on_each_backend("echo a > a; echo b > b; mkdir d; echo c > d/c", |project| {
        project.run("echo A > a; echo B > b; rm -r d; mkdir n; echo n > n/n");
        project.promote().unwrap();
        shell(&project.source, "echo mine > a; echo mine > n/mine");
        let before = snapshot(&project.source, Closeness::Inodes);
        let error = refused(project, &Which::Latest);
        assert_eq!(error.class(), Class::Conflict);
        let UndoError::Changed { paths, rest, .. } = error else {
            panic!("{error}");
        };
        assert_eq!((paths, rest), (vec![path("a"), path("n")], true));
        let now = snapshot(&project.source, Closeness::Inodes);
        assert_same(&now, &before, "nothing is undone");
        assert!(project.leftovers().is_empty());
    });
}

#[test]
fn forced_undo_leaves_what_changed_and_names_it() {
    on_each_backend("echo a > a; echo b > b; mkdir d; echo c > d/c", |project| {
        project.run("echo A > a; echo B > b; rm -r d; mkdir n; echo n > n/n");
        project.promote().unwrap();
        shell(&project.source, "echo mine > a; echo mine > n/mine");
        let undone = forced(project, Which::Latest);
        assert_eq!(undone.left, [path("a"), path("n")]);
        assert_eq!(undone.returned, ["b", "d", "d/c"].map(path));
        assert_eq!(project.read("a"), "mine\n");
        assert_eq!(project.read("b"), "b\n");
        assert_eq!(project.read("d/c"), "c\n");
        assert_eq!(project.read("n/mine"), "mine\n");
        let changes = project.changes();
        assert!(changes.contains(&"M b".to_owned()), "{changes:?}");
        let nothing = refused(project, &Which::Latest);
        assert!(matches!(nothing, UndoError::Nothing { .. }), "{nothing}");
        project.redo();
        assert_eq!(project.read("b"), "B\n");
        assert_eq!(project.read("a"), "mine\n");
    });
}

#[test]
fn touching_a_promoted_file_is_no_edit() {
    on_each_backend("echo a > a; mkdir d; echo c > d/c", |project| {
        project.run("echo A > a; mkdir n; echo n > n/n; ln -s a link");
        let changes = project.changes();
        project.promote().unwrap();
        shell(
            &project.source,
            "touch -d 2001-02-03 a n/n n; touch -h -d 2001-02-03 link
             cp -p n/n copy; mv copy n/n",
        );
        project.undo(&[]);
        assert_eq!(project.read("a"), "a\n");
        assert_eq!(project.changes(), changes);
        shell(&project.source, "touch -d 2001-02-04 a");
        project.redo();
        assert_eq!(project.read("a"), "A\n");
    });
}

#[test]
fn an_edit_that_keeps_the_time_is_an_edit() {
    on_each_backend("echo a > a", |project| {
        project.run("echo A > a; echo n > n");
        project.promote().unwrap();
        let edits = [
            "cp -p n keep; printf 'x\\n' > n; touch -r keep n; rm keep",
            "printf 'n\\n' > n; setfattr -n user.note -v mine n",
            "setfattr -x user.note n; chmod 600 n",
        ];
        for edit in edits {
            shell(&project.source, edit);
            let error = refused(project, &Which::Latest);
            assert_eq!(error.class(), Class::Conflict, "{edit}");
        }
    });
}

#[test]
fn what_the_sandbox_changed_since_is_kept_for_redo() {
    on_each_backend("echo a > a; echo b > b; echo c > c", |project| {
        project.run("echo A > a; echo B > b; rm c; mkdir n; echo n > n/n");
        project.promote().unwrap();
        project.run("echo AA > a; echo new > c; rm -r n");
        let undone = project.undo(&[]);
        assert_eq!(undone.kept, ["a", "c", "n", "n/n"].map(path));
        assert_eq!(undone.returned, [path("b")]);
        let seen = project.seen();
        assert_eq!(project.read("a"), "a\n");
        assert_eq!(project.read("c"), "c\n");
        project.redo();
        assert_eq!(project.read("a"), "A\n");
        assert_eq!(project.read("n/n"), "n\n");
        assert!(!project.source.join("c").exists());
        assert_eq!(project.seen(), seen, "the sandbox keeps its own");
        project.promote().unwrap();
        assert_eq!(project.read("a"), "AA\n");
        assert_eq!(project.read("c"), "new\n");
        assert!(!project.source.join("n").exists());
    });
}

#[test]
fn what_the_sandbox_left_of_a_new_directory_goes_back() {
    on_each_backend("true", |project| {
        project.run("mkdir -p n/deep; echo e > n/e; echo f > n/f; echo g > n/deep/g");
        project.promote().unwrap();
        project.run("echo EE > n/e; echo mine > n/mine");
        let seen = project.seen();
        let undone = project.undo(&[]);
        assert_eq!(undone.kept, [path("n/e")]);
        let returned = ["n", "n/deep", "n/deep/g", "n/f"].map(path);
        assert_eq!(undone.returned, returned);
        assert!(!project.source.join("n").exists());
        assert_eq!(project.seen(), seen, "the sandbox still shows all of it");
        let changes = project.changes();
        for path in ["A n", "A n/f", "A n/deep/g", "A n/mine"] {
            assert!(changes.contains(&path.to_owned()), "{changes:?}");
        }
    });
}

#[test]
fn undo_of_some_hunks_shows_the_whole_edit_again() {
    on_each_backend("printf '1\\n2\\n3\\n' > a", |project| {
        project.run("printf 'one\\n2\\nthree\\n' > a");
        let some = Selection {
            paths: vec![path("a")],
            contents: [(path("a"), b"one\n2\n3\n".to_vec())].into(),
            ..Selection::default()
        };
        project
            .promote_with(&some, &Resolutions::default())
            .unwrap();
        assert_eq!(project.read("a"), "one\n2\n3\n");
        let undone = project.undo(&[]);
        assert_eq!(undone.returned, [path("a")]);
        assert_eq!(project.changes(), ["M a"]);
        project.promote().unwrap();
        assert_eq!(project.read("a"), "one\n2\nthree\n");
    });
}

#[test]
fn promotes_are_undone_one_after_the_other() {
    let project = Project::new("echo a > a; mkdir -p d/e; echo f > d/e/f");
    let states: Vec<_> = ["true", "echo 1 > a; echo 1 > d/e/n", "rm -r d; chmod 600 a"]
        .into_iter()
        .chain(["mkdir -p d/e; echo 3 > d/e/n", "rm -r d; echo 4 > a"])
        .map(|work| {
            project.run(work);
            project.promote().unwrap();
            snapshot(&project.source, Closeness::Times)
        })
        .collect();
    for before in states.iter().rev().skip(1) {
        project.undo(&[]);
        assert_same(
            &snapshot(&project.source, Closeness::Times),
            before,
            "undone",
        );
    }
    for after in states.iter().skip(1) {
        project.redo();
        let now = snapshot(&project.source, Closeness::Contents);
        assert_same(&now, &contents(after), "redone");
    }
}

#[test]
fn undo_of_some_paths_leaves_the_others() {
    let project = Project::new("echo a > a; echo b > b");
    project.run("echo A > a; echo B > b");
    project.promote().unwrap();
    let undone = project.undo(&[path("a")]);
    assert_eq!(undone.restored, [path("a")]);
    assert_eq!(project.changes(), ["M a"]);
    assert_eq!(
        (project.read("a"), project.read("b")),
        ("a\n".into(), "B\n".into())
    );
    project.undo(&[]);
    assert_eq!(project.read("b"), "b\n");
    assert_eq!(project.changes(), ["M a", "M b"]);
}

#[test]
fn part_of_a_new_directory_cannot_be_undone_alone() {
    let project = Project::new("true");
    project.run("mkdir n; echo n > n/n");
    project.promote().unwrap();
    let (root, source) = (&project.root, &project.source);
    let error = undo::undo(root, source, &Which::Latest, &[path("n/n")], &mut Silent).unwrap_err();
    assert!(error.to_string().contains("part of n"), "{error}");
}

#[test]
fn what_was_reverted_by_hand_does_not_stop_an_undo() {
    let project = Project::new("echo a > a; echo b > b");
    project.run("echo A > a; echo B > b");
    project.promote().unwrap();
    shell(&project.source, "echo a > a");
    let undone = project.undo(&[]);
    assert_eq!(undone.restored, [path("b")]);
    assert_eq!(project.read("b"), "b\n");
    let nothing = refused(&project, &Which::Latest);
    assert!(matches!(nothing, UndoError::Nothing { .. }), "{nothing}");
}

#[test]
fn undo_waits_for_nobody_in_the_sandbox() {
    let project = Project::new("echo a > a");
    project.run("echo A > a");
    project.promote().unwrap();
    let run = project.sandbox.lock_shared().unwrap();
    assert_eq!(refused(&project, &Which::Latest).class(), Class::Busy);
    assert_eq!(project.read("a"), "A\n");
    drop(run);
    project.undo(&[]);
}

#[test]
fn undo_outlives_the_sandbox() {
    let project = Project::new("echo a > a");
    project.run("echo A > a");
    project.promote().unwrap();
    discard(project.root.sandbox("risky").unwrap(), &mut Silent).unwrap();
    let undone = project.undo(&[]);
    assert_eq!(undone.kept, [path("a")]);
    assert_eq!(project.read("a"), "a\n");
    project.redo();
    assert_eq!(project.read("a"), "A\n");
}

#[test]
fn all_of_it_as_an_ordinary_user() {
    as_ordinary_user(&["all_of_it"]);
}

#[test]
fn all_of_it_on_btrfs() {
    on_btrfs(&["all_of_it"]);
}
