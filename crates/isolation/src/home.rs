//! The home directory inside: an allow-list of toolchains and caches, each copy-on-write.
//!
//! What is not listed is not there, so nobody has to know where secrets lie. What is written goes
//! to the sandbox's own layer and stays with it.

mod git;
mod untouched;

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use sandbox_linux::mount::{self, MountPoint};
use sandbox_linux::placement;

use crate::facts::Hidden;
use crate::launch::LaunchError;
use crate::policy::Home;
pub use git::IdentityFile;
pub use untouched::is_untouched;

/// The home as the plan sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HomeFacts {
    /// The home, without symlinks.
    pub path: PathBuf,
    /// What else of the user's is covered: other homes, and credentials outside of the home.
    pub covered: Vec<Hidden>,
    /// The private directory that stands in for it.
    pub root: PathBuf,
    /// Where changes to what is let through go.
    pub upper: PathBuf,
    /// Where its overlays have their scratch directories.
    pub work: PathBuf,
    /// Names of directories let through, copy-on-write.
    pub entries: Vec<PathBuf>,
    /// Names in the entries that are not let through.
    pub withheld: Vec<PathBuf>,
    /// Files that say who commits, let through read-only.
    pub identity: Vec<IdentityFile>,
}

/// What a home's layer consists of: [`HomeFacts::root`], `upper` and `work`.
const ROOT: &str = "root";
const UPPER: &str = "upper";
const WORK: &str = "work";

/// Beside them, copies of [`IDENTITY`] without the secrets in it.
const COPIES: &str = "identity";

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

/// Looks at the home and makes what is missing of its layer.
pub fn look(home: &Home) -> Result<HomeFacts, LaunchError> {
    let homes = present(home);
    let Some((path, others)) = homes.split_first() else {
        return Err(LaunchError::Wall {
            reason: "no home directory of yours was found, so it cannot be kept out".to_owned(),
            hint: "set HOME to your home directory; an empty directory will do if you have none"
                .to_owned(),
        });
    };
    layer(home, path, others).map_err(|source| LaunchError::Step {
        step: format!("make the home layer {}", home.layer.display()),
        source,
        hint: None,
    })
}

