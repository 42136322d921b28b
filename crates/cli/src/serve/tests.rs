//! Which value counts, and what is said of a wrong one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use clap::{CommandFactory as _, FromArgMatches as _, Parser as _};
use sandbox_linux::identity::Ids;
use sandbox_model::Failure as _;
use sandbox_server::{ControlSettings, Location, Role, SessionUids};

use super::raw::Origin;
use super::setting::{Kind, SETTINGS, Which};
use super::*;

#[derive(Debug, clap::Parser)]
struct Line {
    #[command(flatten)]
    flags: Flags,
}

/// A server that is about to be started.
#[derive(Default)]
struct Start {
    variables: BTreeMap<String, OsString>,
    arguments: Vec<String>,
    is_root: bool,
    is_homeless: bool,
    directory: Option<tempfile::TempDir>,
}

impl Start {
    fn new() -> Start {
        Start::default()
    }

    fn with(mut self, name: &str, value: impl Into<OsString>) -> Start {
        self.variables.insert(name.to_owned(), value.into());
        self
    }

    fn flags<const N: usize>(mut self, flags: [&str; N]) -> Start {
        self.arguments.extend(flags.map(str::to_owned));
        self
    }

    fn root(mut self) -> Start {
        self.is_root = true;
        self
    }

    fn write(&mut self, name: &str, text: &str, mode: u32) -> PathBuf {
        let directory = self
            .directory
            .get_or_insert_with(|| tempfile::tempdir().unwrap());
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path
    }

    /// With this configuration file.
    fn file(mut self, text: &str) -> Start {
        let path = self.write("serve.toml", text, 0o600);
        self.flags(["--config", path.to_str().unwrap()])
    }

    /// With a variable that names a file of this content.
    fn with_file(mut self, name: &str, text: &str) -> Start {
        let path = self.write(name, text, 0o600);
        self.with(name, path)
    }

    fn settle(&self) -> Result<Resolved, SettingError> {
        let line = std::iter::once("serve".to_owned()).chain(self.arguments.clone());
        let line = Line::try_parse_from(line).unwrap();
        let home = match self.is_homeless {
            true => Err(SurroundingsError::NoHome),
            false => Ok(PathBuf::from("/home/ada")),
        };
        let variable = |name: &str| self.variables.get(name).cloned();
        settle(
            &line.flags,
            Surroundings {
                variable: &variable,
                home,
                is_root: self.is_root,
                hostname: "worker-7".to_owned(),
            },
        )
    }

    #[track_caller]
    fn settings(&self) -> sandbox_server::Settings {
        self.settle().unwrap().settings
    }

    /// What is said when it cannot be.
    #[track_caller]
    fn refusal(&self) -> String {
        let message = self.settle().unwrap_err().to_string();
        match &self.directory {
            Some(directory) => message.replace(directory.path().to_str().unwrap(), "/d"),
            None => message,
        }
    }

    #[track_caller]
    fn shown(&self, which: Which) -> (String, Origin) {
        let resolved = self.settle().unwrap();
        let shown = resolved.shown.iter().find(|shown| shown.which == which);
        let shown = shown.unwrap().clone();
        (shown.value, shown.origin)
    }
}

#[test]
fn with_nothing_said_everything_is_as_documented() {
    let settings = Start::new().settings();
    assert_eq!(settings.bind.to_string(), "127.0.0.1:8000");
    let data = PathBuf::from("/home/ada/.local/share/daedalos/server");
    assert_eq!(settings.data, data);
    let database = format!("sqlite:{}/records.db", data.display());
    assert_eq!(settings.database.0, database);
    assert_eq!(settings.pool, sandbox_server::Pool::default());
    let objects = Location::Directory(data.join("objects"));
    assert_eq!(settings.objects, objects);
    assert!(settings.api_key.is_none() && settings.internal_token.is_none());
    assert!(settings.user.is_none() && settings.allowed_origins.is_empty());
    assert!(settings.trusted_proxies.is_empty());
    assert_eq!(settings.requests_per_second, 1000);
    assert_eq!(settings.max_connections, 10_000);
    assert_eq!(settings.log_level, "info");
    let control = ControlSettings::new("local".parse().unwrap());
    assert_eq!(settings.control, control);
}

