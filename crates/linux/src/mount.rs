//! Filesystems made off to the side and put in place by descriptor.
//!
//! Nothing here takes a target as a path string: the caller resolves it with [`resolve`], beneath a
//! root and through no symlink, and [`attach`] mounts onto that very object. A target swapped
//! meanwhile (CVE-2021-30465) is simply not the object that was resolved.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

pub use crate::seal::{
    Access, follow_links, missing, restrict, restrict_alone, restrict_attached, seal,
};

/// How a symlink in a path that is being resolved is met.
const BENEATH: ResolveFlags = ResolveFlags::IN_ROOT
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);

/// Handles for looking, not for reading.
const PATH: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// The layers of an overlay.
#[derive(Debug, Clone, Copy)]
pub struct Layers<'l> {
    /// What shines through.
    pub lower: &'l Path,
    /// What is written.
    pub upper: &'l Path,
    /// The overlay's scratch directory, on the upper's filesystem. Made here: the kernel refuses one
    /// that was used volatile before, and tidies up one that was used at all, both at a price.
    pub work: &'l Path,
}

/// Who mounts an overlay, which decides what it can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverlayKind {
    /// Marks in `user.overlay.*`; redirects and metacopy are refused by the kernel.
    User,
    /// Marks in `trusted.overlay.*`, with both.
    Trusted,
}

/// Makes an overlay, attached nowhere yet. The layers must be seen writable: before [`seal`].
///
/// It is `volatile`: without that, the end of a run would write out the whole filesystem that holds
/// the upper (`syncfs`, 100 ms and more on a busy disk), and so would every `fsync` inside. What
/// the command wrote is in the page cache of that filesystem as any other program's output is, and
/// outlives every crash but the machine's own.
pub fn overlay(layers: Layers<'_>, kind: OverlayKind) -> io::Result<OwnedFd> {
    let lower = rustix::fs::open(layers.lower, PATH | OFlags::DIRECTORY, Mode::empty())?;
    let upper = rustix::fs::open(layers.upper, PATH | OFlags::DIRECTORY, Mode::empty())?;
    let work = rustix::fs::open(layers.work, PATH | OFlags::DIRECTORY, Mode::empty())?;
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "source", "sandbox")?;
    // Named by descriptor: fsconfig takes no string above 255 bytes and splits lowerdir at colons.
    for (option, layer) in [
        ("lowerdir", &lower),
        ("upperdir", &upper),
        ("workdir", &work),
    ] {
        fsconfig_set_string(&context, option, descriptor_path(layer.as_fd()))?;
    }
    fsconfig_set_flag(&context, "volatile")?;
    match kind {
        OverlayKind::User => fsconfig_set_flag(&context, "userxattr")?,
        OverlayKind::Trusted => {
            fsconfig_set_string(&context, "redirect_dir", "on")?;
            fsconfig_set_string(&context, "metacopy", "on")?;
            fsconfig_set_string(&context, "index", "off")?;
        }
    }
    made(
        &context,
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV,
    )
}

/// Makes an empty tmpfs whose root has `mode`.
pub fn tmpfs(mode: u32) -> io::Result<OwnedFd> {
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    new_tmpfs(mode, attributes)
}

/// The same, for device files; real root's alone work in it.
pub fn tmpfs_with_devices(mode: u32) -> io::Result<OwnedFd> {
    new_tmpfs(mode, MountAttrFlags::MOUNT_ATTR_NOSUID)
}

fn new_tmpfs(mode: u32, attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "mode", format!("{mode:o}"))?;
    made(&context, attributes)
}

/// Makes a procfs of the caller's PID namespace. Where the kernel can (5.14), no link in it is
/// followed until [`follow_links`]: neither `/proc/self` nor, above all, `/proc/self/exe`.
pub fn proc() -> io::Result<OwnedFd> {
    let context = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let mount = |attributes| fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes);
    match mount(NOTHING_SPECIAL | MountAttrFlags::MOUNT_ATTR_NOSYMFOLLOW) {
        Err(rustix::io::Errno::INVAL) => Ok(mount(NOTHING_SPECIAL)?),
        outcome => Ok(outcome?),
    }
}

/// Makes a devpts with terminals of its own.
pub fn devpts() -> io::Result<OwnedFd> {
    let context = fsopen("devpts", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "ptmxmode", "0666")?;
    fsconfig_set_string(&context, "mode", "0620")?;
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    made(&context, flags)
}

const NOTHING_SPECIAL: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID
    .union(MountAttrFlags::MOUNT_ATTR_NODEV)
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC);

fn made(context: &OwnedFd, attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    fsconfig_create(context)?;
    Ok(fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// How much of a tree a clone takes along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// One mount.
    One,
    /// All mounts below it too.
    All,
}

/// Clones the mount at `path` (a file or a directory), attached nowhere yet.
pub fn clone_at(path: &Path, depth: Depth) -> io::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    if depth == Depth::All {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    Ok(open_tree(CWD, path, flags)?)
}

/// The same for what `object` is.
pub fn clone_of(object: impl AsFd) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    Ok(open_tree(object, "", flags)?)
}

