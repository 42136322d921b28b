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
fn git_control_files_need_to_be_allowed() {
    let project = Project::new("git init -q .; git config user.name x");
    project.run("printf '[core]\\n\\tfsmonitor = evil\\n' >> .git/config; echo t > t; rm -f .git/hooks/*.sample; printf '#!/bin/sh\\n' > .git/hooks/pre-commit");
    let config = project.read(".git/config");
    let plan = project.plan_all();
    assert!(
        plan.left_out
            .iter()
            .any(|left| left.path == path(".git/config"))
    );
    assert!(
        plan.steps
            .iter()
            .all(|step| step.path != path(".git/hooks/pre-commit"))
    );
    project.promote().unwrap();
    assert_eq!(project.read("t"), "t\n");
    assert_eq!(project.read(".git/config"), config);
    assert!(!project.source.join(".git/hooks/pre-commit").exists());
    let selection = Selection {
        git_control: sandbox_workspace::promote::GitControl::Apply,
        ..Selection::default()
    };
    project
        .promote_with(&selection, &Resolutions::default())
        .unwrap();
    assert!(project.read(".git/config").contains("evil"));
    assert_eq!(project.changes(), Vec::<String>::new());
}

/// Runs git in `dir` of the source as its user would, without the machine's own configuration.
fn git(project: &Project, dir: &str, arguments: &[&str]) -> std::process::Output {
    let home = project.source.parent().unwrap();
    std::process::Command::new("git")
        .args(arguments)
        .current_dir(project.source.join(dir))
        .env("HOME", home)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_EDITOR", "true")
        .env("GIT_CEILING_DIRECTORIES", home)
        .output()
        .unwrap()
}

/// Does in the workspace what `script` does with git. It is done to a copy of the source, since git wants
/// to know its directory's path and the workspace's mount has none.
fn run_git(project: &Project, script: &str) {
    let dir = project.source.parent().unwrap();
    shell(dir, "rm -rf prepared; cp -a project prepared");
    let prepared = dir.join("prepared");
    shell(&prepared, script);
    project.run(&format!(
        "rm -rf -- * .[!.]*; cp -a {}/. .",
        prepared.display()
    ));
}

/// The file that code planted for git makes when it runs.
fn trap(project: &Project) -> std::path::PathBuf {
    project.source.parent().unwrap().join("sprung")
}

fn left_out(project: &Project) -> Vec<String> {
    let left = project.plan_all().left_out;
    left.iter().map(|left| left.path.to_string()).collect()
}

fn allowing_git() -> Selection {
    Selection {
        git_control: sandbox_workspace::promote::GitControl::Apply,
        ..Selection::default()
    }
}

/// A repository of which the halves are in two directories: `docs` has a HEAD and points to `x`.
fn split_repository(project: &Project) -> String {
    format!(
        "mkdir -p docs x/objects x/refs; echo 'ref: refs/heads/main' > docs/HEAD; echo ../x > docs/commondir; \
         printf '[core]\\n\\trepositoryformatversion = 1\\n\\tworktree = ..\\n[extensions]\\n\\tworktreeConfig = true\\n' > x/config; \
         printf '[core]\\n\\tfsmonitor = \"touch {}; false\"\\n' > docs/config.worktree",
        trap(project).display()
    )
}

#[test]
fn split_repository_is_not_promoted() {
    let project = Project::new("mkdir docs; echo text > docs/text");
    project.run(&format!(
        "{}; echo new > docs/new",
        split_repository(&project)
    ));
    project.promote().unwrap();
    assert_eq!(project.read("docs/new"), "new\n");
    git(&project, "docs", &["status"]);
    assert!(!trap(&project).exists(), "git ran the sandbox's program");
    assert!(!project.source.join("docs/HEAD").exists());
    assert!(!project.source.join("docs/commondir").exists());
    // The trap is a real one: promoted by consent, it is sprung.
    project
        .promote_with(&allowing_git(), &Resolutions::default())
        .unwrap();
    git(&project, "docs", &["status"]);
    assert!(trap(&project).exists());
}

#[test]
fn repository_completed_by_later_promotes_is_not_promoted() {
    let project = Project::new("mkdir docs; echo text > docs/text");
    let trap = trap(&project);
    project.run(&format!(
        "mkdir docs/hooks; printf '[core]\\n\\tfsmonitor = \"touch {}; false\"\\n\\tworktree = ..\\n' > docs/config",
        trap.display()
    ));
    project.promote().unwrap();
    for script in [
        "mkdir docs/objects docs/refs",
        "echo 'ref: refs/heads/main' > docs/HEAD",
        "touch docs/more",
    ] {
        project.run(script);
        project.promote().unwrap();
    }
    assert!(project.source.join("docs/more").exists());
    git(&project, "docs", &["status"]);
    assert!(!trap.exists(), "git ran the sandbox's program");
    assert!(left_out(&project).contains(&"docs/HEAD".to_owned()));
}

