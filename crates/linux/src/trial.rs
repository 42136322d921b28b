//! Trying what the kernel allows, in a child that leaves nothing behind.
//!
//! Whether an overlay can be mounted depends on the kernel, its settings, the filesystems below
//! and who asks; only trying tells. The trial mounts it detached, in namespaces of its own, so
//! it is gone with the child. The launch of a sandbox does the same for good, elsewhere.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
use rustix::process::{getegid, geteuid};
use rustix::thread::UnshareFlags;
use sandbox_model::OverlayXattr;
use thiserror::Error;

/// The step that failed.
#[derive(Debug, Error)]
pub enum TrialError {
    /// The child itself.
    #[error("cannot start a trial process")]
    Start(#[source] io::Error),
    /// Namespaces of its own.
    #[error("cannot make a user namespace")]
    Namespace(#[source] io::Error),
    /// The mount.
    #[error("cannot mount an overlay")]
    Mount(#[source] io::Error),
    /// What was tried in it.
    #[error("cannot use the overlay")]
    Use(#[source] io::Error),
}

/// An overlay to be tried.
#[derive(Debug, Clone, Copy)]
pub struct OverlayTrial<'a> {
    /// The layer below.
    pub lower: &'a Path,
    /// The layer that takes the changes.
    pub upper: &'a Path,
    /// The overlay's scratch directory, on the upper's filesystem.
    pub work: &'a Path,
    /// Where marks are kept: `User` also means in a user namespace.
    pub xattr: OverlayXattr,
}

/// Mounts the overlay in a child's own namespaces and calls `inside` there with the mount's root.
/// Whatever `inside` opens or changes in memory is lost with the child.
pub fn overlay(
    trial: &OverlayTrial<'_>,
    inside: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>,
) -> Result<(), TrialError> {
    let ids = (geteuid().as_raw(), getegid().as_raw());
    let (mut reader, mut writer) = io::pipe().map_err(TrialError::Start)?;
    // SAFETY: fork has no memory requirement. In the child only this thread lives; the C library
    // makes its allocator usable there, and nothing below takes a lock that another thread of
    // this process could hold. The child ends in `_exit`, so no destructor runs twice.
    let child = unsafe { libc::fork() };
    match child {
        -1 => Err(TrialError::Start(io::Error::last_os_error())),
        0 => {
            let (step, errno) = match attempt(trial, ids, inside) {
                Ok(()) => (0, 0),
                Err(TrialError::Start(error)) => (1, errno_of(&error)),
                Err(TrialError::Namespace(error)) => (2, errno_of(&error)),
                Err(TrialError::Mount(error)) => (3, errno_of(&error)),
                Err(TrialError::Use(error)) => (4, errno_of(&error)),
            };
            let mut report = [step, 0, 0, 0, 0];
            report[1..].copy_from_slice(&errno.to_ne_bytes());
            let _ = writer.write_all(&report);
            // SAFETY: no requirement; see above.
            unsafe { libc::_exit(0) }
        }
        child => {
            drop(writer);
            let mut report = [1, 0, 0, 0, 0];
            let read = reader.read_exact(&mut report);
            // SAFETY: `child` is ours and not waited for elsewhere; a null status is allowed.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            read.map_err(TrialError::Start)?;
            let [step, errno @ ..] = report;
            let error = io::Error::from_raw_os_error(i32::from_ne_bytes(errno));
            match step {
                0 => Ok(()),
                2 => Err(TrialError::Namespace(error)),
                3 => Err(TrialError::Mount(error)),
                4 => Err(TrialError::Use(error)),
                _ => Err(TrialError::Start(error)),
            }
        }
    }
}

fn errno_of(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

fn attempt(
    trial: &OverlayTrial<'_>,
    ids: (u32, u32),
    inside: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>,
) -> Result<(), TrialError> {
    enter_namespaces(trial.xattr, ids).map_err(TrialError::Namespace)?;
    let mount = mount_detached(trial).map_err(|errno| TrialError::Mount(errno.into()))?;
    inside(std::os::fd::AsFd::as_fd(&mount)).map_err(TrialError::Use)
}

fn enter_namespaces(xattr: OverlayXattr, (uid, gid): (u32, u32)) -> io::Result<()> {
    let flags = match xattr {
        OverlayXattr::Trusted => UnshareFlags::NEWNS,
        OverlayXattr::User => UnshareFlags::NEWNS | UnshareFlags::NEWUSER,
    };
    // SAFETY: unsharing is unsound only for what is shared between threads; the child has one.
    unsafe { rustix::thread::unshare_unsafe(flags)? };
    if xattr == OverlayXattr::User {
        std::fs::write("/proc/self/setgroups", "deny")?;
        std::fs::write("/proc/self/uid_map", format!("{uid} {uid} 1\n"))?;
        std::fs::write("/proc/self/gid_map", format!("{gid} {gid} 1\n"))?;
    }
    Ok(())
}

fn mount_detached(trial: &OverlayTrial<'_>) -> rustix::io::Result<OwnedFd> {
    let held = |path: &Path| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(CWD, path, flags, Mode::empty())
    };
    let (lower, upper, work) = (held(trial.lower)?, held(trial.upper)?, held(trial.work)?);
    // Layers go by descriptor: a colon or backslash in a path would need escaping.
    let by_fd = |fd: &OwnedFd| format!("/proc/self/fd/{}", fd.as_raw_fd());
    let context = rustix::mount::fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let set = |key: &str, value: &str| {
        rustix::mount::fsconfig_set_string(std::os::fd::AsFd::as_fd(&context), key, value)
    };
    set("lowerdir", &by_fd(&lower))?;
    set("upperdir", &by_fd(&upper))?;
    set("workdir", &by_fd(&work))?;
    match trial.xattr {
        OverlayXattr::User => {
            rustix::mount::fsconfig_set_flag(std::os::fd::AsFd::as_fd(&context), "userxattr")?;
        }
        OverlayXattr::Trusted => {
            set("redirect_dir", "on")?;
            set("metacopy", "on")?;
            set("index", "off")?;
        }
    }
    rustix::mount::fsconfig_create(std::os::fd::AsFd::as_fd(&context))?;
    rustix::mount::fsmount(
        std::os::fd::AsFd::as_fd(&context),
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )
}
