//! SOCKS5 (RFC 1928): CONNECT without authentication, names resolved by us.

use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::time::Instant;

use super::super::relay::{Flow, Joint, Until};
use super::super::socket::{farewell, receive_more, send_all};
use super::target::{Host, Target};
use super::{Denied, Proxy};

/// The first byte of everything a client says.
pub(super) const VERSION: u8 = 5;

const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;

/// The answers of RFC 1928, section 6, that we give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Reply {
    Succeeded = 0,
    GeneralFailure = 1,
    NotAllowed = 2,
    HostUnreachable = 4,
    ConnectionRefused = 5,
    CommandNotSupported = 7,
    AddressTypeNotSupported = 8,
}

/// How far the bytes so far lead.
#[derive(Debug, PartialEq, Eq)]
enum Parsed<T> {
    /// More are needed.
    More,
    /// This, and how many bytes it took.
    Whole(T, usize),
    Wrong(Reply),
}

/// What is asked.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    command: u8,
    host: Asked,
    port: u16,
}

#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Address(IpAddr),
    Name(Vec<u8>),
}

/// Opens what a client asks for whose first bytes are `heard`.
pub(super) fn open(
    proxy: &Proxy,
    client: &OwnedFd,
    mut heard: Vec<u8>,
    deadline: Instant,
) -> io::Result<Option<Joint>> {
    let methods = whole(proxy, client, &mut heard, deadline, parse_greeting)?;
    let Ok(methods) = methods else {
        return Ok(None);
    };
    if !methods.contains(&NO_AUTHENTICATION) {
        farewell(&proxy.stop, client, &[VERSION, NO_METHOD]);
        return Ok(None);
    }
    send_all(&proxy.stop, client, &[VERSION, NO_AUTHENTICATION], deadline)?;
    let server = match whole(proxy, client, &mut heard, deadline, parse_request)? {
        Ok(request) => connect(proxy, request),
        Err(reply) => Err(reply),
    };
    match server {
        Ok(server) => {
            send_all(&proxy.stop, client, &answer(Reply::Succeeded), deadline)?;
            Ok(Some(Joint {
                server,
                request: Flow::starting_with(heard),
                until: Until::BothEnd,
            }))
        }
        Err(reply) => {
            farewell(&proxy.stop, client, &answer(reply));
            Ok(None)
        }
    }
}

/// Reads until `parse` is satisfied, and takes what it took off `heard`.
fn whole<T>(
    proxy: &Proxy,
    client: &OwnedFd,
    heard: &mut Vec<u8>,
    deadline: Instant,
    parse: impl Fn(&[u8]) -> Parsed<T>,
) -> io::Result<Result<T, Reply>> {
    loop {
        match parse(heard) {
            Parsed::Whole(found, length) => {
                heard.drain(..length);
                return Ok(Ok(found));
            }
            Parsed::Wrong(reply) => return Ok(Err(reply)),
            Parsed::More => receive_more(&proxy.stop, client, heard, deadline)?,
        }
    }
}

fn connect(proxy: &Proxy, request: Request) -> Result<OwnedFd, Reply> {
    let port = request.port;
    let (host, text) = match &request.host {
        Asked::Address(address) => (Ok(Host::from(*address)), address.to_string()),
        Asked::Name(name) => {
            let text = String::from_utf8_lossy(name).into_owned();
            // Some clients send an address as a name, without the brackets of a URL.
            let host = match text.parse::<Ipv6Addr>() {
                Ok(address) => Ok(Host::from(IpAddr::V6(address))),
                Err(_) => Host::parse(&text),
            };
            (host, text)
        }
    };
    if request.command != CONNECT {
        proxy.refuse(
            &format!("{text}:{port}"),
            "only TCP connections go through the proxy",
        );
        return Err(Reply::CommandNotSupported);
    }
    let host = host.map_err(|error| {
        proxy.refuse(&format!("{text}:{port}"), &error.to_string());
        Reply::NotAllowed
    })?;
    if port == 0 {
        proxy.refuse(&format!("{text}:{port}"), "there is no port 0");
        return Err(Reply::NotAllowed);
    }
    proxy
        .connect(&Target { host, port })
        .map_err(|denied| match denied {
            Denied::Refused(_) => Reply::NotAllowed,
            Denied::Failed(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                Reply::ConnectionRefused
            }
            Denied::Failed(_) => Reply::HostUnreachable,
        })
}

/// The reply with an empty bound address: which one the host used is its own affair.
fn answer(reply: Reply) -> [u8; 10] {
    [VERSION, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0]
}

