//! One suite for every backend, on every filesystem, for root and an ordinary user, at the level of
//! files: what a workspace shows, what it keeps apart, and what copies of it keep. Nothing is
//! launched; an overlay is mounted in a child's own namespaces, as a launch would.
//!
//! Each test makes one filesystem and runs this binary again on it as the user in question.
#![allow(clippy::unwrap_used, reason = "a panic is a test's verdict")]
#![allow(clippy::print_stderr, reason = "and it says what differs")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use sandbox_linux::trial::{self, OverlayTrial};
use sandbox_model::{
    BackendChoice, BackendKind, EntryKind, RelPath, SandboxName, Settings, Timestamp,
    WorkspaceMount,
};
use sandbox_tests::{Filesystem, Mounted, User, unmount};
use sandbox_workspace::checkpoint::{fork, rollback, snapshot};
use sandbox_workspace::discard::discard;
use sandbox_workspace::progress::Silent;
use sandbox_workspace::root::{CreateRequest, Root, RootError};
use sandbox_workspace::sandbox::Sandbox;
use sandbox_workspace::side::{Side, Xattrs};
use sandbox_workspace::transfer::copy_tree;
use sandbox_workspace::tree::{Dir, Replace, Tree};

/// Where the suite run as the user finds its place.
const PLACE: &str = "SANDBOX_BACKENDS_PLACE";

fn rel(text: &str) -> RelPath {
    RelPath::new(text.as_bytes()).unwrap()
}

// What a tree shows.

#[derive(Debug, PartialEq, Eq)]
struct Seen {
    kind: EntryKind,
    mode: u32,
    owner: (u32, u32),
    /// Of a directory it follows what is done in it, at times that cannot agree.
    mtime: Option<Timestamp>,
    contents: Vec<u8>,
    xattrs: Xattrs,
}

fn describe(tree: &Tree) -> io::Result<BTreeMap<RelPath, Seen>> {
    let mut seen = BTreeMap::new();
    let mut pending = vec![RelPath::root()];
    while let Some(path) = pending.pop() {
        let found = tree.stat(&path)?.ok_or(io::ErrorKind::NotFound)?;
        let mut contents = Vec::new();
        match found.entry.kind {
            EntryKind::File => drop(tree.open(&path)?.read_to_end(&mut contents)?),
            EntryKind::Symlink => contents = tree.read_link(&path)?,
            EntryKind::Directory => {
                pending.extend(tree.list(&path)?.iter().map(|name| path.join(name)));
            }
            _ => {}
        }
        let entry = found.entry;
        let about = Seen {
            kind: entry.kind,
            mode: entry.mode,
            owner: (entry.uid, entry.gid),
            mtime: (entry.kind != EntryKind::Directory).then_some(entry.mtime),
            contents,
            xattrs: tree.xattrs(&path)?,
        };
        seen.insert(path, about);
    }
    Ok(seen)
}

#[track_caller]
fn assert_same(what: &str, a: &BTreeMap<RelPath, Seen>, b: &BTreeMap<RelPath, Seen>) {
    for path in a.keys().chain(b.keys()) {
        assert_eq!(a.get(path), b.get(path), "{what}: {path}");
    }
}

/// Works on what a process inside would see.
#[track_caller]
fn inside(sandbox: &Sandbox, work: impl FnOnce(&Tree) -> io::Result<()>) {
    let by_descriptor = |fd: BorrowedFd<'_>| -> io::Result<()> {
        work(&Tree::open(Path::new(&format!(
            "/proc/self/fd/{}",
            fd.as_raw_fd()
        )))?)
    };
    match sandbox.mount() {
        WorkspaceMount::Bind { dir } => {
            let tree = Tree::open(&dir).unwrap();
            by_descriptor(tree.fd()).unwrap();
        }
        WorkspaceMount::Overlay {
            lower,
            upper,
            work: scratch,
            xattr,
        } => {
            let layers = OverlayTrial {
                lower: &lower,
                upper: &upper,
                work: &scratch,
                xattr,
            };
            trial::overlay(&layers, by_descriptor).unwrap();
        }
    }
}

