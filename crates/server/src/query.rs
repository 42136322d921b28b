//! What a request's path and query say.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, RawPathParams, Request, State};
use axum::http::Method;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;

use crate::authentication::Holder;
use crate::error::ApiError;

/// The query, read.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Query<T>, ApiError> {
        let query = parts.uri.query().unwrap_or_default();
        let reader = serde_urlencoded::Deserializer::new(form(query));
        let value = serde_path_to_error::deserialize(reader).map_err(|error| {
            let detail = format!("{}: {}", error.path(), error.inner());
            ApiError::invalid(
                detail,
                "correct the query; /api/v1/openapi.json describes it",
            )
        })?;
        Ok(Query(value))
    }
}

/// Which parameters the query of each route may have, by its method and path.
#[derive(Debug, Clone)]
pub(crate) struct Parameters(pub(crate) Arc<HashMap<(Method, String), Vec<String>>>);

/// Refuses what a route has no parameter for, so that a typo does not silently do nothing. What is not described
/// takes anything.
pub(crate) async fn know(
    State(Parameters(known)): State<Parameters>,
    request: Request,
    next: Next,
) -> Response {
    let method = match *request.method() {
        Method::HEAD => Method::GET,
        ref method => method.clone(),
    };
    let path = request.extensions().get::<MatchedPath>();
    let route = path.map(|path| (method, path.as_str().to_owned()));
    // A stranger is told nothing, not even this.
    let is_known = request.extensions().get::<Holder>().is_some();
    let names = route
        .filter(|_| is_known)
        .and_then(|route| known.get(&route));
    let query = request.uri().query().unwrap_or_default();
    let stray = names.and_then(|names| {
        let mut given = form(query).map(|(name, _)| name);
        let stray = given.find(|given| !names.iter().any(|name| name == given))?;
        let detail = format!("{}: there is no such parameter", shown(&stray));
        Some(ApiError::invalid(detail, advice(names)))
    });
    match stray {
        Some(error) => error.into_response(),
        None => next.run(request).await,
    }
}

fn advice(names: &[String]) -> String {
    match names {
        [] => "leave it out: this takes no parameters".to_owned(),
        [one] => format!("use {one}"),
        [most @ .., last] => format!("use {} or {last}", most.join(", ")),
    }
}

/// The path's one parameter, as an identifier.
#[derive(Debug)]
pub(crate) struct Id<T>(pub(crate) T);

/// An identifier that is not well formed names nothing that is there.
pub(crate) trait Named: FromStr {
    /// What it names.
    const KIND: sandbox_control::Kind;
}

impl<S: Send + Sync, T: Named> FromRequestParts<S> for Id<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Id<T>, ApiError> {
        let unreadable = || {
            ApiError::invalid(
                "the path is not UTF-8",
                "use an identifier that was given out",
            )
        };
        let params = RawPathParams::from_request_parts(parts, state).await;
        let params = params.map_err(|_| unreadable())?;
        let (_, text) = params.iter().next().ok_or_else(unreadable)?;
        match text.parse() {
            Ok(id) => Ok(Id(id)),
            Err(_) => Err(sandbox_control::ControlError::not_found(T::KIND, shown(text)).into()),
        }
    }
}

/// What somebody sent, fit to be sent back.
fn shown(text: &str) -> String {
    const MOST: usize = 100;
    let short: String = text.chars().take(MOST).collect();
    short.escape_debug().to_string()
}

fn form(query: &str) -> form_urlencoded::Parse<'_> {
    form_urlencoded::parse(query.as_bytes())
}

macro_rules! named {
    ($($id:ty => $kind:ident),* $(,)?) => {$(
        impl Named for $id {
            const KIND: sandbox_control::Kind = sandbox_control::Kind::$kind;
        }
    )*};
}

named!(
    sandbox_model::SessionId => Session,
    sandbox_model::ExecutionId => Execution,
    sandbox_model::TemplateId => Template,
    sandbox_model::KeyId => Key,
    sandbox_model::NodeId => Node,
);
