//! Operations on a tree, the same on a mounted workspace and on a plain directory.
//!
//! Names are few, so that operations meet. An operation that cannot be done where it would be (its
//! parent is missing, its target is of another kind) does nothing, on both trees alike.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, XattrFlags};

const NAMES: [&[u8]; 7] = [
    b"a",
    b"b",
    b"c",
    b"sub dir",
    b"new\nline",
    b"\xff\xfe",
    b"\"q\\",
];
const TARGETS: [&str; 4] = ["a", "../b", "sub dir/c", "nowhere"];

/// One step of a history.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Creates or overwrites a file.
    Write(Place, Vec<u8>),
    /// Adds to a file.
    Append(Place, Vec<u8>),
    /// Replaces a file by a new one, as editors do.
    Replace(Place, Vec<u8>),
    /// Removes whatever is there, and all below it.
    Remove(Place),
    /// Makes a directory.
    MakeDirectory(Place),
    /// Removes a directory and makes it anew, which an overlay marks opaque.
    Renew(Place),
    /// Renames.
    Rename(Place, Place),
    /// Makes a symlink.
    Symlink(Place, &'static str),
    /// Gives a file another name.
    Link(Place, Place),
    /// Makes a FIFO.
    Fifo(Place),
    /// Changes permissions.
    Chmod(Place, u32),
    /// Sets an extended attribute, or removes it.
    Attribute(Place, Option<u8>),
}

/// A path of one to three names.
#[derive(Debug, Clone)]
pub struct Place(pub Vec<usize>);

impl Place {
    fn under(&self, root: &Path) -> PathBuf {
        self.0.iter().fold(root.to_owned(), |path, name| {
            path.join(OsStr::from_bytes(NAMES[*name]))
        })
    }
}

fn place() -> impl Strategy<Value = Place> {
    // The first names come up more often, so that paths meet.
    let name = prop_oneof![3 => 0..3usize, 1 => 0..NAMES.len()];
    proptest::collection::vec(name, 1..4).prop_map(Place)
}

fn contents() -> impl Strategy<Value = Vec<u8>> {
    let line = "[a-e]{0,12}\n";
    let text = (proptest::collection::vec(line, 0..12), "[a-e]?")
        .prop_map(|(lines, tail)| (lines.concat() + &tail).into_bytes());
    prop_oneof![
        6 => text,
        1 => proptest::collection::vec(any::<u8>(), 1..200),
        1 => Just(vec![0; 70_000]),
    ]
}

pub fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        5 => (place(), contents()).prop_map(|(at, contents)| Operation::Write(at, contents)),
        2 => (place(), contents()).prop_map(|(at, contents)| Operation::Append(at, contents)),
        1 => (place(), contents()).prop_map(|(at, contents)| Operation::Replace(at, contents)),
        3 => place().prop_map(Operation::Remove),
        4 => place().prop_map(Operation::MakeDirectory),
        1 => place().prop_map(Operation::Renew),
        4 => (place(), place()).prop_map(|(from, to)| Operation::Rename(from, to)),
        1 => (place(), 0..TARGETS.len()).prop_map(|(at, to)| Operation::Symlink(at, TARGETS[to])),
        1 => (place(), place()).prop_map(|(from, to)| Operation::Link(from, to)),
        1 => place().prop_map(Operation::Fifo),
        2 => (place(), prop_oneof![Just(0o644), Just(0o755), Just(0o600), Just(0o700)])
            .prop_map(|(at, mode)| Operation::Chmod(at, mode)),
        1 => (place(), proptest::option::of(any::<u8>()))
            .prop_map(|(at, value)| Operation::Attribute(at, value)),
    ]
}

/// How directories are renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moves {
    /// In one step.
    Rename,
    /// By copying, as `mv` does where a rootless overlay answers EXDEV.
    Copy,
}

/// Does the operations in turn.
pub fn perform(root: &Path, operations: &[Operation], moves: Moves) -> io::Result<()> {
    operations.iter().try_for_each(|operation| {
        step(root, operation, moves).map_err(|error| {
            // An error crosses a fork as its number alone.
            let number = error.raw_os_error();
            number.map_or(error, io::Error::from_raw_os_error)
        })
    })
}

