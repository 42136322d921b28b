//! The users of this machine whom sessions belong to, where the server is root.
//!
//! Each session has a user of its own, out of a range that no account, no range of subordinate ids and no other
//! server on this machine has. The range that was chosen at the first start is kept in the data directory: the
//! workspaces in there belong to its users.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use sandbox_control::random;
use sandbox_linux::identity::Ids;
use sandbox_linux::{powers, range_lock};
use sandbox_runtime::{UserRange, Users};

use crate::secrets;
use crate::serve::ServeError;
use crate::settings::SessionUids;

/// The range, as text, in the data directory.
const KEPT: &str = "session.uids";

/// Where servers on this machine agree on who has which range.
const PLACE: &str = "/run/daedalos";
const LOCK: &str = "session-uids";

/// Ranges are chosen above those that systemd and others give to containers, and below what a signed number
/// holds.
const LOWEST: u32 = 1_900_000_000;
const EACH: u32 = 65_536;
const MANY: u32 = 3600;

/// How many ranges are tried.
const TRIES: usize = 64;

/// The lists of ids that somebody has: `name:…:first[:count]`.
const ACCOUNTS: [(&str, usize); 2] = [("/etc/passwd", 2), ("/etc/group", 2)];
const SUBORDINATE: [&str; 2] = ["/etc/subuid", "/etc/subgid"];

/// Whom sessions belong to, and what is to be held while they do.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) users: Option<Users>,
    /// Other servers cannot have the range while this is open.
    _lock: Option<File>,
    /// Why all sessions have the same user, where that was not asked for.
    pub(crate) warning: Option<String>,
}

/// Takes a range for the server whose data directory this is, and whose sessions otherwise belong to `user`.
pub(crate) fn take(
    data: &Path,
    user: Option<Ids>,
    wanted: SessionUids,
) -> Result<Taken, ServeError> {
    let shared = |user: Option<Ids>, warning| Taken {
        users: user.map(Users::from),
        _lock: None,
        warning,
    };
    let Some(user) = user else {
        return Ok(shared(None, None));
    };
    let refuse = |range: UserRange, reason: String| ServeError::Users {
        first: range.first,
        last: range.last(),
        reason,
    };
    let (range, lock) = match wanted {
        SessionUids::Shared => return Ok(shared(Some(user), None)),
        SessionUids::Range(range) => {
            let lock = claim(range, user).map_err(|reason| refuse(range, reason))?;
            (range, lock)
        }
        SessionUids::Chosen => {
            let all = UserRange {
                first: LOWEST,
                count: EACH * MANY,
            };
            let possible = is_mapped(all).and_then(|()| is_powerful());
            if let Err(reason) = possible {
                return Ok(shared(Some(user), Some(reason)));
            }
            let unusable = |source| ServeError::Data {
                path: data.join(KEPT),
                source,
            };
            match kept(data).map_err(unusable)? {
                Some(range) => {
                    let lock = claim(range, user).map_err(|reason| refuse(range, reason))?;
                    (range, lock)
                }
                None => {
                    let (range, lock) = choose(user).map_err(|reason| refuse(all, reason))?;
                    let text = format!("{}-{}", range.first, range.last());
                    secrets::kept(data, KEPT, || text).map_err(unusable)?;
                    (range, lock)
                }
            }
        }
    };
    Ok(Taken {
        users: Some(Users {
            user,
            each: Some(range),
        }),
        _lock: Some(lock),
        warning: None,
    })
}

