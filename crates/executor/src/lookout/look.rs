//! One look at the workspace.

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::FileType;

use super::tree::Tree;
use super::{Birth, Found, Lookout, Moment, NewFile};
use crate::entries;

/// How many files of one execution are told of.
const MOST_FILES: usize = 1_000;

/// How many names are read for one execution.
const MOST_NAMES: usize = 200_000;

/// How many calls are made before others have their turn.
const TURN: usize = 256;

/// A directory that is no longer as it is known.
enum Differs {
    Changed,
    Replaced,
    Gone,
}

/// One look.
pub(super) struct Look<'l> {
    lookout: &'l Lookout,
    tree: &'l mut Tree,
    /// Files born since then are new; none are when it is the first look.
    since: Option<Moment>,
    pub(super) found: Found,
    names: usize,
    calls: usize,
}

impl<'l> Look<'l> {
    pub(super) fn new(lookout: &'l Lookout, tree: &'l mut Tree, since: Option<Moment>) -> Look<'l> {
        Look {
            lookout,
            tree,
            since,
            found: Found::default(),
            names: 0,
            calls: 0,
        }
    }

    /// Reads everything.
    pub(super) async fn first(mut self) {
        self.tree.known = Some(Moment::now());
        self.read(PathBuf::new()).await;
        self.tree.first.sort();
        self.tree.truncated |= self.found.unread;
    }

    /// Reads what differs from what is known.
    pub(super) async fn again(&mut self, began: Moment) {
        let now = Moment::now();
        let since = self.tree.known.map_or(began, |known| known.min(began));
        if self.tree.directories.is_empty() {
            self.read(PathBuf::new()).await;
        }
        let mut replaced = None;
        for (path, differs) in self.differing(since).await {
            // What is below a directory that was read as a new one was read with it.
            let done = replaced
                .as_ref()
                .is_some_and(|above| path.starts_with(above));
            match differs {
                _ if done => {}
                Differs::Gone => self.tree.forget(&path),
                Differs::Changed => self.read(path).await,
                Differs::Replaced => {
                    self.tree.forget(&path);
                    self.read(path.clone()).await;
                    replaced = Some(path);
                }
            }
        }
        self.tree.known = Some(now);
    }

    /// The known directories that changed since then, or are others, or gone. Parents come first.
    async fn differing(&mut self, since: Moment) -> Vec<(PathBuf, Differs)> {
        let mut differing = Vec::new();
        for (path, number) in &self.tree.directories {
            turn(&mut self.calls).await;
            let differs = match entries::look(&self.lookout.workspace, path) {
                Ok(found) if entries::kind(&found) != FileType::Directory => Differs::Gone,
                Ok(found) if found.stx_ino != *number => Differs::Replaced,
                Ok(found) if Moment::changed(&found) >= since => Differs::Changed,
                Ok(_) => continue,
                Err(error) if entries::is_gone(&error) => Differs::Gone,
                // Reading it will fail, too, and be told.
                Err(_) => Differs::Changed,
            };
            differing.push((path.clone(), differs));
        }
        differing
    }

    /// Reads the directory at `path`, and all below it that are not known.
    async fn read(&mut self, path: PathBuf) {
        let mut unread = vec![path];
        while let Some(path) = unread.pop() {
            self.read_one(path, &mut unread).await;
        }
    }

    /// Reads the directory at `path`, and adds those to `unread` that are not known.
    async fn read_one(&mut self, path: PathBuf, unread: &mut Vec<PathBuf>) {
        let opened = entries::open_directory(&self.lookout.workspace, &path);
        let opened = opened.and_then(|directory| Ok((entries::look(&directory, "")?, directory)));
        let (found, directory) = match opened {
            Ok(opened) => opened,
            Err(error) if entries::is_gone(&error) => return self.tree.forget(&path),
            Err(_) => return self.found.unread = true,
        };
        self.tree.learn(&path, found.stx_ino);
        while let Ok(Some(names)) = entries::portion(&directory) {
            for (name, kind) in names {
                self.names += 1;
                if self.names > MOST_NAMES {
                    return self.found.unread = true;
                }
                if is_nobodys(name.as_bytes()) {
                    continue;
                }
                let path = path.join(&name);
                match kind {
                    FileType::Directory if self.tree.directories.contains_key(&path) => {}
                    FileType::Directory => match self.tree.has_room(&path, unread.len()) {
                        true => unread.push(path),
                        false => self.found.unread = true,
                    },
                    FileType::RegularFile | FileType::Unknown => {
                        self.see(&directory, path);
                        turn(&mut self.calls).await;
                    }
                    _ => {}
                }
            }
            tokio::task::yield_now().await;
        }
    }

    /// There is a file at `path`, in `directory`.
    fn see(&mut self, directory: &OwnedFd, path: PathBuf) {
        let Some(since) = self.since else {
            return self.tree.first.learn(&path);
        };
        let Some(name) = path.file_name().filter(|_| !self.found.truncated) else {
            return;
        };
        let Ok(found) = entries::look(directory, name) else {
            return;
        };
        let birth = Birth::of(&found);
        let is_new = entries::kind(&found) == FileType::RegularFile && birth.born >= since;
        if is_new && !self.tree.first.knows(&path) {
            self.claim(path, birth);
        }
    }

    fn claim(&mut self, path: PathBuf, birth: Birth) {
        let mut ledger = self.lookout.ledger.borrow_mut();
        if ledger.claimed.contains(&birth) {
            return;
        }
        if self.found.files.len() == MOST_FILES {
            self.found.truncated = true;
            return;
        }
        ledger.claimed.insert(birth);
        self.found.files.push(NewFile { path, birth });
    }
}

/// Is what has this name, and all below it, none of an execution's results?
fn is_nobodys(name: &[u8]) -> bool {
    name.starts_with(b".") || name == b"__pycache__"
}

/// Lets others have their turn, every so many calls.
async fn turn(calls: &mut usize) {
    *calls += 1;
    if calls.is_multiple_of(TURN) {
        tokio::task::yield_now().await;
    }
}