#[test]
fn split_repository_is_not_promoted_half_by_half() {
    let project = Project::new("mkdir docs x; echo text > docs/text");
    project.run(&split_repository(&project));
    for part in ["docs", "x"] {
        let selection = Selection {
            paths: vec![path(part)],
            ..Selection::default()
        };
        project
            .promote_with(&selection, &Resolutions::default())
            .unwrap();
    }
    git(&project, "docs", &["status"]);
    assert!(!trap(&project).exists(), "git ran the sandbox's program");
}

const REPOSITORY: &str = "git init -q -b main .; git config user.name x; git config user.email x@y; \
    echo 1 > f; git add f; git commit -qm one; echo 2 > f; git commit -qam two; git branch old; git tag t";

#[test]
fn state_that_makes_git_run_programs_is_not_promoted() {
    let project = Project::new(REPOSITORY);
    run_git(
        &project,
        "id=$(git rev-parse HEAD); first=$(git rev-parse HEAD~1); \
         mkdir -p .git/rebase-merge .git/rebase-apply .git/sequencer .git/remotes .git/branches .git/refs/replace; \
         echo 'exec touch sprung' > .git/rebase-merge/git-rebase-todo; echo x > .git/rebase-apply/patch; \
         echo 'exec touch sprung' > .git/sequencer/todo; echo 'URL: ext::sh' > .git/remotes/origin; \
         echo 'ext::sh' > .git/branches/origin; echo $first > .git/refs/replace/$id; \
         printf \"# pack-refs with: peeled fully-peeled sorted \\n$first refs/replace/$id\\n\" > .git/packed-refs; \
         echo /elsewhere > .git/objects/info/alternates; echo x > .git/new-kind-of-thing; \
         ln -s /elsewhere .git/refs/heads/link; git config alias.x '!true'; echo 'garbage' > .git/HEAD; echo 3 > f",
    );
    let before = git(&project, ".", &["log", "--format=%H %T"]).stdout;
    project.promote().unwrap();
    assert_eq!(project.read("f"), "3\n");
    for name in [
        "rebase-merge",
        "rebase-apply",
        "sequencer",
        "remotes",
        "refs/replace",
        "packed-refs",
        "objects/info/alternates",
        "new-kind-of-thing",
        "refs/heads/link",
    ] {
        let at = project.source.join(".git").join(name);
        assert!(
            std::fs::symlink_metadata(&at).is_err(),
            "{name} was promoted"
        );
    }
    assert!(!project.source.join(".git/branches/origin").exists());
    assert!(!project.read(".git/config").contains("alias"));
    assert_eq!(
        git(&project, ".", &["log", "--format=%H %T"]).stdout,
        before
    );
    let checked = git(&project, ".", &["fsck", "--strict"]);
    assert!(checked.status.success(), "{checked:?}");
}

#[test]
fn altered_objects_are_not_promoted() {
    let project = Project::new(REPOSITORY);
    project.run(
        "for f in $(find .git/objects -type f | sort | head -3); do chmod +w $f; echo altered > $f; done; \
         rm -f $(find .git/objects -type f | sort | tail -2)",
    );
    project.promote().unwrap();
    let checked = git(&project, ".", &["fsck", "--full"]);
    assert!(checked.status.success(), "{checked:?}");
}

#[test]
fn commits_branches_and_merges_are_promoted() {
    let project = Project::new(REPOSITORY);
    run_git(
        &project,
        "git checkout -q -b topic; echo new > new; git add new; git commit -qm three; \
         git checkout -q old; echo o > o; git add o; git commit -qm four; git merge -q --no-edit topic; \
         git branch -D main -q; git stash -q 2>/dev/null || true; git tag -d t >/dev/null; git pack-refs --all; \
         git commit -q --allow-empty -m five",
    );
    assert_eq!(left_out(&project), Vec::<String>::new());
    project.promote().unwrap();
    let log = git(&project, ".", &["log", "--format=%s", "--no-merges"]).stdout;
    assert!(
        String::from_utf8_lossy(&log).starts_with("five\n"),
        "{log:?}"
    );
    let status = git(&project, ".", &["status", "--porcelain"]);
    assert_eq!(String::from_utf8_lossy(&status.stdout), "", "{status:?}");
    let checked = git(&project, ".", &["fsck", "--strict"]);
    assert!(checked.status.success(), "{checked:?}");
    assert_eq!(project.changes(), Vec::<String>::new());
}

#[test]
fn repacked_repository_stays_whole() {
    let project = Project::new(REPOSITORY);
    run_git(
        &project,
        "echo n > n; git add n; git commit -qm n; git gc -q --prune=now",
    );
    project.promote().unwrap();
    let log = git(&project, ".", &["log", "--format=%s"]).stdout;
    assert!(log.starts_with(b"n\n"));
    let checked = git(&project, ".", &["fsck", "--strict"]);
    assert!(checked.status.success(), "{checked:?}");
}

