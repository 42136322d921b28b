//! The flags of every command that speaks to a server.

use std::path::PathBuf;

use super::address::{self, Address};
use super::connection::Client;
use super::error::ClientError;
use super::key::{self, Places};
use crate::surroundings;

/// Which server, and with which key.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct ServerOptions {
    /// The server's address [SANDBOX_SERVER, http://127.0.0.1:8000]
    #[arg(long, global = true, value_name = "URL")]
    server: Option<String>,

    /// The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]
    #[arg(long, global = true, value_name = "FILE")]
    key_file: Option<PathBuf>,

    /// Send the API key over plain http to another machine, too
    #[arg(long, global = true)]
    allow_plain_http: bool,
}

impl ServerOptions {
    /// A client that sends the key with everything it asks.
    pub(crate) fn connect(&self) -> Result<Client, ClientError> {
        let address = self.address()?;
        let data = match address.is_loopback() {
            true => key::data(
                &surroundings::variable,
                surroundings::home().ok(),
                rustix::process::geteuid().is_root(),
            ),
            false => None,
        };
        let found = key::find(&Places {
            flag: self.key_file.as_deref(),
            variable: &surroundings::variable,
            data,
        })?;
        let Some(key) = found else {
            let server = address.to_string();
            return Err(ClientError::NoKey { server });
        };
        if address.is_plain() && !address.is_loopback() && !self.allow_plain_http {
            let host = address.host().to_owned();
            return Err(ClientError::Plain { host });
        }
        Client::new(address, Some(key))
    }

    /// A client without a key, for what everybody may ask.
    pub(crate) fn connect_as_stranger(&self) -> Result<Client, ClientError> {
        Client::new(self.address()?, None)
    }

    fn address(&self) -> Result<Address, ClientError> {
        const VARIABLE: &str = "SANDBOX_SERVER";
        match (&self.server, surroundings::variable(VARIABLE)) {
            (Some(text), _) => Address::parse(text),
            (None, Some(text)) => {
                let text = text.into_string();
                Address::parse(&text.map_err(|_| ClientError::NotText(VARIABLE))?)
            }
            (None, None) => Address::parse(address::USUAL),
        }
    }
}
