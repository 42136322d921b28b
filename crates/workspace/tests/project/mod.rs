//! A project, a sandbox of it, and a real overlay to change it through.
//!
//! A test binary runs itself again as an ordinary user, and on a btrfs of its own, where every
//! project is a subvolume and its sandbox a snapshot.
#![allow(dead_code, reason = "each test file uses its part")]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard};

use sandbox_linux::trial::{self, OverlayTrial};
use sandbox_model::{BackendChoice, BackendKind, RelPath, Settings, WorkspaceMount};
use sandbox_tests::{Filesystem, User};
use sandbox_workspace::changes::{ChangeOptions, Renames, change_set};
use sandbox_workspace::progress::Silent;
use sandbox_workspace::promote::{
    self, Backup, Plan, PromoteError, Promoted, Resolutions, Selection,
};
use sandbox_workspace::root::CreateRequest;
use sandbox_workspace::undo::{self, Undone, Which};
use sandbox_workspace::{Root, Sandbox, View, base};

/// A project with a sandbox.
pub struct Project {
    pub source: PathBuf,
    pub root: Root,
    pub sandbox: Sandbox,
    _dir: Option<tempfile::TempDir>,
    _alone: Alone,
}

/// Every process that a test starts inherits, until it execs, the locks that a test beside it
/// holds: in one process, tests take turns.
pub struct Alone(Option<MutexGuard<'static, ()>>);

static ALONE: Mutex<()> = Mutex::new(());

thread_local! {
    static IS_ALONE: Cell<bool> = const { Cell::new(false) };
}

impl Alone {
    /// Waits for the other tests; at once where this test is alone already.
    pub fn wait() -> Alone {
        if IS_ALONE.replace(true) {
            return Alone(None);
        }
        Alone(Some(
            ALONE
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner()),
        ))
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        if self.0.is_some() {
            IS_ALONE.set(false);
        }
    }
}

/// Runs a shell script in `dir` and insists that it works.
pub fn shell(dir: &Path, script: &str) {
    let status = Command::new("sh")
        .args(["-euc", script])
        .current_dir(dir)
        .status()
        .unwrap();
    assert!(status.success(), "{script}");
}

pub fn path(text: &str) -> RelPath {
    RelPath::new(text.as_bytes()).unwrap()
}

impl Project {
    /// A project made by `plant`, everything in a temporary directory: an overlay of it, or,
    /// where the binary was started again on a btrfs, a snapshot.
    pub fn new(plant: &str) -> Project {
        match std::env::var_os(BTRFS) {
            Some(place) => Project::on_btrfs(Path::new(&place), |source| shell(source, plant)),
            None => Project::with(plant, BackendKind::Overlay),
        }
    }

    pub fn with(plant: &str, backend: BackendKind) -> Project {
        Project::planted(backend, |source| shell(source, plant))
    }

