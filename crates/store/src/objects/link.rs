//! Links to objects that are files: paths on our own server, signed by ourselves.
//!
//! A link is `/objects/KEY?expires=SECONDS[&disposition=TEXT]&signature=HEX`. The signature covers the decoded
//! values and not the letters of the URL, because clients rewrite those before they send them: Python's `requests`
//! writes `%2D` as `-`, `aiohttp` writes `%20` in a query as `+`. Any spelling of the same values is the same link.
//! Pure functions: the clock is the caller's.

use std::borrow::Cow;
use std::fmt;
use std::time::{Duration, SystemTime};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use ring::hmac;
use thiserror::Error;

use super::ObjectKey;

/// Where our server answers links.
pub const LINK_PATH: &str = "/objects/";

/// Separates what we sign here from whatever else may be signed with the same key.
const PURPOSE: &[u8] = b"sandbox link to an object, version 2\n";

/// The unreserved characters of RFC 3986 stay as they are: most clients write them so, and need not change them.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

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
    #[error("the link is incomplete or was changed")]
    Forged,
    /// Its time is over.
    #[error("the link has expired")]
    Expired,
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
        let expires = seconds(expires);
        let mut link = format!("{LINK_PATH}{key}?expires={expires}");
        if let Some(disposition) = content_disposition {
            let disposition = utf8_percent_encode(disposition, ESCAPED);
            link.push_str(&format!("&disposition={disposition}"));
        }
        let signature = hmac::sign(&self.0, &signed(key, expires, content_disposition));
        let signature: String = signature
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("{link}&signature={signature}")
    }

    /// What the link of this `path` and `query` allows at `now`. The signature is compared in constant time, and
    /// nothing that a link says is believed before it was found good.
    pub fn verify(&self, path: &str, query: &str, now: SystemTime) -> Result<Grant, LinkError> {
        let terms = Terms::read(query).ok_or(LinkError::Forged)?;
        let key = path.strip_prefix(LINK_PATH).ok_or(LinkError::Forged)?;
        let key = ObjectKey::from_url(key).map_err(|_| LinkError::Forged)?;
        let content_disposition = terms.disposition.as_deref();
        let signed = signed(&key, terms.expires, content_disposition);
        hmac::verify(&self.0, &signed, &terms.signature).map_err(|_| LinkError::Forged)?;
        if terms.expires <= seconds(now) {
            return Err(LinkError::Expired);
        }
        Ok(Grant {
            key,
            content_disposition: terms.disposition,
        })
    }
}

/// What stands in the query of a link.
struct Terms {
    expires: u64,
    disposition: Option<String>,
    signature: Vec<u8>,
}

impl Terms {
    /// Reads a query in which each parameter stands once, and none that links do not have.
    fn read(query: &str) -> Option<Terms> {
        let (mut expires, mut disposition, mut signature) = (None, None, None);
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=')?;
            let place = match &*decoded(name)? {
                "expires" => &mut expires,
                "disposition" => &mut disposition,
                "signature" => &mut signature,
                _ => return None,
            };
            if place.replace(decoded(value)?.into_owned()).is_some() {
                return None;
            }
        }
        Some(Terms {
            expires: expires?.parse().ok()?,
            disposition,
            signature: bytes(&signature?)?,
        })
    }
}

/// A part of a query as it was meant. Some clients write a space as `+`; a plus that is meant is always `%2B`.
fn decoded(text: &str) -> Option<Cow<'_, str>> {
    if text.contains('+') {
        let spaced = text.replace('+', "%20");
        let text = percent_decode_str(&spaced).decode_utf8().ok()?;
        return Some(Cow::Owned(text.into_owned()));
    }
    percent_decode_str(text).decode_utf8().ok()
}

