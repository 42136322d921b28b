//! The address that a request comes from, also behind a proxy.
//!
//! Anybody can send `X-Forwarded-For` and `Forwarded`. They count only where the connection comes from a proxy that the
//! operator named, and they are read from the right: each proxy appends the address that it saw, so that everything to
//! the left of the last untrusted address was written by somebody who is not trusted.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{Extensions, HeaderMap, HeaderName, header};
use axum::middleware::Next;
use axum::response::Response;

use crate::state::App;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The address of all clients of which a proxy's headers do not tell one: they contradict each other, or cannot be read.
/// It is not the proxy's own, so that such clients do not use up what the proxy may ask.
const UNKNOWN: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

/// A range of addresses in CIDR notation, such as `10.0.0.0/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    prefix: u8,
}

impl Network {
    /// Whether an address is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => {
                masked(address.to_canonical(), self.prefix) == self.first
            }
            _ => false,
        }
    }
}

/// The first address of the network of that prefix that an address is in.
fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    let prefix = u32::from(prefix);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - prefix).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Network, String> {
        let shape = || {
            format!(
                "invalid network '{text}': expected an address or CIDR block such as 10.0.0.0/8"
            )
        };
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let first: IpAddr = address.parse().map_err(|_| shape())?;
        let longest = if first.is_ipv4() { 32 } else { 128 };
        let is_plain = |prefix: &str| prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix = match prefix {
            Some(prefix) if is_plain(prefix) => prefix.parse().map_err(|_| shape())?,
            Some(_) => return Err(shape()),
            None => longest,
        };
        if prefix > longest {
            return Err(format!(
                "invalid network '{text}': the prefix is longer than {longest} bits"
            ));
        }
        if prefix == 0 {
            return Err(format!(
                "invalid network '{text}': it holds every address, so that any client could choose its own"
            ));
        }
        if first.to_canonical() != first {
            return Err(format!(
                "invalid network '{text}': write IPv4 addresses without ::ffff:"
            ));
        }
        let start = masked(first, prefix);
        if start != first {
            return Err(format!(
                "invalid network '{text}': the network of that prefix is {start}/{prefix}"
            ));
        }
        Ok(Network { first, prefix })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.first, self.prefix) {
            (IpAddr::V4(address), 32) => write!(f, "{address}"),
            (IpAddr::V6(address), 128) => write!(f, "{address}"),
            (first, prefix) => write!(f, "{first}/{prefix}"),
        }
    }
}

/// The proxies whose word is taken for where a request comes from.
#[derive(Debug, Clone, Default)]
pub(crate) struct TrustedProxies(pub(crate) Vec<Network>);

impl TrustedProxies {
    /// The address that a request with these headers comes from, where `peer` sent it.
    fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.trusts(peer) {
            return peer;
        }
        match (forwarded_for(headers), forwarded(headers)) {
            (None, None) => peer,
            (Some(chain), None) | (None, Some(chain)) => self.nearest_untrusted(peer, chain),
            // A proxy that writes one of them may pass on the other as a client sent it.
            (Some(one), Some(other)) => {
                let one = self.nearest_untrusted(peer, one);
                let is_same = one == self.nearest_untrusted(peer, other);
                if is_same { one } else { UNKNOWN }
            }
        }
    }

    /// Follows a chain of addresses, the nearest last, up to the first that is not trusted.
    fn nearest_untrusted(&self, peer: IpAddr, chain: Vec<Option<IpAddr>>) -> IpAddr {
        let mut nearest = peer;
        for address in chain.into_iter().rev() {
            match address {
                _ if !self.trusts(nearest) => break,
                Some(address) => nearest = address,
                None => return UNKNOWN,
            }
        }
        nearest
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }
}

/// The addresses of `X-Forwarded-For`; none for an entry that is no address.
fn forwarded_for(headers: &HeaderMap) -> Option<Vec<Option<IpAddr>>> {
    let values = headers.get_all(&X_FORWARDED_FOR).iter();
    let entries = values.flat_map(|value| match value.to_str() {
        // Nothing is quoted in this one.
        Ok(text) => text.split(',').map(|entry| node(entry.trim())).collect(),
        Err(_) => vec![None],
    });
    let found: Vec<_> = entries.collect();
    (!found.is_empty()).then_some(found)
}

