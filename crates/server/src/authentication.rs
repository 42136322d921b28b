//! Who sends a request, and whether they may.
//!
//! Each handler takes one of [`Reader`], [`Operator`] and [`Admin`]: what it takes is what its caller
//! needs. A key that was found good is believed for a few seconds, so that most requests cost no
//! look-up; one that is revoked here is forgotten at once. Whoever brings a key that is not known is a stranger, and the
//! database is asked for no more of those than strangers may send. A key that was valid not long ago is not among them:
//! it is looked up, but wrong keys from the same address do not keep it from that.

mod recent;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sandbox_control::{Caller, Control, hash};
use sandbox_model::{KeyId, RequestId, Scope};
use tokio::sync::Semaphore;

use crate::client_address::address;
use crate::error::ApiError;
use crate::settings::Secret;
use crate::state::App;
use recent::RecentlyValid;

/// How long a key that was found good is believed.
const BELIEVED: Duration = Duration::from_secs(5);

/// How many keys are looked up at a time. Far fewer than a stranger may ask, so that good keys of one address
/// do not use that up while they are looked up.
const AT_ONCE: usize = 8;

/// How long a key waits for others to be looked up.
const PATIENCE: Duration = Duration::from_secs(3);

/// The longest key that is looked at.
const LONGEST: usize = 256;

/// The keys that open this server.
#[derive(Debug)]
pub(crate) struct Keys {
    /// The hash of the admin's key, which is in no database.
    admin: String,
    believed: Mutex<Believed>,
    turns: Semaphore,
    recent: RecentlyValid,
    /// Those of keys that were valid not long ago, so that they wait for no others.
    recent_turns: Semaphore,
}

/// Keys that were found good a moment ago.
#[derive(Debug, Default)]
struct Believed {
    /// By their digests.
    holders: HashMap<String, (Holder, Instant)>,
    /// How often all of them were forgotten. What was read before that may have been revoked since.
    generation: u64,
}

/// A key that somebody brings.
struct Presented {
    secret: String,
    digest: String,
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
            believed: Mutex::default(),
            turns: Semaphore::new(AT_ONCE),
            recent: RecentlyValid::default(),
            recent_turns: Semaphore::new(AT_ONCE),
        }
    }

    /// Forgets whose keys are valid, so that one that was revoked opens nothing. That others were valid not long ago
    /// stays remembered: they are looked up again, and not counted as a stranger's.
    pub(crate) fn forget(&self) {
        let mut believed = self.lock();
        believed.holders.clear();
        believed.generation += 1;
    }

    /// The holder of a key that need not be looked up: the admin's, and one that is believed.
    fn known(&self, digest: &str) -> Option<Holder> {
        // Both are hashes: how far they agree tells nothing of the key, and is compared without telling.
        if equal(digest.as_bytes(), self.admin.as_bytes()) {
            let scope = Scope::Admin;
            return admin_id(digest).map(|key_id| Holder { key_id, scope });
        }
        let believed = self.lock();
        let (holder, since) = believed.holders.get(digest)?;
        (since.elapsed() < BELIEVED).then(|| holder.clone())
    }

    /// The holder of any key.
    async fn look_up(
        &self,
        control: &Control,
        presented: &Presented,
    ) -> Result<Option<Holder>, ApiError> {
        let Presented { secret, digest } = presented;
        let generation = self.lock().generation;
        let Some(key) = control.key(secret).await? else {
            self.recent.forget(digest);
            return Ok(None);
        };
        self.recent.note(digest);
        let holder = Holder {
            key_id: key.id,
            scope: key.scope,
        };
        let mut believed = self.lock();
        if believed.generation == generation {
            let holders = &mut believed.holders;
            holders.retain(|_, (_, since)| since.elapsed() < BELIEVED);
            holders.insert(digest.clone(), (holder.clone(), Instant::now()));
        }
        Ok(Some(holder))
    }

    fn lock(&self) -> MutexGuard<'_, Believed> {
        // Nothing that is done under it can panic half-way.
        self.believed.lock().unwrap_or_else(PoisonError::into_inner)
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

