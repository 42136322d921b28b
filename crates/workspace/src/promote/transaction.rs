//! Performing a journal, and taking it back.
//!
//! Forward: directories that forbid it are opened, entries are renamed between source and stage,
//! metadata is changed in place, directories get their modes. Each displaced inode is compared with
//! the plan; a stranger means that somebody changed the source meanwhile, and everything goes back.
//!
//! Backward looks at each path for which of the two planned inodes stands there, so it does not
//! matter how far forward came, or an earlier backward. A path with a third inode is left as found,
//! and so is a file whose contents are not what forward put there: it was edited since. A directory
//! in which something was edited is left as a whole by an undo or a redo, which moved it there.

use std::collections::BTreeMap;
use std::io;

use rustix::io::Errno;
use sandbox_model::{EntryKind, RelPath, Timestamp};

use super::edits;
use super::error::PromoteError;
use super::fault;
use super::ground::{Ground, is_untouched};
use super::journal::{
    AttributeChange, Attributes, Committed, Inode, Journal, Kind, Operation, Standing,
};
use crate::progress::{Phase, Progress};
use crate::tree::{Dir, Replace, Tree};

/// Up to this many touched directories are fsynced one by one; more, and the filesystem as a whole.
const FEW_DIRECTORIES: usize = 8;

/// A journal between a source and a stage.
pub(crate) struct Transaction<'a> {
    pub source: &'a Tree,
    pub stage: &'a Dir,
    pub journal: &'a Journal,
}

/// Why forward stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The source is not as planned at this path.
    Late(RelPath),
    /// A file operation failed.
    Io(&'static str, RelPath, io::Error),
    /// The caller wants it to stop.
    Cancelled,
}

impl Stop {
    /// As an error about `source`.
    pub fn into_error(self, source: &Tree) -> PromoteError {
        match self {
            Stop::Late(path) => PromoteError::LateChange { path },
            Stop::Cancelled => PromoteError::Interrupted,
            Stop::Io(operation, path, error) => PromoteError::Io {
                operation,
                path: path.under(source.path()),
                source: error,
            },
        }
    }
}

fn failed(operation: &'static str, path: &RelPath) -> impl FnOnce(io::Error) -> Stop {
    let path = path.clone();
    move |error| Stop::Io(operation, path, error)
}

impl<'a> Transaction<'a> {
    /// Changes the source. On an error it is between two states: call [`Transaction::back`].
    pub fn forward(&self, progress: &mut dyn Progress) -> Result<Committed, Stop> {
        let mut ground = Ground::new(self.source, self.journal);
        self.open_directories(&mut ground)?;
        progress.begin(
            Phase::Applying,
            u64::try_from(self.journal.operations.len()).ok(),
        );
        for operation in &self.journal.operations {
            if progress.is_cancelled() {
                return Err(Stop::Cancelled);
            }
            self.put(&mut ground, operation)?;
            progress.advance(1);
        }
        for change in &self.journal.attributes {
            if progress.is_cancelled() {
                return Err(Stop::Cancelled);
            }
            self.change(&mut ground, change)?;
        }
        let directories = self.close_directories()?;
        self.sync()
            .map_err(failed("make durable", &RelPath::root()))?;
        progress.finish();
        // The last moment at which it can still be taken back.
        match progress.is_cancelled() {
            true => Err(Stop::Cancelled),
            false => Ok(Committed { directories }),
        }
    }

    /// Makes directories writable whose names change.
    fn open_directories(&self, ground: &mut Ground<'_>) -> Result<(), Stop> {
        for (path, parent) in self
            .journal
            .parents
            .iter()
            .filter(|(_, parent)| parent.touched)
        {
            if parent.mode & 0o300 == 0o300 {
                continue;
            }
            let dir = ground.dir(path).map_err(failed("open", path))?;
            let dir = dir.ok_or_else(|| Stop::Late(path.clone()))?;
            fault::at("open directory").map_err(failed("open", path))?;
            dir.set_mode_self(parent.mode | 0o700)
                .map_err(failed("make writable", path))?;
        }
        Ok(())
    }

