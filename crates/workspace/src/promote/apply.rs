//! Performing a plan.

use std::io;
use std::path::PathBuf;

use sandbox_model::{Change, Flag, RelPath};
use serde::Serialize;

use super::area::{Area, SAVED};
use super::conduct::Conduct;
use super::error::PromoteError;
use super::fault;
use super::journal::{Inode, Journal, Kind, Operation, Parent, Place, SandboxIdentity, Settle};
use super::plan::{Action, GitControl, Plan, Step};
use super::review::Review;
use super::settle::{Since, excuse_renames, settle};
use super::stage::{Copies, Staged, stage, unlinked};
use super::{recover, retention, seal};
use crate::backend::backend;
use crate::changes::{Arrival, steering_git};
use crate::lock::Lock;
use crate::progress::Progress;
use crate::sandbox::Sandbox;
use crate::tree::{Dir, Tree};
use crate::view::View;

/// Whether a copy of what is replaced is left where the user sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backup {
    /// The pre-images kept for undo are enough.
    #[default]
    None,
    /// Copies of everything replaced or deleted go to `SOURCE.sandbox-backup-ID/`, beside the
    /// source, at their own paths below it.
    Beside,
}

/// What a promote did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Promoted {
    /// Names it for undo; `None` when the source had everything already.
    pub id: Option<String>,
    /// The paths whose change is now in the source (or was dropped for the source's own).
    pub paths: Vec<RelPath>,
    /// Where the visible copies are, if asked for and if anything was replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<PathBuf>,
}

/// Performs `plan`: all of it, or nothing. Takes the sandbox's exclusive lock and the source's, so
/// the caller must hold neither; first finishes what an earlier promote left.
///
/// For a plan made while nothing ran in the sandbox. What a person looked at first goes through
/// [`apply_reviewed`].
pub fn apply(
    sandbox: &Sandbox,
    plan: Plan,
    backup: Backup,
    progress: &mut dyn Progress,
) -> Result<Promoted, PromoteError> {
    let lock = sandbox.lock_exclusive()?;
    apply_alone(sandbox, &lock, plan, backup, progress)
}

/// As [`apply`], of a plan made during `review`. Refused if a command ran in the sandbox since the review
/// began: it may have changed files without a trace.
pub fn apply_reviewed(
    sandbox: &Sandbox,
    review: Review,
    plan: Plan,
    backup: Backup,
    progress: &mut dyn Progress,
) -> Result<Promoted, PromoteError> {
    let lock = review.end(sandbox)?;
    apply_alone(sandbox, &lock, plan, backup, progress)
}

/// As [`apply`], where the caller holds the sandbox's exclusive lock since before the plan was made.
pub fn apply_alone(
    sandbox: &Sandbox,
    _alone: &Lock,
    plan: Plan,
    backup: Backup,
    progress: &mut dyn Progress,
) -> Result<Promoted, PromoteError> {
    if !plan.conflicts.is_empty() {
        return Err(PromoteError::Conflicts(plan.conflicts));
    }
    if !plan.refused.is_empty() {
        return Err(PromoteError::Refused(plan.refused));
    }
    let source = open_source(sandbox, &plan)?;
    let area = Area::make(&sandbox.root, sandbox.source())?;
    let _source_lock = area.lock(&source)?;
    recover::repair(&sandbox.root, &area, &source, Some(sandbox))?;

    check_unstaged(sandbox, &plan)?;
    check_git_control(sandbox, &plan)?;
    let mut promoted = Promoted {
        id: None,
        paths: plan.steps.iter().map(|step| step.path.clone()).collect(),
        backup: None,
    };
    let after = Settle::of(&plan);
    if plan
        .steps
        .iter()
        .all(|step| !step.action.touches_the_source())
    {
        settle(sandbox, &after, Since::Locked)?;
        return Ok(promoted);
    }
    let conduct = Conduct::begin(&area, &source, None, backup == Backup::Beside)?;
    let journal = match prepare(&conduct, sandbox, &plan, after, progress) {
        Ok(journal) => journal,
        Err(error) => {
            conduct.abandon()?;
            return Err(error);
        }
    };
    let committed = match conduct.perform(&journal, progress) {
        Ok(committed) => committed,
        Err(error) => {
            excuse_renames(sandbox, &journal)?;
            return Err(error);
        }
    };
    settle(sandbox, &journal.settle, Since::Locked)?;
    conduct.finish(&committed)?;
    retention::prune(&area)?;
    promoted.backup = conduct.backup.clone().filter(|_| journal.backup.is_some());
    promoted.id = Some(journal.id);
    Ok(promoted)
}

