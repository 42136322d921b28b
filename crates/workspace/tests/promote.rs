//! Promote and undo on real overlays: what arrives, what goes back, what is never overwritten.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod project;

use project::*;
use sandbox_model::BackendKind;
use sandbox_workspace::progress::Silent;
use sandbox_workspace::promote::{ConflictKind, PromoteError, Resolution, Resolutions, Selection};
use sandbox_workspace::undo::{self, Which};

#[test]
fn a_promote_gives_what_the_same_work_gives_on_a_plain_copy_and_undo_takes_it_back_exactly() {
    let project = Project::new(PLANT);
    // What leaves a subvolume for the undo area is copied, and so is what comes back.
    let closeness = match project.backend() {
        BackendKind::Btrfs => Closeness::Times,
        BackendKind::Overlay | BackendKind::Copy => Closeness::Inodes,
    };
    let before = snapshot(&project.source, closeness);
    let copy = project.source.with_file_name("copy");
    shell(&project.source, "cp -a . ../copy");
    shell(&copy, WORK);
    project.run(WORK);
    let promoted = project.promote().unwrap();
    let mut wanted = snapshot(&copy, Closeness::Contents);
    // An overlay splits hard links on write; the other name keeps its contents.
    wanted.get_mut(&b"hard/two"[..]).unwrap().contents = b"linked\n".to_vec();
    assert_same(
        &snapshot(&project.source, Closeness::Contents),
        &wanted,
        "promoted",
    );
    assert_eq!(project.changes(), Vec::<String>::new());
    assert_eq!(project.leftovers(), Vec::<String>::new());

    let undone = project.undo(&[]);
    assert_eq!(Some(&undone.of), promoted.id.as_ref());
    assert_eq!(undone.left, []);
    assert_same(&snapshot(&project.source, closeness), &before, "undone");
    assert!(matches!(
        undo::undo(
            &project.root,
            &project.source,
            &Which::Latest,
            &[],
            &mut Silent
        ),
        Err(undo::UndoError::Nothing { .. })
    ));

    // Undoing the undo promotes again.
    undo::undo(
        &project.root,
        &project.source,
        &Which::Id(undone.id),
        &[],
        &mut Silent,
    )
    .unwrap();
    assert_same(
        &snapshot(&project.source, Closeness::Contents),
        &wanted,
        "redone",
    );
}

#[test]
fn mtimes_of_promoted_files_are_the_sandboxes() {
    let project = Project::new("echo a > a");
    project.run("echo b > a; touch -d '2001-02-03 04:05:06.123456789' a");
    project.promote().unwrap();
    let line = &snapshot(&project.source, Closeness::Times)[&b"a"[..]];
    assert_eq!(line.times, Some((981_173_106, 123_456_789)));
}

fn conflict_of(
    before: &str,
    inside: &str,
    outside: &str,
) -> (Project, Vec<(String, ConflictKind)>) {
    let project = Project::new(before);
    project.run(inside);
    shell(&project.source, outside);
    let then = snapshot(&project.source, Closeness::Inodes);
    let plan = project.plan_all();
    let conflicts = plan
        .conflicts
        .iter()
        .map(|c| (c.path.to_string(), c.kind))
        .collect();
    let error = project.promote().unwrap_err();
    assert!(matches!(error, PromoteError::Conflicts(_)), "{error}");
    assert_same(
        &snapshot(&project.source, Closeness::Inodes),
        &then,
        "nothing is applied",
    );
    (project, conflicts)
}

#[test]
fn a_file_edited_on_both_sides_is_a_conflict() {
    let (project, conflicts) = conflict_of("echo a > f", "echo b > f", "echo c > f");
    assert_eq!(conflicts, [("f".into(), ConflictKind::Changed)]);
    assert_eq!(project.read("f"), "c\n");
    assert_eq!(project.changes(), ["M f"]);
}

#[test]
fn an_edit_that_hides_its_times_is_a_conflict() {
    let (_, conflicts) = conflict_of(
        "echo a > f; touch -d 2001-01-01 f",
        "echo b > f",
        "echo c > f; touch -d 2001-01-01 f",
    );
    assert_eq!(conflicts, [("f".into(), ConflictKind::Changed)]);
}

#[test]
fn a_file_deleted_in_the_source_is_a_conflict() {
    let (_, conflicts) = conflict_of("echo a > f", "echo b > f", "rm f");
    assert_eq!(conflicts, [("f".into(), ConflictKind::Deleted)]);
}

#[test]
fn a_file_renamed_in_the_source_is_a_conflict() {
    let (_, conflicts) = conflict_of("echo a > f", "echo b > f", "mv f g");
    assert_eq!(conflicts, [("f".into(), ConflictKind::Deleted)]);
}

