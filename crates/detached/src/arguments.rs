//! What the program is told when it is started.
//!
//! No secret is among it: everybody on a machine can read the arguments of everybody.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use sandbox_linux::identity::Ids;
use sandbox_model::{Class, Failure, SessionId};
use thiserror::Error;

use crate::control_plane::Address;

/// What `--help` says.
pub(crate) const HELP: &str = "\
Runs the code of one session where the server is not, and tells the server what becomes of it.

Usage: sandbox-executor --session ID --control URL --token-fd N [options]

  --session ID       the session, sess_…
  --control URL      where the control plane is, http://HOST:PORT
  --token-fd N       the descriptor from which the session's token is read

  --workspace DIR    the directory that code works in [/workspace]
  --state DIR        where results are kept until they are told; code never sees it
                     [/var/lib/sandbox-executor]
  --listen ADDRESS   where to listen [127.0.0.1:8080]
  --url URL          how others reach that, as the control plane is told [http://ADDRESS]
  --container NAME   what this container is called [the hostname]
  --isolation WALL   namespaces, or the weaker landlock [namespaces]
  --network NETWORK  what code has of the network: none, or the container's [none]
  --user UID:GID     started by root: who to be instead [1000:1000]
  --grace SECONDS    how long a SIGTERM may take [8]

  --help, --version
";

/// What is wanted.
#[derive(Debug)]
pub(crate) enum Wish {
    /// This.
    Run(Box<Arguments>),
    /// To know how.
    Help,
    /// To know which.
    Version,
}

/// How it is to run.
#[derive(Debug)]
pub(crate) struct Arguments {
    /// Whose code it runs.
    pub(crate) session: SessionId,
    /// Whom it tells.
    pub(crate) control: Address,
    /// Where the token comes from.
    pub(crate) token: i32,
    /// Where code works.
    pub(crate) workspace: PathBuf,
    /// What is kept.
    pub(crate) state: PathBuf,
    /// Where it listens.
    pub(crate) listen: SocketAddr,
    /// How others reach that.
    pub(crate) url: Option<String>,
    /// What its container is called.
    pub(crate) container: Option<String>,
    /// The walls around code.
    pub(crate) isolation: Isolation,
    /// What code has of the network.
    pub(crate) network: Network,
    /// Who to be instead of root.
    pub(crate) user: Option<Ids>,
    /// How long ending may take.
    pub(crate) grace: Duration,
}

/// Which walls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// Namespaces, mounts, Landlock and the system-call filter.
    Namespaces,
    /// Landlock and the system-call filter alone.
    Landlock,
}

/// What code has of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Network {
    /// A loopback of its own.
    None,
    /// What the container has.
    Container,
}

