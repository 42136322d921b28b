//! Why an isolated network cannot be had as asked.

use std::io;

use sandbox_model::{Class, Failure, HostPattern};
use thiserror::Error;

use super::PROXY_PORT;

/// How many ports can be forwarded: their listeners come out of the namespace in one message.
pub const MOST_PORTS: usize = 60;

/// Why an isolated network cannot be had as asked.
#[derive(Debug, Error)]
pub enum NetworkError {
    /// The port on the host is somebody else's.
    #[error("cannot publish port {0}: something on this host listens there already")]
    Taken(u16),
    /// The port on the host is not for ordinary users.
    #[error("cannot publish port {0}: it is reserved for root")]
    Privileged(u16),
    /// The port on the host cannot be had.
    #[error("cannot publish port {port}")]
    Publish {
        /// Which.
        port: u16,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A forwarded port is the proxy's.
    #[error("cannot forward port {PROXY_PORT}: the proxy for --allow-host listens there inside")]
    ProxyPort,
    /// Too many forwarded ports.
    #[error("cannot forward {0} ports: {MOST_PORTS} is the most")]
    TooManyPorts(usize),
}

impl Failure for NetworkError {
    fn class(&self) -> Class {
        match self {
            NetworkError::Taken(_) => Class::Busy,
            NetworkError::Privileged(_) => Class::Permission,
            NetworkError::Publish { source, .. } => Class::of_io(source),
            NetworkError::ProxyPort | NetworkError::TooManyPorts(_) => Class::General,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            NetworkError::Taken(_) => {
                Some("choose another: `--publish HOST_PORT:INSIDE_PORT`".to_owned())
            }
            NetworkError::Privileged(port) => {
                let free = u32::from(*port) + 8000;
                Some(format!(
                    "choose a higher one, such as `--publish {free}:{port}`"
                ))
            }
            NetworkError::ProxyPort => Some(format!(
                "reach it through the proxy: `--allow-host 127.0.0.1:{PROXY_PORT}`"
            )),
            NetworkError::Publish { .. } | NetworkError::TooManyPorts(_) => None,
        }
    }
}

/// Can these be had together?
pub fn check(ports: &[u16], hosts: &[HostPattern]) -> Result<(), NetworkError> {
    if !hosts.is_empty() && ports.contains(&PROXY_PORT) {
        return Err(NetworkError::ProxyPort);
    }
    if ports.len() > MOST_PORTS {
        return Err(NetworkError::TooManyPorts(ports.len()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proxys_port_is_not_forwarded_beside_the_proxy() {
        let hosts: [HostPattern; 1] = ["example.com".parse().unwrap()];
        assert!(matches!(
            check(&[80, PROXY_PORT], &hosts),
            Err(NetworkError::ProxyPort)
        ));
        assert!(check(&[80, PROXY_PORT], &[]).is_ok());
    }

    #[test]
    fn no_more_ports_are_taken_than_can_be_handed_out() {
        let ports: Vec<u16> = (1..=61).collect();
        assert!(check(&ports[..60], &[]).is_ok());
        assert!(matches!(
            check(&ports, &[]),
            Err(NetworkError::TooManyPorts(61))
        ));
        // Two listeners each, the proxy's, the command's pidfd and the terminal.
        const { assert!(2 * MOST_PORTS + 3 <= sandbox_linux::message::MOST_DESCRIPTORS) };
    }
}
