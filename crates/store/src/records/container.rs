//! Containers.

use sandbox_model::{Container, ContainerStatus, RuntimeKind};
use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter};

use super::count::{self, Counted};
use super::error::{Fault, StoreError};
use super::page::{Order, Page, PageRequest};
use super::rows::container::{Column, Entity, KIND, Model};
use super::rows::count::Column as CountColumn;
use super::versioned::{self, FIRST, Named, Versioned};
use super::{Records, Stored};

const ORDER: Order<Column> = Order {
    list: "containers",
    at: Column::CreatedAt,
    id: Column::Id,
};
const VERSIONED: Versioned<Column> = Versioned {
    id: Column::Id,
    version: Column::Version,
};

/// Which containers a list tells of: those that are all of this.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContainerFilter {
    /// Where they are in their life.
    pub status: Option<ContainerStatus>,
    /// What hosts them.
    pub runtime: Option<RuntimeKind>,
}

impl Records {
    /// Adds a container.
    pub async fn insert_container(
        &self,
        container: &Container,
    ) -> Result<Stored<Container>, StoreError> {
        let row = &Model::of(container, FIRST)?;
        let named = Named {
            kind: KIND,
            id: &row.id,
        };
        self.write(|step| async move {
            versioned::add(&step, row.clone(), named, None).await?;
            count::shift(&step, [], row.count()).await?;
            step.commit(()).await
        })
        .await?;
        row.clone().read()
    }

    /// The container of that name.
    pub async fn container(&self, id: &str) -> Result<Option<Stored<Container>>, StoreError> {
        let row = Entity::find_by_id(id).one(self.reader()).await;
        row.map_err(|error| self.explain(error))?
            .map(Model::read)
            .transpose()
    }

    /// Containers, newest first.
    pub async fn containers(
        &self,
        filter: &ContainerFilter,
        page: &PageRequest,
    ) -> Result<Page<Stored<Container>>, StoreError> {
        let mut found = Entity::find();
        let mut numbers = count::all(Counted::Containers).filter(CountColumn::Owner.eq(""));
        if let Some(runtime) = filter.runtime {
            found = found.filter(Column::Runtime.eq(runtime.as_str()));
            numbers = numbers.filter(CountColumn::Subject.eq(runtime.as_str()));
        }
        if let Some(status) = filter.status {
            found = found.filter(Column::Status.eq(status.as_str()));
            numbers = numbers.filter(CountColumn::Status.eq(status.as_str()));
        }
        let select = ORDER.page::<_, String>(found, page)?;
        let read = async {
            let rows = select.all(self.reader()).await?;
            Ok::<_, Fault>((rows, count::total(self.reader(), numbers).await?))
        };
        let (rows, total) = read.await.map_err(|fault| self.explain(fault))?;
        let key = |row: &Model| (row.created_at, row.id.clone());
        ORDER.assemble(rows, total, page, key, Model::read)
    }

    /// Replaces a container, if nobody else did since it was read.
    pub async fn update_container(
        &self,
        current: &Stored<Container>,
        new: &Container,
    ) -> Result<Stored<Container>, StoreError> {
        let row = &Model::of(new, current.version + 1)?;
        let named = Named {
            kind: KIND,
            id: &current.value.id,
        };
        named.stays(&row.id)?;
        let expected = current.version;
        self.write(|step| async move {
            let before = Entity::find_by_id(&*row.id)
                .one(&step)
                .await?
                .ok_or_else(|| named.missing())?;
            let active = row.clone().into_active_model().reset_all();
            if before.version != expected
                || !VERSIONED.replace(&step, active, &row.id, expected).await?
            {
                return Err(named.stale().into());
            }
            count::shift(&step, before.count(), row.count()).await?;
            step.commit(()).await
        })
        .await?;
        row.clone().read()
    }
}
