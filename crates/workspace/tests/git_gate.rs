//! The gate of promote: what makes git on the host run code is left out, what git writes itself is not.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod project;

use project::*;
use sandbox_workspace::progress::Silent;
use sandbox_workspace::promote::{self, Backup, Resolutions, Selection};
use sandbox_workspace::undo::{self, Which};

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
        git_control: promote::GitControl::Apply,
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
        git_control: promote::GitControl::Apply,
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
        "mkdir docs/hooks; printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = \"touch {}; false\"\\n\\tworktree = ..\\n' > docs/config",
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

/// Makes a file of which git stores one version as a difference to another.
const LARGE: &str = "for i in $(seq 2000); do echo $i-$i-$i; done > big; git add big; git commit -qm big; \
    echo more >> big; git commit -qam bigger";

#[test]
fn repacked_repository_stays_whole() {
    for pack in ["git gc -q --prune=now", "git repack -qad", "git repack -q"] {
        let project = Project::new(&format!("{REPOSITORY}; {LARGE}"));
        run_git(
            &project,
            &format!("echo n > n; git add n; git commit -qm n; {pack}"),
        );
        project.promote().unwrap();
        assert_eq!(project.read("n"), "n\n");
        let log = git(&project, ".", &["log", "--format=%s"]).stdout;
        let log = String::from_utf8_lossy(&log);
        assert_eq!(log, "bigger\nbig\ntwo\none\n", "{pack}");
        let checked = git(&project, ".", &["fsck", "--strict"]);
        assert!(checked.status.success(), "{pack}: {checked:?}");
        project
            .promote_with(&allowing_git(), &Resolutions::default())
            .unwrap();
        let log = git(&project, ".", &["log", "--format=%s"]).stdout;
        assert!(log.starts_with(b"n\n"), "{pack}");
        let checked = git(&project, ".", &["fsck", "--strict"]);
        assert!(checked.status.success(), "{pack}: {checked:?}");
        assert_eq!(project.changes(), [""; 0]);
    }
}

#[test]
fn genuine_objects_are_promoted_in_a_pack() {
    let project = Project::new(REPOSITORY);
    run_git(
        &project,
        "git commit -q --allow-empty -m n; git repack -qad --depth=0",
    );
    project.promote().unwrap();
    let log = git(&project, ".", &["log", "--format=%s"]).stdout;
    assert_eq!(String::from_utf8_lossy(&log), "n\ntwo\none\n");
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

/// What promotes without consent, and the program in the source that it would change.
struct Named {
    /// In the source, after [`REPOSITORY`].
    set_up: &'static str,
    /// In the sandbox: `{}` is the file that shows that it ran.
    planted: &'static str,
    /// What the user runs.
    command: &'static [&'static str],
}

const FSMONITOR: &str = r#"printf '[core]\n\tfsmonitor = "touch {}; false"\n' > tools/shared.conf"#;
const HOOK: &str = "mkdir -p tools/hooks; printf '#!/bin/sh\\ntouch {}\\n' > tools/hooks/pre-commit; chmod +x tools/hooks/pre-commit";
const PROGRAM: &str = "printf '#!/bin/sh\\ntouch {}\\nfalse\\n' > tools/x; chmod +x tools/x";
const COMMIT: &[&str] = &["commit", "-q", "--allow-empty", "-m", "x"];
const STATUS: &[&str] = &["status"];

