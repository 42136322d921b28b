//! What `sandbox serve` is told, and where each of it comes from.
//!
//! Every setting has a name in the file, most a flag, and a variable ([`setting`] is the table). What is
//! written in those three places becomes texts with an origin ([`raw`]), of which the nearest counts:
//! flag, environment, file. Only then are the texts understood ([`resolve`]), so that a wrong value is
//! told alike wherever it stands. Nothing here starts anything.

pub(crate) mod check;
mod duration;
mod environment;
mod error;
mod file;
pub(crate) mod flags;
mod raw;
mod resolve;
mod role;
mod setting;
mod value;

use std::ffi::OsString;
use std::path::PathBuf;

use crate::surroundings::SurroundingsError;
use error::SettingError;
use flags::Flags;
use raw::Raw;

pub(crate) use raw::Origin;
pub(crate) use resolve::Resolved;
pub(crate) use setting::Which;

/// What is looked at beside the flags. In tests, something else than this process's own.
pub(crate) struct Surroundings<'a> {
    /// A variable that is set to something.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// The home, below which an ordinary user's data is kept.
    pub(crate) home: Result<PathBuf, SurroundingsError>,
    /// Is the server root?
    pub(crate) is_root: bool,
    /// What the machine calls itself.
    pub(crate) hostname: String,
}

/// Names the configuration file, where `--config` does not.
const CONFIG: &str = "SANDBOX_CONFIG";

/// Puts flags over environment over file over defaults.
pub(crate) fn settle(
    flags: &Flags,
    surroundings: Surroundings<'_>,
) -> Result<Resolved, SettingError> {
    let config = match &flags.config {
        Some(path) => Some(path.clone()),
        None => (surroundings.variable)(CONFIG).map(PathBuf::from),
    };
    let file = match &config {
        Some(path) => file::read(path)?,
        None => Raw::default(),
    };
    let environment = environment::read(surroundings.variable)?;
    let raw = file.under(environment).under(flags.given());
    resolve::resolve(&raw, surroundings)
}

#[cfg(test)]
mod documents;
#[cfg(test)]
mod tests;