    /// One rename, checked.
    fn put(&self, ground: &mut Ground<'_>, operation: &Operation) -> Result<(), Stop> {
        let path = &operation.path;
        let late = || Stop::Late(path.clone());
        let (dir, name) = ground
            .parent(path)
            .map_err(failed("reach", path))?
            .ok_or_else(late)?;
        if let Some(old) = &operation.old {
            let found = dir.stat(name).map_err(failed("look at", path))?;
            if !found.is_some_and(|found| is_untouched(&old.fingerprint, &found)) {
                return Err(late());
            }
            open_for_moving(dir, name, old).map_err(failed("make movable", path))?;
        }
        fault::at("rename").map_err(failed("replace", path))?;
        match self.rename(dir, name, operation) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(late()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(late()),
            renamed => renamed.map_err(failed("replace", path))?,
        }
        fault::at("renamed").map_err(failed("replace", path))?;
        match &operation.old {
            Some(old)
                if !self
                    .displaced_as_planned(operation, old)
                    .map_err(failed("check", path))? =>
            {
                Err(late())
            }
            _ => Ok(()),
        }
    }

    fn rename(&self, dir: &Dir, name: &[u8], operation: &Operation) -> io::Result<()> {
        let slot = operation.slot_name();
        match (&operation.old, &operation.new) {
            (None, None) => Ok(()),
            (None, Some(_)) => rename_to_free(self.stage, &slot, dir, name),
            (Some(_), None) => rename_to_free(dir, name, self.stage, &slot),
            (Some(_), Some(_)) => {
                let exchanged = fault::at("exchange")
                    .and_then(|()| self.stage.rename(&slot, dir, name, Replace::Exchange));
                match exchanged {
                    Err(error) if is_unsupported(&error) => self.two_steps(dir, name, operation),
                    exchanged => exchanged,
                }
            }
        }
    }

    /// An exchange where the filesystem has none. Between the steps nothing stands at the path.
    fn two_steps(&self, dir: &Dir, name: &[u8], operation: &Operation) -> io::Result<()> {
        let (slot, aside) = (operation.slot_name(), operation.aside_name());
        rename_to_free(dir, name, self.stage, &aside)?;
        fault::at("between two steps")?;
        rename_to_free(self.stage, &slot, dir, name)?;
        fault::at("after two steps")?;
        rename_to_free(self.stage, &aside, self.stage, &slot)
    }

    /// Is what we displaced what the plan saw, down to the last file?
    fn displaced_as_planned(&self, operation: &Operation, old: &Standing) -> io::Result<bool> {
        let slot = operation.slot_name();
        let planned = &old.fingerprint.entry;
        let mut found = self.stage.stat(&slot)?;
        if let Some(found) = found
            .as_mut()
            .filter(|found| found.entry.mtime != planned.mtime)
            && planned.kind == EntryKind::Directory
        {
            // xfs touches a directory that is exchanged for something in another one. What is in it
            // is compared below; its time is put back, for undo.
            self.stage.set_times(&slot, planned.mtime)?;
            found.entry.mtime = planned.mtime;
        }
        match found {
            Some(found) if is_untouched(&old.fingerprint, &found) => {}
            _ => return Ok(false),
        }
        if planned.kind == EntryKind::Directory {
            return is_intact(&self.stage.open_dir(&slot)?, old);
        }
        Ok(true)
    }

    fn change(&self, ground: &mut Ground<'_>, change: &AttributeChange) -> Result<(), Stop> {
        let path = &change.path;
        let late = || Stop::Late(path.clone());
        let (dir, name) = ground
            .parent(path)
            .map_err(failed("reach", path))?
            .ok_or_else(late)?;
        let found = dir
            .stat(name)
            .map_err(failed("look at", path))?
            .ok_or_else(late)?;
        let opened = found.entry.mode | 0o700 == change.before.mode | 0o700;
        if Inode::of(&found) != change.inode || !opened {
            return Err(late());
        }
        fault::at("attributes").map_err(failed("change", path))?;
        change
            .after
            .set(dir, name)
            .map_err(failed("change the attributes of", path))?;
        fault::at("attributes changed").map_err(failed("change", path))
    }

