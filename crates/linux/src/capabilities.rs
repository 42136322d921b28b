//! Giving up privileges for good.

use std::io;

use rustix::thread::{CapabilitySet, CapabilitySets};

/// Drops every capability from every set of the calling thread, the bounding set included, and
/// forbids regaining any by exec.
pub fn drop_all() -> io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    drop_bounding()?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

/// The kernel says EINVAL at the first capability it does not know, so no list is needed. Without
/// CAP_SETPCAP the bounding set stays; there is nothing in the permitted set then either.
fn drop_bounding() -> io::Result<()> {
    for capability in 0..64 {
        // SAFETY: PR_CAPBSET_DROP takes a number and touches no memory of ours.
        let result = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        if result < 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EINVAL | libc::EPERM) => Ok(()),
                _ => Err(error),
            };
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_in_any_set() {
        drop_all().unwrap();
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            let line = status.lines().find(|line| line.starts_with(set)).unwrap();
            assert!(line.ends_with("0000000000000000"), "{line}");
        }
        assert!(status.contains("NoNewPrivs:\t1"));
    }
}
