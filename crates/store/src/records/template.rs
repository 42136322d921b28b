//! Templates.

use sandbox_model::{SessionStatus, Template, TemplateId};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, PaginatorTrait,
    QueryFilter,
};

use super::count::{self, Counted};
use super::error::{Fault, StoreError};
use super::page::{Order, Page, PageRequest};
use super::rows::count::Column as CountColumn;
use super::rows::template::{Column, Entity, KIND, Model};
use super::versioned::{self, FIRST, Named, Versioned};
use super::{Records, Stored};

const ORDER: Order<Column> = Order {
    list: "templates",
    at: Column::CreatedAt,
    id: Column::Id,
};
const VERSIONED: Versioned<Column> = Versioned {
    id: Column::Id,
    version: Column::Version,
};

/// Which templates a list tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateFilter {
    /// Those that sessions can be made from.
    Active,
    /// All.
    All,
}

impl Records {
    /// Adds a template.
    pub async fn insert_template(
        &self,
        template: &Template,
    ) -> Result<Stored<Template>, StoreError> {
        let row = &Model::of(template, FIRST)?;
        let named = Named {
            kind: KIND,
            id: &row.id,
        };
        self.write_at_once(|connection| async move {
            versioned::insert(&connection, row.clone(), named).await
        })
        .await
        .map_err(|fault| self.explain(fault))?;
        row.clone().read()
    }

    /// The template of that name.
    pub async fn template(&self, id: &TemplateId) -> Result<Option<Stored<Template>>, StoreError> {
        let row = Entity::find_by_id(id.as_str()).one(self.reader()).await;
        row.map_err(|error| self.explain(error))?
            .map(Model::read)
            .transpose()
    }

    /// Templates, newest first.
    pub async fn templates(
        &self,
        filter: TemplateFilter,
        page: &PageRequest,
    ) -> Result<Page<Stored<Template>>, StoreError> {
        let found = match filter {
            TemplateFilter::Active => Entity::find().filter(Column::IsActive.eq(true)),
            TemplateFilter::All => Entity::find(),
        };
        let select = ORDER.page::<_, String>(found.clone(), page)?;
        let read = async {
            let rows = select.all(self.reader()).await?;
            // There are as many templates as somebody wrote: these are counted.
            Ok::<_, Fault>((rows, found.count(self.reader()).await?))
        };
        let (rows, total) = read.await.map_err(|fault| self.explain(fault))?;
        let key = |row: &Model| (row.created_at, row.id.clone());
        ORDER.assemble(rows, total, page, key, Model::read)
    }

    /// Replaces a template, if nobody else did since it was read.
    pub async fn update_template(
        &self,
        current: &Stored<Template>,
        new: &Template,
    ) -> Result<Stored<Template>, StoreError> {
        let row = &Model::of(new, current.version + 1)?;
        let named = Named {
            kind: KIND,
            id: current.value.id.as_str(),
        };
        named.stays(&row.id)?;
        self.write(|step| async move {
            let active = row.clone().into_active_model().reset_all();
            let expected = current.version;
            if VERSIONED.replace(&step, active, &row.id, expected).await? {
                return step.commit(()).await;
            }
            Err(VERSIONED.refusal::<Entity>(&step, named).await?.into())
        })
        .await?;
        row.clone().read()
    }

    /// Deletes a template that no live session uses.
    pub async fn delete_template(&self, id: &TemplateId) -> Result<(), StoreError> {
        let named = Named {
            kind: KIND,
            id: id.as_str(),
        };
        let in_use = |sessions| StoreError::InUse {
            id: id.to_string(),
            sessions,
        };
        let deleted = self
            .write(|step| async move {
                let sessions = live_sessions(&step, id).await?;
                if sessions > 0 {
                    return Err(in_use(sessions).into());
                }
                let deleted = Entity::delete_by_id(id.as_str()).exec(&step).await;
                match deleted.map_err(Fault::from) {
                    // A session came to be between the two statements.
                    Err(fault) if fault.is_broken_reference() => Ok(None),
                    Err(fault) => Err(fault),
                    Ok(deleted) if deleted.rows_affected == 0 => Err(named.missing().into()),
                    Ok(_) => step.commit(Some(())).await,
                }
            })
            .await?;
        match deleted {
            Some(()) => Ok(()),
            None => {
                let sessions = live_sessions(self.reader(), id).await;
                let sessions = sessions.map_err(|fault| self.explain(fault))?;
                Err(in_use(sessions.max(1)))
            }
        }
    }
}

async fn live_sessions(
    connection: &impl ConnectionTrait,
    template: &TemplateId,
) -> Result<u64, Fault> {
    let live = SessionStatus::ALL
        .into_iter()
        .filter(|status| !status.is_over());
    let numbers = count::all(Counted::Sessions)
        .filter(CountColumn::Owner.eq(""))
        .filter(CountColumn::Subject.eq(template.as_str()))
        .filter(CountColumn::Status.is_in(live.map(SessionStatus::as_str)));
    count::total(connection, numbers).await
}
