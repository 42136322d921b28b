//! What stands in the source that gives other paths a meaning: repositories, whose configuration names
//! files of the tree, and links by names that programs on the host look for.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;

use sandbox_model::{Change, EntryKind, RelPath};

use super::flag::listed;
use crate::tree::{DirEntry, Tree};

/// How far the source is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Search {
    /// The directories above what changed: as much work as there are changes.
    #[default]
    Near,
    /// Every directory, as far as [`MOST_DIRECTORIES`], those near the root first.
    Whole,
}

/// The most directories that are searched besides those above what changed.
const MOST_DIRECTORIES: usize = 50_000;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) repositories: Vec<Repository>,
    /// Links whose names something on the host looks for.
    pub(super) links: Vec<RelPath>,
}

/// A repository, by its path on the host.
#[derive(Debug)]
pub(super) struct Repository {
    /// The directory, or the file that says where it is.
    pub(super) at: PathBuf,
    pub(super) work_tree: PathBuf,
}

impl Survey {
    /// Searches `source`. What cannot be read is left out: git and others cannot read it either.
    pub(super) fn of<'c>(
        source: &Tree,
        changes: impl Iterator<Item = &'c Change>,
        search: Search,
    ) -> Survey {
        let mut survey = Survey::default();
        survey.look_above(source);
        let mut seen = BTreeSet::new();
        for change in changes {
            // Where one was seen, those above it were.
            for dir in std::iter::successors(change.path.parent(), RelPath::parent) {
                if !seen.insert(dir.clone()) {
                    break;
                }
                survey.look_into(source, &dir);
            }
        }
        if search == Search::Near {
            return survey;
        }
        let mut queue = VecDeque::from([RelPath::root()]);
        let mut left = MOST_DIRECTORIES;
        while let Some(dir) = queue.pop_front() {
            let below = match seen.contains(&dir) {
                true => subdirectories(source, &dir),
                false => survey.look_into(source, &dir),
            };
            left = left.saturating_sub(1);
            let room = left.saturating_sub(queue.len());
            queue.extend(below.into_iter().take(room));
        }
        survey
    }

    /// The repository that the source is a part of.
    fn look_above(&mut self, source: &Tree) {
        let mut above = source.path().ancestors().skip(1);
        let found = above.find(|above| above.join(".git").exists());
        self.repositories.extend(found.map(|work_tree| Repository {
            at: work_tree.join(".git"),
            work_tree: work_tree.to_owned(),
        }));
    }

    /// Takes note of what is in `dir`; returns the directories in it.
    fn look_into(&mut self, source: &Tree, dir: &RelPath) -> Vec<RelPath> {
        let Some(entries) = entries(source, dir) else {
            return Vec::new();
        };
        let work_tree = dir.under(source.path());
        for entry in &entries {
            if entry.name.eq_ignore_ascii_case(b".git") {
                self.repositories.push(Repository {
                    at: dir.join(&entry.name).under(source.path()),
                    work_tree: work_tree.clone(),
                });
            } else if entry.kind == Some(EntryKind::Symlink) {
                let at = dir.join(&entry.name);
                if listed::is_looked_for(&at) {
                    self.links.push(at);
                }
            }
        }
        let has = |name: &str| {
            let mut names = entries.iter().map(|entry| &entry.name);
            names.any(|found| found.eq_ignore_ascii_case(name.as_bytes()))
        };
        if has("HEAD") && (has("commondir") || has("objects") && has("refs")) {
            self.repositories.push(Repository {
                at: work_tree.clone(),
                work_tree,
            });
        }
        below(dir, &entries)
    }
}

fn entries(source: &Tree, dir: &RelPath) -> Option<Vec<DirEntry>> {
    source.dir(dir).and_then(|dir| dir.entries()).ok()
}

fn subdirectories(source: &Tree, dir: &RelPath) -> Vec<RelPath> {
    below(dir, &entries(source, dir).unwrap_or_default())
}

/// The directories among `entries` but git's own.
fn below(dir: &RelPath, entries: &[DirEntry]) -> Vec<RelPath> {
    let is_wanted = |entry: &&DirEntry| {
        entry.kind == Some(EntryKind::Directory) && !entry.name.eq_ignore_ascii_case(b".git")
    };
    let wanted = entries.iter().filter(is_wanted);
    wanted.map(|entry| dir.join(&entry.name)).collect()
}
