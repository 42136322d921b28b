//! Who may report.
//!
//! Of a request nothing but its head is read, and of what is kept nothing but whose it is, before its token is known
//! to be that session's. Whoever brings another one hears the same whatever they ask about, so that nobody
//! learns what is there, and does not hear it often. Whoever brings the right one is not slowed down by
//! others at their address: code that runs beside an executor could silence it.

use std::str::FromStr;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use sandbox_control::{Control, ControlError};
use sandbox_model::{ExecutionId, SessionId};

use super::token::Token;
use super::unauthorized;
use crate::error::ApiError;
use crate::rate::address_in;
use crate::state::App;

/// What is reported of, by somebody who may.
#[derive(Debug)]
pub(crate) struct Speaker<T>(pub(crate) T);

/// What can be reported of.
pub(crate) trait Told: FromStr + Send + Sync {
    /// Whose token speaks for it; nobody's where there is no such thing.
    fn session(
        &self,
        control: &Control,
    ) -> impl Future<Output = Result<Option<SessionId>, ControlError>> + Send;
}

impl Told for SessionId {
    async fn session(&self, _: &Control) -> Result<Option<SessionId>, ControlError> {
        Ok(Some(self.clone()))
    }
}

impl Told for ExecutionId {
    async fn session(&self, control: &Control) -> Result<Option<SessionId>, ControlError> {
        control.session_of(self).await
    }
}

impl<T: Told> FromRequestParts<App> for Speaker<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Speaker<T>, ApiError> {
        let params = RawPathParams::from_request_parts(parts, app).await.ok();
        let id = params.and_then(|params| params.iter().next()?.1.parse::<T>().ok());
        if let (Some(id), Some(token)) = (id, Token::of(&parts.headers))
            && let Some(session) = id.session(&app.control).await?
            && app.tokens.fit(&token, &session)
        {
            return Ok(Speaker(id));
        }
        match app.rates.strangers.take(address_in(&parts.extensions)) {
            Ok(()) => Err(unauthorized()),
            Err(wait) => Err(ApiError::too_many(wait)),
        }
    }
}
