//! Taking a promote back, and applying it again.
//!
//! Pre-images belong to the source, not to the sandbox: they are kept below `ROOT/.undo`, survive a
//! discard, and go when there are more than [`KEEP_COUNT`] or they are older than [`KEEP_DAYS`].
//!
//! An undo is a transaction of its own, through the same journal as the promote, and is kept like
//! one. What it takes out of the source is in its stage. From there it goes back to the sandbox's
//! change set, where the sandbox still exists and has not changed the path since; and from there a
//! redo, which is the undo of an undo, puts it into the source again.
//!
//! All of it or nothing: where something in the source changed since, nothing is undone, unless the
//! rest alone is asked for.

pub(crate) mod give_back;
mod inverse;
mod links;
mod outcome;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use sandbox_model::{Class, EntryKind, Failure, RelPath, SandboxName};
use serde::Serialize;
use thiserror::Error;

use crate::alike::{Spot, alike};
use crate::backend::backend;
use crate::progress::Progress;
use crate::promote::PromoteError;
use crate::promote::area::Area;
use crate::promote::conduct::Conduct;
use crate::promote::journal::{
    Absorbed, Attributes, Committed, Journal, Kind, Place, SandboxIdentity, Settle, touched,
};
use crate::promote::settle::{Since, excuse_renames, settle};
use crate::promote::{GitControl, recover, retention};
use crate::root::{Root, RootError};
use crate::sandbox::{Sandbox, SandboxError, disk_use};
use crate::tree::Tree;
use crate::view::View;

use give_back::{GivenBack, give_back};
use inverse::{Inverse, Wanted};

/// How many promotes of one source are kept, with their undos.
pub const KEEP_COUNT: usize = 20;
/// How long they are kept.
pub const KEEP_DAYS: i64 = 30;

/// One transaction that can be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UndoRecord {
    /// Its name.
    pub id: String,
    /// What it was.
    pub kind: UndoKind,
    /// When it was committed.
    pub at: jiff::Timestamp,
    /// From which sandbox.
    pub sandbox: SandboxName,
    /// What it touched, sorted.
    pub paths: Vec<RelPath>,
    /// A later undo took all of it back.
    pub undone: bool,
}

/// What a transaction was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UndoKind {
    /// A promote.
    Promote,
    /// An undo of the transaction named.
    Undo(String),
    /// It applied again what the undo named had taken back.
    Redo(String),
}

/// Which transaction to take back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The newest promote that is not undone.
    Latest,
    /// The newest undo that is not undone itself: a redo.
    LatestUndo,
    /// This one.
    Id(String),
}

/// What to take back of it.
#[derive(Debug, Clone, Default)]
pub struct UndoOptions {
    /// Only at or below these; empty for all of it.
    pub paths: Vec<RelPath>,
    /// What becomes of paths that changed in the source since.
    pub changed: Changed,
    /// Whether paths may arrive in the source that steer git by now.
    pub git_control: GitControl,
}

/// What an undo does about paths that changed in the source since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Changed {
    /// Then nothing is undone.
    #[default]
    Refuse,
    /// They are left as they are, the rest is undone.
    Leave,
}

/// What an undo did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Undone {
    /// Names the undo itself.
    pub id: String,
    /// What it took back.
    pub of: String,
    /// The sandbox that it was promoted from.
    pub sandbox: SandboxName,
    /// Paths that are as they were before.
    pub restored: Vec<RelPath>,
    /// Paths left alone, because what was promoted no longer stands there.
    pub left: Vec<RelPath>,
    /// Of the paths restored, those whose change is in the sandbox's change set again.
    pub returned: Vec<RelPath>,
    /// Those whose change is kept for a redo alone: the sandbox is gone, or changed them since.
    pub kept: Vec<RelPath>,
}

/// What an undo would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlook {
    /// Paths that it would take back.
    pub restore: Vec<RelPath>,
    /// Paths that changed since.
    pub changed: Vec<RelPath>,
}

