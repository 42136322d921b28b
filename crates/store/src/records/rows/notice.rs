//! What happened to sessions.

use sandbox_model::SessionNotice;
use sea_orm::entity::prelude::*;

use crate::records::error::StoreError;
use crate::records::value::Reading;

pub const KIND: &str = "notice";

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "session_notices")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: i64,
    pub session_id: String,
    pub kind: String,
    pub noted_at: i64,
    pub detail: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Model {
    pub fn read(self) -> Result<SessionNotice, StoreError> {
        let id = self.id.to_string();
        let reading = Reading {
            kind: KIND,
            id: &id,
        };
        Ok(SessionNotice {
            id: self.id,
            session_id: reading.parse("session_id", &self.session_id)?,
            at: reading.time("noted_at", self.noted_at)?,
            kind: self.kind,
            detail: self.detail,
        })
    }
}
