//! How often somebody may ask.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::time::Duration;

use axum::extract::{ConnectInfo, Request};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use sandbox_model::KeyId;

/// What somebody without a key may ask in a second.
const STRANGERS: NonZeroU32 = NonZeroU32::new(20).unwrap();

/// How many addresses are remembered before those that asked nothing of late are forgotten.
const MOST_REMEMBERED: usize = 10_000;

/// The limits.
pub(crate) struct Rates {
    keys: DefaultKeyedRateLimiter<KeyId>,
    addresses: DefaultKeyedRateLimiter<IpAddr>,
    clock: DefaultClock,
}

impl Rates {
    /// `per_second` requests for each key, and twice as many at once.
    pub(crate) fn new(per_second: u32) -> Rates {
        let quota =
            |rate: NonZeroU32| Quota::per_second(rate).allow_burst(rate.saturating_mul(TWICE));
        Rates {
            keys: RateLimiter::keyed(quota(
                NonZeroU32::new(per_second).unwrap_or(NonZeroU32::MIN),
            )),
            addresses: RateLimiter::keyed(quota(STRANGERS)),
            clock: DefaultClock::default(),
        }
    }

    /// May this key ask now? If not, when.
    pub(crate) fn check_key(&self, key: &KeyId) -> Result<(), Duration> {
        let checked = self.keys.check_key(key);
        checked.map_err(|until| until.wait_time_from(self.clock.now()))
    }

    /// May somebody without a key ask from this address?
    pub(crate) fn check_address(&self, address: IpAddr) -> Result<(), Duration> {
        if self.addresses.len() > MOST_REMEMBERED {
            self.addresses.retain_recent();
        }
        let checked = self.addresses.check_key(&address);
        checked.map_err(|until| until.wait_time_from(self.clock.now()))
    }
}

const TWICE: NonZeroU32 = NonZeroU32::new(2).unwrap();

/// Where a request comes from.
pub(crate) fn address(request: &Request) -> IpAddr {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(peer)| {
        peer.ip()
    })
}
