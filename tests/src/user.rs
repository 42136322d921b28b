//! Who runs the binary.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The one who runs a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// Real root.
    Root,
    /// The ordinary user `tester`, without a supplementary group.
    Tester,
}

impl User {
    /// Its user and group id. Panics where `tester` does not exist.
    pub fn ids(self) -> (u32, u32) {
        match self {
            User::Root => (0, 0),
            User::Tester => {
                let passwd = fs::read_to_string("/etc/passwd").expect("/etc/passwd is readable");
                let line = passwd
                    .lines()
                    .find(|line| line.starts_with("tester:"))
                    .expect("the tests need an ordinary user: useradd -m tester");
                let mut ids = line.split(':').skip(2).map(|id| id.parse().expect("an id"));
                (ids.next().expect("a uid"), ids.next().expect("a gid"))
            }
        }
    }

    /// The home that the system's list of users names, which need not be the fixture's.
    pub fn listed_home(self) -> PathBuf {
        let (uid, _) = self.ids();
        let passwd = fs::read_to_string("/etc/passwd").expect("/etc/passwd is readable");
        let mut entries = passwd
            .lines()
            .map(|line| line.split(':').collect::<Vec<_>>());
        let entry = entries.find(|fields| fields.get(2) == Some(&uid.to_string().as_str()));
        let entry = entry.expect("the user is in the list");
        PathBuf::from(entry.get(5).expect("a home"))
    }

    /// Lets `command` run as this user. (The standard library drops root's groups with the id.)
    pub fn apply(self, command: &mut Command) -> &mut Command {
        assert!(
            rustix::process::geteuid().is_root(),
            "these tests run as root"
        );
        let (uid, gid) = self.ids();
        match self {
            User::Root => command,
            User::Tester => command.uid(uid).gid(gid),
        }
    }

    /// Gives `path` to this user.
    pub fn own(self, path: &Path) {
        let (uid, gid) = self.ids();
        std::os::unix::fs::lchown(path, Some(uid), Some(gid)).expect("chown");
    }
}