#[test]
fn a_chmod_in_the_source_is_a_conflict() {
    let (_, conflicts) = conflict_of("echo a > f", "echo b > f", "chmod 600 f");
    assert_eq!(conflicts, [("f".into(), ConflictKind::Changed)]);
}

#[test]
fn a_directory_moved_and_replaced_in_the_source_is_a_conflict() {
    let (_, conflicts) = conflict_of(
        "mkdir d; echo a > d/f",
        "echo b > d/f",
        "mv d e; mkdir d; ln e/f d/f",
    );
    assert_eq!(conflicts, [("d/f".into(), ConflictKind::DirectoryMoved)]);
}

#[test]
fn both_sides_creating_a_path_differently_is_a_conflict() {
    let (_, conflicts) = conflict_of("true", "echo b > f", "echo c > f");
    assert_eq!(conflicts, [("f".into(), ConflictKind::BothCreated)]);
}

#[test]
fn something_new_in_a_directory_that_the_sandbox_removed_is_a_conflict() {
    let (project, conflicts) = conflict_of(
        "mkdir -p d/e; echo a > d/f",
        "rm -r d",
        "echo precious > d/e/new",
    );
    assert_eq!(conflicts, [("d/e/new".into(), ConflictKind::NewBelow)]);
    assert_eq!(project.read("d/e/new"), "precious\n");
}

#[test]
fn an_edit_in_a_directory_that_the_sandbox_removed_is_a_conflict() {
    let (_, conflicts) = conflict_of("mkdir d; echo a > d/f", "rm -r d", "echo b > d/f");
    assert_eq!(conflicts, [("d/f".into(), ConflictKind::Changed)]);
}

#[test]
fn what_the_source_has_in_a_directory_that_both_sides_made_is_not_deleted() {
    let project = Project::new("echo f > f");
    project.run("rm f; mkdir f; echo x > f/x");
    shell(
        &project.source,
        "rm f; mkdir -p f/deep; echo y > f/y; echo z > f/deep/z",
    );
    project.promote().unwrap();
    assert_eq!(project.changes(), Vec::<String>::new());
    assert!(project.plan_all().steps.is_empty());
    project.run("rm -r f");
    let conflicts = project.plan_all().conflicts;
    assert!(
        conflicts.iter().any(|c| c.path == path("f/y")),
        "{conflicts:?}"
    );
}

#[test]
fn both_sides_doing_the_same_is_no_conflict() {
    let project = Project::new("echo a > f; echo g > gone");
    project.run("echo b > f; rm gone; mkdir d; echo n > d/n");
    shell(
        &project.source,
        "echo b > f; rm gone; mkdir d; echo n > d/n",
    );
    let then = snapshot(&project.source, Closeness::Inodes);
    assert_eq!(project.promote().unwrap().id, None);
    assert_same(
        &snapshot(&project.source, Closeness::Inodes),
        &then,
        "nothing to do",
    );
    assert_eq!(project.changes(), Vec::<String>::new());
}

fn resolved(resolution: Resolution) -> Resolutions {
    Resolutions {
        others: Some(resolution),
        ..Resolutions::default()
    }
}

#[test]
fn ours_overwrites_and_undo_brings_theirs_back() {
    let (project, _) = conflict_of("echo a > f", "echo b > f", "echo c > f");
    project
        .promote_with(&Selection::default(), &resolved(Resolution::Ours))
        .unwrap();
    assert_eq!(project.read("f"), "b\n");
    project.undo(&[]);
    assert_eq!(project.read("f"), "c\n");
}

#[test]
fn theirs_keeps_the_source_and_drops_the_change() {
    let (project, _) = conflict_of("echo a > f", "echo b > f", "echo c > f");
    project
        .promote_with(&Selection::default(), &resolved(Resolution::Theirs))
        .unwrap();
    assert_eq!(project.read("f"), "c\n");
    assert_eq!(project.changes(), Vec::<String>::new());
}

/// Settles every conflict as the source has it.
fn take_theirs(before: &str, inside: &str, outside: &str) -> Project {
    let (project, _) = conflict_of(before, inside, outside);
    project
        .promote_with(&Selection::default(), &resolved(Resolution::Theirs))
        .unwrap();
    project
}

#[test]
fn theirs_shows_a_directory_as_the_source_has_it() {
    let before = "mkdir d; chmod 755 d; echo a > d/f; echo o > d/old; echo f > f";
    for (inside, outside) in [
        ("chmod 700 d; echo own > d/own; rm d/old", "chmod 750 d"),
        // The sandbox's is another directory, which hides what it started from.
        (
            "rm -r d; mkdir d; chmod 700 d; echo own > d/own",
            "chmod 750 d",
        ),
        ("rm -r d", "rm -r d; echo file > d"),
        ("rm f; mkdir f; echo x > f/x", "echo g > f"),
    ] {
        let project = take_theirs(before, inside, outside);
        assert_eq!(project.seen(), listing(&project.source), "{inside}");
        assert_eq!(project.changes(), Vec::<String>::new(), "{inside}");
    }
}

