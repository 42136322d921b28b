//! Where we are: the environment, the home, the sandbox root, the working directory.
//!
//! The only module that reads environment variables for their meaning. Flags go over these, these
//! over `config.toml`.

use std::env;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sandbox_linux::users::{self, LIST};
use sandbox_model::{BackendChoice, Class, Failure};
use sandbox_workspace::{Root, Sandbox};
use thiserror::Error;

use crate::config::{Config, ConfigError};
use crate::repair;
use crate::report::{Problem, Refusal};

/// What the environment lacks or gets wrong.
#[derive(Debug, Clone, Error)]
pub(crate) enum SurroundingsError {
    /// No home, and something needs it.
    #[error("HOME is not set, so there is no place to keep sandboxes")]
    NoHome,
    /// A home that is no absolute path.
    #[error("HOME is '{}', which is not an absolute path", .0.display())]
    RelativeHome(PathBuf),
    /// Nothing says where the home of this user is, so it could not be kept out of a sandbox.
    #[error("your home directory is unknown: user {user} is not in {LIST}, and HOME {home}")]
    UnknownHome {
        /// The user's id.
        user: u32,
        /// What is wrong with `HOME`.
        home: String,
    },
    /// `SANDBOX_BACKEND` names nothing we know.
    #[error("SANDBOX_BACKEND is '{0}', which is no backend")]
    Backend(String),
}

impl Failure for SurroundingsError {
    fn class(&self) -> Class {
        Class::General
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            SurroundingsError::NoHome | SurroundingsError::RelativeHome(_) => {
                "set HOME to your home directory, or SANDBOX_ROOT to the directory for sandboxes"
                    .to_owned()
            }
            SurroundingsError::UnknownHome { .. } => {
                "set HOME to your home directory; an empty directory of yours will do if you have \
                 none"
                    .to_owned()
            }
            SurroundingsError::Backend(_) => "use auto, btrfs, overlay or copy".to_owned(),
        })
    }
}

/// A variable that is set to something.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// The user's home directory.
pub(crate) fn home() -> Result<PathBuf, SurroundingsError> {
    let home = PathBuf::from(variable("HOME").ok_or(SurroundingsError::NoHome)?);
    match home.is_absolute() {
        true => Ok(home),
        false => Err(SurroundingsError::RelativeHome(home)),
    }
}

/// Everything that may be the user's home, `HOME` first: what is kept out of sandboxes. The variable
/// alone does not decide, because whoever unsets it, or sets it to something else, would open the
/// real home.
///
/// A user whom `/etc/passwd` does not have (LDAP and the like) has only the variable, so it must name
/// a directory that belongs to them.
pub(crate) fn homes() -> Result<Vec<PathBuf>, SurroundingsError> {
    let named = variable("HOME").map(PathBuf::from);
    let user = rustix::process::getuid().as_raw();
    let listed = users::homes(user);
    if listed.is_empty() {
        let wrong = match &named {
            None => Some("is not set".to_owned()),
            Some(home) => match home.metadata() {
                Ok(found) if home.is_absolute() && found.is_dir() && found.uid() == user => None,
                _ => Some(format!(
                    "is '{}', which is no directory of theirs",
                    home.display()
                )),
            },
        };
        if let Some(home) = wrong {
            return Err(SurroundingsError::UnknownHome { user, home });
        }
    }
    let named = named.filter(|home| home.is_absolute());
    Ok(named.into_iter().chain(listed).collect())
}

/// The directory that holds all sandboxes: `SANDBOX_ROOT`, or its place below the home.
pub(crate) fn root_path() -> Result<PathBuf, Problem> {
    // In a component test SANDBOX_ROOT names that test's own sandbox, not a store of ours.
    let in_component_test = variable("SANDBOX_MODE").is_some_and(|mode| mode == "true");
    match variable("SANDBOX_ROOT").filter(|_| !in_component_test) {
        Some(root) => absolute(Path::new(&root)),
        None => Ok(home()?.join(".local/share/daedalos/sandbox")),
    }
}

/// The sandbox root, opened. What interrupted promotes left in any of its sources is repaired first.
pub(crate) fn root() -> Result<Root, Problem> {
    let root = root_unrepaired()?;
    repair::root(&root);
    Ok(root)
}

/// The sandbox root, opened, for a command that is about one source; what an interrupted promote left
/// there is repaired first.
pub(crate) fn root_for(source: &Path) -> Result<Root, Problem> {
    let root = root_unrepaired()?;
    match source.canonicalize() {
        Ok(source) => repair::source(&root, &source),
        // Whoever needs the source finds out.
        Err(_) => repair::source(&root, source),
    }
    Ok(root)
}

/// The sandbox root, opened and nothing else: for completions, and to find a source first.
pub(crate) fn root_unrepaired() -> Result<Root, Problem> {
    Ok(Root::open(&root_path()?)?)
}

/// The sandbox of this name. What an interrupted promote left in its source is repaired first.
pub(crate) fn sandbox(name: &str) -> Result<Sandbox, Problem> {
    let sandbox = root_unrepaired()?.sandbox(name)?;
    repair::source(&sandbox.root, sandbox.source());
    Ok(sandbox)
}

/// `path` from the working directory on, `.` and `..` kept for the kernel to resolve.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Problem> {
    std::path::absolute(path)
        .map_err(|error| Refusal::io("cannot find the working directory", error).into())
}

/// The working directory.
pub(crate) fn current_dir() -> Result<PathBuf, Problem> {
    env::current_dir().map_err(|error| {
        Refusal::io("cannot find the working directory", error)
            .class(Class::SourceNotFound)
            .hint("it was probably deleted; cd to one that exists")
            .into()
    })
}

/// `config.toml`, or the defaults where there is none.
pub(crate) fn config() -> Result<Config, ConfigError> {
    let directory = match variable("XDG_CONFIG_HOME").map(PathBuf::from) {
        Some(directory) if directory.is_absolute() => directory,
        // The file may ask for more isolation: to unset HOME must not lift that.
        _ => match homes().ok().and_then(|homes| homes.into_iter().next()) {
            Some(home) => home.join(".config"),
            None => return Ok(Config::default()),
        },
    };
    Config::read(&directory.join("daedalos/sandbox/config.toml"))
}

/// The backend to use: the flag's, `SANDBOX_BACKEND`'s, the file's, the best.
pub(crate) fn backend(
    flag: Option<BackendChoice>,
    config: &Config,
) -> Result<BackendChoice, SurroundingsError> {
    if let Some(choice) = flag {
        return Ok(choice);
    }
    match variable("SANDBOX_BACKEND") {
        Some(name) => {
            let name = name.to_string_lossy();
            name.parse()
                .map_err(|_| SurroundingsError::Backend(name.into_owned()))
        }
        None => Ok(config.backend.unwrap_or_default()),
    }
}

/// The shells to try for `enter`, best first: `SANDBOX_SHELL`, the file's, `SHELL`, `/bin/sh`.
pub(crate) fn shells(config: &Config) -> Vec<PathBuf> {
    let named = [
        variable("SANDBOX_SHELL"),
        config.shell.clone().map(Into::into),
        variable("SHELL"),
    ];
    named
        .into_iter()
        .flatten()
        .map(PathBuf::from)
        .chain([PathBuf::from("/bin/sh")])
        .collect()
}

/// All variables, to be filtered before they reach a sandbox.
pub(crate) fn variables() -> impl Iterator<Item = (OsString, OsString)> {
    env::vars_os()
}
