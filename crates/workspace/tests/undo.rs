//! Undo: what goes back, in which order, and what stays because somebody changed it since.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod project;

use project::*;
use sandbox_workspace::discard::discard;
use sandbox_workspace::progress::Silent;

#[test]
fn undo_takes_back_only_what_still_stands() {
    let project = Project::new("echo a > a; echo b > b; mkdir d; echo c > d/c");
    project.run("echo A > a; echo B > b; rm -r d; mkdir n; echo n > n/n");
    project.promote().unwrap();
    shell(&project.source, "echo mine > a; echo mine > n/mine");
    let undone = project.undo(&[]);
    assert_eq!(undone.left, [path("a"), path("n")]);
    assert_eq!(project.read("a"), "mine\n");
    assert_eq!(project.read("b"), "b\n");
    assert_eq!(project.read("d/c"), "c\n");
    assert_eq!(project.read("n/mine"), "mine\n");
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
}

#[test]
fn undo_of_some_paths_leaves_the_others() {
    let project = Project::new("echo a > a; echo b > b");
    project.run("echo A > a; echo B > b");
    project.promote().unwrap();
    let undone = project.undo(&[path("a")]);
    assert_eq!(undone.restored, [path("a")]);
    assert_eq!(
        (project.read("a"), project.read("b")),
        ("a\n".into(), "B\n".into())
    );
    project.undo(&[]);
    assert_eq!(project.read("b"), "b\n");
}

#[test]
fn undo_outlives_the_sandbox() {
    let project = Project::new("echo a > a");
    project.run("echo A > a");
    project.promote().unwrap();
    discard(project.root.sandbox("risky").unwrap(), &mut Silent).unwrap();
    project.undo(&[]);
    assert_eq!(project.read("a"), "a\n");
}

#[test]
fn all_of_it_as_an_ordinary_user() {
    as_ordinary_user(&["all_of_it"]);
}

#[test]
fn all_of_it_on_btrfs() {
    on_btrfs(&["all_of_it"]);
}