/// Two sides disagree about a directory's mode; the source's is taken, and a file in it kept back.
fn keeps_what_was_skipped(project: Project, dir: &str) {
    let own = format!("{dir}/own");
    project.run(&format!(
        "chmod 700 {dir}; setfattr -n user.x -v y {dir}; echo own > {own}"
    ));
    shell(&project.source, &format!("chmod 750 {dir}"));
    let mut resolutions = resolved(Resolution::Theirs);
    let own = path(own.trim_start_matches("./"));
    resolutions.paths.insert(own.clone(), Resolution::Skip);
    project
        .promote_with(&Selection::default(), &resolutions)
        .unwrap();
    assert_eq!(project.changes(), [format!("A {own}")]);
    project.run(&format!(
        "grep -q own {own}; test $(stat -c %a {dir}) = 750; ! getfattr -n user.x {dir} 2>/dev/null"
    ));
    project.promote().unwrap();
    assert_eq!(project.seen(), listing(&project.source));
}

#[test]
fn theirs_on_a_directory_keeps_what_was_skipped_in_it() {
    let plant = "chmod 755 .; mkdir d; chmod 755 d; echo o > d/old";
    for dir in ["d", "."] {
        keeps_what_was_skipped(Project::new(plant), dir);
        keeps_what_was_skipped(Project::with(plant, BackendKind::Copy), dir);
    }
}

#[test]
fn theirs_on_a_file_that_the_source_deleted_shows_none() {
    let project = take_theirs("mkdir d; echo a > d/f", "echo b > d/f", "rm d/f");
    project.run("test ! -e d/f");
    assert_eq!(project.changes(), Vec::<String>::new());
}

#[test]
fn theirs_below_a_directory_that_the_sandbox_removed_stays_a_conflict() {
    for inside in ["rm -r d", "mv d e", "rm -r d; echo x > d"] {
        let project = take_theirs("mkdir d; echo a > d/f", inside, "echo c > d/f");
        assert_eq!(project.read("d/f"), "c\n");
        let again = project.plan_all().conflicts;
        assert_eq!(again.len(), 1, "{inside}: {again:?}");
        assert_eq!(again[0].path, path("d/f"), "{inside}");
    }
}

#[test]
fn a_directory_made_again_after_its_removal_was_promoted_shows_nothing_old() {
    let project = Project::new("mkdir d; echo o > d/old");
    project.run("rm -r d");
    project.promote().unwrap();
    project.run("mkdir d; echo n > d/new");
    project.promote().unwrap();
    assert_eq!(project.seen(), listing(&project.source));
    assert_eq!(project.changes(), Vec::<String>::new());
}

#[test]
fn what_was_promoted_and_then_removed_is_removed_from_the_source() {
    let project = Project::new("echo a > a");
    project.run("mkdir -p d/e; echo f > d/e/f; echo n > n");
    project.promote().unwrap();
    project.run("rm -r d; mv n m");
    let gone = ["D d", "D d/e", "D d/e/f", "A m", "D n"];
    assert_eq!(project.changes(), gone);
    project.promote().unwrap();
    assert_eq!(project.seen(), listing(&project.source));
    assert_eq!(project.changes(), Vec::<String>::new());
}

#[test]
fn skip_leaves_both_sides_alone() {
    let (project, _) = conflict_of("echo a > f", "echo b > f; echo g > g", "echo c > f");
    project
        .promote_with(&Selection::default(), &resolved(Resolution::Skip))
        .unwrap();
    assert_eq!(project.read("f"), "c\n");
    assert_eq!(project.read("g"), "g\n");
    assert_eq!(project.changes(), ["M f"]);
}

#[test]
fn a_merge_takes_both_edits() {
    let text = "1\\n2\\n3\\n4\\n5\\n6\\n7\\n8\\n9\\n";
    let (project, _) = conflict_of(
        &format!("printf '{text}' > f; chmod 644 f"),
        "sed -i s/1/one/ f; chmod 755 f",
        "sed -i s/9/nine/ f",
    );
    assert!(project.plan_all().conflicts[0].mergeable);
    project
        .promote_with(&Selection::default(), &resolved(Resolution::Merge))
        .unwrap();
    assert_eq!(project.read("f"), "one\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    assert_eq!(
        snapshot(&project.source, Closeness::Contents)[&b"f"[..]].mode,
        0o755
    );
    assert_eq!(project.changes(), Vec::<String>::new());
}

