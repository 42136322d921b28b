//! Pairing deletions with creations.
//!
//! First what is certain: a file whose contents are still those of the deleted one (an overlay's
//! redirect), then equal size and digest, then likeness of lines for files up to a size. Empty files
//! are never paired: they are all alike. The work is bounded: beyond [`MATRIX`] candidate pairs only
//! files of the same name are compared.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;

use sandbox_model::{ChangeKind, EntryKind, RelPath};

use super::{Found, compare};
use crate::content;
use crate::layer::Contents;
use crate::side::Side;
use crate::view::{View, ViewError};

/// The least likeness, in percent.
const THRESHOLD: u64 = 50;
/// Files above this are only paired when equal.
const LIKENESS_LIMIT: u64 = 1 << 20;
/// The most pairs compared line by line.
const MATRIX: usize = 10_000;
/// Of a line, as much as this is one unit.
const UNIT: usize = 64;

/// The most units of deleted files that are remembered for the next comparison: some forty bytes of memory each.
const REMEMBERED: usize = 2 << 20;

/// A file's contents as a bag of line hashes, with how many bytes each stands for.
type Bag = HashMap<u64, u64>;

struct Pairing<'v, 's> {
    view: &'v View<'s>,
    found: Vec<Found>,
    /// By index into `found`: the deletion and the creation of each rename.
    pairs: Vec<(usize, usize, u8)>,
    taken: Vec<bool>,
}

/// `found` with renames in place of the deletions and creations they are made of.
pub(super) fn pair(view: &View<'_>, found: Vec<Found>) -> Result<Vec<Found>, ViewError> {
    let taken = vec![false; found.len()];
    let mut pairing = Pairing {
        view,
        found,
        pairs: Vec::new(),
        taken,
    };
    if pairing.deletions().is_empty() || pairing.creations().is_empty() {
        return Ok(pairing.found);
    }
    pairing.by_redirect();
    pairing.by_digest();
    pairing.by_likeness();
    pairing.into_found()
}

impl Pairing<'_, '_> {
    fn deletions(&self) -> Vec<usize> {
        self.free(|found| match found.change.kind {
            ChangeKind::Deleted => found
                .change
                .before
                .is_some_and(|entry| is_candidate(&entry)),
            _ => false,
        })
    }

    fn creations(&self) -> Vec<usize> {
        self.free(|found| match found.change.kind {
            ChangeKind::Created => found.change.after.is_some_and(|entry| is_candidate(&entry)),
            _ => false,
        })
    }

    fn free(&self, wanted: impl Fn(&Found) -> bool) -> Vec<usize> {
        (0..self.found.len())
            .filter(|at| !self.taken[*at] && wanted(&self.found[*at]))
            .collect()
    }

    fn path(&self, at: usize) -> &RelPath {
        &self.found[at].change.path
    }

    fn size(&self, at: usize) -> u64 {
        let change = &self.found[at].change;
        change.before.or(change.after).map_or(0, |entry| entry.size)
    }

    fn same_name(&self, a: usize, b: usize) -> bool {
        self.path(a).name() == self.path(b).name()
    }

    fn take(&mut self, deletion: usize, creation: usize, similarity: u8) {
        self.taken[deletion] = true;
        self.taken[creation] = true;
        self.pairs.push((deletion, creation, similarity));
    }

    fn by_redirect(&mut self) {
        let deletions: HashMap<RelPath, usize> = self
            .deletions()
            .into_iter()
            .map(|at| (self.path(at).clone(), at))
            .collect();
        for creation in self.creations() {
            if let Contents::Lower(from) = &self.found[creation].contents
                && let Some(deletion) = deletions.get(from)
                && !self.taken[*deletion]
            {
                self.take(*deletion, creation, 100);
            }
        }
    }

    /// Equal size and digest. Only sizes that occur on both sides are read.
    fn by_digest(&mut self) {
        let mut by_size: HashMap<u64, (Vec<usize>, Vec<usize>)> = HashMap::new();
        for at in self.deletions() {
            by_size.entry(self.size(at)).or_default().0.push(at);
        }
        for at in self.creations() {
            by_size.entry(self.size(at)).or_default().1.push(at);
        }
        let mut groups: Vec<_> = by_size.into_values().collect();
        groups.retain(|(deleted, created)| !deleted.is_empty() && !created.is_empty());
        groups.sort();
        for (deleted, created) in groups {
            let mut by_digest: HashMap<String, Vec<usize>> = HashMap::new();
            for at in deleted {
                if let Some(digest) = digest(self.view.before(), self.path(at)) {
                    by_digest.entry(digest).or_default().push(at);
                }
            }
            self.match_digests(&created, &by_digest);
        }
    }

    fn match_digests(&mut self, created: &[usize], deleted: &HashMap<String, Vec<usize>>) {
        let digests: Vec<_> = created
            .iter()
            .map(|at| digest(self.view.workspace(), self.path(*at)))
            .collect();
        // Same names find each other before any other pair is made.
        for same_name_only in [true, false] {
            for (creation, digest) in created.iter().zip(&digests) {
                let alike = digest.as_ref().and_then(|digest| deleted.get(digest));
                let chosen = alike.into_iter().flatten().copied().find(|deletion| {
                    !self.taken[*deletion]
                        && (!same_name_only || self.same_name(*deletion, *creation))
                });
                if let Some(deletion) = chosen.filter(|_| !self.taken[*creation]) {
                    self.take(deletion, *creation, 100);
                }
            }
        }
    }

