//! Everything that decides how one command is run, gathered by the caller.

use std::ffi::OsString;
use std::path::PathBuf;

use sandbox_linux::identity::Ids;
use sandbox_model::{SandboxName, Settings, WorkspaceMount};

/// One command and the walls around it.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The sandbox's name; also the hostname inside.
    pub name: SandboxName,
    /// What to mount at `source`.
    pub workspace: WorkspaceMount,
    /// The source's absolute path, where the workspace appears.
    pub source: PathBuf,
    /// The working directory inside; falls back to `source` when it does not exist there.
    pub cwd: PathBuf,
    /// The user's home and the layer that stands in for it.
    pub home: Option<Home>,
    /// Host paths covered by emptiness: the sandbox root first of all. Those that do not exist are
    /// passed over.
    pub hide: Vec<PathBuf>,
    /// The user's wishes, stored and overridden ones already merged.
    pub settings: Settings,
    /// The whole environment inside, as [`crate::environment::inside`] makes it.
    pub env: Vec<(OsString, OsString)>,
    /// The command; the first is looked up in `PATH` inside.
    pub command: Vec<OsString>,
    /// Where its terminal comes from.
    pub terminal: Terminal,
    /// A directory that size limits are measured on (the workspace's layer).
    pub layer: PathBuf,
    /// What the rest of the filesystem is.
    pub root: Root,
    /// Who the command is inside, where it is not real root.
    pub identity: Identity,
}

/// What is seen inside of the host's filesystem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    /// All of it, read-only.
    Host,
    /// A root of its own, in which only the system's directories are, read-only; the workspace may be
    /// anywhere in it.
    Built,
    /// The same, with what is in this directory instead of the host's system.
    Image(PathBuf),
}

/// Who the command is inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// Who the launcher is.
    Own,
    /// Somebody else by number; outside, the launcher still.
    As(Ids),
}

/// The home directory inside.
#[derive(Debug, Clone)]
pub struct Home {
    /// Where the user's home may be, the best guess first: `$HOME`, then what the list of users says.
    /// The first directory among them is the home inside, the others are covered. A launch is refused
    /// where none of them exists: there would be nothing to protect it by.
    pub paths: Vec<PathBuf>,
    /// Where what is written there is kept, `ROOT/NAME/home`.
    pub layer: PathBuf,
    /// Credentials that lie elsewhere, or under other names. Covered where they exist.
    pub credentials: Vec<PathBuf>,
}

/// The command's standard streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    /// The caller's own three descriptors, untouched.
    Inherit,
    /// A new pseudo-terminal from the sandbox's own devpts; [`crate::Run::master`] is its other end.
    New,
}