    /// The same, made by any other means.
    pub fn planted(backend: BackendKind, plant: impl FnOnce(&Path)) -> Project {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("project")).unwrap();
        Project::alone_in(dir, backend, plant)
    }

    /// A project that is a subvolume below `place`, on a btrfs.
    pub fn on_btrfs(place: &Path, plant: impl FnOnce(&Path)) -> Project {
        let dir = tempfile::tempdir_in(place).unwrap();
        sandbox_tests::subvolume(&dir.path().join("project"));
        Project::alone_in(dir, BackendKind::Btrfs, plant)
    }

    fn alone_in(
        dir: tempfile::TempDir,
        backend: BackendKind,
        plant: impl FnOnce(&Path),
    ) -> Project {
        let alone = Alone::wait();
        plant(&dir.path().join("project"));
        let mut project = Project::sandboxed(dir.path(), &dir.path().join("root"), backend, alone);
        project._dir = Some(dir);
        project
    }

    /// A project at `dir/project`, with its sandbox in `root`.
    pub fn at(dir: &Path, root: &Path, plant: &str, backend: BackendKind) -> Project {
        let alone = Alone::wait();
        let source = dir.join("project");
        fs::create_dir(&source).unwrap();
        shell(&source, plant);
        Project::sandboxed(dir, root, backend, alone)
    }

    fn sandboxed(dir: &Path, root: &Path, backend: BackendKind, alone: Alone) -> Project {
        let source = dir.join("project");
        let root = Root::open(root).unwrap();
        let request = CreateRequest {
            name: Some("risky".parse().unwrap()),
            source: source.clone(),
            backend: BackendChoice::Only(backend),
            settings: Settings::default(),
        };
        let sandbox = root.create(&request, &mut Silent).unwrap();
        let source = fs::canonicalize(source).unwrap();
        Project {
            source,
            root,
            sandbox,
            _dir: None,
            _alone: alone,
        }
    }

    /// Another sandbox of the same source.
    pub fn beside(&self, name: &str) -> Project {
        let request = CreateRequest {
            name: Some(name.parse().unwrap()),
            source: self.source.clone(),
            backend: BackendChoice::Only(self.backend()),
            settings: Settings::default(),
        };
        Project {
            source: self.source.clone(),
            root: self.root.clone(),
            sandbox: self.root.create(&request, &mut Silent).unwrap(),
            _dir: None,
            _alone: Alone(None),
        }
    }

    /// Opens what another process made.
    pub fn reopen(dir: &Path, root: &Path) -> Project {
        let alone = Alone::wait();
        let root = Root::open(root).unwrap();
        let sandbox = root.sandbox("risky").unwrap();
        let source = fs::canonicalize(dir.join("project")).unwrap();
        Project {
            source,
            root,
            sandbox,
            _dir: None,
            _alone: alone,
        }
    }

    pub fn backend(&self) -> BackendKind {
        self.sandbox.meta.backend
    }

    /// Runs a script in the workspace, as a run of the sandbox would.
    pub fn run(&self, script: &str) {
        // The coarse clock must have moved past what the test did to the source just now.
        tick();
        self.inside(|root| {
            let status = Command::new("sh")
                .args(["-euc", script])
                .current_dir(root)
                .status()?;
            if status.success() {
                Ok(())
            } else {
                Err(io::Error::other("script"))
            }
        });
        tick();
    }

    /// Works in the workspace, as a run of the sandbox would; an overlay is mounted in a process of
    /// its own.
    pub fn inside(&self, work: impl FnOnce(&Path) -> io::Result<()>) {
        let began = base::run_began(&self.sandbox).unwrap();
        match self.sandbox.mount() {
            WorkspaceMount::Bind { dir } => work(&dir).unwrap(),
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
                trial::overlay(&layers, |mount| {
                    work(Path::new(&format!("/proc/self/fd/{}", mount.as_raw_fd())))
                })
                .unwrap();
            }
        }
        base::record(&self.sandbox, began).unwrap();
    }

    /// What a process inside sees.
    pub fn seen(&self) -> String {
        let out = self.root.path().join("seen");
        self.run(&format!("({LISTING}) > {}", out.display()));
        fs::read_to_string(out).unwrap()
    }

    pub fn plan(&self, selection: &Selection, resolutions: &Resolutions) -> Plan {
        let view = View::open(&self.sandbox).unwrap();
        promote::plan(&view, selection, resolutions, &mut Silent).unwrap()
    }

    pub fn plan_all(&self) -> Plan {
        self.plan(&Selection::default(), &Resolutions::default())
    }

    pub fn promote(&self) -> Result<Promoted, PromoteError> {
        promote::apply(&self.sandbox, self.plan_all(), Backup::None, &mut Silent)
    }

    /// Takes the last promote back, all of it or `paths` alone.
    pub fn undo(&self, paths: &[RelPath]) -> Undone {
        let latest = &Which::Latest;
        undo::undo(&self.root, &self.source, latest, paths, &mut Silent).unwrap()
    }

    /// Applies again what was taken back last.
    pub fn redo(&self) -> Undone {
        let latest = &Which::LatestUndo;
        undo::undo(&self.root, &self.source, latest, &[], &mut Silent).unwrap()
    }

    pub fn promote_with(
        &self,
        selection: &Selection,
        resolutions: &Resolutions,
    ) -> Result<Promoted, PromoteError> {
        promote::apply(
            &self.sandbox,
            self.plan(selection, resolutions),
            Backup::None,
            &mut Silent,
        )
    }

    /// The change set, as `M path` lines.
    pub fn changes(&self) -> Vec<String> {
        let view = View::open(&self.sandbox).unwrap();
        let options = ChangeOptions {
            renames: Renames::Split,
            ..ChangeOptions::default()
        };
        let changes = change_set(&view, &options, &mut Silent).unwrap().changes;
        changes
            .iter()
            .map(|change| format!("{} {}", change.kind.letter(), change.path))
            .collect()
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.source.join(name)).unwrap()
    }

    /// What is below the source's undo area besides the lock.
    pub fn leftovers(&self) -> Vec<String> {
        let mut left: Vec<String> = fs::read_dir(&self.source)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with(promote::STAGE_PREFIX))
            .collect();
        if let Ok(areas) = fs::read_dir(self.root.path().join(".undo")) {
            for area in areas {
                let pending = area.unwrap().path().join("pending");
                if pending.exists() {
                    left.push(pending.display().to_string());
                }
            }
        }
        left
    }
}

