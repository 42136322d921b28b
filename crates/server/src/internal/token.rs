//! The tokens of sessions.

use axum::http::{HeaderMap, header};
use ring::hmac;
use sandbox_model::SessionId;

use crate::settings::Secret;

/// Separates what we derive here from whatever else may be derived from the same secret.
const PURPOSE: &str = "sandbox session token 1\n";

/// What the tokens are derived from.
#[derive(Debug, Clone)]
pub(crate) struct Tokens(hmac::Key);

impl Tokens {
    pub(crate) fn new(secret: &Secret) -> Tokens {
        Tokens(hmac::Key::new(hmac::HMAC_SHA256, secret.0.as_bytes()))
    }

    /// The token of a session.
    #[cfg(test)]
    pub(crate) fn of(&self, session: &SessionId) -> String {
        let tag = hmac::sign(&self.0, format!("{PURPOSE}{session}").as_bytes());
        crate::body::hexadecimal(tag.as_ref())
    }

    /// Is this the token of that session? Compared in a time that tells nothing.
    pub(crate) fn fit(&self, token: &Token, session: &SessionId) -> bool {
        let of = format!("{PURPOSE}{session}");
        hmac::verify(&self.0, of.as_bytes(), &token.0).is_ok()
    }
}

/// What somebody brings that looks like a token.
pub(crate) struct Token(Vec<u8>);

impl Token {
    /// The one in these headers.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Token> {
        let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        let given = value.strip_prefix("Bearer ")?;
        bytes(given.trim()).map(Token)
    }
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    const LENGTH: usize = 64;
    if text.len() != LENGTH || !text.is_ascii() {
        return None;
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    text.as_bytes().chunks(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(token: &str) -> HeaderMap {
        let value = format!("Bearer {token}").parse().expect("a valid header");
        HeaderMap::from_iter([(header::AUTHORIZATION, value)])
    }

    #[test]
    fn a_token_speaks_for_its_own_session_alone() {
        let tokens = Tokens::new(&Secret("secret".to_owned()));
        let one: SessionId = "sess_aaaaaaaaaaaaaaaa".parse().expect("a valid identifier");
        let other: SessionId = "sess_bbbbbbbbbbbbbbbb".parse().expect("a valid identifier");
        let token = tokens.of(&one);
        let fits = |tokens: &Tokens, headers: &HeaderMap, session: &SessionId| {
            Token::of(headers).is_some_and(|token| tokens.fit(&token, session))
        };
        assert!(fits(&tokens, &headers(&token), &one));
        assert!(!fits(&tokens, &headers(&token), &other));
        assert!(!fits(&tokens, &headers(&token[1..]), &one));
        assert!(!fits(&tokens, &headers(""), &one));
        assert!(!fits(&tokens, &HeaderMap::new(), &one));
        let others = Tokens::new(&Secret("another".to_owned()));
        assert!(!fits(&others, &headers(&token), &one));
    }
}
