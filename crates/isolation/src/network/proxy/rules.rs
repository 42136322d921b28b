//! Who may be reached: what the user named, and no private address unless that was named too.
//!
//! A pattern that matches a name opens public addresses only. Whoever controls a name controls what
//! it resolves to, so a private address counts as named only when a pattern is that very address;
//! `localhost`, written out, is the one name that means one.

use std::net::{IpAddr, SocketAddr};

use sandbox_model::HostPattern;
use thiserror::Error;

use super::super::Others;
use super::super::address::{Kind, canonical, kind};
use super::target::{Host, Target};

/// What may be reached.
#[derive(Debug)]
pub(in super::super) struct Rules {
    hosts: Vec<HostPattern>,
    others: Others,
}

/// Why a target may not be reached.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum Refusal {
    #[error("not allowed; `--allow-host {0}` would allow it")]
    NotNamed(String),
    #[error("{address} is {what}; `--allow-host {named}` would allow it")]
    NotPublic {
        address: IpAddr,
        what: &'static str,
        named: SocketAddr,
    },
}

impl Refusal {
    /// What the client hears. Whom a name leads to on a private network is nothing that code inside could
    /// find out otherwise; the record on the host has it in full.
    pub(super) fn to_client(&self, target: &Target) -> String {
        match (self, &target.host) {
            (Refusal::NotPublic { .. }, Host::Name(_)) => {
                "it resolves to a non-public address".to_owned()
            }
            _ => self.to_string(),
        }
    }
}

impl Rules {
    pub(in super::super) fn new(hosts: Vec<HostPattern>, others: Others) -> Rules {
        Rules { hosts, others }
    }

    /// May this be asked for at all? Decided before a name is resolved, so that names that are not
    /// allowed cannot carry words out through the DNS.
    pub(super) fn admit(&self, target: &Target) -> Result<(), Refusal> {
        let admitted = match &target.host {
            Host::Name(name) => {
                let mut names = self.hosts.iter().filter(|p| address_of(p).is_none());
                names.any(|pattern| pattern.matches(name, target.port))
            }
            // Never by the text: `*.0.0.1` is no pattern for 127.0.0.1.
            Host::Address(address) => {
                let all =
                    |pattern: &HostPattern| pattern.host == "*" && pattern.fits_port(target.port);
                self.names(*address, target.port) || self.hosts.iter().any(all)
            }
        };
        if admitted || self.others == Others::Public {
            Ok(())
        } else {
            Err(Refusal::NotNamed(target.to_string()))
        }
    }

    /// May all of these be connected to? One that may not spoils the rest: a name that leads to a
    /// private network as well is somebody's attempt, or a network the user has not thought of.
    pub(super) fn check(
        &self,
        target: &Target,
        found: &[IpAddr],
        is_own: impl Fn(IpAddr) -> bool,
    ) -> Result<Vec<SocketAddr>, Refusal> {
        let mut checked: Vec<SocketAddr> = Vec::with_capacity(found.len());
        for address in found.iter().copied().map(canonical) {
            let kind = kind(address);
            let named = SocketAddr::new(address, target.port);
            let what = match kind {
                _ if self.names(address, target.port) => None,
                Kind::Loopback if self.names_localhost(target) => None,
                Kind::Public if is_own(address) => Some("an address of this machine"),
                Kind::Public => None,
                other => Some(other.describe()),
            };
            if let Some(what) = what {
                return Err(Refusal::NotPublic {
                    address,
                    what,
                    named,
                });
            }
            if !checked.contains(&named) {
                checked.push(named);
            }
        }
        Ok(checked)
    }

    /// Is there a pattern that is this very address?
    fn names(&self, address: IpAddr, port: u16) -> bool {
        self.hosts
            .iter()
            .any(|pattern| address_of(pattern) == Some(address) && pattern.fits_port(port))
    }

    fn names_localhost(&self, target: &Target) -> bool {
        let asked = matches!(&target.host, Host::Name(name) if name == "localhost");
        asked
            && self
                .hosts
                .iter()
                .any(|p| p.host == "localhost" && p.fits_port(target.port))
    }
}

