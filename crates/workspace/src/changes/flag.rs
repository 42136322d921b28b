//! What a person should look at twice before it reaches their machine.
//!
//! Names that something on the host looks for are in [`listed`]. A link by such a name gives what it leads
//! to the same meaning, be the link in the source or new. What steers git is judged by [`super::git`].

pub(super) mod listed;

use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;

use rustix::process::geteuid;
use sandbox_model::{Change, ChangeKind, Entry, EntryKind, Flag, RelPath};

use super::follow::leads_out;
use super::git::Git;
use super::survey::{Search, Survey};
use super::watch::{Extent, Watched};
use crate::side::{Side, Xattrs};
use crate::view::{View, ViewError};

/// Flags the changes of one change set.
pub(super) struct Flagger<'v> {
    view: &'v View<'v>,
    git: Git<'v>,
    /// What links lead to that something on the host looks for.
    linked: Watched,
}

impl<'v> Flagger<'v> {
    pub(super) fn new<'c>(
        view: &'v View<'v>,
        changes: impl Iterator<Item = &'c Change> + Clone,
        search: Search,
    ) -> Result<Self, ViewError> {
        let survey = Survey::of(&view.source, changes.clone(), search);
        let root = RelPath::root();
        let failed = || view.failed(&root);
        Ok(Flagger {
            view,
            linked: linked(view, changes.clone(), &survey).map_err(failed())?,
            git: Git::new(&view.source, view.workspace(), changes, &survey).map_err(failed())?,
        })
    }

    /// The flags of one change.
    pub(super) fn flags(&self, change: &Change, xattrs: &Xattrs) -> Result<Vec<Flag>, ViewError> {
        let view = self.view;
        let failed = || view.failed(&change.path);
        let mut flags = Vec::new();
        if self.git.is_steered_by(change).map_err(failed())? {
            flags.push(Flag::GitControl);
        }
        let is_link = change
            .after
            .is_some_and(|after| after.kind == EntryKind::Symlink);
        if listed::runs_on_host(&change.path)
            || is_link && listed::is_looked_for(&change.path)
            || self.linked.covers(change)
            || changes_scripts(view, change).map_err(failed())?
        {
            flags.push(Flag::RunsOnHost);
        }
        let Some(after) = change.after else {
            return Ok(flags);
        };
        if became_executable(change, &after) {
            flags.push(Flag::Executable);
        }
        if is_privileged(&after, xattrs) {
            flags.push(Flag::Privilege);
        }
        if is_unpromotable(&after) {
            flags.push(Flag::Unpromotable);
        }
        if after.kind == EntryKind::Symlink && points_out(view, &change.path).map_err(failed())? {
            flags.push(Flag::OutwardSymlink);
        }
        Ok(flags)
    }
}

/// What the links lead to whose names something on the host looks for: the source's, and the sandbox's
/// own. Links on their way are followed as either side has them.
fn linked<'c>(
    view: &View<'_>,
    changes: impl Iterator<Item = &'c Change>,
    survey: &Survey,
) -> io::Result<Watched> {
    let mut watched = Watched::new(view.source.path());
    let mut add = |side: &dyn Side, link: &RelPath| -> io::Result<()> {
        let target = match side.read_link(link) {
            Err(error) if crate::layer::vanished(&error) => return Ok(()),
            target => target?,
        };
        let from = link.parent().unwrap_or_default();
        for side in [view.workspace(), &view.source] {
            watched.add_from(side, &from, &target, Extent::Tree)?;
        }
        Ok(())
    };
    for link in &survey.links {
        add(&view.source, link)?;
    }
    for change in changes {
        let is_link = |after: Entry| after.kind == EntryKind::Symlink;
        if change.after.is_some_and(is_link) && listed::is_looked_for(&change.path) {
            add(view.workspace(), &change.path)?;
        }
    }
    Ok(watched)
}

/// The parts of a `package.json` that name commands: scripts, hooks, and what hooks run.
const COMMANDS: [&str; 6] = [
    "scripts",
    "husky",
    "lint-staged",
    "simple-git-hooks",
    "pre-commit",
    "gitHooks",
];

/// Does a `package.json` name other commands than before? One that cannot be read may.
fn changes_scripts(view: &View<'_>, change: &Change) -> io::Result<bool> {
    let is_it = |name: &[u8]| name.eq_ignore_ascii_case(b"package.json");
    if !change.path.name().is_some_and(is_it) || change.after.is_none() {
        return Ok(false);
    }
    // A rename stood elsewhere: only what it is now counts.
    let stood = change.before.is_some() && !matches!(change.kind, ChangeKind::Renamed { .. });
    let before = match stood {
        true => commands(view.before(), &change.path),
        false => Some(Vec::new()),
    };
    let after = commands(view.workspace(), &change.path);
    Ok(after.is_none() || before != after)
}

/// The commands of the `package.json` at `path`; `None` if it cannot be read or understood.
fn commands(side: &dyn Side, path: &RelPath) -> Option<Vec<(&'static str, serde_json::Value)>> {
    const LIMIT: u64 = 4 << 20;
    let mut text = Vec::new();
    let file = side.open(path).ok()?;
    file.take(LIMIT + 1).read_to_end(&mut text).ok()?;
    if text.len() as u64 > LIMIT {
        return None;
    }
    let serde_json::Value::Object(package) = serde_json::from_slice(&text).ok()? else {
        return None;
    };
    let named = COMMANDS.iter();
    Some(
        named
            .filter_map(|name| Some((*name, package.get(*name)?.clone())))
            .collect(),
    )
}

fn became_executable(change: &Change, after: &Entry) -> bool {
    let executable = |entry: &Entry| entry.kind == EntryKind::File && entry.mode & 0o111 != 0;
    let was_already = change.before.as_ref().is_some_and(executable)
        && !matches!(change.kind, ChangeKind::Created);
    executable(after) && !was_already
}

/// Set-id bits and file capabilities, which promote strips. A directory's set-group-id bit only
/// hands its group on.
fn is_privileged(after: &Entry, xattrs: &Xattrs) -> bool {
    let set_id = after.mode & 0o6000 != 0;
    after.kind == EntryKind::File && (set_id || xattrs.contains_key(&b"security.capability"[..]))
}

/// Devices and sockets mean nothing elsewhere; another's file is not ours to make.
fn is_unpromotable(after: &Entry) -> bool {
    let node = matches!(
        after.kind,
        EntryKind::CharDevice | EntryKind::BlockDevice | EntryKind::Socket
    );
    let euid = geteuid();
    node || (!euid.is_root() && after.uid != euid.as_raw())
}

/// Does the symlink at `path` lead out of the tree? Other links on its way are followed, as the sandbox
/// has them and as the source does: either may stand there after a promote of some of the changes.
fn points_out(view: &View<'_>, path: &RelPath) -> io::Result<bool> {
    let target = match view.workspace().read_link(path) {
        Err(error) if crate::layer::vanished(&error) => return Ok(false),
        target => target?,
    };
    let root = view.sandbox.source().as_os_str().as_bytes();
    Ok(leads_out(root, path, &target, view.workspace())?
        || leads_out(root, path, &target, &view.source)?)
}
