//! Which changes steer git on the host.
//!
//! What counts is what git would take for a repository once the change is promoted, and what it would
//! read or run there. Names alone do not decide that: any directory with a `HEAD`, `objects` and `refs`
//! is a repository, `commondir` puts the last two elsewhere, and a repository may be completed by a
//! later promote, or by what the source has already.
//!
//! A directory that the source does not have as a repository is one unit: all that would make it one
//! steers git. So is a repository of which the sandbox deleted a part that git needs: half a repository
//! is never promoted. In a repository that stays one, what git writes when it commits, fetches, merges
//! or changes branches passes; everything else in it steers git, also what is not known here.
//!
//! A pack that could replace objects of the source counts as a part taken away. Outside of repositories,
//! what the configuration of the source's names is judged, see [`named`].
//!
//! The contents of new objects and references are not judged: commits are for people to review.

mod bytes;
mod command;
mod config;
pub(crate) mod index;
mod named;
mod pack;
mod reftable;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _};

use sandbox_model::path::is_unprintable;
use sandbox_model::{Change, ChangeKind, EntryKind, RelPath};

use super::survey::Survey;
use super::watch::Watched;
use crate::side::Side;
use crate::tree::Tree;

/// The names by which git knows a repository (`is_git_directory` in its `setup.c`).
const STRUCTURE: [&[u8]; 4] = [b"HEAD", b"commondir", b"objects", b"refs"];

/// The names in a repository that mean something to git. Outside a `.git` only these are looked at: a
/// directory that is also a repository may hold anything else.
const KNOWN: &[&str] = &[
    "BISECT_NAMES",
    "HEAD",
    "branches",
    "commondir",
    "config",
    "config.worktree",
    "gitdir",
    "hooks",
    "index",
    "info",
    "logs",
    "modules",
    "objects",
    "packed-refs",
    "rebase-apply",
    "rebase-merge",
    "refs",
    "reftable",
    "remotes",
    "rr-cache",
    "sequencer",
    "shallow",
    "svn",
    "worktrees",
];

/// Files in a repository that hold git's state and name no program. Git deletes them, too.
const STATE: &[&str] = &[
    "AUTO_MERGE",
    "BISECT_ANCESTORS_OK",
    "BISECT_EXPECTED_REV",
    "BISECT_FIRST_PARENT",
    "BISECT_HEAD",
    "BISECT_LOG",
    "BISECT_START",
    "BISECT_TERMS",
    "CHERRY_PICK_HEAD",
    "COMMIT_EDITMSG",
    "EDIT_DESCRIPTION",
    "FETCH_HEAD",
    "MERGE_AUTOSTASH",
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "NOTES_EDITMSG",
    "ORIG_HEAD",
    "REBASE_HEAD",
    "REVERT_HEAD",
    "SQUASH_MSG",
    "TAG_EDITMSG",
    "description",
    "gc.log",
    "shallow",
];

/// The most that is read of a file to judge it.
pub(crate) const READ_LIMIT: u64 = 32 << 20;

/// What a directory is to git.
#[derive(Debug, Clone, Copy, Default)]
struct Repository {
    /// The source has it as a repository.
    stands: bool,
    /// It could be one with some of the sandbox's changes.
    may_arise: bool,
    /// It is one in the source, and the sandbox took something away that it needs, or replaces objects.
    broken: bool,
}

/// Judges the changes of one change set.
pub(super) struct Git<'v> {
    source: &'v Tree,
    /// What the changes lead to: the workspace, or the source after a transaction.
    after: &'v dyn Side,
    /// What the sandbox has under a name of [`STRUCTURE`] in another case, spelt as there: a source
    /// that folds case will find it.
    folded: BTreeSet<RelPath>,
    known: RefCell<BTreeMap<RelPath, Repository>>,
    /// Which `packed-refs` have new replacements.
    replacements: RefCell<BTreeMap<RelPath, bool>>,
    /// What the configuration of the source's repositories names.
    named: Watched,
}

