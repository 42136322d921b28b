//! Files that executions made.

use sandbox_model::execution::Artifact;
use sea_orm::entity::prelude::*;

use crate::records::error::StoreError;
use crate::records::value::{Reading, micros, number, short, text};

pub const KIND: &str = "artifact";

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "artifacts")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub execution_id: String,
    pub kind: String,
    pub size_bytes: i64,
    pub mime_type: String,
    pub sha256: String,
    pub created_at: i64,
    pub name: String,
    pub path: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Model {
    pub fn of(artifact: &Artifact) -> Result<Model, StoreError> {
        Ok(Model {
            id: artifact.id.to_string(),
            execution_id: artifact.execution_id.to_string(),
            kind: artifact.kind.as_str().to_owned(),
            size_bytes: number("size_bytes", artifact.size_bytes)?,
            mime_type: short("mime_type", &artifact.mime_type)?,
            sha256: sha256(&artifact.sha256)?,
            created_at: micros(artifact.created_at),
            name: text("name", &artifact.name)?,
            path: text("path", &artifact.path)?,
        })
    }

    /// The same file as `known`, told again.
    pub fn in_place_of(self, known: &Model) -> Model {
        let id = known.id.clone();
        Model { id, ..self }
    }

    /// Would it change anything? When it was told is not asked.
    pub fn tells_the_same_as(&self, known: &Model) -> bool {
        let again = Model {
            created_at: known.created_at,
            ..self.clone()
        };
        again.in_place_of(known) == *known
    }

    pub fn read(self) -> Result<Artifact, StoreError> {
        let reading = Reading {
            kind: KIND,
            id: &self.id,
        };
        Ok(Artifact {
            id: reading.parse("id", &self.id)?,
            execution_id: reading.parse("execution_id", &self.execution_id)?,
            kind: reading.parse("kind", &self.kind)?,
            size_bytes: reading.number("size_bytes", self.size_bytes)?,
            created_at: reading.time("created_at", self.created_at)?,
            name: self.name,
            path: self.path,
            mime_type: self.mime_type,
            sha256: self.sha256,
        })
    }
}

fn sha256(digest: &str) -> Result<String, StoreError> {
    if digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(digest.to_owned());
    }
    Err(StoreError::Unkeepable {
        field: "sha256",
        problem: "is not 64 hexadecimal digits",
    })
}
