//! btrfs subvolumes: telling them, snapshotting them, deleting them, all as an ordinary user.
//!
//! Only calls that the kernel grants to a subvolume's owner are used. Deleting is the one that it
//! may refuse: then [`delete`] says so, and emptying the subvolume and removing it as a directory
//! is left to the caller.

use std::ffi::{CStr, OsString};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The inode number of every subvolume's root.
const SUBVOLUME_INODE: u64 = 256;
/// `f_type` of btrfs.
const MAGIC: i64 = 0x9123_683e;
const READ_ONLY: u64 = 1 << 1;
const NAME_MAX: usize = 255;

/// `struct btrfs_ioctl_vol_args_v2`.
#[repr(C)]
struct VolumeArguments {
    fd: i64,
    transaction: u64,
    flags: u64,
    unused: [u64; 4],
    name: [u8; 4040],
}

/// `struct btrfs_ioctl_get_subvol_rootref_args`.
#[repr(C)]
struct ChildrenArguments {
    least: u64,
    found: [Child; 255],
    count: u8,
    align: [u8; 7],
}

/// A subvolume below another.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Child {
    tree: u64,
    /// The directory, in the upper subvolume, that holds it.
    directory: u64,
}

/// `struct btrfs_ioctl_ino_lookup_user_args`.
#[repr(C)]
struct LookupArguments {
    directory: u64,
    tree: u64,
    name: [u8; 256],
    path: [u8; 3824],
}

/// The head of `struct btrfs_ioctl_fs_info_args`; the rest is reserved.
#[repr(C)]
struct FilesystemArguments {
    head: [u64; 2],
    id: [u8; 16],
    rest: [u8; 992],
}

const fn request(direction: u64, number: u64, size: usize) -> libc::Ioctl {
    ((direction << 30) | ((size as u64) << 16) | (0x94 << 8) | number) as libc::Ioctl
}

const WRITE: u64 = 1;
const READ: u64 = 2;
const SNAP_CREATE_V2: libc::Ioctl = request(WRITE, 23, size_of::<VolumeArguments>());
const SNAP_DESTROY_V2: libc::Ioctl = request(WRITE, 63, size_of::<VolumeArguments>());
const SUBVOL_GETFLAGS: libc::Ioctl = request(READ, 25, size_of::<u64>());
const SUBVOL_SETFLAGS: libc::Ioctl = request(WRITE, 26, size_of::<u64>());
const FS_INFO: libc::Ioctl = request(READ, 31, size_of::<FilesystemArguments>());
const GET_SUBVOL_ROOTREF: libc::Ioctl = request(READ | WRITE, 61, size_of::<ChildrenArguments>());
const INO_LOOKUP_USER: libc::Ioctl = request(READ | WRITE, 62, size_of::<LookupArguments>());