impl<'v> Git<'v> {
    pub(super) fn new<'c>(
        source: &'v Tree,
        after: &'v dyn Side,
        changes: impl Iterator<Item = &'c Change>,
        survey: &Survey,
    ) -> io::Result<Self> {
        let folded = changes
            .filter(|change| change.after.is_some())
            .filter_map(|change| structural(&change.path))
            .collect();
        Ok(Git {
            source,
            after,
            folded,
            known: RefCell::default(),
            replacements: RefCell::default(),
            named: named::named(source, &survey.repositories)?,
        })
    }

    /// Does `change` steer git?
    pub(super) fn is_steered_by(&self, change: &Change) -> io::Result<bool> {
        let names: Vec<&[u8]> = change.path.components().collect();
        let dot_git = names.iter().position(|name| is_dot_git(name));
        for at in 0..dot_git.unwrap_or(names.len()) {
            if is_known(names[at]) && self.steers_bare(&names, at, change)? {
                return Ok(true);
            }
        }
        if self.named.covers(change) {
            return Ok(true);
        }
        match dot_git {
            Some(at) => self.steers_dot_git(&path(&names[..=at]), &names[at + 1..], change),
            None => Ok(false),
        }
    }

    /// Does `change`, which brings back what the source had, put it where by now git would be steered by
    /// it: into a directory that is not a repository but would become one, or where a configuration
    /// names it?
    pub(super) fn is_completed_by(&self, change: &Change) -> io::Result<bool> {
        if change.after.is_none() {
            return Ok(false);
        }
        if self.named.covers(change) {
            return Ok(true);
        }
        let names: Vec<&[u8]> = change.path.components().collect();
        for (at, name) in names.iter().enumerate() {
            if is_dot_git(name) {
                return Ok(!self.repository(&path(&names[..=at]))?.stands);
            }
            if is_known(name) {
                let repository = self.repository(&path(&names[..at]))?;
                if !repository.stands && repository.may_arise {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// `names[..at]` is a directory that is not called `.git`: git uses a repository wherever it is run
    /// in one (CVE-2022-24765 and what followed).
    fn steers_bare(&self, names: &[&[u8]], at: usize, change: &Change) -> io::Result<bool> {
        let dir = path(&names[..at]);
        let repository = self.repository(&dir)?;
        if repository.stands && !repository.broken {
            return self.steers_within(&dir, &names[at..], change);
        }
        Ok(repository.broken || repository.may_arise)
    }

    fn steers_dot_git(&self, dir: &RelPath, inner: &[&[u8]], change: &Change) -> io::Result<bool> {
        let repository = self.repository(dir)?;
        if inner.is_empty() || !repository.stands || repository.broken {
            return Ok(true);
        }
        self.steers_within(dir, inner, change)
    }

    /// `inner` is below `dir`, a repository that stays one.
    fn steers_within(&self, dir: &RelPath, inner: &[&[u8]], change: &Change) -> io::Result<bool> {
        // Repositories of their own: of submodules, whose names may have slashes, and of worktrees.
        let depths = match inner {
            [b"modules", ..] => 2..inner.len(),
            [b"worktrees", _, _, ..] => 2..3,
            _ => return Ok(!self.is_ordinary(dir, inner, change)?),
        };
        for depth in depths {
            let nested = dir.join_path(&path(&inner[..depth]));
            let repository = self.repository(&nested)?;
            if repository.stands {
                return Ok(
                    repository.broken || self.steers_within(&nested, &inner[depth..], change)?
                );
            }
        }
        Ok(true)
    }

    /// Is it what git writes itself, and names no program?
    fn is_ordinary(&self, dir: &RelPath, inner: &[&[u8]], change: &Change) -> io::Result<bool> {
        let is_link = |kind| kind == EntryKind::Symlink;
        if change.after.is_some_and(|entry| is_link(entry.kind))
            || matches!(change.kind, ChangeKind::Type)
        {
            return Ok(false);
        }
        let renamed = matches!(change.kind, ChangeKind::Renamed { .. });
        let (stood, stays) = (change.before.is_some() && !renamed, change.after.is_some());
        Ok(match inner {
            [b"HEAD"] => stays && self.is_head(&change.path)?,
            [b"packed-refs"] => stays && !self.adds_replacements(&change.path)?,
            [b"index"] => stays,
            [b"objects", b"pack", name] => !stood && stays && self.is_pack(dir, name)?,
            [b"objects", rest @ ..] => !stood && is_object(rest),
            [b"refs", second, ..] => {
                !second.eq_ignore_ascii_case(b"replace")
                    && (stays || !self.loses_references(dir)?)
            }
            [b"refs" | b"info"] => stays,
            [b"logs", ..] => true,
            // Git merges tables, and deletes them; it never alters one. Whether one is still in use, the plan
            // decides.
            [b"reftable", table] if *table != b"tables.list" => {
                !stays || !stood && !self.replaces_by_table(&change.path)?
            }
            [b"reftable", ..] => stays,
            [b"info", b"exclude" | b"sparse-checkout" | b"refs"] => true,
            [name] if name.starts_with(b"sharedindex.") => true,
            [name] => STATE.iter().any(|state| state.as_bytes() == *name),
            _ => false,
        })
    }

    /// Is `name` of a new pack, or a temporary file? What new packs hold, [`pack`] judges.
    fn is_pack(&self, dir: &RelPath, name: &[u8]) -> io::Result<bool> {
        const ENDINGS: [&[u8]; 7] = [
            b".pack",
            b".idx",
            b".rev",
            b".keep",
            b".promisor",
            b".mtimes",
            b".bitmap",
        ];
        if name.starts_with(b"tmp_") {
            return Ok(true);
        }
        let stem = ENDINGS.iter().find_map(|ending| name.strip_suffix(*ending));
        let Some(stem) = stem.filter(|stem| stem.starts_with(b"pack-")) else {
            return Ok(false);
        };
        let packs = dir.join(b"objects").join(b"pack");
        let index = packs.join(&[stem, b".idx"].concat());
        Ok(!pack::stands(self.source, &packs, stem)? && self.after.stat(&index)?.is_some())
    }

    /// Does the sandbox have there what git takes for a `HEAD`?
    fn is_head(&self, at: &RelPath) -> io::Result<bool> {
        let head = read(self.after, at, 1024)?.unwrap_or_default();
        let text = head.trim_ascii_end();
        let is_hash = matches!(text.len(), 40 | 64) && text.iter().all(u8::is_ascii_hexdigit);
        Ok(is_hash
            || text
                .strip_prefix(b"ref:")
                .is_some_and(|name| name.trim_ascii_start().starts_with(b"refs/")))
    }

    /// Does the table at `at` replace an object?
    fn replaces_by_table(&self, at: &RelPath) -> io::Result<bool> {
        let table = read(self.after, at, READ_LIMIT)?.unwrap_or_default();
        Ok(reftable::sets_below(&table, b"refs/replace/") != Some(false))
    }

    /// Are deleted references lost, because the file into which git packed them is not promoted?
    fn loses_references(&self, dir: &RelPath) -> io::Result<bool> {
        let packed = dir.join(b"packed-refs");
        Ok(self.after.stat(&packed)?.is_some() && self.adds_replacements(&packed)?)
    }

    /// Has the sandbox's `packed-refs` a replacement of an object that the source's has not?
    fn adds_replacements(&self, at: &RelPath) -> io::Result<bool> {
        if let Some(known) = self.replacements.borrow().get(at) {
            return Ok(*known);
        }
        let found = self.look_for_replacements(at)?;
        self.replacements.borrow_mut().insert(at.clone(), found);
        Ok(found)
    }

    fn look_for_replacements(&self, at: &RelPath) -> io::Result<bool> {
        let Some(ours) = read(self.after, at, READ_LIMIT)? else {
            return Ok(true);
        };
        let replacements = |packed: &[u8]| -> BTreeSet<Vec<u8>> {
            let is_one = |line: &&[u8]| line.windows(13).any(|part| part == b"refs/replace/");
            let lines = packed.split(|byte| *byte == b'\n').filter(is_one);
            lines.map(<[u8]>::to_vec).collect()
        };
        let ours = replacements(&ours);
        if ours.is_empty() {
            return Ok(false);
        }
        let theirs = match self.source.stat(at)? {
            Some(_) => read(self.source, at, READ_LIMIT)?.unwrap_or_default(),
            None => Vec::new(),
        };
        Ok(!ours.is_subset(&replacements(&theirs)))
    }

    fn repository(&self, dir: &RelPath) -> io::Result<Repository> {
        if let Some(known) = self.known.borrow().get(dir) {
            return Ok(*known);
        }
        let found = self.examine(dir)?;
        self.known.borrow_mut().insert(dir.clone(), found);
        Ok(found)
    }

    fn examine(&self, dir: &RelPath) -> io::Result<Repository> {
        let mut theirs = [None; 4];
        let mut either = [false; 4];
        let mut broken = false;
        for (at, name) in STRUCTURE.iter().enumerate() {
            let named = dir.join(name);
            let kind = |side: &dyn Side| -> io::Result<Option<EntryKind>> {
                Ok(side.stat(&named)?.map(|found| found.entry.kind))
            };
            theirs[at] = kind(self.source)?;
            let ours = kind(self.after)?;
            either[at] = theirs[at].is_some() || ours.is_some() || self.folded.contains(&named);
            broken |= theirs[at].is_some() && theirs[at] != ours;
            if at == 0 && !either[0] {
                return Ok(Repository::default());
            }
        }
        let [head, common, objects, refs] = theirs.map(|kind| kind.is_some());
        let stands = head && (common || (objects && refs));
        Ok(Repository {
            stands,
            may_arise: either[0] && either[1..].contains(&true),
            broken: stands
                && (broken
                    || self.lost_branches(dir)?
                    || pack::replaces_objects(self.source, self.after, dir)?),
        })
    }

    /// Has the sandbox no current commit any more, or no directory of branches, which git never removes?
    fn lost_branches(&self, dir: &RelPath) -> io::Result<bool> {
        let heads = dir.join(b"refs").join(b"heads");
        let (theirs, ours): (&dyn Side, _) = (self.source, self.after);
        if theirs.stat(&heads)?.is_some() && ours.stat(&heads)?.is_none() {
            return Ok(true);
        }
        let tables = dir.join(b"reftable").join(b"tables.list");
        let is_in_use = |side: &dyn Side| -> io::Result<bool> {
            Ok(side.stat(&tables)?.is_some_and(|list| list.entry.size > 0))
        };
        if is_in_use(theirs)? && !is_in_use(ours)? {
            return Ok(true);
        }
        Ok(is_born(theirs, dir)? && !is_born(ours, dir)?)
    }
}

/// Does the `HEAD` of the repository lead to a commit, by its names?
fn is_born(side: &dyn Side, dir: &RelPath) -> io::Result<bool> {
    // Of a worktree the branches are elsewhere.
    if side.stat(&dir.join(b"commondir"))?.is_some() {
        return Ok(true);
    }
    let head = read(side, &dir.join(b"HEAD"), 1024)?.unwrap_or_default();
    let Some(name) = head.strip_prefix(b"ref:").map(<[u8]>::trim_ascii) else {
        return Ok(true);
    };
    let Ok(branch) = RelPath::new(name) else {
        return Ok(false);
    };
    if side.stat(&dir.join_path(&branch))?.is_some() {
        return Ok(true);
    }
    let packed = read(side, &dir.join(b"packed-refs"), READ_LIMIT)?.unwrap_or_default();
    let ending = [&b" "[..], name].concat();
    let mut lines = packed.split(|byte| *byte == b'\n');
    Ok(lines.any(|line| line.trim_ascii_end().ends_with(&ending)))
}

/// The file's bytes; `None` if it has more than `limit` or is none.
pub(crate) fn read(side: &dyn Side, at: &RelPath, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match side.open(at) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(None),
        Err(error) if crate::layer::vanished(&error) => return Ok(None),
        file => file?,
    };
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

/// `rest` is below `objects`: a loose object, or a list of packs. Caches of what objects say and where
/// they are (`commit-graph`, `multi-pack-index`) are believed before the objects, so they are none.
fn is_object(rest: &[&[u8]]) -> bool {
    match rest {
        [b"info" | b"pack"] | [b"info", b"packs"] => true,
        [b"info" | b"pack", ..] => false,
        [first, ..] => first.len() == 2 && first.iter().all(u8::is_ascii_hexdigit),
        [] => true,
    }
}

fn path(names: &[&[u8]]) -> RelPath {
    names
        .iter()
        .fold(RelPath::root(), |path, name| path.join(name))
}

/// `at` with its last name spelt as in [`STRUCTURE`], if it is one of those in another case.
fn structural(at: &RelPath) -> Option<RelPath> {
    let name = at.name()?;
    let wanted = STRUCTURE
        .iter()
        .find(|wanted| wanted.eq_ignore_ascii_case(name) && **wanted != name)?;
    Some(at.parent()?.join(wanted))
}

fn is_known(name: &[u8]) -> bool {
    KNOWN
        .iter()
        .any(|known| known.as_bytes().eq_ignore_ascii_case(name))
}

/// Is it `.git` to any filesystem? Some fold case, some leave out characters that are not shown, some
/// trailing dots and spaces; NTFS knows it by a short name, too.
fn is_dot_git(name: &[u8]) -> bool {
    if name.eq_ignore_ascii_case(b".git") {
        return true;
    }
    if !matches!(name.first(), Some(b'.' | b'g' | b'G' | 0x80..)) {
        return false;
    }
    let Ok(text) = std::str::from_utf8(name) else {
        return false;
    };
    let shown: String = text.chars().filter(|c| !is_unprintable(*c)).collect();
    let stem = shown.split(':').next().unwrap_or_default();
    let stem = stem.trim_end_matches(['.', ' ']).to_ascii_lowercase();
    stem == ".git" || stem == "git~1"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_dot_git_is_known() {
        for name in [
            ".git",
            ".GIT",
            ".Git.",
            ".git ",
            ".git. .",
            "git~1",
            "GIT~1",
            ".g\u{200c}it",
            "\u{feff}.git",
            ".git::$INDEX_ALLOCATION",
        ] {
            assert!(is_dot_git(name.as_bytes()), "{name:?}");
        }
        for name in [
            ".gitignore",
            ".github",
            "git",
            "git~10",
            ".",
            "x.git",
            ".git-hooks",
        ] {
            assert!(!is_dot_git(name.as_bytes()), "{name:?}");
        }
    }
}
