//! The base: what the sandbox saw at first touch.
//!
//! A live source changes under a sandbox. To tell later what the sandbox changed from what the
//! source did, each path's state is kept from the first time the sandbox's layer holds it:
//! [`record`] walks the layer at the end of every run and writes down what it has not seen before.
//! On btrfs the lower layer is frozen and *is* the base; nothing is recorded. A copy has its
//! manifest; only contents are added to it.
//!
//! What can no longer be known is said: `uncertain` where the source moved while the run was on,
//! contents missing where they were too large to keep. Whether that makes a conflict is promote's
//! decision.

mod contents;
mod copied;
mod index;
mod mark;
mod record;
mod store;

use sandbox_model::{EntryKind, Fingerprint};

use crate::side::Xattrs;

pub use record::{record, run_began};
pub(crate) use record::{record_anew, recover};
pub use store::BaseStore;

/// What is known of one path's state when the sandbox first touched it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// Inode numbers from the source's root down to the parent directory, or, below something that
    /// did not exist, to the nearest directory that did.
    pub chain: Vec<u64>,
    /// What stood there; `None` for nothing.
    pub entry: Option<Fingerprint>,
    /// Its contents, as far as they were kept.
    pub content: BaseContent,
    /// A symlink's target.
    pub link: Option<Vec<u8>>,
    /// Its extended attributes; not kept of what the sandbox deleted.
    pub xattrs: Option<Xattrs>,
    /// It, or a directory above it, changed in the source while the run was on.
    pub uncertain: bool,
}

/// What was kept of a base's contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseContent {
    /// Nothing to keep (not a regular file), or nothing needed (a deletion, a change of mode).
    None,
    /// A whole copy, in the store under this name.
    Saved(String),
    /// Too large: its [`crate::content::digest`].
    Hash(String),
    /// It is in the frozen lower layer (btrfs).
    Frozen,
}

impl Base {
    /// Is `now` still what stood there, as far as metadata tells? Device numbers are left out: those
    /// of btrfs, network filesystems and loop devices change with each mount. Of a directory only
    /// identity, mode and owner count; its times and size follow what is in it.
    pub fn stands(&self, now: Option<&Fingerprint>) -> bool {
        match (&self.entry, now) {
            (None, None) => true,
            (Some(then), Some(now)) => unchanged(then, now),
            _ => false,
        }
    }

    /// Was it a directory?
    fn is_directory(&self) -> bool {
        self.entry
            .is_some_and(|found| found.entry.kind == EntryKind::Directory)
    }
}

/// Is `now` the same inode as `then`, untouched? See [`Base::stands`].
pub(crate) fn unchanged(then: &Fingerprint, now: &Fingerprint) -> bool {
    let (a, b) = (&then.entry, &now.entry);
    let identity = then.ino == now.ino
        && then.btime == now.btime
        && (a.kind, a.mode, a.uid, a.gid) == (b.kind, b.mode, b.uid, b.gid);
    let state = (a.size, a.mtime, a.rdev, then.ctime) == (b.size, b.mtime, b.rdev, now.ctime);
    identity && (a.kind == EntryKind::Directory || state)
}

#[cfg(test)]
mod tests;