/// The values of a link, one after the other. A key has no line break in its written form and a number none at all, so
/// that no two links have the same text here.
fn signed(key: &ObjectKey, expires: u64, content_disposition: Option<&str>) -> Vec<u8> {
    let disposition = match content_disposition {
        Some(text) => format!("disposition={text}"),
        None => "no disposition".to_owned(),
    };
    let values = format!("{key}\n{expires}\n{disposition}");
    [PURPOSE, values.as_bytes()].concat()
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

    /// Everything that a link says, decoded.
    fn values(link: &str) -> (Vec<u8>, Vec<Vec<u8>>) {
        let (path, query) = link.split_once('?').unwrap_or((link, ""));
        let plain = |text: &str| percent_decode_str(text).collect::<Vec<u8>>();
        let pairs = query.replace('+', "%20");
        (plain(path), pairs.split(['&', '=']).map(plain).collect())
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

    /// The same values, each byte written otherwise where that is allowed.
    fn respelt(text: &str, is_query: bool) -> String {
        let bytes: Vec<u8> = percent_decode_str(text).collect();
        bytes
            .iter()
            .map(|byte| match byte {
                b'/' if !is_query => "/".to_owned(),
                b' ' if is_query => "+".to_owned(),
                byte => format!("%{byte:02x}"),
            })
            .collect()
    }

    /// The path and the query of a link whose values are as `change` writes them.
    fn rewritten(link: &str, change: impl Fn(&str, bool) -> String) -> (String, String) {
        let (path, query) = link.split_once('?').unwrap();
        let key = change(path.strip_prefix(LINK_PATH).unwrap(), false);
        let pairs: Vec<String> = query
            .split('&')
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap();
                format!("{name}={}", change(value, true))
            })
            .collect();
        (format!("{LINK_PATH}{key}"), pairs.join("&"))
    }

    #[test]
    fn accepts_a_link_that_a_client_respelt() {
        let signing = SigningKey::new(&[1; 32]);
        let name = "attachment; filename=\"a-b ~+%.txt\"; filename*=UTF-8''a-b%20~%2B%25";
        let key = key("a-b ~+%ü.txt".as_bytes()).unwrap();
        let link = signing.link(&key, at(1000), Some(name));
        assert!(!link.contains("%2D"), "{link}");
        let granted = Grant {
            key,
            content_disposition: Some(name.to_owned()),
        };
        // As it is, with everything encoded and spaces as pluses, and in another order.
        let (path, query) = rewritten(&link, |text, _| text.to_owned());
        assert_eq!(signing.verify(&path, &query, at(9)), Ok(granted.clone()));
        let mut pairs: Vec<&str> = query.split('&').collect();
        pairs.reverse();
        let reversed = signing.verify(&path, &pairs.join("&"), at(9));
        assert_eq!(reversed, Ok(granted.clone()));
        let (path, query) = rewritten(&link, respelt);
        assert!(query.contains('+') && query.contains("%2d"), "{query}");
        assert_eq!(signing.verify(&path, &query, at(9)), Ok(granted));
    }

    #[test]
    fn refuses_a_link_with_a_parameter_twice_or_unknown() {
        let signing = SigningKey::new(&[1; 32]);
        let link = signing.link(&key(b"a").unwrap(), at(1000), Some("inline"));
        let (path, query) = link.split_once('?').unwrap();
        for more in ["expires=1000", "disposition=inline", "x=1", "x", ""] {
            for query in [format!("{query}&{more}"), format!("{more}&{query}")] {
                let verified = signing.verify(path, &query, at(9));
                assert_eq!(verified, Err(LinkError::Forged), "{query}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_link_with_any_value_changed_is_refused(
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
            // What only spells the same values otherwise is the same link.
            if values(&changed) != values(&link) {
                prop_assert!(verify(&changed).is_err(), "{}", changed);
            }
            let shorter = &link[..link.len() - 1];
            prop_assert_eq!(verify(shorter), Err(LinkError::Forged));
            let longer = format!("{link}0");
            prop_assert_eq!(verify(&longer), Err(LinkError::Forged));
        }
    }
}
