//! Who a process is inside a user namespace: its id maps, and the names of what it is in.

use std::fs::OpenOptions;
use std::io::{self, Write};

/// A user and a group, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ids {
    /// The user.
    pub user: u32,
    /// The group.
    pub group: u32,
}

impl Ids {
    /// The caller's.
    pub fn own() -> Ids {
        Ids {
            user: rustix::process::geteuid().as_raw(),
            group: rustix::process::getegid().as_raw(),
        }
    }
}

/// Makes the calling process, which has one thread, `user` for good. For real root.
pub fn become_user(user: Ids) -> io::Result<()> {
    use rustix::process::{DumpableBehavior, Gid, Uid, set_dumpable_behavior};
    use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
    let (uid, gid) = (Uid::from_raw(user.user), Gid::from_raw(user.group));
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    // Changing the user takes /proc/self away, by which namespaces are mapped; a program started by
    // that user has it.
    Ok(set_dumpable_behavior(DumpableBehavior::Dumpable)?)
}

/// Maps the caller, who is alone in a new user namespace and was `outside` before, to `inside`.
pub fn map_self(inside: Ids, outside: Ids) -> io::Result<()> {
    // An ordinary user may map a group only after giving up setgroups for good (CVE-2014-8989).
    write("/proc/self/setgroups", "deny")?;
    let map = |inside: u32, outside: u32| format!("{inside} {outside} 1");
    write("/proc/self/uid_map", &map(inside.user, outside.user))?;
    write("/proc/self/gid_map", &map(inside.group, outside.group))
}

/// Maps every id to itself in the new user namespace of `pid`. For real root.
pub fn map_all(pid: i32) -> io::Result<()> {
    const ALL: &str = "0 0 4294967295";
    write(&format!("/proc/{pid}/uid_map"), ALL)?;
    write(&format!("/proc/{pid}/gid_map"), ALL)
}

fn write(path: &str, text: &str) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .open(path)?
        .write_all(text.as_bytes())
}

/// Sets the hostname of the caller's UTS namespace.
pub fn set_hostname(name: &str) -> io::Result<()> {
    Ok(rustix::system::sethostname(name.as_bytes())?)
}
