//! One suite for every backend, on every filesystem, for both users: what a workspace promises
//! whatever it is made with. Each cell makes one filesystem and holds all promises on it; those
//! that break are all told, not only the first.
#![allow(clippy::unwrap_used, reason = "a panic is a test's verdict")]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;

use sandbox_tests::{BOX, Filesystem, Fixture, Snapshot, User, finish, kernel};

/// One cell of the matrix.
struct Cell<'m> {
    place: &'m Path,
    user: User,
    filesystem: Filesystem,
    backend: &'static str,
}

impl Cell<'_> {
    /// A fixture on the cell's filesystem, its source a subvolume where that can be.
    fn fixture(&self) -> Fixture {
        let fixture = Fixture::on(self.user, self.place);
        if self.filesystem == Filesystem::Btrfs {
            fixture.make_source_a_subvolume();
        }
        fixture
    }

    /// With a zoo in the source and a sandbox of it.
    fn boxed(&self) -> Fixture {
        let fixture = self.fixture();
        zoo(&fixture);
        fixture.create(&["--backend", self.backend]);
        let used = fs::read_to_string(fixture.root().join(BOX).join("backend")).unwrap();
        assert_eq!(used.trim(), self.backend);
        fixture
    }
}

/// Something of everything that a tree can hold.
fn zoo(fixture: &Fixture) {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    fixture.write("source/readme", "one\ntwo\nthree\n");
    fixture.write("source/.hidden/.gitignore", "*.o\n");
    fixture.write("source/ignored.o", "object");
    fixture.write("source/src/main", "main\n");
    fixture.write("source/src/deep/er/leaf", "leaf\n");
    fixture.write("source/old", "to be removed\n");
    fixture.write("source/tool", "#!/bin/sh\necho tool\n");
    fixture.write("source/locked", "nobody reads this\n");
    fixture.write("source/ spaces and 'quotes' \"\\", "odd\n");
    fixture.write("source/line\nbreak", "odd\n");
    fixture.write("source/-rf", "odd\n");
    fixture.write("source/ünï-\u{1F980}", "odd\n");
    fixture.write(
        Path::new("source").join(OsStr::from_bytes(b"bytes-\xff\xfe")),
        "odd\n",
    );
    fixture.write("source/linked", "one inode\n");
    let source = fixture.source();
    fs::hard_link(source.join("linked"), source.join("linked-too")).unwrap();
    fs::set_permissions(source.join("tool"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(source.join("locked"), fs::Permissions::from_mode(0o000)).unwrap();
    for (target, link) in [
        ("readme", "relative"),
        ("/etc/hostname", "absolute"),
        ("nowhere", "dangling"),
        ("src", "directory"),
    ] {
        symlink(target, source.join(link)).unwrap();
        fixture.user.own(&source.join(link));
    }
    fixture
        .shell("mkdir empty && mkfifo pipe && truncate -s 1M sparse && touch -d 2001-02-03 old")
        .succeeded();
    if kernel::keeps_attributes(&source.join("readme")) {
        fixture
            .shell("setfattr -n user.note -v kept readme")
            .succeeded();
    }
}

/// Everything of a tree that a process can see of it, as text.
const DUMP: &str = "find . -mindepth 1 ! -name attacker -printf '%P\\t%y\\t%m\\t%s\\t%n\\t%U:%G\\t%l\\n' | sort; \
    find . -type f ! -name locked ! -name attacker -printf '%T@ %P\\n' | sort; \
    find . -type f ! -name locked ! -name attacker -exec cksum {} + | sort; \
    getfattr -R -d . 2>/dev/null | sort";

fn the_view_is_exact(cell: &Cell<'_>) {
    let fixture = cell.boxed();
    let outside = fixture.shell(DUMP).succeeded();
    let inside = fixture.run(DUMP).succeeded();
    assert_eq!(inside.out(), outside.out());
    assert!(outside.out().lines().count() > 40, "the zoo is empty");
    assert!(fixture.changes().is_empty(), "looking changed something");
}

/// What the next promises do to the tree.
const EDITS: &str = "echo four >> readme && rm old && rm -r src/deep && mkdir -p new/dir made-empty && \
    echo new > new/dir/file && mv tool renamed-tool && chmod 640 ignored.o && ln -sfn elsewhere relative && \
    rm dangling && echo 'a file now' > dangling && rm -r empty && echo x > empty && \
    echo more >> linked && mkdir -p .hidden/sub && touch .hidden/sub/t";

fn edits_stay_inside(cell: &Cell<'_>) {
    let fixture = cell.boxed();
    let before = Snapshot::of(&fixture.source());
    fixture.run(EDITS).succeeded();
    Snapshot::of(&fixture.source()).must_equal(&before, "the source was touched");
    fixture.run("rm -rf ..?* .[!.]* *").code();
    Snapshot::of(&fixture.source()).must_equal(&before, "the source was touched by rm -rf");
    fixture.ok(["discard", BOX, "-f"]);
    Snapshot::of(&fixture.source()).must_equal(&before, "discard touched the source");
    assert!(!fixture.root().join(BOX).exists());
}

fn the_change_set_is_what_changed(cell: &Cell<'_>) {
    let fixture = cell.boxed();
    fixture.run(EDITS).succeeded();
    let changes = fixture.changes();
    let kind = |path: &str| changes.get(path).map_or("nothing", String::as_str);
    assert_eq!(kind("readme"), "modified");
    assert_eq!(kind("old"), "deleted");
    assert_eq!(kind("src/deep/er/leaf"), "deleted");
    assert_eq!(kind("new/dir/file"), "created");
    assert_eq!(kind("renamed-tool"), "renamed");
    assert_eq!(kind("ignored.o"), "mode");
    assert_eq!(kind("relative"), "symlink");
    assert_eq!(kind("dangling"), "type");
    assert_eq!(kind("empty"), "type");
    assert_eq!(kind("made-empty"), "created");
    assert_eq!(kind("linked"), "modified");
    for untouched in ["src/main", "locked", "pipe", "sparse", "-rf", "absolute"] {
        assert_eq!(kind(untouched), "nothing", "{untouched}");
    }
    let diff = fixture.ok(["diff", BOX]);
    assert!(
        diff.out().contains("+four") && diff.out().contains("rename to renamed-tool"),
        "{diff}"
    );
    let some = fixture.ok(["diff", BOX, "new", "--files"]);
    assert!(
        some.out().contains("new/dir/file") && !some.out().contains("readme"),
        "{some}"
    );
    assert_eq!(fixture.sandbox(["diff", BOX, "--exit-code"]).code(), 1);
}

fn a_dry_run_touches_nothing_and_a_promote_applies_all(cell: &Cell<'_>) {
    let fixture = cell.boxed();
    let before = Snapshot::of(&fixture.source());
    fixture.run(EDITS).succeeded();
    let dry = fixture.ok(["promote", BOX, "--dry-run"]);
    for word in ["readme", "old", "renamed-tool", "made-empty"] {
        assert!(
            dry.out().contains(word) || dry.err().contains(word),
            "{word} is not in the plan: {dry}"
        );
    }
    Snapshot::of(&fixture.source()).must_equal(&before, "a dry run touched the source");
    let inside = fixture.run(DUMP).succeeded().out();
    fixture.ok(["promote", BOX, "--yes"]);
    let outside = fixture.shell(DUMP).succeeded().out();
    assert_eq!(without_link_counts(&outside), without_link_counts(&inside));
    assert!(
        fixture.changes().is_empty(),
        "promoted paths leave the change set: {:?}",
        fixture.changes()
    );
    let again = fixture.run(DUMP).succeeded().out();
    assert_eq!(
        without_link_counts(&again),
        without_link_counts(&inside),
        "the view stays the same"
    );
    // Undo belongs to the source: discarding the sandbox does not lose it.
    fixture.ok(["promote", BOX, "--undo", "--yes"]);
    let after = Snapshot::of(&fixture.source()).without_directory_times();
    after.must_equal(
        &before.without_directory_times(),
        "undo did not give the original back",
    );
}

/// A file replaced by another has its own links; how many is the one thing a promote may change.
fn without_link_counts(dump: &str) -> String {
    let line = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[..] {
            [name, kind, mode, size, _, owner, link] if kind != "d" => {
                [name, kind, mode, size, owner, link].join("\t")
            }
            [name, kind, mode, _, _, owner, link] => [name, kind, mode, owner, link].join("\t"),
            _ => line.to_owned(),
        }
    };
    dump.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn some_paths_can_be_promoted(cell: &Cell<'_>) {
    let fixture = cell.boxed();
    fixture.run(EDITS).succeeded();
    fixture.ok(["promote", BOX, "readme", "new", "--yes"]);
    assert!(
        fs::read_to_string(fixture.source().join("readme"))
            .unwrap()
            .contains("four")
    );
    assert!(fixture.source().join("new/dir/file").exists());
    assert!(
        fixture.source().join("old").exists(),
        "a path that was not named was promoted"
    );
    let left = fixture.changes();
    assert!(
        !left.contains_key("readme") && left.contains_key("old"),
        "{left:?}"
    );
}

fn undo_survives_the_sandbox(cell: &Cell<'_>) {
    let fixture = cell.boxed();
    let before = Snapshot::of(&fixture.source()).without_directory_times();
    fixture.run("echo changed > readme; rm old").succeeded();
    fixture.ok(["promote", BOX, "--yes"]);
    fixture.ok(["discard", BOX, "-f"]);
    fixture.ok(["promote", BOX, "--undo", "--yes"]);
    let after = Snapshot::of(&fixture.source()).without_directory_times();
    after.must_equal(&before, "undo after discard");
}

fn the_diff_is_a_patch_that_git_applies(cell: &Cell<'_>) {
    let fixture = cell.boxed();
    // As root: an ordinary user cannot copy what it cannot read.
    let plain = fixture.base().join("plain");
    finish(
        Command::new("cp")
            .arg("-a")
            .arg(fixture.source())
            .arg(plain),
    )
    .succeeded();
    fixture
        .run(
            "echo four >> readme; rm old; mv tool renamed; echo new > brand-new; \
                 chmod +x src/main; printf 'no newline' > bare; printf '\\0binary' > binary; \
                 ln -sfn elsewhere relative",
        )
        .succeeded();
    let patch = fixture.base().join("patch");
    fs::write(&patch, fixture.ok(["diff", BOX]).stdout).unwrap();
    fs::set_permissions(&patch, fs::Permissions::from_mode(0o644)).unwrap();
    fixture
        .shell("cd ../plain && git apply ../patch")
        .succeeded();
    let dump = "find . ! -type d ! -name locked ! -name binary -printf '%P %y %m %l\\n' | sort; \
                find . -type f ! -name locked ! -name binary -exec cksum {} + | sort";
    let applied = fixture.shell(&format!("cd ../plain && {dump}")).succeeded();
    let inside = fixture.run(dump).succeeded();
    assert_eq!(applied.out(), inside.out());
}

fn a_fork_is_a_copy_of_its_own(cell: &Cell<'_>) {
    let fixture = cell.boxed();
    fixture
        .run("echo one > made; rm old; mkdir -p ~/kept")
        .succeeded();
    fixture.ok(["fork", BOX, "other"]);
    let seen = fixture.ok([
        "run",
        "other",
        "sh",
        "-c",
        "cat made; ls; echo two > made; echo f > forked",
    ]);
    assert!(
        seen.out().starts_with("one\n") && !seen.out().contains("old\n"),
        "{seen}"
    );
    let seen = fixture.run("cat made; ls").succeeded();
    assert!(
        seen.out().starts_with("one\n") && !seen.out().contains("forked"),
        "{seen}"
    );
    fixture.ok(["discard", BOX, "-f"]);
    let seen = fixture.ok(["run", "other", "cat", "made"]);
    assert_eq!(seen.out(), "two\n");
    let names = fixture.ok(["fork", "other", "many", "-n", "3"]).out();
    assert_eq!(names, "many-1\nmany-2\nmany-3\n");
}

fn a_rollback_is_where_the_snapshot_was(cell: &Cell<'_>) {
    let fixture = cell.boxed();
    fixture
        .run("echo one > made; rm old; echo edit >> readme")
        .succeeded();
    let before = fixture.run(DUMP).succeeded().out();
    fixture.ok(["snapshot", BOX, "good"]);
    fixture
        .run("echo two > made; rm readme; mkdir more; echo x > old")
        .succeeded();
    fixture.ok(["rollback", BOX, "good", "--yes"]);
    let after = fixture.run(DUMP).succeeded().out();
    assert_eq!(without_link_counts(&after), without_link_counts(&before));
    fixture
        .sandbox(["rollback", BOX, "never", "--yes"])
        .failed(1);
    fixture.sandbox(["snapshot", BOX, "good"]).failed(1);
    fixture.ok(["promote", BOX, "--yes"]);
    assert_eq!(
        fs::read_to_string(fixture.source().join("made")).unwrap(),
        "one\n"
    );
}

fn renames_of_directories_work(cell: &Cell<'_>) {
    let fixture = cell.boxed();
    fixture
        .run("mv src moved && mv moved/deep deep-moved && cat moved/main deep-moved/er/leaf")
        .succeeded();
    fixture.ok(["promote", BOX, "--yes"]);
    assert!(!fixture.source().join("src").exists());
    assert_eq!(
        fs::read_to_string(fixture.source().join("moved/main")).unwrap(),
        "main\n"
    );
    assert_eq!(
        fs::read_to_string(fixture.source().join("deep-moved/er/leaf")).unwrap(),
        "leaf\n"
    );
    // The plain call: an ordinary user's overlay cannot redirect, and says so as a rename
    // across filesystems would, which every program knows how to meet.
    let fixture = cell.boxed();
    let script = "import os, errno\ntry: os.rename('src', 'moved'); print('renamed')\n\
                  except OSError as e: print(errno.errorcode[e.errno])";
    let outcome = fixture.ok(["run", BOX, "python3", "-c", script]);
    let expected = match (cell.backend, cell.user) {
        ("copy", _) | (_, User::Root) => "renamed",
        _ => "EXDEV",
    };
    assert_eq!(outcome.out().trim(), expected);
}

/// A copy keeps hard links; an overlay splits them at the first write, and neither loses a byte.
fn hard_links_are_kept_or_split_but_never_lost(cell: &Cell<'_>) {
    let fixture = cell.boxed();
    let seen = fixture
        .run("echo more >> linked; cat linked; echo --; cat linked-too")
        .succeeded()
        .out();
    let (first, second) = seen.split_once("--\n").unwrap();
    assert_eq!(first, "one inode\nmore\n");
    if cell.backend == "copy" {
        assert_eq!(second, first, "a copy keeps the link");
    } else {
        assert_eq!(second, "one inode\n", "an overlay splits it");
    }
    fixture.ok(["promote", BOX, "--yes"]);
    assert_eq!(
        fs::read_to_string(fixture.source().join("linked")).unwrap(),
        first
    );
    assert_eq!(
        fs::read_to_string(fixture.source().join("linked-too")).unwrap(),
        second
    );
}

fn unreadable_entries_are_kept_and_promoted(cell: &Cell<'_>) {
    let fixture = cell.boxed();
    fixture
        .run(
            "echo secret > own; chmod 000 own; mkdir shut; echo in > shut/file; chmod 000 shut; \
                 rm -f locked; echo new > locked; chmod 000 locked",
        )
        .succeeded();
    let changes = fixture.changes();
    assert!(
        changes.contains_key("own") && changes.contains_key("shut/file"),
        "{changes:?}"
    );
    let diff = fixture.ok(["diff", BOX]);
    assert!(diff.out().contains("+secret"), "{diff}");
    fixture.ok(["promote", BOX, "--yes"]);
    let own = fs::metadata(fixture.source().join("own")).unwrap();
    assert_eq!(own.mode() & 0o777, 0);
    assert_eq!(
        fs::read_to_string(fixture.source().join("own")).unwrap(),
        "secret\n"
    );
    assert_eq!(
        fs::read_to_string(fixture.source().join("shut/file")).unwrap(),
        "in\n"
    );
    assert_eq!(
        fs::metadata(fixture.source().join("shut")).unwrap().mode() & 0o777,
        0
    );
    fixture.ok(["discard", BOX, "-f"]);
}

fn attributes_are_promoted(cell: &Cell<'_>) {
    let fixture = cell.boxed();
    let set =
        fixture.run("setfattr -n user.colour -v blue src/main && setfattr -x user.note readme");
    if !kernel::keeps_attributes(fixture.source().parent().unwrap()) {
        assert_ne!(
            set.code(),
            0,
            "there is nothing to promote, and it is told: {set}"
        );
        return;
    }
    set.succeeded();
    let changes = fixture.changes();
    assert!(
        changes.contains_key("src/main") && changes.contains_key("readme"),
        "{changes:?}"
    );
    fixture.ok(["promote", BOX, "--yes"]);
    let seen = fixture
        .shell("getfattr -d src/main readme 2>/dev/null")
        .succeeded()
        .out();
    assert!(
        seen.contains("user.colour=\"blue\"") && !seen.contains("user.note"),
        "{seen}"
    );
}

/// A btrfs workspace and a copy are frozen; an overlay shows unchanged files live.
fn the_source_is_seen_frozen_or_live(cell: &Cell<'_>) {
    let fixture = cell.boxed();
    fixture.write("source/readme", "changed outside\n");
    fixture.write("source/later", "made later\n");
    let seen = fixture
        .run("cat readme; cat later 2>/dev/null; true")
        .succeeded()
        .out();
    match cell.backend {
        "overlay" => assert!(seen.contains("changed outside"), "{seen}"),
        _ => assert_eq!(seen, "one\ntwo\nthree\n", "frozen at create"),
    }
    assert!(
        fixture.changes().is_empty(),
        "the source's changes are not the sandbox's: {:?}",
        fixture.changes()
    );
    fixture.ok(["promote", BOX, "--yes"]);
    assert_eq!(
        fs::read_to_string(fixture.source().join("readme")).unwrap(),
        "changed outside\n"
    );
    fixture.ok(["sync", BOX]);
    let seen = fixture.run("cat readme later").succeeded().out();
    assert_eq!(seen, "changed outside\nmade later\n", "after sync");
    assert!(fixture.changes().is_empty(), "{:?}", fixture.changes());
}

type Promise = (&'static str, fn(&Cell<'_>));

const PROMISES: &[Promise] = &[
    ("the view is exact", the_view_is_exact),
    ("edits stay inside", edits_stay_inside),
    (
        "the change set is what changed",
        the_change_set_is_what_changed,
    ),
    (
        "a dry run touches nothing, a promote applies all",
        a_dry_run_touches_nothing_and_a_promote_applies_all,
    ),
    ("some paths can be promoted", some_paths_can_be_promoted),
    ("undo survives the sandbox", undo_survives_the_sandbox),
    (
        "the diff is a patch that git applies",
        the_diff_is_a_patch_that_git_applies,
    ),
    ("a fork is a copy of its own", a_fork_is_a_copy_of_its_own),
    (
        "a rollback is where the snapshot was",
        a_rollback_is_where_the_snapshot_was,
    ),
    ("renames of directories work", renames_of_directories_work),
    (
        "hard links are kept or split but never lost",
        hard_links_are_kept_or_split_but_never_lost,
    ),
    (
        "unreadable entries are kept and promoted",
        unreadable_entries_are_kept_and_promoted,
    ),
    ("attributes are promoted", attributes_are_promoted),
    (
        "the source is seen frozen or live",
        the_source_is_seen_frozen_or_live,
    ),
];

fn conform(user: User, filesystem: Filesystem, backend: &'static str) {
    let mounted = filesystem.mount(300);
    let place = mounted.path();
    let cell = Cell {
        place: &place,
        user,
        filesystem,
        backend,
    };
    let broken: Vec<&str> = PROMISES
        .iter()
        .filter(|(_, promise)| catch_unwind(AssertUnwindSafe(|| promise(&cell))).is_err())
        .map(|(name, _)| *name)
        .collect();
    assert!(
        broken.is_empty(),
        "broken promises of {backend} on {filesystem:?} as {user:?}: {broken:#?}"
    );
}

macro_rules! cells {
    ($($name:ident: $backend:literal on $filesystem:ident;)+) => {$(
        sandbox_tests::as_both! {
            fn $name(user) { conform(user, Filesystem::$filesystem, $backend); }
        }
    )+};
}

cells! {
    overlay_on_ext4: "overlay" on Ext4;
    overlay_on_tmpfs: "overlay" on Tmpfs;
    overlay_on_btrfs: "overlay" on Btrfs;
    overlay_on_xfs: "overlay" on Xfs;
    copy_on_ext4: "copy" on Ext4;
    copy_on_tmpfs: "copy" on Tmpfs;
    copy_on_btrfs: "copy" on Btrfs;
    copy_on_xfs: "copy" on Xfs;
    btrfs_on_btrfs: "btrfs" on Btrfs;
}

sandbox_tests::as_both! {
    fn btrfs_is_refused_elsewhere_and_auto_finds_another(user) {
        for filesystem in [Filesystem::Tmpfs, Filesystem::Ext4] {
            let mounted = filesystem.mount(64);
            let fixture = Fixture::on(user, &mounted.path());
            let outcome = fixture.sandbox(["create", "never", "--backend", "btrfs"]).failed(1);
            assert!(outcome.err().contains("btrfs"), "{outcome}");
            assert!(!fixture.root().join("never").exists());
            fixture.create(&[]);
            let used = fs::read_to_string(fixture.root().join(BOX).join("backend")).unwrap();
            assert_eq!(used.trim(), "overlay");
        }
    }

    fn auto_takes_btrfs_where_it_can(user) {
        let mounted = Filesystem::Btrfs.mount(200);
        let fixture = Fixture::on(user, &mounted.path());
        fixture.create(&[]);
        let used = |name: &str| fs::read_to_string(fixture.root().join(name).join("backend")).unwrap();
        assert_eq!(used(BOX).trim(), "overlay", "a plain directory is no subvolume");
        fixture.make_source_a_subvolume();
        fixture.ok(["create", "whole"]);
        assert_eq!(used("whole").trim(), "btrfs");
        // A nested subvolume would be an empty directory in a snapshot.
        sandbox_tests::subvolume(&fixture.source().join("nested"));
        user.own(&fixture.source().join("nested"));
        fixture.write("source/nested/file", "there\n");
        fixture.ok(["create", "nested"]);
        assert_ne!(used("nested").trim(), "btrfs");
        assert_eq!(fixture.ok(["run", "nested", "cat", "nested/file"]).out(), "there\n");
        for name in [BOX, "whole", "nested"] {
            fixture.ok(["discard", name, "-f"]);
        }
        let left = finish(std::process::Command::new("btrfs").args(["subvolume", "list"]).arg(mounted.path()));
        assert_eq!(left.succeeded().out().lines().count(), 2, "a snapshot was left behind");
    }

    fn a_source_on_another_filesystem_than_the_root_works(user) {
        for backend in ["overlay", "copy"] {
            let mounted = Filesystem::Tmpfs.mount(64);
            let fixture = Fixture::new(user);
            let source = mounted.path().join("elsewhere");
            fs::create_dir(&source).unwrap();
            fs::write(source.join("file"), "original\n").unwrap();
            for path in [source.clone(), source.join("file")] {
                user.own(&path);
            }
            let before = Snapshot::of(&source).without_directory_times();
            fixture.ok(["create", BOX, "--backend", backend, "--from", source.to_str().unwrap()]);
            fixture.run("pwd; echo changed > file; mkdir -p a/b; echo new > a/b/c").succeeded();
            fixture.ok(["promote", BOX, "--yes"]);
            assert_eq!(fs::read_to_string(source.join("file")).unwrap(), "changed\n");
            assert_eq!(fs::read_to_string(source.join("a/b/c")).unwrap(), "new\n");
            let names: Vec<_> = fs::read_dir(&source).unwrap().map(|e| e.unwrap().file_name()).collect();
            assert_eq!(names.len(), 2, "the stage was left in the source: {names:?}");
            fixture.ok(["promote", BOX, "--undo", "--yes"]);
            Snapshot::of(&source).without_directory_times().must_equal(&before, "undo across filesystems");
        }
    }
}
