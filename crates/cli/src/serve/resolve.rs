//! Texts into settings.
//!
//! A default is a text, too, and goes the same way: what `--check` shows and the documentation says of it
//! is what is used.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sandbox_linux::identity::Ids;
use sandbox_model::{NodeId, TemplateId};
use sandbox_server::{
    ControlSettings, Credentials, Location, Pool, Role, S3, SHORTEST_KEY, Secret, SessionUids,
    Settings,
};

use super::error::SettingError;
use super::raw::{Given, Origin, Raw};
use super::setting::{Kind, Which};
use super::{Surroundings, duration, role, value};

/// Sessions end within a minute of when they should.
const LONGEST_REAP_INTERVAL: Duration = Duration::from_secs(60);

/// What a server is told, and where all of it comes from.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) settings: Settings,
    /// Every setting as people may see it, in the table's order.
    pub(crate) shown: Vec<Shown>,
    /// What works, and should be done otherwise.
    pub(crate) warnings: Vec<String>,
}

impl Resolved {
    /// Where a setting comes from.
    pub(crate) fn origin(&self, which: Which) -> Origin {
        let shown = self.shown.iter().find(|shown| shown.which == which);
        shown.map_or(Origin::Default, |shown| shown.origin.clone())
    }
}

/// A setting as people may see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) which: Which,
    pub(crate) value: String,
    pub(crate) origin: Origin,
}

pub(super) fn resolve(raw: &Raw, surroundings: Surroundings<'_>) -> Result<Resolved, SettingError> {
    let mut reading = Reading {
        raw,
        shown: Vec::new(),
    };
    let bind = reading.one(Which::Bind, "127.0.0.1:8000", value::address)?;
    let data = data(&mut reading, &surroundings)?;
    reading.many(Which::Runtime, &["local"], value::runtime)?;
    let user = user(&mut reading, surroundings.is_root)?;
    let session_uids = session_uids(&mut reading, surroundings.is_root)?;
    let database = database(&mut reading, &data)?;
    let node_id = node_id(&mut reading, &data, &database, &surroundings.hostname)?;
    let objects = objects(&mut reading, &data)?;
    let s3 = s3(&mut reading, &objects, &surroundings)?;
    let settings = Settings {
        bind,
        pool: Pool {
            max_connections: reading.one(
                Which::DatabaseMaxConnections,
                "60",
                value::number(1, 10_000),
            )?,
            max_lifetime: reading.one(Which::DatabaseMaxLifetime, "1h", duration::some)?,
            ..Pool::default()
        },
        database,
        objects,
        s3,
        api_key: reading.secret(Which::ApiKey, || kept(&data, "admin.key"))?,
        internal_token: reading.secret(Which::InternalToken, || kept(&data, "internal.token"))?,
        user,
        session_uids,
        allowed_origins: reading.many(Which::AllowedOrigins, &[], value::origin)?,
        trusted_proxies: reading.many(Which::TrustedProxies, &[], str::parse)?,
        requests_per_second: reading.one(
            Which::RequestsPerSecond,
            "1000",
            value::number(1, 1_000_000),
        )?,
        max_connections: reading.one(
            Which::MaxConnections,
            "10000",
            value::number(1, 1_000_000),
        )?,
        log_level: reading.one(Which::LogLevel, "info", log_level)?,
        control: sessions(&mut reading, node_id)?,
        data,
    };
    let mut shown = reading.shown;
    shown.sort_by_key(|shown| shown.which);
    Ok(Resolved {
        warnings: warnings(raw, &settings),
        settings,
        shown,
    })
}

fn data(reading: &mut Reading<'_>, around: &Surroundings<'_>) -> Result<PathBuf, SettingError> {
    let default = match (&around.home, around.is_root, reading.raw.get(Which::Data)) {
        (_, _, Some(_)) => String::new(),
        (_, true, _) => String::from("/var/lib/sandbox"),
        (Ok(home), false, _) => {
            let below = home.join(".local/share/daedalos/server");
            below.display().to_string()
        }
        (Err(error), false, _) => return Err(error.clone().into()),
    };
    reading.path(Which::Data, &default)
}

fn user(reading: &mut Reading<'_>, is_root: bool) -> Result<Option<Ids>, SettingError> {
    let refusal = "only root can have sessions belong to somebody else";
    let given = for_root(reading, is_root, Which::User, refusal, |reading| {
        reading.optional(Which::User, "one of session_uids", value::user)
    });
    given.map(Option::flatten)
}

fn session_uids(
    reading: &mut Reading<'_>,
    is_root: bool,
) -> Result<Option<SessionUids>, SettingError> {
    let refusal = "only root can give sessions users of their own";
    for_root(reading, is_root, Which::SessionUids, refusal, |reading| {
        reading.one(Which::SessionUids, "chosen", value::session_uids)
    })
}