#[test]
fn repository_is_deleted_whole_or_not_at_all() {
    for script in [
        "rm -rf .git",
        "rm -rf .git/objects",
        "rm -rf .git/refs",
        "rm -rf .git/refs/heads",
        "rm .git/HEAD",
        "rm -rf .git; echo 'gitdir: /elsewhere' > .git",
        "rm .git/index .git/config; rm -rf .git/objects/??",
        "rm -rf .git; git init -q .",
        "rm -rf .git/refs/heads/*",
        "id=$(git rev-parse HEAD); git pack-refs --all; echo \"$id refs/replace/$id\" >> .git/packed-refs",
    ] {
        let project = Project::new(REPOSITORY);
        run_git(&project, &format!("{script}; echo new > new"));
        let plan = project.plan_all();
        assert!(
            plan.left_out
                .iter()
                .any(|left| left.path.starts_with(&path(".git"))),
            "{script}: {:?}",
            plan.left_out
        );
        project.promote().unwrap();
        assert_eq!(project.read("new"), "new\n", "{script}");
        let log = git(&project, ".", &["log", "--format=%s"]).stdout;
        assert_eq!(String::from_utf8_lossy(&log), "two\none\n", "{script}");
        let checked = git(&project, ".", &["fsck", "--strict"]);
        assert!(checked.status.success(), "{script}: {checked:?}");
        assert!(project.source.join(".git/index").exists(), "{script}");
    }
    let project = Project::new(REPOSITORY);
    run_git(&project, "rm -rf .git");
    project
        .promote_with(&allowing_git(), &Resolutions::default())
        .unwrap();
    assert!(!project.source.join(".git").exists());
}

#[test]
fn repository_is_kept_when_the_directory_around_it_goes() {
    for script in [
        "rm -rf all",
        "rm -rf all; ln -s f all",
        "rm -rf all; echo x > all",
        "rm -rf all; mkdir all",
        "mv all elsewhere",
    ] {
        let project = Project::new(&format!("mkdir -p all/lib; cd all/lib; {REPOSITORY}"));
        project.run(&format!("{script}; echo new > new"));
        project.promote().unwrap();
        assert_eq!(project.read("new"), "new\n", "{script}");
        let log = git(&project, "all/lib", &["log", "--format=%s"]).stdout;
        assert_eq!(String::from_utf8_lossy(&log), "two\none\n", "{script}");
        let checked = git(&project, "all/lib", &["fsck", "--strict"]);
        assert!(checked.status.success(), "{script}: {checked:?}");
    }
}

#[test]
fn hooks_that_the_repository_names_are_not_promoted() {
    let project = Project::new(&format!(
        "{REPOSITORY}; git config core.hooksPath tools/hooks; mkdir tools"
    ));
    project.run("mkdir tools/hooks; echo x > tools/hooks/pre-commit; echo y > tools/other");
    project.promote().unwrap();
    assert!(project.source.join("tools/other").exists());
    assert!(!project.source.join("tools/hooks").exists());
}

#[test]
fn new_repository_is_left_out_whole() {
    let project = Project::new("echo a > a");
    run_git(
        &project,
        "mkdir lib; cd lib; git init -q .; git config user.name x; git config user.email x@y; \
         echo f > f; git add f; git commit -qm one; cd ..; git clone -q --bare lib bare 2>/dev/null",
    );
    project.promote().unwrap();
    assert_eq!(project.read("lib/f"), "f\n");
    assert!(!project.source.join("lib/.git").exists());
    for name in ["HEAD", "config", "objects", "refs", "hooks"] {
        assert!(!project.source.join("bare").join(name).exists(), "{name}");
    }
    project
        .promote_with(&allowing_git(), &Resolutions::default())
        .unwrap();
    for dir in ["lib", "bare"] {
        let log = git(&project, dir, &["log", "--format=%s"]).stdout;
        assert_eq!(String::from_utf8_lossy(&log), "one\n", "{dir}");
    }
}

#[test]
fn commits_in_submodules_and_worktrees_are_promoted() {
    let project = Project::new(
        "git init -q -b main lib; cd lib; git config user.name x; git config user.email x@y; echo l > l; \
         git add l; git commit -qm l; cd ..; git init -q -b main app; cd app; git config user.name x; \
         git config user.email x@y; git -c protocol.file.allow=always submodule --quiet add ../lib lib/inner; \
         git commit -qm sub; git -C lib/inner config user.name x; git -C lib/inner config user.email x@y; \
         git worktree add -q ../tree 2>/dev/null",
    );
    run_git(
        &project,
        "cd app/lib/inner; echo m > m; git add m; git commit -qm m; cd ../..; git commit -qam bump; \
         git rev-parse HEAD > .git/worktrees/tree/ORIG_HEAD; echo x >> .git/worktrees/tree/logs/HEAD; \
         printf '[core]\\n\\tfsmonitor = evil\\n' >> .git/modules/lib/inner/config; \
         echo x > .git/worktrees/tree/config.worktree; mkdir .git/worktrees/other; echo x > .git/worktrees/other/HEAD",
    );
    let left = left_out(&project);
    assert_eq!(
        left,
        [
            "app/.git/modules/lib/inner/config",
            "app/.git/worktrees/other",
            "app/.git/worktrees/other/HEAD",
            "app/.git/worktrees/tree/config.worktree"
        ]
    );
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
