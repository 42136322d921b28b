//! Directories that serve again.
//!
//! Most tries leave nothing behind but the two dozen directories that were made for them, and to
//! make and remove those takes longer than the try itself. So a root keeps one set of them, hidden,
//! and the next create starts from it. It keeps only what is exactly as a create leaves it; what a
//! command had a hand in is deleted.

use std::io;

use sandbox_model::BackendKind;

use crate::backend::overlay::{UPPER, WORK};
use crate::lock;
use crate::meta;
use crate::sandbox::{Sandbox, SandboxError};
use crate::tree::{Dir, Replace};

/// Where the set waits, in the root.
pub(crate) const SPARE: &str = ".spare";

/// Directories whose contents are looked at, and all that may be in them. The private home is its
/// maker's to vouch for, and the overlays' scratch is out of a command's reach.
const LOOKED_INTO: [(&str, &[&str]); 3] =
    [(UPPER, &[]), ("bases", &["lock"]), ("runs", &[".launch"])];

/// Everything else that may be in a sandbox's directory.
const OTHERS: [&str; 7] = [
    WORK,
    "home",
    lock::FILE,
    meta::FILE,
    "source",
    "created",
    "backend",
];

/// Puts the sandbox's directories aside for the next create, if nothing in them came from a command.
/// The caller vouches for the private home. `false` when they cannot serve again: nothing was done.
pub fn put_aside(sandbox: &Sandbox) -> Result<bool, SandboxError> {
    let _lock = sandbox.lock_exclusive()?;
    // Whatever keeps it from being found clean and moved, it can still be deleted.
    Ok(is_clean(sandbox).unwrap_or(false) && move_aside(sandbox).is_ok())
}

fn is_clean(sandbox: &Sandbox) -> io::Result<bool> {
    if sandbox.meta.backend != BackendKind::Overlay || sandbox.meta.forked_from.is_some() {
        return Ok(false);
    }
    let dir = Dir::open(&sandbox.dir)?;
    for entry in dir.entries()? {
        let is = |known: &str| known.as_bytes() == entry.name;
        let clean = match LOOKED_INTO.iter().find(|(name, _)| is(name)) {
            Some((_, allowed)) => holds_only(&dir.open_dir(&entry.name)?, allowed)?,
            None => OTHERS.iter().any(|name| is(name)),
        };
        if !clean {
            return Ok(false);
        }
    }
    // The overlay leaves its marks; what else is there, somebody inside put there.
    let attributes = dir.all_xattrs(UPPER.as_bytes())?;
    let ours = |name: &Vec<u8>| name.ends_with(b".overlay.uuid");
    Ok(attributes.keys().all(ours))
}

fn holds_only(dir: &Dir, allowed: &[&str]) -> io::Result<bool> {
    let known = |name: &[u8]| allowed.iter().any(|allowed| allowed.as_bytes() == name);
    Ok(dir.entries()?.iter().all(|entry| known(&entry.name)))
}

fn move_aside(sandbox: &Sandbox) -> io::Result<()> {
    let root = Dir::open(sandbox.root.path())?;
    let name = sandbox.name().as_str().as_bytes();
    root.rename(name, &root, SPARE.as_bytes(), Replace::No)
}