/// The source, if it is still the directory the plan was made on.
fn open_source(sandbox: &Sandbox, plan: &Plan) -> Result<Tree, PromoteError> {
    let gone = || PromoteError::SourceGone {
        path: sandbox.source().to_owned(),
    };
    let source = Tree::open(sandbox.source()).map_err(|_| gone())?;
    let root = source
        .root_dir()
        .and_then(|root| root.stat_self())
        .map_err(|_| gone())?;
    match plan.parents.get(&RelPath::root()) {
        Some(planned) if Inode::of(planned) != Inode::of(&root) => Err(gone()),
        _ => Ok(source),
    }
}

/// What is not staged must still be in the sandbox as the plan saw it; staging looks at the rest.
fn check_unstaged(sandbox: &Sandbox, plan: &Plan) -> Result<(), PromoteError> {
    let view = View::open(sandbox)?;
    let staged = |step: &&Step| {
        let in_place = matches!(step.action, Action::Attributes);
        step.after.is_some() && step.action.touches_the_source() && !in_place
    };
    for step in plan.steps.iter().filter(|step| !staged(step)) {
        let now = view
            .workspace()
            .stat(&step.path)
            .map_err(|source| PromoteError::Io {
                operation: "read",
                path: step.path.under(sandbox.source()),
                source,
            })?;
        if now.map(unlinked) != step.frozen.ours.map(unlinked) {
            return Err(PromoteError::Stale {
                path: step.path.clone(),
            });
        }
    }
    Ok(())
}

/// What was no part of a repository when the plan was made may be one by now: another promote may have
/// completed it. The source is locked, so this judgement holds.
fn check_git_control(sandbox: &Sandbox, plan: &Plan) -> Result<(), PromoteError> {
    if plan.git_control == GitControl::Apply {
        return Ok(());
    }
    let view = View::open(sandbox)?;
    let unflagged =
        |step: &&Step| step.action.touches_the_source() && !step.flags.contains(&Flag::GitControl);
    let changes: Vec<Change> = plan
        .steps
        .iter()
        .filter(unflagged)
        .map(|step| Change::between(step.path.clone(), step.before, step.after))
        .collect();
    let steering = steering_git(&view.source, view.workspace(), &changes, Arrival::Sandbox);
    let steering = steering.map_err(|source| PromoteError::Io {
        operation: "compare",
        path: sandbox.source().to_owned(),
        source,
    })?;
    match steering.is_empty() {
        true => Ok(()),
        false => Err(PromoteError::GitControl(steering)),
    }
}

/// Stages everything and writes the journal in memory. The source is only read.
fn prepare(
    conduct: &Conduct<'_>,
    sandbox: &Sandbox,
    plan: &Plan,
    after: Settle,
    progress: &mut dyn Progress,
) -> Result<Journal, PromoteError> {
    let view = View::open(sandbox)?;
    let identity = SandboxIdentity {
        name: sandbox.name().clone(),
        created: sandbox.meta.created,
    };
    let root = conduct.source.root_dir().and_then(|root| root.stat_self());
    let root = root.map_err(|_| PromoteError::SourceGone {
        path: sandbox.source().to_owned(),
    })?;
    let mut journal = Journal::new(
        conduct.id.clone(),
        Kind::Promote,
        identity,
        Inode::of(&root),
        conduct.place.clone(),
    );
    let Staged {
        mut operations,
        attributes,
    } = stage(
        &plan.steps,
        view.workspace(),
        conduct.source,
        &conduct.stage,
        progress,
    )?;
    journal.settle = after;
    let steering = |step: &&Step| step.flags.contains(&Flag::GitControl);
    let steering = plan.steps.iter().filter(steering);
    journal.git_control = steering.map(|step| step.path.clone()).collect();
    journal.parents = plan
        .parents
        .iter()
        .map(|(path, found)| {
            let parent = Parent {
                inode: Inode::of(found),
                mode: found.entry.mode,
                mtime: found.entry.mtime,
                touched: operations
                    .iter()
                    .any(|op| op.path.parent().as_ref() == Some(path)),
                leave: None,
            };
            (path.clone(), parent)
        })
        .collect();
    let sealed = seal::staged(&conduct.stage, &mut operations);
    journal.seals = sealed.map_err(|source| PromoteError::Io {
        operation: "read what is staged for",
        path: sandbox.source().to_owned(),
        source,
    })?;
    journal.operations = operations;
    journal.attributes = attributes;
    keep_copies(conduct, &mut journal)?;
    detach(sandbox, plan, &mut journal.settle)?;
    Ok(journal)
}