#[test]
fn what_the_configuration_names_is_not_promoted() {
    let cases = [
        Named {
            set_up: "git config include.path ../tools/shared.conf",
            planted: FSMONITOR,
            command: STATUS,
        },
        Named {
            set_up: "git config 'includeIf.gitdir:**.path' \"$PWD/tools/shared.conf\"",
            planted: FSMONITOR,
            command: STATUS,
        },
        Named {
            // By way of a file that includes another.
            set_up: "git config include.path ../tools/first.conf; \
                     printf '[include]\\n\\tpath = shared.conf\\n' > tools/first.conf",
            planted: FSMONITOR,
            command: STATUS,
        },
        Named {
            set_up: "git config extensions.worktreeConfig true; \
                     printf '[include] path = ../tools/shared.conf\\n' > .git/config.worktree",
            planted: FSMONITOR,
            command: STATUS,
        },
        Named {
            set_up: "ln -s conf tools2; mkdir conf; printf '[include]\\n\\tpath = ../tools2/../tools/shared.conf\\n' >> .git/config",
            planted: FSMONITOR,
            command: STATUS,
        },
        Named {
            set_up: "git config core.hooksPath \"$PWD/tools/hooks\"",
            planted: HOOK,
            command: COMMIT,
        },
        Named {
            set_up: "printf '[core]\\n\\thooksPath = tools/hooks # ours\\n' >> .git/config",
            planted: HOOK,
            command: COMMIT,
        },
        Named {
            set_up: "printf '[Core] HOOKSPATH = \"too\"ls\\\\\\n/hooks ; ours\\n' >> .git/config",
            planted: HOOK,
            command: COMMIT,
        },
        Named {
            set_up: "git config core.hooksPath tools/hooks",
            planted: "mkdir -p elsewhere/hooks; printf '#!/bin/sh\\ntouch {}\\n' > elsewhere/hooks/pre-commit; \
                      chmod +x elsewhere/hooks/pre-commit; rm -r tools; ln -s elsewhere tools",
            command: COMMIT,
        },
        Named {
            set_up: "rm -r .git/hooks; ln -s ../tools/hooks .git/hooks",
            planted: HOOK,
            command: COMMIT,
        },
        Named {
            set_up: "mkdir -p .git/hooks; ln -s ../../tools/x .git/hooks/pre-commit",
            planted: PROGRAM,
            command: COMMIT,
        },
        Named {
            set_up: "git config core.fsmonitor tools/x",
            planted: PROGRAM,
            command: STATUS,
        },
        Named {
            set_up: "git config core.fsmonitor 'sh tools/x'",
            planted: PROGRAM,
            command: STATUS,
        },
        Named {
            set_up: "git config core.fsmonitor '\"$(git rev-parse --show-toplevel)/tools/x\"'",
            planted: PROGRAM,
            command: STATUS,
        },
        Named {
            set_up: "git config alias.x '!echo; ./tools/x'",
            planted: PROGRAM,
            command: &["x"],
        },
        Named {
            set_up: "git config filter.f.clean tools/x; echo 'f filter=f' > .gitattributes",
            planted: PROGRAM,
            command: &["hash-object", "f"],
        },
        Named {
            set_up: "git config diff.d.textconv tools/x; echo 'f diff=d' > .gitattributes; echo 9 > f",
            planted: PROGRAM,
            command: &["diff"],
        },
        Named {
            set_up: "git config diff.external tools/x; echo 9 > f",
            planted: PROGRAM,
            command: &["diff"],
        },
        Named {
            set_up: "git config core.editor tools/x; git config sequence.editor tools/x",
            planted: PROGRAM,
            command: &["-c", "core.pager=", "rebase", "-i", "HEAD~1"],
        },
        Named {
            set_up: "git config gpg.program tools/x",
            planted: PROGRAM,
            command: &["commit", "-q", "--allow-empty", "-S", "-m", "x"],
        },
        Named {
            set_up: "git config --worktree core.fsmonitor 'LANG=C tools/x'",
            planted: PROGRAM,
            command: STATUS,
        },
    ];
    for case in cases {
        let project = Project::new(&format!("{REPOSITORY}; mkdir tools; {}", case.set_up));
        let trap = trap(&project);
        let planted = case.planted.replace("{}", &trap.display().to_string());
        project.run(&format!("{planted}; echo y > other"));
        project.promote().unwrap();
        assert_eq!(project.read("other"), "y\n", "{}", case.set_up);
        git(&project, ".", case.command);
        assert!(
            !trap.exists(),
            "git ran the sandbox's program: {}",
            case.set_up
        );
        project
            .promote_with(&allowing_git(), &Resolutions::default())
            .unwrap();
        git(&project, ".", case.command);
        assert!(trap.exists(), "the trap does not work: {}", case.set_up);
    }
}

