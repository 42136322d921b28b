//! What people do with it: real programs inside, and a coding agent's worst day.
#![allow(clippy::unwrap_used, reason = "a panic is a test's verdict")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use sandbox_tests::{BOX, Fixture, Snapshot, User, as_both, finish, need};

/// A repository with a branch to rebase.
fn repository(user: User) -> Fixture {
    need("git");
    let fixture = Fixture::new(user);
    fixture.write(
        "home/.gitconfig",
        "[user]\nname = Ada\nemail = ada@example.com\n[init]\ndefaultBranch = main\n",
    );
    fixture
        .shell("set -e; rm attacker; git init -q; echo '*.log' > .gitignore; echo base > base; mkdir src; \
                echo code > src/code; git add .; git commit -qm base; git checkout -qb topic; \
                echo topic > topic; git add .; git commit -qm topic; echo more >> topic; git commit -qam more; \
                git checkout -q main; echo main >> base; git commit -qam main; git checkout -q topic; \
                echo noise > build.log; mkdir untracked; echo precious > untracked/notes")
        .succeeded();
    fixture
}

as_both! {
    fn a_rebase_inside_is_promoted_whole(user) {
        let fixture = repository(user);
        fixture.create(&[]);
        let before = fixture.shell("git log --oneline --all").succeeded().out();
        fixture.run("git rebase -q main && git status --short && git fsck").succeeded();
        let rebased = fixture.run("git log --format=%H%s -4").succeeded().out();
        assert_eq!(fixture.shell("git log --oneline --all").succeeded().out(), before, "outside is as it was");
        fixture.ok(["promote", BOX, "--yes", "--allow-git-control"]);
        // This refreshes the index, which is no change.
        fixture.shell("git fsck --strict && git diff --exit-code && test -z \"$(git status --short | grep -v untracked)\"").succeeded();
        assert_eq!(fixture.shell("git log --format=%H%s -4").succeeded().out(), rebased);
        fixture.ok(["promote", BOX, "--undo", "--yes"]);
        assert_eq!(fixture.shell("git fsck; git log --oneline --all").succeeded().out(), before);
    }

    /// As a container leaves it in a project: a file of root's that its owner's neighbour cannot read.
    fn a_file_of_another_user_is_deleted_and_restored(user) {
        let fixture = Fixture::new(user);
        let path = fixture.source().join("root.cache");
        fs::write(&path, "made by root\n").unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        fixture.write("source/file", "before\n");
        fixture.create(&[]);
        fixture.run("rm -f root.cache; echo after > file").succeeded();
        for _ in 0..2 {
            fixture.ok(["promote", BOX, "--yes"]);
            assert!(!path.exists());
            fixture.ok(["promote", BOX, "--undo", "--yes"]);
            assert_eq!(fs::read_to_string(&path).unwrap(), "made by root\n");
            assert_eq!(fs::read_to_string(fixture.source().join("file")).unwrap(), "before\n");
            fixture.ok(["promote", BOX, "--redo", "--yes"]);
            assert!(!path.exists());
            fixture.ok(["promote", BOX, "--undo", "--yes"]);
        }
    }

    /// The ordinary working day of an agent gone wrong.
    fn rm_and_git_clean_inside_leave_the_source_byte_identical(user) {
        for script in [
            "rm -rf . 2>/dev/null; rm -rf -- * .[!.]* 2>/dev/null; ls -A",
            "git clean -fdxq && git checkout -qf main && git branch -qD topic && git reflog expire --expire=now --all && git gc -q --prune=now",
            "find . -type f -exec sh -c ': > \"$1\"' _ {} \\; ; chmod -R 000 . 2>/dev/null; true",
            "git reset -q --hard main; rm -rf .git; mv src /tmp/; touch everything; true",
        ] {
            for backend in ["overlay", "copy"] {
                let fixture = repository(user);
                let before = Snapshot::of(&fixture.source());
                fixture.create(&["--backend", backend]);
                let outcome = fixture.run(script);
                let changed = fixture.ok(["diff", BOX, "--files"]);
                assert!(!changed.out().trim().is_empty(), "it did nothing: {outcome}");
                fixture.ok(["discard", BOX, "-f"]);
                Snapshot::of(&fixture.source()).must_equal(&before, script);
                let left: Vec<_> = fs::read_dir(fixture.root()).unwrap()
                    .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
                    .filter(|name| !name.starts_with('.'))
                    .collect();
                assert!(left.is_empty(), "{left:?}");
                let trash = fixture.root().join(".trash");
                assert!(fs::read_dir(trash).map(Iterator::count).unwrap_or(0) == 0, "the trash is not emptied");
            }
        }
    }

    fn try_shows_what_changed_and_discards_it(user) {
        let fixture = repository(user);
        let before = Snapshot::of(&fixture.source());
        let outcome = fixture.ok(["try", "--discard", "--", "sh", "-c", "rm -rf src && echo new > new"]);
        let told = outcome.out() + &outcome.err();
        assert!(told.contains("src/code") && told.contains("new"), "{told}");
        Snapshot::of(&fixture.source()).must_equal(&before, "try touched the source");
        let outcome = fixture.sandbox(["try", "--promote", "--yes", "--", "sh", "-c", "echo done > done"]);
        outcome.succeeded();
        assert_eq!(fs::read_to_string(fixture.source().join("done")).unwrap(), "done\n");
        assert_eq!(fixture.sandbox(["try", "--discard", "--", "sh", "-c", "exit 3"]).code(), 3);
    }

    /// From a wheel and from sources, without any network.
    fn a_python_environment_is_made_and_used_inside(user) {
        let python = PathBuf::from("/usr/bin/python3");
        assert!(python.is_file(), "this test needs Debian's python3 with venv and pip");
        let fixture = Fixture::new(user);
        fixture.write("source/package/setup.py",
            "from setuptools import setup\nsetup(name='greet', version='1.0', py_modules=['greet'])\n");
        fixture.write("source/package/greet.py", "def hello(): return 'hello from the package'\n");
        fixture.create(&["--isolated-network"]);
        let before = Snapshot::of(&fixture.source());
        let outcome = fixture.run(
            "set -e; /usr/bin/python3 -m venv --system-site-packages venv; \
             venv/bin/pip install -q --no-index --no-build-isolation ./package; \
             venv/bin/python -c 'import greet; print(greet.hello())'",
        );
        assert!(outcome.out().contains("hello from the package"), "{outcome}");
        Snapshot::of(&fixture.source()).must_equal(&before, "pip wrote outside");
        // Absolute paths in the environment are the source's own: promoted, it still works.
        fixture.ok(["promote", BOX, "--yes"]);
        let outside = fixture.shell("venv/bin/python -c 'import greet; print(greet.hello())'").succeeded();
        assert!(outside.out().contains("hello from the package"));
    }

    fn a_node_package_is_installed_inside(user) {
        need("node");
        need("npm");
        let fixture = Fixture::new(user);
        fixture.write("source/dep/package.json", r#"{"name": "dep", "version": "1.0.0", "main": "index.js"}"#);
        fixture.write("source/dep/index.js", "module.exports = () => 'hello from dep';\n");
        fixture.write("source/app/package.json",
            r#"{"name": "app", "version": "1.0.0", "scripts": {"postinstall": "node -e \"require('fs').writeFileSync(process.env.HOME + '/.npm-was-here', '')\""}, "dependencies": {"dep": "file:../dep"}}"#);
        fixture.create(&["--isolated-network"]);
        let outcome = fixture.run(
            "cd app && npm install --offline --no-audit --no-fund && node -e \"console.log(require('dep')())\"",
        );
        let outcome = outcome.succeeded();
        assert!(outcome.out().contains("hello from dep"), "{outcome}");
        assert!(!fixture.home().join(".npm").exists(), "npm's cache was written outside");
        assert!(!fixture.home().join(".npm-was-here").exists());
        assert!(!fixture.source().join("app/node_modules").exists());
        assert!(fixture.changes().keys().any(|path| path.starts_with("app/node_modules")));
    }
}

/// A build with the toolchain of the home, as it is kept there.
#[test]
fn a_crate_is_built_and_tested_inside() {
    let cargo = need("cargo");
    let home = PathBuf::from(std::env::var_os("HOME").expect("HOME"));
    let fixture = Fixture::new(User::Root);
    fixture.write(
        "source/Cargo.toml",
        "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
    );
    fixture.write(
        "source/src/lib.rs",
        "pub fn two() -> u32 { 2 }\n#[test]\nfn is_two() { assert_eq!(two(), 2); }\n",
    );
    let sandbox = |arguments: &[&str]| {
        let mut command: Command = fixture.command(arguments);
        // The real home: its toolchains are what has to work. The source and the root stay ours.
        command.env("HOME", &home).env_remove("CARGO_TARGET_DIR");
        command.env(
            "PATH",
            format!("{}:/usr/bin:/bin", cargo.parent().unwrap().display()),
        );
        finish(&mut command)
    };
    sandbox(&["create", BOX, "--isolated-network"]).succeeded();
    let outcome = sandbox(&["run", BOX, "cargo", "test", "--offline"]).succeeded();
    assert!(outcome.out().contains("1 passed"), "{outcome}");
    assert!(!fixture.source().join("target").exists());
    let again = sandbox(&["run", BOX, "cargo", "test", "--offline"]).succeeded();
    assert!(
        !again.err().contains("Compiling"),
        "the build is kept: {again}"
    );
    let seen = sandbox(&[
        "run",
        BOX,
        "sh",
        "-c",
        "ls -A ~; cat ~/.cargo/credentials.toml ~/.ssh/* 2>/dev/null; true",
    ]);
    assert!(
        !seen.out().contains(".claude") && !seen.out().contains(".ssh"),
        "{seen}"
    );
    sandbox(&["discard", BOX, "-f"]).succeeded();
}