/// The address a pattern is, if it is one.
fn address_of(pattern: &HostPattern) -> Option<IpAddr> {
    pattern.host.parse().ok().map(canonical)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(patterns: &[&str]) -> Rules {
        let hosts = patterns.iter().map(|p| p.parse().unwrap()).collect();
        Rules::new(hosts, Others::Refused)
    }

    fn target(host: &str, port: u16) -> Target {
        Target {
            host: Host::parse(host).unwrap(),
            port,
        }
    }

    fn verdict(patterns: &[&str], host: &str, port: u16, found: &[&str]) -> Result<usize, Refusal> {
        let (rules, target) = (rules(patterns), target(host, port));
        rules.admit(&target)?;
        let found: Vec<IpAddr> = match &target.host {
            Host::Address(address) => vec![*address],
            Host::Name(_) => found.iter().map(|a| a.parse().unwrap()).collect(),
        };
        rules
            .check(&target, &found, |a| a.to_string() == "9.9.9.9")
            .map(|list| list.len())
    }

    #[test]
    fn a_named_host_is_reached_at_its_public_addresses() {
        let public = ["1.1.1.1", "2606:4700::1111", "1.1.1.1"];
        assert_eq!(
            verdict(&["example.com"], "EXAMPLE.com.", 443, &public),
            Ok(2)
        );
        assert_eq!(
            verdict(&["*.example.com:8443"], "a.b.example.com", 8443, &public),
            Ok(2)
        );
        assert_eq!(verdict(&["*"], "example.com", 80, &public), Ok(2));
        assert_eq!(verdict(&["*:443"], "1.1.1.1", 443, &[]), Ok(1));
    }

    #[test]
    fn everybody_public_may_be_reached_where_that_is_so_and_nobody_else() {
        let rules = Rules::new(vec!["10.0.0.7:5432".parse().unwrap()], Others::Public);
        let verdict = |host: &str, port, found: &str| {
            let target = target(host, port);
            rules.admit(&target)?;
            let found: IpAddr = found.parse().unwrap();
            rules.check(&target, &[found], |a| a.to_string() == "9.9.9.9")
        };
        for port in [22, 80, 5432] {
            assert!(verdict("example.com", port, "1.1.1.1").is_ok());
            assert!(verdict("1.1.1.1", port, "1.1.1.1").is_ok());
        }
        assert!(verdict("10.0.0.7", 5432, "10.0.0.7").is_ok());
        for (host, found) in [
            ("localhost", "127.0.0.1"),
            ("127.0.0.1", "127.0.0.1"),
            ("evil.example", "169.254.169.254"),
            ("evil.example", "10.0.0.8"),
            ("own.example", "9.9.9.9"),
        ] {
            assert!(verdict(host, 80, found).is_err(), "{host} at {found}");
        }
    }

    #[test]
    fn what_is_not_named_is_refused_before_it_is_resolved() {
        let cases: &[(&[&str], &str, u16)] = &[
            (&[], "example.com", 443),
            (&["example.com"], "example.com", 8080),
            (&["example.com"], "example.com.evil.org", 443),
            (&["*.example.com"], "example.com", 443),
            (&["*.example.com"], "badexample.com", 443),
            (&["1.1.1.1"], "1.0.0.1", 443),
            (&["*.0.0.1:80"], "127.0.0.1", 80),
            (&["example.com"], "1.1.1.1", 443),
        ];
        for (patterns, host, port) in cases {
            let refused = rules(patterns).admit(&target(host, *port));
            assert!(
                matches!(refused, Err(Refusal::NotNamed(_))),
                "{patterns:?} {host} {port}"
            );
        }
    }

    #[test]
    fn private_addresses_need_their_own_name() {
        let refused: &[(&[&str], &str, &[&str])] = &[
            (&["*"], "127.0.0.1", &[]),
            (&["*"], "[::1]", &[]),
            (&["*"], "169.254.169.254", &[]),
            (&["*"], "[::ffff:10.0.0.1]", &[]),
            (&["*"], "localhost", &["127.0.0.1"]),
            (&["*.internal"], "db.internal", &["10.0.0.7"]),
            (&["db.internal"], "db.internal", &["10.0.0.7"]),
            (&["localhost"], "localhost", &["10.0.0.7"]),
            (&["a.localhost"], "a.localhost", &["127.0.0.1"]),
            (&["example.com"], "example.com", &["1.1.1.1", "127.0.0.1"]),
            (
                &["example.com"],
                "example.com",
                &["2606:4700::1111", "::ffff:192.168.0.1"],
            ),
            (&["example.com"], "example.com", &["64:ff9b::a00:1"]),
            (&["example.com", "10.0.0.8"], "example.com", &["10.0.0.7"]),
            (
                &["example.com:80", "10.0.0.7:8080"],
                "example.com",
                &["10.0.0.7"],
            ),
            (&["example.com"], "example.com", &["9.9.9.9"]),
        ];
        for (patterns, host, found) in refused {
            let verdict = verdict(patterns, host, 80, found);
            assert!(
                matches!(verdict, Err(Refusal::NotPublic { .. })),
                "{patterns:?} {host} {found:?}"
            );
        }
        let allowed: &[(&[&str], &str, &[&str])] = &[
            (&["127.0.0.1"], "127.0.0.1", &[]),
            (&["127.0.0.1"], "[::ffff:127.0.0.1]", &[]),
            (&["[::1]:80"], "[0::1]", &[]),
            (&["169.254.169.254"], "169.254.169.254", &[]),
            (&["localhost"], "localhost", &["127.0.0.1", "::1"]),
            (&["db.internal", "10.0.0.7"], "db.internal", &["10.0.0.7"]),
            (
                &["*.internal", "10.0.0.7"],
                "db.internal",
                &["::ffff:10.0.0.7"],
            ),
            (&["*", "9.9.9.9"], "example.com", &["9.9.9.9"]),
        ];
        for (patterns, host, found) in allowed {
            assert!(
                verdict(patterns, host, 80, found).is_ok(),
                "{patterns:?} {host} {found:?}"
            );
        }
    }

    #[test]
    fn a_refusal_says_what_would_allow_it() {
        let refused =
            verdict(&["db.internal:5432"], "db.internal", 5432, &["10.0.0.7"]).unwrap_err();
        let text = "10.0.0.7 is a private address; `--allow-host 10.0.0.7:5432` would allow it";
        assert_eq!(refused.to_string(), text);
        // Not to the client, who asked for a name.
        let hidden = refused.to_client(&target("db.internal", 5432));
        assert_eq!(hidden, "it resolves to a non-public address");
        let refused = verdict(&[], "[2606:4700::1111]", 443, &[]).unwrap_err();
        let text = "not allowed; `--allow-host [2606:4700::1111]:443` would allow it";
        assert_eq!(refused.to_string(), text);
    }
}