/// Why an undo did not happen. The source is as it was.
#[derive(Debug, Error)]
pub enum UndoError {
    /// Nothing was promoted to this source, or it is too long ago.
    #[error("there is nothing to undo in {path}")]
    Nothing {
        /// The source.
        path: PathBuf,
    },
    /// Nothing was undone, or it is applied again already.
    #[error("there is nothing to redo in {path}")]
    NothingToRedo {
        /// The source.
        path: PathBuf,
    },
    /// No such transaction.
    #[error("no promote '{id}' of {path} is kept")]
    NotFound {
        /// As asked.
        id: String,
        /// The source.
        path: PathBuf,
    },
    /// Some of the selected paths are not as they were left.
    #[error("{} changed in the source since '{id}': {}",
        if .paths.len() == 1 { "1 path".to_owned() } else { format!("{} paths", .paths.len()) },
        named(.paths))]
    Changed {
        /// The transaction.
        id: String,
        /// All of them.
        paths: Vec<RelPath>,
        /// Is there anything else to undo?
        rest: bool,
    },
    /// A path was promoted with the directory it is in.
    #[error("{path} was promoted as part of {directory} and cannot be undone alone")]
    Part {
        /// As selected.
        path: RelPath,
        /// What moved as a whole.
        directory: RelPath,
    },
    /// The transaction failed.
    #[error(transparent)]
    Promote(#[from] PromoteError),
}

impl Failure for UndoError {
    fn class(&self) -> Class {
        match self {
            UndoError::Nothing { .. }
            | UndoError::NothingToRedo { .. }
            | UndoError::NotFound { .. }
            | UndoError::Part { .. } => Class::General,
            UndoError::Changed { .. } => Class::Conflict,
            UndoError::Promote(error) => error.class(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            UndoError::Promote(error) => error.hint(),
            UndoError::Changed { rest: true, .. } => Some(
                "nothing was done; --force does the other paths and leaves these as they are"
                    .into(),
            ),
            UndoError::Changed { rest: false, .. } => {
                Some("nothing was done; what stood there before is still kept".into())
            }
            UndoError::Part { directory, .. } => Some(format!("name {directory} instead")),
            _ => None,
        }
    }
}

/// The paths by name, the first of very many.
fn named(paths: &[RelPath]) -> String {
    const SHOWN: usize = 20;
    let names: Vec<String> = paths.iter().take(SHOWN).map(RelPath::to_string).collect();
    let more = match paths.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", names.join(", "))
}

/// A committed transaction.
struct Kept {
    journal: Journal,
    committed: Committed,
}

/// Which way a transaction goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Into the source, as a promote or a redo.
    Apply,
    /// Out of it, as an undo.
    TakeBack,
}

/// What can be undone in `source`, newest first.
pub fn list(root: &Root, source: &Path) -> Result<Vec<UndoRecord>, UndoError> {
    let Some(area) = Area::find(root, &canonical(source))? else {
        return Ok(Vec::new());
    };
    let kept = kept(&area)?;
    let records = kept.iter().rev();
    Ok(records.map(|found| record(&kept, &found.journal)).collect())
}

fn record(kept: &[Kept], journal: &Journal) -> UndoRecord {
    UndoRecord {
        id: journal.id.clone(),
        kind: match (&journal.kind, direction(kept, journal)) {
            (Kind::Promote, _) => UndoKind::Promote,
            (Kind::Undo(of), Direction::TakeBack) => UndoKind::Undo(of.clone()),
            (Kind::Undo(of), Direction::Apply) => UndoKind::Redo(of.clone()),
        },
        at: journal.at,
        sandbox: journal.sandbox.name.clone(),
        paths: journal.paths(),
        undone: is_undone(kept, journal),
    }
}

/// What is kept to undo promotes to one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// The source, where that is known.
    pub source: Option<PathBuf>,
    /// Where it is kept.
    pub path: PathBuf,
    /// How many promotes can be undone or redone.
    pub promotes: usize,
    /// Disk space it uses, in bytes.
    pub size: u64,
}

