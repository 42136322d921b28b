//! Links to objects that are files: paths on our own server, signed by ourselves.
//!
//! A link is `/objects/KEY?expires=SECONDS[&disposition=TEXT]&signature=HEX`. What is signed is
//! everything before the signature, letter for letter as it is sent, so that no two links say the
//! same. Pure functions: the clock is the caller's.

use std::fmt;
use std::time::{Duration, SystemTime};

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use ring::hmac;
use thiserror::Error;

use super::{KeyError, ObjectKey};

/// Where our server answers links.
pub const LINK_PATH: &str = "/objects/";

/// Separates what we sign here from whatever else may be signed with the same key.
const PURPOSE: &[u8] = b"sandbox link to an object, version 1\n";

/// The secret that links are signed with.
#[derive(Clone)]
pub struct SigningKey(hmac::Key);

/// What a link allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// To read this object.
    pub key: ObjectKey,
    /// With this `Content-Disposition`.
    pub content_disposition: Option<String>,
}

/// Why a link allows nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LinkError {
    /// It is not one of ours, or was changed.
    #[error("the link's signature is not ours")]
    Forged,
    /// Its time is over.
    #[error("the link has expired")]
    Expired,
    /// We signed it, but what it names is no object's key.
    #[error("the link names no object")]
    Key(#[from] KeyError),
}

impl SigningKey {
    /// The key made of these random bytes.
    pub fn new(secret: &[u8; 32]) -> SigningKey {
        SigningKey(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// A link to `key` that is good until `expires`, in whole seconds.
    pub fn link(
        &self,
        key: &ObjectKey,
        expires: SystemTime,
        content_disposition: Option<&str>,
    ) -> String {
        let mut link = format!("{LINK_PATH}{key}?expires={}", seconds(expires));
        if let Some(disposition) = content_disposition {
            let disposition = utf8_percent_encode(disposition, NON_ALPHANUMERIC);
            link.push_str(&format!("&disposition={disposition}"));
        }
        let signature = hmac::sign(&self.0, &signed(&link));
        let signature: String = signature
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("{link}&signature={signature}")
    }

    /// What the link of this `path` and `query` allows at `now`. The signature is compared in
    /// constant time, and nothing is read from a link before it was found good.
    pub fn verify(&self, path: &str, query: &str, now: SystemTime) -> Result<Grant, LinkError> {
        let (terms, signature) = query.rsplit_once("&signature=").ok_or(LinkError::Forged)?;
        let signature = bytes(signature).ok_or(LinkError::Forged)?;
        let link = format!("{path}?{terms}");
        hmac::verify(&self.0, &signed(&link), &signature).map_err(|_| LinkError::Forged)?;

        let (expires, disposition) = match terms.split_once("&disposition=") {
            Some((expires, disposition)) => (expires, Some(disposition)),
            None => (terms, None),
        };
        let expires = expires
            .strip_prefix("expires=")
            .and_then(|text| text.parse::<u64>().ok());
        if expires.ok_or(LinkError::Forged)? <= seconds(now) {
            return Err(LinkError::Expired);
        }
        let key = path
            .strip_prefix(LINK_PATH)
            .ok_or(LinkError::Forged)?
            .parse()?;
        let text = |escaped| percent_decode_str(escaped).decode_utf8_lossy().into_owned();
        Ok(Grant {
            key,
            content_disposition: disposition.map(text),
        })
    }
}

fn signed(link: &str) -> Vec<u8> {
    [PURPOSE, link.as_bytes()].concat()
}

fn seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or(Duration::ZERO).as_secs()
}

/// Small hexadecimal digits only: a signature has one written form.
fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    let pairs = pairs
        .iter()
        .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    rest.is_empty().then(|| pairs.collect())?
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sandbox_model::SessionId;

    const NOON: SystemTime = SystemTime::UNIX_EPOCH;

    fn key(path: &[u8]) -> Option<ObjectKey> {
        ObjectKey::new(SessionId::random([7; 16]), path).ok()
    }

    fn at(seconds: u64) -> SystemTime {
        NOON + Duration::from_secs(seconds)
    }

    #[test]
    fn a_link_is_good_until_it_expires() {
        let signing = SigningKey::new(&[1; 32]);
        let link = signing.link(&key(b"a b").unwrap(), at(1000), None);
        let (path, query) = link.split_once('?').unwrap();
        assert!(path.ends_with("/a%20b"), "{path}");
        let granted = Grant {
            key: key(b"a b").unwrap(),
            content_disposition: None,
        };
        assert_eq!(signing.verify(path, query, at(999)), Ok(granted));
        assert_eq!(
            signing.verify(path, query, at(1000)),
            Err(LinkError::Expired)
        );
        let other = SigningKey::new(&[2; 32]);
        assert_eq!(other.verify(path, query, at(999)), Err(LinkError::Forged));
    }

    #[test]
    fn what_is_no_link_is_refused() {
        let signing = SigningKey::new(&[1; 32]);
        for query in [
            "",
            "signature=",
            "expires=9&signature=",
            "expires=9&signature=é",
            "&signature=0",
        ] {
            assert_eq!(
                signing.verify("/objects/x", query, at(0)),
                Err(LinkError::Forged),
                "{query}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_link_with_any_byte_changed_is_refused(
            path in prop::collection::vec(1u8.., 1..40),
            expires in 1000..u64::from(u32::MAX),
            disposition in prop::option::of(".{0,40}"),
            place: prop::sample::Index,
            letter in 0x21u8..0x7f,
        ) {
            let Some(key) = key(&path) else { return Ok(()) };
            let signing = SigningKey::new(&[1; 32]);
            let link = signing.link(&key, at(expires), disposition.as_deref());
            let verify = |link: &str| {
                let (path, query) = link.split_once('?').unwrap_or((link, ""));
                signing.verify(path, query, at(10))
            };
            let granted = Grant { key, content_disposition: disposition };
            prop_assert_eq!(verify(&link), Ok(granted));

            let mut changed = link.clone().into_bytes();
            let place = place.index(changed.len());
            changed[place] = letter;
            let changed = String::from_utf8(changed).unwrap();
            if changed != link {
                prop_assert_eq!(verify(&changed), Err(LinkError::Forged), "{}", changed);
            }
            let shorter = &link[..link.len() - 1];
            prop_assert_eq!(verify(shorter), Err(LinkError::Forged));
            let longer = format!("{link}0");
            prop_assert_eq!(verify(&longer), Err(LinkError::Forged));
        }
    }
}
