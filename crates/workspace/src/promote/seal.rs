//! What a transaction puts into the source, entry by entry, as digests.
//!
//! An undo has to know whether what was promoted still stands. Times and inodes do not tell: a
//! `touch` moves the one, an editor that saves without a change the other. An index of git is compared by its
//! entries, since a mere `git status` rewrites it.

use std::collections::BTreeMap;
use std::io;

use sandbox_model::{EntryKind, Fingerprint, RelPath};

use super::journal::Operation;
use super::stage::promotable;
use crate::changes::git::index;
use crate::content;
use crate::side::{Side, Xattrs};
use crate::tree::{Dir, Near, Tree};

/// Begins the digest of the entries of an index of git.
const INDEX: &str = "index:";

/// Digests by path in the source.
pub(crate) type Seals = BTreeMap<RelPath, String>;

/// Digests everything that `operations` have waiting in `stage`. Records the digest of every file's
/// contents in them, too, where staging has not: a recovery compares it before it takes the file away
/// again. What cannot be read has neither; its metadata is compared instead.
pub(crate) fn staged(stage: &Dir, operations: &mut [Operation]) -> io::Result<Seals> {
    let stage = Tree::of(stage)?;
    let mut near = Near::new(&stage);
    let mut seals = Seals::new();
    for operation in operations {
        let slot = RelPath::root().join(&operation.slot_name());
        let Some(new) = &mut operation.new else {
            continue;
        };
        let root = RelPath::root();
        let entry = std::iter::once((&root, &new.fingerprint, &mut new.digest));
        let below = new
            .below
            .iter_mut()
            .map(|below| (&below.path, &below.fingerprint, &mut below.digest));
        for (path, found, digest) in entry.chain(below) {
            let at = slot.join_path(path);
            let (dir, name) = near.parent(&at)?.ok_or(io::ErrorKind::NotFound)?;
            let target = operation.path.join_path(path);
            match seal_staged(dir, name, target.name(), found, digest) {
                // Another user's file.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                seal => drop(seals.insert(target, seal?)),
            }
        }
    }
    Ok(seals)
}

/// Digests `name` of the stage, which will be called `called`; `digest` is that of a file's contents.
fn seal_staged(
    dir: &Dir,
    name: &[u8],
    called: Option<&[u8]>,
    found: &Fingerprint,
    digest: &mut Option<String>,
) -> io::Result<String> {
    if found.entry.kind == EntryKind::File && digest.is_none() {
        *digest = Some(content::digest(&dir.open_found_file(name, found)?)?);
    }
    match digest {
        Some(digest) if called != Some(index::NAME) => {
            Ok(sealed(digest.clone(), dir.xattrs(name)?))
        }
        _ => seal_in(dir, name, called, found),
    }
}

/// Digests the contents or the target, and the extended attributes, of `found`, which stands at
/// `path` of `tree`.
pub(crate) fn seal(tree: &Tree, path: &RelPath, found: &Fingerprint) -> io::Result<String> {
    if path.is_root() {
        return Ok(sealed(String::new(), tree.xattrs(path)?));
    }
    let (dir, name) = tree.parent(path)?;
    seal_in(&dir, name, path.name(), found)
}

/// Is this the digest of an index of git? Those with equal digests may have different sizes.
pub(crate) fn is_of_index(seal: &str) -> bool {
    seal.starts_with(INDEX)
}

/// Digests `name` of `dir`, which is called `called` in the source.
fn seal_in(
    dir: &Dir,
    name: &[u8],
    called: Option<&[u8]>,
    found: &Fingerprint,
) -> io::Result<String> {
    let held = match found.entry.kind {
        EntryKind::File => {
            let file = dir.open_found_file(name, found)?;
            let entries = match called == Some(index::NAME) {
                true => index::digest(&file)?,
                false => None,
            };
            match entries {
                Some(digest) => format!("{INDEX}{digest}"),
                None => content::digest(&file)?,
            }
        }
        EntryKind::Symlink => blake3::hash(&dir.read_link(name)?).to_hex().to_string(),
        _ => String::new(),
    };
    Ok(sealed(held, dir.xattrs(name)?))
}

fn sealed(mut held: String, xattrs: Xattrs) -> String {
    let xattrs = promotable(xattrs);
    if !xattrs.is_empty() {
        let mut hasher = blake3::Hasher::new();
        for part in xattrs.iter().flat_map(|(name, value)| [name, value]) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        held.push('+');
        held.push_str(&hasher.finalize().to_hex());
    }
    held
}
