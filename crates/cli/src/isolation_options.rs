//! The isolation flags of `create`, `try`, `run` and `enter`, and how they override one another.
//!
//! What is given on `create` is stored with the sandbox; what is given on a run goes over it for that
//! run: a single value or a network list replaces the stored one of the same flag, `--env`,
//! `--expose` and `--hide` add to it.

use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueHint;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use sandbox_model::{
    BackendChoice, ByteSize, EnvVar, Exposure, HostPattern, Limits, Network, PublishedPort,
    Settings, Wall,
};

/// Isolation flags as given.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Isolation")]
pub(crate) struct IsolationOptions {
    /// Give it a network of its own, with loopback only
    #[arg(long)]
    pub(crate) isolated_network: bool,

    /// Use the host's network, where isolation is stored or configured
    #[arg(long, conflicts_with_all = ["isolated_network", "with_ports", "allow_host", "publish"])]
    pub(crate) host_network: bool,

    /// Forward a host-local TCP port to the same port inside; implies --isolated-network
    #[arg(long, value_name = "PORT", value_delimiter = ',', value_parser = port)]
    pub(crate) with_ports: Vec<u16>,

    /// Let it reach a host through the proxy: HOST, HOST:PORT, *.DOMAIN:PORT; implies
    /// --isolated-network
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    pub(crate) allow_host: Vec<HostPattern>,

    /// Let the host reach a server inside, such as 8080:3000; implies --isolated-network
    #[arg(long, value_name = "PORTS", value_delimiter = ',')]
    pub(crate) publish: Vec<PublishedPort>,

    /// Limit memory, swap included, such as 512M ('none' lifts a stored limit)
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<Limit<ByteSize>>,

    /// Limit processors, such as 1.5
    #[arg(long, value_name = "NUMBER")]
    pub(crate) cpus: Option<Limit<Processors>>,

    /// Limit processes and threads
    #[arg(long, value_name = "NUMBER")]
    pub(crate) pids: Option<Limit<Count>>,

    /// Limit the disk space of its changes, such as 2G
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Limit<ByteSize>>,

    /// Show a host path inside that would be hidden, read-only unless it ends in ':rw'
    #[arg(long, value_name = "PATH", value_parser = exposure, value_hint = ValueHint::AnyPath)]
    pub(crate) expose: Vec<Exposure>,

    /// Hide a host path
    #[arg(long, value_name = "PATH", value_parser = hidden, value_hint = ValueHint::AnyPath)]
    pub(crate) hide: Vec<PathBuf>,

    /// Set a variable inside
    #[arg(long, short = 'e', value_name = "NAME=VALUE")]
    pub(crate) env: Vec<EnvVar>,

    /// Pass none of the caller's variables but the essential ones
    #[arg(long)]
    pub(crate) clean_env: bool,

    /// Which outer wall: 'landlock' knowingly accepts a weaker one, for hosts without user
    /// namespaces
    #[arg(long, value_name = "WALL", value_parser = walls())]
    pub(crate) isolation: Option<Wall>,
}

/// A limit, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit<T> {
    /// No limit, also where one is stored.
    Lifted,
    /// This much.
    To(T),
}

/// Thousandths of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Processors(pub(crate) u32);

/// A number of processes, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) u32);

impl<T: FromStr> FromStr for Limit<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "none" => Ok(Limit::Lifted),
            amount => amount.parse().map(Limit::To),
        }
    }
}

impl FromStr for Processors {
    type Err = sandbox_model::settings::SettingsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Limits::parse_cpus(text).map(Processors)
    }
}

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(number) if number > 0 => Ok(Count(number)),
            _ => Err(format!("'{text}' is not a number of processes")),
        }
    }
}

/// A TCP port.
pub(crate) fn port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(port) if port != 0 => Ok(port),
        _ => Err(format!("'{text}' is not a TCP port")),
    }
}

/// `/PATH`, `/PATH:rw`; a relative path is the working directory's.
pub(crate) fn exposure(text: &str) -> Result<Exposure, String> {
    let absolute = std::path::absolute(text).map_err(|error| error.to_string())?;
    let text = absolute.to_str().ok_or("the path is not UTF-8")?;
    text.parse::<Exposure>().map_err(|error| error.to_string())
}

/// A path to hide; a relative one is the working directory's. Stored without symlinks, so that it stays
/// what was meant when one of them changes.
pub(crate) fn hidden(text: &str) -> Result<PathBuf, String> {
    let path = std::path::absolute(text).map_err(|error| error.to_string())?;
    Ok(path.canonicalize().unwrap_or(path))
}

/// The walls, for the argument parser.
fn walls() -> impl TypedValueParser<Value = Wall> {
    PossibleValuesParser::new(["namespaces", "landlock"]).try_map(|name| wall(&name))
}

/// The backends, for the argument parser; older spellings are taken and not shown.
pub(crate) fn backends() -> impl TypedValueParser<Value = BackendChoice> {
    let shown = ["auto", "btrfs", "overlay", "copy"].map(PossibleValue::new);
    let older = ["rsync", "overlayfs"].map(|name| PossibleValue::new(name).hide(true));
    PossibleValuesParser::new(shown.into_iter().chain(older)).try_map(|name| name.parse())
}

