//! The second wall: what a process may do with files by path, whatever the mounts say.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};

/// A domain under construction: nothing is allowed that no rule allows.
#[derive(Debug)]
pub struct Domain {
    ruleset: RulesetCreated,
}

/// What a rule allows beneath its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// Looking, reading, executing.
    Read,
    /// Everything that files and directories have.
    Write,
    /// Reading, writing and controlling a device. For a domain [with devices](Domain::with_devices).
    Device,
}

/// How much of what was asked for the kernel enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enforced {
    /// All of it.
    Fully,
    /// What its version knows.
    Partly,
    /// Nothing: the kernel has no Landlock, or it is off.
    Not,
}

/// Up to here every right is handled. Device ioctls are left alone where the sandbox has a `/dev` of
/// its own: the nodes in it are harmless.
fn handled() -> BitFlags<AccessFs> {
    AccessFs::from_all(ABI::V3)
}

fn device() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev
}

impl Domain {
    /// An empty domain, with scopes for abstract sockets and signals where the kernel has them.
    pub fn new() -> io::Result<Domain> {
        Domain::handling(handled())
    }

    /// The same for a command that has the host's `/dev`: on devices that it opens no ioctl is allowed
    /// but where [`Grant::Device`] allows it. Before version 5 (Linux 6.10) the kernel cannot do that,
    /// and ioctls are allowed on whatever may be opened.
    pub fn with_devices() -> io::Result<Domain> {
        Domain::handling(handled() | AccessFs::IoctlDev)
    }

    fn handling(rights: BitFlags<AccessFs>) -> io::Result<Domain> {
        let ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(rights)
            .and_then(|ruleset| ruleset.scope(Scope::AbstractUnixSocket | Scope::Signal))
            .and_then(Ruleset::create)
            .map_err(io::Error::other)?;
        Ok(Domain { ruleset })
    }

    /// Grants rights beneath `place` (an `O_PATH` descriptor of a file or directory).
    pub fn allow(self, place: impl AsFd, grant: Grant) -> io::Result<Domain> {
        let rights = match grant {
            Grant::Read => AccessFs::from_read(ABI::V3),
            Grant::Write => handled(),
            Grant::Device => device(),
        };
        let rule = PathBeneath::<BorrowedFd<'_>>::new(place.as_fd(), rights);
        let ruleset = self.ruleset.add_rule(rule).map_err(io::Error::other)?;
        Ok(Domain { ruleset })
    }

    /// Enters the domain, for good and for everything started from here. Sets no-new-privileges.
    pub fn enter(self) -> io::Result<Enforced> {
        let status = self.ruleset.restrict_self().map_err(io::Error::other)?;
        Ok(match status.ruleset {
            RulesetStatus::FullyEnforced => Enforced::Fully,
            RulesetStatus::PartiallyEnforced => Enforced::Partly,
            RulesetStatus::NotEnforced => Enforced::Not,
        })
    }
}

/// The kernel's Landlock version; 0 when there is none.
pub fn version() -> u32 {
    const VERSION: libc::c_uint = 1;
    let null = std::ptr::null::<libc::c_void>();
    // SAFETY: with a null attribute of size zero and this flag the call only returns a number.
    let result = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, null, 0usize, VERSION) };
    u32::try_from(result).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags};

    #[test]
    fn devices_are_controlled_only_where_that_is_granted() {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let multiplexer = rustix::fs::open("/dev/ptmx", flags, Mode::empty()).unwrap();
        // A system call that asks a terminal, which a device that is only read and written refuses.
        let is_controlled = |grant: Grant| {
            let domain = Domain::with_devices().unwrap();
            let domain = domain.allow(&multiplexer, grant).unwrap();
            let within = || {
                assert_ne!(domain.enter().unwrap(), Enforced::Not);
                let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
                let opened = rustix::fs::open("/dev/ptmx", flags, Mode::empty()).unwrap();
                rustix::pty::ptsname(&opened, Vec::new()).is_ok()
            };
            std::thread::scope(|scope| scope.spawn(within).join().unwrap())
        };
        assert!(is_controlled(Grant::Device));
        // Version 5 of Landlock, Linux 6.10.
        assert_eq!(is_controlled(Grant::Write), version() < 5);
    }

    #[test]
    fn what_no_rule_allows_is_denied() {
        assert!(
            version() > 0,
            "this host has no Landlock; the test cannot run"
        );
        let directory = tempfile::tempdir().unwrap();
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let root = rustix::fs::open("/", flags, Mode::empty()).unwrap();
        let writable = directory.path().join("writable");
        std::fs::create_dir(&writable).unwrap();
        let place = rustix::fs::open(&writable, flags, Mode::empty()).unwrap();
        let domain = Domain::new().unwrap();
        let domain = domain.allow(&root, Grant::Read).unwrap();
        let domain = domain.allow(&place, Grant::Write).unwrap();
        // It is a thread's. Outside of it the directory can be removed.
        let within = || {
            assert_ne!(domain.enter().unwrap(), Enforced::Not);
            std::fs::write(writable.join("a"), "a").unwrap();
            std::fs::create_dir(writable.join("d")).unwrap();
            std::fs::rename(writable.join("a"), writable.join("d/a")).unwrap();
            assert!(std::fs::write(directory.path().join("b"), "b").is_err());
            assert!(std::fs::read("/etc/passwd").is_ok());
        };
        std::thread::scope(|scope| scope.spawn(within).join().unwrap());
    }
}
