//! How often somebody may ask.
//!
//! Who has a key is counted by it, everybody else by their address; of one of IPv6 by its first half, because the
//! second is anybody's to choose. What a load balancer asks is counted apart, so that strangers who come through the
//! same proxy do not use it up.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

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
    remembered: Mutex<Remembered>,
}

/// Who asked of late.
#[derive(Debug)]
struct Remembered {
    left: HashMap<IpAddr, Left>,
    /// With more than so many, those that asked nothing of late are forgotten. Grows with how many did, so that not
    /// each of them looks at all the others.
    most: usize,
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
            remembered: Mutex::new(Remembered {
                left: HashMap::new(),
                most: MOST_REMEMBERED,
            }),
        }
    }

    /// Takes a request from an address's allowance; if there is none, tells when there will be.
    pub(crate) fn take(&self, address: IpAddr) -> Result<(), Duration> {
        self.take_at(address, Instant::now())
    }

    fn take_at(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        let mut remembered = self.lock();
        let Remembered { left, most } = &mut *remembered;
        if left.len() > *most {
            left.retain(|_, left| self.grown(*left, now) < self.most());
            *most = MOST_REMEMBERED.max(2 * left.len());
        }
        let full = Left {
            requests: self.most(),
            at: now,
        };
        let known = left.entry(counted(address)).or_insert(full);
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
        if let Some(left) = self.lock().left.get_mut(&counted(address)) {
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

    fn lock(&self) -> MutexGuard<'_, Remembered> {
        // Nothing that is done under it can panic half-way.
        let lock = self.remembered.lock();
        lock.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Under which address somebody is counted. Who has one of IPv6 has at least the 2^64 of its network.
fn counted(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from(network))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

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
        assert_eq!(allowance.lock().left.len(), 1);
    }

    #[test]
    fn one_network_of_ipv6_is_one_address_and_ipv4_is_the_same_in_either_form() {
        let allowance = Allowance::new(20.0);
        let begin = Instant::now();
        let mut taken = 0;
        for number in 0..1000_u128 {
            let address = (0x2001_0db8_0000_0001_u128 << 64) + (number << 40);
            let address = IpAddr::V6(Ipv6Addr::from(address));
            taken += usize::from(allowance.take_at(address, begin).is_ok());
        }
        assert_eq!(taken, 40);
        assert_eq!(allowance.lock().left.len(), 1);
        let own: IpAddr = "2001:db8:0:1::5".parse().unwrap();
        allowance.give_back(own);
        assert_eq!(allowed(&allowance, own, begin), 1);
        let next = "2001:db8:0:2::5".parse().unwrap();
        assert_eq!(allowed(&allowance, next, begin), 40);
        let mapped = "::ffff:127.0.0.1".parse().unwrap();
        assert_eq!(allowed(&allowance, mapped, begin), 40);
        assert_eq!(allowed(&allowance, HERE, begin), 0);
        assert_eq!(allowed(&allowance, THERE, begin), 40);
    }

    #[test]
    fn while_many_ask_not_each_of_them_looks_at_all_the_others() {
        let allowance = Allowance::new(20.0);
        let begin = Instant::now();
        let ask = |number: usize| {
            let address = IpAddr::V4(Ipv4Addr::from(u32::try_from(number).unwrap()));
            allowance.take_at(address, begin).unwrap();
        };
        // The last of these found all the others to have asked of late.
        let many = MOST_REMEMBERED + 2;
        (0..many).for_each(ask);
        let next = allowance.lock().most;
        assert!(next >= 2 * (many - 1), "the next looks again at {next}");
        // When fewer ask, as few are remembered as before.
        (many..=next).for_each(ask);
        let later = begin + Duration::from_secs(2);
        allowance.take_at(HERE, later).unwrap();
        let remembered = allowance.lock();
        assert_eq!(
            (remembered.left.len(), remembered.most),
            (1, MOST_REMEMBERED)
        );
    }
}
