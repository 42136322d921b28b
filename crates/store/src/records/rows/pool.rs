//! What waits to become a session.

use sandbox_model::PoolEntry;
use sea_orm::entity::prelude::*;

use crate::records::error::StoreError;
use crate::records::value::{Reading, micros, text};

pub const KIND: &str = "pool entry";

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "pool")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub template_id: String,
    pub node_id: String,
    pub created_at: i64,
    pub container_id: String,
    pub executor_url: String,
    pub workspace_path: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Model {
    pub fn of(entry: &PoolEntry) -> Result<Model, StoreError> {
        Ok(Model {
            id: entry.id.to_string(),
            template_id: entry.template_id.to_string(),
            node_id: entry.node_id.to_string(),
            created_at: micros(entry.created_at),
            container_id: text("container_id", &entry.container_id)?,
            executor_url: text("executor_url", &entry.executor_url)?,
            workspace_path: text("workspace_path", &entry.workspace_path)?,
        })
    }

    pub fn read(self) -> Result<PoolEntry, StoreError> {
        let reading = Reading {
            kind: KIND,
            id: &self.id,
        };
        Ok(PoolEntry {
            id: reading.parse("id", &self.id)?,
            template_id: reading.parse("template_id", &self.template_id)?,
            node_id: reading.parse("node_id", &self.node_id)?,
            created_at: reading.time("created_at", self.created_at)?,
            container_id: self.container_id,
            executor_url: self.executor_url,
            workspace_path: self.workspace_path,
        })
    }
}
