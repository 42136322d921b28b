//! Who sends a request, and whether they may.
//!
//! Each handler takes one of [`Reader`], [`Operator`] and [`Admin`]: what it takes is what its caller
//! needs. A key that was found good is believed for a few seconds, so that most requests cost no
//! look-up; one that is revoked here is forgotten at once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sandbox_control::{Caller, Control, hash};
use sandbox_model::{KeyId, RequestId, Scope};

use crate::error::ApiError;
use crate::rate::address;
use crate::settings::Secret;
use crate::state::App;

/// How long a key that was found good is believed.
const BELIEVED: Duration = Duration::from_secs(5);

/// The longest key that is looked at.
const LONGEST: usize = 256;

/// The keys that open this server.
#[derive(Debug)]
pub(crate) struct Keys {
    /// The hash of the admin's key, which is in no database.
    admin: String,
    known: Mutex<HashMap<String, (Holder, Instant)>>,
}

/// Who holds a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) key_id: KeyId,
    pub(crate) scope: Scope,
}

impl Keys {
    pub(crate) fn new(admin: &Secret) -> Keys {
        Keys {
            admin: hash(&admin.0),
            known: Mutex::default(),
        }
    }

    /// Forgets what it knows, so that a key that was revoked opens nothing.
    pub(crate) fn forget(&self) {
        self.lock().clear();
    }

    async fn holder(&self, control: &Control, secret: &str) -> Result<Option<Holder>, ApiError> {
        let hash = hash(secret);
        // Both are hashes: how far they agree tells nothing of the key, and is compared without telling.
        if equal(hash.as_bytes(), self.admin.as_bytes()) {
            let scope = Scope::Admin;
            return Ok(admin_id(&hash).map(|key_id| Holder { key_id, scope }));
        }
        if let Some((holder, since)) = self.lock().get(&hash)
            && since.elapsed() < BELIEVED
        {
            return Ok(Some(holder.clone()));
        }
        let Some(key) = control.key(secret).await? else {
            return Ok(None);
        };
        let holder = Holder {
            key_id: key.id,
            scope: key.scope,
        };
        let mut known = self.lock();
        known.retain(|_, (_, since)| since.elapsed() < BELIEVED);
        known.insert(hash, (holder.clone(), Instant::now()));
        Ok(Some(holder))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Holder, Instant)>> {
        // Nothing that is done under it can panic half-way.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Compares in a time that does not depend on where they differ.
fn equal(one: &[u8], other: &[u8]) -> bool {
    let differ = |sum, (one, other): (&u8, &u8)| sum | (one ^ other);
    one.len() == other.len() && std::hint::black_box(one.iter().zip(other).fold(0, differ)) == 0
}

/// What audit records call the admin's key: something that changes with it.
fn admin_id(hash: &str) -> Option<KeyId> {
    format!("key_{}", hash.get(..16)?).parse().ok()
}

/// Recognises the sender, and counts the request against what they may ask in a second.
pub(crate) async fn recognise(
    State(app): State<App>,
    mut request: Request,
    next: Next,
) -> Response {
    let presented = bearer(&request);
    let holder = match presented {
        Some(secret) => match app.keys.holder(&app.control, &secret).await {
            Ok(holder) => holder,
            Err(error) => return error.into_response(),
        },
        None => None,
    };
    let allowed = match &holder {
        Some(holder) => app.rates.check_key(&holder.key_id),
        None => app.rates.check_address(address(&request)),
    };
    if let Err(wait) = allowed {
        return ApiError::too_many(wait).into_response();
    }
    if let Some(holder) = holder {
        request.extensions_mut().insert(holder);
    }
    next.run(request).await
}

fn bearer(request: &Request) -> Option<String> {
    let value = request.headers().get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, secret) = value.split_once(' ')?;
    let secret = secret.trim();
    let fits = scheme.eq_ignore_ascii_case("bearer") && (1..=LONGEST).contains(&secret.len());
    fits.then(|| secret.to_owned())
}

fn caller(parts: &Parts, needed: Scope) -> Result<Caller, ApiError> {
    let Some(holder) = parts.extensions.get::<Holder>() else {
        let detail = match parts.headers.contains_key(AUTHORIZATION) {
            true => "the key is not known, or was revoked",
            false => "there is no Authorization header",
        };
        return Err(ApiError::unauthorized(detail));
    };
    if !holder.scope.allows(needed) {
        let detail = format!("its scope is {}, and this needs {needed}", holder.scope);
        return Err(ApiError::forbidden(detail));
    }
    Ok(Caller {
        key_id: Some(holder.key_id.clone()),
        request_id: parts.extensions.get::<RequestId>().cloned(),
        repeatable: None,
    })
}

macro_rules! scope {
    ($(#[$doc:meta])* $name:ident, $scope:expr) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name(#[allow(dead_code, reason = "some only look")] pub(crate) Caller);

        impl<S: Sync> FromRequestParts<S> for $name {
            type Rejection = ApiError;

            async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<$name, ApiError> {
                caller(parts, $scope).map($name)
            }
        }
    };
}

scope!(
    /// Somebody who may look.
    Reader,
    Scope::Read
);
scope!(
    /// Somebody who may make, use and end sessions.
    Operator,
    Scope::Operate
);
scope!(
    /// Somebody who may do everything.
    Admin,
    Scope::Admin
);