#[test]
fn root_keeps_its_data_with_the_system_and_gives_sessions_to_nobody() {
    let settings = Start::new().root().settings();
    assert_eq!(settings.data, PathBuf::from("/var/lib/sandbox"));
    assert_eq!(settings.user, None);
    assert_eq!(settings.session_uids, Some(SessionUids::Chosen));
    assert_eq!(Start::new().settings().session_uids, None);
    let uids = |text| Start::new().root().flags(["--session-uids", text]);
    let range = SessionUids::parse_range("200000-265535").unwrap();
    assert_eq!(
        uids("200000-265535").settings().session_uids,
        Some(SessionUids::Range(range))
    );
    assert_eq!(
        uids("shared").settings().session_uids,
        Some(SessionUids::Shared)
    );
    for wrong in [
        "0-10",
        "10",
        "10-10",
        "10-11",
        "10-9",
        "1-4294967295",
        "some",
    ] {
        assert!(
            uids(wrong).refusal().contains("invalid range of user ids"),
            "{wrong}"
        );
    }
    let refusal = Start::new().flags(["--session-uids", "shared"]).refusal();
    assert_eq!(
        refusal,
        "--session-uids: only root can give sessions users of their own"
    );
    let settings = Start::new().root().flags(["--user", "7:8"]).settings();
    assert_eq!(settings.user, Some(Ids { user: 7, group: 8 }));
    let refusal = Start::new().flags(["--user", "7:8"]).refusal();
    let said = "--user: only root can have sessions belong to somebody else";
    assert_eq!(refusal, said);
}

