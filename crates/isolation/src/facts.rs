//! What a plan needs to know of the host.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use sandbox_linux::mount::{self, MountPoint};
use sandbox_model::{OverlayXattr, WorkspaceMount};

use crate::home::{self, HomeFacts};
use crate::launch::LaunchError;
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
    /// What a root of its own shows, of this directory of the host.
    pub system: System,
}

/// What a root of its own is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct System {
    /// A directory of the host.
    pub of: PathBuf,
    /// What of it is shown.
    pub entries: Vec<(OsString, TopLevel)>,
}

/// Something in the host's `/`, or in an image's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopLevel {
    /// A directory.
    Directory,
    /// A file.
    File,
    /// A link that leads there.
    Link(PathBuf),
}

/// What in `/` is the machine's system; everything else is its people's, or of the moment.
const SYSTEM: [&str; 11] = [
    "bin", "etc", "gnu", "lib", "lib32", "lib64", "libx32", "nix", "opt", "sbin", "usr",
];

/// What in an image's `/` every sandbox has of its own.
const OWN: [&str; 5] = ["dev", "proc", "run", "sys", "tmp"];

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
    Ok(Facts {
        privileged,
        slot: String::new(),
        separate_var_run: is_directory(&top(policy).join("var/run")),
        missing: missing(policy),
        home: policy.home.as_ref().map(home::look).transpose()?,
        hidden: hidden(policy)?,
        exposed: exposed(policy)?,
        repository: repository(&policy.source),
        system: system(policy)?,
    })
}

/// The directory that is, or becomes, `/` inside.
fn top(policy: &Policy) -> &Path {
    match &policy.root {
        Root::Host | Root::Built => Path::new("/"),
        Root::Image(image) => image,
    }
}

fn is_directory(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Which of the usual directories are not there, and cannot be made.
fn missing(policy: &Policy) -> Vec<PathBuf> {
    let usual = ["/run", "/tmp", "/var/tmp"].map(Path::new);
    let is_missing = |path: &&Path| match &policy.root {
        Root::Host | Root::Built => !is_directory(path),
        // Its own root has the first two anyway, and the third where the image has nothing at all.
        Root::Image(image) => {
            let var = image.join("var");
            let is_there = std::fs::symlink_metadata(&var).is_ok();
            let is_whole = is_directory(&var) && is_directory(&var.join("tmp"));
            path.starts_with("/var") && is_there && !is_whole
        }
    };
    let missing = usual.into_iter().filter(is_missing);
    missing.map(Path::to_owned).collect()
}

fn system(policy: &Policy) -> Result<System, LaunchError> {
    let top = top(policy);
    let inside = policy.source.components().nth(1);
    let is_shown = |name: &OsString| match policy.root {
        Root::Host => false,
        Root::Built => SYSTEM.iter().any(|system| name == system),
        Root::Image(_) => {
            !OWN.iter().any(|own| name == own) && inside.map(|name| name.as_os_str()) != Some(name)
        }
    };
    let mut entries = Vec::new();
    if policy.root != Root::Host {
        let failed = |source| LaunchError::Step {
            step: format!("look at {}", top.display()),
            source,
            hint: None,
        };
        for entry in std::fs::read_dir(top).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (name, kind) = (entry.file_name(), entry.file_type().map_err(failed)?);
            if !is_shown(&name) {
                continue;
            }
            if kind.is_dir() {
                entries.push((name, TopLevel::Directory));
            } else if kind.is_symlink() {
                let target = std::fs::read_link(entry.path()).map_err(failed)?;
                entries.push((name, TopLevel::Link(target)));
            } else if kind.is_file() {
                entries.push((name, TopLevel::File));
            }
        }
    }
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(System {
        of: top.to_owned(),
        entries,
    })
}

fn hidden(policy: &Policy) -> Result<Vec<Hidden>, LaunchError> {
    let mut found: Vec<Hidden> = Vec::new();
    for named in policy.hide.iter().chain(&policy.settings.hide) {
        let on_host = resolved(named);
        let path = on_host.as_ref().map_or(named.as_path(), |(path, _)| path);
        let refuse = |reason: &str| LaunchError::Path {
            verb: "hide",
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        if policy.settings.hide.contains(named) && path == policy.source {
            return Err(refuse("it is the workspace"));
        }
        if path == Path::new("/") {
            return Err(refuse("nothing would be left"));
        }
        // The workspace need not have what the source has: it is asked itself.
        let hidden = match path.strip_prefix(&policy.source) {
            Ok(name) if !name.as_os_str().is_empty() => in_workspace(policy, name)
                .map_err(|error| refuse(&format!("in the workspace: {error}")))?
                .map(|kind| (path.to_owned(), kind)),
            _ => on_host.ok(),
        };
        if let Some((path, kind)) = hidden
            && !found.iter().any(|hidden| hidden.path == path)
        {
            found.push(Hidden { path, kind });
        }
    }
    Ok(found)
}

/// What kind of thing the workspace has at `name`: in the copy, or in what an overlay shows of the
/// source. What only the overlay's own layer has was made inside, and is nothing to hide.
fn in_workspace(policy: &Policy, name: &Path) -> io::Result<Option<MountPoint>> {
    let top = match &policy.workspace {
        WorkspaceMount::Bind { dir } => dir,
        WorkspaceMount::Overlay { lower, .. } => lower,
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let found = rustix::fs::open(top, flags, Mode::empty())
        .map_err(io::Error::from)
        .and_then(|top| mount::resolve(top, name));
    let found = match found {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(None);
        }
        found => rustix::fs::fstat(found?)?,
    };
    Ok(Some(match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory => MountPoint::Directory,
        _ => MountPoint::File,
    }))
}

/// What is exposed, where that is possible.
pub(crate) fn exposed(policy: &Policy) -> Result<Vec<Exposed>, LaunchError> {
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
