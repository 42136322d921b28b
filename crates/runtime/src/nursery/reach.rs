//! What of the network a session reaches.
//!
//! Nothing, or what leads through a gate: the hosts that were named, or every public one. The host's own
//! network is never a session's. Whoever is on it reaches what listens on the loopback for being out of
//! everybody's reach, and a cloud's metadata service; so a session without a list of hosts gets the gate,
//! too, with no list.

use sandbox_isolation::keeper::InnerNetwork;
use sandbox_isolation::network::{Others, proxy_variables};
use sandbox_model::session::SessionNetwork;
use sandbox_model::{HostPattern, Network};

/// What of the network a session reaches, as the engine has it.
#[derive(Debug, Clone)]
pub(super) struct Reach {
    pub(super) network: Network,
    pub(super) others: Others,
}

impl Reach {
    /// What was asked for; an error names the host that is none.
    pub(super) fn of(asked: &SessionNetwork) -> Result<Reach, String> {
        if !asked.enabled {
            // The executor's is the host's; its executions have none.
            return Ok(Reach {
                network: Network::Host,
                others: Others::Refused,
            });
        }
        let named = asked.allow.iter().map(|host| host.parse());
        let named: Result<Vec<HostPattern>, _> = named.collect();
        let named =
            named.map_err(|error: sandbox_model::settings::SettingsError| error.to_string())?;
        let (hosts, others) = match named.is_empty() {
            true => (vec![everybody()], Others::Public),
            false => (named, Others::Refused),
        };
        Ok(Reach {
            network: Network::Isolated {
                ports: Vec::new(),
                hosts,
                publish: Vec::new(),
            },
            others,
        })
    }

    /// What an execution has of it.
    pub(super) fn inner(&self) -> InnerNetwork {
        match self.network {
            Network::Host => InnerNetwork::Own,
            Network::Isolated { .. } => InnerNetwork::Shared,
        }
    }

    /// Variables that lead an execution's tools through the gate.
    pub(super) fn variables(&self) -> Vec<(&'static str, String)> {
        match self.network {
            Network::Host => Vec::new(),
            Network::Isolated { .. } => proxy_variables(),
        }
    }

    /// In words.
    pub(super) fn describe(&self) -> &'static str {
        match (&self.network, self.others) {
            (Network::Host, _) => "none: each execution has a loopback of its own",
            (_, Others::Refused) => "named hosts, by a proxy; the namespace is the session's",
            (_, Others::Public) => "public addresses, by a proxy; the namespace is the session's",
        }
    }
}

/// A name for everybody, so that there is a proxy.
fn everybody() -> HostPattern {
    HostPattern {
        host: "*".to_owned(),
        port: None,
    }
}
