//! The audit: what was changed, and by whom.

use sandbox_model::AuditRecord;
use sea_orm::sea_query::extension::mysql::{IndexHintScope, MySqlSelectStatementExt};
use sea_orm::{ActiveValue, EntityTrait, QuerySelect};

use super::Records;
use super::count::{self, Counted, Key};
use super::error::{Fault, StoreError};
use super::page::{Order, Page, PageRequest};
use super::rows::audit::{ActiveModel, Column, Entity, Model};
use super::transaction::Step;
use super::value::{micros, short, text};

const ORDER: Order<Column> = Order {
    list: "audit",
    at: Column::DoneAt,
    id: Column::Id,
};

/// Writes a change down within a transaction, and gives the number that moves with it.
pub(super) async fn append(step: &Step, record: &AuditRecord) -> Result<Key, Fault> {
    let row = ActiveModel {
        id: ActiveValue::NotSet,
        done_at: ActiveValue::Set(micros(record.at)),
        key_id: ActiveValue::Set(record.key_id.as_ref().map(ToString::to_string)),
        action: ActiveValue::Set(short("action", &record.action)?),
        object: ActiveValue::Set(short("object", &record.object)?),
        request_id: ActiveValue::Set(record.request_id.as_ref().map(ToString::to_string)),
        detail: ActiveValue::Set(text("detail", &record.detail)?),
    };
    step.change(&Entity::insert(row), 1).await?;
    Ok(Key::of(&record.object, Counted::Audit, "", "", ""))
}

impl Records {
    /// Writes a change down.
    pub async fn append_audit(&self, record: &AuditRecord) -> Result<(), StoreError> {
        self.write(|step| async move {
            let number = append(&step, record).await?;
            count::shift(&step, [], [number]).await?;
            step.commit(()).await
        })
        .await
    }

    /// What was written down, newest first.
    pub async fn audit(&self, page: &PageRequest) -> Result<Page<AuditRecord>, StoreError> {
        let mut select = ORDER.page::<_, i64>(Entity::find(), page)?;
        // MySQL would rather read and sort all of a table whose rows are this short.
        QuerySelect::query(&mut select).force_index("audit_by_age", IndexHintScope::OrderBy);
        let read = async {
            let rows = select.all(self.reader()).await?;
            let total = count::total(self.reader(), count::all(Counted::Audit)).await?;
            Ok::<_, Fault>((rows, total))
        };
        let (rows, total) = read.await.map_err(|fault| self.explain(fault))?;
        let key = |row: &Model| (row.done_at, row.id);
        ORDER.assemble(rows, total, page, key, Model::read)
    }
}
