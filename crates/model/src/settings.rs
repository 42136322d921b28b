//! What a sandbox lets its processes see and use, as the user asked for it.
//!
//! Settings are stored with the sandbox and overridden per run. They are wishes: turning them into
//! namespaces, mounts and rules, or refusing because the host cannot, is `sandbox-isolation`'s job.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::size::ByteSize;

/// Isolation settings of a sandbox, or of one run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Which wall stands around the processes.
    #[serde(skip_serializing_if = "is_default")]
    pub wall: Wall,
    /// What of the network they reach.
    #[serde(skip_serializing_if = "is_default")]
    pub network: Network,
    /// What they may use up.
    #[serde(skip_serializing_if = "is_default")]
    pub limits: Limits,
    /// Host paths that stay visible though the default would hide them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expose: Vec<Exposure>,
    /// Host paths that are hidden though the default would show them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hide: Vec<PathBuf>,
    /// Variables set inside.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// Pass nothing of the caller's environment but the essentials.
    #[serde(skip_serializing_if = "is_default")]
    pub clean_env: bool,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The outermost wall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wall {
    /// Own namespaces, with seccomp and Landlock behind them.
    #[default]
    Namespaces,
    /// Landlock and seccomp alone: weaker, for hosts without user namespaces, asked for knowingly.
    Landlock,
}

/// The network inside.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// The host's.
    #[default]
    Host,
    /// A network namespace of its own, with loopback and what is named here.
    Isolated {
        /// Host-local TCP ports reachable at the same port inside.
        #[serde(default)]
        ports: Vec<u16>,
        /// Hosts reachable through the proxy.
        #[serde(default)]
        hosts: Vec<HostPattern>,
        /// Ports of servers inside that the host reaches.
        #[serde(default)]
        publish: Vec<PublishedPort>,
    },
}

/// A host the proxy may connect to: `api.example.com:443`, `*.example.com`, `10.0.0.7:5432`,
/// `[::1]:8080`. Without a port, 80 and 443.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostPattern {
    /// Lower case; `*.` in front matches any number of labels, at least one; `*` alone, all.
    pub host: String,
    /// The port, or 80 and 443.
    pub port: Option<u16>,
}

/// `--publish 8080:3000`: the host's port 8080 leads to port 3000 inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedPort {
    /// The port on the host's loopback.
    pub host: u16,
    /// The port inside.
    pub inside: u16,
}

/// A host path made visible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exposure {
    /// The absolute path, the same inside.
    pub path: PathBuf,
    /// Writes reach the host too.
    #[serde(default)]
    pub writable: bool,
}

/// A variable set inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvVar {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// What the processes of a sandbox may use up. `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Memory, swap included.
    pub memory: Option<ByteSize>,
    /// Processors, in thousandths: 1500 is one and a half.
    pub cpu_millis: Option<u32>,
    /// Processes and threads.
    pub pids: Option<u32>,
    /// Disk space of the changes.
    pub size: Option<ByteSize>,
}

/// A setting that does not parse.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SettingsError {
    /// A host pattern.
    #[error("'{0}' is not a host; write HOST, HOST:PORT, *.DOMAIN:PORT or [IPV6]:PORT")]
    Host(String),
    /// A published port.
    #[error("'{0}' is not a port to publish; write HOST_PORT:INSIDE_PORT, such as 8080:3000")]
    Publish(String),
    /// A variable.
    #[error("'{0}' is not a variable; write NAME=VALUE")]
    Env(String),
    /// A number of processors.
    #[error("'{0}' is not a number of processors; write 0.5, 1, 2 …")]
    Cpus(String),
    /// An exposed path.
    #[error("'{0}' is not an absolute path to expose; write /PATH or /PATH:rw")]
    Expose(String),
}

impl HostPattern {
    /// Does a connection to `host` (a name or a literal address, lower case) at `port` match?
    pub fn matches(&self, host: &str, port: u16) -> bool {
        let host_fits = match self.host.strip_prefix("*.") {
            Some(domain) => host
                .strip_suffix(domain)
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            None => self.host == "*" || self.host == host,
        };
        self.fits_port(port) && host_fits
    }

    /// Would a connection to `port` match, the host aside?
    pub fn fits_port(&self, port: u16) -> bool {
        match self.port {
            Some(wanted) => wanted == port,
            None => port == 80 || port == 443,
        }
    }
}

impl FromStr for HostPattern {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || SettingsError::Host(text.to_owned());
        let parse_port = |port: &str| match port.parse::<u16>() {
            Ok(port) if port != 0 => Ok(Some(port)),
            _ => Err(error()),
        };
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (address, after) = rest.split_once(']').ok_or_else(error)?;
            address.parse::<std::net::Ipv6Addr>().map_err(|_| error())?;
            match after.strip_prefix(':') {
                Some(port) => (address, parse_port(port)?),
                None if after.is_empty() => (address, None),
                None => return Err(error()),
            }
        } else if text.parse::<std::net::Ipv6Addr>().is_ok() {
            (text, None)
        } else {
            match text.split_once(':') {
                Some((host, port)) => (host, parse_port(port)?),
                None => (text, None),
            }
        };
        let host = host.strip_suffix('.').filter(|h| *h != "*").unwrap_or(host);
        let host = host.to_ascii_lowercase();
        let bare = host.strip_prefix("*.").unwrap_or(&host);
        let plain = bare == "*"
            || bare.parse::<std::net::IpAddr>().is_ok()
            || (!bare.is_empty()
                && bare.split('.').all(|label| {
                    !label.is_empty()
                        && label
                            .bytes()
                            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
                }));
        if plain && !(host.starts_with("*.") && bare == "*") {
            Ok(HostPattern { host, port })
        } else {
            Err(error())
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.host.contains(':'), self.port) {
            (true, Some(port)) => write!(f, "[{}]:{port}", self.host),
            (false, Some(port)) => write!(f, "{}:{port}", self.host),
            (_, None) => f.write_str(&self.host),
        }
    }
}

