//! What a plan needs to know of the host.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use sandbox_linux::mount::MountPoint;
use sandbox_model::OverlayXattr;

use crate::home::{self, HomeFacts};
use crate::launch::{self, LaunchError};
use crate::policy::{Policy, Root};

/// The host, as far as it decides about mounts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// We are real root.
    pub privileged: bool,
    /// The slot for the scratch of its overlays.
    pub slot: String,
    /// `/var/run` is a directory of its own rather than a link to `/run`.
    pub separate_var_run: bool,
    /// Which of the usual directories this host does not have.
    pub missing: Vec<PathBuf>,
    /// The home and what of it is let through.
    pub home: Option<HomeFacts>,
    /// What exists of what is to be hidden, resolved.
    pub hidden: Vec<Hidden>,
    /// What is exposed, resolved.
    pub exposed: Vec<Exposed>,
    /// The repository that a git worktree's `.git` file points to.
    pub repository: Option<PathBuf>,
    /// What of the host a root of its own shows.
    pub system: Vec<(OsString, TopLevel)>,
}

/// Something in the host's `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopLevel {
    /// A directory.
    Directory,
    /// A link that leads there.
    Link(PathBuf),
}

/// What in `/` is the machine's system; everything else is its people's, or of the moment.
const SYSTEM: [&str; 11] = [
    "bin", "etc", "gnu", "lib", "lib32", "lib64", "libx32", "nix", "opt", "sbin", "usr",
];

impl Facts {
    /// Where overlays of ours keep their marks.
    pub fn xattr(&self) -> OverlayXattr {
        match self.privileged {
            true => OverlayXattr::Trusted,
            false => OverlayXattr::User,
        }
    }
}

/// A path to hide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hidden {
    /// Where.
    pub path: PathBuf,
    /// What is there.
    pub kind: MountPoint,
}

/// A path to expose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exposed {
    /// Where.
    pub path: PathBuf,
    /// What is there.
    pub kind: MountPoint,
    /// Writes reach the host.
    pub writable: bool,
}

/// Looks at the host, and makes the home's layers where they are missing.
pub fn look(policy: &Policy) -> Result<Facts, LaunchError> {
    let privileged = rustix::process::geteuid().is_root();
    let kind = |path: &str| std::fs::symlink_metadata(path).map(|found| found.file_type());
    let usual = ["/run", "/tmp", "/var/tmp"];
    let missing = usual
        .iter()
        .filter(|path| !kind(path).is_ok_and(|kind| kind.is_dir()));
    Ok(Facts {
        privileged,
        slot: String::new(),
        separate_var_run: kind("/var/run").is_ok_and(|kind| kind.is_dir()),
        missing: missing.map(PathBuf::from).collect(),
        home: policy.home.as_ref().map(home::look).transpose()?.flatten(),
        hidden: hidden(policy)?,
        exposed: exposed(policy)?,
        repository: repository(&policy.source),
        system: match policy.root {
            Root::Host => Vec::new(),
            Root::Built => system()?,
        },
    })
}

fn system() -> Result<Vec<(OsString, TopLevel)>, LaunchError> {
    let failed = launch::step("look at /");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/").map_err(&failed)? {
        let entry = entry.map_err(&failed)?;
        let (name, kind) = (entry.file_name(), entry.file_type().map_err(&failed)?);
        if !SYSTEM.iter().any(|system| name == *system) {
            continue;
        }
        if kind.is_dir() {
            found.push((name, TopLevel::Directory));
        } else if kind.is_symlink() {
            let target = std::fs::read_link(entry.path()).map_err(&failed)?;
            found.push((name, TopLevel::Link(target)));
        }
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(found)
}

fn hidden(policy: &Policy) -> Result<Vec<Hidden>, LaunchError> {
    let mut found = Vec::new();
    for path in policy.hide.iter().chain(&policy.settings.hide) {
        let Ok((path, kind)) = resolved(path) else {
            continue;
        };
        if policy.settings.hide.contains(&path) && path == policy.source {
            let reason = "it is the workspace".to_owned();
            return Err(LaunchError::Path {
                verb: "hide",
                path,
                reason,
            });
        }
        if path == Path::new("/") {
            let reason = "nothing would be left".to_owned();
            return Err(LaunchError::Path {
                verb: "hide",
                path,
                reason,
            });
        }
        if !found.iter().any(|hidden: &Hidden| hidden.path == path) {
            found.push(Hidden { path, kind });
        }
    }
    Ok(found)
}

fn exposed(policy: &Policy) -> Result<Vec<Exposed>, LaunchError> {
    let mut found = Vec::new();
    for exposure in &policy.settings.expose {
        let refuse = |reason: String| LaunchError::Path {
            verb: "expose",
            path: exposure.path.clone(),
            reason,
        };
        let (path, kind) = resolved(&exposure.path).map_err(|error| refuse(error.to_string()))?;
        let root = policy.hide.iter().find(|hidden| path.starts_with(hidden));
        if let Some(root) = root {
            return Err(refuse(format!("{} stays hidden", root.display())));
        }
        if ["/proc", "/dev", "/sys"]
            .iter()
            .any(|system| path.starts_with(system))
            || path == Path::new("/")
        {
            return Err(refuse(
                "the sandbox has its own, or sees it already".to_owned(),
            ));
        }
        if path.starts_with(&policy.source) {
            return Err(refuse("it is part of the workspace".to_owned()));
        }
        found.push(Exposed {
            path,
            kind,
            writable: exposure.writable,
        });
    }
    Ok(found)
}

/// The path without symlinks, and what it leads to.
fn resolved(path: &Path) -> io::Result<(PathBuf, MountPoint)> {
    let path = std::fs::canonicalize(path)?;
    let directory = std::fs::symlink_metadata(&path)?.is_dir();
    let kind = if directory {
        MountPoint::Directory
    } else {
        MountPoint::File
    };
    Ok((path, kind))
}

/// The common git directory of the worktree at `source`, when it lies outside of it.
fn repository(source: &Path) -> Option<PathBuf> {
    let pointer = source.join(".git");
    let text = std::fs::read_to_string(&pointer).ok()?;
    let gitdir = source.join(text.strip_prefix("gitdir:")?.trim());
    let common = match std::fs::read_to_string(gitdir.join("commondir")) {
        Ok(common) => gitdir.join(common.trim()),
        Err(_) => gitdir,
    };
    let common = std::fs::canonicalize(common).ok()?;
    (!common.starts_with(source) && common.join("objects").is_dir()).then_some(common)
}
