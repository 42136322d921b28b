//! A whole tree in memory, to be compared with another.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::Read;
use std::path::Path;

use sandbox_model::{Change, ChangeKind, EntryKind, RelPath, Timestamp};
use sandbox_workspace::side::Side;

/// Everything in a tree but its root.
pub type Tree = BTreeMap<RelPath, Node>;

/// One entry.
#[derive(Clone, PartialEq, Eq)]
pub struct Node {
    /// Kind and permissions.
    pub kind: EntryKind,
    pub mode: u32,
    /// A file's contents, a symlink's target.
    pub held: Vec<u8>,
    /// The one attribute that histories set.
    pub note: Option<Vec<u8>>,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = sandbox_model::path::escape(&self.held[..self.held.len().min(40)]);
        let Node {
            kind,
            mode,
            held,
            note,
        } = self;
        write!(
            f,
            "{} {mode:o} {} bytes '{start}' {note:?}",
            kind.as_str(),
            held.len()
        )
    }
}

/// Reads a tree through a side.
pub fn read(side: &dyn Side) -> Tree {
    let mut tree = Tree::new();
    let mut pending = vec![RelPath::root()];
    while let Some(dir) = pending.pop() {
        for name in side.list(&dir).unwrap() {
            let path = dir.join(&name);
            let found = side.stat(&path).unwrap().expect("a name that was listed");
            let kind = found.entry.kind;
            let mut held = Vec::new();
            match kind {
                EntryKind::File => {
                    side.open(&path).unwrap().read_to_end(&mut held).unwrap();
                }
                EntryKind::Symlink => held = side.read_link(&path).unwrap(),
                EntryKind::Directory => pending.push(path.clone()),
                _ => {}
            }
            let note = side.xattrs(&path).unwrap().remove(&b"user.note"[..]);
            let mode = if kind == EntryKind::Symlink {
                0
            } else {
                found.entry.mode
            };
            tree.insert(
                path,
                Node {
                    kind,
                    mode,
                    held,
                    note,
                },
            );
        }
    }
    tree
}

/// Reads a plain directory.
pub fn read_directory(root: &Path) -> Tree {
    read(&sandbox_workspace::tree::Tree::open(root).unwrap())
}

/// A tree to the last detail: also inodes, and the times of what is no directory.
pub type Exact = BTreeMap<RelPath, (Node, u64, Option<Timestamp>)>;

/// Reads a plain directory so.
pub fn exact(root: &Path) -> Exact {
    let source = sandbox_workspace::tree::Tree::open(root).unwrap();
    let detail = |(path, node): (RelPath, Node)| {
        let found = source.stat(&path).unwrap().unwrap();
        let time = (node.kind != EntryKind::Directory).then_some(found.entry.mtime);
        (path, (node, found.ino, time))
    };
    read(&source).into_iter().map(detail).collect()
}

/// What a patch carries: files with contents and whether they run, and symlinks.
pub fn carried(tree: &Tree) -> BTreeMap<RelPath, (bool, EntryKind, Vec<u8>)> {
    tree.iter()
        .filter(|(_, node)| matches!(node.kind, EntryKind::File | EntryKind::Symlink))
        .map(|(path, node)| {
            (
                path.clone(),
                (node.mode & 0o100 != 0, node.kind, node.held.clone()),
            )
        })
        .collect()
}

/// What a change set between two trees must say: path, kind, whether attributes changed.
pub fn difference(before: &Tree, after: &Tree) -> Vec<(RelPath, ChangeKind, bool)> {
    let mut paths: Vec<&RelPath> = before.keys().chain(after.keys()).collect();
    paths.sort();
    paths.dedup();
    paths
        .into_iter()
        .filter_map(|path| changed(path, before.get(path), after.get(path)))
        .collect()
}

fn changed(
    path: &RelPath,
    before: Option<&Node>,
    after: Option<&Node>,
) -> Option<(RelPath, ChangeKind, bool)> {
    let (kind, noted) = match (before, after) {
        (None, None) => return None,
        (None, Some(_)) => (ChangeKind::Created, false),
        (Some(_), None) => (ChangeKind::Deleted, false),
        (Some(before), Some(after)) => {
            let noted = before.note != after.note;
            let kind = match after.kind {
                kind if kind != before.kind => {
                    return Some((path.clone(), ChangeKind::Type, false));
                }
                EntryKind::File if before.held != after.held => ChangeKind::Modified,
                EntryKind::Symlink if before.held != after.held => ChangeKind::Symlink,
                _ if before.mode != after.mode || noted => ChangeKind::Mode,
                _ => return None,
            };
            (kind, noted)
        }
    };
    Some((path.clone(), kind, noted))
}

/// The same of a change set.
pub fn said(changes: &[Change]) -> Vec<(RelPath, ChangeKind, bool)> {
    let said = |change: &Change| {
        (
            change.path.clone(),
            change.kind.clone(),
            change.xattrs_changed,
        )
    };
    changes.iter().map(said).collect()
}

/// Whether a copy keeps hard links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// It does.
    Keep,
    /// Each name is a file of its own, as in an overlay that splits them on write.
    Split,
}

/// A copy of a directory with everything else that belongs to it.
pub fn copy(from: &Path, to: &Path, links: Links) {
    let mut cp = std::process::Command::new("cp");
    cp.arg("-a");
    if links == Links::Split {
        cp.arg("--no-preserve=links");
    }
    let status = cp.arg(from).arg(to).status().unwrap();
    assert!(status.success() && fs::symlink_metadata(to).is_ok());
}
