//! Who may report.
//!
//! Of a request nothing but its head is read, and of what is kept nothing but whose it is, before its token is known
//! to be that session's. Whoever brings another one hears the same whatever they ask about, so that nobody
//! learns what is there, and does not hear it often. Whoever brings the right one and names its session is known
//! without a look-up, and is not slowed down by others at their address: code that runs beside an executor could
//! silence it. Who does not name it is a stranger until it was looked up, and no more is than strangers may send.

use std::fmt::Display;
use std::net::IpAddr;
use std::str::FromStr;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use sandbox_control::{Control, ControlError, Kind};
use sandbox_model::report::SESSION_HEADER;
use sandbox_model::{ExecutionId, SessionId};

use super::token::Token;
use super::{refused, stranger, unauthorized};
use crate::client_address::address_in;
use crate::error::ApiError;
use crate::state::App;

/// What is reported of, by somebody who may.
#[derive(Debug)]
pub(crate) struct Speaker<T>(pub(crate) T);

/// What can be reported of.
pub(crate) trait Told: FromStr + Display + Send + Sync {
    /// What it is.
    const KIND: Kind;

    /// The session that a request on it says it comes from.
    fn named(&self, headers: &HeaderMap) -> Option<SessionId>;

    /// Whose token speaks for it; nobody's where there is no such thing.
    fn session(
        &self,
        control: &Control,
    ) -> impl Future<Output = Result<Option<SessionId>, ControlError>> + Send;
}

impl Told for SessionId {
    const KIND: Kind = Kind::Session;

    fn named(&self, _: &HeaderMap) -> Option<SessionId> {
        Some(self.clone())
    }

    async fn session(&self, _: &Control) -> Result<Option<SessionId>, ControlError> {
        Ok(Some(self.clone()))
    }
}

impl Told for ExecutionId {
    const KIND: Kind = Kind::Execution;

    fn named(&self, headers: &HeaderMap) -> Option<SessionId> {
        headers.get(SESSION_HEADER)?.to_str().ok()?.parse().ok()
    }

    async fn session(&self, control: &Control) -> Result<Option<SessionId>, ControlError> {
        control.session_of(self).await
    }
}

impl<T: Told> FromRequestParts<App> for Speaker<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Speaker<T>, ApiError> {
        let address = address_in(&parts.extensions);
        let params = RawPathParams::from_request_parts(parts, app).await.ok();
        let id = params.and_then(|params| params.iter().next()?.1.parse::<T>().ok());
        let (Some(id), Some(token)) = (id, Token::of(&parts.headers)) else {
            return Err(stranger(app, address, unauthorized()));
        };
        let Some(session) = id.named(&parts.headers) else {
            look_up(app, address, &id, &token).await?;
            return Ok(Speaker(id));
        };
        if !app.tokens.fit(&token, &session) {
            return Err(stranger(app, address, unauthorized()));
        }
        // Another session's is to this one as one that is not there.
        match id.session(&app.control).await? == Some(session) {
            true => Ok(Speaker(id)),
            false => Err(refused(ControlError::not_found(T::KIND, id))),
        }
    }
}

/// Looks up whose it is. Until the token is known to be theirs, its sender is a stranger.
async fn look_up<T: Told>(
    app: &App,
    address: IpAddr,
    id: &T,
    token: &Token,
) -> Result<(), ApiError> {
    let strangers = &app.rates.strangers;
    strangers.take(address).map_err(ApiError::too_many)?;
    let found = id.session(&app.control).await;
    let fits = found.map(|found| found.is_some_and(|session| app.tokens.fit(token, &session)));
    if !matches!(fits, Ok(false)) {
        strangers.give_back(address);
    }
    match fits? {
        true => Ok(()),
        false => Err(unauthorized()),
    }
}
