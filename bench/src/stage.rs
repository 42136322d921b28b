//! Where the measurements are played: a throwaway directory, filesystems mounted in it, and the
//! user as whom everything that is timed runs.
//!
//! Commands of both sides of a comparison are made by the same function, with the same
//! environment, user and descriptors, so that what differs is the command.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use thiserror::Error;

use crate::options::Options;
use crate::timing;

/// Why a measurement could not be taken.
#[derive(Debug, Error)]
pub enum StageError {
    /// Mounting needs it.
    #[error("must be root, to mount what is measured (`--user NAME` measures as that user)")]
    NotRoot,
    /// A name `id` does not know.
    #[error("no user named {0}")]
    NoSuchUser(String),
    /// A command could not be started.
    #[error("cannot start {command}")]
    Spawn {
        /// Which.
        command: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A command failed.
    #[error("{command}: {status}\n{stderr}")]
    Failed {
        /// Which.
        command: String,
        /// How.
        status: ExitStatus,
        /// What it said.
        stderr: String,
    },
    /// A command answered with something else than we asked for.
    #[error("cannot understand what {command} printed: {output}")]
    Output {
        /// Which.
        command: String,
        /// What.
        output: String,
    },
    /// A server could not be asked.
    #[error("cannot have an answer to {request}")]
    Request {
        /// What.
        request: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file operation.
    #[error("cannot prepare {path}")]
    Io {
        /// On what.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl StageError {
    pub(crate) fn spawn(command: &Command, source: io::Error) -> StageError {
        StageError::Spawn {
            command: format!("{command:?}"),
            source,
        }
    }

    pub(crate) fn failed(command: &Command, status: ExitStatus, stderr: String) -> StageError {
        StageError::Failed {
            command: format!("{command:?}"),
            status,
            stderr,
        }
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> StageError + '_ {
        |source| StageError::Io {
            path: path.to_owned(),
            source,
        }
    }
}

/// A filesystem to measure on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filesystem {
    /// Whatever /var/tmp is on.
    Host,
    /// A tmpfs of its own.
    Tmpfs,
    /// A btrfs loop image.
    Btrfs,
    /// An xfs loop image, with reflinks.
    Xfs,
}

impl Filesystem {
    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Filesystem::Host => "host",
            Filesystem::Tmpfs => "tmpfs",
            Filesystem::Btrfs => "btrfs",
            Filesystem::Xfs => "xfs",
        }
    }
}

struct User {
    name: String,
    uid: u32,
    gid: u32,
}

/// The stage. Unmounts and deletes everything when dropped.
pub struct Stage {
    dir: TempDir,
    mounted: Vec<(Filesystem, PathBuf)>,
    user: User,
    sandbox: PathBuf,
    timer: PathBuf,
}

/// A place to work in: a filesystem's directory with its own sandbox root.
pub struct Place {
    /// Where sources go.
    pub dir: PathBuf,
    root: PathBuf,
}

impl Stage {
    /// Sets it up: a copy of the binaries that the user can reach, and a developer's home.
    pub fn set(options: &Options) -> Result<Stage, StageError> {
        if !rustix::process::geteuid().is_root() {
            return Err(StageError::NotRoot);
        }
        let user = User::find(options.user.as_deref().unwrap_or("root"))?;
        let parent = Path::new("/var/tmp");
        let dir = tempfile::Builder::new()
            .prefix("sandbox-bench.")
            .tempdir_in(parent)
            .map_err(StageError::io(parent))?;
        let stage = Stage {
            sandbox: dir.path().join("bin/sandbox"),
            timer: dir.path().join("bin/sandbox-bench"),
            dir,
            mounted: Vec::new(),
            user,
        };
        stage.furnish(&options.sandbox)?;
        Ok(stage)
    }

