//! What the command line says.

use std::convert::Infallible;
use std::path::PathBuf;

use sandbox_server::Secret;

use super::raw::{Origin, Raw};
use super::setting::Which;

/// A flag for every setting that is no secret. All are texts: they are understood together with what
/// the environment and the file say.
#[derive(Debug, Default, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
pub(crate) struct Flags {
    /// Read settings from this TOML file [SANDBOX_CONFIG]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    /// Where to listen [SANDBOX_BIND, default 127.0.0.1:8000]
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<String>,

    /// Where to keep what is kept [SANDBOX_DATA]
    #[arg(long, value_name = "DIR")]
    data: Option<String>,

    /// The database: sqlite:, postgres: or mysql: URL; one with a password belongs in DATABASE_URL
    #[arg(long, value_name = "URL", value_parser = secret)]
    database: Option<Secret>,

    /// Where objects are: file:DIR, s3:BUCKET or s3://BUCKET/PREFIX [SANDBOX_OBJECTS]
    #[arg(long, value_name = "URL")]
    objects: Option<String>,

    /// What sessions run on: local [SANDBOX_RUNTIME]
    #[arg(long, value_name = "NAME")]
    runtime: Vec<String>,

    /// The user on this machine for sessions that have none of their own, when the server is root
    /// [SANDBOX_USER, the second of --session-uids]
    #[arg(long, value_name = "UID:GID")]
    user: Option<String>,

    /// The users that sessions have, each its own, when the server is root: FIRST-LAST, chosen or
    /// shared [SANDBOX_SESSION_UIDS, chosen]
    #[arg(long, value_name = "RANGE")]
    session_uids: Option<String>,

    /// What this machine is called among those that share a database [SANDBOX_NODE_ID]
    #[arg(long, value_name = "NAME")]
    node_id: Option<String>,

    /// Where others that share the database reach this one, as http://host:port
    /// [SANDBOX_ADVERTISE, where it listens]
    #[arg(long, value_name = "URL")]
    advertise: Option<String>,

    /// error, warn, info, debug or trace; also by part [LOG_LEVEL, info]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,

    /// How long executions may go on when the server is told to end [SANDBOX_DRAIN_TIMEOUT, 30s]
    #[arg(long, value_name = "TIME")]
    drain_timeout: Option<String>,

    /// How often a key may ask [SANDBOX_REQUESTS_PER_SECOND, 1000]
    #[arg(long, value_name = "NUMBER")]
    requests_per_second: Option<String>,

    /// The most connections at a time; others wait [SANDBOX_MAX_CONNECTIONS, 10000]
    #[arg(long, value_name = "NUMBER")]
    max_connections: Option<String>,

    /// A proxy that is believed about the client's address, as an address or CIDR block; again for more
    /// [SANDBOX_TRUSTED_PROXIES, none]
    #[arg(long = "trusted-proxy", value_name = "NETWORK")]
    trusted_proxies: Vec<String>,

    /// From where browsers may ask, such as https://app.example.com; again for more
    /// [SANDBOX_ALLOWED_ORIGINS, none]
    #[arg(long = "allowed-origin", value_name = "ORIGIN")]
    allowed_origins: Vec<String>,

    /// The most connections to the database [DATABASE_MAX_CONNECTIONS, 60]
    #[arg(long, value_name = "NUMBER", help_heading = STORE)]
    database_max_connections: Option<String>,

    /// After this long a connection is replaced [DATABASE_MAX_LIFETIME, 1h]
    #[arg(long, value_name = "TIME", help_heading = STORE)]
    database_max_lifetime: Option<String>,

    /// The S3 server's URL; Amazon's own without it [S3_ENDPOINT]
    #[arg(long, value_name = "URL", help_heading = STORE)]
    s3_endpoint: Option<String>,

    /// The bucket, as --objects s3:BUCKET [S3_BUCKET]
    #[arg(long, value_name = "NAME", help_heading = STORE)]
    s3_bucket: Option<String>,

    /// The region that requests are signed for [AWS_REGION, us-east-1]
    #[arg(long, value_name = "NAME", help_heading = STORE)]
    s3_region: Option<String>,

    /// Where requests name the bucket: path or host [S3_ADDRESSING, path]
    #[arg(long, value_name = "WHERE", help_heading = STORE)]
    s3_addressing: Option<String>,

    /// A session that nobody used for so long ends; or off [SANDBOX_IDLE_TIMEOUT, 30m]
    #[arg(long, value_name = "TIME", help_heading = SESSIONS)]
    idle_timeout: Option<String>,

    /// A session ends at this age, renewed or not; or off [SANDBOX_MAX_LIFETIME, 6h]
    #[arg(long, value_name = "TIME", help_heading = SESSIONS)]
    max_lifetime: Option<String>,

    /// Whether sessions end when they expire: on or off [SANDBOX_EXPIRE, on]
    #[arg(long, value_name = "SWITCH", help_heading = SESSIONS)]
    expire: Option<String>,

    /// How often sessions are looked at for ending, a minute at most [SANDBOX_REAP_INTERVAL, 10s]
    #[arg(long, value_name = "TIME", help_heading = SESSIONS)]
    reap_interval: Option<String>,

