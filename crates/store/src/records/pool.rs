//! What waits to become a session.
//!
//! An entry is claimed by deleting its row: of two that delete the same row one is told that it
//! did. No database here does it in one statement like another, so an entry is looked for first, and
//! looked for again when somebody was faster.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use sandbox_model::{NodeId, PoolEntry, PoolEntryId, TemplateId};
use sea_orm::{
    ColumnTrait, DatabaseConnection, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect,
};

use super::Records;
use super::error::{Fault, StoreError};
use super::rows::pool::{Column, Entity, KIND, Model};
use super::versioned::{self, Named};

/// How many entries a claimant considers at a time. Several at once start at different ones.
const CONSIDERED: u64 = 16;

impl Records {
    /// Adds an entry that can be claimed.
    pub async fn add_to_pool(&self, entry: &PoolEntry) -> Result<(), StoreError> {
        let row = &Model::of(entry)?;
        let named = Named {
            kind: KIND,
            id: &row.id,
        };
        let added = self.write_at_once(|connection| async move {
            versioned::insert(&connection, row.clone(), named).await
        });
        added.await.map_err(|fault| self.explain(fault))
    }

    /// Takes one of the oldest entries of a template out of the pool, on `node` if one is named. Nobody
    /// else gets it.
    pub async fn claim_from_pool(
        &self,
        template: &TemplateId,
        node: Option<&NodeId>,
    ) -> Result<Option<PoolEntry>, StoreError> {
        let mut waiting = Entity::find().filter(Column::TemplateId.eq(template.as_str()));
        if let Some(node) = node {
            waiting = waiting.filter(Column::NodeId.eq(node.as_str()));
        }
        let waiting = waiting
            .order_by_asc(Column::CreatedAt)
            .order_by_asc(Column::Id)
            .limit(CONSIDERED);
        let claim = async {
            loop {
                let mut rows = waiting.clone().all(&self.database.writer).await?;
                if rows.is_empty() {
                    return Ok::<_, Fault>(None);
                }
                let chance = RandomState::new().hash_one(0);
                let first = chance % u64::try_from(rows.len()).unwrap_or(1);
                rows.rotate_left(usize::try_from(first).unwrap_or(0));
                for row in rows {
                    if self.delete_entry(&row.id).await? {
                        return Ok(Some(row));
                    }
                }
            }
        };
        let claimed = claim.await.map_err(|fault| self.explain(fault))?;
        claimed.map(Model::read).transpose()
    }

    /// Takes an entry out of the pool; `false` when somebody has.
    pub async fn remove_from_pool(&self, id: &PoolEntryId) -> Result<bool, StoreError> {
        let removed = self.delete_entry(id.as_str()).await;
        removed.map_err(|fault| self.explain(fault))
    }

    async fn delete_entry(&self, id: &str) -> Result<bool, Fault> {
        let delete = |connection: DatabaseConnection| async move {
            let deleted = Entity::delete_by_id(id).exec(&connection).await?;
            Ok(deleted.rows_affected == 1)
        };
        self.write_at_once(delete).await
    }

    /// How many entries each template has; one without any is not told.
    pub async fn pool_sizes(&self) -> Result<BTreeMap<TemplateId, u64>, StoreError> {
        let sizes: Result<Vec<(String, i64)>, _> = Entity::find()
            .select_only()
            .column(Column::TemplateId)
            .column_as(Column::Id.count(), "size")
            .group_by(Column::TemplateId)
            .into_tuple()
            .all(self.reader())
            .await;
        let sizes = sizes.map_err(|error| self.explain(error))?;
        let read = |(template, size): (String, i64)| {
            let reading = super::value::Reading {
                kind: KIND,
                id: &template,
            };
            Ok((
                reading.parse("template_id", &template)?,
                reading.number("size", size)?,
            ))
        };
        sizes.into_iter().map(read).collect()
    }

    /// How many entries a template has.
    pub async fn pool_size(&self, template: &TemplateId) -> Result<u64, StoreError> {
        let waiting = Entity::find().filter(Column::TemplateId.eq(template.as_str()));
        let size = waiting.count(self.reader()).await;
        size.map_err(|error| self.explain(error))
    }

    /// Every entry on a node, oldest first.
    pub async fn pool_on(&self, node: &NodeId) -> Result<Vec<PoolEntry>, StoreError> {
        let rows = Entity::find()
            .filter(Column::NodeId.eq(node.as_str()))
            .order_by_asc(Column::CreatedAt)
            .order_by_asc(Column::Id)
            .all(self.reader())
            .await;
        let rows = rows.map_err(|error| self.explain(error))?;
        rows.into_iter().map(Model::read).collect()
    }
}
