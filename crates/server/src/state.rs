//! What every handler can reach.

use std::sync::Arc;
use std::time::Instant;

use sandbox_control::Control;
use sandbox_store::objects::SigningKey;

use crate::api::health::Checkups;
use crate::authentication::Keys;
use crate::client_address::TrustedProxies;
use crate::forwarding::Peers;
use crate::internal::Tokens;
use crate::measuring::Measures;
use crate::rate::Rates;

/// What every handler can reach. Clones are the same.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) control: Control,
    pub(crate) keys: Arc<Keys>,
    pub(crate) rates: Arc<Rates>,
    pub(crate) proxies: Arc<TrustedProxies>,
    pub(crate) measures: Measures,
    pub(crate) links: SigningKey,
    pub(crate) peers: Peers,
    pub(crate) tokens: Tokens,
    pub(crate) checkups: Checkups,
    pub(crate) started: Instant,
}
