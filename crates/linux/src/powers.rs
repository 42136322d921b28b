//! Capabilities of a supervisor that acts as several users without being root.
//!
//! A supervisor has its own user and keeps the capabilities that it needs to act as the users of its sessions.
//! [`act_as`] makes it one of them until the next call. A process that it starts meanwhile stays that user, and loses
//! the capabilities when it calls [`drop_all_but`] or is in a new user namespace.

use std::io;

use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, capabilities_secure_bits,
    set_capabilities, set_capabilities_secure_bits,
};

use crate::identity::{Ids, become_user};

/// What a supervisor needs: to become another user, to use the files of each and to end their processes, and to
/// see what files those have open.
const NEEDED: CapabilitySet = CapabilitySet::SETUID
    .union(CapabilitySet::SETGID)
    .union(FILES)
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SYS_PTRACE);

/// What it keeps. With the last one it can send descriptors however many are in flight.
const KEPT: CapabilitySet = NEEDED.union(CapabilitySet::SYS_RESOURCE);

/// What it takes to use the files of others.
const FILES: CapabilitySet = CapabilitySet::DAC_OVERRIDE
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER);

/// What it takes to see which files others have open, how large they are, and to end who has too many.
const COUNTING: CapabilitySet = CapabilitySet::DAC_READ_SEARCH
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::KILL);

/// What a process may do beyond what its user may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Powers {
    /// Nothing.
    None,
    /// Kill the processes of other users. A process without it also cannot take its children of other users with it
    /// when it dies: the kernel sends them their parent's death as that parent.
    Kill,
    /// Use the files of other users.
    Files,
    /// Count the files of other users, and kill their processes.
    Count,
    /// What a supervisor may.
    All,
}

impl Powers {
    fn set(self) -> CapabilitySet {
        match self {
            Powers::None => CapabilitySet::empty(),
            Powers::Kill => CapabilitySet::KILL,
            Powers::Files => FILES,
            Powers::Count => COUNTING,
            Powers::All => KEPT,
        }
    }
}

/// Has the calling process what it takes to become a supervisor? Root in a container may not.
pub fn suffice() -> bool {
    let needed = NEEDED.union(CapabilitySet::SETPCAP);
    capabilities(None).is_ok_and(|own| own.effective.contains(needed))
}

/// Makes the calling process, which is real root and has one thread, a supervisor that is `user`.
pub fn become_supervisor(user: Ids) -> io::Result<()> {
    let bits = capabilities_secure_bits()? | CapabilitiesSecureBits::NO_SETUID_FIXUP;
    set_capabilities_secure_bits(bits)?;
    become_user(user)?;
    set(KEPT, KEPT)
}

/// Makes a supervisor `user`, with these powers in effect, until it is called again.
pub fn act_as(user: Ids, powers: Powers) -> io::Result<()> {
    set(KEPT, KEPT)?;
    become_user(user)?;
    set(KEPT, powers.set())
}

/// Leaves a process that a supervisor started these powers, for good.
pub fn drop_all_but(powers: Powers) -> io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    set(powers.set(), powers.set())
}

/// Does `work` with these powers in effect as well, as far as the process may have them.
pub fn with<T>(powers: Powers, work: impl FnOnce() -> T) -> io::Result<T> {
    let before = capabilities(None)?;
    let wanted = powers.set() & before.permitted;
    if before.effective.contains(wanted) {
        return Ok(work());
    }
    let more = CapabilitySets {
        effective: before.effective | wanted,
        ..before
    };
    set_capabilities(None, more)?;
    let done = work();
    set_capabilities(None, before)?;
    Ok(done)
}

/// What the process does not have is not given to it.
fn set(permitted: CapabilitySet, effective: CapabilitySet) -> io::Result<()> {
    let own = capabilities(None)?.permitted;
    let sets = CapabilitySets {
        effective: effective & own,
        permitted: permitted & own,
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, sets)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::clone::{Namespaces, Parent, clone};
    use crate::identity::map_self;

    fn ids(id: u32) -> Ids {
        Ids {
            user: id,
            group: id,
        }
    }

    #[test]
    fn a_supervisor_acts_as_others_and_what_it_starts_cannot() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let (child, ()) = clone(Namespaces::empty(), Parent::Caller, (), || {
            let body = || {
                become_supervisor(ids(61_000)).unwrap();
                act_as(ids(61_001), Powers::All).unwrap();
                std::fs::write(path.join("own"), "own").unwrap();
                act_as(ids(61_002), Powers::None).unwrap();
                std::fs::write(path.join("closed"), "closed").unwrap_err();
                with(Powers::Files, || {
                    std::fs::write(path.join("other"), "other")
                })
                .unwrap()
                .unwrap();
                std::fs::write(path.join("closed"), "closed").unwrap_err();
                act_as(ids(61_000), Powers::All).unwrap();
                let owner = path.join("own").metadata().unwrap();
                assert_eq!((owner.uid(), owner.gid()), (61_001, 61_001));
                // One that drops it, and one in a user namespace of its own, have nothing of it.
                act_as(ids(61_001), Powers::All).unwrap();
                let (dropped, ()) = clone(Namespaces::empty(), Parent::Caller, (), || {
                    drop_all_but(Powers::None).unwrap();
                    i32::from(act_as(ids(61_002), Powers::All).is_ok())
                })
                .unwrap();
                assert_eq!(dropped.wait().unwrap().exit_status(), Some(0));
                let (apart, ()) = clone(Namespaces::NEWUSER, Parent::Caller, (), || {
                    map_self(
                        ids(1000),
                        Ids {
                            user: 61_001,
                            group: 61_001,
                        },
                    )
                    .unwrap();
                    i32::from(std::fs::write(path.join("apart"), "apart").is_ok())
                })
                .unwrap();
                assert_eq!(apart.wait().unwrap().exit_status(), Some(0));
            };
            i32::from(std::panic::catch_unwind(body).is_err())
        })
        .unwrap();
        assert_eq!(child.wait().unwrap().exit_status(), Some(0));
    }
}