/// Is what a process inside would see what `wanted` has?
#[track_caller]
fn assert_shows(what: &str, sandbox: &Sandbox, wanted: &BTreeMap<RelPath, Seen>) {
    inside(sandbox, |tree| {
        let seen = describe(tree)?;
        for path in seen.keys().chain(wanted.keys()) {
            if seen.get(path) != wanted.get(path) {
                let (seen, wanted) = (seen.get(path), wanted.get(path));
                eprintln!("{what}: {path}\n  seen {seen:?}\n  not  {wanted:?}");
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        Ok(())
    });
}

// What is done to it.

/// A source with something of everything.
fn plant(at: &Path) {
    fs::create_dir_all(at.join("src/deep")).unwrap();
    fs::create_dir_all(at.join("lib/inner")).unwrap();
    fs::create_dir(at.join("empty")).unwrap();
    for (name, text) in [
        ("readme", "one\ntwo\n"),
        (".hidden", "dot"),
        ("src/main", "main"),
        ("src/deep/leaf", "leaf"),
        ("lib/inner/code", "code"),
        ("lib/other", "other"),
        ("tool", "#!/bin/sh"),
        ("locked", "secret"),
        ("line\nbreak", "odd"),
        ("doomed", "x"),
    ] {
        fs::write(at.join(name), text).unwrap();
    }
    fs::write(at.join("large"), vec![5; 200_000]).unwrap();
    fs::hard_link(at.join("readme"), at.join("src/linked")).unwrap();
    symlink("readme", at.join("link")).unwrap();
    symlink("/etc/passwd", at.join("out")).unwrap();
    let root = Dir::open(at).unwrap();
    root.make_node(b"pipe", EntryKind::Fifo, 0).unwrap();
    root.create_file(b"bytes-\xff")
        .unwrap()
        .write_all(b"odd")
        .unwrap();
    root.set_xattr(b"readme", b"user.note", b"kept").unwrap();
    root.set_times(b"readme", Timestamp(1_000_000_000, 7))
        .unwrap();
    for (name, mode) in [("tool", 0o755), ("locked", 0o000), ("lib", 0o750)] {
        fs::set_permissions(at.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
}

/// A day's work in a tree: the same steps for a workspace and for a plain copy.
fn toil(tree: &Tree, day: i64) -> io::Result<()> {
    let root = tree.root_dir()?;
    let put = |dir: &Dir, name: &str, text: &str| -> io::Result<()> {
        dir.remove_all(name.as_bytes())?;
        dir.create_file(name.as_bytes())?
            .write_all(text.as_bytes())?;
        dir.set_times(name.as_bytes(), Timestamp(2_000_000_000 + day, 5))
    };
    let from = if day == 1 { "src" } else { "moved 1" };
    put(&root, &format!("new {day}"), "new")?;
    put(&root, "readme", &format!("day {day}"))?;
    let deep = tree.dir(&rel(from).join(b"deep"))?;
    put(&deep, "leaf", &format!("day {day}"))?;
    root.remove_all(b"doomed")?;
    root.set_mode(b"tool", 0o700 + day as u32)?;
    root.set_xattr(b"tool", b"user.day", &[day as u8])?;
    root.remove_all(b"link")?;
    root.make_symlink(b"link", format!("elsewhere {day}").as_bytes())?;
    root.set_times(b"link", Timestamp(2_000_000_000, 0))?;
    // A directory replaced by another of its name hides all that was in it.
    root.remove_all(b"lib")?;
    put(&root.make_dir(b"lib")?, "fresh", "fresh")?;
    root.set_mode(b"lib", 0o755)?;
    // A file becomes a directory, a directory a file.
    root.remove_all(b".hidden")?;
    put(&root.make_dir(b".hidden")?, "inside", "x")?;
    root.set_mode(b".hidden", 0o711)?;
    root.remove_all(b"empty")?;
    put(&root, "empty", "no more")?;
    move_directory(
        &root,
        from.as_bytes(),
        &root,
        format!("moved {day}").as_bytes(),
    )
}

/// Renames a directory; where an overlay refuses, as `mv` does it.
fn move_directory(from: &Dir, name: &[u8], to: &Dir, new: &[u8]) -> io::Result<()> {
    match from.rename(name, to, new, Replace::No) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {}
        renamed => return renamed,
    }
    let old = from.open_dir(name)?;
    let mode = old.stat_self()?.entry.mode;
    let made = to.make_dir(new)?;
    for entry in old.entries()? {
        if entry.kind == Some(EntryKind::Directory) {
            move_directory(&old, &entry.name, &made, &entry.name)?;
        } else {
            old.rename(&entry.name, &made, &entry.name, Replace::No)?;
        }
    }
    made.set_mode_self(mode)?;
    from.remove_dir(name)
}

// What a backend promises.

struct Case {
    place: PathBuf,
    root: Root,
    backend: BackendKind,
}

impl Case {
    fn source(&self) -> PathBuf {
        self.place.join("source")
    }

    fn seen_source(&self) -> BTreeMap<RelPath, Seen> {
        describe(&Tree::open(&self.source()).unwrap()).unwrap()
    }

    fn create(&self, name: &str) -> Result<Sandbox, RootError> {
        let request = CreateRequest {
            name: Some(name.parse().unwrap()),
            source: self.source(),
            backend: BackendChoice::Only(self.backend),
            settings: Settings::default(),
        };
        self.root.create(&request, &mut Silent)
    }

    /// A plain copy of the source.
    fn plain(&self) -> Tree {
        let path = self.place.join("plain");
        Dir::open(&self.place)
            .unwrap()
            .remove_all(b"plain")
            .unwrap();
        fs::create_dir(&path).unwrap();
        let copy = Tree::open(&path).unwrap();
        copy_tree(
            &Tree::open(&self.source()).unwrap(),
            &copy,
            &[],
            &mut Silent,
        )
        .unwrap();
        copy
    }

    fn conforms(&self) {
        let source = self.seen_source();
        let plain = self.plain();
        let first = self.create("first").unwrap();
        assert_eq!(first.meta.backend, self.backend);
        assert_shows("a new sandbox shows the source", &first, &source);

        inside(&first, |tree| toil(tree, 1));
        toil(&plain, 1).unwrap();
        let day_one = describe(&plain).unwrap();
        assert_shows("what was done inside is there", &first, &day_one);
        assert_same("and not in the source", &self.seen_source(), &source);

        let name: SandboxName = "second".parse().unwrap();
        let second = fork(&first, &name, &mut Silent).unwrap();
        let label = snapshot(&first, None, &mut Silent).unwrap();
        assert_shows("a fork shows the same", &second, &day_one);

        inside(&first, |tree| toil(tree, 2));
        toil(&plain, 2).unwrap();
        let day_two = describe(&plain).unwrap();
        assert_shows("work goes on", &first, &day_two);
        assert_shows("without the fork", &second, &day_one);
        rollback(&first, &label, &mut Silent).unwrap();
        assert_shows("a rollback brings the checkpoint back", &first, &day_one);
        inside(&first, |tree| toil(tree, 2));
        assert_shows("and work goes on from there", &first, &day_two);

        discard(first, &mut Silent).unwrap();
        assert_shows("a fork outlives its origin", &second, &day_one);
        discard(second, &mut Silent).unwrap();
        assert_same("the source is untouched", &self.seen_source(), &source);
        let left: Vec<_> = fs::read_dir(self.root.path())
            .unwrap()
            .flatten()
            .map(|entry| entry.file_name())
            .filter(|name| name != ".probe")
            .collect();
        assert!(left.is_empty(), "nothing is left: {left:?}");
    }
}

/// The suite, run as the user whose place it is. Started by the tests below.
#[test]
#[ignore = "started by the other tests, as the user they are about"]
fn cell() {
    let place = PathBuf::from(std::env::var_os(PLACE).expect("started by another test"));
    plant(&place.join("source"));
    let root = Root::open(&place.join("root")).unwrap();
    for backend in [BackendKind::Overlay, BackendKind::Copy, BackendKind::Btrfs] {
        let case = Case {
            place: place.clone(),
            root: root.clone(),
            backend,
        };
        let subvolume = sandbox_linux::btrfs::is_subvolume(Dir::open(&case.source()).unwrap());
        if backend == BackendKind::Btrfs && !subvolume.unwrap() {
            let refused = case.create("refused").unwrap_err();
            assert!(
                refused.to_string().contains("not a btrfs subvolume"),
                "{refused}"
            );
        } else {
            eprintln!("{backend}");
            case.conforms();
        }
    }
}

fn run_as(user: User, mounted: &Mounted, subvolume: bool) {
    let place = mounted.path().join("place");
    fs::create_dir(&place).unwrap();
    if subvolume {
        sandbox_tests::subvolume(&place.join("source"));
    } else {
        fs::create_dir(place.join("source")).unwrap();
    }
    user.own(&place);
    user.own(&place.join("source"));
    // A copy of this program that the user can reach.
    let program = mounted.path().join("suite");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(&program);
    command.args([
        "--ignored",
        "--exact",
        "cell",
        "--nocapture",
        "--test-threads=1",
    ]);
    command
        .env(PLACE, &place)
        .current_dir("/")
        .env("RUST_BACKTRACE", "0");
    let output = user.apply(&mut command).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("1 passed"),
        "it ran"
    );
}

macro_rules! matrix {
    ($($name:ident: $filesystem:ident, $user:ident;)*) => {$(
        #[test]
        fn $name() {
            let filesystem = Filesystem::$filesystem;
            let mounted = filesystem.mount(256);
            run_as(User::$user, &mounted, filesystem == Filesystem::Btrfs);
        }
    )*};
}

matrix! {
    ext4_as_root: Ext4, Root;
    ext4_as_tester: Ext4, Tester;
    tmpfs_as_root: Tmpfs, Root;
    tmpfs_as_tester: Tmpfs, Tester;
    xfs_as_root: Xfs, Root;
    xfs_as_tester: Xfs, Tester;
    btrfs_as_root: Btrfs, Root;
    btrfs_as_tester: Btrfs, Tester;
}

/// Distributions mount btrfs without `user_subvol_rm_allowed`: a user's snapshots are emptied then.
#[test]
fn btrfs_as_tester_who_may_not_delete_subvolumes() {
    let mounted = Filesystem::Btrfs.mount(256);
    let run = |command: &mut Command| assert!(command.status().unwrap().success());
    run(Command::new("umount").arg(mounted.path()));
    let image = mounted.path().with_file_name("image");
    run(Command::new("mount")
        .args(["-o", "loop"])
        .arg(image)
        .arg(mounted.path()));
    run_as(User::Tester, &mounted, true);
}

/// Auto takes the best that works, and names why the one asked for does not.
#[test]
fn a_nested_subvolume_makes_auto_fall_back_to_overlay() {
    let mounted = Filesystem::Btrfs.mount(256);
    let source = mounted.path().join("source");
    sandbox_tests::subvolume(&source);
    fs::create_dir(source.join("sub")).unwrap();
    let root = Root::open(&source.join("state")).unwrap();
    let request = |name: &str, backend| CreateRequest {
        name: Some(name.parse().unwrap()),
        source: source.clone(),
        backend,
        settings: Settings::default(),
    };
    let make = |name, backend| root.create(&request(name, backend), &mut Silent);
    assert_eq!(
        make("one", BackendChoice::Auto).unwrap().meta.backend,
        BackendKind::Btrfs
    );
    // The first sandbox's own snapshot lies in the source, too, and is no obstacle.
    assert_eq!(
        make("two", BackendChoice::Auto).unwrap().meta.backend,
        BackendKind::Btrfs
    );
    sandbox_tests::subvolume(&source.join("sub/nested"));
    assert_eq!(
        make("three", BackendChoice::Auto).unwrap().meta.backend,
        BackendKind::Overlay
    );
    let refused = make("four", BackendChoice::Only(BackendKind::Btrfs)).unwrap_err();
    let wanted = format!(
        "{} is a subvolume of its own, and would be empty",
        source.join("sub/nested").display()
    );
    assert!(refused.to_string().ends_with(&wanted), "{refused}");
    for name in ["one", "two", "three"] {
        discard(root.sandbox(name).unwrap(), &mut Silent).unwrap();
    }
}

#[test]
fn a_root_on_another_filesystem_is_no_place_for_a_snapshot() {
    let (btrfs, other) = (Filesystem::Btrfs.mount(256), Filesystem::Tmpfs.mount(16));
    sandbox_tests::subvolume(&btrfs.path().join("source"));
    let root = Root::open(&other.path().join("root")).unwrap();
    let request = |backend| CreateRequest {
        name: None,
        source: btrfs.path().join("source"),
        backend,
        settings: Settings::default(),
    };
    let auto = root
        .create(&request(BackendChoice::Auto), &mut Silent)
        .unwrap();
    assert_eq!(auto.meta.backend, BackendKind::Overlay);
    let refused = root.create(
        &request(BackendChoice::Only(BackendKind::Btrfs)),
        &mut Silent,
    );
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("not on the same btrfs filesystem")
    );
    discard(auto, &mut Silent).unwrap();
}

#[test]
fn a_mount_below_the_source_is_named_and_copied() {
    let outer = Filesystem::Tmpfs.mount(16);
    let source = outer.path().join("source");
    let point = source.join("mounted here");
    fs::create_dir_all(&point).unwrap();
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "tmpfs"])
        .arg(&point)
        .status();
    assert!(mount.unwrap().success());
    fs::write(point.join("file"), "below").unwrap();
    let root = Root::open(&outer.path().join("root")).unwrap();
    let request = |backend| CreateRequest {
        name: None,
        source: source.clone(),
        backend,
        settings: Settings::default(),
    };
    let refused = root.create(
        &request(BackendChoice::Only(BackendKind::Overlay)),
        &mut Silent,
    );
    let made = root.create(&request(BackendChoice::Auto), &mut Silent);
    unmount(&point).succeeded();
    let reason = refused.unwrap_err().to_string();
    assert!(
        reason.contains("mounted here is mounted inside it"),
        "{reason}"
    );
    let made = made.unwrap();
    assert_eq!(made.meta.backend, BackendKind::Copy);
    let copied = fs::read_to_string(made.layer_dir().join("mounted here/file")).unwrap();
    assert_eq!(copied, "below");
}

