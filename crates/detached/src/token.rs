//! The session's token.
//!
//! It comes by a descriptor, is in the memory of the door alone, and is never written anywhere. Whoever brings
//! it may ask here, and with it we may speak for the session there.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use sandbox_linux::inherited;
use sandbox_model::{Class, Failure};
use sha2::{Digest, Sha256};
use thiserror::Error;

/// The longest that is taken.
const LONGEST: u64 = 512;

/// Where it comes from.
#[derive(Debug)]
pub(crate) struct Source {
    number: i32,
    descriptor: OwnedFd,
}

/// A token.
pub(crate) struct Token {
    /// As the control plane gets it.
    header: HeaderValue,
    /// What others' are compared with.
    digest: [u8; 32],
}

/// Why there is none.
#[derive(Debug, Error)]
pub(crate) enum TokenError {
    #[error("cannot read the session's token from descriptor {number}")]
    Read { number: i32, source: io::Error },
    #[error("descriptor {number} holds no token: {reason}")]
    Shape { number: i32, reason: &'static str },
}

impl Failure for TokenError {
    fn class(&self) -> Class {
        Class::General
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            TokenError::Read { number, .. } | TokenError::Shape { number, .. } => {
                format!("start it with the token there: {number}< FILE in a shell")
            }
        })
    }
}

impl Source {
    /// The descriptor of that number. To be called before anything is opened.
    pub(crate) fn take(number: i32) -> Result<Source, TokenError> {
        match inherited::take(number) {
            Ok(descriptor) => Ok(Source { number, descriptor }),
            Err(source) => Err(TokenError::Read { number, source }),
        }
    }

    /// Reads the token and closes the descriptor. To be called when there is no process left to be forked: a
    /// copy of this one's memory would have it, too.
    pub(crate) fn read(self) -> Result<Token, TokenError> {
        let Source { number, descriptor } = self;
        let mut text = String::new();
        let read = File::from(descriptor)
            .take(LONGEST + 1)
            .read_to_string(&mut text);
        read.map_err(|source| TokenError::Read { number, source })?;
        Token::new(text.trim()).map_err(|reason| TokenError::Shape { number, reason })
    }
}

impl Token {
    fn new(text: &str) -> Result<Token, &'static str> {
        if text.is_empty() {
            return Err("it is empty");
        }
        if text.len() as u64 > LONGEST {
            return Err("it is too long");
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("it is not plain text");
        }
        let header = HeaderValue::try_from(format!("Bearer {text}"));
        let mut header = header.map_err(|_| "it is not plain text")?;
        header.set_sensitive(true);
        Ok(Token {
            header,
            digest: Sha256::digest(text).into(),
        })
    }

    /// Do these headers bring it? Found out in a time that tells nothing of it.
    pub(crate) fn fits(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let Some(given) = given.and_then(|value| value.strip_prefix(b"Bearer ")) else {
            return false;
        };
        let given: [u8; 32] = Sha256::digest(given.trim_ascii()).into();
        let pairs = self.digest.iter().zip(given);
        let differing = pairs.fold(0, |sum, (one, other)| sum | (one ^ other));
        std::hint::black_box(differing) == 0
    }

    /// For a request to the control plane.
    pub(crate) fn header(&self) -> HeaderValue {
        self.header.clone()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(value: &str) -> HeaderMap {
        let value = HeaderValue::try_from(value).expect("a header");
        HeaderMap::from_iter([(AUTHORIZATION, value)])
    }

    #[test]
    fn only_the_token_itself_fits() {
        let token = Token::new("secret").expect("a token");
        assert!(token.fits(&headers("Bearer secret")));
        for other in [
            "Bearer secre",
            "Bearer secrets",
            "Bearer ",
            "secret",
            "Basic secret",
            "",
        ] {
            assert!(!token.fits(&headers(other)), "{other}");
        }
        assert!(!token.fits(&HeaderMap::new()));
    }

    #[test]
    fn it_is_not_told_by_accident() {
        let token = Token::new("secret").expect("a token");
        assert!(!format!("{token:?} {:?}", token.header()).contains("secret"));
    }

    #[test]
    fn what_is_no_token_is_refused() {
        for text in ["", "two words", "tab\there", "\u{e9}", &"x".repeat(513)] {
            assert!(Token::new(text).is_err(), "{text}");
        }
    }
}