/// A setting, three values for it, and how the settings show which was taken.
type Case = (
    Which,
    [&'static str; 3],
    fn(&sandbox_server::Settings) -> String,
);

/// One case for every setting that is written as one text.
#[rustfmt::skip]
const CASES: &[Case] = &[
    (Which::Bind, ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"], |s| s.bind.to_string()),
    (Which::Data, ["/one", "/two", "/three"], |s| s.data.display().to_string()),
    (Which::NodeId, ["one", "two", "three"], |s| s.control.node_id.to_string()),
    (Which::Advertise, ["http://1", "http://2", "http://3"], |s| s.control.endpoint.clone()),
    (Which::LogLevel, ["warn", "debug", "sandbox_control=debug,info"], |s| s.log_level.clone()),
    (Which::DrainTimeout, ["1s", "2s", "3s"], |s| format!("{:?}", s.control.drain_timeout)),
    (Which::RequestsPerSecond, ["1", "2", "3"], |s| s.requests_per_second.to_string()),
    (Which::MaxConnections, ["1", "2", "3"], |s| s.max_connections.to_string()),
    (Which::TrustedProxies, ["10.0.0.1", "10.0.0.0/8", "fd00::/8"], |s| {
        s.trusted_proxies.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }),
    (Which::Database, ["sqlite:/1", "sqlite:/2", "sqlite:/3"], |s| s.database.0.clone()),
    (Which::DatabaseMaxConnections, ["1", "2", "3"], |s| s.pool.max_connections.to_string()),
    (Which::DatabaseMaxLifetime, ["1s", "2s", "3s"], |s| format!("{:?}", s.pool.max_lifetime)),
    (Which::Objects, ["file:/1", "file:/2", "file:/3"], place),
    (Which::S3Endpoint, ["http://1", "http://2", "http://3"], |s| s.s3.endpoint.clone().unwrap()),
    (Which::S3Bucket, ["one", "two", "three"], place),
    (Which::S3Region, ["one", "two", "three"], |s| s.s3.region.clone().unwrap()),
    (Which::IdleTimeout, ["1s", "2s", "3s"], |s| format!("{:?}", s.control.idle_timeout.unwrap())),
    (Which::MaxLifetime, ["1s", "2s", "3s"], |s| format!("{:?}", s.control.max_lifetime.unwrap())),
    (Which::ReapInterval, ["1s", "2s", "3s"], |s| format!("{:?}", s.control.reap_interval)),
    (Which::Retention, ["1s", "2s", "3s"], |s| format!("{:?}", s.control.retention)),
    (Which::RecordRetention, ["1s", "2s", "3s"], |s| format!("{:?}", s.control.record_retention.unwrap())),
    (Which::HibernateAfter, ["1s", "2s", "3s"], |s| format!("{:?}", s.control.hibernate_after)),
    (Which::MaxSessions, ["1", "2", "3"], |s| s.control.max_sessions.to_string()),
    (Which::Overcommit, ["100", "200", "300"], |s| s.control.overcommit_percent.to_string()),
    (Which::Pool, ["a=1", "b=2", "c=3"], |s| {
        s.control.pool.iter().map(|(template, size)| format!("{template}={size}")).collect()
    }),
    (Which::AllowedAddresses, ["10.0.0.1:1", "10.0.0.2:2", "10.0.0.3:3"], |s| s.control.allowed_addresses.join(",")),
    (Which::SourceRoots, ["/one", "/two", "/three"], |s| s.control.source_roots[0].display().to_string()),
    (Which::AllowedOrigins, ["http://one", "http://two", "http://three"], |s| s.allowed_origins.join(",")),
];

fn place(settings: &sandbox_server::Settings) -> String {
    match &settings.objects {
        Location::Directory(path) => format!("file:{}", path.display()),
        Location::Bucket { name, .. } => name.clone(),
    }
}

#[test]
fn a_flag_goes_over_the_environment_and_that_over_the_file() {
    for (which, [in_file, in_variable, in_flag], read) in CASES {
        let setting = which.setting();
        let (variable, flag) = (setting.variables[0], setting.flag.unwrap());
        let text = match setting.name.split_once('.') {
            Some((table, name)) => format!("[{table}]\n{name} = \"{in_file}\"\n"),
            None => format!("\n{} = \"{in_file}\"\n", setting.name),
        };
        let start = Start::new().file(&text);
        assert_eq!(read(&start.settings()), *in_file, "{}", setting.name);
        assert!(matches!(start.shown(*which).1, Origin::File(_, 2)));
        let start = start.with(variable, *in_variable);
        assert_eq!(read(&start.settings()), *in_variable, "{variable}");
        assert_eq!(start.shown(*which).1, Origin::Environment(variable.into()));
        let start = start.flags([flag, in_flag]);
        assert_eq!(read(&start.settings()), *in_flag, "{flag}");
        assert_eq!(
            start.shown(*which),
            (in_flag.to_string(), Origin::Flag(flag))
        );
    }
}

#[test]
fn switches_and_choices_are_layered_too() {
    let text = "[sessions]\nexpire = false\nstrict_limits = true\npromote = true\n[s3]\naddressing = \"host\"\n";
    let start = Start::new().file(text);
    let settings = start.settings();
    assert!(!settings.control.expire && settings.control.strict_limits);
    assert!(settings.control.promote);
    let host = sandbox_server::Addressing::Host;
    assert_eq!(settings.s3.addressing, Some(host));
    let start = start
        .with("SANDBOX_EXPIRE", "on")
        .with("SANDBOX_STRICT_LIMITS", "0")
        .with("S3_ADDRESSING", "path");
    let settings = start.settings();
    assert!(settings.control.expire && !settings.control.strict_limits);
    assert_ne!(settings.s3.addressing, Some(host));
    let start = start.flags(["--expire", "off", "--strict-limits", "on"]);
    let settings = start.flags(["--s3-addressing", "host"]).settings();
    assert!(!settings.control.expire && settings.control.strict_limits);
    assert_eq!(settings.s3.addressing, Some(host));
}

#[test]
fn what_ends_something_can_be_switched_off() {
    let off = ["--idle-timeout", "off", "--max-lifetime", "off"];
    let start = Start::new().flags(off);
    let control = start.flags(["--retention", "off"]).settings().control;
    assert_eq!((control.idle_timeout, control.max_lifetime), (None, None));
    assert!(control.retention > Duration::from_secs(50 * 365 * 86_400));
    let refusal = Start::new().flags(["--drain-timeout", "off"]).refusal();
    assert!(refusal.starts_with("--drain-timeout: 'off' is not a duration"));
}

#[test]
fn lists_are_said_again_or_have_commas() {
    let said = ["--source-root", "/a", "--source-root", "/b"];
    let roots = Start::new().flags(said).settings().control.source_roots;
    assert_eq!(roots, [PathBuf::from("/a"), PathBuf::from("/b")]);
    let start = Start::new().with("SANDBOX_ALLOWED_ORIGINS", "https://a, https://b,");
    assert_eq!(start.settings().allowed_origins, ["https://a", "https://b"]);
    let start = Start::new().file("[cors]\nallowed_origins = [\"https://a\", \"*\"]\n");
    assert_eq!(start.settings().allowed_origins, ["https://a", "*"]);
}

#[test]
fn refuses_a_trusted_proxy_that_is_no_network() {
    let start = Start::new().with("SANDBOX_TRUSTED_PROXIES", "127.0.0.1, 10.0.0.1/8");
    let said = "SANDBOX_TRUSTED_PROXIES: invalid network '10.0.0.1/8': the network of that prefix is 10.0.0.0/8";
    assert_eq!(start.refusal(), said);
    let start = Start::new().file("trusted_proxies = [\"proxy.example.com\"]\n");
    let said = "/d/serve.toml:1: trusted_proxies: invalid network 'proxy.example.com': \
                expected an address or CIDR block such as 10.0.0.0/8";
    assert_eq!(start.refusal(), said);
    let start = Start::new().flags(["--trusted-proxy", "0.0.0.0/0"]);
    assert!(start.refusal().contains("every address"));
}

#[test]
fn a_bucket_named_by_itself_is_where_objects_are() {
    let start = Start::new().with("S3_BUCKET", "my-bucket");
    assert_eq!(place(&start.settings()), "my-bucket");
    let shown = start.shown(Which::Objects);
    let bucket = Origin::Environment("S3_BUCKET".into());
    assert_eq!(shown, ("s3:my-bucket".into(), bucket));
    // The nearer counts, whichever of the two names it.
    let start = start.file("[objects]\nurl = \"file:/far\"\n");
    assert_eq!(place(&start.settings()), "my-bucket");
    let start = start.flags(["--objects", "file:/near"]);
    assert_eq!(place(&start.settings()), "file:/near");
    let both = Start::new().with("S3_BUCKET", "my-bucket");
    let same = || Start::new().with("S3_BUCKET", "my-bucket");
    let prefixed = same().with("SANDBOX_OBJECTS", "s3://my-bucket/prefix");
    assert_eq!(place(&prefixed.settings()), "my-bucket");
    let refusal = both.with("SANDBOX_OBJECTS", "file:/other").refusal();
    let said = "SANDBOX_OBJECTS and S3_BUCKET name different places for objects";
    assert_eq!(refusal, said);
}

#[test]
fn amazons_own_variables_are_understood() {
    let start = Start::new()
        .with("AWS_ENDPOINT_URL", "http://far")
        .with("AWS_DEFAULT_REGION", "eu-far-1")
        .with("AWS_ACCESS_KEY_ID", "name")
        .with("AWS_SECRET_ACCESS_KEY", "hush")
        .with("AWS_SESSION_TOKEN", "hush-token");
    let s3 = start.settings().s3;
    assert_eq!(s3.endpoint.as_deref(), Some("http://far"));
    assert_eq!(s3.region.as_deref(), Some("eu-far-1"));
    let credentials = s3.credentials.unwrap();
    assert_eq!(credentials.access_key, "name");
    assert_eq!(credentials.secret_key, "hush");
    assert_eq!(credentials.session_token.as_deref(), Some("hush-token"));
    let start = start
        .with("S3_ENDPOINT", "http://near")
        .with("AWS_REGION", "eu-near-1");
    let s3 = start.settings().s3;
    assert_eq!(s3.endpoint.as_deref(), Some("http://near"));
    assert_eq!(s3.region.as_deref(), Some("eu-near-1"));
}

/// Every variable that Amazon's programs learn a role from.
fn with_roles(start: Start) -> Start {
    super::role::VARIABLES
        .into_iter()
        .fold(start, |start, name| start.with(name, format!("of {name}")))
}

#[test]
fn a_role_is_who_amazons_own_variables_say() {
    let mut start = with_roles(Start::new().with("S3_BUCKET", "my-bucket"));
    let of = |name: &str| format!("of {name}");
    let shown = |by: &str| ("by a role".into(), Origin::Environment(by.into()));
    let identity = Role::WebIdentity {
        token_file: of("AWS_WEB_IDENTITY_TOKEN_FILE"),
        arn: of("AWS_ROLE_ARN"),
        session_name: Some(of("AWS_ROLE_SESSION_NAME")),
        endpoint: Some(of("AWS_ENDPOINT_URL_STS")),
    };
    let task = Role::Task {
        path: of("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
    };
    let pod = Role::Pod {
        url: of("AWS_CONTAINER_CREDENTIALS_FULL_URI"),
        token_file: of("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
    };
    for (by, role) in [
        ("AWS_WEB_IDENTITY_TOKEN_FILE", identity),
        ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", task),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", pod),
    ] {
        // Equal or not is all that is told of a role.
        assert!(start.settings().s3.role == role, "{by}");
        assert_eq!(start.shown(Which::S3AccessKeyId), shown(by));
        start.variables.remove(by);
    }
    assert!(start.settings().s3.role == Role::Machine);
    let unset = ("not set".into(), Origin::Default);
    assert_eq!(start.shown(Which::S3AccessKeyId), unset);
}

#[test]
fn a_role_counts_only_on_s3_and_where_no_key_is_given() {
    let start = with_roles(Start::new().with("S3_BUCKET", "my-bucket"));
    let start = start
        .with("AWS_ACCESS_KEY_ID", "name")
        .with("AWS_SECRET_ACCESS_KEY", "hush");
    assert!(start.settings().s3.role == Role::Machine);
    let (value, _) = start.shown(Which::S3AccessKeyId);
    assert_eq!(value, "set");
    // What it is not asked for may be broken.
    let start = Start::new().with("AWS_WEB_IDENTITY_TOKEN_FILE", "/token");
    assert!(start.settings().s3.role == Role::Machine);
}

#[test]
fn half_of_a_role_is_refused() {
    let on_s3 = || Start::new().with("S3_BUCKET", "my-bucket");
    for (given, missing) in [
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"),
        (
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        ),
    ] {
        let refusal = on_s3().with(given, "/x").refusal();
        assert_eq!(refusal, format!("{given} is set, and {missing} is not"));
    }
    // Of the role alone nothing can be had, and it may be meant for somebody else.
    let start = on_s3().with("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/x");
    assert!(start.settings().s3.role == Role::Machine);
}

#[test]
fn half_of_the_credentials_is_refused() {
    let refusal = Start::new().with("AWS_ACCESS_KEY_ID", "name").refusal();
    let said = "AWS_ACCESS_KEY_ID is set, and AWS_SECRET_ACCESS_KEY is not";
    assert_eq!(refusal, said);
    let refusal = Start::new().with("AWS_SECRET_ACCESS_KEY", "hush").refusal();
    let said = "AWS_SECRET_ACCESS_KEY is set, and AWS_ACCESS_KEY_ID is not";
    assert_eq!(refusal, said);
    let refusal = Start::new().with("AWS_SESSION_TOKEN", "hush").refusal();
    let said = "AWS_SESSION_TOKEN is set, and AWS_ACCESS_KEY_ID is not";
    assert_eq!(refusal, said);
}

#[test]
fn every_secret_can_be_in_a_file_of_its_own() {
    let start = Start::new()
        .with_file("DATABASE_URL_FILE", "postgres://ada:hush@db/records\n")
        .with_file("SANDBOX_API_KEY_FILE", "the-key-of-the-admin\n")
        .with_file("INTERNAL_API_TOKEN_FILE", "the-token\n")
        .with_file("AWS_ACCESS_KEY_ID_FILE", "name\n")
        .with_file("AWS_SECRET_ACCESS_KEY_FILE", "hush\n")
        .with_file("AWS_SESSION_TOKEN_FILE", "hush-token\n");
    let settings = start.settings();
    assert_eq!(settings.database.0, "postgres://ada:hush@db/records");
    assert_eq!(settings.api_key.unwrap().0, "the-key-of-the-admin");
    assert_eq!(settings.internal_token.unwrap().0, "the-token");
    let credentials = settings.s3.credentials.unwrap();
    assert_eq!(credentials.access_key, "name");
    assert_eq!(credentials.secret_key, "hush");
    assert_eq!(credentials.session_token.as_deref(), Some("hush-token"));
    let secrets = SETTINGS
        .iter()
        .filter(|setting| setting.kind == Kind::Secret);
    assert_eq!(secrets.count(), start.variables.len());
}

#[test]
fn a_configuration_file_can_name_the_file_of_a_secret() {
    let mut start = Start::new();
    let key = start.write("key", "the-key-of-the-admin\n", 0o600);
    let text = format!("api_key_file = \"{}\"\n", key.display());
    let start = start.file(&text);
    let resolved = start.settle().unwrap();
    assert_eq!(resolved.settings.api_key.unwrap().0, "the-key-of-the-admin");
    assert!(resolved.warnings.is_empty(), "{:?}", resolved.warnings);
    let text = format!("{text}api_key = \"another-key-of-the-admin\"\n");
    let start = Start::new().file(&text);
    assert_eq!(start.refusal(), "api_key and api_key_file are both set");
}

#[test]
fn a_secret_given_twice_or_not_at_all_is_refused() {
    let start = Start::new().with_file("SANDBOX_API_KEY_FILE", "hush\n");
    let refusal = start.with("SANDBOX_API_KEY", "hush").refusal();
    let said = "SANDBOX_API_KEY and SANDBOX_API_KEY_FILE are both set";
    assert_eq!(refusal, said);
    let start = Start::new().with_file("SANDBOX_API_KEY_FILE", " \n");
    let error = start.settle().unwrap_err();
    assert!(matches!(error, SettingError::SecretFile { .. }));
    let start = Start::new().with("SANDBOX_API_KEY_FILE", "/nowhere/key");
    let said = "SANDBOX_API_KEY_FILE: cannot use /nowhere/key";
    assert_eq!(start.refusal(), said);
    let start = Start::new().file("api_key_file = \"/nowhere/key\"\n");
    let said = "/d/serve.toml:1: api_key: cannot use /nowhere/key";
    assert_eq!(start.refusal(), said);
    let start = Start::new().with("SANDBOX_API_KEY", "two words");
    let said = "SANDBOX_API_KEY: there are blanks or control characters in it";
    assert_eq!(start.refusal(), said);
    let start = Start::new().with("SANDBOX_API_KEY", "x".repeat(300));
    assert_eq!(
        start.refusal(),
        "SANDBOX_API_KEY: it is longer than 256 bytes"
    );
}

#[test]
fn no_secret_is_shown() {
    let hush = "hush-0123456789abcdef";
    let start = Start::new()
        .with("DATABASE_URL", format!("postgres://ada:{hush}@db/records"))
        .with("SANDBOX_API_KEY", hush)
        .with("INTERNAL_API_TOKEN", hush)
        .with("AWS_ACCESS_KEY_ID", "name")
        .with("AWS_SECRET_ACCESS_KEY", hush)
        .with("AWS_SESSION_TOKEN", hush);
    let resolved = start.settle().unwrap();
    let shown = format!("{:?} {:?}", resolved.shown, resolved.warnings);
    assert!(!shown.contains(hush), "{shown}");
    assert!(shown.contains("postgres://db/records"), "{shown}");
    let debug = format!("{resolved:?}");
    assert!(!debug.contains(hush), "{debug}");
    let line = ["serve", "--database", "mysql://ada:hush@db/x"];
    let flags = Line::try_parse_from(line).unwrap().flags;
    assert!(!format!("{flags:?}").contains("hush"));
    assert!(!format!("{:?}", flags.given()).contains("hush"));
    // A wrong one is not quoted.
    let start = Start::new().with("DATABASE_URL", "oracle://ada:hush@db/x");
    assert!(!start.refusal().contains("hush"), "{}", start.refusal());
}

#[test]
fn a_password_on_the_command_line_is_warned_of() {
    let start = |url| Start::new().flags(["--database", url]);
    let warnings = start("postgres://ada:hush@db/x").settle().unwrap().warnings;
    assert!(warnings[0].contains("DATABASE_URL"), "{warnings:?}");
    let warnings = start("postgres://ada@db/x").settle().unwrap().warnings;
    assert!(warnings.is_empty(), "{warnings:?}");
    let start = Start::new().with("DATABASE_URL", "postgres://ada:hush@db/x");
    assert!(start.settle().unwrap().warnings.is_empty());
}

#[test]
fn a_file_with_a_secret_that_others_can_read_is_warned_of() {
    let text = "api_key = \"hush-0123456789abcdef\"\n";
    let start = Start::new().file(text);
    assert!(start.settle().unwrap().warnings.is_empty());
    let mut start = start;
    start.write("serve.toml", text, 0o644);
    let warnings = start.settle().unwrap().warnings;
    assert!(warnings[0].contains("others can read it"), "{warnings:?}");
}

#[test]
fn a_short_key_is_warned_of_on_the_loopback_and_refused_beyond_it() {
    let start = Start::new().with("SANDBOX_API_KEY", "fifteen-letters");
    let resolved = start.settle().unwrap();
    let warnings = resolved.warnings;
    assert!(warnings[0].contains("16 characters"), "{warnings:?}");
    sandbox_server::check(&resolved.settings).unwrap();
    let resolved = start.flags(["--bind", "0.0.0.0:8000"]).settle().unwrap();
    assert!(resolved.warnings.is_empty(), "{:?}", resolved.warnings);
    let refused = sandbox_server::check(&resolved.settings).unwrap_err();
    assert!(refused.to_string().contains("16 characters"), "{refused}");
    let start = Start::new().flags(["--bind", "0.0.0.0:8000"]);
    let start = start.with("SANDBOX_API_KEY", "sixteen-letters!");
    let resolved = start.settle().unwrap();
    assert!(resolved.warnings.is_empty(), "{:?}", resolved.warnings);
    sandbox_server::check(&resolved.settings).unwrap();
}

#[test]
fn a_file_is_named_by_a_variable_too() {
    let mut start = Start::new();
    let path = start.write("serve.toml", "bind = \"127.0.0.1:1\"\n", 0o644);
    let start = start.with("SANDBOX_CONFIG", path);
    assert_eq!(start.settings().bind.port(), 1);
    let start = start.file("bind = \"127.0.0.1:2\"\n");
    assert_eq!(start.settings().bind.port(), 2);
    let refusal = Start::new()
        .flags(["--config", "/nowhere/x.toml"])
        .refusal();
    assert_eq!(refusal, "cannot read /nowhere/x.toml");
}

#[test]
fn an_unknown_key_is_named_with_its_file_and_line() {
    let refusal = |text| Start::new().file(text).refusal();
    let said = refusal("\nbnid = \"127.0.0.1:1\"\n");
    assert!(said.starts_with("/d/serve.toml:2: unknown key `bnid`, expected one of `bind`"));
    let said = refusal("[sessions]\n\nidle = \"1m\"\n");
    let expected =
        "/d/serve.toml:3: unknown key `sessions.idle`, expected one of `sessions.idle_timeout`";
    assert!(said.starts_with(expected), "{said}");
    let said = refusal("[nothing]\nx = 1\n");
    assert!(said.starts_with("/d/serve.toml:1: unknown key `nothing`"));
    let said = refusal("[s3]\nregion_file = \"/x\"\n");
    assert!(said.starts_with("/d/serve.toml:2: unknown key `s3.region_file`"));
    let said = refusal("bind = \n");
    assert!(said.starts_with("/d/serve.toml:1: "), "{said}");
    let said = refusal("bind = 1.5\n");
    let expected =
        "/d/serve.toml:1: bind: a text or a number belongs here, not a value of type float";
    assert_eq!(said, expected);
    let said = refusal("bind = [\"127.0.0.1:1\"]\n");
    assert!(said.contains("not a value of type array"), "{said}");
}

#[test]
fn a_wrong_value_is_told_with_where_it_stands() {
    let refusal = Start::new().flags(["--bind", "8000"]).refusal();
    assert!(refusal.starts_with("--bind: '8000' is not an address"));
    let refusal = Start::new().with("SANDBOX_IDLE_TIMEOUT", "soon").refusal();
    assert!(refusal.starts_with("SANDBOX_IDLE_TIMEOUT: 'soon' is not a duration"));
    let start = Start::new().file("[sessions]\nmax_sessions = 0\n");
    let said =
        "/d/serve.toml:2: sessions.max_sessions: '0' is not a whole number from 1 to 1000000";
    assert_eq!(start.refusal(), said);
    let start = Start::new().file("data = \"here\"\n");
    let said = "/d/serve.toml:1: data: 'here' is not an absolute path";
    assert_eq!(start.refusal(), said);
    for (flags, said) in [
        (["--reap-interval", "2m"], "'2m' is longer than a minute"),
        (["--log-level", "loud"], "'loud' is not a log level"),
        (["--s3-region", "a b"], "'a b' is not a region's name"),
        (["--node-id", "-"], "'-'"),
        (["--objects", "/srv"], "'/srv' names no place for objects"),
        (["--s3-bucket", "a/b"], "'a/b' is not a bucket's name"),
        (["--s3-endpoint", "x"], "'x' is not a server's URL"),
        (["--advertise", "https://x"], "they speak plain HTTP"),
        (["--advertise", "x"], "'x' is not a server's URL"),
        (["--s3-addressing", "x"], "'x' is neither path"),
        (["--expire", "x"], "'x' is neither on nor off"),
        (["--allowed-origin", "x"], "'x' is not an origin"),
        (["--database", "x"], "not a database's URL"),
        (["--data", ""], "it names no directory"),
        (
            ["--runtime", "docker"],
            "the docker runtime is not in this build yet; local is",
        ),
    ] {
        let refusal = Start::new().flags(flags).refusal();
        let expected = format!("{}: ", flags[0]);
        assert!(
            refusal.starts_with(&expected) && refusal.contains(said),
            "{refusal}"
        );
    }
}

#[test]
fn what_is_no_text_is_refused_by_its_name() {
    let start = Start::new().with("LOG_LEVEL", OsString::from_vec(vec![0xff]));
    assert_eq!(start.refusal(), "LOG_LEVEL is not UTF-8");
}

#[test]
fn without_a_home_the_data_must_be_named() {
    let mut start = Start::new();
    start.is_homeless = true;
    let error = start.settle().unwrap_err();
    assert!(error.hint().unwrap().contains("--data"));
    let start = start.flags(["--data", "/srv"]);
    assert_eq!(start.settings().data, PathBuf::from("/srv"));
}

#[test]
fn those_who_share_a_database_are_called_as_their_machines_are() {
    let start = Start::new().with("DATABASE_URL", "mysql://db/records");
    assert_eq!(start.settings().control.node_id.to_string(), "worker-7");
}

/// A server on a database that others share, whose data directory has this in `node.id`.
fn once_called(kept: &str) -> (Start, PathBuf) {
    let mut start = Start::new().with("DATABASE_URL", "mysql://db/records");
    let file = start.write("node.id", kept, 0o600);
    let data = file.parent().unwrap().to_str().unwrap().to_owned();
    (start.flags(["--data", &data]), file)
}

#[test]
fn a_server_is_called_as_it_was_at_its_first_start() {
    let (start, file) = once_called("worker-1\n");
    assert_eq!(start.settings().control.node_id.to_string(), "worker-1");
    let shown = start.shown(Which::NodeId);
    assert_eq!(shown, ("worker-1".to_owned(), Origin::File(file, 1)));
    sandbox_server::check(&start.settings()).unwrap();
    let (start, _) = once_called("\n");
    assert_eq!(start.settings().control.node_id.to_string(), "worker-7");
    let (start, _) = once_called("-\n");
    let refusal = start.refusal();
    let said = "/d/node.id:1: node_id: '-'";
    assert!(refusal.starts_with(said), "{refusal}");
    // Nobody else has the database of one that is alone.
    let (start, _) = once_called("worker-1\n");
    let start = start.flags(["--database", "sqlite::memory:"]);
    assert_eq!(start.settings().control.node_id.to_string(), "local");
}

#[test]
fn another_name_than_at_the_first_start_is_refused() {
    let (start, file) = once_called("worker-1\n");
    let start = start.with("SANDBOX_NODE_ID", "worker-1");
    sandbox_server::check(&start.settings()).unwrap();
    let start = start.flags(["--node-id", "worker-2"]);
    let shown = start.shown(Which::NodeId);
    assert_eq!(shown, ("worker-2".to_owned(), Origin::Flag("--node-id")));
    let refused = sandbox_server::check(&start.settings()).unwrap_err();
    let said = refused.to_string();
    assert!(said.ends_with("is that of node worker-1, not of worker-2"));
    assert!(refused.hint().unwrap().contains(file.to_str().unwrap()));
    // Nothing is written by a look.
    assert_eq!(std::fs::read_to_string(file).unwrap(), "worker-1\n");
}

#[test]
fn every_setting_is_shown_once_and_has_its_flag() {
    let start = Start::new().with("S3_BUCKET", "my-bucket");
    let shown = start.settle().unwrap().shown;
    let keys: Vec<Which> = shown.iter().map(|shown| shown.which).collect();
    let all: Vec<Which> = SETTINGS.iter().map(|setting| setting.which).collect();
    assert_eq!(keys, all);
    let line = Line::command();
    let flags: Vec<String> = line
        .get_arguments()
        .filter_map(|argument| argument.get_long())
        .map(|long| format!("--{long}"))
        .filter(|flag| flag != "--config")
        .collect();
    let mut flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut named: Vec<&str> = SETTINGS.iter().filter_map(|setting| setting.flag).collect();
    flags.sort_unstable();
    named.sort_unstable();
    assert_eq!(flags, named);
    // Each is read, and none for another.
    for setting in SETTINGS {
        let Some(flag) = setting.flag else { continue };
        let matches = Line::command().get_matches_from(["serve", flag, "x"]);
        let flags = Line::from_arg_matches(&matches).unwrap().flags;
        let given = flags.given();
        let found: Vec<&str> = SETTINGS
            .iter()
            .filter(|setting| given.get(setting.which).is_some())
            .map(|setting| setting.name)
            .collect();
        assert_eq!(found, [setting.name]);
    }
}
