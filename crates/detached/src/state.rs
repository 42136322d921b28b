//! The directory in which this program keeps what must outlive it.
//!
//! ```text
//! STATE/
//!   lock       held by the one program that uses it
//!   spool/     results that the control plane does not have yet
//!   runs/      a record of the executor that is running
//!   scratch/   temporary files of code, where it has no namespaces
//! ```
//!
//! It is its owner's alone, and never where code could read it.

use std::fs::{DirBuilder, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::Access;
use sandbox_isolation::{Runs, keeper};
use sandbox_linux::identity::{self, Ids};
use sandbox_model::{Class, Failure};
use thiserror::Error;

use crate::arguments::{Arguments, Isolation};

/// Who to be where root starts us and names nobody: whom templates have code run as.
const USER: Ids = Ids {
    user: 1000,
    group: 1000,
};

/// Where everything is.
#[derive(Debug)]
pub(crate) struct State {
    /// The directory.
    pub(crate) directory: PathBuf,
    /// The workspace, without links.
    pub(crate) workspace: PathBuf,
    /// Where temporary files go, without namespaces.
    pub(crate) scratch: Option<PathBuf>,
    /// Records of what runs.
    pub(crate) runs: Runs,
    /// That it is ours alone.
    _lock: File,
}

/// Why the directories cannot be used.
#[derive(Debug, Error)]
pub(crate) enum StateError {
    #[error("cannot use {what} {}", path.display())]
    Unusable {
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("another sandbox-executor uses {}", .0.display())]
    Taken(PathBuf),
    #[error("code could read what is kept in {}: {} is one with it", state.display(), other.display())]
    Exposed { state: PathBuf, other: PathBuf },
    #[error("cannot become user {} and group {}", ids.user, ids.group)]
    Identity { ids: Ids, source: io::Error },
    #[error("--user is for root, and this is user {0}")]
    NotRoot(u32),
}

impl Failure for StateError {
    fn class(&self) -> Class {
        match self {
            StateError::Unusable { source, .. } => Class::of_io(source),
            StateError::Taken(_) => Class::Busy,
            StateError::Identity { .. } => Class::Permission,
            StateError::Exposed { .. } | StateError::NotRoot(_) => Class::General,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            StateError::Unusable { what, .. } => {
                return Some(format!(
                    "give {what} to the user that this runs as, or name another"
                ));
            }
            StateError::Taken(_) => "end that one, or choose another directory with --state",
            StateError::Exposed { .. } => "choose a directory of its own with --state",
            StateError::Identity { .. } => {
                "give the container SETUID and SETGID, or start it as an ordinary user"
            }
            StateError::NotRoot(_) => "leave it out",
        };
        Some(hint.to_owned())
    }
}

impl State {
    /// Makes what is missing, becomes the user that it all belongs to, and takes the lock. What a killed
    /// predecessor left has ended by then.
    pub(crate) fn open(arguments: &Arguments) -> Result<State, StateError> {
        let user = user(arguments)?;
        let state = make(&arguments.state, "the state directory", user)?;
        for name in ["spool", "runs"] {
            make(&state.join(name), "the state directory", user)?;
        }
        let workspace = resolve(&arguments.workspace, "the workspace")?;
        give(&workspace, "the workspace", user)?;
        apart(&state, &workspace)?;
        let scratch = match arguments.isolation {
            Isolation::Namespaces => None,
            Isolation::Landlock => {
                concealed(&state)?;
                let scratch = state.join("scratch");
                Some(make(&scratch, "the state directory", user)?)
            }
        };
        if let Some(ids) = user {
            let become_them = identity::become_user(ids);
            become_them.map_err(|source| StateError::Identity { ids, source })?;
        }
        let lock = lock(&state)?;
        let runs = Runs::open(&state.join("runs"));
        // What is left of one that was killed is about to end.
        let ended = runs.stop(Duration::ZERO);
        ended.map_err(unusable("the state directory", &state))?;
        let needed = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
        let may = rustix::fs::access(&workspace, needed);
        may.map_err(|error| unusable("the workspace", &workspace)(error.into()))?;
        Ok(State {
            directory: state,
            workspace,
            scratch,
            runs,
            _lock: lock,
        })
    }

    /// Where results wait.
    pub(crate) fn spool(&self) -> PathBuf {
        self.directory.join("spool")
    }
}

/// Who to become; nobody else, where it is not root who starts us.
fn user(arguments: &Arguments) -> Result<Option<Ids>, StateError> {
    let own = rustix::process::geteuid();
    match (own.is_root(), arguments.user) {
        (true, user) => Ok(Some(user.unwrap_or(USER))),
        (false, None) => Ok(None),
        (false, Some(_)) => Err(StateError::NotRoot(own.as_raw())),
    }
}

/// Makes a directory of our own where it is missing.
fn make(path: &Path, what: &'static str, user: Option<Ids>) -> Result<PathBuf, StateError> {
    if let Some(above) = path.parent() {
        std::fs::create_dir_all(above).map_err(unusable(what, path))?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(unusable(what, path)(error));
        }
        _ => {}
    }
    give(path, what, user)?;
    let closed = std::fs::set_permissions(path, Permissions::from_mode(0o700));
    closed.map_err(unusable(what, path))?;
    resolve(path, what)
}

fn give(path: &Path, what: &'static str, user: Option<Ids>) -> Result<(), StateError> {
    match user {
        Some(Ids { user, group }) => {
            chown(path, Some(user), Some(group)).map_err(unusable(what, path))
        }
        None => Ok(()),
    }
}

fn resolve(path: &Path, what: &'static str) -> Result<PathBuf, StateError> {
    let found = path.canonicalize().map_err(unusable(what, path))?;
    match found.is_dir() {
        true => Ok(found),
        false => Err(unusable(what, path)(io::ErrorKind::NotADirectory.into())),
    }
}

/// What code may write to and what is kept from it must not lie in each other.
fn apart(state: &Path, other: &Path) -> Result<(), StateError> {
    match state.starts_with(other) || other.starts_with(state) {
        true => Err(StateError::Exposed {
            state: state.to_owned(),
            other: other.to_owned(),
        }),
        false => Ok(()),
    }
}

/// Without namespaces code reads the container's system, and nothing may be kept there.
fn concealed(state: &Path) -> Result<(), StateError> {
    match keeper::shows(state) {
        true => Err(StateError::Exposed {
            state: state.to_owned(),
            other: state.to_owned(),
        }),
        false => Ok(()),
    }
}

fn lock(state: &Path) -> Result<File, StateError> {
    let failed = |source| unusable("the state directory", state)(source);
    let mut options = File::options();
    let options = options.write(true).create(true).truncate(false);
    let file = options.open(state.join("lock")).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StateError::Taken(state.to_owned())),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

fn unusable(what: &'static str, path: &Path) -> impl Fn(io::Error) -> StateError {
    move |source| StateError::Unusable {
        what,
        path: path.to_owned(),
        source,
    }
}