/// What is kept to undo promotes, source by source.
pub fn usage(root: &Root) -> Result<Vec<Usage>, UndoError> {
    let areas = Area::all(root).map_err(|source| PromoteError::Io {
        operation: "read",
        path: root.path().join(".undo"),
        source,
    })?;
    Ok(areas.iter().map(used).collect::<Result<_, _>>()?)
}

/// What is kept to undo promotes to `source`.
pub fn usage_of(root: &Root, source: &Path) -> Result<Option<Usage>, UndoError> {
    let area = Area::find(root, &canonical(source))?;
    Ok(area.as_ref().map(used).transpose()?)
}

fn used(area: &Area) -> Result<Usage, PromoteError> {
    let promotes = kept(area)?;
    let promotes = promotes
        .iter()
        .filter(|kept| kept.journal.kind == Kind::Promote);
    Ok(Usage {
        source: area.source().map_err(|error| cannot_read(area, error))?,
        path: area.path.clone(),
        promotes: promotes.count(),
        size: disk_use(&area.path).map_err(|error| cannot_read(area, error))?,
    })
}

/// The newest transaction of `source` that an undo (of what was applied) or a redo (of what was
/// taken back) is about: by the sandbox of that name, where one is given, and at or below `paths`,
/// where there are any.
pub fn find(
    root: &Root,
    source: &Path,
    direction: Direction,
    sandbox: Option<&str>,
    paths: &[RelPath],
) -> Result<UndoRecord, UndoError> {
    let path = canonical(source);
    let kept = match Area::find(root, &path)? {
        Some(area) => kept(&area)?,
        None => Vec::new(),
    };
    let found = newest(&kept, direction, sandbox, paths);
    let found = found.ok_or_else(|| nothing(direction, &path))?;
    Ok(record(&kept, &found.journal))
}

/// What taking `which` back would do. Nothing is locked or changed.
pub fn outlook(
    root: &Root,
    source: &Path,
    which: &Which,
    options: &UndoOptions,
) -> Result<Outlook, UndoError> {
    let path = canonical(source);
    let area = Area::find(root, &path)?.ok_or_else(|| nothing(Direction::Apply, &path))?;
    let tree = open_source(&path)?;
    let kept = kept(&area)?;
    let target = choose(&kept, which, &options.paths, &path)?;
    let inverse = invert(&area, &tree, &kept, target, options)?;
    Ok(Outlook {
        restore: touched(&inverse.operations, &inverse.attributes),
        changed: inverse.changed,
    })
}

/// Takes a promote back: everything of it, or only at or below `paths`, and nothing if some of it
/// changed since.
pub fn undo(
    root: &Root,
    source: &Path,
    which: &Which,
    paths: &[RelPath],
    progress: &mut dyn Progress,
) -> Result<Undone, UndoError> {
    let options = UndoOptions {
        paths: paths.to_vec(),
        ..UndoOptions::default()
    };
    undo_with(root, source, which, &options, progress)
}

/// Takes a transaction back. Each path goes back exactly (contents, mode, times, extended
/// attributes; on one filesystem the very inode), if what was put there still stands. Takes the
/// exclusive lock of the sandbox it was promoted from, where that still exists.
pub fn undo_with(
    root: &Root,
    source: &Path,
    which: &Which,
    options: &UndoOptions,
    progress: &mut dyn Progress,
) -> Result<Undone, UndoError> {
    let path = canonical(source);
    let area = Area::find(root, &path)?.ok_or_else(|| nothing(Direction::Apply, &path))?;
    let tree = open_source(&path)?;
    // The sandbox is locked before the source, as by a promote.
    let whose = {
        let kept = kept(&area)?;
        choose(&kept, which, &options.paths, &path)?
            .journal
            .sandbox
            .clone()
    };
    let sandbox = sandbox_of(root, &whose)?;
    let locked = match &sandbox {
        None => None,
        Some(sandbox) => match sandbox.lock_exclusive() {
            Err(SandboxError::Gone { .. }) => None,
            lock => Some((sandbox, lock.map_err(PromoteError::from)?)),
        },
    };
    let sandbox = locked.as_ref().map(|(sandbox, _)| *sandbox);
    let _lock = area.lock(&tree)?;
    recover::repair(root, &area, &tree, sandbox)?;

    let kept = kept(&area)?;
    let target = choose(&kept, which, &options.paths, &path)?;
    if target.journal.sandbox != whose {
        // Another promote came in between.
        return Err(PromoteError::SourceBusy { path }.into());
    }
    let undone = take_back(&area, &tree, &kept, target, sandbox, options, progress)?;
    retention::prune(&area)?;
    Ok(undone)
}