impl TryFrom<String> for HostPattern {
    type Error = SettingsError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<HostPattern> for String {
    fn from(pattern: HostPattern) -> String {
        pattern.to_string()
    }
}

impl FromStr for PublishedPort {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || SettingsError::Publish(text.to_owned());
        let (host, inside) = text.split_once(':').unwrap_or((text, text));
        let parse = |port: &str| {
            port.parse::<u16>()
                .ok()
                .filter(|p| *p != 0)
                .ok_or_else(error)
        };
        Ok(PublishedPort {
            host: parse(host)?,
            inside: parse(inside)?,
        })
    }
}

impl fmt::Display for PublishedPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.inside)
    }
}

impl FromStr for EnvVar {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() && !text.contains('\0') => Ok(EnvVar {
                name: name.to_owned(),
                value: value.to_owned(),
            }),
            _ => Err(SettingsError::Env(text.to_owned())),
        }
    }
}

impl FromStr for Exposure {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (path, writable) = match text.strip_suffix(":rw") {
            Some(path) => (path, true),
            None => (text.strip_suffix(":ro").unwrap_or(text), false),
        };
        if path.starts_with('/') && path.len() > 1 {
            Ok(Exposure {
                path: PathBuf::from(path),
                writable,
            })
        } else {
            Err(SettingsError::Expose(text.to_owned()))
        }
    }
}

impl Limits {
    /// Is anything limited?
    pub fn any(&self) -> bool {
        *self != Limits::default()
    }

    /// `0.5`, `2`: processors as [`Limits::cpu_millis`].
    pub fn parse_cpus(text: &str) -> Result<u32, SettingsError> {
        let error = || SettingsError::Cpus(text.to_owned());
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        if whole.is_empty() || fraction.len() > 3 || (text.contains('.') && fraction.is_empty()) {
            return Err(error());
        }
        let whole: u32 = whole.parse().map_err(|_| error())?;
        let fraction: u32 = format!("{fraction:0<3}").parse().map_err(|_| error())?;
        let millis = whole
            .checked_mul(1000)
            .and_then(|w| w.checked_add(fraction));
        millis.filter(|m| *m > 0).ok_or_else(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> HostPattern {
        text.parse().unwrap()
    }

    #[test]
    fn a_host_pattern_matches_what_it_names_and_nothing_else() {
        assert!(host("api.example.com:443").matches("api.example.com", 443));
        assert!(!host("api.example.com:443").matches("api.example.com", 80));
        assert!(!host("api.example.com:443").matches("evil-api.example.com", 443));
        assert!(host("example.com").matches("example.com", 80));
        assert!(!host("example.com").matches("example.com", 22));
        assert!(host("*.example.com").matches("a.b.example.com", 443));
        assert!(!host("*.example.com").matches("example.com", 443));
        assert!(!host("*.example.com").matches("badexample.com", 443));
        assert!(!host("*.example.com").matches(".example.com", 443));
        assert!(host("[::1]:8080").matches("::1", 8080));
        assert!(host("*:443").matches("anything.org", 443));
    }

    #[test]
    fn host_patterns_from_hell_are_refused() {
        for text in [
            "", ":443", "a:b", "a:0", "a:99999", "a b", "http://a", "a*b", "*.", "*.*", "[::1",
            "a..b",
        ] {
            assert!(text.parse::<HostPattern>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn settings_survive_their_own_text_forms() {
        for text in [
            "api.example.com:443",
            "*.example.com",
            "[::1]:8080",
            "*:443",
        ] {
            assert_eq!(host(text).to_string(), text);
        }
        let settings = Settings {
            network: Network::Isolated {
                ports: vec![5432],
                hosts: vec![host("*.example.com:443")],
                publish: vec!["8080:3000".parse().unwrap()],
            },
            limits: Limits {
                pids: Some(10),
                ..Limits::default()
            },
            ..Settings::default()
        };
        let text = serde_json::to_string(&settings).unwrap();
        assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), settings);
        assert_eq!(serde_json::to_string(&Settings::default()).unwrap(), "{}");
    }

    #[test]
    fn processors_are_counted_in_thousandths() {
        assert_eq!(Limits::parse_cpus("0.5"), Ok(500));
        assert_eq!(Limits::parse_cpus("2"), Ok(2000));
        for text in [
            "", "0", "0.0", "1.", ".5", "-1", "1.2345", "many", "5000000",
        ] {
            assert!(Limits::parse_cpus(text).is_err(), "{text:?}");
        }
    }
}
