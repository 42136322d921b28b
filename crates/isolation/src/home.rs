//! The home directory inside: an allow-list of toolchains and caches, each copy-on-write.
//!
//! What is not listed is not there, so nobody has to know where secrets lie. What is written goes
//! to the sandbox's own layer and stays with it.

mod untouched;

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode};
use sandbox_linux::placement;

use crate::launch::LaunchError;
use crate::policy::Home;
pub use untouched::is_untouched;

/// The home as the plan sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HomeFacts {
    /// `$HOME`, without symlinks.
    pub path: PathBuf,
    /// The private directory that stands in for it.
    pub root: PathBuf,
    /// Where changes to what is let through go.
    pub upper: PathBuf,
    /// Where its overlays have their scratch directories.
    pub work: PathBuf,
    /// Names of directories let through, copy-on-write.
    pub entries: Vec<PathBuf>,
    /// Names of files that say who commits, let through read-only.
    pub identity: Vec<PathBuf>,
}

/// What a home's layer consists of: [`HomeFacts::root`], `upper` and `work`.
const ROOT: &str = "root";
const UPPER: &str = "upper";
const WORK: &str = "work";

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

/// Credentials inside of allowed directories. Hidden also where they are not there yet: they may
/// appear while the command runs.
const CREDENTIALS: &[&str] = &[
    ".cache/gh",
    ".cache/huggingface/stored_tokens",
    ".cache/huggingface/token",
    ".cache/keyring",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".local/share/uv/credentials",
    ".nvm/.npmrc",
];

/// Caches of programs that browse or talk for the user. Hidden where a run finds them.
const PRIVATE_CACHES: &[&str] = &[
    ".cache/BraveSoftware",
    ".cache/chromium",
    ".cache/evolution",
    ".cache/google-chrome",
    ".cache/microsoft-edge",
    ".cache/mozilla",
    ".cache/thunderbird",
];

/// Who commits, and how.
const IDENTITY: &[&str] = &[
    ".config/git/attributes",
    ".config/git/config",
    ".config/git/ignore",
    ".gitconfig",
];

/// Looks at the home and makes what is missing of its layer. `None` when there is nothing to cover.
pub fn look(home: &Home) -> Result<Option<HomeFacts>, LaunchError> {
    let Ok(path) = std::fs::canonicalize(&home.path) else {
        return Ok(None);
    };
    if path == Path::new("/") {
        return Ok(None);
    }
    layer(home, path)
        .map(Some)
        .map_err(|source| LaunchError::Step {
            step: format!("make the home layer {}", home.layer.display()),
            source,
            hint: None,
        })
}

fn layer(home: &Home, path: PathBuf) -> io::Result<HomeFacts> {
    let facts = HomeFacts {
        root: home.layer.join(ROOT),
        upper: home.layer.join(UPPER),
        work: home.layer.join(WORK),
        entries: existing(&path, ALLOWED, FileType::Directory),
        identity: existing(&path, IDENTITY, FileType::RegularFile),
        path,
    };
    for directory in [&facts.root, &facts.upper] {
        make_directories(directory, Mode::RWXU)?;
    }
    if make_directories(&facts.work, Mode::RWXU)? == Made::Now {
        placement::spread(std::fs::File::open(&facts.work)?);
    }
    let caches = existing(&facts.path, PRIVATE_CACHES, FileType::Directory);
    let credentials = CREDENTIALS.iter().map(Path::new);
    for name in credentials.chain(caches.iter().map(PathBuf::as_path)) {
        if facts.entries.iter().any(|entry| name.starts_with(entry)) {
            hide(&facts, name)?;
        }
    }
    Ok(facts)
}

/// A link among them is not followed: what it leads to is the host's, and read-only.
fn existing(home: &Path, names: &[&str], kind: FileType) -> Vec<PathBuf> {
    let is_there = |name: &&&str| {
        let found = rustix::fs::lstat(home.join(name));
        found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == kind)
    };
    names.iter().filter(is_there).map(PathBuf::from).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    Now,
    Before,
}

fn make_directories(path: &Path, mode: Mode) -> io::Result<Made> {
    match rustix::fs::mkdir(path, mode) {
        Ok(()) => Ok(Made::Now),
        Err(rustix::io::Errno::EXIST) => Ok(Made::Before),
        Err(rustix::io::Errno::NOENT) => {
            let parent = path.parent().ok_or(rustix::io::Errno::NOENT)?;
            make_directories(parent, mode)?;
            // Another run of the sandbox may make it at the same moment.
            make_directories(path, mode)
        }
        Err(error) => Err(error.into()),
    }
}

