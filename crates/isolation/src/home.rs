//! The home directory inside: an allow-list of toolchains and caches, each copy-on-write.
//!
//! What is not listed is not there, so nobody has to know where secrets lie. What is written goes
//! to the sandbox's own layer and stays with it.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode};

use crate::launch::LaunchError;
use crate::policy::Home;

/// The home as the plan sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HomeFacts {
    /// `$HOME`, without symlinks.
    pub path: PathBuf,
    /// The private directory that stands in for it.
    pub root: PathBuf,
    /// Directories let through, copy-on-write.
    pub entries: Vec<Entry>,
    /// Files that say who commits, let through read-only.
    pub identity: Vec<PathBuf>,
}

/// A directory let through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where, on the host and inside.
    pub path: PathBuf,
    /// Where changes go.
    pub upper: PathBuf,
    /// The overlay's scratch.
    pub work: PathBuf,
}

/// Toolchains and caches.
const ALLOWED: &[&str] = &[
    ".bun",
    ".cache",
    ".cargo",
    ".deno",
    ".gradle/caches",
    ".gradle/wrapper",
    ".local/bin",
    ".local/lib",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pnpm",
    ".local/share/uv",
    ".m2/repository",
    ".nix-profile",
    ".npm",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman",
    ".volta",
    "go",
];

/// What stays hidden inside of allowed directories: credentials, and the caches of programs that
/// browse or talk for the user.
const CREDENTIALS: &[&str] = &[
    ".bun/install/auth.json",
    ".cache/BraveSoftware",
    ".cache/chromium",
    ".cache/evolution",
    ".cache/gh",
    ".cache/google-chrome",
    ".cache/huggingface/stored_tokens",
    ".cache/huggingface/token",
    ".cache/keyring",
    ".cache/microsoft-edge",
    ".cache/mozilla",
    ".cache/thunderbird",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".local/share/uv/credentials",
    ".npm/_authToken",
    ".nvm/.npmrc",
];

/// Who commits, and how.
const IDENTITY: &[&str] = &[
    ".config/git/attributes",
    ".config/git/config",
    ".config/git/ignore",
    ".gitconfig",
];

/// Looks at the home and makes the layers that are missing. `None` when there is nothing to cover.
pub fn look(home: &Home) -> Result<Option<HomeFacts>, LaunchError> {
    let Ok(path) = std::fs::canonicalize(&home.path) else {
        return Ok(None);
    };
    if path == Path::new("/") {
        return Ok(None);
    }
    let step = |source| LaunchError::Step {
        step: format!("make the home layer {}", home.layer.display()),
        source,
        hint: None,
    };
    let root = home.layer.join("root");
    make_directory(&root).map_err(step)?;
    let mut entries = Vec::new();
    for name in ALLOWED {
        let allowed = path.join(name);
        if kind_of(&allowed) == Some(FileType::Directory) {
            entries.push(entry(home, name, allowed).map_err(step)?);
        }
    }
    let identity = IDENTITY.iter().map(|name| path.join(name));
    let identity = identity
        .filter(|file| kind_of(file) == Some(FileType::RegularFile))
        .collect();
    Ok(Some(HomeFacts {
        path,
        root,
        entries,
        identity,
    }))
}

fn kind_of(path: &Path) -> Option<FileType> {
    let found = rustix::fs::stat(path).ok()?;
    Some(FileType::from_raw_mode(found.st_mode))
}

fn entry(home: &Home, name: &str, path: PathBuf) -> io::Result<Entry> {
    let layer = name.replace('/', "+");
    let upper = home.layer.join("upper").join(&layer);
    let work = home.layer.join("work").join(&layer);
    make_directory(&work)?;
    if make_directory(&upper)? == Made::Now {
        hide_credentials(name, &upper)?;
    }
    Ok(Entry { path, upper, work })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    Now,
    Before,
}

/// Makes a directory and its parents, private to the user.
fn make_directory(path: &Path) -> io::Result<Made> {
    match rustix::fs::mkdir(path, Mode::RWXU) {
        Ok(()) => Ok(Made::Now),
        Err(rustix::io::Errno::EXIST) => Ok(Made::Before),
        Err(rustix::io::Errno::NOENT) => {
            let parent = path.parent().ok_or(rustix::io::Errno::NOENT)?;
            make_directory(parent)?;
            rustix::fs::mkdir(path, Mode::RWXU)?;
            Ok(Made::Now)
        }
        Err(error) => Err(error.into()),
    }
}

/// Puts whiteouts (character devices 0:0, which anyone may make) over what must not be seen.
fn hide_credentials(name: &str, upper: &Path) -> io::Result<()> {
    for secret in CREDENTIALS {
        let Ok(beneath) = Path::new(secret).strip_prefix(name) else {
            continue;
        };
        let whiteout = upper.join(beneath);
        if let Some(parent) = whiteout.parent() {
            make_directory(parent)?;
        }
        match rustix::fs::mknodat(CWD, &whiteout, FileType::CharacterDevice, Mode::empty(), 0) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
