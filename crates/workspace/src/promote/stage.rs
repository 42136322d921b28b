//! Bringing everything a promote needs onto the source's filesystem before the source is touched.
//!
//! A full disk strikes here, where nothing is lost. A new directory is staged with all that will be
//! in it and moves into the source by one rename; what is to replace or join existing entries is
//! staged entry by entry.

use std::collections::HashMap;
use std::io::{self, Write};

use sandbox_model::{Entry, EntryKind, Fingerprint, RelPath};

use super::error::PromoteError;
use super::fault;
use super::journal::{AttributeChange, Attributes, Below, Inode, Operation, Standing};
use super::plan::{Action, Content, Step};
use crate::content;
use crate::progress::{Phase, Progress};
use crate::side::{Side, Xattrs};
use crate::transfer::{Copier, Privileges, copy_entry};
use crate::tree::{Dir, Tree};

/// Up to this many staged files are fsynced one by one; more, and the filesystem as a whole.
const FEW_FILES: u64 = 8;

/// What the steps of a plan become.
#[derive(Debug, Default)]
pub(crate) struct Staged {
    pub operations: Vec<Operation>,
    pub attributes: Vec<AttributeChange>,
}

/// A step that moves by itself, with the steps that move along with it.
struct Group<'p> {
    root: &'p Step,
    members: Vec<&'p Step>,
}

/// Stages `steps` from `workspace` into `stage`.
pub(crate) fn stage(
    steps: &[Step],
    workspace: &dyn Side,
    source: &Tree,
    stage: &Dir,
    progress: &mut dyn Progress,
) -> Result<Staged, PromoteError> {
    let mut staged = Staged::default();
    let mut stager = Stager {
        workspace,
        stage,
        links: HashMap::new(),
        files: Vec::new(),
        made: 0,
        copier: Copier::default(),
        progress,
    };
    let total = u64::try_from(steps.len()).ok();
    stager.progress.begin(Phase::Staging, total);
    for group in groups(steps) {
        let failed = |error| cannot("stage", &group.root.path, source, error);
        if group.root.after.is_none() || group.root.action == Action::Attributes {
            stager.progress.advance(1 + group.members.len() as u64);
        }
        match group.root.action {
            Action::AlreadyThere | Action::KeepSource => {}
            Action::Attributes => {
                staged
                    .attributes
                    .push(attribute_change(group.root, workspace, source).map_err(failed)?);
            }
            _ => {
                let slot = u32::try_from(staged.operations.len())
                    .map_err(io::Error::other)
                    .map_err(failed)?;
                let operation = stager.operation(&group, slot);
                staged
                    .operations
                    .push(operation.map_err(|(path, error)| match error {
                        StageFault::Stale => PromoteError::Stale { path },
                        StageFault::Cancelled => PromoteError::Interrupted,
                        StageFault::Io(error) => cannot("stage", &path, source, error),
                    })?);
            }
        }
    }
    stager.sync().map_err(|error| {
        cannot(
            "make durable the stage for",
            &RelPath::root(),
            source,
            error,
        )
    })?;
    stager.progress.finish();
    Ok(staged)
}

fn cannot(operation: &'static str, path: &RelPath, tree: &Tree, source: io::Error) -> PromoteError {
    PromoteError::Io {
        operation,
        path: path.under(tree.path()),
        source,
    }
}

/// Steps come parents first; a step below one that moves a whole directory belongs to it.
fn groups(steps: &[Step]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut movers: HashMap<&RelPath, usize> = HashMap::new();
    for step in steps {
        let mut above = step.path.parent();
        let mover = loop {
            match above {
                None => break None,
                Some(path) => match movers.get(&path) {
                    Some(index) => break Some(*index),
                    None => above = path.parent(),
                },
            }
        };
        match mover {
            Some(index) => groups[index].members.push(step),
            None => {
                if step.moves_a_directory() {
                    movers.insert(&step.path, groups.len());
                }
                groups.push(Group {
                    root: step,
                    members: Vec::new(),
                });
            }
        }
    }
    groups
}

