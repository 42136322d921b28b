//! One directory entry as a filesystem shows it, and the fingerprint by which a later look tells
//! whether it is still the same.

use serde::{Deserialize, Serialize};

/// What kind of thing an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, never followed.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket's name.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
}

impl EntryKind {
    /// The kind in a `st_mode`, or `None` for bits that mean nothing.
    pub const fn from_mode(mode: u32) -> Option<Self> {
        match mode & 0o170_000 {
            0o100_000 => Some(EntryKind::File),
            0o040_000 => Some(EntryKind::Directory),
            0o120_000 => Some(EntryKind::Symlink),
            0o010_000 => Some(EntryKind::Fifo),
            0o140_000 => Some(EntryKind::Socket),
            0o020_000 => Some(EntryKind::CharDevice),
            0o060_000 => Some(EntryKind::BlockDevice),
            _ => None,
        }
    }

    /// The `S_IFMT` bits of this kind.
    pub const fn mode_bits(self) -> u32 {
        match self {
            EntryKind::File => 0o100_000,
            EntryKind::Directory => 0o040_000,
            EntryKind::Symlink => 0o120_000,
            EntryKind::Fifo => 0o010_000,
            EntryKind::Socket => 0o140_000,
            EntryKind::CharDevice => 0o020_000,
            EntryKind::BlockDevice => 0o060_000,
        }
    }

    /// The word used in listings and messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            EntryKind::File => "file",
            EntryKind::Directory => "directory",
            EntryKind::Symlink => "symlink",
            EntryKind::Fifo => "fifo",
            EntryKind::Socket => "socket",
            EntryKind::CharDevice => "character device",
            EntryKind::BlockDevice => "block device",
        }
    }
}

/// Seconds and nanoseconds since the epoch, as `statx` gives them.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Timestamp(pub i64, pub u32);

/// What a person would notice about an entry: the part of its metadata that a change set speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its kind.
    pub kind: EntryKind,
    /// Permission bits, set-id and sticky included (`0o7777`).
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Size in bytes; for a symlink, of its target.
    pub size: u64,
    /// Last modification.
    pub mtime: Timestamp,
    /// Device number, for device nodes; 0 otherwise.
    pub rdev: u64,
}

/// Everything `statx` can tell about which inode this is and whether it was touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The filesystem, as `st_dev`.
    pub dev: u64,
    /// The inode number.
    pub ino: u64,
    /// How many names it has.
    pub nlink: u32,
    /// What it is.
    #[serde(flatten)]
    pub entry: Entry,
    /// Last change of the inode.
    pub ctime: Timestamp,
    /// Birth, where the filesystem records it.
    pub btime: Option<Timestamp>,
}
