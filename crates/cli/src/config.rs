//! `config.toml`: defaults of the user's own.
//!
//! Read only by the commands that need a value of it, and only where the file exists. A key that
//! is not ours is an error naming file, line and key: a typo that silently did nothing would be worse.

use std::io;
use std::path::{Path, PathBuf};

use sandbox_model::{BackendChoice, Class, Failure, Settings};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use thiserror::Error;

use crate::isolation_options::{self, IsolationOptions, Limit};

/// Days without use after which a sandbox is called stale.
pub(crate) const STALE_DAYS: u32 = 7;

/// Days for which a discarded sandbox can be restored.
pub(crate) const DISCARDED_DAYS: u32 = 7;

/// The file's values.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// The backend of new sandboxes.
    #[serde(deserialize_with = "parsed")]
    pub(crate) backend: Option<BackendChoice>,
    /// The shell of `enter`.
    pub(crate) shell: Option<PathBuf>,
    /// Days without use after which a sandbox is called stale.
    pub(crate) stale_days: Option<u32>,
    /// Days for which a discarded sandbox can be restored; 0 deletes it at once.
    pub(crate) discarded_days: Option<u32>,
    /// Isolation of new sandboxes.
    isolation: Isolation,
}

/// The `[isolation]` table: the flags' names and values.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Isolation {
    isolated_network: bool,
    with_ports: Vec<u16>,
    allow_host: Vec<String>,
    publish: Vec<String>,
    memory: Option<String>,
    cpus: Option<Number>,
    pids: Option<u32>,
    size: Option<String>,
    expose: Vec<String>,
    hide: Vec<String>,
    env: Vec<String>,
    clean_env: bool,
    isolation: Option<String>,
}

/// `1.5`, `2` or `"1.5"`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
enum Number {
    Whole(u32),
    Fraction(f64),
    Text(String),
}

/// Why the file cannot be used.
#[derive(Debug, Error)]
pub(crate) enum ConfigError {
    /// It is there but cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It does not say anything we understand.
    #[error("{}:{line}: {message}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where in it.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// An isolation value is not what its flag takes.
    #[error("{}: isolation.{key}: {message}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// The key.
        key: &'static str,
        /// What is wrong.
        message: String,
    },
}

impl Failure for ConfigError {
    fn class(&self) -> Class {
        match self {
            ConfigError::Read { source, .. } => Class::of_io(source),
            _ => Class::General,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            ConfigError::Read { .. } => None,
            _ => Some("docs/configuration.md lists every key; delete the file for defaults".into()),
        }
    }
}

impl Config {
    /// Reads `path`; no file is the default.
    pub(crate) fn read(path: &Path) -> Result<Config, ConfigError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(Config::default());
            }
            Err(source) => {
                return Err(ConfigError::Read {
                    path: path.to_owned(),
                    source,
                });
            }
        };
        let config = Config::parse(&text, path)?;
        config.isolation_options(path)?;
        Ok(config)
    }

    fn parse(text: &str, path: &Path) -> Result<Config, ConfigError> {
        toml::from_str(text).map_err(|error| ConfigError::Parse {
            path: path.to_owned(),
            line: error
                .span()
                .map_or(1, |span| 1 + text[..span.start].matches('\n').count()),
            message: error
                .message()
                .replace("unknown field", "unknown key")
                .replace('\n', " "),
        })
    }

    /// Days for which a discarded sandbox can be restored.
    pub(crate) fn discarded_days(&self) -> u32 {
        self.discarded_days.unwrap_or(DISCARDED_DAYS)
    }

    /// Days without use after which a sandbox is stale.
    pub(crate) fn stale_days(&self) -> u32 {
        self.stale_days.unwrap_or(STALE_DAYS)
    }

    /// The isolation settings of a new sandbox, before its flags.
    pub(crate) fn settings(&self) -> Settings {
        // Checked when the file was read; a default config has none.
        let options = self
            .isolation_options(Path::new("config.toml"))
            .unwrap_or_default();
        options.over(&Settings::default())
    }

    fn isolation_options(&self, path: &Path) -> Result<IsolationOptions, ConfigError> {
        let from = &self.isolation;
        let wrong = |key, message| ConfigError::Value {
            path: path.to_owned(),
            key,
            message,
        };
        let cpus = from.cpus.as_ref().map(|number| match number {
            Number::Whole(whole) => whole.to_string(),
            Number::Fraction(fraction) => fraction.to_string(),
            Number::Text(text) => text.clone(),
        });
        if from.with_ports.contains(&0) {
            return Err(wrong("with_ports", "0 is not a TCP port".into()));
        }
        if from.pids == Some(0) {
            return Err(wrong("pids", "'0' is not a number of processes".into()));
        }
        Ok(IsolationOptions {
            isolated_network: from.isolated_network,
            host_network: false,
            with_ports: from.with_ports.clone(),
            allow_host: each(&from.allow_host, str::parse).map_err(|m| wrong("allow_host", m))?,
            publish: each(&from.publish, str::parse).map_err(|m| wrong("publish", m))?,
            memory: one(&from.memory).map_err(|m| wrong("memory", m))?,
            cpus: one(&cpus).map_err(|m| wrong("cpus", m))?,
            pids: from
                .pids
                .map(|number| Limit::To(isolation_options::Count(number))),
            size: one(&from.size).map_err(|m| wrong("size", m))?,
            expose: each(&from.expose, absolute_exposure).map_err(|m| wrong("expose", m))?,
            hide: each(&from.hide, absolute_path).map_err(|m| wrong("hide", m))?,
            env: each(&from.env, str::parse).map_err(|m| wrong("env", m))?,
            clean_env: from.clean_env,
            isolation: from
                .isolation
                .as_deref()
                .map(isolation_options::wall)
                .transpose()
                .map_err(|m| wrong("isolation", m))?,
        })
    }
}

