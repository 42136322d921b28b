//! Which inode stands for which, where an undo had to bring copies back.
//!
//! Where no rename leads from the undo area into the source (another filesystem, another subvolume)
//! pre-images are copies, and what an undo puts back has inodes of its own. An older transaction
//! knows the ones before. Each such undo tells what it copied from what, so that an older journal can
//! be read as if it spoke of the copies.

use std::collections::BTreeMap;

use sandbox_model::{EntryKind, Fingerprint};

use super::Kept;
use crate::promote::journal::{Inode, Journal, Kind, Operation, Place, Standing};

/// What was put back, after what it is a copy of, by the inode number of the latter.
pub(super) struct Succession(BTreeMap<u64, Vec<(Fingerprint, Fingerprint)>>);

/// How often one entry can have been put back: longer than any undo is kept.
const GENERATIONS: usize = 2 * super::KEEP_COUNT;

impl Succession {
    pub(super) fn of(kept: &[Kept]) -> Succession {
        let mut known: BTreeMap<u64, Vec<_>> = BTreeMap::new();
        for undo in kept.iter().map(|kept| &kept.journal) {
            let Kind::Undo(of) = &undo.kind else { continue };
            let of = kept.iter().find(|kept| kept.journal.id == *of);
            if let (Place::Inside, Some(of)) = (&undo.stage, of) {
                let copies = undo.operations.iter();
                for pair in copies.flat_map(|copy| pairs(&of.journal, copy)) {
                    known.entry(pair.0.ino).or_default().push(pair);
                }
            }
        }
        Succession(known)
    }

    /// The journal, speaking of what stands now for what it left.
    pub(super) fn read(&self, journal: &Journal) -> Journal {
        let mut journal = journal.clone();
        for standing in journal.operations.iter_mut().filter_map(|o| o.new.as_mut()) {
            self.follow(&mut standing.fingerprint);
            let below = standing.below.iter_mut();
            below.for_each(|below| self.follow(&mut below.fingerprint));
        }
        let parents = journal.parents.values_mut().map(|parent| &mut parent.inode);
        let changed = journal
            .attributes
            .iter_mut()
            .map(|change| &mut change.inode);
        for inode in parents.chain(changed) {
            if let Some(copy) = self.last_copy(*inode) {
                *inode = Inode::of(copy);
            }
        }
        journal
    }

    /// Only the inode is another: whether the rest is as it was left, a look at it will tell.
    fn follow(&self, left: &mut Fingerprint) {
        let Some(copy) = self.last_copy(Inode::of(left)) else {
            return;
        };
        (left.ino, left.btime) = (copy.ino, copy.btime);
        if left.entry.kind == EntryKind::Directory {
            // How large a directory is depends on what it once held.
            left.entry.size = copy.entry.size;
        }
    }

    /// Goes from copy to copy.
    fn last_copy(&self, of: Inode) -> Option<&Fingerprint> {
        let mut last: Option<&Fingerprint> = None;
        for _ in 0..GENERATIONS {
            let now = last.map_or(of, Inode::of);
            let known = self.0.get(&now.ino).into_iter().flatten();
            match known.rev().find(|(from, _)| Inode::of(from) == now) {
                Some((_, to)) => last = Some(to),
                None => break,
            }
        }
        last
    }
}

/// What the copy that an undo made stands for, entry by entry.
fn pairs(of: &Journal, copy: &Operation) -> Vec<(Fingerprint, Fingerprint)> {
    let original = of.operations.iter().find(|o| o.slot == copy.slot);
    let original = original.and_then(|operation| operation.old.as_ref());
    let (Some(original), Some(copy)) = (original, &copy.new) else {
        return Vec::new();
    };
    let entries = |standing: &Standing| -> Vec<Fingerprint> {
        let below = standing.below.iter().map(|below| below.fingerprint);
        std::iter::once(standing.fingerprint).chain(below).collect()
    };
    entries(original).into_iter().zip(entries(copy)).collect()
}