    fn by_likeness(&mut self) {
        let small = |at: &usize| self.size(*at) <= LIKENESS_LIMIT;
        let deletions: Vec<usize> = self.deletions().into_iter().filter(small).collect();
        let creations: Vec<usize> = self.creations().into_iter().filter(small).collect();
        let mut candidates = self.candidates(&deletions, &creations);
        candidates.sort_by_key(|(deletion, creation, score)| {
            let other_name = !self.same_name(*deletion, *creation);
            (other_name, std::cmp::Reverse(*score), *deletion, *creation)
        });
        for (deletion, creation, score) in candidates {
            if !self.taken[deletion] && !self.taken[creation] {
                self.take(deletion, creation, score);
            }
        }
    }

    fn candidates(&self, deletions: &[usize], creations: &[usize]) -> Vec<(usize, usize, u8)> {
        let all = deletions.len().saturating_mul(creations.len()) <= MATRIX;
        let mut old_bags: HashMap<usize, Option<Bag>> = HashMap::new();
        let mut remembered = 0;
        let mut candidates = Vec::new();
        for &creation in creations {
            let mut new_bag = None;
            let partners = deletions.iter().copied().filter(|deletion| {
                (all || self.same_name(*deletion, creation))
                    && could_be_alike(self.size(*deletion), self.size(creation))
            });
            for deletion in partners.take(MATRIX) {
                if remembered > REMEMBERED {
                    old_bags.clear();
                    remembered = 0;
                }
                let old = old_bags.entry(deletion).or_insert_with(|| {
                    let bag = bag(self.view.before(), self.path(deletion));
                    remembered += bag.as_ref().map_or(0, Bag::len);
                    bag
                });
                let new =
                    new_bag.get_or_insert_with(|| bag(self.view.workspace(), self.path(creation)));
                if let (Some(old), Some(new)) = (old, new)
                    && let Some(score) = likeness(old, new)
                {
                    candidates.push((deletion, creation, score));
                }
            }
        }
        candidates
    }

    fn into_found(self) -> Result<Vec<Found>, ViewError> {
        let mut found: Vec<Option<Found>> = self.found.into_iter().map(Some).collect();
        for (deletion, creation, similarity) in self.pairs {
            let (Some(deleted), Some(created)) = (found[deletion].take(), &mut found[creation])
            else {
                continue;
            };
            let (from, change) = (deleted.change.path, &mut created.change);
            change.xattrs_changed = compare::xattrs_differ(self.view, &from, &created.xattrs)
                .map_err(self.view.failed(&change.path))?;
            change.before = deleted.change.before;
            change.kind = ChangeKind::Renamed { from, similarity };
        }
        Ok(found.into_iter().flatten().collect())
    }
}

fn is_candidate(entry: &sandbox_model::Entry) -> bool {
    entry.kind == EntryKind::File && entry.size > 0
}

/// A file that cannot be read is paired with nothing; it is still a deletion or a creation.
fn digest(side: &dyn Side, path: &RelPath) -> Option<String> {
    side.open(path).and_then(|file| content::digest(&file)).ok()
}

/// Sizes alone rule most pairs out: what is common cannot exceed the smaller file.
fn could_be_alike(a: u64, b: u64) -> bool {
    a.min(b) * 100 >= a.max(b) * THRESHOLD
}

fn bag(side: &dyn Side, path: &RelPath) -> Option<Bag> {
    let read = |path| -> io::Result<Option<Vec<u8>>> {
        content::read_up_to(&side.open(path)?, LIKENESS_LIMIT)
    };
    let contents = read(path).ok().flatten()?;
    let mut bag = Bag::new();
    for unit in contents
        .split_inclusive(|byte| *byte == b'\n')
        .flat_map(|line| line.chunks(UNIT))
    {
        let mut hasher = DefaultHasher::new();
        unit.hash(&mut hasher);
        *bag.entry(hasher.finish()).or_default() += unit.len() as u64;
    }
    Some(bag)
}

/// The share of the larger file that both hold, in percent, if it reaches the threshold. Files that
/// are not equal are never called so.
fn likeness(old: &Bag, new: &Bag) -> Option<u8> {
    let size = |bag: &Bag| bag.values().sum::<u64>();
    let common: u64 = old
        .iter()
        .filter_map(|(unit, bytes)| new.get(unit).map(|other| (*bytes).min(*other)))
        .sum();
    let percent = common * 100 / size(old).max(size(new)).max(1);
    (percent >= THRESHOLD).then(|| u8::try_from(percent).unwrap_or(100).min(99))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bag_of(text: &[u8]) -> Bag {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), text).unwrap();
        let tree = crate::tree::Tree::open(dir.path()).unwrap();
        bag(&tree, &RelPath::new(b"f").unwrap()).unwrap()
    }

    #[test]
    fn likeness_is_the_share_of_common_lines() {
        let old = bag_of(b"one\ntwo\nsix\nten\n");
        assert_eq!(likeness(&old, &bag_of(b"one\ntwo\nsix\nnew\n")), Some(75));
        assert_eq!(likeness(&old, &bag_of(b"one\nxxx\nyyy\nzzz\n")), None);
    }

    #[test]
    fn reordered_lines_are_alike_but_not_equal() {
        assert_eq!(likeness(&bag_of(b"a\nb\n"), &bag_of(b"b\na\n")), Some(99));
    }
}
