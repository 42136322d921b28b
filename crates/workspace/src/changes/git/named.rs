//! Which paths of the tree the configuration of the source's repositories names: files that it includes,
//! directories of hooks, programs.
//!
//! Only what stands in the source is read, by the paths and links that git follows: a configuration that
//! the sandbox changed steers git itself, and is not promoted. Conditions of includes are taken to hold.
//! Of a command every word counts that could be a file of the tree; what such a program starts in turn is
//! not known here. The user's own configuration outside of the repositories is not read.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::command::words;
use super::config::{Setting, parse};
use crate::changes::survey::Repository;
use crate::changes::watch::{Extent, Watched};
use crate::tree::Tree;

/// The most that is read of a configuration file, and of a file that names a directory.
const LARGEST: u64 = 4 << 20;
/// How deep includes are followed, as by git.
const DEEPEST: usize = 10;
/// The most files and directories that are looked at.
const MOST: usize = 10_000;

/// Finds the paths that the configuration of `repositories` names.
pub(super) fn named(source: &Tree, repositories: &[Repository]) -> io::Result<Watched> {
    let mut reader = Reader {
        source,
        watched: Watched::new(source.path()),
        seen: BTreeSet::new(),
        left: MOST,
    };
    for repository in repositories {
        if let Some(dir) = git_dir(&repository.at) {
            reader.add(&dir, Some(&repository.work_tree))?;
        }
    }
    Ok(reader.watched)
}

struct Reader<'s> {
    source: &'s Tree,
    watched: Watched,
    seen: BTreeSet<(PathBuf, Option<PathBuf>)>,
    left: usize,
}

