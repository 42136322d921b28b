//! Performing a plan: the mounts of a sandbox, made in its init.
//!
//! The init starts with a copy of the host's mounts. First everything that is to be mounted is made
//! off to the side, while the host is still to be seen; then the whole copy is made read-only in one
//! call; then each mount is put in its place, by descriptor. No second root is built, so nothing has
//! to be pivoted to or unmounted, which is where other launchers spend their time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use sandbox_linux::mount::{self, Access, Depth, Layers, MountPoint, OverlayKind};
use sandbox_model::OverlayXattr;

use crate::devices;
use crate::plan::{Kernel, Mount, Operation, Plan};
use crate::private_home::{self, Home};
use crate::step::{Failed, Step};

/// A mount made, and what is left to do with it.
struct Made {
    mount: OwnedFd,
    /// The home's own.
    home: Option<private_home::Made>,
    /// Device nodes cloned from the host.
    nodes: Vec<OwnedFd>,
    /// What the kernel can restrict only after it was attached.
    restrict_later: Option<Access>,
}

/// Whether the host's mounts are still writable copies, or were sealed by the run that is joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// A fresh copy of the host's mounts.
    Open,
    /// A copy of another run's.
    Sealed,
}

/// Makes, seals, attaches. Gives back the mount of `/proc`, in which no link can be followed yet.
pub fn perform(plan: &Plan, host: Host) -> Result<Option<OwnedFd>, Failed> {
    let mut made = Vec::with_capacity(plan.operations.len());
    for (index, operation) in plan.operations.iter().enumerate() {
        made.push(make(operation).map_err(Step::Make(index).failed())?);
    }
    if host == Host::Open {
        mount::seal().map_err(Step::Seal.failed())?;
    }
    let mut root = open_root().map_err(Step::Seal.failed())?;
    for (index, operation) in plan.operations.iter().enumerate() {
        let failed = Step::Attach(index).failed();
        attach(&root, operation, &made[index]).map_err(failed)?;
        if operation.target == Path::new("/") {
            root = enter(&made[index].mount).map_err(Step::Attach(index).failed())?;
        }
    }
    for (index, operation) in plan.operations.iter().enumerate() {
        finish(operation, &made[index]).map_err(Step::Attach(index).failed())?;
    }
    rustix::process::chdir("/")
        .map_err(io::Error::from)
        .map_err(Step::Seal.failed())?;
    let is_proc = |operation: &Operation| matches!(operation.mount, Mount::Processes(_));
    let processes = plan.operations.iter().position(is_proc);
    Ok(processes.map(|index| made.swap_remove(index).mount))
}

fn open_root() -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(
        "/",
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

/// A workspace at `/` itself covers the root without becoming it; this makes it the root.
fn enter(mount: &OwnedFd) -> io::Result<OwnedFd> {
    rustix::process::fchdir(mount)?;
    rustix::process::chroot(".")?;
    open_root()
}

fn make(operation: &Operation) -> io::Result<Made> {
    let mut nodes = Vec::new();
    let mut restrict_later = None;
    let mut home = None;
    let mount = match &operation.mount {
        Mount::Scratch(mode) => mount::tmpfs(*mode)?,
        Mount::Cover(MountPoint::Directory) => mount::tmpfs(0o555)?,
        // The host's null device reads as an empty file, and takes what is written nowhere.
        Mount::Cover(MountPoint::File) => devices::node("null")?,
        Mount::Devices => {
            nodes = devices::nodes()?;
            mount::tmpfs(0o755)?
        }
        Mount::Processes(_) => mount::proc()?,
        Mount::Overlay {
            lower,
            upper,
            work,
            xattr,
        } => mount::overlay(Layers { lower, upper, work }, kind_of(*xattr))?,
        Mount::Home { .. } => {
            let made = private_home::make(home_of(&operation.mount)?)?;
            let root = made.root.try_clone()?;
            home = Some(made);
            root
        }
        Mount::Bind { source, access, .. } => {
            let clone = mount::clone_at(source, Depth::All)?;
            restrict_later = restrict(&clone, *access)?;
            clone
        }
    };
    Ok(Made {
        mount,
        home,
        nodes,
        restrict_later,
    })
}

fn kind_of(xattr: OverlayXattr) -> OverlayKind {
    match xattr {
        OverlayXattr::User => OverlayKind::User,
        OverlayXattr::Trusted => OverlayKind::Trusted,
    }
}

fn home_of(mount: &Mount) -> io::Result<Home<'_>> {
    let Mount::Home {
        root,
        lower,
        upper,
        work,
        xattr,
        entries,
    } = mount
    else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let kind = kind_of(*xattr);
    Ok(Home {
        root,
        lower,
        upper,
        work,
        kind,
        entries,
    })
}

fn attach(root: &OwnedFd, operation: &Operation, made: &Made) -> io::Result<()> {
    let kind = match &operation.mount {
        Mount::Bind { kind, .. } | Mount::Cover(kind) => *kind,
        _ => MountPoint::Directory,
    };
    let target = match (&operation.mount, mount::resolve(root, &operation.target)) {
        // Hidden already: it lies beneath something that was covered.
        (Mount::Cover(_), Err(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        (_, Err(error)) if error.kind() == io::ErrorKind::NotFound => {
            mount::resolve_or_make(root.as_fd(), &operation.target, kind)?
        }
        (_, outcome) => outcome?,
    };
    match &operation.mount {
        Mount::Home { .. } => match &made.home {
            Some(made) => private_home::attach(home_of(&operation.mount)?, made, &target),
            None => Err(io::ErrorKind::InvalidInput.into()),
        },
        Mount::Devices => {
            mount::attach(&made.mount, &target)?;
            devices::fill(made.mount.as_fd(), &made.nodes)
        }
        Mount::Processes(kernel) => {
            mount::attach(&made.mount, &target)?;
            protect(made.mount.as_fd(), *kernel)
        }
        _ => mount::attach(&made.mount, &target),
    }
}

/// What real root could turn against the host by writing, or learn more than it should from.
const READ_ONLY: &[&str] = &["sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi"];

fn protect(processes: BorrowedFd<'_>, kernel: Kernel) -> io::Result<()> {
    if kernel == Kernel::Open {
        return Ok(());
    }
    for name in READ_ONLY {
        let place = match mount::resolve(processes, Path::new(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            outcome => outcome?,
        };
        let clone = mount::clone_of(&place)?;
        let later = restrict(&clone, Access::ReadOnly)?;
        mount::attach(&clone, &place)?;
        if let Some(access) = later {
            mount::restrict_attached(clone.as_fd(), access)?;
        }
    }
    Ok(())
}

/// What could not be done before everything was in place.
fn finish(operation: &Operation, made: &Made) -> io::Result<()> {
    let later = match &operation.mount {
        Mount::Cover(MountPoint::Directory) => restrict(&made.mount, Access::ReadOnly)?,
        _ => made.restrict_later,
    };
    match later {
        Some(access) => mount::restrict_attached(made.mount.as_fd(), access),
        None => Ok(()),
    }
}

/// Restricts a mount, or says what is to be done after it was attached where the kernel is old.
fn restrict(mount: &OwnedFd, access: Access) -> io::Result<Option<Access>> {
    match mount::restrict(mount, access) {
        Err(error) if mount::missing(&error) => Ok(Some(access)),
        outcome => outcome.map(|()| None),
    }
}
