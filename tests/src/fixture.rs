//! One sandboxed place: a source, a sandbox root, a home, and the host around them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::binary::{attacker_binary, place, sandbox_binary};
use crate::leaks::{mounts_below, wait_until_gone};
use crate::{Attempt, Outcome, Running, User, finish};

/// The sandbox that most tests make.
pub const BOX: &str = "box";

/// A place below a directory of its own, owned by one user. When dropped it must have been left
/// clean: no process, no mount.
#[derive(Debug)]
pub struct Fixture {
    /// Who runs everything.
    pub user: User,
    directory: tempfile::TempDir,
    /// Holds the binary, on the machine's own disk: small filesystems stay small.
    binaries: tempfile::TempDir,
    mark: String,
}

impl Fixture {
    /// On the machine's own disk, outside everything that a sandbox hides by default (/var/tmp is).
    pub fn new(user: User) -> Fixture {
        Fixture::on(user, Path::new("/srv"))
    }

    /// Below a directory, which may be on another filesystem.
    pub fn on(user: User, below: &Path) -> Fixture {
        let open_directory = |below: &Path| {
            let directory = tempfile::Builder::new()
                .prefix("sandbox-tests.")
                .tempdir_in(below)
                .expect("a directory for the fixture");
            let everyone = fs::Permissions::from_mode(0o755);
            fs::set_permissions(directory.path(), everyone).expect("chmod");
            directory
        };
        let directory = open_directory(below);
        let binaries = open_directory(Path::new("/srv"));
        let mark = format!("FIXTURE_MARK={}", directory.path().display());
        let fixture = Fixture {
            user,
            directory,
            binaries,
            mark,
        };
        for made in [fixture.home(), fixture.host(), fixture.source()] {
            fs::create_dir(&made).expect("mkdir");
            user.own(&made);
        }
        user.own(fixture.base());
        place(&sandbox_binary(), &fixture.binary());
        fixture.arm();
        fixture
    }

    /// The directory that holds everything.
    pub fn base(&self) -> &Path {
        self.directory.path()
    }

    /// What is sandboxed.
    pub fn source(&self) -> PathBuf {
        self.base().join("source")
    }

    /// SANDBOX_ROOT. The binary makes it.
    pub fn root(&self) -> PathBuf {
        self.base().join("root")
    }

    /// HOME.
    pub fn home(&self) -> PathBuf {
        self.base().join("home")
    }

    /// A directory of the host's that the user may write to and a sandbox may not.
    pub fn host(&self) -> PathBuf {
        self.base().join("host")
    }

    /// The attacker's place in the source, where it can be run from inside and outside.
    pub fn attacker(&self) -> PathBuf {
        self.source().join("attacker")
    }

    /// The binary under test, where both users reach it.
    pub fn binary(&self) -> PathBuf {
        self.binaries.path().join("sandbox")
    }

    /// Makes the (still empty) source a btrfs subvolume.
    pub fn make_source_a_subvolume(&self) {
        fs::remove_dir_all(self.source()).expect("remove the directory");
        crate::subvolume(&self.source());
        self.user.own(&self.source());
        self.arm();
    }

    /// Puts the attacker into the source (again, when the source was replaced).
    pub fn arm(&self) {
        fs::copy(attacker_binary(), self.attacker()).expect("copy the attacker");
        fs::set_permissions(self.attacker(), fs::Permissions::from_mode(0o755)).expect("chmod");
        self.user.own(&self.attacker());
    }

