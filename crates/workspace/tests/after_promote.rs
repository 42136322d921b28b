//! After a promote, of everything or of some paths, a process inside sees what it saw before.
#![allow(clippy::unwrap_used, reason = "a panic is a test's verdict")]

mod project;

use project::{Project, path, shell};
use sandbox_model::BackendKind;
use sandbox_tests::Filesystem;
use sandbox_workspace::promote::{Resolutions, Selection};

const PLANT: &str = "mkdir -p dir/sub other; echo a > dir/a; echo b > dir/sub/b; echo o > other/o; \
                     echo f > file; chmod 755 dir dir/sub other; chmod 644 file dir/a dir/sub/b other/o";

/// Works, promotes `paths` (all, when there is none), and compares.
fn holds(project: Project, work: &str, paths: &[&str]) {
    let kind = project.backend();
    project.run(work);
    let before = project.seen();
    let selection = Selection {
        paths: paths.iter().map(|text| path(text)).collect(),
        ..Selection::default()
    };
    project
        .promote_with(&selection, &Resolutions::default())
        .unwrap();
    let what = format!("{kind}: {work}: {paths:?}");
    assert_eq!(project.seen(), before, "{what}");
    let left = project.changes();
    if paths.is_empty() {
        assert_eq!(left, Vec::<String>::new(), "{what}");
        // The source's own later changes show where nothing of the sandbox's is left.
        if kind == BackendKind::Overlay {
            shell(&project.source, "test ! -e dir/a || echo later > dir/a");
        }
    } else {
        project.promote().unwrap();
        assert_eq!(project.seen(), before, "{what}, then all");
        assert_eq!(project.changes(), Vec::<String>::new(), "{what}, then all");
    }
}

const WORKS: [(&str, &[&[&str]]); 6] = [
    (
        "echo new > new; echo changed > dir/a; rm file; chmod 700 dir/sub",
        &[&[], &["new"], &["dir"], &["file"]],
    ),
    (
        "mv dir moved",
        &[&[], &["moved"], &["dir"], &["moved/a"], &["dir/sub"]],
    ),
    (
        "mv dir/sub other/here; echo more > other/here/more",
        &[&[], &["other"], &["dir"], &["other/here/more"]],
    ),
    (
        "rm -r dir; mkdir -p dir/sub; echo fresh > dir/fresh",
        &[&[], &["dir/fresh"], &["dir/a"], &["dir/sub"]],
    ),
    (
        "rm -r dir; echo now-a-file > dir; rm file; mkdir file; echo x > file/x",
        &[&[], &["dir"], &["file"]],
    ),
    (
        "mv dir moved; mkdir dir; echo again > dir/a; mv other dir/other",
        &[&[], &["moved"], &["dir"], &["other"]],
    ),
];

#[test]
fn many_files_leave_the_change_set_also_from_directories_that_forbid_it() {
    let work = "for i in $(seq 60); do echo $i > dir/$i; echo $i > dir/sub/$i; echo $i > other/$i; \
                done; rm dir/a; chmod 555 other dir/sub";
    for paths in [&[][..], &["dir"], &["other/7", "dir/sub"]] {
        let project = Project::with(PLANT, BackendKind::Overlay);
        holds(project, work, paths);
    }
}

fn all_hold(project: impl Fn() -> Project) {
    for (work, selections) in WORKS {
        for paths in selections {
            holds(project(), work, paths);
        }
    }
}

#[test]
fn the_view_through_an_overlay_stays() {
    all_hold(|| Project::with(PLANT, BackendKind::Overlay));
}

#[test]
fn the_view_over_a_snapshot_stays() {
    let mounted = Filesystem::Btrfs.mount(512);
    all_hold(|| Project::on_btrfs(&mounted.path(), |source| shell(source, PLANT)));
}

#[test]
fn the_view_of_a_copy_stays() {
    all_hold(|| Project::with(PLANT, BackendKind::Copy));
}
