//! What may be asked of the network.
//!
//! A session reaches public addresses only, whatever a name leads to; an address that is written out is
//! reached as it is. Whoever may make sessions need not be somebody who may reach the server's own
//! network, so an address, and the loopback's name, can be asked for only where the operator named it.

use std::net::IpAddr;

use sandbox_model::HostPattern;
use sandbox_model::session::SessionNetwork;

use crate::error::ControlError;

/// How many hosts may be named, and how long each may be: a name has 253 bytes, a port six with its colon.
const MOST_ALLOWED: usize = 64;
const LONGEST: usize = 253 + 6;

/// May this be asked for? `named` are the addresses that the operator named.
pub(super) fn check(network: &SessionNetwork, named: &[String]) -> Result<(), ControlError> {
    let invalid = |problem: String, solution: &str| {
        Err(ControlError::invalid("network.allow", problem, solution))
    };
    let SessionNetwork { enabled, allow } = network;
    if !enabled && !allow.is_empty() {
        let problem = "is given, but the network is not enabled".to_owned();
        return invalid(problem, "set network.enabled to true");
    }
    if allow.len() > MOST_ALLOWED {
        return invalid(
            format!("has more than {MOST_ALLOWED} entries"),
            "send fewer",
        );
    }
    for entry in allow {
        if entry.len() > LONGEST {
            let problem = format!("has an entry of more than {LONGEST} bytes");
            return invalid(problem, "write it as example.org:443");
        }
        let shown = entry.escape_debug();
        let Some(host) = host(entry) else {
            let problem = format!("'{shown}' is not host:port");
            return invalid(problem, "write it as example.org:443");
        };
        if is_address(&host) && !named.contains(entry) {
            let problem = format!("'{shown}' is an address, and not one that the operator allows");
            return invalid(
                problem,
                "use a public name, or have it added to allowed_addresses",
            );
        }
    }
    Ok(())
}

/// The host of `host:port`; both must be there.
fn host(entry: &str) -> Option<String> {
    let pattern: HostPattern = entry.parse().ok()?;
    pattern.port.map(|_| pattern.host)
}

fn is_address(host: &str) -> bool {
    let bare = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .trim_end_matches('.');
    let name = bare.to_ascii_lowercase();
    bare.parse::<IpAddr>().is_ok() || name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(entry: &str, named: &[&str]) -> bool {
        let network = SessionNetwork {
            enabled: true,
            allow: vec![entry.to_owned()],
        };
        let named: Vec<_> = named.iter().map(|&name| name.to_owned()).collect();
        check(&network, &named).is_ok()
    }

    #[test]
    fn names_with_ports_may_be_asked_for() {
        for entry in ["example.org:443", "*.example.org:443", "a-b.example:80"] {
            assert!(allowed(entry, &[]), "{entry}");
        }
        for entry in [
            "",
            "example.org",
            "example.org:0",
            "example.org:http",
            "a b:80",
            "http://a:80",
        ] {
            assert!(!allowed(entry, &[]), "{entry}");
        }
    }

    #[test]
    fn addresses_are_the_operators_to_name() {
        for entry in [
            "127.0.0.1:80",
            "10.0.0.7:5432",
            "169.254.169.254:80",
            "[::1]:80",
            "localhost:8000",
        ] {
            assert!(!allowed(entry, &[]), "{entry}");
        }
        assert!(allowed("10.0.0.7:5432", &["10.0.0.7:5432"]));
        assert!(!allowed("10.0.0.7:22", &["10.0.0.7:5432"]));
    }

    #[test]
    fn a_list_without_a_network_is_a_mistake() {
        let network = SessionNetwork {
            enabled: false,
            allow: vec!["example.org:443".to_owned()],
        };
        assert!(check(&network, &[]).is_err());
    }
}