    /// Replaces the linked binary by a copy of its own, for tests that attack it.
    pub fn own_binary(&self) -> PathBuf {
        let binary = self.binary();
        fs::remove_file(&binary).expect("remove the link");
        fs::copy(sandbox_binary(), &binary).expect("copy the binary");
        fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).expect("chmod");
        self.user.own(&binary);
        binary
    }

    /// Writes a file of the user's, making directories above it; returns where. Follows no link
    /// below the fixture: where a wall is broken, one may lead to the machine's own files.
    #[track_caller]
    pub fn write(&self, path: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.base().join(path);
        for name in path.ancestors().take_while(|above| *above != self.base()) {
            assert!(
                !name.is_symlink(),
                "{} leads out of the fixture",
                name.display()
            );
        }
        let mut missing: Vec<&Path> = path
            .ancestors()
            .skip(1)
            .take_while(|above| !above.exists())
            .collect();
        while let Some(directory) = missing.pop() {
            fs::create_dir(directory).expect("mkdir");
            self.user.own(directory);
        }
        fs::write(&path, contents).expect("write");
        self.user.own(&path);
        path
    }

    /// A command run outside as the user, in the source, with a plain environment.
    pub fn outside(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        let (name, value) = self.mark.split_once('=').expect("a variable");
        command
            .env_clear()
            .env(
                "PATH",
                "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
            )
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm")
            .env("HOME", self.home())
            .env("SANDBOX_ROOT", self.root())
            .env(name, value)
            .current_dir(self.source())
            .stdin(Stdio::null());
        self.user.apply(&mut command);
        command
    }

    /// `sandbox ARGUMENTS…`, not yet started.
    pub fn command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = self.outside(self.binary());
        command.args(arguments);
        command
    }

    /// `sandbox ARGUMENTS…`, run to its end.
    #[track_caller]
    pub fn sandbox<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Outcome {
        finish(&mut self.command(arguments))
    }

    /// The same, which must succeed.
    #[track_caller]
    pub fn ok<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Outcome {
        self.sandbox(arguments).succeeded()
    }

    /// `sandbox ARGUMENTS…`, to be talked to.
    #[track_caller]
    pub fn start<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Running {
        Running::start(&mut self.command(arguments))
    }

    /// Makes the sandbox [`BOX`] of the source.
    #[track_caller]
    pub fn create(&self, options: &[&str]) {
        self.ok(["create", BOX].iter().chain(options));
    }

    /// Runs a shell script in [`BOX`].
    #[track_caller]
    pub fn run(&self, script: &str) -> Outcome {
        self.sandbox(["run", BOX, "sh", "-c", script])
    }

    /// Runs a shell script outside, as the user.
    #[track_caller]
    pub fn shell(&self, script: &str) -> Outcome {
        finish(self.outside("sh").args(["-c", script]))
    }

    /// An attempt from inside [`BOX`], with options to `run` before it.
    #[track_caller]
    pub fn inside_with(&self, options: &[&str], attempt: &[&str]) -> Attempt {
        let attacker = self.attacker();
        let mut command = self.command(["run"]);
        command
            .args(options)
            .args([BOX, "--"])
            .arg(attacker)
            .args(attempt);
        Attempt::of(&finish(&mut command))
    }

    /// An attempt from inside [`BOX`].
    #[track_caller]
    pub fn inside(&self, attempt: &[&str]) -> Attempt {
        self.inside_with(&[], attempt)
    }

    /// The same attempt outside: the control.
    #[track_caller]
    pub fn control(&self, attempt: &[&str]) -> Attempt {
        Attempt::of(&finish(self.outside(self.attacker()).args(attempt)))
    }

    /// Works outside, fails inside.
    #[track_caller]
    pub fn only_outside(&self, attempt: &[&str]) {
        self.control(attempt).must_work();
        self.inside(attempt).must_fail();
    }

    /// The change set of [`BOX`], as paths with what happened to them.
    #[track_caller]
    pub fn changes(&self) -> BTreeMap<String, String> {
        let json = self.ok(["diff", BOX, "--json"]).json();
        let changes = json
            .get("changes")
            .unwrap_or(&json)
            .as_array()
            .expect("a list of changes");
        let word = |change: &serde_json::Value, key: &str| {
            change[key]
                .as_str()
                .unwrap_or_else(|| panic!("no {key} in {change}"))
                .to_owned()
        };
        changes
            .iter()
            .map(|change| (word(change, "path"), word(change, "kind")))
            .collect()
    }

    /// What every process started below this fixture carries in its environment.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// Fails when a process or a mount is left.
    #[track_caller]
    pub fn must_be_clean(&self) {
        if let Err(left) = wait_until_gone(&self.mark, Duration::from_secs(10)) {
            panic!("{left}");
        }
        let mounts = mounts_below(self.base());
        assert!(mounts.is_empty(), "mounts stay: {mounts:?}");
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.must_be_clean();
        }
        // Frozen snapshots and unreadable directories are removed with more than rm's patience.
        let base = self.base();
        if crate::leaks::mounts_below(base).is_empty() {
            let _ = finish(Command::new("rm").arg("-rf").arg(base));
        }
    }
}
