//! Which extended attributes go along with a copy, and how failing to set one is taken.

use std::fs::File;
use std::io;
use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::process::{getegid, geteuid};

use super::Privileges;
use crate::tree::Dir;

/// The attribute that holds a program's capabilities.
const CAPABILITY: &[u8] = b"security.capability";

/// Does `attribute` go along?
pub(super) fn goes_along(attribute: &[u8], privileges: Privileges) -> bool {
    privileges == Privileges::Keep || attribute != CAPABILITY
}

/// A label of the system (SELinux's, an integrity hash) is the system's to give: not being allowed
/// to set it is no failure of the copy. Anything else that is lost is.
pub(super) fn set(attribute: &[u8], result: rustix::io::Result<()>) -> io::Result<()> {
    let systems = attribute.starts_with(b"security.");
    match result {
        Err(Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP) if systems => Ok(()),
        result => Ok(result?),
    }
}

/// The mode a copy gets.
pub(super) fn mode(mode: u32, is_directory: bool, privileges: Privileges) -> u32 {
    match (privileges, is_directory) {
        (Privileges::Keep, _) => mode,
        // Set-group-id on a directory hands on a group, not a privilege.
        (Privileges::Strip, true) => mode & !0o4000,
        (Privileges::Strip, false) => mode & !0o6000,
    }
}

/// The names of an open file's extended attributes.
pub(super) fn of(file: &File) -> io::Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for room in [256, 64 * 1024] {
        names.resize(room, 0);
        match rustix::fs::flistxattr(file, &mut names[..]) {
            Ok(length) => {
                names.truncate(length);
                break;
            }
            Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
            // The kernel has no lists longer than the second.
            Err(Errno::RANGE) if room == 256 => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    let names = names.split(|byte| *byte == 0);
    Ok(names
        .filter(|name| !name.is_empty())
        .map(<[u8]>::to_vec)
        .collect())
}

/// A rule that a new entry inherited from its directory and that the original does not have.
pub(super) fn is_inherited(attribute: &[u8]) -> bool {
    attribute.starts_with(b"system.posix_acl_")
}

/// The owner and group that new files get.
pub(super) fn own_ids() -> (u32, u32) {
    static IDS: OnceLock<(u32, u32)> = OnceLock::new();
    *IDS.get_or_init(|| (geteuid().as_raw(), getegid().as_raw()))
}

/// The bits that creation takes away, read without changing them as `umask(2)` would. All, where
/// they cannot be read: then every mode is set explicitly.
pub(super) fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|text| u32::from_str_radix(text.trim(), 8).ok())
        .unwrap_or(0o777)
}

/// Is this directory on a filesystem that is a view of the kernel rather than files?
pub(super) fn is_pseudo_filesystem(dir: &Dir) -> io::Result<bool> {
    const PSEUDO: [i64; 12] = [
        0x9fa0,      // proc
        0x6265_6572, // sysfs
        0x1cd1,      // devpts
        0x0027_e0eb, // cgroup
        0x6367_7270, // cgroup2
        0x6462_6720, // debugfs
        0x7472_6163, // tracefs
        0x7363_6673, // securityfs
        0xcafe_4a11, // bpf
        0x4249_4e4d, // binfmt_misc
        0xde5e_81e4, // efivarfs
        0x1980_0202, // mqueue
    ];
    Ok(PSEUDO.contains(&(rustix::fs::fstatfs(dir.fd())?.f_type as i64)))
}