    /// Directories' modes last; then the whole way is walked again, so that what was renamed is
    /// known to be in the source and not in a directory that was moved out meanwhile.
    fn close_directories(&self) -> Result<BTreeMap<RelPath, Timestamp>, Stop> {
        let mut ground = Ground::new(self.source, self.journal);
        for operation in &self.journal.operations {
            let Some(new) = operation.new.as_ref().filter(|new| needs_opening(new)) else {
                continue;
            };
            let path = &operation.path;
            let (dir, name) = ground
                .parent(path)
                .map_err(failed("reach", path))?
                .ok_or_else(|| Stop::Late(path.clone()))?;
            fault::at("directory mode").map_err(failed("set the mode of", path))?;
            dir.set_mode(name, new.fingerprint.entry.mode)
                .map_err(failed("set the mode of", path))?;
        }
        let mut times = BTreeMap::new();
        // Deepest first: a directory whose mode forbids passing is left before its parents.
        for (path, parent) in self.journal.parents.iter().rev() {
            let dir = ground.dir(path).map_err(failed("reach", path))?;
            let dir = dir.ok_or_else(|| Stop::Late(path.clone()))?;
            if parent.touched {
                fault::at("close directory").map_err(failed("close", path))?;
                let time = self
                    .close(path, parent, dir)
                    .map_err(failed("close", path))?;
                times.insert(path.clone(), time);
            }
        }
        Ok(times)
    }

    fn close(
        &self,
        path: &RelPath,
        parent: &super::journal::Parent,
        dir: &Dir,
    ) -> io::Result<Timestamp> {
        let changed = self
            .journal
            .attributes
            .iter()
            .find(|change| &change.path == path);
        let mode = changed.map_or(parent.mode, |change| change.after.mode);
        if parent.mode & 0o300 != 0o300 {
            dir.set_mode_self(mode)?;
        }
        if let Some(time) = parent.leave {
            dir.set_times_self(time)?;
        }
        Ok(dir.stat_self()?.entry.mtime)
    }

    fn sync(&self) -> io::Result<()> {
        let touched = self
            .journal
            .parents
            .iter()
            .filter(|(_, parent)| parent.touched);
        fault::at("sync")?;
        if touched.clone().count() > FEW_DIRECTORIES {
            return self.stage.sync_filesystem();
        }
        for (path, _) in touched {
            self.source.dir(path)?.sync()?;
        }
        for change in self
            .journal
            .attributes
            .iter()
            .filter(|change| !change.path.is_root())
        {
            let (dir, name) = self.source.parent(&change.path)?;
            match change.inode.kind {
                EntryKind::Directory => dir.open_dir(name)?.sync()?,
                EntryKind::File => dir.open_file(name)?.sync_all()?,
                _ => {}
            }
        }
        self.stage.sync()
    }

    /// Puts everything back. Returns the paths left as found: something else stands there, or what
    /// stands there was edited since it was put there.
    pub fn back(&self) -> Result<Vec<RelPath>, Stop> {
        let mut left = Vec::new();
        let mut ground = Ground::new(self.source, self.journal);
        for change in self.journal.attributes.iter().rev() {
            self.change_back(&mut ground, change, &mut left)?;
        }
        for (path, parent) in self
            .journal
            .parents
            .iter()
            .filter(|(_, parent)| parent.touched)
        {
            if parent.mode & 0o300 != 0o300
                && let Some(dir) = ground.dir(path).map_err(failed("open", path))?
            {
                dir.set_mode_self(parent.mode | 0o700)
                    .map_err(failed("make writable", path))?;
            }
        }
        for operation in self.journal.operations.iter().rev() {
            fault::at("put back").map_err(failed("put back", &operation.path))?;
            let put = self.put_back(&mut ground, operation);
            match put.map_err(failed("put back", &operation.path))? {
                Found::Planned => {}
                Found::Stranger => left.push(operation.path.clone()),
                Found::Edited(paths) => {
                    left.extend(paths.iter().map(|path| operation.path.join_path(path)));
                }
            }
        }
        self.restore_directories(&mut ground)?;
        fault::at("sync back").map_err(failed("make durable", &RelPath::root()))?;
        self.stage
            .sync_filesystem()
            .map_err(failed("make durable", &RelPath::root()))?;
        left.sort();
        left.dedup();
        Ok(left)
    }

    fn change_back(
        &self,
        ground: &mut Ground<'_>,
        change: &AttributeChange,
        left: &mut Vec<RelPath>,
    ) -> Result<(), Stop> {
        let path = &change.path;
        fault::at("attributes back").map_err(failed("put back", path))?;
        let found = match ground.parent(path).map_err(failed("reach", path))? {
            Some((dir, name)) => dir
                .stat(name)
                .map_err(failed("look at", path))?
                .map(|found| (dir, name, found)),
            None => None,
        };
        match found {
            Some((dir, name, found))
                if Inode::of(&found) == change.inode
                    && edits::are_attributes_ours(dir, name, &found, change)
                        .map_err(failed("look at", path))? =>
            {
                change
                    .before
                    .set(dir, name)
                    .map_err(failed("put back the attributes of", path))
            }
            _ => {
                left.push(path.clone());
                Ok(())
            }
        }
    }

