//! Who changed what.

use sandbox_model::AuditRecord;
use sea_orm::entity::prelude::*;

use crate::records::error::StoreError;
use crate::records::value::Reading;

pub const KIND: &str = "audit record";

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "audit")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: i64,
    pub done_at: i64,
    pub key_id: Option<String>,
    pub action: String,
    pub object: String,
    pub request_id: Option<String>,
    pub detail: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Model {
    pub fn read(self) -> Result<AuditRecord, StoreError> {
        let id = self.id.to_string();
        let reading = Reading {
            kind: KIND,
            id: &id,
        };
        Ok(AuditRecord {
            at: reading.time("done_at", self.done_at)?,
            key_id: reading.maybe_parse("key_id", self.key_id.as_deref())?,
            request_id: reading.maybe_parse("request_id", self.request_id.as_deref())?,
            action: self.action,
            object: self.object,
            detail: self.detail,
        })
    }
}
