//! Taking rights away from mounts: read-only, no setuid, no devices.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::StatVfsMountFlags;
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

/// Restricts the mount that `mount` is the root of, and none of those below it.
pub fn restrict_alone(mount: impl AsFd, access: Access) -> io::Result<()> {
    let attributes = Attributes {
        set: access.attributes(),
        ..Attributes::default()
    };
    let mount = mount.as_fd();
    match set_attributes(mount.as_raw_fd(), c"", libc::AT_EMPTY_PATH, &attributes) {
        Err(error) if missing(&error) => restrict_attached(mount, access),
        outcome => outcome,
    }
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
    // What a mount forbids already it must go on forbidding: in a user namespace those are locked.
    let kept = rustix::fs::statvfs(point)?.f_flag;
    let kept = [
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::RDONLY, MountFlags::RDONLY),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ]
    .into_iter()
    .filter(|(is, _)| kept.contains(*is))
    .fold(MountFlags::empty(), |flags, (_, flag)| flags | flag);
    let flags = MountFlags::BIND | access.flags() | kept;
    Ok(rustix::mount::mount_remount(point, flags, "")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clone::{Namespaces, Parent, clone};
    use crate::identity::{Ids, map_self};

    /// In a user namespace of its own; `true` when nothing on the host can be written afterwards.
    fn sealed_by(seal: impl Fn() -> io::Result<()>) -> bool {
        let own = Ids::own();
        let namespaces = Namespaces::NEWUSER | Namespaces::NEWNS;
        let body = || {
            map_self(own, own).unwrap();
            seal().unwrap();
            let written = [
                "/sealed-trial",
                "/dev/shm/sealed-trial",
                "/tmp/sealed-trial",
            ]
            .iter()
            .any(|path| std::fs::write(path, "").is_ok());
            i32::from(written)
        };
        let (child, ()) = clone(namespaces, Parent::Caller, (), body).unwrap();
        child.wait().unwrap().exit_status() == Some(0)
    }

    #[test]
    fn a_sealed_host_cannot_be_written() {
        assert!(sealed_by(seal));
    }

    #[test]
    fn mount_by_mount_does_the_same_where_the_kernel_is_old() {
        assert!(sealed_by(seal_one_by_one));
    }
}