    fn put_back(&self, ground: &mut Ground<'_>, operation: &Operation) -> io::Result<Found> {
        let Some((dir, name)) = ground.parent(&operation.path)? else {
            return Ok(Found::Stranger);
        };
        let (slot, aside) = (operation.slot_name(), operation.aside_name());
        let is = |standing: &Option<Standing>, dir: &Dir, name: &[u8]| -> io::Result<bool> {
            let found = dir.stat(name)?;
            Ok(matches!((standing, found), (Some(standing), Some(found))
                if Inode::of(&standing.fingerprint) == Inode::of(&found)))
        };
        let here = dir.stat(name)?;
        if is(&operation.old, dir, name)? {
            return Ok(Found::Planned);
        }
        if here.is_some() && !is(&operation.new, dir, name)? {
            return Ok(Found::Stranger);
        }
        if let (Some(here), Some(new)) = (&here, &operation.new) {
            let mut edited = edits::since(dir, name, here, new)?;
            if !edited.is_empty() {
                match self.journal.kind {
                    Kind::Promote => edits::remove_promoted(dir, name, here, new)?,
                    // It came out of the stage by a rename: here is the only copy, so all of it stays.
                    Kind::Undo(_) => edited.push(RelPath::root()),
                }
                return Ok(Found::Edited(edited));
            }
        }
        // From here on nothing stands at the path, or what this transaction put there.
        let was_at = match &operation.old {
            None => None,
            Some(_) if self.holds_displaced(operation, &slot)? => Some(&slot),
            Some(_) if self.holds_displaced(operation, &aside)? => Some(&aside),
            Some(_) => return Ok(Found::Stranger),
        };
        if here.is_some() {
            if let Some(new) = &operation.new {
                open_for_moving(dir, name, new)?;
            }
            if was_at == Some(&slot) {
                match self.stage.rename(&slot, dir, name, Replace::Exchange) {
                    Err(error) if is_unsupported(&error) => {}
                    exchanged => return exchanged.map(|()| Found::Planned),
                }
                // The slot is free again once the old entry is out of it.
                rename_to_free(self.stage, &slot, self.stage, &aside)?;
            }
            fault::at("put away")?;
            rename_to_free(dir, name, self.stage, &slot)?;
        }
        if was_at.is_some() {
            let from = if self.holds_displaced(operation, &aside)? {
                &aside
            } else {
                &slot
            };
            fault::at("put back middle")?;
            rename_to_free(self.stage, from, dir, name)?;
        }
        Ok(Found::Planned)
    }

    /// Does `name` of the stage hold what this operation displaced, planned or not? Whoever changed the
    /// source at the last moment has their version there.
    fn holds_displaced(&self, operation: &Operation, name: &[u8]) -> io::Result<bool> {
        let is_new = |found| {
            let new = operation.new.as_ref();
            new.is_some_and(|new| Inode::of(&new.fingerprint) == Inode::of(&found))
        };
        Ok(self.stage.stat(name)?.is_some_and(|found| !is_new(found)))
    }

    /// After [`Transaction::back`]: moves what was not put back from the stage to its own path below
    /// `name` of `to`. Returns whether there is anything, also from an earlier call.
    pub fn gather_displaced(&self, to: &Dir, name: &[u8]) -> io::Result<bool> {
        for operation in &self.journal.operations {
            for slot in [operation.slot_name(), operation.aside_name()] {
                if self.holds_displaced(operation, &slot)? {
                    let parent = operation.path.parent().unwrap_or_default();
                    let mut dir = make_or_open(to, name)?;
                    for name in parent.components() {
                        dir = make_or_open(&dir, name)?;
                    }
                    let name = operation.path.name().unwrap_or_default();
                    rename_to_free(self.stage, &slot, &dir, name)?;
                }
            }
        }
        Ok(to.stat(name)?.is_some())
    }