/// Arguments that cannot be followed.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum ArgumentError {
    #[error("'{0}' is not an option")]
    Unknown(String),
    #[error("{0} needs a value")]
    Bare(&'static str),
    #[error("{0} is missing")]
    Missing(&'static str),
    #[error("{option} '{value}': {reason}")]
    Value {
        option: &'static str,
        value: String,
        reason: String,
    },
    #[error("{0}")]
    Together(&'static str),
}

impl Failure for ArgumentError {
    fn class(&self) -> Class {
        Class::General
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            ArgumentError::Together(_) => {
                "without namespaces code has the container's network: say `--network container`"
            }
            _ => "`sandbox-executor --help` lists the options",
        };
        Some(hint.to_owned())
    }
}

/// The options as they were given, the last of each.
#[derive(Default)]
struct Given(Vec<(&'static str, String)>);

const OPTIONS: [&str; 12] = [
    "--session",
    "--control",
    "--token-fd",
    "--workspace",
    "--state",
    "--listen",
    "--url",
    "--container",
    "--isolation",
    "--network",
    "--user",
    "--grace",
];

/// Reads the arguments.
pub(crate) fn parse(words: impl Iterator<Item = OsString>) -> Result<Wish, ArgumentError> {
    let mut given = Given::default();
    let mut words = words.map(|word| word.to_string_lossy().into_owned());
    while let Some(word) = words.next() {
        match word.as_str() {
            "--help" | "-h" => return Ok(Wish::Help),
            "--version" | "-V" => return Ok(Wish::Version),
            _ => {}
        }
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        let known = OPTIONS.into_iter().find(|option| *option == name);
        let option = known.ok_or_else(|| ArgumentError::Unknown(name.to_owned()))?;
        let value = value.or_else(|| words.next());
        given
            .0
            .push((option, value.ok_or(ArgumentError::Bare(option))?));
    }
    given.read().map(|arguments| Wish::Run(Box::new(arguments)))
}

impl Given {
    fn read(self) -> Result<Arguments, ArgumentError> {
        let isolation = self.named(
            "--isolation",
            &[
                ("namespaces", Isolation::Namespaces),
                ("landlock", Isolation::Landlock),
            ],
        )?;
        let network = self.named(
            "--network",
            &[("none", Network::None), ("container", Network::Container)],
        )?;
        if (isolation, network) == (Isolation::Landlock, Network::None) {
            let reason = "`--isolation landlock` cannot keep code from the network";
            return Err(ArgumentError::Together(reason));
        }
        Ok(Arguments {
            session: self
                .value("--session")?
                .ok_or(ArgumentError::Missing("--session"))?,
            control: self
                .value("--control")?
                .ok_or(ArgumentError::Missing("--control"))?,
            token: self.token()?,
            workspace: self.directory("--workspace", "/workspace")?,
            state: self.directory("--state", "/var/lib/sandbox-executor")?,
            listen: self
                .value("--listen")?
                .unwrap_or(([127, 0, 0, 1], 8080).into()),
            url: self.get("--url").map(str::to_owned),
            container: self.get("--container").map(str::to_owned),
            isolation,
            network,
            user: self.get("--user").map(user).transpose()?,
            grace: Duration::from_secs(self.value("--grace")?.unwrap_or(8)),
        })
    }

    fn get(&self, option: &str) -> Option<&str> {
        let found = self.0.iter().rev().find(|(name, _)| *name == option);
        found.map(|(_, value)| value.as_str())
    }

    fn value<T: FromStr<Err: std::fmt::Display>>(
        &self,
        option: &'static str,
    ) -> Result<Option<T>, ArgumentError> {
        let read = |value: &str| value.parse().map_err(|error| refused(option, value, error));
        self.get(option).map(read).transpose()
    }

    /// One of these by name; the first where nothing was said.
    fn named<T: Copy>(
        &self,
        option: &'static str,
        known: &[(&str, T)],
    ) -> Result<T, ArgumentError> {
        let value = self.get(option).unwrap_or(known[0].0);
        let found = known.iter().find(|(name, _)| *name == value);
        found.map(|(_, meant)| *meant).ok_or_else(|| {
            let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
            refused(option, value, format!("use {}", names.join(" or ")))
        })
    }

    fn directory(&self, option: &'static str, usual: &str) -> Result<PathBuf, ArgumentError> {
        let path = PathBuf::from(self.get(option).unwrap_or(usual));
        match path.is_absolute() {
            true => Ok(path),
            false => Err(refused(
                option,
                path.display(),
                "it is not an absolute path",
            )),
        }
    }

    fn token(&self) -> Result<i32, ArgumentError> {
        const OPTION: &str = "--token-fd";
        match self.value(OPTION)?.ok_or(ArgumentError::Missing(OPTION))? {
            // Of those three, one is for our own words and two are nobody's.
            number if number < 3 => Err(refused(OPTION, number, "it must be 3 or more")),
            number => Ok(number),
        }
    }
}

fn user(text: &str) -> Result<Ids, ArgumentError> {
    let ids = text.split_once(':').and_then(|(user, group)| {
        Some(Ids {
            user: user.parse().ok()?,
            group: group.parse().ok()?,
        })
    });
    match ids {
        Some(ids) if ids.user != 0 && ids.group != 0 => Ok(ids),
        Some(_) => Err(refused("--user", text, "code is never run as root")),
        None => Err(refused("--user", text, "write it as 1000:1000")),
    }
}

fn refused(
    option: &'static str,
    value: impl std::fmt::Display,
    reason: impl std::fmt::Display,
) -> ArgumentError {
    ArgumentError::Value {
        option,
        value: value.to_string(),
        reason: reason.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEEDED: &str =
        "--session sess_aaaaaaaaaaaaaaaa --control http://127.0.0.1:8000 --token-fd 3";

    fn read(more: &str) -> Result<Wish, ArgumentError> {
        let line = format!("{NEEDED} {more}");
        let words: Vec<_> = line.split_whitespace().map(OsString::from).collect();
        parse(words.into_iter())
    }

    fn reason(more: &str) -> String {
        read(more).map(drop).unwrap_err().to_string()
    }

    #[test]
    fn what_is_not_said_is_as_the_help_says() {
        let Ok(Wish::Run(arguments)) = read("") else {
            panic!("it is enough");
        };
        assert_eq!(arguments.isolation, Isolation::Namespaces);
        assert_eq!(arguments.network, Network::None);
        for usual in [
            arguments.workspace.display().to_string(),
            arguments.state.display().to_string(),
            arguments.listen.to_string(),
            arguments.grace.as_secs().to_string(),
        ] {
            assert!(HELP.contains(&format!("[{usual}]")), "{usual}");
        }
        assert!(OPTIONS.iter().all(|option| HELP.contains(option)));
    }

    #[test]
    fn values_come_in_both_ways_and_the_last_counts() {
        let Ok(Wish::Run(arguments)) = read("--grace=1 --grace 3 --user 7:8") else {
            panic!("it is enough");
        };
        assert_eq!(arguments.grace, Duration::from_secs(3));
        assert_eq!(arguments.user, Some(Ids { user: 7, group: 8 }));
    }

    #[test]
    fn what_cannot_be_followed_is_named() {
        for (more, expected) in [
            ("--nonsense 1", "'--nonsense' is not an option"),
            ("--grace", "--grace needs a value"),
            ("--grace soon", "--grace 'soon'"),
            ("--session sess_x", "--session 'sess_x'"),
            ("--control https://x", "--control 'https://x'"),
            ("--token-fd 1", "3 or more"),
            ("--user 0:0", "never run as root"),
            ("--user 1000", "1000:1000"),
            ("--isolation none", "namespaces or landlock"),
            ("--workspace here", "absolute"),
        ] {
            assert!(reason(more).contains(expected), "{more}: {}", reason(more));
        }
    }

    #[test]
    fn the_weaker_wall_has_to_name_what_it_does_not_hold() {
        assert!(reason("--isolation landlock").contains("network"));
        assert!(read("--isolation landlock --network container").is_ok());
    }

    #[test]
    fn help_is_help_whatever_else_is_said() {
        assert!(matches!(read("--help"), Ok(Wish::Help)));
        assert!(matches!(read("-V"), Ok(Wish::Version)));
    }
}