/// The addresses of `Forwarded` (RFC 7239); none for an element that has none or hides it.
fn forwarded(headers: &HeaderMap) -> Option<Vec<Option<IpAddr>>> {
    let address = |element: &str| {
        let mut pairs = split(element, ';').into_iter();
        let value = pairs.find_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            let is_it = name.trim().eq_ignore_ascii_case("for");
            is_it.then(|| value.trim().trim_matches('"').to_owned())
        })?;
        node(&value)
    };
    let mut found = Vec::new();
    for value in headers.get_all(header::FORWARDED) {
        match value.to_str() {
            Ok(text) => found.extend(split(text, ',').into_iter().map(address)),
            Err(_) => found.push(None),
        }
    }
    (!found.is_empty()).then_some(found)
}

/// The parts of a text between separators that are not within quotes.
fn split(text: &str, separator: char) -> Vec<&str> {
    let mut is_quoted = false;
    let parts = text.split(|letter| {
        is_quoted ^= letter == '"';
        letter == separator && !is_quoted
    });
    parts.collect()
}

/// An address, with a port or without.
fn node(text: &str) -> Option<IpAddr> {
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let address = text.parse::<IpAddr>().ok();
    let address = address.or_else(|| bare?.parse().ok());
    let address = address.or_else(|| text.parse::<SocketAddr>().ok().map(|at| at.ip()));
    address.map(|address| address.to_canonical())
}

/// Where a request comes from, as it was found out when it came in.
#[derive(Debug, Clone, Copy)]
struct Client(IpAddr);

/// Finds out where a request comes from.
pub(crate) async fn identify(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let peer = address(&request);
    let client = app.proxies.client(peer, request.headers());
    request.extensions_mut().insert(Client(client));
    next.run(request).await
}

/// The address that a request comes from.
pub(crate) fn address(request: &Request) -> IpAddr {
    address_in(request.extensions())
}