#[test]
fn what_other_repositories_name_is_not_promoted() {
    for set_up in [
        // A repository beside what changes, a submodule's and a worktree's.
        "mkdir -p a/lib; git init -q a/lib; git -C a/lib config include.path ../../../tools/shared.conf",
        "git init -q --bare a/lib; git -C a/lib config include.path ../../tools/shared.conf; git -C a/lib config core.bare false; \
         git -C a/lib config core.worktree ../..",
        "git worktree add -q a/lib; git -C a/lib config extensions.worktreeConfig true; \
         git -C a/lib config --worktree include.path \"$PWD/tools/shared.conf\"",
        "git init -q ../sub; git -C ../sub -c user.name=x -c user.email=x@y commit -q --allow-empty -m x; \
         git -c protocol.file.allow=always submodule --quiet add ../sub a/lib; \
         git -C a/lib config include.path \"$PWD/tools/shared.conf\"",
    ] {
        let project = Project::new(&format!("{REPOSITORY}; mkdir tools; {set_up}"));
        let trap = trap(&project);
        project.run(&FSMONITOR.replace("{}", &trap.display().to_string()));
        project.promote().unwrap();
        git(&project, "a/lib", STATUS);
        assert!(!trap.exists(), "git ran the sandbox's program: {set_up}");
        project
            .promote_with(&allowing_git(), &Resolutions::default())
            .unwrap();
        git(&project, "a/lib", STATUS);
        assert!(trap.exists(), "the trap does not work: {set_up}");
    }
}

/// Half a repository each; together one that runs a program.
fn halves(project: &Project) -> (String, &'static str) {
    let first = format!(
        "echo 'ref: refs/heads/main' > docs/HEAD; \
         printf '[core]\\n\\trepositoryformatversion = 0\\n\\tworktree = ..\\n\\tfsmonitor = \"touch {}; false\"\\n' > docs/config",
        trap(project).display()
    );
    (first, "mkdir docs/objects docs/refs")
}

#[test]
fn repository_completed_while_the_plan_is_shown_is_not_promoted() {
    let project = Project::new("mkdir docs; echo text > docs/text");
    let other = project.beside("other");
    let (first, second) = halves(&project);
    project.run(&first);
    other.run(second);
    let plan = project.plan_all();
    assert_eq!(plan.left_out, []);
    other.promote().unwrap();
    let result = promote::apply(&project.sandbox, plan, Backup::None, &mut Silent);
    git(&project, "docs", STATUS);
    assert!(!trap(&project).exists(), "git ran the sandbox's program");
    let error = result.unwrap_err();
    assert!(
        matches!(&error, promote::PromoteError::GitControl(paths) if *paths == [path("docs/HEAD"), path("docs/config")]),
        "{error}"
    );
    assert_eq!(project.leftovers(), [""; 0]);
    project
        .promote_with(&allowing_git(), &Resolutions::default())
        .unwrap();
    git(&project, "docs", STATUS);
    assert!(trap(&project).exists(), "the trap does not work");
}

#[test]
fn repository_completed_by_a_redo_is_not_applied() {
    let project = Project::new("mkdir docs; echo text > docs/text");
    let other = project.beside("other");
    let (first, second) = halves(&project);
    project.run(&first);
    project.promote().unwrap();
    let undone = project.undo(&[]);
    other.run(second);
    other.promote().unwrap();
    let which = Which::Id(undone.id);
    let (root, source) = (&project.root, &project.source);
    let result = undo::undo(root, source, &which, &[], &mut Silent);
    git(&project, "docs", STATUS);
    assert!(!trap(&project).exists(), "git ran the sandbox's program");
    assert!(result.is_err());
    assert_eq!(project.leftovers(), [""; 0]);
    let options = undo::UndoOptions {
        git_control: promote::GitControl::Apply,
        ..undo::UndoOptions::default()
    };
    let redone = undo::undo_with(root, source, &which, &options, &mut Silent).unwrap();
    git(&project, "docs", STATUS);
    assert!(trap(&project).exists(), "the trap does not work");
    // It was allowed once, so it may go and come again.
    let which = Which::Id(redone.id);
    let undone = undo::undo(root, source, &which, &[], &mut Silent).unwrap();
    undo::undo(root, source, &Which::Id(undone.id), &[], &mut Silent).unwrap();
}