/// Puts a whiteout (a character device 0:0, which anyone may make) over what must not be seen.
fn hide(facts: &HomeFacts, name: &Path) -> io::Result<()> {
    let whiteout = facts.upper.join(name);
    let make = || {
        let kind = FileType::CharacterDevice;
        rustix::fs::mknodat(CWD, &whiteout, kind, Mode::empty(), 0)
    };
    match make() {
        // Hidden before, or made anew inside since.
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(rustix::io::Errno::NOENT) => match copy_parents(facts, name)? {
            true => match make() {
                Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
                Err(error) => Err(error.into()),
            },
            false => Ok(()),
        },
        Err(error) => Err(error.into()),
    }
}

/// Makes the directories above `name` in the layer as they are in the home. `false` when the home
/// does not have them.
fn copy_parents(facts: &HomeFacts, name: &Path) -> io::Result<bool> {
    let mut parents: Vec<&Path> = name.ancestors().skip(1).collect();
    parents.retain(|parent| !parent.as_os_str().is_empty());
    for parent in parents.into_iter().rev() {
        let Ok(found) = std::fs::symlink_metadata(facts.path.join(parent)) else {
            return Ok(false);
        };
        if !found.is_dir() {
            return Ok(false);
        }
        let mode = Mode::from_raw_mode(found.mode());
        let copy = facts.upper.join(parent);
        match rustix::fs::mkdir(&copy, mode) {
            // Whatever the umask took away.
            Ok(()) => rustix::fs::chmod(&copy, mode)?,
            Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileTypeExt;

    fn made(names: &[&str]) -> (tempfile::TempDir, HomeFacts) {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().join("home");
        std::fs::create_dir(&home).unwrap();
        for name in names {
            std::fs::create_dir_all(home.join(name)).unwrap();
        }
        let layer = directory.path().join("layer");
        let facts = look(&Home { path: home, layer }).unwrap().unwrap();
        (directory, facts)
    }

    #[test]
    fn only_listed_directories_pass() {
        let (_directory, facts) = made(&[".ssh", ".cargo", ".aws", ".local/bin", "projects"]);
        assert_eq!(
            facts.entries,
            [Path::new(".cargo"), Path::new(".local/bin")]
        );
    }

    #[test]
    fn credentials_are_covered_before_they_exist() {
        let (_directory, facts) = made(&[".cargo"]);
        for name in [".cargo/credentials", ".cargo/credentials.toml"] {
            let found = std::fs::symlink_metadata(facts.upper.join(name)).unwrap();
            assert!(
                found.file_type().is_char_device() && found.rdev() == 0,
                "{name}"
            );
        }
        assert!(!facts.upper.join(".cache").exists());
    }

    #[test]
    fn directories_above_what_is_hidden_keep_their_modes() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().join("home");
        std::fs::create_dir_all(home.join(".cargo")).unwrap();
        let shared = std::fs::Permissions::from_mode(0o2775);
        std::fs::set_permissions(home.join(".cargo"), shared).unwrap();
        let layer = directory.path().join("layer");
        let facts = look(&Home { path: home, layer }).unwrap().unwrap();
        let copy = facts.upper.join(".cargo").metadata().unwrap();
        assert_eq!(copy.mode() & 0o7777, 0o2775);
    }

    #[test]
    fn private_caches_are_covered_where_they_exist() {
        let (_directory, facts) = made(&[".cache/mozilla", ".cache/pip"]);
        assert!(
            facts
                .upper
                .join(".cache/mozilla")
                .symlink_metadata()
                .is_ok()
        );
        assert!(
            facts
                .upper
                .join(".cache/chromium")
                .symlink_metadata()
                .is_err()
        );
        assert!(facts.upper.join(".cache/pip").symlink_metadata().is_err());
    }

    #[test]
    fn a_home_that_is_the_root_is_left_alone() {
        let layer = tempfile::tempdir().unwrap();
        let home = Home {
            path: "/".into(),
            layer: layer.path().to_owned(),
        };
        assert_eq!(look(&home).unwrap(), None);
    }
}
