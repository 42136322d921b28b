//! Directories that are a session's system.
//!
//! A template names one, and whether it can be one is checked twice: when the template is made, so that whoever makes it
//! hears of it, and when a session starts, because what is there may have changed.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::users::Users;

/// Where the programs of an unpacked root are: one of these is there.
const PROGRAMS: [&str; 2] = ["bin", "usr/bin"];

/// The directory itself, if nothing of what is kept for sessions in `root` would be seen in it.
pub(crate) fn resolve(root: &Path, directory: &Path) -> Result<PathBuf, String> {
    let refuse = |reason: &str| format!("{} is no image: {reason}", directory.display());
    if !directory.is_absolute() {
        return Err(refuse("its path is not absolute"));
    }
    let found = directory
        .canonicalize()
        .map_err(|error| refuse(&error.to_string()))?;
    if !found.is_dir() {
        return Err(refuse("it is not a directory"));
    }
    let root = root
        .canonicalize()
        .map_err(|error| refuse(&error.to_string()))?;
    // Everybody's workspaces would be in it, or it would be in somebody's.
    if root.starts_with(&found) {
        return Err(refuse("what sessions have is kept in it"));
    }
    if found.starts_with(&root) {
        return Err(refuse("it is among what sessions have"));
    }
    Ok(found)
}

/// Checks that sessions can have a directory for a system.
pub(crate) fn check(root: &Path, users: Option<Users>, directory: &Path) -> Result<(), String> {
    let found = resolve(root, directory)?;
    let refuse = |reason: String| format!("{} is no image: {reason}", directory.display());
    if let Some(closed) = closed(&found, users).map_err(|error| refuse(error.to_string()))? {
        let closed = closed.display();
        return Err(refuse(format!(
            "the user of sessions cannot access {closed}"
        )));
    }
    let has = |name: &&str| found.join(name).symlink_metadata().is_ok();
    if !PROGRAMS.iter().any(has) {
        return Err(refuse("it has neither bin nor usr/bin".to_owned()));
    }
    Ok(())
}

/// The first directory on the way to an image that the users of sessions cannot get through. Without `users` that is the
/// server's own user.
fn closed(image: &Path, users: Option<Users>) -> io::Result<Option<PathBuf>> {
    let Some(users) = users else {
        let is_open = std::fs::read_dir(image).is_ok();
        return Ok((!is_open).then(|| image.to_owned()));
    };
    let mut way: Vec<&Path> = image.ancestors().collect();
    way.reverse();
    for directory in way {
        let is_image = directory == image;
        let needed = if is_image { 0o5 } else { 0o1 };
        let found = directory.symlink_metadata()?;
        let granted = match users {
            Users { user, each: None } if user.user == found.uid() => found.mode() >> 6,
            Users { user, each: None } if user.group == found.gid() => found.mode() >> 3,
            _ => found.mode(),
        };
        // Access control lists can open what a mode closes: the session's start will tell.
        if granted & needed != needed && !has_acl(directory) {
            return Ok(Some(directory.to_owned()));
        }
    }
    Ok(None)
}

fn has_acl(directory: &Path) -> bool {
    let mut nothing: [u8; 0] = [];
    rustix::fs::getxattr(directory, "system.posix_acl_access", &mut nothing)
        .is_ok_and(|size| size > 0)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use sandbox_linux::identity::Ids;

    use super::*;
    use crate::users::UserRange;

    const EACH: Users = Users {
        user: Ids {
            user: 2000,
            group: 2000,
        },
        each: Some(UserRange {
            first: 3000,
            count: 1000,
        }),
    };

    /// What is kept for sessions, and an image beside it.
    fn places() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let base = tempfile::tempdir().expect("a directory");
        std::fs::set_permissions(base.path(), Permissions::from_mode(0o755)).expect("chmod");
        let (root, image) = (base.path().join("sessions"), base.path().join("image"));
        std::fs::create_dir_all(root.join("one/bin")).expect("a directory");
        std::fs::create_dir_all(image.join("bin")).expect("a directory");
        (base, root, image)
    }

    #[test]
    fn accepts_an_unpacked_root() {
        let (_base, root, image) = places();
        assert_eq!(check(&root, None, &image), Ok(()));
        assert_eq!(check(&root, Some(EACH), &image), Ok(()));
    }

    #[test]
    fn refuses_what_holds_sessions_or_is_in_one() {
        let (base, root, _) = places();
        for directory in [Path::new("/"), base.path(), &root, &root.join("one")] {
            let refused = check(&root, None, directory).expect_err("no image");
            assert!(refused.contains("what sessions have"), "{refused}");
        }
    }

    #[test]
    fn refuses_what_is_no_root() {
        let (_base, root, image) = places();
        let file = image.join("file");
        std::fs::write(&file, "").expect("a file");
        for (directory, reason) in [
            (Path::new("/nonexist"), "No such file"),
            (Path::new("relative"), "not absolute"),
            (&file, "not a directory"),
            (&image.join("bin"), "neither bin nor usr/bin"),
        ] {
            let refused = check(&root, None, directory).expect_err("no image");
            assert!(refused.contains(reason), "{refused}");
        }
    }

    #[test]
    fn refuses_what_sessions_cannot_access() {
        let (_base, root, image) = places();
        for mode in [0o700, 0o711, 0o750, 0o000] {
            std::fs::set_permissions(&image, Permissions::from_mode(mode)).expect("chmod");
            let refused = check(&root, Some(EACH), &image).expect_err("no image");
            assert!(refused.contains("cannot access"), "{refused}");
        }
        // Where all sessions have one user, it may be that user's own.
        let owner = image.metadata().expect("metadata");
        let user = Ids {
            user: owner.uid(),
            group: owner.gid(),
        };
        let check = |mode| {
            std::fs::set_permissions(&image, Permissions::from_mode(mode)).expect("chmod");
            check(&root, Some(Users::from(user)), &image)
        };
        assert_eq!(check(0o700), Ok(()));
        check(0o077).expect_err("no image");
    }
}