#[test]
fn repository_completed_by_an_undo_is_not_restored() {
    let project = Project::new("mkdir docs; echo 'ref: refs/heads/main' > docs/HEAD");
    let other = project.beside("other");
    project.run("rm docs/HEAD");
    project.promote().unwrap();
    other.run(&format!(
        "rm -f docs/HEAD; mkdir docs/objects docs/refs; \
         printf '[core]\\n\\trepositoryformatversion = 0\\n\\tworktree = ..\\n\\tfsmonitor = \"touch {}; false\"\\n' > docs/config",
        trap(&project).display()
    ));
    other.promote().unwrap();
    let (root, source) = (&project.root, &project.source);
    let first = undo::list(root, source).unwrap().pop().unwrap();
    let which = Which::Id(first.id);
    undo::undo(root, source, &which, &[], &mut Silent).unwrap_err();
    git(&project, "docs", STATUS);
    assert!(!trap(&project).exists(), "git ran the sandbox's program");
    let options = undo::UndoOptions {
        git_control: promote::GitControl::Apply,
        ..undo::UndoOptions::default()
    };
    undo::undo_with(root, source, &which, &options, &mut Silent).unwrap();
    git(&project, "docs", STATUS);
    assert!(trap(&project).exists(), "the trap does not work");
}

#[test]
fn commits_and_allowed_repositories_are_undone_and_redone() {
    for (plant, script, selection) in [
        (
            "git init -q -b main .; git config user.name x; git config user.email x@y",
            "echo 1 > f; git add f; git commit -qm one; git checkout -qb topic; git pack-refs --all",
            Selection::default(),
        ),
        (REPOSITORY, "rm -rf .git", allowing_git()),
        (
            REPOSITORY,
            "git gc -q; git config alias.x '!true'",
            allowing_git(),
        ),
        ("echo a > a", "git init -q .", allowing_git()),
    ] {
        let project = Project::new(plant);
        run_git(&project, script);
        let before = snapshot(&project.source, Closeness::Contents);
        project
            .promote_with(&selection, &Resolutions::default())
            .unwrap();
        let after = snapshot(&project.source, Closeness::Contents);
        for _ in 0..2 {
            project.undo(&[]);
            let now = snapshot(&project.source, Closeness::Contents);
            assert_same(&now, &before, script);
            project.redo();
            let now = snapshot(&project.source, Closeness::Contents);
            assert_same(&now, &after, script);
        }
    }
}

/// A pack of one blob under the id of another.
const FORGED_PACK: &str = "git init -q ../forge; cd ../forge; echo evil > evil; blob=$(git hash-object -w evil); \
    echo $blob | git pack-objects -q pack > name; mv pack-$(cat name).pack pack-$(cat name).idx ../prepared; cd ../prepared";

fn forged(rename: &str) -> String {
    format!(
        "{FORGED_PACK}; id=$(git rev-parse HEAD:f); python3 - $id pack-*.idx <<'EOF'
import hashlib, sys, struct
wanted, name = bytes.fromhex(sys.argv[1]), sys.argv[2]
idx = bytearray(open(name, 'rb').read())
idx[8:1032] = b''.join(struct.pack('>I', 1 if i >= wanted[0] else 0) for i in range(256))
idx[1032:1052] = wanted
idx[-20:] = hashlib.sha1(idx[:-20]).digest()
import os
os.chmod(name, 0o644)
open(name, 'wb').write(idx)
EOF
chmod 444 pack-*; {rename}; mv pack-* .git/objects/pack"
    )
}