impl Reader<'_> {
    /// Adds what the repository at `dir` names, and those of its submodules and worktrees.
    fn add(&mut self, dir: &Path, work_tree: Option<&Path>) -> io::Result<()> {
        // The same directory may be named in many ways.
        let dir = &std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
        let key = (dir.clone(), work_tree.map(Path::to_owned));
        if self.left == 0 || !self.seen.insert(key) {
            return Ok(());
        }
        let common = common_dir(dir);
        let mut settings = Vec::new();
        let mut files = vec![common.join("config"), common.join("config.worktree")];
        if common != *dir {
            files.push(dir.join("config.worktree"));
        }
        for file in &files {
            self.load(file, 0, &mut settings)?;
        }
        let mut bases = vec![dir.clone(), common.clone()];
        bases.extend(work_tree.map(Path::to_owned));
        for setting in settings
            .iter()
            .filter(|setting| setting.is("core", "worktree"))
        {
            bases.extend(resolved(dir, &setting.value));
        }
        bases.dedup();
        for setting in &settings {
            self.add_setting(setting, &bases)?;
        }
        self.watch(&common.join("info/attributes"), Extent::Entry)?;
        self.add_hooks(&common.join("hooks"))?;
        // Of a worktree's directory there are none; the repository's own is looked at by itself.
        for worktree in listed(&dir.join("worktrees")) {
            let tree = read(&worktree.join("gitdir"))
                .and_then(|text| resolved(&worktree, text.trim_ascii_end()));
            self.add(&worktree, tree.as_deref().and_then(Path::parent))?;
        }
        self.add_modules(&dir.join("modules"))
    }

    /// Hooks are often links to files of the tree.
    fn add_hooks(&mut self, hooks: &Path) -> io::Result<()> {
        self.watch(hooks, Extent::Tree)?;
        for hook in listed(hooks) {
            self.watch(&hook, Extent::Entry)?;
        }
        Ok(())
    }

    /// The repositories of submodules, whose names may have slashes. Their work trees are settings.
    fn add_modules(&mut self, dir: &Path) -> io::Result<()> {
        let mut open = listed(dir);
        while let Some(dir) = open.pop() {
            self.left = self.left.saturating_sub(1);
            if self.left == 0 {
                break;
            }
            match dir.join("HEAD").exists() {
                true => self.add(&dir, None)?,
                false => open.extend(listed(&dir).into_iter().filter(|below| below.is_dir())),
            }
        }
        Ok(())
    }

    /// Reads a file of settings and those that it includes.
    fn load(&mut self, file: &Path, depth: usize, all: &mut Vec<Setting>) -> io::Result<()> {
        self.watch(file, Extent::Entry)?;
        self.left = self.left.saturating_sub(1);
        let Some(text) = read(file).filter(|_| self.left > 0) else {
            return Ok(());
        };
        for setting in parse(&text) {
            let includes =
                setting.key == b"path" && matches!(&setting.section[..], b"include" | b"includeif");
            if !includes {
                all.push(setting);
            } else if let Some(included) = resolved(parent(file), &setting.value) {
                if depth < DEEPEST {
                    self.load(&included, depth + 1, all)?;
                } else {
                    self.watch(&included, Extent::Entry)?;
                }
            }
        }
        Ok(())
    }

    fn add_setting(&mut self, setting: &Setting, bases: &[PathBuf]) -> io::Result<()> {
        if setting.is("core", "hookspath") || setting.is("init", "templatedir") {
            for at in anywhere(bases, &setting.value) {
                self.add_hooks(&at)?;
            }
        } else if setting.is("core", "attributesfile") {
            for at in anywhere(bases, &setting.value) {
                self.watch(&at, Extent::Entry)?;
            }
        } else if !setting.is_harmless() {
            for word in words(&setting.value) {
                for at in anywhere(bases, &word) {
                    self.watch(&at, Extent::Entry)?;
                }
                // What stood before it may be the work tree: `$PWD/x`.
                if let Some(word) = word.strip_prefix(b"/") {
                    for at in anywhere(bases, word) {
                        self.watch(&at, Extent::Entry)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn watch(&mut self, at: &Path, extent: Extent) -> io::Result<()> {
        self.watched.add(self.source, at, extent)
    }
}

impl Setting {
    fn is(&self, section: &str, key: &str) -> bool {
        self.section == section.as_bytes() && self.key == key.as_bytes()
    }

    /// Does it name no program, and no file that names one? What is not known here may.
    fn is_harmless(&self) -> bool {
        match (&self.section[..], &self.key[..]) {
            (
                b"user" | b"author" | b"committer" | b"branch" | b"color" | b"extensions" | b"gui"
                | b"mailmap" | b"blame" | b"url",
                _,
            ) => true,
            (b"alias", _) => !self.value.trim_ascii_start().starts_with(b"!"),
            (b"remote", b"uploadpack" | b"receivepack" | b"vcs") => false,
            (b"remote", _) => !self.value.starts_with(b"ext::"),
            (b"submodule", key) => key != b"update",
            (b"core", key) => matches!(key, b"excludesfile" | b"worktree"),
            (b"commit", key) => key == b"template",
            _ => false,
        }
    }
}

/// The directory of the repository at `at`, which may be a file that says where it is.
fn git_dir(at: &Path) -> Option<PathBuf> {
    if at.is_dir() {
        return Some(at.to_owned());
    }
    let text = read(at)?;
    let value = text.strip_prefix(b"gitdir:")?.trim_ascii();
    Some(parent(at).join(OsStr::from_bytes(value)))
}

/// Where the settings and hooks of the repository at `dir` are.
fn common_dir(dir: &Path) -> PathBuf {
    match read(&dir.join("commondir")) {
        Some(text) => dir.join(OsStr::from_bytes(text.trim_ascii_end())),
        None => dir.to_owned(),
    }
}

/// What `value` means in each of `bases`.
fn anywhere(bases: &[PathBuf], value: &[u8]) -> Vec<PathBuf> {
    let mut found: Vec<_> = bases
        .iter()
        .filter_map(|base| resolved(base, value))
        .collect();
    found.dedup();
    found
}

/// What the path `value` means in `base`.
fn resolved(base: &Path, value: &[u8]) -> Option<PathBuf> {
    let value = value.strip_prefix(b":(optional)").unwrap_or(value);
    if value.is_empty() || value.contains(&0) || value.len() > 4096 {
        return None;
    }
    if let Some(below) = value.strip_prefix(b"~/") {
        let home = std::env::var_os("HOME")?;
        return Some(Path::new(&home).join(OsStr::from_bytes(below)));
    }
    Some(base.join(OsStr::from_bytes(value)))
}

fn parent(at: &Path) -> &Path {
    at.parent().unwrap_or(Path::new("/"))
}

/// The contents of a file that is not too large; `None` where there is none. Never blocks.
pub(super) fn read(at: &Path) -> Option<Vec<u8>> {
    let mut options = std::fs::OpenOptions::new();
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = options.read(true).custom_flags(flags).open(at).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// What is in a directory, as far as it can be read.
pub(super) fn listed(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    entries.flatten().map(|entry| entry.path()).collect()
}
