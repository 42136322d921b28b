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

use crate::devices::{self, Devices};
use crate::own_root;
use crate::plan::{Kernel, Mount, Operation, Plan};
use crate::private_home::{self, Home};
use crate::scratch;
use crate::step::{Failed, Step};

/// What was made for an operation, attached nowhere yet.
enum Made {
    /// One mount, and what the kernel can restrict only after it was attached.
    Mount(OwnedFd, Option<Access>),
    /// The minimal `/dev`.
    Devices(Devices),
    /// The private home.
    Home(private_home::Made),
    /// Nothing yet: it may not be needed, and to take down an unused mount costs a millisecond; or
    /// the kernel makes it only of what is attached.
    Later,
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
    let mut inside = Inside::new().map_err(Step::Seal.failed())?;
    for (index, (operation, made)) in plan.operations.iter().zip(made).enumerate() {
        let failed = Step::Attach(index).failed();
        inside.attach(operation, made).map_err(failed)?;
    }
    inside.finish().map_err(Step::Seal.failed())?;
    Ok(inside.processes)
}

fn make(operation: &Operation) -> io::Result<Made> {
    Ok(match &operation.mount {
        Mount::Scratch(_) | Mount::Cover(_) | Mount::Hide(_) | Mount::Pin | Mount::Root(_) => {
            Made::Later
        }
        Mount::Devices => Made::Devices(devices::make()?),
        Mount::Processes(_) => Made::Mount(mount::proc()?, None),
        Mount::Overlay {
            lower,
            upper,
            work,
            xattr,
        } => {
            scratch::make(work)?;
            let layers = Layers { lower, upper, work };
            Made::Mount(mount::overlay(layers, kind_of(*xattr))?, None)
        }
        Mount::Home { .. } => Made::Home(private_home::make(home_of(&operation.mount)?)?),
        Mount::Bind { source, access, .. } => {
            let clone = mount::clone_at(source, Depth::All)?;
            let later = restrict(&clone, *access)?;
            Made::Mount(clone, later)
        }
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

/// The sandbox's tree of mounts while it is put together.
struct Inside {
    root: OwnedFd,
    processes: Option<OwnedFd>,
    /// The filesystem of all fresh directories, and how many there are.
    scratch: Option<OwnedFd>,
    directories: u32,
    /// Read-only as soon as everything beneath them is in place.
    covers: Vec<OwnedFd>,
}

impl Inside {
    fn new() -> io::Result<Inside> {
        Ok(Inside {
            root: open_root()?,
            processes: None,
            scratch: None,
            directories: 0,
            covers: Vec::new(),
        })
    }

    fn attach(&mut self, operation: &Operation, made: Made) -> io::Result<()> {
        if let Mount::Root(system) = &operation.mount {
            let root = own_root::enter(system)?;
            self.root = open_root()?;
            self.covers.push(root);
            return Ok(());
        }
        let kind = match &operation.mount {
            Mount::Bind { kind, .. } | Mount::Cover(kind) | Mount::Hide(kind) => *kind,
            _ => MountPoint::Directory,
        };
        let target = match (
            &operation.mount,
            mount::resolve(&self.root, &operation.target),
        ) {
            // Hidden already: it lies beneath something that was covered.
            (Mount::Cover(_), Err(error)) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(());
            }
            // It must not be made: whatever was there is somewhere else then.
            (Mount::Hide(_) | Mount::Pin, outcome) => outcome?,
            (_, Err(error)) if error.kind() == io::ErrorKind::NotFound => {
                mount::resolve_or_make(self.root.as_fd(), &operation.target, kind)?
            }
            (_, outcome) => outcome?,
        };
        match made {
            Made::Home(made) => private_home::attach(home_of(&operation.mount)?, &made, &target),
            Made::Devices(devices) => {
                let shared_memory = devices.attach(&target)?;
                self.scratch(&shared_memory, 0o1777)
            }
            Made::Later => match operation.mount {
                Mount::Scratch(mode) => self.scratch(&target, mode),
                Mount::Pin => mount::attach(mount::clone_of(&target)?, &target),
                _ => self.cover(&target, kind),
            },
            Made::Mount(mount, later) => {
                mount::attach(&mount, &target)?;
                if let Some(access) = later {
                    mount::restrict_attached(mount.as_fd(), access)?;
                }
                self.keep(operation, mount)
            }
        }
    }

    /// What of a mount is needed later.
    fn keep(&mut self, operation: &Operation, mount: OwnedFd) -> io::Result<()> {
        if let Mount::Processes(kernel) = operation.mount {
            protect(mount.as_fd(), kernel)?;
            self.processes = Some(mount);
        } else if operation.target == Path::new("/") {
            // A workspace at `/` covers the root without becoming it; this makes it the root.
            rustix::process::fchdir(mount)?;
            rustix::process::chroot(".")?;
            self.root = open_root()?;
        }
        Ok(())
    }

    /// A fresh directory with `mode`. All of them are in one tmpfs, which costs as much as one
    /// of them would: it is attached where the first is to be, and covered by it for good.
    fn scratch(&mut self, target: &OwnedFd, mode: u32) -> io::Result<()> {
        if self.scratch.is_none() {
            let scratch = mount::tmpfs(0o700)?;
            mount::attach(&scratch, target)?;
            self.scratch = Some(scratch);
        }
        let Some(scratch) = &self.scratch else {
            return Ok(());
        };
        self.directories += 1;
        let name = self.directories.to_string();
        rustix::fs::mkdirat(scratch, &name, Mode::from_raw_mode(mode))?;
        let directory = mount::resolve(scratch, Path::new(&name))?;
        mount::attach(mount::clone_of(directory)?, target)
    }

    fn cover(&mut self, target: &OwnedFd, kind: MountPoint) -> io::Result<()> {
        match kind {
            MountPoint::Directory => {
                let empty = mount::tmpfs(0o555)?;
                mount::attach(&empty, target)?;
                self.covers.push(empty);
                Ok(())
            }
            // The null device reads as an empty file, and takes what is written nowhere.
            MountPoint::File => mount::attach(devices::node("null")?, target),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        for cover in self.covers.drain(..) {
            mount::restrict_alone(cover, Access::ReadOnly)?;
        }
        Ok(rustix::process::chdir("/")?)
    }
}

fn open_root() -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    Ok(rustix::fs::open("/", flags, Mode::empty())?)
}

/// What real root could turn against the host by writing.
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

/// Restricts a mount, or says what is to be done after it was attached where the kernel is old.
fn restrict(mount: &OwnedFd, access: Access) -> io::Result<Option<Access>> {
    match mount::restrict(mount, access) {
        Err(error) if mount::missing(&error) => Ok(Some(access)),
        outcome => outcome.map(|()| None),
    }
}