/// Prints every path with its kind, mode and target, and every file's digest.
const LISTING: &str = "find . -printf '%p %y %m %l\\n' | sort; \
                       find . -type f -print0 | sort -z | xargs -0r md5sum";

/// What there is in a plain directory, in the words of [`Project::seen`].
pub fn listing(dir: &Path) -> String {
    let output = Command::new("sh")
        .args(["-euc", LISTING])
        .current_dir(dir)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Waits until the clock that filesystems stamp with has moved.
pub fn tick() {
    let coarse = || rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    let before = coarse();
    while coarse() == before {
        std::thread::yield_now();
    }
}

/// What is compared of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub kind: &'static str,
    pub mode: u32,
    pub owner: (u32, u32),
    pub contents: Vec<u8>,
    pub xattrs: String,
    pub times: Option<(i64, i64)>,
    pub inode: Option<u64>,
}

/// How closely two trees are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closeness {
    /// What a user sees.
    Contents,
    /// Modification times to the nanosecond too.
    Times,
    /// And the very inodes.
    Inodes,
}

/// Everything below `root`.
pub fn snapshot(root: &Path, closeness: Closeness) -> BTreeMap<Vec<u8>, Line> {
    let mut lines = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(at) = open.pop() {
        let metadata = fs::symlink_metadata(&at).unwrap();
        let kind = metadata.file_type();
        if kind.is_dir() {
            open.extend(
                fs::read_dir(&at)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
        use std::os::unix::ffi::OsStrExt;
        let name = at
            .strip_prefix(root)
            .unwrap()
            .as_os_str()
            .as_bytes()
            .to_vec();
        lines.insert(name, line(&at, &metadata, closeness));
    }
    lines
}

fn line(at: &Path, metadata: &fs::Metadata, closeness: Closeness) -> Line {
    use std::os::unix::ffi::OsStrExt;
    let kind = metadata.file_type();
    let (kind, contents) = if kind.is_dir() {
        ("directory", Vec::new())
    } else if kind.is_symlink() {
        (
            "symlink",
            fs::read_link(at).unwrap().as_os_str().as_bytes().to_vec(),
        )
    } else if kind.is_fifo() {
        ("fifo", Vec::new())
    } else {
        (
            "file",
            fs::read(at).unwrap_or_else(|_| b"(unreadable)".to_vec()),
        )
    };
    let xattrs = Command::new("getfattr")
        .args(["-hd", "-m", "^user\\.[^o]|^system", "--absolute-names"])
        .arg(at)
        .output()
        .unwrap();
    let xattrs = String::from_utf8_lossy(&xattrs.stdout)
        .lines()
        .skip(1)
        .collect();
    Line {
        kind,
        mode: metadata.mode() & 0o7777,
        owner: (metadata.uid(), metadata.gid()),
        contents,
        xattrs,
        times: (closeness != Closeness::Contents)
            .then(|| (metadata.mtime(), metadata.mtime_nsec())),
        inode: (closeness == Closeness::Inodes).then(|| metadata.ino()),
    }
}

/// The same without times and inodes.
pub fn contents(lines: &BTreeMap<Vec<u8>, Line>) -> BTreeMap<Vec<u8>, Line> {
    let bare = |line: &Line| Line {
        times: None,
        inode: None,
        ..line.clone()
    };
    let lines = lines.iter();
    lines
        .map(|(name, line)| (name.clone(), bare(line)))
        .collect()
}

/// Names what differs, rather than printing both trees.
pub fn assert_same(found: &BTreeMap<Vec<u8>, Line>, wanted: &BTreeMap<Vec<u8>, Line>, what: &str) {
    let mut differences = Vec::new();
    for name in found.keys().chain(wanted.keys()) {
        let (a, b) = (found.get(name), wanted.get(name));
        if a != b {
            differences.push(format!(
                "{}:\n  found  {a:?}\n  wanted {b:?}",
                String::from_utf8_lossy(name)
            ));
        }
    }
    differences.dedup();
    assert!(differences.is_empty(), "{what}\n{}", differences.join("\n"));
}

/// A source with something of everything.
pub const PLANT: &str = "
    mkdir -p src/deep old/nested ro empty swapd hard
    echo one > a.txt; echo two > gone.txt; echo 'fn main' > src/main.rs; echo d > src/deep/d
    echo x > old/x; echo y > old/nested/y; ln -s x old/link
    echo s > run.sh; chmod 644 run.sh; ln -s a.txt link
    echo f > swapf; echo in > swapd/in
    echo linked > hard/one; ln hard/one hard/two
    echo r > ro/file; chmod 500 ro
    echo odd > 'odd
name'; setfattr -n user.comment -v kept a.txt; echo c > comment; chmod 640 comment
    touch -d '2001-02-03 04:05:06.123456789' a.txt src/main.rs old/x
    touch -d '2002-02-03 04:05:06.987654321' src/deep src old/nested old .
";

/// What is done to it inside.
pub const WORK: &str = "
    echo ONE > a.txt; rm gone.txt; rm -r old; echo more >> src/main.rs
    mkdir -p new/deep/er; echo n > new/deep/n; ln new/deep/n new/deep/er/n; mkdir new/empty
    chmod 755 run.sh; ln -sfn src link
    rm swapf; mkdir swapf; echo now > swapf/below; rm -r swapd; echo file > swapd
    echo split > hard/one
    chmod 700 ro; echo R > ro/file; echo r2 > ro/second; chmod 500 ro
    echo ODD > 'odd
name'; setfattr -n user.comment -v changed comment; rmdir empty; mkfifo pipe
    mkdir locked; echo in > locked/in; chmod 555 locked; chmod 711 src/deep
    mv src/deep/d src/moved; touch -d '2003-03-03 03:03:03.333333333' new/deep/n
";

/// Where the projects of a binary that was started again on a btrfs are.
const BTRFS: &str = "SANDBOX_TESTS_BTRFS";

/// Runs the tests of this binary again as the ordinary user `tester`, but for those named.
pub fn as_ordinary_user(but: &[&str]) {
    let home = tempfile::tempdir().unwrap();
    run_again(User::Tester, home.path(), None, &["--skip"], but);
}

/// Runs those tests of this binary again as `tester` whose names contain `part`.
pub fn some_as_ordinary_user(part: &str) {
    let home = tempfile::tempdir().unwrap();
    run_again(User::Tester, home.path(), None, &[], &[part]);
}

/// Runs the tests of this binary again on one btrfs, as root and as an ordinary user, but for those
/// named.
pub fn on_btrfs(but: &[&str]) {
    let mounted = Filesystem::Btrfs.mount(512);
    for user in [User::Root, User::Tester] {
        let place = mounted.path().join(format!("{user:?}"));
        fs::create_dir(&place).unwrap();
        run_again(user, &place, Some(&place), &["--skip"], but);
    }
}

/// `names` are of tests, each with `before` it on the command line.
fn run_again(user: User, home: &Path, btrfs: Option<&Path>, before: &[&str], names: &[&str]) {
    use std::os::unix::fs::PermissionsExt;
    // A process started beside us would hold the copy open for writing, and it could not be run.
    let alone = Alone::wait();
    fs::set_permissions(home, fs::Permissions::from_mode(0o755)).unwrap();
    user.own(home);
    let binary = home.join("tests");
    fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
    let filter = names.iter().flat_map(|name| before.iter().chain([name]));
    let mut command = Command::new(binary);
    command.args(filter);
    assert_any_test(&command);
    if let Some(place) = btrfs {
        command.env(BTRFS, place);
    }
    command
        .arg("--test-threads=2")
        .env("TMPDIR", home)
        .current_dir(home);
    let mut child = user.apply(&mut command).spawn().unwrap();
    drop(alone);
    let status = child.wait().unwrap();
    assert!(status.success(), "the tests fail for {user:?}");
}

/// A filter that no test passes is not an error for the test binary.
fn assert_any_test(command: &Command) {
    let listed = Command::new(std::env::current_exe().unwrap())
        .args(command.get_args())
        .arg("--list")
        .output()
        .unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(
        listed.lines().any(|line| line.ends_with(": test")),
        "no test to run: {command:?}"
    );
}