/// The homes that are there, without symlinks. `/` is nobody's home.
fn present(home: &Home) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut asked: Vec<&PathBuf> = Vec::new();
    for path in &home.paths {
        if asked.contains(&path) {
            continue;
        }
        asked.push(path);
        let Ok(path) = std::fs::canonicalize(path) else {
            continue;
        };
        if path != Path::new("/") && path.is_dir() && !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

fn layer(home: &Home, path: &Path, others: &[PathBuf]) -> io::Result<HomeFacts> {
    let mut facts = HomeFacts {
        root: home.layer.join(ROOT),
        upper: home.layer.join(UPPER),
        work: home.layer.join(WORK),
        entries: existing(path, ALLOWED, FileType::Directory),
        identity: Vec::new(),
        path: path.to_owned(),
        covered: Vec::new(),
        withheld: Vec::new(),
    };
    for directory in [&facts.root, &facts.upper] {
        make_directories(directory, Mode::RWXU)?;
    }
    if make_directories(&facts.work, Mode::RWXU)? == Made::Now {
        placement::spread(std::fs::File::open(&facts.work)?);
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let upper = rustix::fs::open(&facts.upper, flags, Mode::empty())?;
    let (named, elsewhere) = credentials(home, path);
    let caches = existing(path, PRIVATE_CACHES, FileType::Directory);
    let withheld = CREDENTIALS.iter().map(PathBuf::from);
    let withheld = withheld.chain(caches).chain(named);
    let is_in = |name: &PathBuf, entry: &PathBuf| name != entry && name.starts_with(entry);
    let is_shown = |name: &PathBuf| facts.entries.iter().any(|entry| is_in(name, entry));
    facts.withheld = withheld.filter(is_shown).collect();
    for name in &facts.withheld {
        hide(&upper, path, name)?;
    }
    let copies = home.layer.join(COPIES);
    for name in existing(path, IDENTITY, FileType::RegularFile) {
        facts.identity.extend(git::identity(path, name, &copies)?);
    }
    facts.covered = others
        .iter()
        .map(|path| directory(path))
        .chain(elsewhere)
        .collect();
    Ok(facts)
}

fn directory(path: &Path) -> Hidden {
    Hidden {
        path: path.to_owned(),
        kind: MountPoint::Directory,
    }
}

/// The credentials that the caller named: those in the home by their names in it, and those elsewhere.
fn credentials(home: &Home, path: &Path) -> (Vec<PathBuf>, Vec<Hidden>) {
    let (mut inside, mut elsewhere) = (Vec::new(), Vec::new());
    for named in &home.credentials {
        // Every sandbox has its own of these.
        if ["/run", "/tmp"].iter().any(|own| named.starts_with(own)) {
            continue;
        }
        let Ok(found) = std::fs::canonicalize(named) else {
            continue;
        };
        // A directory in `/` itself is the machine's, whatever a variable says.
        if found.components().count() <= 2 && found.is_dir() {
            continue;
        }
        match found.strip_prefix(path) {
            Ok(name) => inside.push(name.to_owned()),
            Err(_) => {
                let kind = match found.is_dir() {
                    true => MountPoint::Directory,
                    false => MountPoint::File,
                };
                elsewhere.push(Hidden { path: found, kind });
            }
        }
    }
    (inside, elsewhere)
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
///
/// Commands write to the layer, so no name in it is trusted: each is resolved beneath `upper` and
/// through no link. A link in the place of a directory would lead the host to make nodes where the
/// command cannot reach.
fn hide(upper: &OwnedFd, home: &Path, name: &Path) -> io::Result<()> {
    let (Some(above), Some(last)) = (name.parent(), name.file_name()) else {
        return Ok(());
    };
    let place = match mount::resolve(upper, above) {
        Ok(place) => Some(place),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::NOENT) => copy_parents(upper, home, above)?,
            _ if is_replaced(&error) => None,
            _ => return Err(error),
        },
    };
    match place {
        None => Ok(()),
        Some(place) => white_out(&place, last),
    }
}

fn white_out(place: &OwnedFd, name: &OsStr) -> io::Result<()> {
    let kind = FileType::CharacterDevice;
    match rustix::fs::mknodat(place, name, kind, Mode::empty(), 0) {
        // Hidden before, or made anew inside since.
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) if is_replaced(&error.into()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Has a command put something else where the home has a directory, or removed it? Then nothing of
/// the home shows through there, and there is nothing to hide.
fn is_replaced(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::LOOP | Errno::NOTDIR)
    )
}

/// Makes the directory `name` in the layer, and those above it, as they are in the home. `None` when
/// the home does not have them, or a command replaced one.
fn copy_parents(upper: &OwnedFd, home: &Path, name: &Path) -> io::Result<Option<OwnedFd>> {
    let mut place = upper.try_clone()?;
    let mut real = home.to_owned();
    for part in name {
        real.push(part);
        let Ok(found) = std::fs::symlink_metadata(&real) else {
            return Ok(None);
        };
        if !found.is_dir() {
            return Ok(None);
        }
        let mode = Mode::from_raw_mode(found.mode());
        let is_new = match rustix::fs::mkdirat(&place, part, mode) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(Errno::NOTDIR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        place = match mount::resolve(place.as_fd(), Path::new(part)) {
            Err(error) if is_replaced(&error) => return Ok(None),
            outcome => outcome?,
        };
        if is_new {
            // Whatever the umask took away. By descriptor: the name may be another's by now.
            rustix::fs::chmod(mount::descriptor_path(place.as_fd()), mode)?;
        }
    }
    Ok(Some(place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileTypeExt;

    fn at(home: PathBuf, layer: PathBuf) -> Home {
        Home {
            paths: vec![home],
            layer,
            credentials: Vec::new(),
        }
    }

    fn made(names: &[&str]) -> (tempfile::TempDir, HomeFacts) {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().join("home");
        std::fs::create_dir(&home).unwrap();
        for name in names {
            std::fs::create_dir_all(home.join(name)).unwrap();
        }
        let layer = directory.path().join("layer");
        let facts = look(&at(home, layer)).unwrap();
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
        let facts = look(&at(home, layer)).unwrap();
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
    fn the_first_home_that_exists_counts_and_others_are_covered() {
        let directory = tempfile::tempdir().unwrap();
        let place = std::fs::canonicalize(directory.path()).unwrap();
        let [first, second] = ["first", "second"].map(|name| place.join(name));
        for home in [&first, &second] {
            std::fs::create_dir(home).unwrap();
        }
        let home = Home {
            paths: vec![
                "/".into(),
                place.join("gone"),
                first.clone(),
                second.clone(),
            ],
            layer: place.join("layer"),
            credentials: Vec::new(),
        };
        let facts = look(&home).unwrap();
        assert_eq!(facts.path, first);
        assert_eq!(facts.covered, [super::directory(&second)]);
    }

    #[test]
    fn without_a_home_nothing_is_started() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home {
            paths: vec!["/".into(), directory.path().join("gone")],
            layer: directory.path().join("layer"),
            credentials: Vec::new(),
        };
        assert!(matches!(look(&home), Err(LaunchError::Wall { .. })));
    }

    #[test]
    fn credentials_named_by_the_caller_are_covered() {
        // Not in /tmp, of which every sandbox has its own.
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let place = std::fs::canonicalize(directory.path()).unwrap();
        for made in ["home/.cache/cargo", "elsewhere"] {
            std::fs::create_dir_all(place.join(made)).unwrap();
        }
        let names = ["home/.cache/cargo/token", "elsewhere/token"];
        let credentials: Vec<PathBuf> = names.iter().map(|name| place.join(name)).collect();
        for file in &credentials {
            std::fs::write(file, "secret").unwrap();
        }
        // As containers have them.
        let top = tempfile::Builder::new()
            .prefix("sandbox-test-key")
            .tempfile_in("/")
            .unwrap();
        let mut home = at(place.join("home"), place.join("layer"));
        home.credentials = credentials.clone();
        home.credentials.push("/etc".into());
        home.credentials.push(top.path().to_owned());
        let facts = look(&home).unwrap();
        let covered = [&credentials[1], top.path()].map(|path: &Path| Hidden {
            path: path.to_owned(),
            kind: MountPoint::File,
        });
        assert_eq!(facts.covered, covered);
        let whiteout = facts.upper.join(".cache/cargo/token");
        assert!(
            whiteout
                .symlink_metadata()
                .unwrap()
                .file_type()
                .is_char_device()
        );
    }

    /// What a command leaves in the layer is met by every later run.
    #[test]
    fn what_replaced_a_directory_in_the_layer_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        for made in ["home/.cache/huggingface", "home/.cache/mozilla", "victim"] {
            std::fs::create_dir_all(place.join(made)).unwrap();
        }
        let upper = place.join("layer/upper/.cache");
        std::fs::create_dir_all(&upper).unwrap();
        std::os::unix::fs::symlink(place.join("victim"), upper.join("huggingface")).unwrap();
        look(&at(place.join("home"), place.join("layer"))).unwrap();
        assert_eq!(std::fs::read_dir(place.join("victim")).unwrap().count(), 0);
        std::fs::remove_file(upper.join("huggingface")).unwrap();
        std::fs::write(upper.join("huggingface"), "a file").unwrap();
        look(&at(place.join("home"), place.join("layer"))).unwrap();
    }
}
