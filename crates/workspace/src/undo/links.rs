//! Files with several names, after an undo gave each name back by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use rustix::io::Errno;
use sandbox_model::{EntryKind, Fingerprint, RelPath};

use crate::promote::fault;
use crate::promote::journal::Journal;
use crate::sandbox::Sandbox;
use crate::side::Side;
use crate::tree::{Dir, Replace, Tree};

/// Where a name is made before it takes its place, in the sandbox's own directory.
const SCRATCH: &[u8] = b"link.new";

/// Makes one file again of what was one file in the source until `journal` took it out, as far as its
/// names are among `given`, which the sandbox has back. May be repeated.
pub(super) fn join(sandbox: &Sandbox, journal: &Journal, given: &[RelPath]) -> io::Result<()> {
    let given: BTreeSet<&RelPath> = given.iter().collect();
    let mut groups = groups(journal);
    for names in groups.values_mut() {
        names.retain(|name| given.contains(name));
    }
    groups.retain(|_, names| names.len() > 1);
    if groups.is_empty() {
        return Ok(());
    }
    let layer = Tree::open(&sandbox.layer_dir())?;
    let own = Dir::open(&sandbox.dir)?;
    for names in groups.values() {
        join_names(&layer, &own, names)?;
    }
    own.remove_all(SCRATCH)
}

/// The names of each file of which `journal` took several out of the source.
fn groups(journal: &Journal) -> BTreeMap<(u64, u64), Vec<RelPath>> {
    let mut groups: BTreeMap<_, Vec<RelPath>> = BTreeMap::new();
    let mut meet = |found: &Fingerprint, path: RelPath| {
        if found.nlink > 1 && found.entry.kind == EntryKind::File {
            groups.entry((found.dev, found.ino)).or_default().push(path);
        }
    };
    for operation in &journal.operations {
        let Some(old) = &operation.old else { continue };
        meet(&old.fingerprint, operation.path.clone());
        for below in &old.below {
            meet(&below.fingerprint, operation.path.join_path(&below.path));
        }
    }
    groups
}

fn join_names(layer: &Tree, own: &Dir, names: &[RelPath]) -> io::Result<()> {
    let mut found = Vec::new();
    for name in names {
        if let Some(file) = layer.stat(name)?
            && file.entry.kind == EntryKind::File
        {
            found.push((name, file));
        }
    }
    // The one with most names already; so no name is taken from a file that has others.
    let Some((first, file)) = found.iter().max_by_key(|(_, file)| file.nlink) else {
        return Ok(());
    };
    for (name, other) in &found {
        if other.nlink == 1 && other.ino != file.ino {
            match link(layer, own, first, name) {
                // Another user's file, or too many names: two files with the same contents.
                Err(error) if is_refused(&error) => {}
                linked => linked?,
            }
        }
    }
    Ok(())
}

/// Puts another name of `first` in place of `name`, by one rename.
fn link(layer: &Tree, own: &Dir, first: &RelPath, name: &RelPath) -> io::Result<()> {
    own.remove_all(SCRATCH)?;
    let (dir, first) = layer.parent(first)?;
    dir.link(first, own, SCRATCH)?;
    fault::at("link given back")?;
    let (dir, name) = layer.parent(name)?;
    let time = dir.stat_self()?.entry.mtime;
    dir.while_writable(|dir| own.rename(SCRATCH, dir, name, Replace::Yes))?;
    dir.set_times_self(time)
}

fn is_refused(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::PERM | Errno::ACCESS | Errno::MLINK))
}