fn step(root: &Path, operation: &Operation, moves: Moves) -> io::Result<()> {
    match operation {
        Operation::Write(at, contents) => on_file(root, at, Missing::Create, |path| {
            let mode = fs::metadata(path).map(|found| found.permissions());
            fs::write(path, contents)?;
            mode.map_or(Ok(()), |mode| fs::set_permissions(path, mode))
        }),
        Operation::Append(at, contents) => on_file(root, at, Missing::Skip, |path| {
            fs::File::options()
                .append(true)
                .open(path)?
                .write_all(contents)
        }),
        Operation::Replace(at, contents) => on_file(root, at, Missing::Skip, |path| {
            let fresh = path.with_file_name("fresh");
            fs::write(&fresh, contents)?;
            fs::rename(fresh, path)
        }),
        Operation::Remove(at) => on_any(root, at, remove),
        Operation::MakeDirectory(at) => on_vacant(root, at, |path| fs::create_dir(path)),
        Operation::Renew(at) => on_any(root, at, |path| {
            if !kind(path).is_some_and(|kind| kind.is_dir()) {
                return Ok(());
            }
            fs::remove_dir_all(path)?;
            fs::create_dir(path)
        }),
        Operation::Rename(from, to) => rename(&from.under(root), &to.under(root), root, moves),
        Operation::Symlink(at, target) => on_vacant(root, at, |path| symlink(target, path)),
        Operation::Link(from, to) => {
            let from = from.under(root);
            let is_file = reachable(root, &from) && kind(&from).is_some_and(|kind| kind.is_file());
            on_vacant(root, to, |to| {
                if is_file {
                    fs::hard_link(&from, to)
                } else {
                    Ok(())
                }
            })
        }
        Operation::Fifo(at) => on_vacant(root, at, |path| {
            let mode = Mode::from_raw_mode(0o644);
            Ok(rustix::fs::mknodat(CWD, path, FileType::Fifo, mode, 0)?)
        }),
        Operation::Chmod(at, mode) => on_any(root, at, |path| match kind(path) {
            Some(kind) if kind.is_dir() => set_mode(path, *mode | 0o700),
            Some(kind) if kind.is_file() => set_mode(path, *mode),
            _ => Ok(()),
        }),
        Operation::Attribute(at, value) => on_any(root, at, |path| match (kind(path), value) {
            (Some(kind), _) if !kind.is_dir() && !kind.is_file() => Ok(()),
            (_, Some(value)) => Ok(rustix::fs::lsetxattr(
                path,
                "user.note",
                &[*value],
                XattrFlags::empty(),
            )?),
            (_, None) => match rustix::fs::lremovexattr(path, "user.note") {
                Err(rustix::io::Errno::NODATA) => Ok(()),
                removed => Ok(removed?),
            },
        }),
    }
}

fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

enum Missing {
    Create,
    Skip,
}

/// On a regular file, or, if `missing` says so, on a name that is free.
fn on_file(
    root: &Path,
    at: &Place,
    missing: Missing,
    act: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let path = at.under(root);
    let fits = match (kind(&path), missing) {
        (Some(kind), _) => kind.is_file(),
        (None, Missing::Create) => true,
        (None, Missing::Skip) => false,
    };
    if reachable(root, &path) && fits {
        act(&path)
    } else {
        Ok(())
    }
}

fn on_any(root: &Path, at: &Place, act: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let path = at.under(root);
    if reachable(root, &path) && kind(&path).is_some() {
        act(&path)
    } else {
        Ok(())
    }
}

fn on_vacant(root: &Path, at: &Place, act: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let path = at.under(root);
    if reachable(root, &path) && kind(&path).is_none() {
        act(&path)
    } else {
        Ok(())
    }
}

fn kind(path: &Path) -> Option<fs::FileType> {
    fs::symlink_metadata(path)
        .ok()
        .map(|found| found.file_type())
}

/// Is everything between `root` and `path` a directory, and no symlink?
fn reachable(root: &Path, path: &Path) -> bool {
    let between = path.ancestors().skip(1).take_while(|above| *above != root);
    between
        .into_iter()
        .all(|above| kind(above).is_some_and(|kind| kind.is_dir()))
}

fn remove(path: &Path) -> io::Result<()> {
    if kind(path).is_some_and(|kind| kind.is_dir()) {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}

fn rename(from: &Path, to: &Path, root: &Path, moves: Moves) -> io::Result<()> {
    let Some(found) = kind(from).filter(|_| reachable(root, from)) else {
        return Ok(());
    };
    let there = kind(to);
    let blocked = there.is_some() && (found.is_dir() || there.is_some_and(|there| there.is_dir()));
    if !reachable(root, to) || blocked || to.starts_with(from) {
        return Ok(());
    }
    if found.is_dir() && moves == Moves::Copy {
        copy(from, to)?;
        return fs::remove_dir_all(from);
    }
    // Renaming one name of a file to another of its names does nothing, and whether two names are one
    // file is where trees may differ.
    if there.is_some() {
        fs::remove_file(to)?;
    }
    fs::rename(from, to)
}

/// A copy with modes and attributes, without hard links.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(from)?;
    if found.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if found.is_dir() {
        fs::create_dir(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    } else if found.is_file() {
        fs::write(to, fs::read(from)?)?;
    } else {
        rustix::fs::mknodat(CWD, to, FileType::Fifo, Mode::from_raw_mode(0o644), 0)?;
    }
    let mut value = [0; 1];
    if (found.is_dir() || found.is_file())
        && rustix::fs::lgetxattr(from, "user.note", &mut value).is_ok()
    {
        rustix::fs::lsetxattr(to, "user.note", &value, XattrFlags::empty())?;
    }
    fs::set_permissions(to, found.permissions())
}