fn one<T: std::str::FromStr<Err: ToString>>(text: &Option<String>) -> Result<Option<T>, String> {
    text.as_deref()
        .map(str::parse)
        .transpose()
        .map_err(|error: T::Err| error.to_string())
}

fn each<T, E: ToString>(
    texts: &[String],
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Vec<T>, String> {
    texts
        .iter()
        .map(|text| parse(text).map_err(|error| error.to_string()))
        .collect()
}

/// A file's relative paths would mean something else in every directory.
fn absolute_path(text: &str) -> Result<PathBuf, String> {
    match text.starts_with('/') {
        true => Ok(PathBuf::from(text)),
        false => Err(format!("'{text}' is not an absolute path")),
    }
}

fn absolute_exposure(text: &str) -> Result<sandbox_model::Exposure, String> {
    text.parse()
        .map_err(|error: sandbox_model::settings::SettingsError| error.to_string())
}

fn parsed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<BackendChoice>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, ConfigError> {
        let path = Path::new("/c/config.toml");
        let config = Config::parse(text, path)?;
        config.isolation_options(path)?;
        Ok(config)
    }

    #[test]
    fn every_documented_key_is_understood() {
        let documentation = include_str!("../../../docs/configuration.md");
        let example = documentation.split("```toml\n").nth(1).unwrap();
        let example = example.split("```").next().unwrap();
        let config = read(example).unwrap();
        assert!(config.backend.is_some() && config.shell.is_some() && config.stale_days.is_some());
        assert!(config.discarded_days.is_some());
        let settings = config.settings();
        assert!(settings.limits.memory.is_some() && settings.limits.cpu_millis.is_some());
        assert!(settings.limits.pids.is_some() && settings.limits.size.is_some());
        assert!(
            !settings.expose.is_empty() && !settings.hide.is_empty() && !settings.env.is_empty()
        );
    }

    #[test]
    fn an_unknown_key_is_named_with_its_file_and_line() {
        let error = read("backend = \"copy\"\n\nbackened = 1\n")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("/c/config.toml:3: unknown key `backened`"),
            "{error}"
        );
        let error = read("[isolation]\nmemry = \"1G\"\n")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("/c/config.toml:2: unknown key `memry`"),
            "{error}"
        );
    }

    #[test]
    fn a_wrong_value_is_named_with_its_key() {
        let error = read("[isolation]\nmemory = \"lots\"\n")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("/c/config.toml: isolation.memory: 'lots' is not a size"),
            "{error}"
        );
        let error = read("backend = \"zfs\"\n").unwrap_err().to_string();
        assert!(
            error.starts_with("/c/config.toml:1: unknown backend 'zfs'"),
            "{error}"
        );
        let error = read("[isolation]\nhide = [\"secrets\"]\n")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("isolation.hide: 'secrets' is not an absolute path"),
            "{error}"
        );
    }
}