    /// Modes and times of directories as they were.
    fn restore_directories(&self, ground: &mut Ground<'_>) -> Result<(), Stop> {
        for operation in &self.journal.operations {
            let Some(old) = operation.old.as_ref().filter(|old| needs_opening(old)) else {
                continue;
            };
            let path = &operation.path;
            if let Some((dir, name)) = ground.parent(path).map_err(failed("reach", path))?
                && let Some(found) = dir.stat(name).map_err(failed("look at", path))?
                && Inode::of(&found) == Inode::of(&old.fingerprint)
            {
                dir.set_mode(name, old.fingerprint.entry.mode)
                    .map_err(failed("set the mode of", path))?;
            }
        }
        for (path, parent) in self
            .journal
            .parents
            .iter()
            .rev()
            .filter(|(_, parent)| parent.touched)
        {
            fault::at("restore directory").map_err(failed("restore", path))?;
            if let Some(dir) = ground.dir(path).map_err(failed("reach", path))? {
                let restore = || -> io::Result<()> {
                    if parent.mode & 0o300 != 0o300 {
                        dir.set_mode_self(parent.mode)?;
                    }
                    dir.set_times_self(parent.mtime)
                };
                restore().map_err(failed("restore", path))?;
            }
        }
        Ok(())
    }
}

/// What stood at a path when it was put back.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// One of the two planned inodes, or nothing.
    Planned,
    /// Something else; it was left.
    Stranger,
    /// What this transaction put there, edited since. These paths below it, or all of it, were left.
    Edited(Vec<RelPath>),
}

impl Attributes {
    /// Sets them. Extended attributes need a writable file, so its mode comes last.
    pub(crate) fn set(&self, dir: &Dir, name: &[u8]) -> io::Result<()> {
        let now = dir.xattrs(name)?;
        if now != self.xattrs {
            dir.set_mode(name, self.mode | 0o600)?;
            for attribute in now
                .keys()
                .filter(|attribute| !self.xattrs.contains_key(*attribute))
            {
                dir.remove_xattr(name, attribute)?;
            }
            for (attribute, value) in &self.xattrs {
                if now.get(attribute) != Some(value) {
                    dir.set_xattr(name, attribute, value)?;
                }
            }
        }
        let found = dir.stat(name)?.ok_or(Errno::NOENT)?;
        if (found.entry.uid, found.entry.gid) != (self.uid, self.gid) {
            dir.set_owner(name, self.uid, self.gid)?;
        }
        dir.set_mode(name, self.mode)
    }
}

fn make_or_open(dir: &Dir, name: &[u8]) -> io::Result<Dir> {
    match dir.make_dir(name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => dir.open_dir(name),
        made => made,
    }
}

/// A directory whose mode forbids its owner to write cannot be moved to another parent.
fn needs_opening(standing: &Standing) -> bool {
    let entry = &standing.fingerprint.entry;
    entry.kind == EntryKind::Directory && entry.mode & 0o700 != 0o700
}

fn open_for_moving(dir: &Dir, name: &[u8], standing: &Standing) -> io::Result<()> {
    if needs_opening(standing) {
        dir.set_mode(name, standing.fingerprint.entry.mode | 0o700)?;
    }
    Ok(())
}

/// Is there in `dir` exactly what `standing` lists below it, untouched?
pub(crate) fn is_intact(dir: &Dir, standing: &Standing) -> io::Result<bool> {
    let planned: BTreeMap<_, _> = standing
        .below
        .iter()
        .map(|below| (&below.path, &below.fingerprint))
        .collect();
    let mut seen = 0;
    let mut open = vec![(RelPath::root(), dir.open_dir(b".")?)];
    while let Some((at, dir)) = open.pop() {
        for entry in dir.entries()? {
            let path = at.join(&entry.name);
            let (Some(planned), Some(found)) = (planned.get(&path), dir.stat(&entry.name)?) else {
                return Ok(false);
            };
            if !is_untouched(planned, &found) {
                return Ok(false);
            }
            seen += 1;
            if found.entry.kind == EntryKind::Directory {
                open.push((path, dir.open_dir(&entry.name)?));
            }
        }
    }
    Ok(seen == planned.len())
}

/// Renames to a name nothing stands at; `AlreadyExists` where something does.
fn rename_to_free(from: &Dir, name: &[u8], to: &Dir, new: &[u8]) -> io::Result<()> {
    match from.rename(name, to, new, Replace::No) {
        Err(error) if is_unsupported(&error) => {
            // No RENAME_NOREPLACE here. A second name refuses to replace; a directory, which can have
            // none, is at worst put over an empty one.
            if from
                .stat(name)?
                .is_some_and(|found| found.entry.kind != EntryKind::Directory)
            {
                from.link(name, to, new)?;
                return from.unlink(name);
            }
            if to.stat(new)?.is_some() {
                return Err(Errno::EXIST.into());
            }
            from.rename(name, to, new, Replace::Yes)
        }
        renamed => renamed,
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP))
}