/// The range that was chosen before.
fn kept(data: &Path) -> io::Result<Option<UserRange>> {
    let text = match std::fs::read_to_string(data.join(KEPT)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let range = SessionUids::parse_range(text.trim());
    range.map(Some).ok_or_else(|| {
        let reason = format!("'{}' is no range of users", text.trim());
        io::Error::new(io::ErrorKind::InvalidData, reason)
    })
}

/// A range that nobody has. Where somebody else has the first that is tried, that is no reason to stop.
fn choose(user: Ids) -> Result<(UserRange, File), String> {
    let mut reason = String::new();
    for _ in 0..TRIES {
        let number = u32::from_le_bytes(random::bytes::<4>()) % MANY;
        let range = UserRange {
            first: LOWEST + number * EACH,
            count: EACH,
        };
        match claim(range, user) {
            Ok(lock) => return Ok((range, lock)),
            Err(why) => reason = why,
        }
    }
    Err(reason)
}

/// Takes a range, or says who has it.
fn claim(range: UserRange, user: Ids) -> Result<File, String> {
    if range.contains(user.user) || range.contains(user.group) {
        return Err(format!("user {}:{} is among them", user.user, user.group));
    }
    is_mapped(range)?;
    is_powerful()?;
    is_free(range)?;
    let lock = open_lock().map_err(|error| format!("cannot open {PLACE}/{LOCK}: {error}"))?;
    match range_lock::try_lock(&lock, range.first, range.count) {
        Ok(true) => Ok(lock),
        Ok(false) => Err("another server on this machine has some of them".to_owned()),
        Err(error) => Err(format!("cannot lock {PLACE}/{LOCK}: {error}")),
    }
}

fn open_lock() -> io::Result<File> {
    match DirBuilder::new().mode(0o700).create(PLACE) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let mut options = File::options();
    options.write(true).create(true).truncate(false).mode(0o600);
    options.open(Path::new(PLACE).join(LOCK))
}

/// Has no account and no range of subordinate ids one of them?
fn is_free(range: UserRange) -> Result<(), String> {
    for (path, field) in ACCOUNTS {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        for line in text.lines() {
            let mut fields = line.split(':');
            let name = fields.next().unwrap_or_default();
            let id = fields.nth(field - 1).and_then(|id| id.parse().ok());
            if id.is_some_and(|id| range.contains(id)) {
                return Err(format!("'{name}' in {path} is among them"));
            }
        }
    }
    for path in SUBORDINATE {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        for line in text.lines() {
            let fields: Vec<_> = line.split(':').collect();
            let [name, first, count] = fields[..] else {
                continue;
            };
            let (Ok(first), Ok(count)) = (first.parse::<u64>(), count.parse::<u64>()) else {
                continue;
            };
            let end = first.saturating_add(count);
            if first <= u64::from(range.last()) && u64::from(range.first) < end {
                return Err(format!("'{name}' has some of them in {path}"));
            }
        }
    }
    Ok(())
}

/// May the server act as others? In a container root may not.
fn is_powerful() -> Result<(), String> {
    match powers::suffice() {
        true => Ok(()),
        false => Err(
            "the server lacks capabilities to act as other users (CAP_SETUID, CAP_SETGID, CAP_SETPCAP, CAP_CHOWN, \
             CAP_FOWNER, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_KILL, CAP_SYS_PTRACE)"
                .to_owned(),
        ),
    }
}

/// Are there such users where this server is? In a container there may be few.
fn is_mapped(range: UserRange) -> Result<(), String> {
    for map in ["/proc/self/uid_map", "/proc/self/gid_map"] {
        let text =
            std::fs::read_to_string(map).map_err(|error| format!("cannot read {map}: {error}"))?;
        let holds = |line: &str| {
            let numbers: Vec<u64> = line.split_whitespace().flat_map(str::parse).collect();
            match numbers[..] {
                [inside, _, count] => {
                    inside <= u64::from(range.first)
                        && u64::from(range.last()) < inside.saturating_add(count)
                }
                _ => false,
            }
        };
        if !text.lines().any(holds) {
            return Err(format!(
                "the server's user namespace has no such users ({map})"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: Ids = Ids {
        user: 59_999,
        group: 59_999,
    };

    fn range(taken: &Taken) -> UserRange {
        taken.users.unwrap().each.unwrap()
    }

    #[test]
    fn a_data_directory_keeps_its_range() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let first = take(one.path(), Some(USER), SessionUids::Chosen).unwrap();
        let second = take(other.path(), Some(USER), SessionUids::Chosen).unwrap();
        let (a, b) = (range(&first), range(&second));
        assert!(a.last() < b.first || b.last() < a.first, "{a:?} {b:?}");
        drop(first);
        let again = take(one.path(), Some(USER), SessionUids::Chosen).unwrap();
        assert_eq!(range(&again), a);
    }

    #[test]
    fn two_servers_do_not_have_the_same_users() {
        let data = tempfile::tempdir().unwrap();
        let wanted = UserRange {
            first: 1_890_000_000 + std::process::id(),
            count: 10,
        };
        let take = || take(data.path(), Some(USER), SessionUids::Range(wanted));
        let first = take().unwrap();
        let refused = take().unwrap_err().to_string();
        assert!(
            refused.contains("another server on this machine"),
            "{refused}"
        );
        drop(first);
        take().unwrap();
    }

    #[test]
    fn users_that_somebody_has_are_refused() {
        let data = tempfile::tempdir().unwrap();
        for (first, who) in [(1, "/etc/passwd"), (USER.user - 5, "59999:59999")] {
            let wanted = SessionUids::Range(UserRange { first, count: 10 });
            let refused = take(data.path(), Some(USER), wanted)
                .unwrap_err()
                .to_string();
            assert!(refused.contains(who), "{refused}");
        }
        let users = take(data.path(), Some(USER), SessionUids::Shared)
            .unwrap()
            .users;
        assert_eq!(users, Some(Users::from(USER)));
        let users = take(data.path(), None, SessionUids::Chosen).unwrap().users;
        assert_eq!(users, None);
    }
}
