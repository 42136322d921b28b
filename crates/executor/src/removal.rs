//! Removing a directory with all that is in it.
//!
//! What is in it belongs to code that may change it meanwhile, so each directory is entered by descriptor
//! and no link is followed. One that is deeper than there are descriptors for is first moved to the top.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;

use crate::entries::{self, Name};

/// How many directories are open at once.
const DEEPEST: usize = 64;

/// How long it may take, should somebody fill it as fast as it is emptied.
const PATIENCE: Duration = Duration::from_secs(300);

/// A directory that is being emptied.
struct Level {
    directory: OwnedFd,
    /// In the one above.
    name: OsString,
    names: std::vec::IntoIter<Name>,
}

/// Removes what is called `name` in `parent`.
pub(crate) async fn remove_all(parent: OwnedFd, name: &OsStr) -> io::Result<()> {
    let begin = Instant::now();
    let mut moved = 0;
    loop {
        match remove(parent.as_fd(), name) {
            Err(Errno::NOTEMPTY | Errno::EXIST) if begin.elapsed() < PATIENCE => {}
            outcome => return Ok(outcome?),
        }
        empty(&parent, name, &mut moved).await?;
    }
}

/// Removes a file, a link, or an empty directory.
fn remove(directory: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    match unlinkat(directory, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => unlinkat(directory, name, AtFlags::REMOVEDIR),
        outcome => outcome,
    }
}

/// Removes what is in the directory `name`, as far as it is found there at once.
async fn empty(parent: &OwnedFd, name: &OsStr, moved: &mut usize) -> io::Result<()> {
    let mut levels = Vec::from_iter(Level::enter(parent, name)?);
    while let Some(level) = levels.last_mut() {
        let Some((name, _)) = level.names.next() else {
            match entries::portion(&level.directory)? {
                Some(names) => level.names = names.into_iter(),
                None => leave(&mut levels),
            }
            tokio::task::yield_now().await;
            continue;
        };
        match remove(level.directory.as_fd(), &name) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::NOTEMPTY | Errno::EXIST) if levels.len() < DEEPEST => {
                let entered = Level::enter(&levels[levels.len() - 1].directory, &name)?;
                levels.extend(entered);
            }
            Err(Errno::NOTEMPTY | Errno::EXIST) => {
                *moved += 1;
                let aside = format!(".sandbox-removed-{moved}");
                let (from, to) = (&levels[levels.len() - 1].directory, &levels[0].directory);
                rustix::fs::renameat(from, &name, to, aside)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The innermost is empty, unless somebody has filled it: then it is found again.
fn leave(levels: &mut Vec<Level>) {
    if let (Some(inner), Some(above)) = (levels.pop(), levels.last()) {
        let _ = unlinkat(&above.directory, &inner.name, AtFlags::REMOVEDIR);
    }
}

impl Level {
    /// Enters a directory, if there still is one.
    fn enter(parent: &OwnedFd, name: &OsStr) -> io::Result<Option<Level>> {
        match entries::open_directory(parent, Path::new(name)) {
            Ok(directory) => Ok(Some(Level {
                directory,
                name: name.to_owned(),
                names: Vec::new().into_iter(),
            })),
            Err(error) if entries::is_gone(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn removed(at: &Path, name: &str) -> io::Result<()> {
        let parent = File::open(at).unwrap().into();
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let removing = remove_all(parent, OsStr::new(name));
        runtime.unwrap().block_on(removing)
    }

    #[test]
    fn everything_below_goes_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        std::fs::create_dir_all(at.join("gone/a/b/.c")).unwrap();
        std::fs::create_dir(at.join("stays")).unwrap();
        std::fs::write(at.join("stays/file"), "").unwrap();
        for number in 0..2_000 {
            File::create(at.join(format!("gone/a/{number}"))).unwrap();
        }
        std::os::unix::fs::symlink("../stays", at.join("gone/link")).unwrap();
        std::os::unix::fs::symlink(at.join("stays/file"), at.join("gone/a/b/.c/link")).unwrap();
        removed(at, "gone").unwrap();
        assert!(!at.join("gone").exists() && at.join("stays/file").exists());
        // A link goes itself.
        std::os::unix::fs::symlink("stays", at.join("link")).unwrap();
        removed(at, "link").unwrap();
        assert!(!at.join("link").is_symlink() && at.join("stays/file").exists());
        let missing = removed(at, "gone").unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn no_depth_is_too_deep() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        let mut deepest: OwnedFd = File::open(at).unwrap().into();
        for _ in 0..1_000 {
            rustix::fs::mkdirat(&deepest, "d", rustix::fs::Mode::from_raw_mode(0o755)).unwrap();
            deepest = entries::open_directory(&deepest, Path::new("d")).unwrap();
        }
        drop(deepest);
        removed(at, "d").unwrap();
        assert_eq!(std::fs::read_dir(at).unwrap().count(), 0);
    }

    #[test]
    fn directories_that_are_swapped_for_links_lead_nowhere() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        let outside = at.join("outside");
        std::fs::create_dir_all(outside.join("d")).unwrap();
        std::fs::write(outside.join("d/file"), "").unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = std::fs::rename(at.join("tree/sub"), at.join("aside"));
                    let _ = std::os::unix::fs::symlink(&outside, at.join("tree/sub"));
                    let _ = std::fs::remove_file(at.join("tree/sub"));
                    let _ = std::fs::rename(at.join("aside"), at.join("tree/sub"));
                }
            });
            for _ in 0..300 {
                let _ = std::fs::create_dir_all(at.join("tree/sub/d"));
                let _ = std::fs::write(at.join("tree/sub/d/file"), "");
                let _ = removed(at, "tree");
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert!(outside.join("d/file").exists());
    }
}