fn attribute_change(
    step: &Step,
    workspace: &dyn Side,
    source: &Tree,
) -> io::Result<AttributeChange> {
    let (Some(before), Some(after), Some(theirs)) = (step.before, step.after, step.frozen.theirs)
    else {
        return Err(io::Error::new(io::ErrorKind::NotFound, "nothing to change"));
    };
    let now = source.xattrs(&step.path)?;
    let mut wanted = promotable(workspace.xattrs(&step.path)?);
    // What is not ours to give stays as it is.
    wanted.extend(
        now.iter()
            .filter(|(name, _)| !is_promotable(name))
            .map(|(n, v)| (n.clone(), v.clone())),
    );
    Ok(AttributeChange {
        path: step.path.clone(),
        inode: Inode::of(&theirs),
        before: Attributes::of(&before, now),
        after: Attributes::of(&after, wanted),
    })
}

/// Attributes that go along: not the labels and capabilities the kernel or an administrator gives.
pub(crate) fn is_promotable(name: &[u8]) -> bool {
    !name.starts_with(b"security.") && !name.starts_with(b"trusted.")
}

pub(crate) fn promotable(mut xattrs: Xattrs) -> Xattrs {
    xattrs.retain(|name, _| is_promotable(name));
    xattrs
}

enum StageFault {
    Stale,
    Cancelled,
    Io(io::Error),
}

impl From<io::Error> for StageFault {
    fn from(error: io::Error) -> Self {
        StageFault::Io(error)
    }
}

struct Stager<'a> {
    workspace: &'a dyn Side,
    stage: &'a Dir,
    /// Where the first name of a file with several was staged, and its digest.
    links: HashMap<(u64, u64), (RelPath, Option<String>)>,
    /// The first few files, for fsync.
    files: Vec<RelPath>,
    made: u64,
    copier: Copier,
    progress: &'a mut dyn Progress,
}