/// Takes the set, under the name `hidden`; `false` where there is none.
pub(crate) fn take(root: &Dir, hidden: &str) -> io::Result<bool> {
    match root.rename(SPARE.as_bytes(), root, hidden.as_bytes(), Replace::No) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use sandbox_model::{BackendChoice, Settings};

    use super::*;
    use crate::progress::Silent;
    use crate::root::{CreateRequest, Root};

    struct Place {
        dir: tempfile::TempDir,
        root: Root,
    }

    impl Place {
        fn new() -> Place {
            let dir = tempfile::tempdir().unwrap();
            for (name, mode) in [("first", 0o755), ("second", 0o750)] {
                fs::create_dir(dir.path().join(name)).unwrap();
                let mode = fs::Permissions::from_mode(mode);
                fs::set_permissions(dir.path().join(name), mode).unwrap();
            }
            let root = Root::open(&dir.path().join("root")).unwrap();
            Place { dir, root }
        }

        fn create(&self, source: &str, kind: BackendKind) -> Sandbox {
            let request = CreateRequest {
                name: None,
                source: self.dir.path().join(source),
                backend: BackendChoice::Only(kind),
                settings: Settings::default(),
            };
            self.root.create(&request, &mut Silent).unwrap()
        }

        fn has_spare(&self) -> bool {
            self.root.path().join(SPARE).exists()
        }
    }

    #[test]
    fn the_next_create_starts_from_it_and_is_like_any_other() {
        let place = Place::new();
        let sandbox = place.create("first", BackendKind::Overlay);
        let (name, inode) = (
            sandbox.name().clone(),
            fs::metadata(&sandbox.dir).unwrap().ino(),
        );
        fs::create_dir(sandbox.runs_dir()).unwrap();
        fs::write(sandbox.runs_dir().join(".launch"), "").unwrap();
        fs::create_dir_all(sandbox.dir.join("workdir/0/work/incompat")).unwrap();
        assert!(put_aside(&sandbox).unwrap());
        assert_eq!(place.root.names().unwrap(), []);
        let second = place.create("second", BackendKind::Overlay);
        assert_eq!(fs::metadata(&second.dir).unwrap().ino(), inode);
        assert!(!place.has_spare());
        assert_ne!(*second.name(), name);
        let mode = fs::metadata(second.layer_dir())
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o750);
        let opened = place.root.sandbox(second.name().as_str()).unwrap();
        assert_eq!(opened.source(), place.dir.path().join("second"));
        let text = fs::read_to_string(second.dir.join("source")).unwrap();
        assert_eq!(text, format!("{}\n", opened.source().display()));
    }

    #[test]
    fn what_a_command_touched_is_not_used_again() {
        type Touch = fn(&Sandbox);
        let touches: [(&str, Touch); 5] = [
            ("a change", |sandbox| {
                fs::write(sandbox.layer_dir().join("x"), "").unwrap()
            }),
            ("an attribute", |sandbox| {
                let upper = Dir::open(&sandbox.dir).unwrap();
                upper
                    .set_xattr(UPPER.as_bytes(), b"user.note", b"x")
                    .unwrap();
            }),
            ("a base", |sandbox| {
                fs::create_dir(sandbox.bases_dir()).unwrap();
                fs::write(sandbox.bases_dir().join("index"), "").unwrap();
            }),
            ("a run", |sandbox| {
                fs::create_dir(sandbox.runs_dir()).unwrap();
                fs::write(sandbox.runs_dir().join("71"), "").unwrap();
            }),
            ("a snapshot", |sandbox| {
                fs::create_dir(sandbox.dir.join("snapshots")).unwrap();
            }),
        ];
        for (what, touch) in touches {
            let place = Place::new();
            let sandbox = place.create("first", BackendKind::Overlay);
            touch(&sandbox);
            assert!(!put_aside(&sandbox).unwrap(), "{what}");
            assert!(sandbox.dir.exists() && !place.has_spare(), "{what}");
        }
    }

    #[test]
    fn only_overlays_are_kept_and_only_one() {
        let place = Place::new();
        let copy = place.create("first", BackendKind::Copy);
        assert!(!put_aside(&copy).unwrap());
        let [one, two] = [0, 1].map(|_| place.create("first", BackendKind::Overlay));
        assert!(put_aside(&one).unwrap());
        assert!(!put_aside(&two).unwrap());
        assert!(place.root.sandbox(two.name().as_str()).is_ok());
        // A copy is made from nothing, and leaves the set alone.
        place.create("second", BackendKind::Copy);
        assert!(place.has_spare());
    }
}
