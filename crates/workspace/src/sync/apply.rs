//! Performing a sync. Every step may be repeated: a crash leaves some paths to the next sync.

use std::io::{self, Write};

use sandbox_model::{Fingerprint, RelPath};

use super::{SyncAction, SyncError, SyncPlan, SyncStep, Synced};
use crate::backend::backend;
use crate::progress::{Phase, Progress};
use crate::promote::PromoteError;
use crate::promote::settle::look_again;
use crate::sandbox::Sandbox;
use crate::side::Side;
use crate::tree::{Dir, Replace, Tree};
use crate::view::View;

/// Where a merge is written before it takes its place.
const SCRATCH: &[u8] = b"sync.new";

/// Performs a plan. Takes the sandbox's exclusive lock, so the caller must not hold it.
pub fn apply(
    sandbox: &Sandbox,
    plan: SyncPlan,
    progress: &mut dyn Progress,
) -> Result<Synced, SyncError> {
    let _lock = sandbox.lock_exclusive().map_err(PromoteError::from)?;
    let view = View::open(sandbox).map_err(PromoteError::from)?;
    for step in &plan.steps {
        check(&view, step)?;
    }
    progress.begin(Phase::Applying, u64::try_from(plan.steps.len()).ok());
    perform(sandbox, &view, &plan.steps, progress).map_err(|source| PromoteError::Io {
        operation: "update the sandbox in",
        path: sandbox.dir.clone(),
        source,
    })?;
    progress.finish();
    Ok(Synced {
        steps: plan.steps,
        conflicts: plan.conflicts,
    })
}

/// Both sides must be what the plan saw.
fn check(view: &View<'_>, step: &SyncStep) -> Result<(), PromoteError> {
    let bare =
        |found: Option<Fingerprint>| found.map(|found| (found.ino, found.ctime, found.entry.size));
    let now = || -> io::Result<_> {
        Ok([
            view.workspace().stat(&step.path)?,
            view.source.stat(&step.path)?,
        ])
    };
    let now = now().map_err(|source| PromoteError::Io {
        operation: "read",
        path: step.path.under(view.source.path()),
        source,
    })?;
    if now.map(bare) == step.sides.map(bare) {
        Ok(())
    } else {
        Err(PromoteError::Stale {
            path: step.path.clone(),
        })
    }
}

fn perform(
    sandbox: &Sandbox,
    view: &View<'_>,
    steps: &[SyncStep],
    progress: &mut dyn Progress,
) -> io::Result<()> {
    let paths = |chosen: &dyn Fn(&SyncStep) -> bool| -> Vec<RelPath> {
        let chosen = steps.iter().filter(|step| chosen(step));
        chosen.map(|step| step.path.clone()).collect()
    };
    for step in steps {
        if let Some((bytes, mode)) = &step.merged {
            put_merge(sandbox, view, &step.path, bytes, *mode)?;
        }
        progress.advance(1);
    }
    let backend = backend(sandbox.meta.backend);
    let attributes = paths(&SyncStep::is_attributes);
    if !attributes.is_empty() {
        backend.take_attributes(&sandbox.meta, &sandbox.dir, &attributes)?;
    }
    let mut taken = paths(&|step| is_taken(step.action) && !step.is_attributes());
    if !taken.is_empty() {
        taken = backend.take_source(&sandbox.meta, &sandbox.dir, &taken)?;
    }
    let same = paths(&|step| step.action == SyncAction::Same || step.is_attributes());
    if !same.is_empty() {
        backend.absorb(&sandbox.meta, &sandbox.dir, &same)?;
    }
    let entries = paths(&|step| !is_taken(step.action) || step.is_attributes());
    look_again(sandbox, &entries, &taken)
}

/// Does the sandbox get what the source has?
fn is_taken(action: SyncAction) -> bool {
    match action {
        SyncAction::Update | SyncAction::Create | SyncAction::Delete => true,
        SyncAction::Merge | SyncAction::Same => false,
    }
}

/// Puts merged bytes where the sandbox has its edit, with the edit's attributes.
fn put_merge(
    sandbox: &Sandbox,
    view: &View<'_>,
    path: &RelPath,
    bytes: &[u8],
    mode: u32,
) -> io::Result<()> {
    let own = Dir::open(&sandbox.dir)?;
    own.remove_all(SCRATCH)?;
    own.create_file(SCRATCH)?.write_all(bytes)?;
    for (attribute, value) in view.workspace().xattrs(path)? {
        own.set_xattr(SCRATCH, &attribute, &value)?;
    }
    let found = view
        .workspace()
        .stat(path)?
        .ok_or(io::ErrorKind::NotFound)?;
    let made = own.stat(SCRATCH)?.ok_or(io::ErrorKind::NotFound)?;
    if (made.entry.uid, made.entry.gid) != (found.entry.uid, found.entry.gid) {
        own.set_owner(SCRATCH, found.entry.uid, found.entry.gid)?;
    }
    own.set_mode(SCRATCH, mode)?;
    let layer = Tree::open(&sandbox.layer_dir())?;
    let (dir, name) = layer.parent(path)?;
    dir.while_writable(|dir| own.rename(SCRATCH, dir, name, Replace::Yes))
}
