//! Files with several names.
//!
//! Which thread meets a name first is chance, and the copy must exist before it can be linked to,
//! so the first name met is copied and the others are linked to it at the end.

use std::collections::HashMap;

use sandbox_model::{Fingerprint, RelPath};

use super::TransferError;
use super::tree::{Record, Recording, failed_on};
use crate::side::Side;
use crate::tree::Tree;

/// The names of files that have several.
#[derive(Debug, Default)]
pub(super) struct Links {
    by_inode: HashMap<(u64, u64), Names>,
}

#[derive(Debug)]
struct Names {
    original: Fingerprint,
    first: RelPath,
    others: Vec<RelPath>,
}

/// What to do with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Met {
    /// It is the first: copy it.
    First,
    /// It will be linked.
    Again,
}

/// What was made.
pub(super) struct Linked {
    pub made: u64,
    pub records: Vec<Record>,
}

impl Links {
    /// Notes a name of `original`.
    pub(super) fn meet(&mut self, original: &Fingerprint, path: RelPath) -> Met {
        match self.by_inode.entry((original.dev, original.ino)) {
            std::collections::hash_map::Entry::Occupied(mut known) => {
                known.get_mut().others.push(path);
                Met::Again
            }
            std::collections::hash_map::Entry::Vacant(new) => {
                new.insert(Names {
                    original: *original,
                    first: path,
                    others: Vec::new(),
                });
                Met::First
            }
        }
    }

    /// Makes the links in the copy.
    pub(super) fn make(
        self,
        _from: &Tree,
        to: &Tree,
        recording: Recording,
    ) -> Result<Linked, TransferError> {
        let mut linked = Linked {
            made: 0,
            records: Vec::new(),
        };
        for names in self.by_inode.into_values() {
            let (dir, name) = to.parent(&names.first).map_err(failed_on(&names.first))?;
            for other in &names.others {
                let (at, new) = to.parent(other).map_err(failed_on(other))?;
                dir.link(name, &at, new).map_err(failed_on(other))?;
                linked.made += 1;
            }
            if recording == Recording::Off {
                continue;
            }
            // Linking changed the inode, so only now it is what it will be.
            let copy = to.stat(&names.first).map_err(failed_on(&names.first))?;
            let Some(copy) = copy else { continue };
            for path in names.others.into_iter().chain([names.first]) {
                linked.records.push(Record {
                    path,
                    source: names.original,
                    copy,
                });
            }
        }
        Ok(linked)
    }
}
