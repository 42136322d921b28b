//! Whether two places hold the same tree.
//!
//! Compared are names, kinds, modes, owners, contents, link targets and extended attributes; times
//! and inodes are not: a `touch` changes nothing that anyone could lose.

use std::io;

use sandbox_model::{EntryKind, Fingerprint, RelPath};

use crate::content;
use crate::promote::promotable;
use crate::side::Side;

/// An entry of a side, with everything below it.
pub(crate) struct Spot<'s> {
    pub side: &'s dyn Side,
    pub path: &'s RelPath,
    /// The mode that the entry itself counts as having: in a stage, directories are opened to be
    /// moved.
    pub mode: Option<u32>,
}

/// Returns whether both spots hold the same. Nothing is the same as nothing.
pub(crate) fn alike(a: &Spot<'_>, b: &Spot<'_>) -> io::Result<bool> {
    let mut pending = vec![RelPath::root()];
    while let Some(at) = pending.pop() {
        let (ours, theirs) = (a.path.join_path(&at), b.path.join_path(&at));
        let (left, right) = match (a.stat(&at, &ours)?, b.stat(&at, &theirs)?) {
            (None, None) => continue,
            (Some(left), Some(right)) => (left, right),
            _ => return Ok(false),
        };
        if !same_metadata(&left, &right)
            || promotable(a.side.xattrs(&ours)?) != promotable(b.side.xattrs(&theirs)?)
        {
            return Ok(false);
        }
        let same = match left.entry.kind {
            EntryKind::File if left.entry.size != right.entry.size => false,
            EntryKind::File => content::same(&a.side.open(&ours)?, &b.side.open(&theirs)?)?,
            EntryKind::Symlink => a.side.read_link(&ours)? == b.side.read_link(&theirs)?,
            EntryKind::Directory => {
                let names = a.side.list(&ours)?;
                let same = names == b.side.list(&theirs)?;
                pending.extend(names.iter().map(|name| at.join(name)));
                same
            }
            _ => true,
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Spot<'_> {
    fn stat(&self, below: &RelPath, path: &RelPath) -> io::Result<Option<Fingerprint>> {
        let mut found = self.side.stat(path)?;
        if let (Some(found), Some(mode), true) = (&mut found, self.mode, below.is_root()) {
            found.entry.mode = mode;
        }
        Ok(found)
    }
}

/// Are kind, mode, owner and device number the same? A symlink's mode means nothing.
pub(crate) fn same_metadata(a: &Fingerprint, b: &Fingerprint) -> bool {
    let (a, b) = (&a.entry, &b.entry);
    a.kind == b.kind
        && (a.kind == EntryKind::Symlink || a.mode == b.mode)
        && (a.uid, a.gid, a.rdev) == (b.uid, b.gid, b.rdev)
}