#[test]
fn pack_that_replaces_objects_is_not_promoted() {
    for (rename, standing) in [
        ("true", "true"),
        (
            "true",
            "git repack -qad; touch -d yesterday .git/objects/pack/*",
        ),
        ("rm pack-*.pack", "true"),
        ("chmod 644 *.idx; echo x >> pack-*.idx", "true"),
        ("chmod 644 *.idx; echo x > pack-*.idx", "true"),
    ] {
        let project = Project::new(&format!("{REPOSITORY}; {standing}"));
        run_git(&project, &forged(rename));
        assert!(!left_out(&project).is_empty(), "{rename}");
        project.promote().unwrap();
        shell(&project.source, "rm f");
        git(&project, ".", &["checkout", "--", "f"]);
        assert_eq!(project.read("f"), "2\n", "{rename}, {standing}");
        if rename == "true" {
            project
                .promote_with(&allowing_git(), &Resolutions::default())
                .unwrap();
            shell(&project.source, "rm f");
            git(&project, ".", &["checkout", "--", "f"]);
            assert_eq!(project.read("f"), "evil\n", "the trap does not work");
        }
    }
}

#[test]
fn pack_of_an_alternate_is_not_replaced() {
    let project = Project::new(&format!(
        "mkdir up; cd up; {REPOSITORY}; cd ..; git clone -qs up down; rmdir down/.git/objects/pack"
    ));
    run_git(
        &project,
        &format!(
            "mkdir -p down/.git/objects/pack; cd down; {}",
            forged("true")
                .replace("../prepared", "../prepared/down")
                .replace("../forge", "../../forge")
        ),
    );
    project.promote().unwrap();
    shell(&project.source, "rm down/f");
    git(&project, "down", &["checkout", "--", "f"]);
    assert_eq!(project.read("down/f"), "2\n");
}

#[test]
fn fetched_packs_are_promoted() {
    for format in ["sha1", "sha256"] {
        let make = REPOSITORY.replace("git init", &format!("git init --object-format={format}"));
        // More objects than are unpacked, on top of large files that a thin pack has deltas against.
        let project = Project::new(&format!(
            "git init -q -b main up --object-format={format}; cd up; {}; \
             for i in $(seq 2000); do echo $i-$i-$i; done > big; git add big; git commit -qm big; cd ..; \
             git clone -q up down; git -C down config user.name x",
            &make[make.find("git config").unwrap()..]
        ));
        run_git(
            &project,
            "cd up; for i in $(seq 120); do echo $i > n$i; done; echo more >> big; git add .; git commit -qm three; \
             cd ../down; rm -rf .git/objects/info/commit-graph*; \
             git -c fetch.unpackLimit=1 fetch -q \"$PWD/../up\" main; git merge -q --ff-only FETCH_HEAD",
        );
        let left = left_out(&project);
        let left: Vec<_> = left.iter().filter(|at| at.starts_with("down")).collect();
        assert!(left.is_empty(), "{format}: {left:?}");
        let selection = Selection {
            paths: vec![path("down")],
            ..Selection::default()
        };
        project
            .promote_with(&selection, &Resolutions::default())
            .unwrap();
        let log = git(&project, "down", &["log", "--format=%s"]).stdout;
        assert!(log.starts_with(b"three\n"), "{format}");
        let checked = git(&project, "down", &["fsck", "--strict"]);
        assert!(checked.status.success(), "{format}: {checked:?}");
        let packs = std::fs::read_dir(project.source.join("down/.git/objects/pack")).unwrap();
        assert!(packs.count() > 0, "{format}: nothing was packed");
    }
}

