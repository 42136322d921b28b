//! Taking rights away from mounts: read-only, no setuid, no devices.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, MountPropagationFlags};

/// What `mount_setattr` takes.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
}

/// What may be done through a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading only.
    ReadOnly,
    /// Writing too.
    Writable,
    /// Reading, and using device files; their modes and owners stay as they are.
    Devices,
}

impl Access {
    fn attributes(self) -> u64 {
        let nothing_special = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
        match self {
            Access::ReadOnly => libc::MOUNT_ATTR_RDONLY | nothing_special,
            Access::Writable => nothing_special,
            Access::Devices => {
                libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC
            }
        }
    }

    fn flags(self) -> MountFlags {
        let nothing_special = MountFlags::NOSUID | MountFlags::NODEV;
        match self {
            Access::ReadOnly => MountFlags::RDONLY | nothing_special,
            Access::Writable => nothing_special,
            Access::Devices => MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NOEXEC,
        }
    }
}

/// Makes every mount of this mount namespace read-only, without setuid and devices, and cut off
/// from the host's later mounts.
pub fn seal() -> io::Result<()> {
    let attributes = Attributes {
        set: Access::ReadOnly.attributes(),
        propagation: libc::MS_PRIVATE,
        ..Attributes::default()
    };
    match set_attributes(libc::AT_FDCWD, c"/", libc::AT_RECURSIVE, &attributes) {
        Err(error) if missing(&error) => seal_one_by_one(),
        outcome => outcome,
    }
}

/// Restricts the mount that `mount` is the root of, and those below it.
pub fn restrict(mount: impl AsFd, access: Access) -> io::Result<()> {
    let attributes = Attributes {
        set: access.attributes(),
        ..Attributes::default()
    };
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    set_attributes(mount.as_fd().as_raw_fd(), c"", flags, &attributes)
}

/// Lets links on a mount be followed again.
pub fn follow_links(mount: impl AsFd) -> io::Result<()> {
    let attributes = Attributes {
        clear: libc::MOUNT_ATTR_NOSYMFOLLOW,
        ..Attributes::default()
    };
    match set_attributes(
        mount.as_fd().as_raw_fd(),
        c"",
        libc::AT_EMPTY_PATH,
        &attributes,
    ) {
        // Kernels that do not know the attribute never set it.
        Err(error) if missing(&error) || error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        outcome => outcome,
    }
}

/// The same after it was attached, for kernels without `mount_setattr`.
pub fn restrict_attached(mount: BorrowedFd<'_>, access: Access) -> io::Result<()> {
    remount(Path::new(&crate::mount::descriptor_path(mount)), access)
}

/// Kernel 5.11 has no `mount_setattr`; some container filters answer the same.
pub fn missing(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOSYS)
}

fn set_attributes(
    directory: libc::c_int,
    path: &std::ffi::CStr,
    flags: libc::c_int,
    attributes: &Attributes,
) -> io::Result<()> {
    // SAFETY: the path is NUL-terminated and `attributes` is a mount_attr of the size given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            directory,
            path.as_ptr(),
            flags,
            std::ptr::from_ref(attributes),
            size_of::<Attributes>(),
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

fn seal_one_by_one() -> io::Result<()> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private)?;
    let mountinfo = std::fs::read("/proc/self/mountinfo")?;
    let mut points = vec![PathBuf::from("/")];
    points.extend(crate::mount::below(&mountinfo, Path::new("/")));
    for point in points {
        match remount(&point, Access::ReadOnly) {
            // Covered by a later mount, so that its path leads elsewhere: not reachable either.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            // Behind a directory we may not search: the command may not either.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            outcome => outcome?,
        }
    }
    Ok(())
}

fn remount(point: &Path, access: Access) -> io::Result<()> {
    let flags = MountFlags::BIND | access.flags();
    Ok(rustix::mount::mount_remount(point, flags, "")?)
}