fn take_back(
    area: &Area,
    source: &Tree,
    kept: &[Kept],
    target: &Kept,
    sandbox: Option<&Sandbox>,
    options: &UndoOptions,
    progress: &mut dyn Progress,
) -> Result<Undone, UndoError> {
    let of = &target.journal;
    let inverse = invert(area, source, kept, target, options)?;
    if let Some((path, directory)) = inverse.parts.first() {
        return Err(UndoError::Part {
            path: path.clone(),
            directory: directory.clone(),
        });
    }
    let rest = !inverse.operations.is_empty() || !inverse.attributes.is_empty();
    if !inverse.changed.is_empty() && (options.changed == Changed::Refuse || !rest) {
        return Err(UndoError::Changed {
            id: of.id.clone(),
            paths: inverse.changed,
            rest,
        });
    }
    if !rest && inverse.already.is_empty() {
        return Err(nothing(direction(kept, of), source.path()));
    }
    let steering = outcome::steering_git(area, source, of, &inverse, direction(kept, of))
        .map_err(|error| cannot_read(area, error))?;
    if !steering.is_empty() && options.git_control == GitControl::LeaveOut {
        return Err(PromoteError::GitControl(steering).into());
    }
    let share = match &of.stage {
        Place::Own => Some(of.id.as_str()),
        Place::Shared(head) => Some(head.as_str()),
        Place::Inside => None,
    };
    let conduct = Conduct::begin(area, source, share, false)?;
    let journal = inverse.journal(&conduct, of).and_then(|mut journal| {
        journal.settle = after(&conduct, kept, of, &journal, sandbox)?;
        journal.git_control = of.git_control.clone();
        journal.git_control.extend(steering);
        Ok(journal)
    });
    let journal = match journal {
        Ok(journal) => journal,
        Err(error) => {
            conduct.abandon()?;
            return Err(error.into());
        }
    };
    let committed = match (conduct.perform(&journal, progress), sandbox) {
        (Err(error), Some(sandbox)) => {
            excuse_renames(sandbox, &journal)?;
            return Err(error.into());
        }
        (committed, _) => committed?,
    };
    let mut given = GivenBack::default();
    match sandbox {
        Some(sandbox) => {
            settle(sandbox, &journal.settle, Since::Locked)?;
            given = give_back(area, sandbox, &journal)?;
            excuse_renames(sandbox, &journal)?;
        }
        None if journal.settle.give_back => given.kept = journal.paths(),
        None => {}
    }
    conduct.finish(&committed)?;
    Ok(Undone {
        restored: journal.paths(),
        id: journal.id,
        of: of.id.clone(),
        sandbox: of.sandbox.name.clone(),
        left: inverse.changed,
        returned: given.returned,
        kept: given.kept,
    })
}

/// What the sandbox does once the undo is committed: it gets back what is taken out of the source;
/// and of what is put there again, it gives up what it has alike.
fn after(
    conduct: &Conduct<'_>,
    kept: &[Kept],
    of: &Journal,
    journal: &Journal,
    sandbox: Option<&Sandbox>,
) -> Result<Settle, PromoteError> {
    let roots = journal.roots();
    if let Some(sandbox) = sandbox {
        let changing: Vec<RelPath> = roots.iter().cloned().collect();
        let detached =
            backend(sandbox.meta.backend).detach(&sandbox.meta, &sandbox.dir, &changing, &[]);
        detached.map_err(|source| PromoteError::Io {
            operation: "update the sandbox in",
            path: sandbox.dir.clone(),
            source,
        })?;
    }
    let rebase = of.settle.rebase.iter();
    let mut settle = Settle {
        rebase: rebase
            .filter(|path| roots.contains(*path))
            .cloned()
            .collect(),
        give_back: direction(kept, of) == Direction::Apply,
        ..Settle::default()
    };
    if let (false, Some(sandbox)) = (settle.give_back, sandbox) {
        let view = View::open(sandbox)?;
        let cannot = |source| PromoteError::Io {
            operation: "read the sandbox in",
            path: sandbox.dir.clone(),
            source,
        };
        settle.absorb = absorbed(conduct, &view, journal).map_err(cannot)?;
        settle
            .absorb
            .retain(|same| !settle.rebase.contains(&same.path));
    }
    Ok(settle)
}

