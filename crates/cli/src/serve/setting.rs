//! The table of everything that can be set.

/// A setting, by which its text is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Which {
    Bind,
    Data,
    Runtime,
    User,
    SessionUids,
    NodeId,
    Advertise,
    LogLevel,
    DrainTimeout,
    RequestsPerSecond,
    MaxConnections,
    TrustedProxies,
    ApiKey,
    InternalToken,
    Database,
    DatabaseMaxConnections,
    DatabaseMaxLifetime,
    Objects,
    S3Endpoint,
    S3Bucket,
    S3Region,
    S3Addressing,
    S3AccessKeyId,
    S3SecretAccessKey,
    S3SessionToken,
    IdleTimeout,
    MaxLifetime,
    Expire,
    ReapInterval,
    Retention,
    RecordRetention,
    HibernateAfter,
    StrictLimits,
    MaxSessions,
    Overcommit,
    Pool,
    SourceRoots,
    Promote,
    AllowedAddresses,
    AllowedOrigins,
}

/// What sort of text it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One text.
    One,
    /// Several: a flag said again, a list in the file, commas in a variable.
    Many,
    /// One that nobody is shown; it can be in a file of its own, which `NAME_FILE` names, or `name_file`.
    Secret,
}

/// How a setting is written.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) which: Which,
    /// In the file, with its table.
    pub(crate) name: &'static str,
    /// On the command line. What is secret has none: everybody on the machine can read arguments.
    pub(crate) flag: Option<&'static str>,
    /// In the environment; the first that is set counts.
    pub(crate) variables: &'static [&'static str],
    pub(crate) kind: Kind,
}

const fn one(
    which: Which,
    name: &'static str,
    flag: &'static str,
    variables: &'static [&'static str],
) -> Setting {
    Setting {
        which,
        name,
        flag: Some(flag),
        variables,
        kind: Kind::One,
    }
}

const fn many(
    which: Which,
    name: &'static str,
    flag: &'static str,
    variables: &'static [&'static str],
) -> Setting {
    Setting {
        kind: Kind::Many,
        ..one(which, name, flag, variables)
    }
}