/// `5 COUNT METHOD…`
fn parse_greeting(bytes: &[u8]) -> Parsed<Vec<u8>> {
    match bytes {
        [VERSION, count, methods @ ..] => match methods.get(..usize::from(*count)) {
            Some(methods) => Parsed::Whole(methods.to_vec(), 2 + methods.len()),
            None => Parsed::More,
        },
        [] | [VERSION] => Parsed::More,
        _ => Parsed::Wrong(Reply::GeneralFailure),
    }
}

/// `5 COMMAND 0 TYPE ADDRESS… PORT PORT`
fn parse_request(bytes: &[u8]) -> Parsed<Request> {
    match bytes {
        [VERSION, command, 0, kind, rest @ ..] => parse_destination(*command, *kind, rest),
        [] | [VERSION] | [VERSION, _] | [VERSION, _, 0] => Parsed::More,
        _ => Parsed::Wrong(Reply::GeneralFailure),
    }
}

fn parse_destination(command: u8, kind: u8, rest: &[u8]) -> Parsed<Request> {
    let (host, after) = match kind {
        1 => match rest.split_first_chunk::<4>() {
            Some((octets, after)) => (Asked::Address(IpAddr::from(*octets)), after),
            None => return Parsed::More,
        },
        4 => match rest.split_first_chunk::<16>() {
            Some((octets, after)) => (Asked::Address(IpAddr::from(*octets)), after),
            None => return Parsed::More,
        },
        3 => match rest.split_first() {
            Some((length, after)) => match after.split_at_checked(usize::from(*length)) {
                Some((name, after)) => (Asked::Name(name.to_vec()), after),
                None => return Parsed::More,
            },
            None => return Parsed::More,
        },
        _ => return Parsed::Wrong(Reply::AddressTypeNotSupported),
    };
    match after.split_first_chunk::<2>() {
        Some((port, after)) => {
            let port = u16::from_be_bytes(*port);
            Parsed::Whole(
                Request {
                    command,
                    host,
                    port,
                },
                4 + rest.len() - after.len(),
            )
        }
        None => Parsed::More,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_request_is_understood_in_its_three_forms() {
        let v4 = [5, 1, 0, 1, 192, 0, 2, 1, 1, 187, 99];
        let Parsed::Whole(request, 10) = parse_request(&v4) else {
            panic!("v4")
        };
        assert_eq!(request.host, Asked::Address("192.0.2.1".parse().unwrap()));
        assert_eq!(request.port, 443);
        let name = b"\x05\x01\x00\x03\x01a\x00\x50";
        let Parsed::Whole(request, 8) = parse_request(name) else {
            panic!("name")
        };
        assert_eq!(request.host, Asked::Name(b"a".to_vec()));
        let v6 = [
            5, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 80,
        ];
        let Parsed::Whole(request, 22) = parse_request(&v6) else {
            panic!("v6")
        };
        assert_eq!(request.host, Asked::Address("::1".parse().unwrap()));
    }

    #[test]
    fn what_is_not_socks_is_told_so() {
        assert_eq!(
            parse_greeting(&[4, 1]),
            Parsed::Wrong(Reply::GeneralFailure)
        );
        assert_eq!(
            parse_request(&[5, 1, 7]),
            Parsed::Wrong(Reply::GeneralFailure)
        );
        let unknown = parse_request(&[5, 1, 0, 9]);
        assert_eq!(unknown, Parsed::Wrong(Reply::AddressTypeNotSupported));
    }

    proptest! {
        #[test]
        fn parts_of_a_request_ask_for_more(name in proptest::collection::vec(any::<u8>(), 0..=255), port: u16) {
            let mut whole = vec![5, 1, 0, 3, name.len() as u8];
            whole.extend(&name);
            whole.extend(port.to_be_bytes());
            for length in 0..whole.len() {
                prop_assert_eq!(parse_request(&whole[..length]), Parsed::More);
            }
            let wanted = Request { command: 1, host: Asked::Name(name), port };
            prop_assert_eq!(parse_request(&whole), Parsed::Whole(wanted, whole.len()));
        }

        #[test]
        fn no_bytes_break_the_parsers(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            if let Parsed::Whole(_, length) = parse_request(&bytes) {
                prop_assert!(length <= bytes.len());
            }
            if let Parsed::Whole(_, length) = parse_greeting(&bytes) {
                prop_assert!(length <= bytes.len());
            }
        }
    }
}