    /// How long a workspace is kept after its session's end; or off: for ever [SANDBOX_RETENTION, 24h]
    #[arg(long, value_name = "TIME", help_heading = SESSIONS)]
    retention: Option<String>,

    /// How long a session that ended and its executions are remembered; or off: for ever
    /// [SANDBOX_RECORD_RETENTION, off]
    #[arg(long, value_name = "TIME", help_heading = SESSIONS)]
    record_retention: Option<String>,

    /// A session unused for so long gives its processes up until its next use; or off
    /// [SANDBOX_HIBERNATE_AFTER, 1m]
    #[arg(long, value_name = "TIME", help_heading = SESSIONS)]
    hibernate_after: Option<String>,

    /// Refuse sessions whose template's limits cannot be enforced here: on or off
    /// [SANDBOX_STRICT_LIMITS, off]
    #[arg(long, value_name = "SWITCH", help_heading = SESSIONS)]
    strict_limits: Option<String>,

    /// The most sessions at a time [SANDBOX_MAX_SESSIONS, 20000]
    #[arg(long, value_name = "NUMBER", help_heading = SESSIONS)]
    max_sessions: Option<String>,

    /// How much memory and disk a new session may be promised, in percent of what is free
    /// [SANDBOX_OVERCOMMIT, 200]
    #[arg(long, value_name = "PERCENT", help_heading = SESSIONS)]
    overcommit: Option<String>,

    /// How many sessions of a template wait to be asked for; again for more, or none
    /// [SANDBOX_POOL, python-basic=2 and nodejs-basic=1]
    #[arg(long, value_name = "TEMPLATE=NUMBER", help_heading = SESSIONS)]
    pool: Vec<String>,

    /// A directory below which a session's source may be; again for more [SANDBOX_SOURCE_ROOTS, none]
    #[arg(long = "source-root", value_name = "DIR", help_heading = SESSIONS)]
    source_roots: Vec<String>,

    /// Whether what a session changed may be applied to its source: on or off [SANDBOX_PROMOTE, off]
    #[arg(long, value_name = "SWITCH", help_heading = SESSIONS)]
    promote: Option<String>,

    /// An address that sessions may ask to reach though it is no public name, as 10.0.0.7:5432; again for
    /// more [SANDBOX_ALLOWED_ADDRESSES, none]
    #[arg(long = "allowed-address", value_name = "HOST:PORT", help_heading = SESSIONS)]
    allowed_addresses: Vec<String>,
}

const STORE: &str = "Database and objects";
const SESSIONS: &str = "Sessions";

fn secret(text: &str) -> Result<Secret, Infallible> {
    Ok(Secret(text.to_owned()))
}

impl Flags {
    /// What was said.
    pub(super) fn given(&self) -> Raw {
        let mut raw = Raw::default();
        let database = self.database.as_ref().map(|url| url.0.clone());
        for (which, text) in [
            (Which::Bind, &self.bind),
            (Which::Data, &self.data),
            (Which::User, &self.user),
            (Which::SessionUids, &self.session_uids),
            (Which::NodeId, &self.node_id),
            (Which::Advertise, &self.advertise),
            (Which::LogLevel, &self.log_level),
            (Which::DrainTimeout, &self.drain_timeout),
            (Which::RequestsPerSecond, &self.requests_per_second),
            (Which::MaxConnections, &self.max_connections),
            (Which::Database, &database),
            (
                Which::DatabaseMaxConnections,
                &self.database_max_connections,
            ),
            (Which::DatabaseMaxLifetime, &self.database_max_lifetime),
            (Which::Objects, &self.objects),
            (Which::S3Endpoint, &self.s3_endpoint),
            (Which::S3Bucket, &self.s3_bucket),
            (Which::S3Region, &self.s3_region),
            (Which::S3Addressing, &self.s3_addressing),
            (Which::IdleTimeout, &self.idle_timeout),
            (Which::MaxLifetime, &self.max_lifetime),
            (Which::Expire, &self.expire),
            (Which::ReapInterval, &self.reap_interval),
            (Which::Retention, &self.retention),
            (Which::RecordRetention, &self.record_retention),
            (Which::HibernateAfter, &self.hibernate_after),
            (Which::StrictLimits, &self.strict_limits),
            (Which::MaxSessions, &self.max_sessions),
            (Which::Overcommit, &self.overcommit),
            (Which::Promote, &self.promote),
        ] {
            if let Some(text) = text {
                give(&mut raw, which, vec![text.clone()]);
            }
        }
        for (which, texts) in [
            (Which::Runtime, &self.runtime),
            (Which::Pool, &self.pool),
            (Which::SourceRoots, &self.source_roots),
            (Which::AllowedAddresses, &self.allowed_addresses),
            (Which::AllowedOrigins, &self.allowed_origins),
            (Which::TrustedProxies, &self.trusted_proxies),
        ] {
            if !texts.is_empty() {
                give(&mut raw, which, texts.clone());
            }
        }
        raw
    }
}

fn give(raw: &mut Raw, which: Which, texts: Vec<String>) {
    if let Some(flag) = which.setting().flag {
        raw.give(which, texts, Origin::Flag(flag));
    }
}
