//! What a server is told when it starts. Where each value comes from (flag, environment, file, default) is
//! the command line's affair.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use sandbox_linux::identity::Ids;
use sandbox_runtime::UserRange;
use sandbox_store::objects::{Addressing, Credentials, Location, Role};
use sandbox_store::records::Pool;

use crate::client_address::Network;

/// Everything a server is told.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it listens.
    pub bind: SocketAddr,
    /// Where it keeps what it keeps.
    pub data: PathBuf,
    /// The records' database.
    pub database: Secret,
    /// How it is connected to.
    pub pool: Pool,
    /// Where objects are.
    pub objects: Location,
    /// How S3 is spoken to, where that is where they are.
    pub s3: S3,
    /// The admin's key; one is made and kept where none is given.
    pub api_key: Option<Secret>,
    /// What the tokens of sessions are derived from; one is made and kept where none is given.
    pub internal_token: Option<Secret>,
    /// The user of this machine for sessions that have none of their own, when the server is root.
    pub user: Option<Ids>,
    /// Which users of this machine sessions have, each its own. None where the server is not root.
    pub session_uids: Option<SessionUids>,
    /// From where browsers may speak to it.
    pub allowed_origins: Vec<String>,
    /// The proxies that are believed about where a request comes from.
    pub trusted_proxies: Vec<Network>,
    /// How many requests a second a key may make.
    pub requests_per_second: u32,
    /// How many connections it has at a time, where it may have as many descriptors.
    pub max_connections: usize,
    /// How much is logged, such as `info`.
    pub log_level: String,
    /// What the control plane is told.
    pub control: sandbox_control::Settings,
}

/// Which users of this machine sessions have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionUids {
    /// Each has its own, out of a range that is chosen at the first start and kept.
    Chosen,
    /// Each has its own out of this range, of which the supervisor has the first.
    Range(UserRange),
    /// All have the same.
    Shared,
}

/// The largest number that a user can have: the next two have a meaning of their own.
const LARGEST_ID: u32 = u32::MAX - 2;

impl SessionUids {
    /// `FIRST-LAST`, three users at least and none of them root.
    pub fn parse_range(text: &str) -> Option<UserRange> {
        let (first, last) = text.split_once('-')?;
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        let is_range = 0 < first && last <= LARGEST_ID && last.checked_sub(first) >= Some(2);
        is_range.then(|| UserRange {
            first,
            count: last - first + 1,
        })
    }
}

/// How S3 is spoken to.
#[derive(Debug, Clone, Default)]
pub struct S3 {
    /// The server's URL; Amazon's own when there is none.
    pub endpoint: Option<String>,
    /// The region that requests are signed for.
    pub region: Option<String>,
    /// Where requests name their bucket.
    pub addressing: Option<Addressing>,
    /// Who we are; whoever `role` is when there is none.
    pub credentials: Option<Credentials>,
    /// Who gives us credentials that nobody wrote down.
    pub role: Role,
}

/// A key that is shorter than this, in characters, is found by trying.
pub const SHORTEST_KEY: usize = 16;

/// A text that no log shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl Secret {
    /// As a key, could it be found by trying?
    pub fn is_guessable(&self) -> bool {
        self.0.chars().count() < SHORTEST_KEY
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}
