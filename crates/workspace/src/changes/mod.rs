//! The change set of a workspace.
//!
//! A layer tells which paths it touched; here each is compared with what the sandbox started from.
//! What was copied up but is the same in kind, mode, owner, contents and extended attributes is no
//! change; a modification time alone is none either. Then deletions and creations of like contents
//! are paired to renames, and what a person should look at twice is flagged.

mod compare;
mod flag;
mod follow;
pub(crate) mod git;
mod rename;
mod survey;
mod watch;

use std::collections::BTreeMap;
use std::io;

use sandbox_model::{Change, ChangeKind, ChangeSet, EntryKind, RelPath, Timestamp};

use crate::layer::{Below, Contents, Descent, LayerError, Touched, last_touch};
use crate::progress::{Phase, Progress};
use crate::side::{Side, Xattrs};
use crate::tree::Tree;
use crate::view::{View, ViewError};

pub use survey::Search;

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
    /// How far the source is searched for repositories and links that give a change a meaning.
    pub search: Search,
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

/// How much of a change set is collected. What wrote the workspace decides how many paths there are and
/// how long each is: a path thousands of directories deep is as long as all their names together.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// The most changes that are listed.
    pub listed: usize,
    /// The most bytes that they are worth as JSON, roughly, with their extended attributes.
    pub listed_bytes: usize,
    /// The most bytes of the paths that are looked at, listed or not.
    pub walked_bytes: usize,
}

impl Budget {
    const NONE: Budget = Budget {
        listed: usize::MAX,
        listed_bytes: usize::MAX,
        walked_bytes: usize::MAX,
    };
}

/// As much of a change set as its budget allows.
#[derive(Debug)]
pub struct Listing {
    /// The changes that are listed. Renames are paired among these only.
    pub set: ChangeSet,
    /// How many changes were found, listed or not.
    pub total: usize,
    /// Whether every path was looked at: if not, there are more than `total`.
    pub complete: bool,
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
    Ok(listing(view, options, &Budget::NONE, progress)?.set)
}

/// The same within a budget: memory does not grow with the workspace.
pub fn listing(
    view: &View<'_>,
    options: &ChangeOptions,
    budget: &Budget,
    progress: &mut dyn Progress,
) -> Result<Listing, ViewError> {
    progress.begin(Phase::Comparing, None);
    let Collected {
        mut found,
        unlisted,
        complete,
        ..
    } = collect(view, options, budget, progress)?;
    if options.renames == Renames::Detect {
        found = rename::pair(view, found)?;
    }
    found.sort_by(|a, b| a.change.path.cmp(&b.change.path));
    let flagger = flag::Flagger::new(
        view,
        found.iter().map(|found| &found.change),
        options.search,
    )?;
    let mut changes = Vec::with_capacity(found.len());
    for Found {
        mut change, xattrs, ..
    } in found
    {
        change.flags = flagger.flags(&change, &xattrs)?;
        changes.push(change);
    }
    progress.finish();
    let set = ChangeSet { changes }.select(&options.paths);
    Ok(Listing {
        total: set.changes.len() + unlisted,
        set,
        complete,
    })
}

/// What arrives in a source by a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// What a sandbox made.
    Sandbox,
    /// What the source had before.
    Own,
}

/// Which of `changes`, which make `after` of `source`, steer git on the host.
pub(crate) fn steering_git(
    source: &Tree,
    after: &dyn Side,
    changes: &[Change],
    arrival: Arrival,
) -> io::Result<Vec<RelPath>> {
    let survey = survey::Survey::of(source, changes.iter(), Search::Whole);
    let git = git::Git::new(source, after, changes.iter(), &survey)?;
    let mut found = Vec::new();
    for change in changes {
        let steers = match arrival {
            Arrival::Sandbox => git.is_steered_by(change)?,
            Arrival::Own => git.is_completed_by(change)?,
        };
        if steers {
            found.push(change.path.clone());
        }
    }
    Ok(found)
}

/// What was found so far.
struct Collected {
    found: Vec<Found>,
    /// What `found` is worth.
    listed_bytes: usize,
    walked_bytes: usize,
    /// How many changes there was no room for.
    unlisted: usize,
    /// Whether every path was looked at.
    complete: bool,
}

impl Collected {
    fn add(&mut self, found: Found, budget: &Budget) {
        let bytes = self.listed_bytes.saturating_add(found.worth());
        if self.found.len() >= budget.listed || bytes > budget.listed_bytes {
            self.unlisted += 1;
            return;
        }
        self.listed_bytes = bytes;
        self.found.push(found);
    }
}

impl Found {
    /// About how many bytes it takes as JSON, and in memory until then.
    fn worth(&self) -> usize {
        /// Both entries, the names of their fields, flags.
        const FIELDS: usize = 400;
        let path = |path: &RelPath| escaped_length(path.as_bytes());
        let contents = match &self.contents {
            Contents::Own => 0,
            Contents::Lower(from) => path(from),
        };
        let xattrs = self.xattrs.iter();
        let xattrs: usize = xattrs.map(|(name, value)| name.len() + value.len()).sum();
        FIELDS + path(&self.change.path) + contents + xattrs
    }
}

/// How long a path is in JSON, at most: what is not printable takes five bytes.
fn escaped_length(bytes: &[u8]) -> usize {
    let mut length = 0;
    for chunk in bytes.utf8_chunks() {
        let plain = |byte: &u8| !byte.is_ascii_control() && !matches!(byte, b'\\' | b'"');
        let valid = chunk.valid().as_bytes();
        length += valid
            .iter()
            .map(|byte| if plain(byte) { 1 } else { 5 })
            .sum::<usize>();
        length += chunk.invalid().len() * 5;
    }
    length
}

fn collect(
    view: &View<'_>,
    options: &ChangeOptions,
    budget: &Budget,
    progress: &mut dyn Progress,
) -> Result<Collected, ViewError> {
    let mut all = Collected {
        found: Vec::new(),
        listed_bytes: 0,
        walked_bytes: 0,
        unlisted: 0,
        complete: true,
    };
    let mut failure = None;
    let mut unseen = view.base.taken_since();
    let walked = view.layer.walk(&mut |touched| {
        unseen.remove(&touched.path);
        if !is_wanted(&touched.path, options) {
            return Ok(Descent::Over);
        }
        progress.advance(1);
        all.walked_bytes += touched.path.as_bytes().len();
        if all.walked_bytes > budget.walked_bytes {
            all.complete = false;
            // Ends the walk, which nothing else does.
            let path = RelPath::root();
            let source = std::io::ErrorKind::Interrupted.into();
            return Err(LayerError { path, source });
        }
        if options.since.is_none_or(|since| touched.changed >= since) && failure.is_none() {
            match change(view, touched) {
                Ok(Some(change)) => all.add(change, budget),
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
    if let Some(error) = failure {
        return Err(error);
    }
    match walked {
        Err(_) if !all.complete => return Ok(all),
        walked => walked.map_err(|error| view.layer_failed(error))?,
    }
    for path in unseen.iter().filter(|path| is_wanted(path, options)) {
        if let Some(gone) = gone_without_trace(view, path, options.since)? {
            all.add(gone, budget);
        }
    }
    Ok(all)
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
