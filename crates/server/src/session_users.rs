//! Chooses and claims the user ids that sessions have on the host, where the server is root.
//!
//! Each session has its own, from a range that no local account, no range of subordinate ids and no other server on
//! this machine has. The range that was chosen at the first start is stored in the data directory, because the
//! workspaces there belong to its users.

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

/// Ranges are chosen above those that systemd gives to containers and SSSD to accounts of a domain, and below what a
/// signed number holds.
const LOWEST: u32 = 2_010_000_000;
const EACH: u32 = 1 << 20;
const MANY: u32 = 128;

/// How many ranges are tried.
const TRIES: usize = 64;

/// The user of all sessions where they share one and none was named.
pub(crate) const NOBODY_ELSE: Ids = Ids {
    user: 59_999,
    group: 59_999,
};

/// The lists of ids that somebody has: `name:…:first[:count]`.
const ACCOUNTS: [(&str, usize); 2] = [("/etc/passwd", 2), ("/etc/group", 2)];
const SUBORDINATE: [&str; 2] = ["/etc/subuid", "/etc/subgid"];

/// The users of sessions, and what keeps other servers from them.
#[derive(Debug)]
pub(crate) struct Taken {
    /// None where the server is not root.
    pub(crate) users: Option<Users>,
    /// Other servers cannot have the range while this is open.
    _lock: Option<File>,
    /// What the operator should know about them.
    pub(crate) warning: Option<String>,
}

/// Checks what can be checked before anything is touched.
pub(crate) fn check(user: Option<Ids>, wanted: Option<SessionUids>) -> Result<(), ServeError> {
    match wanted {
        Some(SessionUids::Range(range)) => {
            check_range(range, user).map_err(|reason| refusal(range, reason))
        }
        _ => Ok(()),
    }
}

/// Takes a range for the server whose data directory this is. Sessions that have no user of their own get `user`, or
/// the second of the range. `wanted` is none where the server is not root.
pub(crate) fn take(
    data: &Path,
    user: Option<Ids>,
    wanted: Option<SessionUids>,
) -> Result<Taken, ServeError> {
    let unusable = |source| ServeError::Data {
        path: data.join(KEPT),
        source,
    };
    let shared = |warning| Taken {
        users: Some(Users::from(user.unwrap_or(NOBODY_ELSE))),
        _lock: None,
        warning,
    };
    let Some(wanted) = wanted else {
        return Ok(Taken {
            users: None,
            _lock: None,
            warning: None,
        });
    };
    let before = kept(data).map_err(unusable)?;
    let (range, lock) = match (wanted, before) {
        (SessionUids::Shared, None) => return Ok(shared(None)),
        (SessionUids::Shared, Some(range)) => {
            let (first, last) = (range.first, range.last());
            return Ok(shared(Some(format!(
                "sessions that belong to the users {first} to {last} cannot be used with --session-uids shared"
            ))));
        }
        (SessionUids::Range(range), _) | (SessionUids::Chosen, Some(range)) => {
            let lock = claim(range, user).map_err(|reason| refusal(range, reason))?;
            (range, lock)
        }
        (SessionUids::Chosen, None) => {
            let all = UserRange {
                first: LOWEST,
                count: EACH * MANY,
            };
            if let Err(reason) = is_mapped(all).and_then(|()| is_powerful()) {
                return Ok(shared(Some(format!("{SHARED}: {reason}"))));
            }
            let (range, lock) = choose(user).map_err(|reason| refusal(all, reason))?;
            let text = format!("{}-{}", range.first, range.last());
            secrets::kept(data, KEPT, || text).map_err(unusable)?;
            (range, lock)
        }
    };
    Ok(Taken {
        users: Some(Users {
            user: user.unwrap_or(range.shared()),
            each: Some(range),
        }),
        _lock: Some(lock),
        warning: None,
    })
}

/// Logged where sessions do not have users of their own.
pub(crate) const SHARED: &str =
    "all sessions have the same user of this machine, and share what the kernel counts by user";

fn refusal(range: UserRange, reason: String) -> ServeError {
    ServeError::Users {
        first: range.first,
        last: range.last(),
        reason,
    }
}

/// The range that was chosen before.
fn kept(data: &Path) -> io::Result<Option<UserRange>> {
    let text = match std::fs::read_to_string(data.join(KEPT)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let range = SessionUids::parse_range(text.trim());
    range.map(Some).ok_or_else(|| {
        let reason = format!("invalid range of user ids '{}'", text.trim());
        io::Error::new(io::ErrorKind::InvalidData, reason)
    })
}

/// A range that nobody has. Where somebody else has the first that is tried, that is no reason to stop.
fn choose(user: Option<Ids>) -> Result<(UserRange, File), String> {
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
fn claim(range: UserRange, user: Option<Ids>) -> Result<File, String> {
    check_range(range, user)?;
    let lock = open_lock().map_err(|error| format!("cannot open {PLACE}/{LOCK}: {error}"))?;
    match range_lock::try_lock(&lock, range.first, range.count) {
        Ok(true) => Ok(lock),
        Ok(false) => Err("another server on this machine has some of them".to_owned()),
        Err(error) => Err(format!("cannot lock {PLACE}/{LOCK}: {error}")),
    }
}

/// Can this server use the range, as far as other servers do not?
fn check_range(range: UserRange, user: Option<Ids>) -> Result<(), String> {
    if let Some(Ids { user, group }) = user
        && (range.contains(user) || range.contains(group))
    {
        return Err(format!("user {user}:{group} is among them"));
    }
    is_mapped(range)?;
    is_powerful()?;
    is_free(range)
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

    fn users(taken: &Taken) -> Users {
        taken.users.unwrap()
    }

    fn range(taken: &Taken) -> UserRange {
        users(taken).each.unwrap()
    }

    #[test]
    fn a_data_directory_keeps_its_range() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let take = |data: &tempfile::TempDir, wanted| take(data.path(), None, Some(wanted));
        let first = take(&one, SessionUids::Chosen).unwrap();
        let second = take(&other, SessionUids::Chosen).unwrap();
        let (a, b) = (range(&first), range(&second));
        assert!(a.last() < b.first || b.last() < a.first, "{a:?} {b:?}");
        assert_eq!(users(&first).user, a.shared());
        drop(first);
        let again = take(&one, SessionUids::Chosen).unwrap();
        assert_eq!(range(&again), a);
        drop(again);
        let warning = take(&one, SessionUids::Shared).unwrap().warning.unwrap();
        assert!(warning.contains(&a.first.to_string()), "{warning}");
    }

    #[test]
    fn two_servers_do_not_have_the_same_users() {
        let data = tempfile::tempdir().unwrap();
        let wanted = UserRange {
            first: 1_890_000_000 + std::process::id(),
            count: 10,
        };
        let take = || take(data.path(), None, Some(SessionUids::Range(wanted)));
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
        let user = Some(NOBODY_ELSE);
        for (first, who) in [(1, "/etc/passwd"), (59_995, "59999:59999")] {
            let wanted = Some(SessionUids::Range(UserRange { first, count: 10 }));
            let refused = take(data.path(), user, wanted).unwrap_err().to_string();
            assert!(refused.contains(who), "{refused}");
            assert_eq!(check(user, wanted).unwrap_err().to_string(), refused);
        }
        let shared = take(data.path(), None, Some(SessionUids::Shared)).unwrap();
        assert_eq!(shared.users, Some(Users::from(NOBODY_ELSE)));
        assert_eq!(shared.warning, None);
        let own = take(data.path(), None, None).unwrap();
        assert_eq!(own.users, None);
    }
}
