//! Who may speak to the control plane.
//!
//! A key's secret is shown when it is made and never again: what is kept is its SHA-256. That is enough
//! for a secret of 256 random bits, which no dictionary has.

use jiff::Timestamp;
use ring::digest::{SHA256, digest};
use sandbox_model::{ApiKey, KeyId, Scope};
use sandbox_store::records::{Page, PageRequest};
use serde_json::json;

use crate::caller::Caller;
use crate::clock::as_kept;
use crate::control::Control;
use crate::error::ControlError;
use crate::random;

/// What every secret starts with, so that one is recognised where it should not be.
const PREFIX: &str = "sbx_";

/// A key that was just made.
#[derive(Debug, Clone)]
pub struct Made {
    /// As it is shown.
    pub key: ApiKey,
    /// Its secret, which is not kept.
    pub secret: String,
}

/// A new secret.
pub fn new_secret() -> String {
    format!("{PREFIX}{}", hexadecimal(&random::bytes::<32>()))
}

/// What is kept of a secret.
pub fn hash(secret: &str) -> String {
    hexadecimal(digest(&SHA256, secret.as_bytes()).as_ref())
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Control {
    /// Makes a key.
    pub async fn create_key(
        &self,
        caller: &Caller,
        name: &str,
        scope: Scope,
    ) -> Result<Made, ControlError> {
        const MOST: usize = 128;
        if name.trim().is_empty() || name.chars().count() > MOST {
            let problem = format!("must have 1 to {MOST} characters");
            return Err(ControlError::invalid("name", problem, "give it a name"));
        }
        let secret = new_secret();
        let key = ApiKey {
            id: KeyId::random(random::numbers()),
            name: name.to_owned(),
            scope,
            created_at: as_kept(Timestamp::now()),
            revoked_at: None,
        };
        self.shared.records.insert_key(&key, &hash(&secret)).await?;
        let detail = json!({ "name": name, "scope": scope });
        self.audit(caller, "key.create", key.id.as_str(), detail)
            .await;
        Ok(Made { key, secret })
    }

    /// The key with this secret. The secret is looked up by its hash, so how long that takes tells
    /// nothing of how near a wrong one is.
    pub async fn key(&self, secret: &str) -> Result<Option<ApiKey>, ControlError> {
        if !secret.starts_with(PREFIX) {
            return Ok(None);
        }
        Ok(self.shared.records.key_by_hash(&hash(secret)).await?)
    }

    /// Keys, newest first.
    pub async fn keys(&self, page: &PageRequest) -> Result<Page<ApiKey>, ControlError> {
        Ok(self.shared.records.keys(page).await?)
    }

    /// Makes a key open nothing from now on.
    pub async fn revoke_key(&self, caller: &Caller, id: &KeyId) -> Result<(), ControlError> {
        self.shared.records.revoke_key(id, Timestamp::now()).await?;
        self.audit(caller, "key.revoke", id.as_str(), json!({}))
            .await;
        Ok(())
    }
}