/// The same, of a request that is in parts.
pub(crate) fn address_in(extensions: &Extensions) -> IpAddr {
    if let Some(Client(address)) = extensions.get::<Client>() {
        return *address;
    }
    let peer = extensions.get::<ConnectInfo<SocketAddr>>();
    peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(peer)| {
        peer.ip()
    })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn proxies(networks: &[&str]) -> TrustedProxies {
        let networks = networks.iter().map(|text| text.parse().expect("a network"));
        TrustedProxies(networks.collect())
    }

    fn client(proxies: &TrustedProxies, peer: &str, headers: &[(&'static str, &str)]) -> String {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let value = HeaderValue::from_bytes(value.as_bytes()).expect("a value");
            map.append(*name, value);
        }
        let peer = peer.parse().expect("an address");
        proxies.client(peer, &map).to_string()
    }

    const FOR: &str = "x-forwarded-for";
    const FORWARDED: &str = "forwarded";

    #[test]
    fn headers_of_an_untrusted_peer_are_ignored() {
        let headers = [(FOR, "198.51.100.1"), (FORWARDED, "for=198.51.100.1")];
        let none = TrustedProxies::default();
        assert_eq!(client(&none, "10.0.0.1", &headers), "10.0.0.1");
        let some = proxies(&["10.0.0.0/8"]);
        assert_eq!(client(&some, "192.0.2.1", &headers), "192.0.2.1");
        assert_eq!(client(&some, "10.0.0.1", &[]), "10.0.0.1");
    }

    #[test]
    fn the_last_untrusted_address_is_the_client() {
        let proxies = proxies(&["10.0.0.0/8", "fd00::/8"]);
        for (written, found) in [
            ("198.51.100.1", "198.51.100.1"),
            ("1.2.3.4, 198.51.100.1", "198.51.100.1"),
            ("1.2.3.4, 198.51.100.1, 10.0.0.9", "198.51.100.1"),
            ("1.2.3.4,198.51.100.1:4711 , fd00::7", "198.51.100.1"),
            ("[2001:db8::7]:80,[fd00::7]", "2001:db8::7"),
            ("::ffff:198.51.100.1", "198.51.100.1"),
            ("10.0.0.8, 10.0.0.9", "10.0.0.8"),
            // What cannot be read was written by nobody who is trusted, and neither was what is before it.
            ("198.51.100.1, unknown", "::"),
            ("198.51.100.1, unknown, 10.0.0.9", "::"),
            ("198.51.100.1, ", "::"),
            ("198.51.100.1, ü", "::"),
            ("", "::"),
            // Quotes mean nothing here.
            ("\", 198.51.100.1", "198.51.100.1"),
        ] {
            let headers = [(FOR, written)];
            assert_eq!(client(&proxies, "10.0.0.1", &headers), found, "{written}");
        }
        let lines = [(FOR, "1.2.3.4"), (FOR, "198.51.100.1"), (FOR, "10.0.0.9")];
        assert_eq!(client(&proxies, "10.0.0.1", &lines), "198.51.100.1");
        assert_eq!(client(&proxies, "::ffff:10.0.0.1", &lines), "198.51.100.1");
    }

    #[test]
    fn forwarded_is_read_like_x_forwarded_for() {
        let proxies = proxies(&["10.0.0.1"]);
        for (written, found) in [
            ("for=198.51.100.1", "198.51.100.1"),
            ("For=\"[2001:db8::7]:4711\";proto=https", "2001:db8::7"),
            (
                "for=1.2.3.4, proto=https;by=10.0.0.1;FOR=198.51.100.1",
                "198.51.100.1",
            ),
            ("for=\"a,for=1.2.3.4\"", "::"),
            ("for=198.51.100.1, for=_hidden", "::"),
            ("for=198.51.100.1, proto=https", "::"),
        ] {
            let headers = [(FORWARDED, written)];
            assert_eq!(client(&proxies, "10.0.0.1", &headers), found, "{written}");
        }
    }

    #[test]
    fn two_headers_that_disagree_are_both_ignored() {
        let proxies = proxies(&["10.0.0.1"]);
        let both = |one, other| {
            let headers = [(FOR, one), (FORWARDED, other)];
            client(&proxies, "10.0.0.1", &headers)
        };
        assert_eq!(both("198.51.100.1", "for=198.51.100.1"), "198.51.100.1");
        assert_eq!(both("198.51.100.1", "for=198.51.100.2"), "::");
        assert_eq!(both("198.51.100.1", "for=unknown"), "::");
    }

    #[test]
    fn a_network_holds_its_addresses_and_no_others() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
            ("192.0.2.0/31", "192.0.2.1", "192.0.2.2"),
            ("fd00::/8", "fdff::1", "fe00::1"),
            ("::1", "::1", "::2"),
            ("0.0.0.0/1", "127.0.0.1", "128.0.0.1"),
            ("::/1", "::1", "10.0.0.1"),
        ] {
            let parsed: Network = network.parse().expect("a network");
            assert!(
                parsed.contains(inside.parse().expect("an address")),
                "{network}"
            );
            assert!(
                !parsed.contains(outside.parse().expect("an address")),
                "{network}"
            );
        }
    }

    #[test]
    fn refuses_what_is_no_network() {
        for text in [
            "",
            "proxy",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.1/8",
            "0.0.0.0/0",
            "::/0",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "10.0.0.0/8/8",
            "/8",
            " 10.0.0.0/8",
            "10.0.0",
            "::ffff:10.0.0.0/104",
            "*",
        ] {
            let refused = text.parse::<Network>().expect_err(text);
            assert!(refused.contains(&format!("'{text}'")), "{refused}");
        }
        let refused = "10.0.0.1/8".parse::<Network>().expect_err("no network");
        assert!(refused.contains("10.0.0.0/8"), "{refused}");
    }
}
