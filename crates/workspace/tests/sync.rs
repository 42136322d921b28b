//! Sync: the source's changes come in, the sandbox's edits stay.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod project;

use project::*;
use sandbox_model::BackendKind;
use sandbox_workspace::View;
use sandbox_workspace::progress::Silent;
use sandbox_workspace::promote::ConflictKind;
use sandbox_workspace::sync::{self, Synced};

fn synced(project: &Project) -> Synced {
    let view = View::open(&project.sandbox).unwrap();
    let plan = sync::plan(&view, &[], &mut Silent).unwrap();
    let planned: Vec<_> = plan
        .steps
        .iter()
        .map(|step| (step.path.clone(), step.action))
        .collect();
    let synced = sync::apply(&project.sandbox, plan, &mut Silent).unwrap();
    let done: Vec<_> = synced
        .steps
        .iter()
        .map(|step| (step.path.clone(), step.action))
        .collect();
    assert_eq!(planned, done);
    synced
}

fn steps(synced: &Synced) -> Vec<String> {
    synced
        .steps
        .iter()
        .map(|step| format!("{:?} {}", step.action, step.path))
        .collect()
}

const LINES: &str =
    "printf '1\\n2\\n3\\n4\\n5\\n6\\n7\\n8\\n9\\n' > text; echo f > file; echo g > gone";

#[test]
fn edits_of_both_sides_are_merged_into_the_sandbox_and_promote_without_conflict() {
    let project = Project::new(LINES);
    project.run("sed -i s/1/one/ text; chmod 755 text");
    shell(&project.source, "sed -i s/9/nine/ text");
    assert_eq!(steps(&synced(&project)), ["Merge text"]);
    project.run("grep -q one text; grep -q nine text; test -x text");
    assert_eq!(project.changes(), ["M text"]);
    project.promote().unwrap();
    assert_eq!(project.read("text"), "one\n2\n3\n4\n5\n6\n7\n8\nnine\n");
}

#[test]
fn what_cannot_be_merged_is_reported_and_left() {
    let project = Project::new(LINES);
    project.run("echo ours > file; echo ours > gone; rm text");
    shell(
        &project.source,
        "echo theirs > file; rm gone; echo theirs >> text",
    );
    let synced = synced(&project);
    assert_eq!(steps(&synced), Vec::<String>::new());
    let conflicts: Vec<_> = synced
        .conflicts
        .iter()
        .map(|c| (c.path.to_string(), c.kind))
        .collect();
    assert_eq!(
        conflicts,
        [
            ("file".into(), ConflictKind::Changed),
            ("gone".into(), ConflictKind::Deleted),
            ("text".into(), ConflictKind::Changed),
        ]
    );
    project.run("grep -q ours file; grep -q ours gone; test ! -e text");
    assert_eq!(project.read("file"), "theirs\n");
    assert!(project.promote().is_err(), "it is still a conflict");
}

#[test]
fn what_both_sides_did_alike_leaves_the_change_set() {
    let project = Project::new(LINES);
    project.run("echo same > file; rm gone; echo only > mine");
    shell(&project.source, "echo same > file; rm gone");
    let alike: &[&str] = match project.backend() {
        // What is gone below an overlay's layer needs no word any more.
        BackendKind::Overlay => &["Same file"],
        BackendKind::Btrfs | BackendKind::Copy => &["Same file", "Same gone"],
    };
    assert_eq!(steps(&synced(&project)), alike);
    assert_eq!(project.changes(), ["A mine"]);
}

#[test]
fn a_sync_leaves_nothing_to_sync() {
    let project = Project::new(LINES);
    project.run("echo ours > file");
    shell(&project.source, "echo other > untouched");
    if project.backend() != BackendKind::Overlay {
        assert_eq!(steps(&synced(&project)), ["Create untouched"]);
    }
    let synced = synced(&project);
    assert!(synced.steps.is_empty() && synced.conflicts.is_empty());
    project.run("grep -q other untouched");
}

/// What the sandbox has to show after a sync, however it is made.
fn shows_what_the_source_changed(project: &Project) {
    shell(
        &project.source,
        "echo b > d/e/f; rm d/gone; mkdir new; echo n > new/n; \
         rm -r old; chmod 700 d/e; mv moved away; mkdir moved; mv away/m moved; rmdir away; \
         rm text; mkdir text; echo t > text/t",
    );
    let synced = synced(project);
    assert!(synced.conflicts.is_empty(), "{:?}", synced.conflicts);
    assert_eq!(project.seen(), listing(&project.source));
    assert_eq!(project.changes(), Vec::<String>::new());
    project.run("grep -q b d/e/f; echo mine > d/e/f; rm -r new; echo q > d/q; echo q > moved/q; echo m >> moved/m");
    project.promote().unwrap();
    assert_eq!(project.read("d/e/f"), "mine\n");
    assert_eq!(project.seen(), listing(&project.source));
}

const NESTED: &str = "mkdir -p d/e old moved; echo m > moved/m; chmod 755 d/e; echo a > d/e/f; echo g > d/gone; echo o > old/o; echo t > text";

#[test]
fn what_only_the_source_changed_comes_in() {
    shows_what_the_source_changed(&Project::new(NESTED));
}

#[test]
fn what_only_the_source_changed_comes_into_a_copy() {
    shows_what_the_source_changed(&Project::with(NESTED, BackendKind::Copy));
}

#[test]
fn all_of_it_as_an_ordinary_user() {
    as_ordinary_user(&["all_of_it"]);
}

#[test]
fn all_of_it_on_btrfs() {
    on_btrfs(&["all_of_it"]);
}