/// Lets the sandbox keep what it shows from places in the source that will change. What is copied for
/// that has other inodes, but is still what is being promoted.
fn detach(sandbox: &Sandbox, plan: &Plan, after: &mut Settle) -> Result<(), PromoteError> {
    let touching = plan
        .steps
        .iter()
        .filter(|step| step.action.touches_the_source());
    let changing: Vec<_> = touching.map(|step| step.path.clone()).collect();
    let handed_over = after.absorb.iter().filter(|absorbed| absorbed.take_source);
    let handed_over: Vec<_> = handed_over.map(|absorbed| absorbed.path.clone()).collect();
    let cannot = |source| PromoteError::Io {
        operation: "update the sandbox in",
        path: sandbox.dir.clone(),
        source,
    };
    let detached = backend(sandbox.meta.backend)
        .detach(&sandbox.meta, &sandbox.dir, &changing, &handed_over)
        .map_err(cannot)?;
    if detached.is_empty() {
        return Ok(());
    }
    let view = View::open(sandbox)?;
    for absorbed in &mut after.absorb {
        if detached.iter().any(|path| absorbed.path.starts_with(path)) {
            absorbed.workspace = view.workspace().stat(&absorbed.path).map_err(cannot)?;
        }
    }
    Ok(())
}

/// Copies of what will be displaced: where it cannot be moved to the sandbox root, and where the
/// user wants to see it.
pub(crate) fn keep_copies(
    conduct: &Conduct<'_>,
    journal: &mut Journal,
) -> Result<(), PromoteError> {
    let displaced = || {
        journal
            .operations
            .iter()
            .filter(|operation| operation.old.is_some())
    };
    if conduct.place == Place::Inside {
        let saved = conduct.dir.make_dir(SAVED).and_then(|saved| {
            save(conduct.source, displaced(), &saved)?;
            saved.sync_filesystem()
        });
        saved.map_err(|source| PromoteError::Io {
            operation: "keep what is replaced in",
            path: conduct.area.path.join(&conduct.id),
            source,
        })?;
    }
    if let Some(path) = &conduct.backup
        && displaced().next().is_some()
    {
        let backed_up = back_up(conduct.source, displaced(), path);
        backed_up.map_err(|source| PromoteError::Io {
            operation: "back up to",
            path: path.clone(),
            source,
        })?;
        use std::os::unix::ffi::OsStrExt;
        journal.backup = Some(sandbox_model::path::escape(path.as_os_str().as_bytes()));
    }
    Ok(())
}

fn save<'o>(
    source: &Tree,
    displaced: impl Iterator<Item = &'o Operation>,
    saved: &Dir,
) -> io::Result<()> {
    let mut copies = Copies::in_dir(saved);
    for operation in displaced {
        if let Some(old) = &operation.old {
            fault::at("save")?;
            let slot = RelPath::root().join(&operation.slot_name());
            copies.add(source, &operation.path, old, &slot)?;
        }
    }
    Ok(())
}

fn back_up<'o>(
    source: &Tree,
    displaced: impl Iterator<Item = &'o Operation>,
    path: &std::path::Path,
) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fault::at("back up")?;
    std::fs::DirBuilder::new().mode(0o700).create(path)?;
    let backup = Tree::open(path)?;
    let root = backup.root_dir()?;
    let mut copies = Copies::in_dir(&root);
    for operation in displaced {
        if let (Some(old), Some(parent)) = (&operation.old, operation.path.parent()) {
            backup.make_dirs(&parent)?;
            copies.add(source, &operation.path, old, &operation.path)?;
        }
    }
    root.sync_filesystem()
}
