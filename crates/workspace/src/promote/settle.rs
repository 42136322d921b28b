//! Putting the sandbox right after its changes are in the source.
//!
//! Promoted paths leave its change set; everything else it shows stays. A crash before this is done
//! is finished by the recovery, so each step may be repeated, and a path that the sandbox changed
//! again meanwhile is left in its change set.

use std::collections::BTreeSet;
use std::io;

use sandbox_model::{EntryKind, Fingerprint, RelPath};

use super::error::PromoteError;
use super::fault;
use super::ground::is_untouched;
use super::journal::{Absorbed, Journal, Settle};
use super::plan::{Afterwards, Plan};
use crate::alike::same_metadata;
use crate::backend::backend;
use crate::base;
use crate::sandbox::Sandbox;
use crate::side::Side;
use crate::view::View;

impl Settle {
    /// What is to be done after `plan` is committed.
    pub fn of(plan: &Plan) -> Settle {
        let mut settle = Settle::default();
        for step in &plan.steps {
            match step.frozen.afterwards {
                Afterwards::Keep => settle.rebase.push(step.path.clone()),
                afterwards => settle.absorb.push(Absorbed {
                    path: step.path.clone(),
                    workspace: step.frozen.ours,
                    take_source: afterwards == Afterwards::TakeSource,
                    take_attributes: afterwards == Afterwards::TakeAttributes,
                }),
            }
        }
        settle
    }

    fn is_empty(&self) -> bool {
        self.absorb.is_empty() && self.rebase.is_empty()
    }
}

/// Whether the sandbox may have been used since it was promoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    /// It was locked all the time.
    Locked,
    /// A crash came between: each path is looked at again.
    Crash,
}

/// Settles `sandbox`, whose exclusive lock the caller holds.
pub(crate) fn settle(sandbox: &Sandbox, settle: &Settle, since: Since) -> Result<(), PromoteError> {
    if settle.is_empty() {
        return Ok(());
    }
    let cannot = |source| PromoteError::Io {
        operation: "update the sandbox in",
        path: sandbox.dir.clone(),
        source,
    };
    fault::at("settle").map_err(cannot)?;
    let (taken, absorbed) = still_as_promoted(sandbox, settle, since)?;
    let backend = backend(sandbox.meta.backend);
    let taken = backend
        .take_source(&sandbox.meta, &sandbox.dir, &taken)
        .map_err(cannot)?;
    let attributes = with_attributes(settle, &absorbed);
    if !attributes.is_empty() {
        backend
            .take_attributes(&sandbox.meta, &sandbox.dir, &attributes)
            .map_err(cannot)?;
    }
    fault::at("source taken").map_err(cannot)?;
    backend
        .absorb(&sandbox.meta, &sandbox.dir, &absorbed)
        .map_err(cannot)?;
    fault::at("absorbed").map_err(cannot)?;
    if !settle.rebase.is_empty() {
        backend
            .rebase(&sandbox.meta, &sandbox.dir, &settle.rebase)
            .map_err(cannot)?;
    }
    let mut entries = absorbed;
    entries.extend_from_slice(&settle.rebase);
    look_again(sandbox, &entries, &taken).map_err(cannot)?;
    fault::at("settled").map_err(cannot)
}

/// The directories among `paths` that are to have the source's attributes.
fn with_attributes(settle: &Settle, paths: &[RelPath]) -> Vec<RelPath> {
    let wanted: BTreeSet<&RelPath> = settle
        .absorb
        .iter()
        .filter(|promoted| promoted.take_attributes)
        .map(|promoted| &promoted.path)
        .collect();
    let paths = paths.iter().filter(|path| wanted.contains(path));
    paths.cloned().collect()
}

