//! Keys, by the hash of their secret.

use sandbox_model::ApiKey;
use sea_orm::entity::prelude::*;

use crate::records::error::StoreError;
use crate::records::value::{Reading, maybe_micros, micros, short};

pub const KIND: &str = "key";

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "api_keys")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub name: String,
    pub hash: String,
    pub scope: String,
    pub created_at: i64,
    pub revoked_at: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Model {
    pub fn of(key: &ApiKey, hash: &str) -> Result<Model, StoreError> {
        Ok(Model {
            id: key.id.to_string(),
            name: short("name", &key.name)?,
            hash: short("hash", hash)?,
            scope: key.scope.to_string(),
            created_at: micros(key.created_at),
            revoked_at: maybe_micros(key.revoked_at),
        })
    }

    pub fn read(self) -> Result<ApiKey, StoreError> {
        let reading = Reading {
            kind: KIND,
            id: &self.id,
        };
        Ok(ApiKey {
            id: reading.parse("id", &self.id)?,
            scope: reading.parse("scope", &self.scope)?,
            created_at: reading.time("created_at", self.created_at)?,
            revoked_at: reading.maybe_time("revoked_at", self.revoked_at)?,
            name: self.name,
        })
    }
}
