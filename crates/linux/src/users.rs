//! The system's list of users, as far as it says where their homes are.
//!
//! `/etc/passwd` is read directly: a static binary cannot load the modules that ask other
//! directories (LDAP, systemd-homed, …). Users of those are not found here, and the caller has to
//! decide what follows from that.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Where the list is.
pub const LIST: &str = "/etc/passwd";

/// How much of it is read.
const MOST: u64 = 8 << 20;

/// The home directories of `user`, in the order of the list: several names may share an id. Empty
/// where the list does not have that user, or cannot be read.
pub fn homes(user: u32) -> Vec<PathBuf> {
    read().map_or_else(|_| Vec::new(), |list| homes_in(&list, user))
}

fn read() -> io::Result<Vec<u8>> {
    let mut list = Vec::new();
    let file = std::fs::File::open(LIST)?;
    file.take(MOST).read_to_end(&mut list)?;
    Ok(list)
}

fn homes_in(list: &[u8], user: u32) -> Vec<PathBuf> {
    let user = user.to_string();
    let mut homes: Vec<PathBuf> = Vec::new();
    for line in list.split(|byte| *byte == b'\n') {
        let mut fields = line.split(|byte| *byte == b':');
        if fields.nth(2) != Some(user.as_bytes()) {
            continue;
        }
        // The group and the full name are in between.
        let Some(home) = fields.nth(2) else { continue };
        let home = PathBuf::from(OsStr::from_bytes(home));
        if home.is_absolute() && !homes.contains(&home) {
            homes.push(home);
        }
    }
    homes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const TEXT: &[u8] = b"root:x:0:0:root:/root:/bin/bash\n\
        # ada:x:1000:1000::/commented:/bin/sh\n\
        ada:x:1000:1000:Ada, of London:/home/ada:/bin/sh\n\
        +nis\n\
        broken:x:1001\n\
        relative:x:1002:1002::home:/bin/sh\n\
        toor:x:0:0::/var/toor:/bin/sh";

    #[test]
    fn finds_every_home_of_a_user() {
        let expected = [Path::new("/root"), Path::new("/var/toor")];
        assert_eq!(homes_in(TEXT, 0), expected);
    }

    #[test]
    fn ignores_lines_that_name_no_home() {
        for user in [1001, 1002, 1003] {
            assert_eq!(homes_in(TEXT, user), Vec::<PathBuf>::new(), "{user}");
        }
    }

    #[test]
    fn reads_the_list_of_this_machine() {
        assert!(homes(0).contains(&PathBuf::from("/root")));
    }
}