const fn secret(which: Which, name: &'static str, variables: &'static [&'static str]) -> Setting {
    Setting {
        which,
        name,
        flag: None,
        variables,
        kind: Kind::Secret,
    }
}

/// All of them, as `--check` tells them.
#[rustfmt::skip]
pub(crate) const SETTINGS: &[Setting] = &[
    one(Which::Bind, "bind", "--bind", &["SANDBOX_BIND"]),
    one(Which::Data, "data", "--data", &["SANDBOX_DATA"]),
    many(Which::Runtime, "runtime", "--runtime", &["SANDBOX_RUNTIME"]),
    one(Which::User, "user", "--user", &["SANDBOX_USER"]),
    one(Which::SessionUids, "session_uids", "--session-uids", &["SANDBOX_SESSION_UIDS"]),
    one(Which::NodeId, "node_id", "--node-id", &["SANDBOX_NODE_ID"]),
    one(Which::Advertise, "advertise", "--advertise", &["SANDBOX_ADVERTISE"]),
    one(Which::LogLevel, "log_level", "--log-level", &["LOG_LEVEL"]),
    one(Which::DrainTimeout, "drain_timeout", "--drain-timeout", &["SANDBOX_DRAIN_TIMEOUT"]),
    one(Which::RequestsPerSecond, "requests_per_second", "--requests-per-second", &["SANDBOX_REQUESTS_PER_SECOND"]),
    one(Which::MaxConnections, "max_connections", "--max-connections", &["SANDBOX_MAX_CONNECTIONS"]),
    many(Which::TrustedProxies, "trusted_proxies", "--trusted-proxy", &["SANDBOX_TRUSTED_PROXIES"]),
    secret(Which::ApiKey, "api_key", &["SANDBOX_API_KEY"]),
    secret(Which::InternalToken, "internal_token", &["INTERNAL_API_TOKEN"]),
    Setting { flag: Some("--database"), ..secret(Which::Database, "database.url", &["DATABASE_URL"]) },
    one(Which::DatabaseMaxConnections, "database.max_connections", "--database-max-connections", &["DATABASE_MAX_CONNECTIONS"]),
    one(Which::DatabaseMaxLifetime, "database.max_lifetime", "--database-max-lifetime", &["DATABASE_MAX_LIFETIME"]),
    one(Which::Objects, "objects.url", "--objects", &["SANDBOX_OBJECTS"]),
    one(Which::S3Endpoint, "s3.endpoint", "--s3-endpoint", &["S3_ENDPOINT", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]),
    one(Which::S3Bucket, "s3.bucket", "--s3-bucket", &["S3_BUCKET"]),
    one(Which::S3Region, "s3.region", "--s3-region", &["AWS_REGION", "AWS_DEFAULT_REGION"]),
    one(Which::S3Addressing, "s3.addressing", "--s3-addressing", &["S3_ADDRESSING"]),
    secret(Which::S3AccessKeyId, "s3.access_key_id", &["AWS_ACCESS_KEY_ID"]),
    secret(Which::S3SecretAccessKey, "s3.secret_access_key", &["AWS_SECRET_ACCESS_KEY"]),
    secret(Which::S3SessionToken, "s3.session_token", &["AWS_SESSION_TOKEN"]),
    one(Which::IdleTimeout, "sessions.idle_timeout", "--idle-timeout", &["SANDBOX_IDLE_TIMEOUT"]),
    one(Which::MaxLifetime, "sessions.max_lifetime", "--max-lifetime", &["SANDBOX_MAX_LIFETIME"]),
    one(Which::Expire, "sessions.expire", "--expire", &["SANDBOX_EXPIRE"]),
    one(Which::ReapInterval, "sessions.reap_interval", "--reap-interval", &["SANDBOX_REAP_INTERVAL"]),
    one(Which::Retention, "sessions.retention", "--retention", &["SANDBOX_RETENTION"]),
    one(Which::RecordRetention, "sessions.record_retention", "--record-retention", &["SANDBOX_RECORD_RETENTION"]),
    one(Which::HibernateAfter, "sessions.hibernate_after", "--hibernate-after", &["SANDBOX_HIBERNATE_AFTER"]),
    one(Which::StrictLimits, "sessions.strict_limits", "--strict-limits", &["SANDBOX_STRICT_LIMITS"]),
    one(Which::MaxSessions, "sessions.max_sessions", "--max-sessions", &["SANDBOX_MAX_SESSIONS"]),
    one(Which::Overcommit, "sessions.overcommit", "--overcommit", &["SANDBOX_OVERCOMMIT"]),
    many(Which::Pool, "sessions.pool", "--pool", &["SANDBOX_POOL"]),
    many(Which::SourceRoots, "sessions.source_roots", "--source-root", &["SANDBOX_SOURCE_ROOTS"]),
    one(Which::Promote, "sessions.promote", "--promote", &["SANDBOX_PROMOTE"]),
    many(Which::AllowedAddresses, "sessions.allowed_addresses", "--allowed-address", &["SANDBOX_ALLOWED_ADDRESSES"]),
    many(Which::AllowedOrigins, "cors.allowed_origins", "--allowed-origin", &["SANDBOX_ALLOWED_ORIGINS"]),
];

impl Which {
    /// Its row.
    pub(crate) fn setting(self) -> &'static Setting {
        // The table has them in their order, which a test holds it to.
        &SETTINGS[self as usize]
    }
}

impl Setting {
    /// What it is called in a file of its own: `api_key_file`.
    pub(crate) fn is_file_name(&self, name: &str) -> bool {
        self.kind == Kind::Secret && name.strip_suffix("_file") == Some(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_its_keys() {
        for (at, setting) in SETTINGS.iter().enumerate() {
            assert_eq!(setting.which as usize, at, "{}", setting.name);
        }
        assert_eq!(Which::AllowedOrigins as usize + 1, SETTINGS.len());
    }

    #[test]
    fn no_name_is_used_twice() {
        let names = |of: fn(&Setting) -> Vec<&'static str>| {
            let mut names: Vec<_> = SETTINGS.iter().flat_map(of).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all);
        };
        names(|setting| vec![setting.name]);
        names(|setting| setting.flag.into_iter().collect());
        names(|setting| setting.variables.to_vec());
    }
}