/// The paths at which the workspace has what `journal` will put into the source.
fn absorbed(
    conduct: &Conduct<'_>,
    view: &View<'_>,
    journal: &Journal,
) -> io::Result<Vec<Absorbed>> {
    let stage = Tree::of(&conduct.stage)?;
    let mut found = Vec::new();
    for operation in &journal.operations {
        let path = &operation.path;
        let slot = RelPath::root().join(&operation.slot_name());
        let ours = Spot {
            side: view.workspace(),
            path,
            mode: None,
        };
        let same = match &operation.new {
            None => view.workspace().stat(path)?.is_none(),
            Some(new) => {
                let theirs = Spot {
                    side: &stage,
                    path: &slot,
                    mode: Some(new.fingerprint.entry.mode),
                };
                alike(&ours, &theirs)?
            }
        };
        if same {
            found.push(Absorbed {
                path: path.clone(),
                workspace: view.workspace().stat(path)?,
                take_source: true,
                take_attributes: false,
            });
        }
    }
    for change in &journal.attributes {
        let Some(workspace) = view.workspace().stat(&change.path)? else {
            continue;
        };
        let xattrs = view.workspace().xattrs(&change.path)?;
        let now = Attributes::of(&workspace.entry, xattrs);
        if workspace.entry.kind == change.inode.kind && now.same(&change.after) {
            let is_directory = change.inode.kind == EntryKind::Directory;
            found.push(Absorbed {
                path: change.path.clone(),
                workspace: Some(workspace),
                take_source: !is_directory,
                take_attributes: is_directory,
            });
        }
    }
    Ok(found)
}

fn invert(
    area: &Area,
    source: &Tree,
    kept: &[Kept],
    target: &Kept,
    options: &UndoOptions,
) -> Result<Inverse, UndoError> {
    let wanted = Wanted {
        paths: &options.paths,
        standing: standing(kept, &target.journal),
    };
    let (of, committed) = (&target.journal, &target.committed);
    let inverse = inverse::invert(area, source, of, committed, &wanted);
    Ok(inverse.map_err(|error| cannot_read(area, error))?)
}

fn choose<'k>(
    kept: &'k [Kept],
    which: &Which,
    paths: &[RelPath],
    source: &Path,
) -> Result<&'k Kept, UndoError> {
    let direction = match which {
        Which::Latest => Direction::Apply,
        Which::LatestUndo => Direction::TakeBack,
        Which::Id(id) => {
            let found = kept.iter().find(|kept| kept.journal.id == *id);
            return found.ok_or_else(|| UndoError::NotFound {
                id: id.clone(),
                path: source.to_owned(),
            });
        }
    };
    newest(kept, direction, None, paths).ok_or_else(|| nothing(direction, source))
}

/// The newest transaction that went that way and that something is left of to take back.
fn newest<'k>(
    kept: &'k [Kept],
    way: Direction,
    sandbox: Option<&str>,
    paths: &[RelPath],
) -> Option<&'k Kept> {
    let is_wanted = |journal: &Journal| match (way, &journal.kind) {
        // A redo is taken back by taking back its promote.
        (Direction::Apply, kind) => *kind == Kind::Promote,
        (Direction::TakeBack, _) => direction(kept, journal) == Direction::TakeBack,
    };
    let is_left = |journal: &Journal| match paths {
        [] => !is_undone(kept, journal) && !standing(kept, journal).is_empty(),
        paths => standing(kept, journal).iter().any(|root| {
            let mut selected = paths.iter();
            selected.any(|path| path.starts_with(root) || root.starts_with(path))
        }),
    };
    kept.iter().rev().find(|found| {
        let journal = &found.journal;
        is_wanted(journal)
            && sandbox.is_none_or(|name| journal.sandbox.name.as_str() == name)
            && is_left(journal)
    })
}

