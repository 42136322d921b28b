//! What overlays do on this kernel that a user would trip over, met with words or a way round.
#![allow(clippy::unwrap_used, reason = "a panic is a test's verdict")]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::Command;

use sandbox_tests::{BOX, Fixture, Snapshot, User, as_both, finish};

/// An ordinary user's overlay cannot give back a file of another owner: EOVERFLOW on write.
#[test]
fn files_of_another_user_are_named_and_copy_is_offered() {
    let fixture = Fixture::new(User::Tester);
    let foreign = fixture.write("source/foreign", "root's\n");
    std::os::unix::fs::chown(&foreign, Some(0), Some(0)).unwrap();
    fs::set_permissions(&foreign, fs::Permissions::from_mode(0o666)).unwrap();
    fixture.create(&["--backend", "overlay"]);
    assert_eq!(fixture.run("cat foreign").out(), "root's\n");
    let outcome = fixture.run("echo changed > foreign");
    assert_ne!(outcome.code(), 0, "{outcome}");
    let told = format!("{} {}", fixture.ok(["info", BOX]), outcome);
    assert!(
        told.contains("foreign") || told.contains("other user") || told.contains("another user"),
        "nothing is said of the foreign file: {told}"
    );
    assert_eq!(fs::read_to_string(&foreign).unwrap(), "root's\n");
    // What is ours can still be changed and promoted.
    fixture
        .run("echo mine > mine; rm -f foreign; true")
        .succeeded();
    fixture
        .sandbox(["promote", BOX, "mine", "--yes"])
        .succeeded();
    assert_eq!(fs::metadata(&foreign).unwrap().uid(), 0);
}

#[test]
fn root_keeps_owners_of_what_it_changes() {
    for backend in ["overlay", "copy"] {
        let fixture = Fixture::new(User::Root);
        let foreign = fixture.write("source/foreign", "tester's\n");
        User::Tester.own(&foreign);
        // Without capabilities root inside needs a mode that lets it write.
        fs::set_permissions(&foreign, fs::Permissions::from_mode(0o666)).unwrap();
        fixture.create(&["--backend", backend]);
        fixture
            .run("stat -c %u foreign; echo changed >> foreign")
            .succeeded();
        fixture.ok(["promote", BOX, "--yes"]);
        assert_eq!(fs::read_to_string(&foreign).unwrap(), "tester's\nchanged\n");
        assert_eq!(
            fs::metadata(&foreign).unwrap().uid(),
            User::Tester.ids().0,
            "{backend}"
        );
    }
}

