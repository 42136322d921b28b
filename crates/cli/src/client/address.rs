//! Which server is meant.

use std::fmt;
use std::net::IpAddr;

use reqwest::Url;

use super::error::ClientError;

/// Where `sandbox serve` listens when it is not told.
pub(super) const USUAL: &str = "http://127.0.0.1:8000";

/// A server's address: everything is asked for below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    url: Url,
}

impl Address {
    /// Reads `http://HOST[:PORT][/PATH]`, or the same with https.
    pub(super) fn parse(text: &str) -> Result<Address, ClientError> {
        let wrong = |problem: &'static str| ClientError::Address {
            text: without_user(text),
            problem,
        };
        let url = Url::parse(text).map_err(|_| wrong("it is not a URL"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("it is neither http nor https"));
        }
        // It would be in the arguments, which everybody on the machine can read.
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("it has a user or a password in it"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("it has more than a host, a port and a path"));
        }
        Ok(Address { url })
    }

    /// Is it this machine itself?
    pub(super) fn is_loopback(&self) -> bool {
        let host = self.host();
        if host.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        let address = literal.parse::<IpAddr>();
        address.is_ok_and(|address| address.to_canonical().is_loopback())
    }

    /// Can everybody on the way read what is said?
    pub(super) fn is_plain(&self) -> bool {
        self.url.scheme() == "http"
    }

    /// The host's name or number.
    pub(super) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// The URL of a path below it. No segment may be `.` or `..`: they would be taken out.
    pub(super) fn below<'s>(&self, segments: impl IntoIterator<Item = &'s str>) -> Url {
        let mut url = self.url.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.url.as_str().trim_end_matches('/'))
    }
}

/// The text without a password that may be in it.
fn without_user(text: &str) -> String {
    match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://…@{host}"),
        (None, Some((_, host))) => format!("…@{host}"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        Address::parse(text).unwrap()
    }

    #[test]
    fn only_this_machine_is_loopback() {
        for text in [
            "http://127.0.0.1:8000",
            "http://127.8.9.10",
            "http://[::1]:8000",
            "http://[::ffff:127.0.0.1]",
            "http://localhost:1",
            "http://LOCALHOST",
            "http://0x7f.1/",
        ] {
            assert!(address(text).is_loopback(), "{text}");
        }
        for text in [
            "http://128.0.0.1",
            "http://[::2]",
            "http://[::ffff:10.0.0.1]",
            "http://localhost.example.com",
            "http://127.0.0.1.example.com",
            "http://0.0.0.0",
            "https://example.com",
        ] {
            assert!(!address(text).is_loopback(), "{text}");
        }
    }

    #[test]
    fn paths_are_put_below_the_address_piece_by_piece() {
        for base in ["http://h", "http://h/"] {
            let url = address(base).below(["api", "v1", "a b", "c/d", "é", "%41"]);
            assert_eq!(url.as_str(), "http://h/api/v1/a%20b/c%2Fd/%C3%A9/%2541");
        }
        let url = address("https://h:1/sandbox/").below(["health"]);
        assert_eq!(url.as_str(), "https://h:1/sandbox/health");
    }

    #[test]
    fn what_is_no_address_is_refused_and_no_password_told() {
        for text in [
            "",
            "127.0.0.1:8000",
            "localhost:8000",
            "ftp://h",
            "http://",
            "http://h?x",
            "http://h#x",
            "http://ada:hunter2@h",
            "ada:hunter2@h",
        ] {
            let error = Address::parse(text).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
        assert_eq!(address("http://h:80/a/").to_string(), "http://h/a");
    }
}
