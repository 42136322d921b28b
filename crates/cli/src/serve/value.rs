//! Texts of settings, understood. Each says of a wrong one what a right one looks like.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use sandbox_linux::identity::Ids;
use sandbox_model::{HostPattern, TemplateId};
use sandbox_server::{Addressing, Location, SessionUids};

/// The largest id that stands for somebody; the one above it means "leave it as it is".
const LARGEST_ID: u32 = u32::MAX - 1;

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let named = text.strip_prefix("localhost:").map(str::parse);
    match named {
        Some(Ok(port)) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        _ => text.parse().map_err(|_| {
            format!("'{text}' is not an address and a port, like 127.0.0.1:8000 or [::1]:8000")
        }),
    }
}

/// What sessions run on.
pub(super) fn runtime(text: &str) -> Result<String, String> {
    match text {
        "local" => Ok(text.to_owned()),
        "docker" | "kubernetes" => Err(format!(
            "the {text} runtime is not in this build yet; local is"
        )),
        _ => Err(format!(
            "'{text}' is no runtime; local is, docker and kubernetes will be"
        )),
    }
}

/// `UID:GID`, which is not root.
pub(super) fn user(text: &str) -> Result<Ids, String> {
    let wrong = || format!("'{text}' is not a user's and a group's number, like 59999:59999");
    let (user, group) = text.split_once(':').ok_or_else(wrong)?;
    let number = |text: &str| text.parse().ok().filter(|id| *id <= LARGEST_ID);
    let (user, group) = (number(user), number(group));
    match (user, group) {
        (Some(0), Some(_)) | (Some(_), Some(0)) => Err("sessions never belong to root".to_owned()),
        (Some(user), Some(group)) => Ok(Ids { user, group }),
        _ => Err(wrong()),
    }
}

/// `FIRST-LAST`, `chosen` or `shared`.
pub(super) fn session_uids(text: &str) -> Result<SessionUids, String> {
    match text {
        "chosen" => Ok(SessionUids::Chosen),
        "shared" => Ok(SessionUids::Shared),
        _ => match SessionUids::parse_range(text) {
            Some(range) => Ok(SessionUids::Range(range)),
            None => Err(format!(
                "invalid range of user ids '{text}': expected FIRST-LAST such as 200000-265535, chosen or shared"
            )),
        },
    }
}

/// A whole number within bounds.
pub(super) fn number<T>(least: T, most: T) -> impl Fn(&str) -> Result<T, String>
where
    T: FromStr + PartialOrd + std::fmt::Display,
{
    move |text| match text.parse() {
        Ok(number) if number >= least && number <= most => Ok(number),
        _ => Err(format!(
            "'{text}' is not a whole number from {least} to {most}"
        )),
    }
}

pub(super) fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" | "true" | "yes" | "1" => Ok(true),
        "off" | "false" | "no" | "0" => Ok(false),
        _ => Err(format!("'{text}' is neither on nor off")),
    }
}

pub(super) fn addressing(text: &str) -> Result<Addressing, String> {
    match text {
        "path" => Ok(Addressing::Path),
        "host" => Ok(Addressing::Host),
        _ => Err(format!(
            "'{text}' is neither path (http://host/bucket) nor host (http://bucket.host)"
        )),
    }
}

/// An HTTP server's URL.
pub(super) fn endpoint(text: &str) -> Result<String, String> {
    let wrong = || format!("'{text}' is not a server's URL like https://s3.example.com:9000");
    let host = text
        .strip_prefix("https://")
        .or(text.strip_prefix("http://"));
    let host = host.ok_or_else(wrong)?.trim_end_matches('/');
    match host.is_empty() || host.contains(['@', ' ', '?', '#']) {
        true => Err(wrong()),
        false => Ok(text.trim_end_matches('/').to_owned()),
    }
}

/// Where other servers reach this one: they speak plain HTTP to each other, and nothing else.
pub(super) fn advertised(text: &str) -> Result<String, String> {
    match text.starts_with("https://") {
        true => Err(format!(
            "'{text}' is not for other servers: they speak plain HTTP to each other, on a network of \
             their own; write http://host:port"
        )),
        false => endpoint(text)
            .map_err(|_| format!("'{text}' is not a server's URL like http://10.0.0.5:8000")),
    }
}

