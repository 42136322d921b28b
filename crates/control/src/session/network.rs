//! What may be asked of the network.

use sandbox_model::session::SessionNetwork;

use crate::error::ControlError;

/// How many hosts may be named.
const MOST_ALLOWED: usize = 64;

/// May this be asked for?
pub(super) fn check(network: &SessionNetwork) -> Result<(), ControlError> {
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
    match allow.iter().find(|entry| !is_address(entry)) {
        Some(bad) => {
            let problem = format!("'{}' is not host:port", bad.escape_debug());
            invalid(problem, "write it as example.org:443")
        }
        None => Ok(()),
    }
}

fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else {
        return false;
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-*:[]".contains(&byte);
    (1..=253).contains(&host.len())
        && host.bytes().all(plain)
        && port.parse::<u16>().is_ok_and(|port| port > 0)
}