/// Performs `request` on `fd` with `argument`.
fn ioctl<T>(fd: BorrowedFd<'_>, request: libc::Ioctl, argument: &mut T) -> io::Result<()> {
    debug_assert_eq!((request >> 16) & 0x3fff, size_of::<T>() as libc::Ioctl);
    // SAFETY: the kernel reads and writes at most as many bytes at `argument` as the request's
    // number says, which is the size of `T`, a plain structure valid for every bit pattern.
    match unsafe { libc::ioctl(fd.as_raw_fd(), request, std::ptr::from_mut(argument)) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn volume(name: &[u8], fd: i64, flags: u64) -> io::Result<VolumeArguments> {
    if name.is_empty() || name.len() > NAME_MAX || name.contains(&0) || name.contains(&b'/') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut arguments = VolumeArguments {
        fd,
        transaction: 0,
        flags,
        unused: [0; 4],
        name: [0; 4040],
    };
    arguments.name[..name.len()].copy_from_slice(name);
    Ok(arguments)
}

/// Is the open directory the root of a btrfs subvolume?
pub fn is_subvolume(dir: impl AsFd) -> io::Result<bool> {
    let is_btrfs = rustix::fs::fstatfs(&dir)?.f_type as i64 == MAGIC;
    Ok(is_btrfs && rustix::fs::fstat(&dir)?.st_ino == SUBVOLUME_INODE)
}

/// The id of the btrfs filesystem that `dir` is on.
pub fn filesystem_id(dir: impl AsFd) -> io::Result<[u8; 16]> {
    let mut arguments = FilesystemArguments {
        head: [0; 2],
        id: [0; 16],
        rest: [0; 992],
    };
    ioctl(dir.as_fd(), FS_INFO, &mut arguments)?;
    Ok(arguments.id)
}

/// Makes a read-only snapshot of the subvolume `source` at `name` in `dir`.
pub fn snapshot(source: impl AsFd, dir: impl AsFd, name: &[u8]) -> io::Result<()> {
    let source = i64::from(source.as_fd().as_raw_fd());
    ioctl(
        dir.as_fd(),
        SNAP_CREATE_V2,
        &mut volume(name, source, READ_ONLY)?,
    )
}

/// Deletes the subvolume `name` of `dir` at once. `PermissionDenied` for an ordinary user unless
/// the filesystem is mounted with `user_subvol_rm_allowed`.
pub fn delete(dir: impl AsFd, name: &[u8]) -> io::Result<()> {
    ioctl(dir.as_fd(), SNAP_DESTROY_V2, &mut volume(name, 0, 0)?)
}

/// Lets a read-only subvolume be written to.
pub fn make_writable(subvolume: impl AsFd) -> io::Result<()> {
    let mut flags: u64 = 0;
    ioctl(subvolume.as_fd(), SUBVOL_GETFLAGS, &mut flags)?;
    if flags & READ_ONLY == 0 {
        return Ok(());
    }
    flags &= !READ_ONLY;
    ioctl(subvolume.as_fd(), SUBVOL_SETFLAGS, &mut flags)
}

/// The paths, relative to `subvolume`'s root, of the subvolumes directly below it. A snapshot shows
/// an empty directory in place of each. Up to 255 are named.
pub fn nested(subvolume: impl AsFd) -> io::Result<Vec<PathBuf>> {
    let none = Child {
        tree: 0,
        directory: 0,
    };
    let mut arguments = Box::new(ChildrenArguments {
        least: 0,
        found: [none; 255],
        count: 0,
        align: [0; 7],
    });
    match ioctl(subvolume.as_fd(), GET_SUBVOL_ROOTREF, &mut *arguments) {
        // More than fit: those that do are named.
        Err(error) if error.raw_os_error() == Some(libc::EOVERFLOW) => {}
        found => found?,
    }
    let found = &arguments.found[..usize::from(arguments.count)];
    found
        .iter()
        .map(|child| path_of(subvolume.as_fd(), child))
        .collect()
}

fn path_of(subvolume: BorrowedFd<'_>, child: &Child) -> io::Result<PathBuf> {
    let mut arguments = Box::new(LookupArguments {
        directory: child.directory,
        tree: child.tree,
        name: [0; 256],
        path: [0; 3824],
    });
    ioctl(subvolume, INO_LOOKUP_USER, &mut *arguments)?;
    let text = |bytes: &[u8]| {
        let text = CStr::from_bytes_until_nul(bytes).unwrap_or_default();
        OsString::from_vec(text.to_bytes().to_vec())
    };
    Ok(PathBuf::from(text(&arguments.path)).join(text(&arguments.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_structures_have_the_kernels_sizes() {
        assert_eq!(size_of::<VolumeArguments>(), 4096);
        assert_eq!(size_of::<ChildrenArguments>(), 4096);
        assert_eq!(size_of::<LookupArguments>(), 4096);
        assert_eq!(size_of::<FilesystemArguments>(), 1024);
    }

    #[test]
    fn a_directory_elsewhere_is_no_subvolume() {
        let proc = std::fs::File::open("/proc").unwrap();
        assert!(!is_subvolume(&proc).unwrap());
        assert!(snapshot(&proc, &proc, b"copy").is_err());
        assert!(snapshot(&proc, &proc, b"../copy").is_err());
    }
}
