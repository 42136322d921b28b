//! Giving a sandbox back what an undo took out of the source.
//!
//! It is what the sandbox's change set showed before the promote, so it goes back there, as if
//! written inside, and its base is what the source has now. A path that the sandbox has changed
//! since is left as it is; what was taken out of the source then stays where every undo keeps it,
//! for a redo.
//!
//! May be repeated: what is back already is only compared. So a crash before its end is finished by
//! the recovery.

use std::io;

use sandbox_model::{BackendKind, EntryKind, Fingerprint, RelPath};

use super::inverse::displaced;
use super::links;
use crate::alike::{Spot, alike};
use crate::backend::{Entry, backend};
use crate::layer::Layer;
use crate::promote::area::Area;
use crate::promote::journal::{AttributeChange, Attributes, Journal, Operation};
use crate::promote::settle::look_again;
use crate::promote::{PromoteError, fault, promotable};
use crate::sandbox::Sandbox;
use crate::side::Side;
use crate::tree::{Dir, Tree};
use crate::view::View;

/// What became of the paths of an undo.
#[derive(Debug, Default)]
pub(crate) struct GivenBack {
    /// In the sandbox's change set again.
    pub returned: Vec<RelPath>,
    /// Not in the sandbox, which has changed them since.
    pub kept: Vec<RelPath>,
}

/// How a path stands in the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It has what was promoted.
    Back,
    /// It shows the source.
    Source,
    /// It has something of its own.
    Own,
}

/// Gives back what `journal`, which is committed, took out of the source. The caller holds the
/// sandbox's exclusive lock.
pub(crate) fn give_back(
    area: &Area,
    sandbox: &Sandbox,
    journal: &Journal,
) -> Result<GivenBack, PromoteError> {
    if !journal.settle.give_back {
        return Ok(GivenBack::default());
    }
    let cannot = |source| PromoteError::Io {
        operation: "update the sandbox in",
        path: sandbox.dir.clone(),
        source,
    };
    let mut given = GivenBack::default();
    let promoted = displaced(area, journal).map_err(cannot)?;
    let (items, attributes) = states(sandbox, journal, &promoted)?;
    fault::at("give back").map_err(cannot)?;
    let mut entries = Vec::new();
    for item in items {
        let entry = Entry::From {
            tree: &promoted,
            at: item.at,
            mode: item.mode,
        };
        match is_given(sandbox, &item.path, &entry, item.state) {
            true => entries.extend(item.touches),
            false => given.kept.extend(item.touches),
        }
    }
    for (change, state) in attributes {
        let give = |dir: &Dir, name: &[u8]| give(&change.before, dir, name);
        if is_given(sandbox, &change.path, &Entry::Attributes(&give), state) {
            entries.push(change.path.clone());
        } else {
            given.kept.push(change.path.clone());
        }
    }
    fault::at("given back").map_err(cannot)?;
    if !entries.is_empty() {
        entries.sort();
        entries.dedup();
        let finish = || -> io::Result<()> {
            links::join(sandbox, journal, &entries)?;
            backend(sandbox.meta.backend).rebase(&sandbox.meta, &sandbox.dir, &entries)?;
            look_again(sandbox, &entries, &[])?;
            // The source has lost it, and `pending` will say that all is done.
            Dir::open(&sandbox.layer_dir())?.sync_filesystem()
        };
        finish().map_err(cannot)?;
    }
    given.kept.sort();
    given.kept.dedup();
    // What the undo took back besides is in the sandbox: put there, or still there with the rest of an
    // edit of which a part was promoted.
    given.returned = journal.paths();
    given
        .returned
        .retain(|path| given.kept.binary_search(path).is_err());
    Ok(given)
}

/// One entry that may go back, with everything below it.
struct Item {
    path: RelPath,
    /// Where the undo has it.
    at: RelPath,
    /// A directory's mode.
    mode: Option<u32>,
    state: State,
    /// Every path whose base is to be looked at again.
    touches: Vec<RelPath>,
}

type States<'j> = (Vec<Item>, Vec<(&'j AttributeChange, State)>);

fn states<'j>(
    sandbox: &Sandbox,
    journal: &'j Journal,
    promoted: &Tree,
) -> Result<States<'j>, PromoteError> {
    let view = View::open(sandbox)?;
    let failed = |path: &RelPath| {
        let path = path.under(sandbox.source());
        move |source| PromoteError::Io {
            operation: "compare",
            path,
            source,
        }
    };
    let stays = |path: &RelPath| journal.settle.rebase.contains(path);
    let mut items = Vec::new();
    for operation in journal.operations.iter().filter(|o| !stays(&o.path)) {
        expand(&view, operation, promoted, &mut items).map_err(failed(&operation.path))?;
    }
    let mut attributes = Vec::new();
    for change in journal.attributes.iter().filter(|c| !stays(&c.path)) {
        let state = attribute_state(&view, change).map_err(failed(&change.path))?;
        attributes.push((change, state));
    }
    Ok((items, attributes))
}