/// Reads a setting that only root may give. `None` where the server is not root.
fn for_root<T>(
    reading: &mut Reading<'_>,
    is_root: bool,
    which: Which,
    refusal: &str,
    read: impl FnOnce(&mut Reading<'_>) -> Result<T, SettingError>,
) -> Result<Option<T>, SettingError> {
    match (is_root, reading.raw.get(which)) {
        (true, _) => read(reading).map(Some),
        (false, None) => {
            reading.show(which, "your own".to_owned(), Origin::Default);
            Ok(None)
        }
        (false, Some(given)) => Err(wrong(which, given, refusal.to_owned())),
    }
}

fn database(reading: &mut Reading<'_>, data: &Path) -> Result<Secret, SettingError> {
    let default = format!("sqlite:{}", data.join("records.db").display());
    let url = match reading.raw.get(Which::Database) {
        Some(given) => reading.parse(Which::Database, given, value::database)?,
        None => default,
    };
    let origin = reading.origin(Which::Database);
    reading.show(Which::Database, value::without_user(&url), origin);
    Ok(Secret(url))
}

/// Those who share a database are told apart by what their machines are called, or were when they first started: their
/// sessions are theirs by that.
fn node_id(
    reading: &mut Reading<'_>,
    data: &Path,
    database: &Secret,
    hostname: &str,
) -> Result<NodeId, SettingError> {
    let parse = |text: &str| text.parse::<NodeId>().map_err(|error| error.to_string());
    // One that cannot be read is refused by the server, and by a check.
    let kept = sandbox_server::kept_node(data, database).unwrap_or_default();
    match (kept, reading.raw.get(Which::NodeId)) {
        (Some(kept), None) => {
            let given = Given {
                texts: vec![kept],
                origin: Origin::File(data.join("node.id"), 1),
            };
            let node = reading.parse(Which::NodeId, &given, parse)?;
            reading.show(Which::NodeId, node.to_string(), given.origin);
            Ok(node)
        }
        _ => {
            let default = match database.0.starts_with("sqlite:") {
                true => "local",
                false => hostname,
            };
            reading.one(Which::NodeId, default, parse)
        }
    }
}

/// `--objects`, or the bucket that was named by itself: whichever stands nearer.
fn objects(reading: &mut Reading<'_>, data: &Path) -> Result<Location, SettingError> {
    let default = format!("file:{}", data.join("objects").display());
    let place = reading.one(Which::Objects, &default, value::objects)?;
    let Some(given) = reading.raw.get(Which::S3Bucket) else {
        return Ok(place);
    };
    let bucket = reading.parse(Which::S3Bucket, given, value::bucket)?;
    let name = given.texts.join(",");
    reading.show(Which::S3Bucket, name, given.origin.clone());
    let chosen = reading.origin(Which::Objects);
    if given.origin.is_nearer_than(&chosen) {
        let name = format!("s3:{}", given.texts.join(","));
        reading.show_instead(Which::Objects, name, given.origin.clone());
        return Ok(bucket);
    }
    let is_same = match (&place, &bucket) {
        (Location::Bucket { name, .. }, Location::Bucket { name: other, .. }) => name == other,
        _ => false,
    };
    match is_same || chosen.is_nearer_than(&given.origin) {
        true => Ok(place),
        false => Err(SettingError::TwoPlaces(chosen, given.origin.clone())),
    }
}

fn s3(
    reading: &mut Reading<'_>,
    objects: &Location,
    around: &Surroundings<'_>,
) -> Result<S3, SettingError> {
    let unset = || String::from("not set");
    let access_key = reading.secret(Which::S3AccessKeyId, unset)?;
    let secret_key = reading.secret(Which::S3SecretAccessKey, unset)?;
    let session_token = reading.secret(Which::S3SessionToken, unset)?;
    let half = |given: Which, missing: Which| {
        let missing = missing.setting().variables[0];
        Err(SettingError::HalfCredentials(
            reading.origin(given),
            missing,
        ))
    };
    let credentials = match (access_key, secret_key, session_token) {
        (Some(Secret(access_key)), Some(Secret(secret_key)), token) => Some(Credentials {
            access_key,
            secret_key,
            session_token: token.map(|token| token.0),
        }),
        (None, None, None) => None,
        (Some(_), None, _) => return half(Which::S3AccessKeyId, Which::S3SecretAccessKey),
        (None, Some(_), _) => return half(Which::S3SecretAccessKey, Which::S3AccessKeyId),
        (None, None, Some(_)) => return half(Which::S3SessionToken, Which::S3AccessKeyId),
    };
    let is_role = credentials.is_none() && matches!(objects, Location::Bucket { .. });
    let (role, by) = match is_role {
        true => role::read(around.variable)?,
        false => (Role::Machine, Origin::Default),
    };
    if role != Role::Machine {
        reading.show_instead(Which::S3AccessKeyId, "by a role".to_owned(), by);
    }
    Ok(S3 {
        endpoint: reading.optional(Which::S3Endpoint, "Amazon's own", value::endpoint)?,
        region: Some(reading.one(Which::S3Region, "us-east-1", named)?),
        addressing: Some(reading.one(Which::S3Addressing, "path", value::addressing)?),
        credentials,
        role,
    })
}

fn sessions(reading: &mut Reading<'_>, node_id: NodeId) -> Result<ControlSettings, SettingError> {
    let mut control = ControlSettings::new(node_id);
    control.idle_timeout = reading.one(Which::IdleTimeout, "30m", duration::or_off)?;
    control.max_lifetime = reading.one(Which::MaxLifetime, "6h", duration::or_off)?;
    control.expire = reading.one(Which::Expire, "on", value::switch)?;
    control.reap_interval = reading.one(Which::ReapInterval, "10s", reap_interval)?;
    control.retention = reading.one(Which::Retention, "24h", duration::or_never)?;
    control.record_retention = reading.one(Which::RecordRetention, "off", duration::or_off)?;
    control.hibernate_after = reading.one(Which::HibernateAfter, "1m", duration::or_never)?;
    control.strict_limits = reading.one(Which::StrictLimits, "off", value::switch)?;
    control.max_sessions = reading.one(Which::MaxSessions, "20000", value::number(1, 1_000_000))?;
    control.overcommit_percent = reading.one(Which::Overcommit, "200", value::number(1, 10_000))?;
    control.pool = pool(reading)?;
    control.source_roots = reading.paths(Which::SourceRoots)?;
    control.promote = reading.one(Which::Promote, "off", value::switch)?;
    control.allowed_addresses = reading.many(Which::AllowedAddresses, &[], value::host_and_port)?;
    let listening = "where it listens";
    let advertised = reading.optional(Which::Advertise, listening, value::advertised)?;
    control.endpoint = advertised.unwrap_or_default();
    control.drain_timeout = reading.one(Which::DrainTimeout, "30s", duration::some)?;
    Ok(control)
}

/// How many sessions wait, by their template.
fn pool(reading: &mut Reading<'_>) -> Result<BTreeMap<TemplateId, u32>, SettingError> {
    let usual = ["python-basic=2", "nodejs-basic=1"];
    let sizes = reading.many(Which::Pool, &usual, value::pool)?;
    Ok(sizes.into_iter().flatten().collect())
}

fn reap_interval(text: &str) -> Result<Duration, String> {
    let interval = duration::some(text)?;
    match interval <= LONGEST_REAP_INTERVAL {
        true => Ok(interval),
        false => Err(format!("'{text}' is longer than a minute")),
    }
}

fn log_level(text: &str) -> Result<String, String> {
    match sandbox_server::is_log_level(text) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "'{text}' is not a log level; those are error, warn, info, debug and trace"
        )),
    }
}

