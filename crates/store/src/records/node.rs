//! Nodes.

use sandbox_model::{Node, NodeId};
use sea_orm::{ActiveModelTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryOrder};

use super::error::{Fault, StoreError};
use super::page::{ByName, Page, PageRequest};
use super::rows::node::{Column, Entity, KIND, Model};
use super::transaction::Step;
use super::versioned::{self, FIRST, Named, Versioned};
use super::{Records, Stored};

const ORDER: ByName<Column> = ByName {
    list: "nodes",
    name: Column::Id,
};
const VERSIONED: Versioned<Column> = Versioned {
    id: Column::Id,
    version: Column::Version,
};

impl Records {
    /// Adds a node, or replaces what is known of it, whoever wrote that.
    pub async fn upsert_node(&self, node: &Node) -> Result<Stored<Node>, StoreError> {
        loop {
            let current = self.node(&node.id).await?;
            let outcome = match &current {
                Some(current) => self.update_node(current, node).await,
                None => self.insert_node(node).await,
            };
            match outcome {
                // Somebody else did one or the other meanwhile.
                Err(StoreError::Stale { .. } | StoreError::Exists { .. }) => continue,
                outcome => return outcome,
            }
        }
    }

    async fn insert_node(&self, node: &Node) -> Result<Stored<Node>, StoreError> {
        let row = &Model::of(node, FIRST)?;
        let named = Named {
            kind: KIND,
            id: &row.id,
        };
        let inserted = self.write_at_once(|connection| async move {
            versioned::insert(&connection, row.clone(), named).await
        });
        inserted.await.map_err(|fault| self.explain(fault))?;
        row.clone().read()
    }

    /// The node of that name.
    pub async fn node(&self, id: &NodeId) -> Result<Option<Stored<Node>>, StoreError> {
        let row = Entity::find_by_id(id.as_str()).one(self.reader()).await;
        row.map_err(|error| self.explain(error))?
            .map(Model::read)
            .transpose()
    }

    /// Every node, by name.
    pub async fn nodes(&self) -> Result<Vec<Stored<Node>>, StoreError> {
        let rows = Entity::find()
            .order_by_asc(Column::Id)
            .all(self.reader())
            .await;
        let rows = rows.map_err(|error| self.explain(error))?;
        rows.into_iter().map(Model::read).collect()
    }

    /// Nodes, by name, a page at a time.
    pub async fn node_page(&self, page: &PageRequest) -> Result<Page<Stored<Node>>, StoreError> {
        let select = ORDER.page(Entity::find(), page)?;
        let read = async {
            let rows = select.all(self.reader()).await?;
            // There are as many nodes as somebody started: these are counted.
            Ok::<_, Fault>((rows, Entity::find().count(self.reader()).await?))
        };
        let (rows, total) = read.await.map_err(|fault| self.explain(fault))?;
        ORDER.assemble(rows, total, page, |row| row.id.clone(), Model::read)
    }

    /// Replaces what is known of a node, if nobody else did since it was read.
    pub async fn update_node(
        &self,
        current: &Stored<Node>,
        new: &Node,
    ) -> Result<Stored<Node>, StoreError> {
        let row = &Model::of(new, current.version + 1)?;
        let named = Named {
            kind: KIND,
            id: current.value.id.as_str(),
        };
        named.stays(&row.id)?;
        let expected = current.version;
        self.write(|step: Step| async move {
            let active = row.clone().into_active_model().reset_all();
            if VERSIONED.replace(&step, active, &row.id, expected).await? {
                return step.commit(()).await;
            }
            match Entity::find_by_id(&*row.id).one(&step).await? {
                Some(_) => Err(Fault::from(named.stale())),
                None => Err(Fault::from(named.missing())),
            }
        })
        .await?;
        row.clone().read()
    }
}