    fn furnish(&self, sandbox: &Path) -> Result<(), StageError> {
        let base = self.dir.path();
        fs::set_permissions(base, fs::Permissions::from_mode(0o755))
            .map_err(StageError::io(base))?;
        let timer = std::env::current_exe().map_err(StageError::io(base))?;
        self.make_dir(&base.join("bin"))?;
        fs::copy(sandbox, &self.sandbox).map_err(StageError::io(sandbox))?;
        fs::copy(&timer, &self.timer).map_err(StageError::io(&timer))?;
        // What a developer has: each of these costs a layer in the sandbox's home.
        for directory in [
            "home",
            "home/.cargo",
            "home/.rustup",
            "home/.npm",
            "home/.cache",
        ] {
            self.make_dir(&base.join(directory))?;
        }
        let identity = "[user]\nname = Bench\nemail = bench@example.org\n[gc]\nauto = 0\n";
        let config = base.join("home/.gitconfig");
        fs::write(&config, identity).map_err(StageError::io(&config))?;
        self.give(&config)
    }

    /// The machine and the peers, in general terms.
    pub fn description(&self) -> Result<String, StageError> {
        let kernel = self.output(Command::new("uname").args(["-srm"]))?;
        let processors = self.output(&mut Command::new("nproc"))?;
        let filesystem = self.output(
            Command::new("stat")
                .args(["-f", "-c", "%T"])
                .arg(self.dir.path()),
        )?;
        let bwrap = self.output(Command::new("bwrap").arg("--version"))?;
        let git = self.output(Command::new("git").arg("--version"))?;
        Ok(format!(
            "{kernel}, {processors} processors, {filesystem}; as {}; {bwrap}, {git}",
            self.user.name
        ))
    }

    /// A fresh place called `name` on a filesystem, which is made when first asked for.
    pub fn place(&mut self, filesystem: Filesystem, name: &str) -> Result<Place, StageError> {
        let mount = match self.mounted.iter().find(|(made, _)| *made == filesystem) {
            Some((_, path)) => path.clone(),
            None => self.mount(filesystem)?,
        };
        let base = mount.join(name);
        self.make_dir(&base)?;
        let place = Place {
            dir: base.join("files"),
            root: base.join("sandboxes"),
        };
        self.make_dir(&place.dir)?;
        self.make_dir(&place.root)?;
        Ok(place)
    }

    fn mount(&mut self, filesystem: Filesystem) -> Result<PathBuf, StageError> {
        let path = self.dir.path().join(filesystem.name());
        self.make_dir(&path)?;
        let image = path.with_extension("image");
        match filesystem {
            Filesystem::Host => {}
            Filesystem::Tmpfs => {
                let mut mount = Command::new("mount");
                self.run(
                    mount
                        .args(["-t", "tmpfs", "-o", "size=4g,mode=755", "bench"])
                        .arg(&path),
                )?;
            }
            Filesystem::Btrfs => {
                self.image(&image, Command::new("mkfs.btrfs").arg("--quiet"))?;
                // Deleting a snapshot is never timed, but without this option an ordinary user
                // has to empty it first.
                self.mount_image(&image, &path, "loop,user_subvol_rm_allowed")?;
            }
            Filesystem::Xfs => {
                self.image(
                    &image,
                    Command::new("mkfs.xfs").args(["-q", "-m", "reflink=1"]),
                )?;
                self.mount_image(&image, &path, "loop")?;
            }
        }
        self.give(&path)?;
        self.mounted.push((filesystem, path.clone()));
        Ok(path)
    }

    fn image(&self, image: &Path, make: &mut Command) -> Result<(), StageError> {
        File::create(image)
            .and_then(|file| file.set_len(6 << 30))
            .map_err(StageError::io(image))?;
        self.run(make.arg(image))
    }

    fn mount_image(&self, image: &Path, path: &Path, options: &str) -> Result<(), StageError> {
        self.run(
            Command::new("mount")
                .args(["-o", options])
                .arg(image)
                .arg(path),
        )
    }