impl Stager<'_> {
    fn operation(
        &mut self,
        group: &Group<'_>,
        slot: u32,
    ) -> Result<Operation, (RelPath, StageFault)> {
        let step = group.root;
        let mut operation = Operation {
            path: step.path.clone(),
            slot,
            old: step.frozen.theirs.map(|fingerprint| Standing {
                fingerprint,
                digest: None,
                below: step.frozen.below.clone(),
            }),
            new: None,
        };
        if step.after.is_some() {
            let slot = RelPath::root().join(&operation.slot_name());
            operation.new = Some(self.standing(group, &slot)?);
        }
        Ok(operation)
    }

    fn standing(
        &mut self,
        group: &Group<'_>,
        slot: &RelPath,
    ) -> Result<Standing, (RelPath, StageFault)> {
        let root = &group.root.path;
        // Below a directory that is removed, members only tell what goes with it.
        let arriving: Vec<_> = std::iter::once(group.root)
            .chain(group.members.iter().copied())
            .filter(|step| step.after.is_some())
            .map(|step| (step, slot.join_path(&below(&step.path, root))))
            .collect();
        let mut digests = Vec::with_capacity(arriving.len());
        for (step, at) in &arriving {
            if self.progress.is_cancelled() {
                return Err((step.path.clone(), StageFault::Cancelled));
            }
            let digest = self.make(step, at);
            digests.push(digest.map_err(|fault| (step.path.clone(), fault))?);
            self.progress.advance(1);
        }
        for (step, at) in arriving.iter().rev() {
            self.finish(step, at, step.path == *root)
                .map_err(|error| (step.path.clone(), error.into()))?;
        }
        let mut standing: Option<Standing> = None;
        for ((step, at), digest) in arriving.iter().zip(digests) {
            let found = self
                .look(step, at)
                .map_err(|error| (step.path.clone(), error.into()))?;
            match &mut standing {
                None => {
                    standing = Some(Standing {
                        fingerprint: found,
                        digest,
                        below: Vec::new(),
                    })
                }
                Some(standing) => {
                    standing.below.push(Below {
                        path: below(&step.path, root),
                        fingerprint: found,
                        digest,
                    });
                }
            }
        }
        standing.ok_or_else(|| (root.clone(), StageFault::Stale))
    }

    /// Makes one entry of the stage; returns the digest of a file's contents.
    fn make(&mut self, step: &Step, at: &RelPath) -> Result<Option<String>, StageFault> {
        fault::at("stage entry")?;
        let (dir, name) = open_parent(self.stage, at)?;
        self.made += 1;
        let digest = match (&step.frozen.content, step.after.map(|entry| entry.kind)) {
            (_, Some(EntryKind::Directory)) => {
                self.check(step)?;
                dir.make_dir(name)?;
                None
            }
            (Content::Bytes(bytes), _) => {
                self.check(step)?;
                let mut file = dir.create_file(name)?;
                file.write_all(bytes)?;
                Some(content::digest(&file)?)
            }
            (Content::Workspace, _) => {
                if let Some((first, digest)) = self.first_name(step) {
                    self.check(step)?;
                    let (from, first) = open_parent(self.stage, &first)?;
                    from.link(first, &dir, name)?;
                    return Ok(digest);
                }
                let whole = self.workspace.whole(&step.path)?;
                let whole = whole.filter(|whole| is_frozen(step, Some(whole.fingerprint)));
                let whole = whole.ok_or(StageFault::Stale)?;
                let (workspace, path) = (self.workspace, &step.path);
                let digest = self.copier.copy_digested(
                    workspace,
                    path,
                    whole,
                    &dir,
                    name,
                    Privileges::Strip,
                )?;
                if let Some(inode) = linked(step) {
                    self.links.insert(inode, (at.clone(), digest.clone()));
                }
                digest
            }
        };
        if self.made <= FEW_FILES
            && step
                .after
                .is_some_and(|entry| entry.kind == EntryKind::File)
        {
            self.files.push(at.clone());
        }
        Ok(digest)
    }

    /// Is the entry still in the sandbox as the plan saw it?
    fn check(&self, step: &Step) -> Result<(), StageFault> {
        match is_frozen(step, self.workspace.stat(&step.path)?) {
            true => Ok(()),
            false => Err(StageFault::Stale),
        }
    }

    /// Where another name of the same file was staged already, and its digest.
    fn first_name(&self, step: &Step) -> Option<(RelPath, Option<String>)> {
        self.links.get(&linked(step)?).cloned()
    }

    /// Metadata of what was not copied as a whole: directories, once they are filled, and files
    /// made of chosen bytes.
    fn finish(&self, step: &Step, at: &RelPath, is_root: bool) -> io::Result<()> {
        let Some(after) = step.after else {
            return Ok(());
        };
        let directory = after.kind == EntryKind::Directory;
        if !directory && matches!(step.frozen.content, Content::Workspace) {
            return Ok(());
        }
        let (dir, name) = open_parent(self.stage, at)?;
        let xattrs = promotable(self.workspace.xattrs(&step.path)?);
        // A directory that forbids writing could not be moved; it gets its mode afterwards.
        let mode = if directory && is_root {
            after.mode | 0o700
        } else {
            after.mode
        };
        set_metadata(&dir, name, &Entry { mode, ..after }, &xattrs)?;
        if directory {
            dir.set_times(name, after.mtime)?;
        }
        Ok(())
    }

    fn look(&self, step: &Step, at: &RelPath) -> io::Result<Fingerprint> {
        let (dir, name) = open_parent(self.stage, at)?;
        let mut found = dir.stat(name)?.ok_or(io::ErrorKind::NotFound)?;
        if let (EntryKind::Directory, Some(after)) = (found.entry.kind, step.after) {
            found.entry.mode = after.mode;
        }
        Ok(found)
    }

    fn sync(&self) -> io::Result<()> {
        fault::at("stage sync")?;
        if self.made > FEW_FILES {
            return self.stage.sync_filesystem();
        }
        for path in &self.files {
            let (dir, name) = open_parent(self.stage, path)?;
            dir.open_file(name)?.sync_all()?;
            dir.sync()?;
        }
        self.stage.sync()
    }
}

/// The inode of a file that may have other names in the sandbox.
fn linked(step: &Step) -> Option<(u64, u64)> {
    let ours = step.frozen.ours?;
    (ours.nlink > 1 && ours.entry.kind == EntryKind::File).then_some((ours.dev, ours.ino))
}

/// Is `now` what the plan saw in the sandbox?
fn is_frozen(step: &Step, now: Option<Fingerprint>) -> bool {
    now.map(unlinked) == step.frozen.ours.map(unlinked)
}

/// Other names of a file come and go without its being another file.
pub(crate) fn unlinked(mut fingerprint: Fingerprint) -> Fingerprint {
    fingerprint.nlink = 0;
    if fingerprint.entry.kind == EntryKind::Directory {
        fingerprint.entry.size = 0;
    }
    fingerprint
}