/// Puts a detached mount onto `target`.
pub fn attach(mount: impl AsFd, target: impl AsFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount, "", target, "", flags)?)
}

/// Makes a detached mount the root of this mount namespace, in place of everything that was there:
/// the old root and all below it are gone from the namespace when this returns.
pub fn become_root(mount: impl AsFd) -> io::Result<()> {
    let old = rustix::fs::open("/", PATH | OFlags::DIRECTORY, Mode::empty())?;
    attach(&mount, &old)?;
    rustix::process::fchdir(&mount)?;
    // Onto itself: the kernel stacks the old root upon the new, and that is what `.` is then.
    rustix::process::pivot_root(".", ".")?;
    rustix::mount::unmount(".", rustix::mount::UnmountFlags::DETACH)?;
    Ok(rustix::process::chdir("/")?)
}

/// The object at absolute `path` beneath `root`. Symlinks are refused with `ELOOP`.
pub fn resolve(root: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat2(
        root,
        path,
        PATH,
        Mode::empty(),
        BENEATH,
    )?)
}

/// What kind of mount point to make where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountPoint {
    /// A directory.
    Directory,
    /// An empty file.
    File,
}

/// As [`resolve`], making what is missing of the path, step by step and by descriptor.
pub fn resolve_or_make(root: BorrowedFd<'_>, path: &Path, kind: MountPoint) -> io::Result<OwnedFd> {
    match resolve(root, path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        outcome => return outcome,
    }
    let names: Vec<_> = path
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect();
    let mut place = root.try_clone_to_owned()?;
    for (index, name) in names.iter().enumerate() {
        let last = index + 1 == names.len();
        let name = Path::new(name);
        place = match resolve(&place, name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(
                    place.as_fd(),
                    name,
                    if last { kind } else { MountPoint::Directory },
                )?;
                resolve(&place, name)?
            }
            outcome => outcome?,
        };
    }
    Ok(place)
}

fn make(place: BorrowedFd<'_>, name: &Path, kind: MountPoint) -> io::Result<()> {
    match kind {
        MountPoint::Directory => {
            rustix::fs::mkdirat(place, name, Mode::from_raw_mode(0o755))?;
        }
        MountPoint::File => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            rustix::fs::openat(place, name, flags, Mode::from_raw_mode(0o644))?;
        }
    }
    Ok(())
}

/// A name for what a descriptor stands for, good wherever the host's `/proc` is mounted.
pub fn descriptor_path(descriptor: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd())
}

/// Mounts that lie strictly below `directory`, from `mountinfo` text.
pub fn below(mountinfo: &[u8], directory: &Path) -> Vec<std::path::PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let points = mountinfo.split(|byte| *byte == b'\n').filter_map(|line| {
        let field = line.split(|byte| *byte == b' ').nth(4)?;
        Some(std::path::PathBuf::from(std::ffi::OsString::from_vec(
            unescape(field),
        )))
    });
    points
        .filter(|point| point != directory && point.starts_with(directory))
        .collect()
}

/// The kernel writes space, tab, newline and backslash as three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let digits = after
            .get(..3)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match (first, code) {
            (b'\\', Some(code)) => {
                bytes.push(code);
                rest = &after[3..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_below_a_directory_are_found_and_its_own_is_not() {
        let text = b"1 0 8:1 / / rw - ext4 /dev/vda rw\n\
            2 1 0:5 / /home/ada\\040l/app rw - tmpfs tmpfs rw\n\
            3 2 0:6 / /home/ada\\040l/app/target rw - tmpfs tmpfs rw\n\
            4 1 0:7 / /home/ada\\040l/application rw - tmpfs tmpfs rw\n";
        let found = below(text, Path::new("/home/ada l/app"));
        assert_eq!(found, [Path::new("/home/ada l/app/target")]);
    }

    #[test]
    fn a_symlink_at_a_mount_target_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc", directory.path().join("link")).unwrap();
        let root = rustix::fs::open(directory.path(), PATH, Mode::empty()).unwrap();
        for path in ["link", "link/passwd"] {
            let error = resolve(&root, Path::new(path)).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ELOOP), "{path}");
            let made = resolve_or_make(root.as_fd(), Path::new(path), MountPoint::Directory);
            assert_eq!(
                made.unwrap_err().raw_os_error(),
                Some(libc::ELOOP),
                "{path}"
            );
        }
    }

    #[test]
    fn missing_mount_points_are_made_beneath_the_root_only() {
        let directory = tempfile::tempdir().unwrap();
        let root = rustix::fs::open(directory.path(), PATH, Mode::empty()).unwrap();
        let path = Path::new("/a/b/../../../c");
        // `..` is no name to make; what remains lies beneath the root.
        let _ = resolve_or_make(root.as_fd(), path, MountPoint::Directory);
        assert!(!Path::new("/c").exists());
        resolve_or_make(root.as_fd(), Path::new("/x/y/z"), MountPoint::File).unwrap();
        assert!(directory.path().join("x/y/z").is_file());
    }
}
