//! The directory that a server keeps everything in: made where it is missing, and ours alone.
//!
//! One that was there keeps its mode. Where that does not do, for us or for the user whom sessions belong to, we
//! say so, and leave it to whoever owns it: somebody who can write there could put a key of theirs where ours is
//! looked for.

use std::ffi::{CStr, CString};
use std::fs::{DirBuilder, File, Permissions, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use sandbox_linux::clone::{Namespaces, Parent, clone};
use sandbox_linux::identity::{Ids, become_user};

use crate::serve::ServeError;

/// Sessions may belong to another user, who must get through; what is in it is closed itself.
const MODE: u32 = 0o711;

/// Makes it, looks whether `user` gets through, and takes it until the file that is returned is closed. Must be
/// called while the process has a single thread.
pub(crate) fn take(data: &Path, user: Option<Ids>) -> Result<File, ServeError> {
    let unusable = |source| ServeError::Data {
        path: data.to_owned(),
        source,
    };
    make(data).map_err(unusable)?;
    if is_open(data).map_err(unusable)? {
        return Err(ServeError::Open(data.to_owned()));
    }
    if let Some(user) = user {
        check_passable(data, user)?;
    }
    // What is called so in a directory of somebody else's is not ours to empty.
    let mut options = File::options();
    let lock = options.write(true).create(true).truncate(false);
    let lock = lock.open(data.join("lock")).map_err(unusable)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(ServeError::Taken(data.to_owned())),
        Err(TryLockError::Error(error)) => Err(unusable(error)),
    }
}

/// Does `user` get through it? Must be called while the process has a single thread.
pub(crate) fn check_passable(data: &Path, user: Ids) -> Result<(), ServeError> {
    let unusable = |source| ServeError::Data {
        path: data.to_owned(),
        source,
    };
    match obstacle(data, user).map_err(unusable)? {
        None => Ok(()),
        Some(path) => Err(ServeError::Closed {
            path,
            user: user.user,
        }),
    }
}