/// The paths whose change is really gone: those the sandbox did not touch again.
fn still_as_promoted(
    sandbox: &Sandbox,
    settle: &Settle,
    since: Since,
) -> Result<(Vec<RelPath>, Vec<RelPath>), PromoteError> {
    if since == Since::Locked {
        let (taken, absorbed): (Vec<_>, Vec<_>) = settle
            .absorb
            .iter()
            .partition(|promoted| promoted.take_source);
        let paths = |list: Vec<&Absorbed>| list.into_iter().map(|p| p.path.clone()).collect();
        return Ok((paths(taken), paths(absorbed)));
    }
    let view = View::open(sandbox)?;
    let (mut taken, mut absorbed): (Vec<RelPath>, Vec<RelPath>) = (Vec::new(), Vec::new());
    for promoted in &settle.absorb {
        let path = &promoted.path;
        let now = view
            .workspace()
            .stat(path)
            .map_err(|source| PromoteError::Io {
                operation: "read",
                path: path.under(sandbox.source()),
                source,
            })?;
        let moved_along = taken
            .iter()
            .any(|above| path != above && path.starts_with(above));
        // What left the directory meanwhile moved its time; only its attributes are at stake.
        let attributes = promoted.take_attributes
            && matches!((&now, &promoted.workspace), (Some(now), Some(then)) if same_metadata(now, then));
        if moved_along || attributes || is_same(now.as_ref(), promoted.workspace.as_ref()) {
            let list = if promoted.take_source && !moved_along {
                &mut taken
            } else {
                &mut absorbed
            };
            list.push(path.clone());
        }
    }
    Ok((taken, absorbed))
}

fn is_same(now: Option<&Fingerprint>, then: Option<&Fingerprint>) -> bool {
    match (now, then) {
        (None, None) => true,
        (Some(now), Some(then)) => is_untouched(then, now),
        // Absorbed already: what shows is the source's.
        _ => false,
    }
}

/// The bases of `entries`, and of `trees` with all that is below them, are what the source has now.
pub(crate) fn look_again(
    sandbox: &Sandbox,
    entries: &[RelPath],
    trees: &[RelPath],
) -> io::Result<()> {
    base::BaseStore::open(sandbox)?.forget(entries, trees)?;
    fault::at("bases forgotten")?;
    base::record_anew(sandbox, &[entries, trees].concat())
}

/// A transaction moves inodes there and back, which shows in their change times; where it has to copy,
/// in the inodes. That is no change of the source: bases that fit but for it are taken anew.
pub(crate) fn excuse_renames(sandbox: &Sandbox, journal: &Journal) -> Result<(), PromoteError> {
    let view = View::open(sandbox)?;
    let cannot = |source| PromoteError::Io {
        operation: "update the sandbox in",
        path: sandbox.dir.clone(),
        source,
    };
    let mut excused = Vec::new();
    for path in journal.paths() {
        if is_as_based(&view, &path).map_err(cannot)? {
            excused.push(path);
        }
    }
    if excused.is_empty() {
        return Ok(());
    }
    drop(view);
    let excuse = || -> io::Result<()> {
        backend(sandbox.meta.backend).rebase(&sandbox.meta, &sandbox.dir, &excused)?;
        look_again(sandbox, &excused, &[])
    };
    excuse().map_err(cannot)
}

/// Has the source at `path` what the base says, in another inode perhaps?
fn is_as_based(view: &View<'_>, path: &RelPath) -> io::Result<bool> {
    let Some(base) = view.base.get(path).filter(|base| !base.uncertain) else {
        return Ok(false);
    };
    let (Some(then), Some(now)) = (base.entry, view.source.stat(path)?) else {
        return Ok(false);
    };
    if is_untouched(&then, &now) {
        return Ok(true);
    }
    let xattrs = base
        .xattrs
        .is_none_or(|then| view.source.xattrs(path).is_ok_and(|now| then == now));
    Ok(xattrs
        && same_metadata(&then, &now)
        && match now.entry.kind {
            EntryKind::Directory => true,
            EntryKind::File => view.base.holds(path, &view.source.open(path)?)? == Some(true),
            EntryKind::Symlink => base
                .link
                .is_some_and(|then| view.source.read_link(path).is_ok_and(|now| then == now)),
            _ => false,
        })
}