/// The wall by name.
pub(crate) fn wall(text: &str) -> Result<Wall, String> {
    match text {
        "namespaces" => Ok(Wall::Namespaces),
        "landlock" => Ok(Wall::Landlock),
        other => Err(format!(
            "'{other}' is not a wall; use namespaces or landlock"
        )),
    }
}

impl IsolationOptions {
    /// `stored`, with these flags over it.
    pub(crate) fn over(&self, stored: &Settings) -> Settings {
        let mut settings = stored.clone();
        settings.network = self.network_over(settings.network);
        let limits = &mut settings.limits;
        set(&mut limits.memory, self.memory, |size| size);
        set(&mut limits.cpu_millis, self.cpus, |processors| processors.0);
        set(&mut limits.pids, self.pids, |count| count.0);
        set(&mut limits.size, self.size, |size| size);
        settings
            .expose
            .retain(|old| self.expose.iter().all(|new| new.path != old.path));
        settings.expose.extend(self.expose.iter().cloned());
        settings.hide.extend(self.hide.iter().cloned());
        settings
            .env
            .retain(|old| self.env.iter().all(|new| new.name != old.name));
        settings.env.extend(self.env.iter().cloned());
        settings.clean_env |= self.clean_env;
        settings.wall = self.isolation.unwrap_or(settings.wall);
        settings
    }

    /// Naming what may be reached means that nothing else may.
    fn network_over(&self, stored: Network) -> Network {
        let asked = self.isolated_network
            || !self.with_ports.is_empty()
            || !self.allow_host.is_empty()
            || !self.publish.is_empty();
        let (mut ports, mut hosts, mut publish) = match stored {
            _ if self.host_network => return Network::Host,
            Network::Host if !asked => return Network::Host,
            Network::Host => Default::default(),
            Network::Isolated {
                ports,
                hosts,
                publish,
            } => (ports, hosts, publish),
        };
        replace(&mut ports, &self.with_ports);
        replace(&mut hosts, &self.allow_host);
        replace(&mut publish, &self.publish);
        Network::Isolated {
            ports,
            hosts,
            publish,
        }
    }
}

fn set<T: Copy, U>(stored: &mut Option<U>, given: Option<Limit<T>>, value: fn(T) -> U) {
    match given {
        None => {}
        Some(Limit::Lifted) => *stored = None,
        Some(Limit::To(amount)) => *stored = Some(value(amount)),
    }
}

fn replace<T: Clone>(stored: &mut Vec<T>, given: &[T]) {
    if !given.is_empty() {
        *stored = given.to_vec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn isolated(ports: &[u16]) -> Network {
        Network::Isolated {
            ports: ports.to_vec(),
            hosts: vec![],
            publish: vec![],
        }
    }

    #[test]
    fn no_flag_changes_nothing() {
        let stored = Settings {
            network: isolated(&[1]),
            limits: Limits {
                pids: Some(3),
                ..Limits::default()
            },
            ..Settings::default()
        };
        assert_eq!(IsolationOptions::default().over(&stored), stored);
    }

    #[test]
    fn naming_what_may_be_reached_isolates_the_rest() {
        let flags = IsolationOptions {
            with_ports: vec![5432],
            ..IsolationOptions::default()
        };
        assert_eq!(flags.over(&Settings::default()).network, isolated(&[5432]));
    }

    #[test]
    fn a_network_list_replaces_the_stored_one_and_the_host_network_lifts_all() {
        let stored = Settings {
            network: isolated(&[1, 2]),
            ..Settings::default()
        };
        let flags = IsolationOptions {
            with_ports: vec![3],
            ..IsolationOptions::default()
        };
        assert_eq!(flags.over(&stored).network, isolated(&[3]));
        let flags = IsolationOptions {
            host_network: true,
            ..IsolationOptions::default()
        };
        assert_eq!(flags.over(&stored).network, Network::Host);
    }

    #[test]
    fn a_limit_is_replaced_or_lifted() {
        let limits = Limits {
            pids: Some(3),
            memory: Some(ByteSize(1)),
            ..Limits::default()
        };
        let stored = Settings {
            limits,
            ..Settings::default()
        };
        let flags = IsolationOptions {
            pids: Some(Limit::Lifted),
            memory: Some(Limit::To(ByteSize(2))),
            ..IsolationOptions::default()
        };
        let limits = flags.over(&stored).limits;
        assert_eq!((limits.pids, limits.memory), (None, Some(ByteSize(2))));
    }

    #[test]
    fn a_variable_given_again_takes_the_new_value() {
        let stored = Settings {
            env: vec!["A=1".parse().unwrap(), "B=1".parse().unwrap()],
            ..Settings::default()
        };
        let flags = IsolationOptions {
            env: vec!["A=2".parse().unwrap()],
            ..IsolationOptions::default()
        };
        let env: Vec<_> = flags
            .over(&stored)
            .env
            .into_iter()
            .map(|v| (v.name, v.value))
            .collect();
        assert_eq!(env, [("B".into(), "1".into()), ("A".into(), "2".into())]);
    }
}