/// How many sessions of a template wait to be asked for: `TEMPLATE=NUMBER`, or `none` of any.
pub(super) fn pool(text: &str) -> Result<Option<(TemplateId, u32)>, String> {
    const MOST: u32 = 1000;
    if text == "none" {
        return Ok(None);
    }
    let wrong = || format!("'{text}' is not a template and a number, like python-basic=10");
    let (template, size) = text.split_once('=').ok_or_else(wrong)?;
    let template = template.parse().map_err(|_| wrong())?;
    let size = number(0, MOST)(size)?;
    Ok(Some((template, size)))
}

/// A host and a port of it, as sessions ask for them.
pub(super) fn host_and_port(text: &str) -> Result<String, String> {
    let pattern = text.parse::<HostPattern>().ok();
    match pattern.and_then(|pattern| pattern.port) {
        Some(_) => Ok(text.to_owned()),
        None => Err(format!(
            "'{text}' is not a host and a port, like 10.0.0.7:5432"
        )),
    }
}

/// Objects' place, a directory from the root on.
pub(super) fn objects(text: &str) -> Result<Location, String> {
    match text.parse() {
        Ok(Location::Directory(path)) => Ok(Location::Directory(absolute(&path)?)),
        Ok(location) => Ok(location),
        Err(error) => Err(error.to_string()),
    }
}

pub(super) fn bucket(text: &str) -> Result<Location, String> {
    match text.contains('/') {
        true => Err(format!(
            "'{text}' is not a bucket's name; a prefix goes into s3://BUCKET/PREFIX"
        )),
        false => objects(&format!("s3:{text}")),
    }
}

/// A database's URL: only its kind is looked at here. Nothing of it is quoted: a password may be in it.
pub(super) fn database(text: &str) -> Result<String, String> {
    match text.split_once(':') {
        Some(("sqlite", rest)) if !rest.is_empty() => Ok(text.to_owned()),
        Some(("postgres" | "postgresql" | "mysql" | "mariadb", rest)) if rest.starts_with("//") => {
            Ok(text.to_owned())
        }
        _ => Err(
            "it is not a database's URL; those look like sqlite:/srv/records.db, \
                  postgres://user@host/name or mysql://user@host/name"
                .to_owned(),
        ),
    }
}

/// Does the URL of a database hold a password?
pub(super) fn has_password(url: &str) -> bool {
    let authority = authority(url).unwrap_or_default();
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    let parameters = url.split_once('?').map_or("", |(_, parameters)| parameters);
    user.is_some_and(|user| user.contains(':'))
        || parameters
            .split('&')
            .any(|parameter| parameter.starts_with("password="))
}

/// A database's URL without user, password and parameters.
pub(super) fn without_user(url: &str) -> String {
    let Some(authority) = authority(url) else {
        return url.to_owned();
    };
    let (kind, after) = url.split_once("//").unwrap_or((url, ""));
    let path = after.get(authority.len()..).unwrap_or_default();
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    format!("{kind}//{host}{path}")
}

/// What stands between the slashes, of a URL that names a server.
fn authority(url: &str) -> Option<&str> {
    let (kind, after) = url.split_once("//")?;
    if kind == "sqlite:" {
        return None;
    }
    // A password that was not encoded may hold anything; what is before the last '@' is never shown.
    let host = after.rfind('@').unwrap_or(0);
    let end = after.get(host..)?.find(['/', '?', '#']);
    after.get(..end.map_or(after.len(), |end| host + end))
}

/// From where a browser may speak to us.
pub(super) fn origin(text: &str) -> Result<String, String> {
    let host = text
        .strip_prefix("https://")
        .or(text.strip_prefix("http://"));
    let is_host = |host: &str| {
        let byte = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]_".contains(&byte);
        !host.is_empty() && host.bytes().all(byte)
    };
    match (text, host) {
        ("*", _) => Ok(text.to_owned()),
        (_, Some(host)) if is_host(host) => Ok(text.to_ascii_lowercase()),
        _ => Err(format!(
            "'{text}' is not an origin like https://app.example.com, without a path, nor *"
        )),
    }
}