#[test]
fn a_merge_of_edits_that_overlap_is_a_conflict_again() {
    let (project, _) = conflict_of("echo a > f", "echo b > f", "echo c > f");
    let error = project
        .promote_with(&Selection::default(), &resolved(Resolution::Merge))
        .unwrap_err();
    assert!(matches!(error, PromoteError::Conflicts(c) if c[0].kind == ConflictKind::CannotMerge));
}

#[test]
fn selected_paths_bring_the_directories_they_need_and_nothing_else() {
    let project = Project::new("echo a > a; echo f > f");
    project.run("mkdir -p new/deep; echo 1 > new/deep/1; echo 2 > new/2; echo b > a; rm f; mkdir f; echo x > f/x; echo y > f/y");
    let selection = Selection {
        paths: vec![path("new/deep"), path("f/x")],
        ..Selection::default()
    };
    project
        .promote_with(&selection, &Resolutions::default())
        .unwrap();
    assert_eq!(project.read("new/deep/1"), "1\n");
    assert_eq!(project.read("f/x"), "x\n");
    assert_eq!(project.read("a"), "a\n");
    assert_eq!(project.changes(), ["M a", "A f/y", "A new/2"]);
    project.promote().unwrap();
    assert_eq!(project.read("f/y"), "y\n");
    assert_eq!(project.changes(), Vec::<String>::new());
}

#[test]
fn chosen_contents_are_promoted_and_the_rest_stays_in_the_change_set() {
    let project = Project::new("printf '1\\n2\\n' > f");
    project.run("printf 'one\\ntwo\\n' > f");
    let mut selection = Selection::default();
    selection.contents.insert(path("f"), b"one\n2\n".to_vec());
    project
        .promote_with(&selection, &Resolutions::default())
        .unwrap();
    assert_eq!(project.read("f"), "one\n2\n");
    assert_eq!(project.changes(), ["M f"]);
    project.promote().unwrap();
    assert_eq!(project.read("f"), "one\ntwo\n");
    assert_eq!(project.changes(), Vec::<String>::new());
}

#[test]
fn privileges_are_stripped_and_the_path_leaves_the_change_set() {
    let project = Project::new("echo a > a");
    project.run("echo b > suid; chmod 6755 suid; echo c > a; chmod 4755 a");
    let plan = project.plan_all();
    assert!(plan.steps.iter().all(|step| !step.stripped.is_empty()));
    project.promote().unwrap();
    let found = snapshot(&project.source, Closeness::Contents);
    assert_eq!(
        (found[&b"suid"[..]].mode, found[&b"a"[..]].mode),
        (0o755, 0o755)
    );
    assert_eq!(project.changes(), Vec::<String>::new());
}

#[test]
fn half_of_a_rename_does_not_take_the_contents_from_the_other() {
    let project = Project::new("mkdir c; echo 1 > c/f; echo a > a");
    project.run("mv c d; mv a b");
    let selection = Selection {
        paths: vec![path("c"), path("a")],
        ..Selection::default()
    };
    project
        .promote_with(&selection, &Resolutions::default())
        .unwrap();
    project.run("test ! -e c; test ! -e a");
    project.run("grep -q 1 d/f; grep -q a b");
    project.promote().unwrap();
    project.run("grep -q 1 d/f; grep -q a b; test ! -e c; test ! -e a");
    assert_eq!(project.changes(), Vec::<String>::new());
}

#[test]
fn a_plan_that_the_sandbox_has_left_behind_is_refused() {
    for script in [
        "echo again > a",
        "echo back > gone",
        "chmod 700 mode",
        "rm new",
    ] {
        let project = Project::new("echo a > a; echo g > gone; echo m > mode; chmod 644 mode");
        project.run("echo A > a; rm gone; chmod 755 mode; echo n > new");
        let before = snapshot(&project.source, Closeness::Inodes);
        let plan = project.plan_all();
        project.run(script);
        let result = sandbox_workspace::promote::apply(
            &project.sandbox,
            plan,
            Default::default(),
            &mut Silent,
        );
        assert!(
            matches!(result, Err(PromoteError::Stale { .. })),
            "{script}: {result:?}"
        );
        assert_same(
            &snapshot(&project.source, Closeness::Inodes),
            &before,
            script,
        );
        assert_eq!(project.leftovers(), Vec::<String>::new());
    }
}

#[test]
fn all_of_it_as_an_ordinary_user() {
    as_ordinary_user(&["all_of_it"]);
}

#[test]
fn all_of_it_on_btrfs() {
    on_btrfs(&["all_of_it"]);
}