/// What goes back of `operation`: the whole entry, or, of a directory in which the sandbox has
/// changed something since, all that it has not.
fn expand(
    view: &View<'_>,
    operation: &Operation,
    promoted: &Tree,
    items: &mut Vec<Item>,
) -> io::Result<()> {
    let slot = RelPath::root().join(&operation.slot_name());
    let is_directory = |found: &Fingerprint| found.entry.kind == EntryKind::Directory;
    // Each with whether the directory above it is the sandbox's own.
    let mut pending = vec![(RelPath::root(), false)];
    while let Some((below, inside)) = pending.pop() {
        let (path, at) = (operation.path.join_path(&below), slot.join_path(&below));
        let mut found = promoted.stat(&at)?.filter(|_| operation.old.is_some());
        if let (true, Some(found), Some(old)) = (below.is_root(), &mut found, &operation.old) {
            found.entry.mode = old.fingerprint.entry.mode;
        }
        let mode = found.filter(is_directory).map(|found| found.entry.mode);
        let state = match state(view, &path, promoted, &at, found.as_ref())? {
            State::Own if inside && is_missing(view, &path)? => State::Source,
            state => state,
        };
        let mut item = Item {
            touches: paths_at(operation, &below),
            path,
            at,
            mode,
            state,
        };
        if state == State::Own && mode.is_some() && has_directory(view, &item.path)? {
            let names = promoted.list(&item.at)?;
            pending.extend(names.iter().rev().map(|name| (below.join(name), true)));
            item.touches.truncate(1);
            item.state = State::Back;
        }
        items.push(item);
    }
    Ok(())
}

/// How `path`, at which `found` was promoted, stands in the sandbox.
fn state(
    view: &View<'_>,
    path: &RelPath,
    promoted: &Tree,
    at: &RelPath,
    found: Option<&Fingerprint>,
) -> io::Result<State> {
    let is_back = match found {
        None => view.workspace().stat(path)?.is_none(),
        Some(found) => {
            let ours = Spot {
                side: view.workspace(),
                path,
                mode: None,
            };
            let theirs = Spot {
                side: promoted,
                path: at,
                mode: Some(found.entry.mode),
            };
            alike(&ours, &theirs)?
        }
    };
    match is_back {
        true => Ok(State::Back),
        false => without_own(view, path),
    }
}

/// Has the sandbox a directory of its own at `path` that single entries can go back to? Not one
/// that hides what the source had there: what is missing in it, the sandbox removed.
fn has_directory(view: &View<'_>, path: &RelPath) -> io::Result<bool> {
    match &view.layer {
        Layer::Overlay(overlay) if view.sandbox.meta.backend == BackendKind::Overlay => {
            overlay.has_open_directory(path)
        }
        _ => Ok(view
            .workspace()
            .stat(path)?
            .is_some_and(|found| found.entry.kind == EntryKind::Directory)),
    }
}

/// Was `path`, in a directory of an overlay's own, shown from the source until the undo?
fn is_missing(view: &View<'_>, path: &RelPath) -> io::Result<bool> {
    match &view.layer {
        Layer::Overlay(overlay) if view.sandbox.meta.backend == BackendKind::Overlay => {
            Ok(!overlay.upper_has(path)?)
        }
        _ => Ok(false),
    }
}

fn attribute_state(view: &View<'_>, change: &AttributeChange) -> io::Result<State> {
    let path = &change.path;
    let Some(found) = view.workspace().stat(path)? else {
        return Ok(State::Own);
    };
    let now = Attributes::of(&found.entry, view.workspace().xattrs(path)?);
    match now.same(&change.before) {
        true if found.entry.kind == change.inode.kind => Ok(State::Back),
        _ => without_own(view, path),
    }
}

fn without_own(view: &View<'_>, path: &RelPath) -> io::Result<State> {
    Ok(match &view.layer {
        Layer::Overlay(overlay) if overlay.shows_lower(path)? => State::Source,
        _ => State::Own,
    })
}

/// Does the sandbox have `entry` at `path` now? What cannot be written, a full disk for one, is as
/// well kept for a redo.
fn is_given(sandbox: &Sandbox, path: &RelPath, entry: &Entry<'_>, state: State) -> bool {
    let (meta, dir) = (&sandbox.meta, &sandbox.dir);
    match state {
        State::Back => true,
        State::Source => backend(meta.backend)
            .put(meta, dir, path, entry)
            .unwrap_or(false),
        State::Own => false,
    }
}

/// Gives `name` the attributes that go along, and leaves the others.
fn give(wanted: &Attributes, dir: &Dir, name: &[u8]) -> io::Result<()> {
    let mut xattrs = dir.xattrs(name)?;
    xattrs.retain(|name, _| !crate::promote::stage::is_promotable(name));
    xattrs.extend(promotable(wanted.xattrs.clone()));
    let wanted = Attributes {
        xattrs,
        ..wanted.clone()
    };
    wanted.set(dir, name)
}

/// Everything an operation touches at `below` its path and deeper, from there down.
fn paths_at(operation: &Operation, below: &RelPath) -> Vec<RelPath> {
    let both = [&operation.old, &operation.new];
    let entries = both
        .into_iter()
        .flatten()
        .flat_map(|standing| &standing.below);
    let mut paths = vec![operation.path.join_path(below)];
    let deeper = entries.filter(|entry| entry.path != *below && entry.path.starts_with(below));
    paths.extend(deeper.map(|entry| operation.path.join_path(&entry.path)));
    paths
}
