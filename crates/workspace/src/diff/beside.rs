//! What a patch cannot carry.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};

use sandbox_model::{Change, ChangeKind, ChangeSet, Entry, EntryKind, RelPath};

use super::section::GitMode;
use super::{above, is_directory, was_directory};
use crate::view::View;

/// Findings by path.
#[derive(Debug, Default)]
pub(super) struct Missed {
    found: BTreeMap<RelPath, Vec<String>>,
}

impl Missed {
    /// Notes `what` about `path`.
    pub(super) fn add(&mut self, path: &RelPath, what: impl Into<String>) {
        self.found
            .entry(path.clone())
            .or_default()
            .push(what.into());
    }

    /// A line per path.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for (path, what) in &self.found {
            writeln!(out, "{path}: {}", what.join("; "))?;
        }
        Ok(())
    }
}

/// Notes everything about `changes` that git has no words for.
pub(super) fn collect(view: &View<'_>, changes: &ChangeSet, missed: &mut Missed) -> io::Result<()> {
    let carried = carried_directories(changes);
    for change in &changes.changes {
        kinds(change, &carried, missed);
        modes(change, missed);
        attributes(view, change, missed)?;
    }
    left_empty(view, changes, missed)
}

/// Directories that a patch makes or removes by itself, because of a file in them, as bytes: each is
/// a part of a path that is there already, which may be thousands of directories deep.
fn carried_directories(changes: &ChangeSet) -> HashSet<&[u8]> {
    let mut carried = HashSet::new();
    for change in &changes.changes {
        let known = |entry: &Option<Entry>| entry.as_ref().and_then(GitMode::of).is_some();
        if known(&change.after) && !matches!(change.kind, ChangeKind::Deleted) {
            carry(&change.path, &mut carried);
        }
        if known(&change.before) {
            match &change.kind {
                ChangeKind::Renamed { from, .. } => carry(from, &mut carried),
                ChangeKind::Deleted | ChangeKind::Type => carry(&change.path, &mut carried),
                _ => {}
            }
        }
    }
    carried
}

/// Adds every directory above `path` but the root. One that is there already came with those above it.
fn carry<'c>(path: &'c RelPath, carried: &mut HashSet<&'c [u8]>) {
    let mut at = path.as_bytes();
    while let Some(cut) = at.iter().rposition(|byte| *byte == b'/') {
        at = &at[..cut];
        if !carried.insert(at) {
            break;
        }
    }
}

fn kinds(change: &Change, carried: &HashSet<&[u8]>, missed: &mut Missed) {
    let was_known = change
        .before
        .as_ref()
        .is_none_or(|entry| GitMode::of(entry).is_some());
    let is_known = change
        .after
        .as_ref()
        .is_none_or(|entry| GitMode::of(entry).is_some());
    let same_kind = change.before.map(|entry| entry.kind) == change.after.map(|entry| entry.kind);
    if (was_known && is_known) || same_kind {
        return;
    }
    if let Some(before) = change.before.filter(|_| !was_known)
        && !(was_directory(change) && carried.contains(change.path.as_bytes()))
    {
        missed.add(&change.path, format!("{} deleted", described(&before)));
    }
    if let Some(after) = change.after.filter(|_| !is_known)
        && !(is_directory(change) && carried.contains(change.path.as_bytes()))
    {
        missed.add(&change.path, format!("new {}", described(&after)));
    }
}

fn described(entry: &Entry) -> &'static str {
    match entry.kind {
        EntryKind::Directory => "empty directory",
        kind => kind.as_str(),
    }
}

/// Of modes git keeps whether a file can be executed; the rest follows the umask of who applies.
fn modes(change: &Change, missed: &mut Missed) {
    let Some(after) = change
        .after
        .filter(|after| after.kind != EntryKind::Symlink)
    else {
        return;
    };
    let same_kind = change.before.filter(|before| before.kind == after.kind);
    match same_kind {
        Some(before) => {
            if before.mode != after.mode && !is_carried(before.mode, after.mode, after.kind) {
                let what = format!("mode {:04o} to {:04o}", before.mode, after.mode);
                missed.add(&change.path, what);
            }
            if (before.uid, before.gid) != (after.uid, after.gid) {
                missed.add(&change.path, format!("owner {}:{}", after.uid, after.gid));
            }
        }
        None => {
            let usual: &[u32] = match after.kind {
                EntryKind::File => &[0o644, 0o755],
                EntryKind::Directory => &[0o755],
                _ => &[],
            };
            if !usual.contains(&after.mode) {
                missed.add(&change.path, format!("mode {:04o}", after.mode));
            }
        }
    }
}

fn is_carried(before: u32, after: u32, kind: EntryKind) -> bool {
    let usual = |mode| matches!(mode, 0o644 | 0o755);
    kind == EntryKind::File && usual(before) && usual(after)
}

fn attributes(view: &View<'_>, change: &Change, missed: &mut Missed) -> io::Result<()> {
    let replaced = match change.kind {
        ChangeKind::Created | ChangeKind::Type => true,
        ChangeKind::Deleted => return Ok(()),
        _ => false,
    };
    let new_ones = replaced && {
        match view.workspace().xattrs(&change.path) {
            Err(error) if crate::layer::vanished(&error) => false,
            xattrs => xattrs?
                .keys()
                .any(|name| !name.starts_with(b"security.selinux")),
        }
    };
    if new_ones || change.xattrs_changed {
        missed.add(&change.path, "extended attributes");
    }
    Ok(())
}

/// git removes a directory with its last file; the workspace may have kept it.
fn left_empty(view: &View<'_>, changes: &ChangeSet, missed: &mut Missed) -> io::Result<()> {
    let mut seen = HashSet::new();
    for change in &changes.changes {
        let gone = match &change.kind {
            ChangeKind::Deleted => &change.path,
            ChangeKind::Renamed { from, .. } => from,
            _ => continue,
        };
        for parent in above(gone) {
            if parent.is_root() || !seen.insert(parent.clone()) {
                break;
            }
            match view.workspace().list(&parent) {
                Ok(names) if names.is_empty() => missed.add(&parent, "empty directory kept"),
                Err(error) if !crate::layer::vanished(&error) => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}
