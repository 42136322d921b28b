//! How often somebody may ask.
//!
//! Who has a key is counted by it, everybody else by their address. What a load balancer asks is counted apart, so
//! that strangers who come through the same proxy do not use it up.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{ConnectInfo, Request};
use axum::http::Extensions;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use sandbox_model::KeyId;

/// What somebody without a key may ask in a second.
const STRANGERS: f64 = 20.0;

/// How often an address may ask in a second how the server is.
const PROBES: f64 = 100.0;

/// How many addresses are remembered before those that asked nothing of late are forgotten.
const MOST_REMEMBERED: usize = 10_000;

/// The limits.
pub(crate) struct Rates {
    keys: DefaultKeyedRateLimiter<KeyId>,
    /// What those without a key may ask.
    pub(crate) strangers: Allowance,
    /// What may be asked about the server's health.
    pub(crate) probes: Allowance,
    clock: DefaultClock,
}

impl Rates {
    /// `per_second` requests for each key, and twice as many at once.
    pub(crate) fn new(per_second: u32) -> Rates {
        let rate = NonZeroU32::new(per_second).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(rate).allow_burst(rate.saturating_mul(TWICE));
        Rates {
            keys: RateLimiter::keyed(quota),
            strangers: Allowance::new(STRANGERS),
            probes: Allowance::new(PROBES),
            clock: DefaultClock::default(),
        }
    }

    /// May this key ask now? If not, when.
    pub(crate) fn check_key(&self, key: &KeyId) -> Result<(), Duration> {
        let checked = self.keys.check_key(key);
        checked.map_err(|until| until.wait_time_from(self.clock.now()))
    }
}

const TWICE: NonZeroU32 = NonZeroU32::new(2).unwrap();

/// What each address may ask: so much in a second, and twice as much at once. Unlike what is counted by key, it can
/// be given back.
#[derive(Debug)]
pub(crate) struct Allowance {
    per_second: f64,
    left: Mutex<HashMap<IpAddr, Left>>,
}

/// What an address had left, and when.
#[derive(Debug, Clone, Copy)]
struct Left {
    requests: f64,
    at: Instant,
}

impl Allowance {
    fn new(per_second: f64) -> Allowance {
        Allowance {
            per_second,
            left: Mutex::default(),
        }
    }

    /// Takes a request from an address's allowance; if there is none, tells when there will be.
    pub(crate) fn take(&self, address: IpAddr) -> Result<(), Duration> {
        self.take_at(address, Instant::now())
    }

    fn take_at(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        let mut left = self.lock();
        if left.len() > MOST_REMEMBERED {
            left.retain(|_, left| self.grown(*left, now) < self.most());
        }
        let full = Left {
            requests: self.most(),
            at: now,
        };
        let known = left.entry(address).or_insert(full);
        let requests = self.grown(*known, now);
        if requests < 1.0 {
            let wait = (1.0 - requests) / self.per_second;
            return Err(Duration::from_secs_f64(wait));
        }
        *known = Left {
            requests: requests - 1.0,
            at: now,
        };
        Ok(())
    }

    /// Gives it back: the request was no stranger's.
    pub(crate) fn give_back(&self, address: IpAddr) {
        if let Some(left) = self.lock().get_mut(&address) {
            left.requests += 1.0;
        }
    }

    fn grown(&self, left: Left, now: Instant) -> f64 {
        let since = now.saturating_duration_since(left.at).as_secs_f64();
        (left.requests + since * self.per_second).min(self.most())
    }

    fn most(&self) -> f64 {
        2.0 * self.per_second
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, Left>> {
        // Nothing that is done under it can panic half-way.
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a request comes from.
pub(crate) fn address(request: &Request) -> IpAddr {
    address_in(request.extensions())
}

/// The same, of a request that is in parts.
pub(crate) fn address_in(extensions: &Extensions) -> IpAddr {
    let peer = extensions.get::<ConnectInfo<SocketAddr>>();
    peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(peer)| {
        peer.ip()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

    /// How many requests in a row are allowed at this time.
    fn allowed(allowance: &Allowance, address: IpAddr, now: Instant) -> usize {
        let asked = std::iter::repeat_with(|| allowance.take_at(address, now));
        asked.take_while(Result::is_ok).count()
    }

    #[test]
    fn an_address_has_twice_its_rate_at_once_and_its_rate_from_then_on() {
        let allowance = Allowance::new(20.0);
        let begin = Instant::now();
        assert_eq!(allowed(&allowance, HERE, begin), 40);
        let wait = allowance.take_at(HERE, begin).unwrap_err();
        assert_eq!(wait, Duration::from_millis(50));
        assert_eq!(
            allowed(&allowance, HERE, begin + Duration::from_secs(1)),
            20
        );
        assert_eq!(
            allowed(&allowance, HERE, begin + Duration::from_secs(60)),
            40
        );
        assert_eq!(allowed(&allowance, THERE, begin), 40);
    }

    #[test]
    fn what_is_given_back_can_be_taken_again_and_no_more() {
        let allowance = Allowance::new(20.0);
        let begin = Instant::now();
        for _ in 0..1000 {
            allowance.take_at(HERE, begin).unwrap();
            allowance.give_back(HERE);
        }
        allowance.give_back(HERE);
        allowance.give_back(THERE);
        assert_eq!(allowed(&allowance, HERE, begin), 40);
        assert_eq!(allowed(&allowance, THERE, begin), 40);
    }

    #[test]
    fn addresses_that_asked_nothing_of_late_are_forgotten() {
        let allowance = Allowance::new(20.0);
        let begin = Instant::now();
        for number in 0..=u32::try_from(MOST_REMEMBERED).unwrap() {
            let address = IpAddr::V4(Ipv4Addr::from(number));
            allowance.take_at(address, begin).unwrap();
        }
        allowance
            .take_at(HERE, begin + Duration::from_secs(2))
            .unwrap();
        assert_eq!(allowance.lock().len(), 1);
    }
}