    /// `sandbox …`, run by the user in `place`.
    pub fn sandbox(&self, place: &Place) -> Command {
        let mut command = self.command(&self.sandbox, &place.dir);
        command.env("SANDBOX_ROOT", &place.root);
        command
    }

    /// `sandbox …`, run by the user in `dir`, with nothing said of where sandboxes are.
    pub fn program(&self, dir: &Path) -> Command {
        self.command(&self.sandbox, dir)
    }

    /// Any program, run by the user in `dir`.
    pub fn command(&self, program: impl AsRef<Path>, dir: &Path) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env("HOME", self.dir.path().join("home"))
            .env("USER", &self.user.name)
            .env("LANG", "C.UTF-8")
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        if self.user.uid != 0 {
            command.uid(self.user.uid).gid(self.user.gid);
        }
        command
    }

    /// This program, as a file the user can run.
    pub fn timer(&self) -> &Path {
        &self.timer
    }

    /// How long a command takes from spawn to exit. What it says on stderr is kept from the
    /// terminal, and shown when it fails.
    pub fn timed(&self, command: &mut Command) -> Result<Duration, StageError> {
        let said = self.dir.path().join("stderr");
        let file = File::create(&said).map_err(StageError::io(&said))?;
        let (took, status) = timing::timed(command.stderr(file))?;
        if status.success() {
            Ok(took)
        } else {
            let stderr = fs::read_to_string(&said).unwrap_or_default();
            Err(StageError::failed(command, status, stderr))
        }
    }

    /// Runs a command to its end, untimed.
    pub fn run(&self, command: &mut Command) -> Result<(), StageError> {
        self.output(command).map(drop)
    }

    /// What a command prints, without the last newline.
    pub fn output(&self, command: &mut Command) -> Result<String, StageError> {
        let output = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()
            .map_err(|source| StageError::spawn(command, source))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout)
                .trim_end()
                .to_owned())
        } else {
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(StageError::failed(command, output.status, stderr))
        }
    }

    /// Makes a directory that belongs to the user.
    pub fn make_dir(&self, path: &Path) -> Result<(), StageError> {
        fs::create_dir(path).map_err(StageError::io(path))?;
        self.give(path)
    }

    /// Gives one entry to the user.
    pub fn give(&self, path: &Path) -> Result<(), StageError> {
        chown(path, Some(self.user.uid), Some(self.user.gid)).map_err(StageError::io(path))
    }

    /// Gives a whole tree to the user.
    pub fn give_all(&self, path: &Path) -> Result<(), StageError> {
        let owner = format!("{}:{}", self.user.uid, self.user.gid);
        self.run(Command::new("chown").args(["-R", &owner]).arg(path))
    }

    /// Deletes a tree, untimed.
    pub fn remove(&self, path: &Path) -> Result<(), StageError> {
        fs::remove_dir_all(path).map_err(StageError::io(path))
    }

    /// Writes everything out, so that nobody is timed while another's pages are flushed.
    pub fn settle(&self) {
        rustix::fs::sync();
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for (filesystem, path) in self.mounted.drain(..).rev() {
            if filesystem != Filesystem::Host {
                // Nothing better to do with a failure here: the mount namespace ends with us.
                let _ = Command::new("umount").arg(&path).status();
            }
        }
    }
}

impl User {
    fn find(name: &str) -> Result<User, StageError> {
        let id = |flag: &str| {
            let output = Command::new("id")
                .arg(flag)
                .arg("--")
                .arg(name)
                .output()
                .ok()?;
            String::from_utf8(output.stdout).ok()?.trim().parse().ok()
        };
        let missing = || StageError::NoSuchUser(name.to_owned());
        Ok(User {
            name: name.to_owned(),
            uid: id("-u").ok_or_else(missing)?,
            gid: id("-g").ok_or_else(missing)?,
        })
    }
}
