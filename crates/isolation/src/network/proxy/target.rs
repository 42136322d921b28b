//! What a client asks for: a host and a port, in one spelling.
//!
//! A name can be written in many ways (capitals, a trailing dot), an address in more (`127.1`,
//! `0x7f000001`, `2130706433`, `::ffff:127.0.0.1`). What is judged must be what is connected to, so
//! names are brought to one form here and addresses in any but the usual form are turned away:
//! resolvers understand them, and would turn a harmless-looking name into this machine.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

use super::super::address::canonical;

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) host: Host,
    pub(super) port: u16,
}

/// A name or an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host {
    /// Lower case, without the trailing dot, and not the spelling of an address.
    Name(String),
    /// Not IPv4 in IPv6's clothes.
    Address(IpAddr),
}

/// Why a text is not a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum HostError {
    #[error("not a host name")]
    Malformed,
    #[error("not an ASCII name; ask for its xn-- form")]
    NotAscii,
    #[error("an address in an unusual spelling; write it as four decimal numbers")]
    OddAddress,
}

impl Host {
    /// Understands `example.com`, `192.0.2.1` and `[2001:db8::1]`.
    pub(super) fn parse(text: &str) -> Result<Host, HostError> {
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or(HostError::Malformed)?;
            let address: Ipv6Addr = inner.parse().map_err(|_| HostError::Malformed)?;
            return Ok(Host::from(IpAddr::V6(address)));
        }
        if !text.is_ascii() {
            return Err(HostError::NotAscii);
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if let Ok(address) = name.parse::<Ipv4Addr>() {
            return Ok(Host::from(IpAddr::V4(address)));
        }
        if !is_name(&name) {
            return Err(HostError::Malformed);
        }
        if ends_in_a_number(&name) {
            return Err(HostError::OddAddress);
        }
        Ok(Host::Name(name))
    }
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Host {
        Host::Address(canonical(address))
    }
}

fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// Such a host is an IPv4 address to the URL standard and to `inet_aton`, in whatever base.
fn ends_in_a_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    match last.strip_prefix("0x") {
        Some(digits) => digits.bytes().all(|b| b.is_ascii_hexdigit()),
        None => last.bytes().all(|b| b.is_ascii_digit()),
    }
}

/// Splits `host:port`, the port as digits and nothing else.
pub(super) fn split_port(authority: &str) -> Option<(&str, u16)> {
    let (host, port) = authority.rsplit_once(':')?;
    // `::1:443` could be read in two ways.
    if host.contains(':') && !host.starts_with('[') {
        return None;
    }
    Some((host, parse_port(port)?))
}

fn parse_port(port: &str) -> Option<u16> {
    let digits = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    port.parse().ok().filter(|number| digits && *number != 0)
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Name(name) => write!(f, "{name}:{}", self.port),
            Host::Address(address) => SocketAddrText(*address, self.port).fmt(f),
        }
    }
}

/// `192.0.2.1:80`, `[2001:db8::1]:80`.
struct SocketAddrText(IpAddr, u16);

impl fmt::Display for SocketAddrText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::net::SocketAddr::new(self.0, self.1).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_host_has_one_spelling() {
        let name = Host::Name("api.example.com".to_owned());
        for text in ["api.example.com", "API.Example.COM", "api.example.com."] {
            assert_eq!(Host::parse(text), Ok(name.clone()), "{text}");
        }
        for text in [
            "127.0.0.1",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "127.0.0.1.",
        ] {
            let loopback = Host::Address(Ipv4Addr::LOCALHOST.into());
            assert_eq!(Host::parse(text), Ok(loopback), "{text}");
        }
        assert_eq!(
            Host::parse("[0:0::1]"),
            Ok(Host::Address(Ipv6Addr::LOCALHOST.into()))
        );
    }

    #[test]
    fn addresses_in_disguise_are_turned_away() {
        let disguises = [
            "127.1",
            "127.0.1",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "0x7f.0x0.0x0.0x1",
            "0177.0.0.1",
            "127.0.0.01",
            "0",
            "0x",
            "00.0.0.0",
            "10.0.0.256",
            "1.2.3.4.5",
            "example.com.1",
            "0X7F.1",
            "2130706433.",
            "localhost.0x7f",
        ];
        for text in disguises {
            assert_eq!(Host::parse(text), Err(HostError::OddAddress), "{text}");
        }
    }

    #[test]
    fn what_is_no_host_is_turned_away() {
        let long = "a.".repeat(127) + "a";
        let label = "a".repeat(64);
        let wrong = [
            "",
            ".",
            "..",
            "a..b",
            ".a",
            "a b",
            "a/b",
            "a@b",
            "a%2eb",
            "a:b",
            "::1",
            "[::1",
            "[::1%eth0]",
            "[127.0.0.1]",
            "[]",
            "a\0b",
            "a\r\nb",
            "*",
            "*.a",
            "example.com..",
            &long,
            &label,
        ];
        for text in wrong {
            assert_eq!(Host::parse(text), Err(HostError::Malformed), "{text:?}");
        }
        for text in ["bücher.de", "ⓔxample.com", "example。com", "１２７.0.0.1"] {
            assert_eq!(Host::parse(text), Err(HostError::NotAscii), "{text}");
        }
    }

    #[test]
    fn a_port_is_digits() {
        assert_eq!(split_port("a:443"), Some(("a", 443)));
        assert_eq!(split_port("[::1]:443"), Some(("[::1]", 443)));
        for text in [
            "a", "a:", "a:0", "a:65536", "a:+80", "a: 80", "::1:443", "a:b:80",
        ] {
            assert_eq!(split_port(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_host_or_is_not(text in any::<String>()) {
            let _ = split_port(&text);
            if let Ok(Host::Name(name)) = Host::parse(&text) {
                prop_assert!(name.parse::<IpAddr>().is_err());
                prop_assert_eq!(Host::parse(&name), Ok(Host::Name(name.clone())));
            }
        }

        #[test]
        fn no_name_is_an_address_to_a_resolver(text in "(0[xX]?)?[0-9a-f]{0,10}(\\.(0x?)?[0-9a-f]{0,4}){0,3}") {
            if let Ok(Host::Name(name)) = Host::parse(&text) {
                prop_assert!(!is_number_of_inet_aton(&name), "{}", name);
            }
        }
    }

    /// What `inet_aton` takes: one to four numbers, each in any base C knows.
    fn is_number_of_inet_aton(name: &str) -> bool {
        let is_number = |part: &str| match (part.strip_prefix("0x"), part.strip_prefix('0')) {
            (Some(hex), _) => hex.is_empty() || u64::from_str_radix(hex, 16).is_ok(),
            (None, Some(octal)) if !octal.is_empty() => u64::from_str_radix(octal, 8).is_ok(),
            _ => part.parse::<u64>().is_ok(),
        };
        name.split('.').count() <= 4 && name.split('.').all(is_number)
    }
}
