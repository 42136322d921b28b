//! The change set of a workspace.
//!
//! A layer tells which paths it touched; here each is compared with what the sandbox started from.
//! What was copied up but is the same in kind, mode, owner, contents and extended attributes is no
//! change; a modification time alone is none either. Then deletions and creations of like contents
//! are paired to renames, and what a person should look at twice is flagged.

mod compare;
mod flag;
mod rename;

use std::collections::BTreeMap;

use sandbox_model::{Change, ChangeKind, ChangeSet, EntryKind, RelPath, Timestamp};

use crate::layer::{Below, Contents, Descent, Touched, last_touch};
use crate::progress::{Phase, Progress};
use crate::side::Xattrs;
use crate::view::{View, ViewError};

/// What to look for.
#[derive(Debug, Clone, Default)]
pub struct ChangeOptions {
    /// Only at or below these; empty for everywhere.
    pub paths: Vec<RelPath>,
    /// Only what was modified, or changed in its inode, at or after this. A deletion counts from
    /// when the names of its directory last changed.
    pub since: Option<Timestamp>,
    /// Pair deletions with creations of like content.
    pub renames: Renames,
}

/// Whether renames are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Renames {
    /// They are.
    #[default]
    Detect,
    /// Every rename is a deletion and a creation, as promote applies it.
    Split,
}

/// A change, and what else was learned on the way.
struct Found {
    change: Change,
    /// Where the file's contents come from.
    contents: Contents,
    /// The extended attributes it has now.
    xattrs: Xattrs,
}

/// The change set. O(changes) on overlay and btrfs. The workspace's root itself is in it (as the
/// empty path) when its mode, owner or extended attributes changed.
pub fn change_set(
    view: &View<'_>,
    options: &ChangeOptions,
    progress: &mut dyn Progress,
) -> Result<ChangeSet, ViewError> {
    progress.begin(Phase::Comparing, None);
    let mut found = collect(view, options, progress)?;
    if options.renames == Renames::Detect {
        found = rename::pair(view, found)?;
    }
    found.sort_by(|a, b| a.change.path.cmp(&b.change.path));
    let mut changes = Vec::with_capacity(found.len());
    for Found {
        mut change, xattrs, ..
    } in found
    {
        change.flags = flag::flags(view, &change, &xattrs)?;
        changes.push(change);
    }
    progress.finish();
    Ok(ChangeSet { changes }.select(&options.paths))
}

fn collect(
    view: &View<'_>,
    options: &ChangeOptions,
    progress: &mut dyn Progress,
) -> Result<Vec<Found>, ViewError> {
    let mut found = Vec::new();
    let mut failure = None;
    let mut unseen = view.base.taken_since();
    let walked = view.layer.walk(&mut |touched| {
        unseen.remove(&touched.path);
        if !is_wanted(&touched.path, options) {
            return Ok(Descent::Over);
        }
        progress.advance(1);
        if options.since.is_none_or(|since| touched.changed >= since) && failure.is_none() {
            match change(view, touched) {
                Ok(change) => found.extend(change),
                Err(error) => failure = Some(error),
            }
        }
        Ok(if failure.is_some() {
            Descent::Over
        } else {
            Descent::Into
        })
    });
    walked.map_err(|error| view.layer_failed(error))?;
    if let Some(error) = failure {
        return Err(error);
    }
    for path in unseen.iter().filter(|path| is_wanted(path, options)) {
        found.extend(gone_without_trace(view, path, options.since)?);
    }
    Ok(found)
}

/// What came from the source later stands in a frozen workspace's own layer alone: removing it leaves
/// nothing there that would tell.
fn gone_without_trace(
    view: &View<'_>,
    path: &RelPath,
    since: Option<Timestamp>,
) -> Result<Option<Found>, ViewError> {
    let look = |at: &RelPath| view.workspace().stat(at).map_err(view.failed(at));
    if look(path)?.is_some() {
        return Ok(None);
    }
    let mut changed = Timestamp(i64::MAX, 0);
    for above in std::iter::successors(path.parent(), RelPath::parent) {
        if let Some(dir) = look(&above)? {
            changed = last_touch(&dir);
            break;
        }
    }
    if since.is_some_and(|since| changed < since) {
        return Ok(None);
    }
    let touched = Touched {
        path: path.clone(),
        now: None,
        was: view.base.recorded_entry(path).flatten(),
        contents: Contents::Own,
        below: Below::Replaced,
        changed,
    };
    change(view, touched)
}

/// Can `path`, or something below it, be asked for? A rename may have its other end anywhere.
fn is_wanted(path: &RelPath, options: &ChangeOptions) -> bool {
    options.paths.is_empty()
        || options.renames == Renames::Detect
        || options
            .paths
            .iter()
            .any(|wanted| path.starts_with(wanted) || wanted.starts_with(path))
}

/// How a touched path differs from what it was, if it does.
fn change(view: &View<'_>, touched: Touched) -> Result<Option<Found>, ViewError> {
    let path = &touched.path;
    let was = view.base.recorded_entry(path).unwrap_or(touched.was);
    if was.is_none() && touched.now.is_none() {
        return Ok(None);
    }
    let xattrs = match touched.now {
        Some(_) => compare::xattrs_now(view, path).map_err(view.failed(path))?,
        None => Xattrs::new(),
    };
    let (kind, xattrs_changed) = match (was, touched.now) {
        (None, _) => (ChangeKind::Created, false),
        // The source deleted it too: nothing is left to say.
        (Some(_), None) if touched.was.is_none() => return Ok(None),
        (Some(_), None) => (ChangeKind::Deleted, false),
        (Some(was), Some(now)) if was.entry.kind != now.entry.kind => (ChangeKind::Type, false),
        (Some(was), Some(now)) => {
            let difference = compare::compare(view, &touched, &was, &now, &xattrs);
            match difference.map_err(view.failed(path))? {
                Some(difference) => difference,
                None => return Ok(None),
            }
        }
    };
    let change = Change {
        path: path.clone(),
        kind,
        before: was.map(|was| was.entry),
        after: touched.now.map(|now| now.entry),
        xattrs_changed,
        flags: Vec::new(),
    };
    Ok(Some(Found {
        change,
        contents: touched.contents,
        xattrs,
    }))
}

/// The names that are one file in the workspace, group by group, where at least one of them was
/// touched. A file whose other names are all untouched in the source is in none.
pub fn hard_links(view: &View<'_>) -> Result<Vec<Vec<RelPath>>, ViewError> {
    let mut groups: BTreeMap<(u64, u64), Vec<RelPath>> = BTreeMap::new();
    let walked = view.layer.walk(&mut |touched| {
        if let Some(now) = touched.now
            && now.nlink > 1
            && now.entry.kind != EntryKind::Directory
        {
            groups
                .entry((now.dev, now.ino))
                .or_default()
                .push(touched.path);
        }
        Ok(Descent::Into)
    });
    walked.map_err(|error| view.layer_failed(error))?;
    let mut groups: Vec<Vec<RelPath>> = groups
        .into_values()
        .filter(|names| names.len() > 1)
        .collect();
    groups.iter_mut().for_each(|names| names.sort());
    groups.sort();
    Ok(groups)
}

#[cfg(test)]
mod tests;
