//! The change set of a workspace.
//!
//! A layer tells which paths it touched; here each is compared with what the sandbox started from.
//! What was copied up but is the same in kind, mode, owner, contents and extended attributes is no
//! change; a modification time alone is none either. Then deletions and creations of like contents
//! are paired to renames, and what a person should look at twice is flagged.

mod compare;
mod flag;
mod rename;

use sandbox_model::{Change, ChangeKind, ChangeSet, RelPath, Timestamp};

use crate::layer::{Contents, Descent, Touched};
use crate::progress::{Phase, Progress};
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

/// A change, and where the file's contents come from.
struct Found {
    change: Change,
    contents: Contents,
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
    let mut changes: Vec<Change> = found.into_iter().map(|found| found.change).collect();
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    for change in &mut changes {
        change.flags = flag::flags(view, change)?;
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
    let walked = view.layer.walk(&mut |touched| {
        if !is_wanted(&touched.path, options) {
            return Ok(Descent::Over);
        }
        progress.advance(1);
        if options.since.is_none_or(|since| touched.changed >= since) && failure.is_none() {
            match change(view, &touched) {
                Ok(Some(change)) => found.push(Found {
                    change,
                    contents: touched.contents,
                }),
                Ok(None) => {}
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
    match failure {
        Some(error) => Err(error),
        None => Ok(found),
    }
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
fn change(view: &View<'_>, touched: &Touched) -> Result<Option<Change>, ViewError> {
    let path = &touched.path;
    let was = view.base.recorded_entry(path).unwrap_or(touched.was);
    let (kind, xattrs_changed) = match (was, touched.now) {
        (None, None) => return Ok(None),
        // The source deleted it too: nothing is left to say.
        (Some(_), None) if touched.was.is_none() => return Ok(None),
        (None, Some(_)) => (ChangeKind::Created, false),
        (Some(_), None) => (ChangeKind::Deleted, false),
        (Some(was), Some(now)) if was.entry.kind != now.entry.kind => (ChangeKind::Type, false),
        (Some(was), Some(now)) => {
            match compare::compare(view, touched, &was, &now).map_err(view.failed(path))? {
                Some(difference) => difference,
                None => return Ok(None),
            }
        }
    };
    Ok(Some(Change {
        path: path.clone(),
        kind,
        before: was.map(|was| was.entry),
        after: touched.now.map(|now| now.entry),
        xattrs_changed,
        flags: Vec::new(),
    }))
}

#[cfg(test)]
mod tests;
