//! As whom a server runs.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// A user and group, or whoever runs the test.
#[derive(Debug, Clone, Copy)]
pub struct Account(Option<(u32, u32)>);

impl Account {
    /// Whoever runs the test.
    pub const OWN: Account = Account(None);

    /// Whoever runs the test, or an ordinary user where that is root: databases refuse root.
    pub fn ordinary() -> Account {
        if !rustix::process::geteuid().is_root() {
            return Account::OWN;
        }
        let passwd = std::fs::read_to_string("/etc/passwd").expect("/etc/passwd is readable");
        let found = ["tester", "postgres"]
            .iter()
            .find_map(|name| ids(&passwd, name));
        assert!(
            found.is_some(),
            "the server needs an ordinary user to run as\nhint: run `scripts/set-up test`"
        );
        Account(found)
    }

    /// Lets `command` run as this user.
    pub fn apply(self, command: &mut Command) -> &mut Command {
        match self.0 {
            Some((uid, gid)) => command.uid(uid).gid(gid),
            None => command,
        }
    }

    /// Gives `path` to this user.
    pub fn own(self, path: &Path) {
        if let Some((uid, gid)) = self.0 {
            std::os::unix::fs::chown(path, Some(uid), Some(gid)).expect("root may give away");
        }
    }
}

fn ids(passwd: &str, name: &str) -> Option<(u32, u32)> {
    let mut fields = passwd
        .lines()
        .map(|line| line.split(':'))
        .find_map(|mut fields| (fields.next() == Some(name)).then_some(fields))?
        .skip(1);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_its_whole_name() {
        let passwd =
            "root:x:0:0::/root:/bin/sh\ntesters:x:7:8::/:\ntester:x:1001:1002::/:/bin/sh\n";
        assert_eq!(ids(passwd, "tester"), Some((1001, 1002)));
        assert_eq!(ids(passwd, "postgres"), None);
    }
}
