//! Making the upper layer independent of what is about to change below it.
//!
//! Real root's overlays rename a directory of the lower layer by a mark: it stands in the upper under
//! its new name and takes its contents from where they were. When a promote deletes or replaces
//! them there, and does not bring the new name along, the workspace would lose them. So they are
//! copied to the upper first. The same holds for a file that was renamed with its contents left
//! below.

use std::io;
use std::path::Path;

use sandbox_model::{EntryKind, OverlayXattr, RelPath};

use crate::layer::{Hidden, Overlay};
use crate::side::Side;
use crate::transfer::{self, Privileges};
use crate::tree::{Dir, Replace, Tree};

const PREFIX: &str = OverlayXattr::Trusted.prefix();

/// Copies to `upper` what it shows from `changing` paths of `lower` under other names, but for what
/// is at or below `handed_over`. Returns where.
pub(super) fn detach(
    upper: &Path,
    lower: &Path,
    changing: &[RelPath],
    handed_over: &[RelPath],
) -> io::Result<Vec<RelPath>> {
    let open = || -> io::Result<Overlay> {
        let (upper, lower) = (Tree::open(upper)?, Tree::open(lower)?);
        Ok(Overlay::of(
            upper,
            lower,
            OverlayXattr::Trusted,
            Hidden::default(),
        ))
    };
    let layer = Layer {
        upper: Tree::open(upper)?,
        changing,
        merged: open()?,
    };
    let mut detached = Vec::new();
    // Directories of the upper, each with where its lower part is.
    let mut pending = vec![(RelPath::root(), Some(RelPath::root()))];
    while let Some((path, below)) = pending.pop() {
        let dir = layer.upper.dir(&path)?;
        for entry in dir.entries()? {
            let at = path.join(&entry.name);
            if handed_over.iter().any(|whole| at.starts_with(whole)) {
                continue;
            }
            let Some(found) = dir.stat(&entry.name)? else {
                continue;
            };
            let moved = mark(&dir, &entry.name, "redirect")?;
            let from = lower_part(below.as_ref(), &entry.name, moved.as_deref())?;
            let affected = moved.is_some() && from.as_ref().is_some_and(|from| layer.changes(from));
            match found.entry.kind {
                EntryKind::Directory => {
                    if affected {
                        layer.fill(&at)?;
                        detached.push(at.clone());
                    }
                    let opaque = mark(&dir, &entry.name, "opaque")?.as_deref() == Some(b"y");
                    pending.push((at, if opaque { None } else { from }));
                }
                EntryKind::File if affected && mark(&dir, &entry.name, "metacopy")?.is_some() => {
                    layer.bring_contents(&dir, &at, &entry.name)?;
                    detached.push(at);
                }
                _ => {}
            }
        }
    }
    Ok(detached)
}

struct Layer<'p> {
    upper: Tree,
    merged: Overlay,
    changing: &'p [RelPath],
}

impl Layer<'_> {
    /// Does anything at, above or below the lower's `path` change?
    fn changes(&self, path: &RelPath) -> bool {
        self.changing
            .iter()
            .any(|p| p.starts_with(path) || path.starts_with(p))
    }

    /// Copies into the upper's directory at `path` all that it shows from below, then lets it hide
    /// what is below. Until that last step what is copied and what it hides are the same.
    fn fill(&self, path: &RelPath) -> io::Result<()> {
        let dir = self.upper.dir(path)?;
        for name in self.merged.list(path)? {
            let at = path.join(&name);
            match dir.stat(&name)? {
                None => transfer::copy_below(&self.merged, &at, &dir, &name)?,
                Some(found) if found.entry.kind == EntryKind::Directory => {
                    // One that was moved here from elsewhere is met by the walk.
                    if mark(&dir, &name, "redirect")?.is_none() {
                        self.fill(&at)?;
                    }
                }
                Some(_) if mark(&dir, &name, "metacopy")?.is_some() => {
                    self.bring_contents(&dir, &at, &name)?;
                }
                Some(_) => {}
            }
        }
        dir.set_xattr(b".", format!("{PREFIX}opaque").as_bytes(), b"y")?;
        dir.remove_xattr(b".", format!("{PREFIX}redirect").as_bytes())
    }

    /// Puts in place of a file whose contents are below one that has them.
    fn bring_contents(&self, dir: &Dir, path: &RelPath, name: &[u8]) -> io::Result<()> {
        let whole = format!(".sandbox-whole-{:x}", crate::root::random());
        let copied =
            transfer::copy_entry(&self.merged, path, dir, whole.as_bytes(), Privileges::Keep);
        if copied.is_err() {
            dir.remove_all(whole.as_bytes())?;
        }
        copied?;
        dir.rename(whole.as_bytes(), dir, name, Replace::Yes)
    }
}

fn mark(dir: &Dir, name: &[u8], mark: &str) -> io::Result<Option<Vec<u8>>> {
    dir.xattr(name, &format!("{PREFIX}{mark}"))
}

/// Where the lower part of the entry `name` is, in a directory whose own is at `below`.
fn lower_part(
    below: Option<&RelPath>,
    name: &[u8],
    redirect: Option<&[u8]>,
) -> io::Result<Option<RelPath>> {
    let bad = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    match redirect {
        Some([b'/', from_root @ ..]) => RelPath::new(from_root).map(Some).map_err(bad),
        Some(sibling) => {
            let sibling = RelPath::new(sibling).map_err(bad)?;
            Ok(below.map(|below| below.join_path(&sibling)))
        }
        None => Ok(below.map(|below| below.join(name))),
    }
}