#[test]
fn caches_of_objects_are_not_promoted() {
    let project = Project::new(&format!("{REPOSITORY}; git repack -qad"));
    run_git(
        &project,
        "git commit-graph write --reachable; git commit-graph write --reachable --split=replace; git multi-pack-index write; \
         echo x > .git/objects/info/http-alternates; git repack -qadb; git commit -q --allow-empty -m x",
    );
    let left = left_out(&project);
    for name in [
        "objects/info/commit-graphs",
        "objects/info/http-alternates",
        "objects/pack/multi-pack-index",
    ] {
        let wanted = format!(".git/{name}");
        assert!(
            left.iter().any(|at| at.starts_with(&wanted)),
            "{name}: {left:?}"
        );
    }
    project.promote().unwrap();
    let checked = git(&project, ".", &["fsck", "--strict"]);
    assert!(checked.status.success(), "{checked:?}");
}

fn reftable() -> String {
    REPOSITORY.replace("git init", "git init --ref-format=reftable")
}

#[test]
fn references_of_a_reftable_are_deleted_whole_or_not_at_all() {
    for script in [
        "rm -rf .git/reftable",
        "rm .git/reftable/tables.list",
        "rm .git/reftable/*.ref",
        "rm .git/reftable/*.ref; : > .git/reftable/tables.list",
    ] {
        let project = Project::new(&reftable());
        let before = git(&project, ".", &["for-each-ref"]).stdout;
        assert!(!before.is_empty());
        run_git(&project, &format!("{script}; echo new > new"));
        assert!(!left_out(&project).is_empty(), "{script}");
        project.promote().unwrap();
        assert_eq!(project.read("new"), "new\n", "{script}");
        let after = git(&project, ".", &["for-each-ref"]).stdout;
        assert_eq!(after, before, "{script}");
    }
}

#[test]
fn commits_to_a_reftable_are_promoted() {
    let project = Project::new(&reftable());
    run_git(
        &project,
        "for i in 1 2 3 4 5; do echo $i > f; git commit -qam $i; git branch b$i; done; git pack-refs; git branch -qD old",
    );
    let inside = project.source.with_file_name("prepared");
    assert_eq!(left_out(&project), [""; 0]);
    project.promote().unwrap();
    let after = git(&project, ".", &["for-each-ref"]).stdout;
    let wanted = git(&project, inside.to_str().unwrap(), &["for-each-ref"]).stdout;
    assert_eq!(after, wanted);
    assert_eq!(project.changes(), [""; 0]);
    let checked = git(&project, ".", &["fsck", "--strict"]);
    assert!(checked.status.success(), "{checked:?}");
}

#[test]
fn replacements_in_a_reftable_are_not_promoted() {
    let project = Project::new(&reftable());
    run_git(
        &project,
        "git replace HEAD HEAD~1; git pack-refs; echo new > new",
    );
    project.promote().unwrap();
    assert_eq!(project.read("new"), "new\n");
    let log = git(&project, ".", &["log", "--format=%s"]).stdout;
    assert_eq!(String::from_utf8_lossy(&log), "two\none\n");
    let checked = git(&project, ".", &["fsck", "--strict"]);
    assert!(checked.status.success(), "{checked:?}");
}

#[test]
fn references_are_not_lost_by_promoting_a_part() {
    for (make, script, part) in [
        (REPOSITORY.to_owned(), "git pack-refs --all", ".git/refs"),
        (
            reftable(),
            "for i in 1 2 3 4 5 6; do git branch b$i; done; git pack-refs",
            ".git/reftable/tables.list",
        ),
    ] {
        let project = Project::new(&make);
        let before = git(&project, ".", &["for-each-ref"]).stdout;
        run_git(&project, script);
        let selection = Selection {
            paths: vec![path(part)],
            ..Selection::default()
        };
        project
            .promote_with(&selection, &Resolutions::default())
            .unwrap();
        let after = git(&project, ".", &["for-each-ref"]).stdout;
        assert_eq!(
            String::from_utf8_lossy(&after),
            String::from_utf8_lossy(&before),
            "{part}"
        );
        // All of it is no loss.
        project.promote().unwrap();
        let after = git(&project, ".", &["for-each-ref"]).stdout;
        assert!(
            String::from_utf8_lossy(&after).contains("refs/heads/old"),
            "{part}"
        );
        assert_eq!(project.changes(), [""; 0], "{part}");
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