fn named(text: &str) -> Result<String, String> {
    let byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    match !text.is_empty() && text.bytes().all(byte) {
        true => Ok(text.to_owned()),
        false => Err(format!("'{text}' is not a region's name, like us-east-1")),
    }
}

fn kept(data: &Path, file: &str) -> String {
    format!("made once, kept in {}", data.join(file).display())
}

fn warnings(raw: &Raw, settings: &Settings) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(given) = raw.get(Which::Database)
        && matches!(given.origin, Origin::Flag(_))
        && given.texts.iter().any(|url| value::has_password(url))
    {
        warnings.push(
            "everybody on this machine can read the password in --database; \
             put the URL into DATABASE_URL or DATABASE_URL_FILE"
                .to_owned(),
        );
    }
    // Where others could try it, it is not warned of: the server refuses it.
    if let (Some(given), Some(key)) = (raw.get(Which::ApiKey), &settings.api_key)
        && key.is_guessable()
        && settings.bind.ip().is_loopback()
    {
        warnings.push(format!(
            "{} has fewer than {SHORTEST_KEY} characters, and can be found by trying",
            given.origin
        ));
    }
    if let Some(path) = &raw.secrets_in {
        let mode = std::fs::metadata(path).map(|file| file.permissions().mode());
        if mode.is_ok_and(|mode| mode & 0o077 != 0) {
            let path = path.display();
            warnings.push(format!(
                "{path} has a secret in it, and others can read it; chmod 600 {path}"
            ));
        }
    }
    warnings
}