fn nothing(direction: Direction, source: &Path) -> UndoError {
    let path = source.to_owned();
    match direction {
        Direction::Apply => UndoError::Nothing { path },
        Direction::TakeBack => UndoError::NothingToRedo { path },
    }
}

/// The sandbox that a transaction was promoted from, if it still exists.
fn sandbox_of(root: &Root, whose: &SandboxIdentity) -> Result<Option<Sandbox>, PromoteError> {
    match root.sandbox(whose.name.as_str()) {
        Ok(sandbox) => Ok(Some(sandbox).filter(|found| found.meta.created == whose.created)),
        Err(RootError::NotFound { .. }) => Ok(None),
        Err(error) => Err(PromoteError::Io {
            operation: "open",
            path: root.path().join(whose.name.as_str()),
            source: io::Error::other(error),
        }),
    }
}

fn open_source(path: &Path) -> Result<Tree, PromoteError> {
    Tree::open(path).map_err(|_| PromoteError::SourceGone {
        path: path.to_owned(),
    })
}

fn canonical(source: &Path) -> PathBuf {
    std::fs::canonicalize(source).unwrap_or_else(|_| source.to_owned())
}

fn cannot_read(area: &Area, source: io::Error) -> PromoteError {
    PromoteError::Io {
        operation: "read",
        path: area.path.clone(),
        source,
    }
}

/// Every committed transaction, oldest first.
fn kept(area: &Area) -> Result<Vec<Kept>, PromoteError> {
    let read = || -> io::Result<Vec<Kept>> {
        let pending = area.pending()?.map(|pending| pending.id);
        let mut kept = Vec::new();
        for id in area
            .ids()?
            .into_iter()
            .filter(|id| Some(id) != pending.as_ref())
        {
            let dir = area.transaction(&id)?;
            if let (Ok(Some(journal)), Ok(Some(committed))) =
                (Journal::read(&dir), Committed::read(&dir))
            {
                kept.push(Kept { journal, committed });
            }
        }
        Ok(kept)
    };
    read().map_err(|error| cannot_read(area, error))
}

fn direction(kept: &[Kept], journal: &Journal) -> Direction {
    let Kind::Undo(of) = &journal.kind else {
        return Direction::Apply;
    };
    let of = kept.iter().find(|found| found.journal.id == *of);
    match of.map(|of| direction(kept, &of.journal)) {
        Some(Direction::TakeBack) => Direction::Apply,
        Some(Direction::Apply) | None => Direction::TakeBack,
    }
}

/// The undos of `journal`.
fn undos<'k>(kept: &'k [Kept], journal: &'k Journal) -> impl Iterator<Item = &'k Journal> {
    let undos = kept.iter().map(|kept| &kept.journal);
    undos.filter(move |undo| matches!(&undo.kind, Kind::Undo(of) if *of == journal.id))
}

/// What of `journal` no later undo took back.
fn standing(kept: &[Kept], journal: &Journal) -> BTreeSet<RelPath> {
    let mut left = journal.roots();
    for undo in undos(kept, journal) {
        for path in standing(kept, undo) {
            left.remove(&path);
        }
    }
    left
}

/// Did later undos, themselves not undone, take back everything of `journal`, but for what they
/// knowingly left? One that had nothing to do is never undone.
fn is_undone(kept: &[Kept], journal: &Journal) -> bool {
    if journal.roots().is_empty() {
        return false;
    }
    let mut standing = standing(kept, journal);
    for undo in undos(kept, journal).filter(|undo| !is_undone(kept, undo)) {
        for path in &undo.left {
            standing.remove(path);
        }
    }
    standing.is_empty()
}
