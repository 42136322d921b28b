//! Which extended attributes go along with a copy, and how failing to set one is taken.

use std::io;

use rustix::io::Errno;

use super::Privileges;

/// The attribute that holds a program's capabilities.
const CAPABILITY: &[u8] = b"security.capability";

/// Does `attribute` go along?
pub(super) fn goes_along(attribute: &[u8], privileges: Privileges) -> bool {
    privileges == Privileges::Keep || attribute != CAPABILITY
}

/// A label of the system (SELinux's, an integrity hash) is the system's to give: not being allowed
/// to set it is no failure of the copy. Anything else that is lost is.
pub(super) fn set(attribute: &[u8], result: rustix::io::Result<()>) -> io::Result<()> {
    let systems = attribute.starts_with(b"security.") || attribute.starts_with(b"trusted.");
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

/// A rule that a new entry inherited from its directory and that the original does not have.
pub(super) fn is_inherited(attribute: &[u8]) -> bool {
    attribute.starts_with(b"system.posix_acl_")
}