/// `path` from the root on.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port() {
        assert_eq!(address("localhost:80").unwrap().to_string(), "127.0.0.1:80");
        assert_eq!(address("[::]:8000").unwrap().to_string(), "[::]:8000");
        for text in [
            "",
            "8000",
            "localhost",
            "localhost:x",
            "::1",
            "1.2.3.4:70000",
        ] {
            assert!(address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sessions_never_belong_to_root() {
        assert_eq!(user("7:8").unwrap(), Ids { user: 7, group: 8 });
        for text in ["0:7", "7:0", "7", "ada:ada", "4294967295:1", ""] {
            assert!(user(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_database_is_shown_without_who_asks_it() {
        for (url, shown) in [
            (
                "postgres://ada:hush@db:5432/records?sslmode=require",
                "postgres://db:5432/records",
            ),
            ("postgres://ada:hu/sh@db/records", "postgres://db/records"),
            ("postgres://ada:hu@sh@db/records", "postgres://db/records"),
            ("mysql://ada@db/records", "mysql://db/records"),
            (
                "postgres://db/records?password=hush",
                "postgres://db/records",
            ),
            ("sqlite:/srv/records.db", "sqlite:/srv/records.db"),
            ("sqlite:///srv/records.db", "sqlite:///srv/records.db"),
        ] {
            assert_eq!(without_user(url), shown);
            assert_eq!(has_password(url), url.contains("hu"), "{url}");
        }
    }

    #[test]
    fn a_database_is_one_of_three_kinds() {
        for url in [
            "sqlite:x.db",
            "postgres://h/d",
            "postgresql://h/d",
            "mysql://h/d",
            "mariadb://h/d",
        ] {
            assert!(database(url).is_ok(), "{url}");
        }
        for url in [
            "",
            "records.db",
            "sqlite:",
            "postgres:hush",
            "oracle://ada:hush@db",
        ] {
            let refused = database(url).unwrap_err();
            assert!(!refused.contains("hush"), "{refused}");
        }
    }

    #[test]
    fn an_origin_has_no_path() {
        assert_eq!(
            origin("https://App.Example.com").unwrap(),
            "https://app.example.com"
        );
        assert!(origin("http://[::1]:3000").is_ok() && origin("*").is_ok());
        for text in [
            "app.example.com",
            "https://",
            "https://a/b",
            "https://a b",
            "ftp://a",
            "null",
        ] {
            assert!(origin(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_endpoint_is_a_url_without_a_user() {
        assert_eq!(
            endpoint("http://localhost:9000/").unwrap(),
            "http://localhost:9000"
        );
        for text in ["localhost:9000", "s3://x", "https://", "https://a:b@host"] {
            assert!(endpoint(text).is_err(), "{text}");
        }
    }

    #[test]
    fn other_servers_are_never_sent_to_https() {
        assert_eq!(
            advertised("http://10.0.0.5:8000/").unwrap(),
            "http://10.0.0.5:8000"
        );
        let refused = advertised("https://sandbox.example.com").unwrap_err();
        assert!(refused.contains("plain HTTP"), "{refused}");
        for text in ["", "10.0.0.5:8000", "http://", "HTTPS://a", "http://a:b@c"] {
            assert!(advertised(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_pool_is_a_number_for_each_template_or_none() {
        let (template, size) = pool("python-basic=10").unwrap().unwrap();
        assert_eq!((template.as_str(), size), ("python-basic", 10));
        assert_eq!(pool("none"), Ok(None));
        for text in [
            "",
            "python-basic",
            "=1",
            "a b=1",
            "python-basic=-1",
            "python-basic=1001",
        ] {
            assert!(pool(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_address_that_sessions_reach_has_a_port() {
        assert_eq!(host_and_port("10.0.0.7:5432").unwrap(), "10.0.0.7:5432");
        for text in ["", "10.0.0.7", "10.0.0.7:x", "http://a:1"] {
            assert!(host_and_port(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_not_built_is_not_promised() {
        assert!(runtime("local").is_ok());
        let refused = runtime("docker").unwrap_err();
        assert_eq!(
            refused,
            "the docker runtime is not in this build yet; local is"
        );
        assert!(
            runtime("kubernetes")
                .unwrap_err()
                .contains("not in this build yet")
        );
        assert!(runtime("lxc").unwrap_err().contains("'lxc' is no runtime"));
    }

    #[test]
    fn switches_numbers_and_buckets() {
        assert!(switch("on").unwrap() && !switch("false").unwrap() && switch("maybe").is_err());
        assert_eq!(number(1, 10)("10"), Ok(10));
        assert_eq!(
            number(1, 10)("0").unwrap_err(),
            "'0' is not a whole number from 1 to 10"
        );
        assert!(addressing("host").is_ok() && addressing("virtual").is_err());
        assert!(
            bucket("my-bucket").is_ok() && bucket("my/bucket").is_err() && bucket("B").is_err()
        );
    }
}