#[test]
fn an_upper_on_an_overlay_is_refused_with_the_reason_and_copied_instead() {
    let ground = Filesystem::Tmpfs.mount(16);
    for name in ["lower", "upper", "work", "merged", "source"] {
        fs::create_dir(ground.path().join(name)).unwrap();
    }
    fs::write(ground.path().join("source/file"), "x").unwrap();
    let at = |name: &str| ground.path().join(name).display().to_string();
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        at("lower"),
        at("upper"),
        at("work")
    );
    let merged = ground.path().join("merged");
    let mount = Command::new("mount")
        .args(["-t", "overlay", "-o", &options, "overlay"])
        .arg(&merged)
        .status();
    assert!(mount.unwrap().success());
    let root = Root::open(&merged.join("root")).unwrap();
    let request = |backend| CreateRequest {
        name: None,
        source: ground.path().join("source"),
        backend,
        settings: Settings::default(),
    };
    let refused = root.create(
        &request(BackendChoice::Only(BackendKind::Overlay)),
        &mut Silent,
    );
    let made = root.create(&request(BackendChoice::Auto), &mut Silent);
    unmount(&merged).succeeded();
    let reason = refused.unwrap_err().to_string();
    assert!(reason.contains("is itself on an overlay"), "{reason}");
    assert_eq!(made.unwrap().meta.backend, BackendKind::Copy);
}

#[test]
fn a_full_disk_during_create_leaves_nothing() {
    let source = Filesystem::Tmpfs.mount(64);
    let small = Filesystem::Tmpfs.mount(8);
    fs::create_dir(source.path().join("source")).unwrap();
    fs::write(source.path().join("source/large"), vec![1; 32 << 20]).unwrap();
    let root = Root::open(&small.path().join("root")).unwrap();
    let request = CreateRequest {
        name: Some("big".parse().unwrap()),
        source: source.path().join("source"),
        backend: BackendChoice::Only(BackendKind::Copy),
        settings: Settings::default(),
    };
    let error = root.create(&request, &mut Silent).unwrap_err();
    assert_eq!(
        sandbox_model::Failure::class(&error),
        sandbox_model::Class::DiskFull,
        "{error}"
    );
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
}