/// `path` as seen from `root`, at or above it.
pub(crate) fn below(path: &RelPath, root: &RelPath) -> RelPath {
    let skip = root.components().count();
    path.components()
        .skip(skip)
        .fold(RelPath::root(), |path, name| path.join(name))
}

/// A directory of the stage, or the stage itself, which need not be opened again.
enum Held<'d> {
    Stage(&'d Dir),
    Below(Dir),
}

impl std::ops::Deref for Held<'_> {
    type Target = Dir;

    fn deref(&self) -> &Dir {
        match self {
            Held::Stage(dir) => dir,
            Held::Below(dir) => dir,
        }
    }
}

fn open_parent<'d, 'p>(stage: &'d Dir, path: &'p RelPath) -> io::Result<(Held<'d>, &'p [u8])> {
    let name = path.name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut dir = Held::Stage(stage);
    let depth = path.components().count();
    for name in path.components().take(depth - 1) {
        dir = Held::Below(dir.open_dir(name)?);
    }
    Ok((dir, name))
}

fn set_metadata(dir: &Dir, name: &[u8], entry: &Entry, xattrs: &Xattrs) -> io::Result<()> {
    for (attribute, value) in xattrs {
        dir.set_xattr(name, attribute, value)?;
    }
    let now = dir.stat(name)?.ok_or(io::ErrorKind::NotFound)?.entry;
    if (now.uid, now.gid) != (entry.uid, entry.gid) {
        dir.set_owner(name, entry.uid, entry.gid)?;
    }
    dir.set_mode(name, entry.mode)
}

/// Exact copies in one directory. A file with several names is one file there too.
pub(crate) struct Copies<'d> {
    to: &'d Dir,
    /// Where the first name of a file with several was copied to.
    links: HashMap<(u64, u64), RelPath>,
}

impl<'d> Copies<'d> {
    pub fn in_dir(to: &'d Dir) -> Self {
        Copies {
            to,
            links: HashMap::new(),
        }
    }

    /// Copies `standing`, which stands at `path` of `from`, to `root`.
    pub fn add(
        &mut self,
        from: &dyn Side,
        path: &RelPath,
        standing: &Standing,
        root: &RelPath,
    ) -> io::Result<()> {
        let top = std::iter::once((path.clone(), root.clone(), &standing.fingerprint));
        let below = standing.below.iter().map(|below| {
            let (from, to) = (path.join_path(&below.path), root.join_path(&below.path));
            (from, to, &below.fingerprint)
        });
        let entries: Vec<_> = top.chain(below).collect();
        for (path, at, fingerprint) in &entries {
            let (dir, name) = open_parent(self.to, at)?;
            match fingerprint.entry.kind {
                EntryKind::Directory => {
                    dir.make_dir(name)?;
                }
                EntryKind::File if fingerprint.nlink > 1 => {
                    if !self.link(fingerprint, &dir, name)? {
                        copy_entry(from, path, &dir, name, Privileges::Keep)?;
                        let inode = (fingerprint.dev, fingerprint.ino);
                        self.links.insert(inode, at.clone());
                    }
                }
                _ => copy_entry(from, path, &dir, name, Privileges::Keep)?,
            }
        }
        for (path, at, fingerprint) in entries.iter().rev() {
            if fingerprint.entry.kind == EntryKind::Directory {
                let (dir, name) = open_parent(self.to, at)?;
                let mut entry = fingerprint.entry;
                if at == root {
                    entry.mode |= 0o700;
                }
                set_metadata(&dir, name, &entry, &from.xattrs(path)?)?;
                dir.set_times(name, entry.mtime)?;
            }
        }
        Ok(())
    }

    /// Links `name` of `dir` to an earlier copy of the same file. False where there is none, or none
    /// that can be linked to.
    fn link(&self, found: &Fingerprint, dir: &Dir, name: &[u8]) -> io::Result<bool> {
        let Some(first) = self.links.get(&(found.dev, found.ino)) else {
            return Ok(false);
        };
        let linked =
            open_parent(self.to, first).and_then(|(from, first)| from.link(first, dir, name));
        match linked {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(false),
            linked => linked.map(|()| true),
        }
    }
}