as_both! {
    /// An overlay over a tree with a mount below it fails with EINVAL for an ordinary user, and
    /// would show an empty directory to root.
    fn a_mount_below_the_source_is_named_or_copied(user) {
        let fixture = Fixture::new(user);
        fixture.write("source/data/under", "hidden by the mount\n");
        let below = fixture.source().join("data");
        finish(Command::new("mount").args(["-t", "tmpfs", "tmpfs"]).arg(&below)).succeeded();
        fs::write(below.join("file"), "on the mount\n").unwrap();
        user.own(&below);
        user.own(&below.join("file"));
        let asked = fixture.sandbox(["create", "asked", "--backend", "overlay"]);
        let automatic = fixture.sandbox(["create", BOX]);
        let seen = fixture.run("cat data/file");
        let unmounted = finish(Command::new("umount").arg(&below));
        unmounted.succeeded();
        if asked.code() == 0 {
            panic!("an overlay that cannot show the mount was made: {asked}");
        }
        assert!(asked.err().contains("data"), "the mount is not named: {asked}");
        if automatic.code() == 0 {
            assert_eq!(seen.out(), "on the mount\n", "what is mounted there is missing: {seen}");
        } else {
            assert!(automatic.err().contains("data"), "{automatic}");
        }
    }

    fn a_root_inside_the_source_is_covered_and_left_out(user) {
        for backend in ["overlay", "copy"] {
            let fixture = Fixture::new(user);
            fixture.write("source/file", "original\n");
            let root = fixture.source().join(".sandboxes");
            let sandbox = |arguments: &[&str]| {
                finish(fixture.command(arguments).env("SANDBOX_ROOT", &root))
            };
            sandbox(&["create", BOX, "--backend", backend]).succeeded();
            let seen = sandbox(&["run", BOX, "sh", "-c", "ls -A .sandboxes 2>/dev/null; cat file; echo x > new"]);
            assert_eq!(seen.succeeded().out(), "original\n");
            let changes = sandbox(&["diff", BOX, "--files"]).succeeded();
            assert!(changes.out().contains("new") && !changes.out().contains(".sandboxes"), "{changes}");
            sandbox(&["promote", BOX, "--yes"]).succeeded();
            assert!(root.join(BOX).is_dir(), "promote deleted the sandbox root");
            assert!(fixture.source().join("new").exists());
            sandbox(&["discard", BOX, "-f"]).succeeded();
        }
    }

    fn sources_below_tmp_and_run_are_at_their_own_path(user) {
        for place in ["/tmp", "/run", "/dev/shm"] {
            let fixture = Fixture::on(user, place.as_ref());
            fixture.write("source/file", "original\n");
            let neighbour = fixture.write("host/neighbour", "not yours\n");
            fixture.create(&[]);
            let seen = fixture.run("pwd -P; cat file; echo changed > file; cat file").succeeded();
            let expected = format!("{}\noriginal\nchanged\n", fixture.source().display());
            assert_eq!(seen.out(), expected);
            fixture.inside(&["read", neighbour.to_str().unwrap()]).must_fail();
            assert_eq!(fs::read_to_string(fixture.source().join("file")).unwrap(), "original\n");
        }
    }

    /// A worktree's `.git` is a file that points out of it.
    fn a_git_worktree_works_inside(user) {
        let fixture = Fixture::new(user);
        fixture.write("home/.gitconfig", "[user]\nname = Ada\nemail = ada@example.com\n");
        fixture.shell("rm attacker; git init -q ../main && cd ../main && echo one > file && git add . && \
                       git commit -qm one && git worktree add -q ../tree").succeeded();
        let tree = fixture.base().join("tree");
        let main = Snapshot::of(&fixture.base().join("main"));
        let created = fixture.ok(["create", BOX, "--from", tree.to_str().unwrap()]);
        let outcome = fixture.run("git status --short && echo two > file && git commit -qam two && git log --oneline");
        if outcome.code() == 0 {
            assert_eq!(outcome.out().lines().count(), 2, "{outcome}");
        } else {
            assert!(created.err().contains("worktree"), "it neither works nor is said: {created} {outcome}");
        }
        Snapshot::of(&fixture.base().join("main")).must_equal(&main, "the repository outside was written to");
    }

    fn a_sandbox_of_the_home_or_of_everything_needs_a_yes(user) {
        let fixture = Fixture::new(user);
        for broad in [fixture.home(), "/".into()] {
            let outcome = fixture.sandbox(["create", "broad", "--from", broad.to_str().unwrap()]).failed(1);
            assert!(outcome.err().contains("--yes"), "{outcome}");
        }
        fixture.create(&[]);
        let own = fixture.root().join(BOX);
        fixture.sandbox(["create", "own", "--from", own.to_str().unwrap()]).failed(1);
        assert!(!fixture.root().join("broad").exists() && !fixture.root().join("own").exists());
    }

    fn a_sandbox_of_the_home_hides_its_secrets_or_shows_the_source(user) {
        let fixture = Fixture::new(user);
        fixture.write("home/project/file", "mine\n");
        fixture.ok(["create", BOX, "--yes", "--from", fixture.home().to_str().unwrap()]);
        let mut command = fixture.command(["run", BOX, "sh", "-c", "cat project/file && echo x > new && pwd"]);
        command.current_dir(fixture.home());
        finish(&mut command).succeeded();
        assert!(!fixture.home().join("new").exists());
        assert!(fixture.changes().contains_key("new"), "{:?}", fixture.changes());
    }

    fn a_source_inside_the_home_is_writable_there(user) {
        let fixture = Fixture::new(user);
        fixture.write("home/project/file", "mine\n");
        fixture.write("home/other/file", "not in this sandbox\n");
        let project = fixture.home().join("project");
        fixture.ok(["create", BOX, "--from", project.to_str().unwrap()]);
        fixture.run("cat file && echo changed > file").succeeded();
        assert_eq!(fs::read_to_string(project.join("file")).unwrap(), "mine\n");
        let other = fixture.home().join("other/file");
        let outcome = fixture.sandbox(["run", BOX, "cat", other.to_str().unwrap()]);
        assert_ne!(outcome.code(), 0, "another project of the home is visible: {outcome}");
    }
}