/// What a request knocks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    /// How the server is, which it tells everybody, also when its database does not answer.
    Health,
    /// What else needs no key.
    Open,
    /// The API.
    Api,
}

impl Door {
    fn of(path: &str) -> Door {
        match path {
            "/health" | "/ready" => Door::Health,
            path if path.starts_with("/api/") => Door::Api,
            _ => Door::Open,
        }
    }
}

/// Recognises the sender, and counts the request against what they may ask in a second.
pub(crate) async fn recognise(
    State(app): State<App>,
    mut request: Request,
    next: Next,
) -> Response {
    let door = Door::of(request.uri().path());
    let (address, presented) = (address(&request), bearer(&request));
    match holder(&app, door, address, presented.as_ref()).await {
        Ok(Some(holder)) => drop(request.extensions_mut().insert(holder)),
        Ok(None) => {}
        Err(error) => return error.into_response(),
    }
    next.run(request).await
}

/// Who knocks; none when it is a stranger. Refused when they do so too often.
async fn holder(
    app: &App,
    door: Door,
    address: IpAddr,
    presented: Option<&Presented>,
) -> Result<Option<Holder>, ApiError> {
    if door == Door::Health {
        let allowed = app.rates.probes.take(address);
        return allowed.map(|()| None).map_err(ApiError::too_many);
    }
    let known = presented.and_then(|key| app.keys.known(&key.digest));
    let holder = match (known, presented) {
        (Some(holder), _) => holder,
        (None, Some(key)) if door == Door::Api || app.keys.recent.has(&key.digest) => {
            match unknown(app, address, key).await {
                Ok(Some(holder)) => holder,
                Ok(None) => return Ok(None),
                // What needs no key is also there when the database is not.
                Err(error) if door == Door::Api => return Err(error),
                Err(_) => {
                    let allowed = app.rates.strangers.take(address);
                    return allowed.map(|()| None).map_err(ApiError::too_many);
                }
            }
        }
        _ => {
            let allowed = app.rates.strangers.take(address);
            return allowed.map(|()| None).map_err(ApiError::too_many);
        }
    };
    let allowed = app.rates.check_key(&holder.key_id);
    allowed.map(|()| Some(holder)).map_err(ApiError::too_many)
}

/// Looks up a key that nobody has vouched for of late. Unless it was valid not long ago, its sender is a stranger until it
/// is found good.
async fn unknown(app: &App, address: IpAddr, key: &Presented) -> Result<Option<Holder>, ApiError> {
    let keys = &app.keys;
    let turns = match keys.recent.has(&key.digest) {
        true => &keys.recent_turns,
        false => &keys.turns,
    };
    let turn = tokio::time::timeout(PATIENCE, turns.acquire()).await;
    let _turn = turn.map_err(|_| ApiError::unavailable("the database"))?;
    // Who had the turn before may have brought the same.
    if let Some(holder) = keys.known(&key.digest) {
        return Ok(Some(holder));
    }
    // And may have found it revoked: the next to bring it is a stranger.
    if keys.recent.has(&key.digest) {
        return keys.look_up(&app.control, key).await;
    }
    let strangers = &app.rates.strangers;
    strangers.take(address).map_err(ApiError::too_many)?;
    let found = keys.look_up(&app.control, key).await;
    if !matches!(found, Ok(None)) {
        strangers.give_back(address);
    }
    found
}

fn bearer(request: &Request) -> Option<Presented> {
    let value = request.headers().get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, secret) = value.split_once(' ')?;
    let secret = secret.trim();
    let fits = scheme.eq_ignore_ascii_case("bearer") && (1..=LONGEST).contains(&secret.len());
    fits.then(|| Presented {
        secret: secret.to_owned(),
        digest: hash(secret),
    })
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