fn make(data: &Path) -> io::Result<()> {
    if let Some(above) = data.parent() {
        std::fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(MODE).create(data) {
        // The umask may have taken from it.
        Ok(()) => std::fs::set_permissions(data, Permissions::from_mode(MODE)),
        Err(_) if data.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Can anybody write there who is neither us nor root?
fn is_open(data: &Path) -> io::Result<bool> {
    let found = data.metadata()?;
    let is_ours = [0, rustix::process::geteuid().as_raw()].contains(&found.uid());
    let is_our_group = [0, rustix::process::getegid().as_raw()].contains(&found.gid());
    let writable = match is_our_group {
        true => 0o002,
        false => 0o022,
    };
    Ok(!is_ours || found.mode() & writable != 0)
}

/// The first directory on the way to `data`, itself included, that `user` does not get through.
fn obstacle(data: &Path, user: Ids) -> io::Result<Option<PathBuf>> {
    let data = data.canonicalize()?;
    if gets_through(&data, user)? {
        return Ok(None);
    }
    let mut way: Vec<&Path> = data.ancestors().collect();
    way.reverse();
    for directory in way {
        if !gets_through(directory, user)? {
            return Ok(Some(directory.to_owned()));
        }
    }
    Ok(None)
}

/// Tried by a process that is that user: modes are not all that decides, access control lists do, too.
fn gets_through(directory: &Path, user: Ids) -> io::Result<bool> {
    const NO: i32 = 1;
    const UNTRIED: i32 = 2;
    let path = CString::new(directory.as_os_str().as_bytes())?;
    let path: &CStr = &path;
    let (child, ()) = clone(Namespaces::empty(), Parent::Caller, (), || {
        let tried = become_user(user).map(|()| rustix::fs::access(path, Access::EXEC_OK));
        match tried {
            Ok(Ok(())) => 0,
            Ok(Err(_)) => NO,
            Err(_) => UNTRIED,
        }
    })?;
    match child.wait()?.exit_status() {
        Some(0) => Ok(true),
        Some(NO) => Ok(false),
        _ => Err(io::Error::other(format!(
            "cannot become user {} to try it",
            user.user
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOMEBODY: Ids = Ids {
        user: 59_999,
        group: 59_999,
    };

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o7777
    }

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    /// A directory that everybody gets to.
    fn base() -> tempfile::TempDir {
        let base = tempfile::tempdir().unwrap();
        set_mode(base.path(), 0o755);
        base
    }

    #[test]
    fn one_that_is_made_lets_sessions_through_and_shows_nothing() {
        let base = base();
        let data = base.path().join("a/data");
        let _lock = take(&data, Some(SOMEBODY)).unwrap();
        assert_eq!(mode(&data), 0o711);
    }

    #[test]
    fn one_that_was_there_keeps_its_mode_and_what_is_in_it() {
        let base = base();
        let data = base.path().join("data");
        std::fs::create_dir(&data).unwrap();
        std::fs::write(data.join("lock"), "of somebody else").unwrap();
        for (kept, user) in [(0o700, None), (0o755, Some(SOMEBODY)), (0o711, None)] {
            set_mode(&data, kept);
            let _lock = take(&data, user).unwrap();
            assert_eq!(mode(&data), kept);
        }
        let lock = std::fs::read_to_string(data.join("lock")).unwrap();
        assert_eq!(lock, "of somebody else");
    }

    #[test]
    fn one_that_sessions_do_not_get_through_is_refused_and_left_alone() {
        let base = base();
        let data = base.path().join("above/data");
        std::fs::create_dir_all(&data).unwrap();
        for closed in [data.as_path(), data.parent().unwrap()] {
            set_mode(closed, 0o700);
            let refused = take(&data, Some(SOMEBODY)).unwrap_err();
            let ServeError::Closed { path, user } = refused else {
                panic!("{refused}");
            };
            assert_eq!((path.as_path(), user), (closed, SOMEBODY.user));
            assert_eq!(mode(closed), 0o700);
            assert_eq!(std::fs::read_dir(&data).unwrap().count(), 0);
            set_mode(closed, 0o711);
        }
        take(&data, Some(SOMEBODY)).unwrap();
    }

    #[test]
    fn one_that_others_can_write_to_is_refused_and_left_alone() {
        let base = base();
        let data = base.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let refuse = || {
            let refused = take(&data, None).unwrap_err();
            assert!(matches!(refused, ServeError::Open(_)), "{refused}");
            assert_eq!(std::fs::read_dir(&data).unwrap().count(), 0);
        };
        for open in [0o1777, 0o757] {
            set_mode(&data, open);
            refuse();
            assert_eq!(mode(&data), open);
        }
        set_mode(&data, 0o775);
        std::os::unix::fs::chown(&data, None, Some(SOMEBODY.group)).unwrap();
        refuse();
        set_mode(&data, 0o755);
        std::os::unix::fs::chown(&data, Some(SOMEBODY.user), None).unwrap();
        refuse();
        std::os::unix::fs::chown(&data, Some(0), None).unwrap();
        take(&data, None).unwrap();
    }

    #[test]
    fn a_link_leads_to_where_it_points() {
        let base = base();
        let (data, link) = (base.path().join("data"), base.path().join("link"));
        std::fs::create_dir(&data).unwrap();
        set_mode(&data, 0o700);
        std::os::unix::fs::symlink(&data, &link).unwrap();
        let refused = take(&link, Some(SOMEBODY)).unwrap_err();
        assert!(refused.to_string().ends_with(data.to_str().unwrap()));
        let nowhere = base.path().join("nowhere");
        std::os::unix::fs::symlink(base.path().join("gone"), &nowhere).unwrap();
        let refused = take(&nowhere, None).unwrap_err();
        assert!(matches!(refused, ServeError::Data { .. }), "{refused}");
    }
}