fn wrong(which: Which, given: &Given, message: String) -> SettingError {
    SettingError::Value {
        name: which.setting().name,
        origin: given.origin.clone(),
        message,
    }
}

/// Settings as they are read, one after the other.
struct Reading<'a> {
    raw: &'a Raw,
    shown: Vec<Shown>,
}

impl<'a> Reading<'a> {
    /// Where a setting comes from.
    fn origin(&self, which: Which) -> Origin {
        let given = self.raw.get(which);
        given.map_or(Origin::Default, |given| given.origin.clone())
    }

    fn show(&mut self, which: Which, value: String, origin: Origin) {
        self.shown.push(Shown {
            which,
            value,
            origin,
        });
    }

    /// Shows something else than was, because of what was found later.
    fn show_instead(&mut self, which: Which, value: String, origin: Origin) {
        self.shown.retain(|shown| shown.which != which);
        self.show(which, value, origin);
    }

    /// A setting that always has a value.
    fn one<T>(
        &mut self,
        which: Which,
        default: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, SettingError> {
        let given = self.given(which, &[default]);
        let value = self.parse(which, &given, parse)?;
        self.show(which, given.texts.join(","), given.origin);
        Ok(value)
    }

    /// One that may have none; `unset` says what there is then.
    fn optional<T>(
        &mut self,
        which: Which,
        unset: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, SettingError> {
        match self.raw.get(which) {
            Some(_) => self.one(which, "", parse).map(Some),
            None => {
                self.show(which, unset.to_owned(), Origin::Default);
                Ok(None)
            }
        }
    }

    fn many<T>(
        &mut self,
        which: Which,
        default: &[&str],
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Vec<T>, SettingError> {
        let given = self.given(which, default);
        let each = given.texts.iter().map(|text| parse(text));
        let values = each.collect::<Result<Vec<T>, String>>();
        let values = values.map_err(|message| wrong(which, &given, message))?;
        let shown = match given.texts.is_empty() {
            true => "none".to_owned(),
            false => given.texts.join(","),
        };
        self.show(which, shown, given.origin);
        Ok(values)
    }

    /// A secret is shown as being there, or as what happens when it is not.
    fn secret(
        &mut self,
        which: Which,
        unset: impl FnOnce() -> String,
    ) -> Result<Option<Secret>, SettingError> {
        debug_assert_eq!(which.setting().kind, Kind::Secret);
        let longest = match which {
            Which::ApiKey => LONGEST_KEY,
            _ => LONGEST_SECRET,
        };
        let Some(given) = self.raw.get(which) else {
            self.show(which, unset(), Origin::Default);
            return Ok(None);
        };
        let check = |text: &str| match text {
            "" => Err("it is empty".to_owned()),
            text if text.len() > longest => Err(format!("it is longer than {longest} bytes")),
            text if text.chars().any(|c| c.is_control() || c.is_whitespace()) => {
                Err("there are blanks or control characters in it".to_owned())
            }
            text => Ok(Secret(text.to_owned())),
        };
        let secret = self.parse(which, given, check)?;
        self.show(which, "set".to_owned(), given.origin.clone());
        Ok(Some(secret))
    }

    /// A path; in a file, where a relative one would mean something else in every directory, from the
    /// root on.
    fn path(&mut self, which: Which, default: &str) -> Result<PathBuf, SettingError> {
        let given = self.given(which, &[default]);
        let path = self.parse(which, &given, |text| located(text, &given.origin))?;
        self.show(which, path.display().to_string(), given.origin);
        Ok(path)
    }

    fn paths(&mut self, which: Which) -> Result<Vec<PathBuf>, SettingError> {
        let origin = self.origin(which);
        self.many(which, &[], |text| located(text, &origin))
    }

    fn given(&self, which: Which, default: &[&str]) -> Given {
        let given = self.raw.get(which).cloned();
        given.unwrap_or_else(|| Given {
            texts: default.iter().map(|text| (*text).to_owned()).collect(),
            origin: Origin::Default,
        })
    }

    fn parse<T>(
        &self,
        which: Which,
        given: &Given,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, SettingError> {
        let text = given.texts.first().map_or("", String::as_str);
        parse(text).map_err(|message| wrong(which, given, message))
    }
}

/// A server looks at no longer key.
const LONGEST_KEY: usize = 256;

/// The longest secret that makes sense; S3's session tokens are the longest.
const LONGEST_SECRET: usize = 8 << 10;

fn located(text: &str, origin: &Origin) -> Result<PathBuf, String> {
    let path = Path::new(text);
    match (text, origin) {
        ("", _) => Err("it names no directory".to_owned()),
        (_, Origin::File(..)) if !path.is_absolute() => {
            Err(format!("'{text}' is not an absolute path"))
        }
        _ => value::absolute(path),
    }
}
