//! What is left when sessions are over, and how it goes.
//!
//! First its files are due to be copied elsewhere, where there is such a place. Then the workspace goes, some time
//! after the end: whoever removed it says so. Then, where records are
//! not kept for ever, the session and everything that belongs to it. How long each is kept, and who
//! removes it, is for others to know.

use jiff::Timestamp;
use sandbox_model::{NodeId, Session, SessionId};
use sea_orm::sea_query::{Condition, Expr, ExprTrait, LockType};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbBackend, EntityTrait, FromQueryResult, QueryFilter, QueryOrder,
    QuerySelect, Select,
};

use super::Records;
use super::count::{self, Counted, Key};
use super::error::{Fault, StoreError};
use super::rows::session::{Column, Entity, KIND};
use super::rows::{artifact, execution, notice, result, session};
use super::transaction::Step;
use super::value::{Reading, micros};
use super::versioned::Named;

/// How many executions are deleted in one transaction: others wait for it.
const AT_ONCE: usize = 500;

/// A session that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Which.
    pub id: SessionId,
    /// Since when.
    pub at: Timestamp,
}

#[derive(FromQueryResult)]
struct Row {
    id: String,
    at: i64,
}

impl Row {
    fn read(self) -> Result<Ended, StoreError> {
        let reading = Reading {
            kind: KIND,
            id: &self.id,
        };
        Ok(Ended {
            id: reading.parse("id", &self.id)?,
            at: reading.time("ended_at", self.at)?,
        })
    }
}

/// How much of a session a transaction left.
enum Left {
    Some,
    Nothing,
}

impl Records {
    /// Up to `limit` sessions that ended before `time`, the longest over first; those that come
    /// after one of them, if it is named.
    pub async fn sessions_ended_before(
        &self,
        time: Timestamp,
        after: Option<&Ended>,
        limit: u64,
    ) -> Result<Vec<Ended>, StoreError> {
        let select = ended(Column::EndedAt, time, after, limit);
        self.read_ended(select).await
    }

    /// Up to `limit` sessions that ended on a node before `time` and whose workspace is still to be
    /// removed, the longest over first; those that come after one of them, if it is named.
    pub async fn sessions_to_clean(
        &self,
        time: Timestamp,
        node: &NodeId,
        after: Option<&Ended>,
        limit: u64,
    ) -> Result<Vec<Ended>, StoreError> {
        let select = ended(Column::UncleanSince, time, after, limit);
        self.read_ended(select.filter(Column::NodeId.eq(node.as_str())))
            .await
    }

    /// Up to `limit` sessions that ended on a node and whose files nobody said to be kept, the longest over
    /// first; those that come after one of them, if it is named.
    pub async fn sessions_with_files_due(
        &self,
        node: &NodeId,
        after: Option<&Ended>,
        limit: u64,
    ) -> Result<Vec<Ended>, StoreError> {
        let select = ended(Column::FilesDueSince, Timestamp::MAX, after, limit);
        self.read_ended(select.filter(Column::NodeId.eq(node.as_str())))
            .await
    }

    /// Are the files of this session still to be copied?
    pub async fn are_files_due(&self, id: &SessionId) -> Result<bool, StoreError> {
        let due = Entity::find_by_id(id.as_str())
            .filter(Column::FilesDueSince.is_not_null())
            .select_only()
            .column(Column::Id)
            .into_tuple::<String>()
            .one(self.reader())
            .await;
        Ok(due.map_err(|error| self.explain(error))?.is_some())
    }

    /// Notes that the files of a session that is over were copied, and are no longer due.
    pub async fn mark_files_kept(&self, id: &SessionId) -> Result<(), StoreError> {
        let marked = self
            .write_at_once(|connection| async move {
                Ok(Entity::update_many()
                    .col_expr(Column::FilesDueSince, Expr::value(None::<i64>))
                    .filter(Column::Id.eq(id.as_str()))
                    .exec(&connection)
                    .await?)
            })
            .await;
        marked.map(drop).map_err(|fault| self.explain(fault))
    }

    async fn read_ended(&self, select: Select<Entity>) -> Result<Vec<Ended>, StoreError> {
        let rows = select.into_model::<Row>().all(self.reader()).await;
        let rows = rows.map_err(|error| self.explain(error))?;
        rows.into_iter().map(Row::read).collect()
    }

    /// Notes that the workspace of a session that is over was removed. `false` when there is no
    /// such session, it is not over, or it was noted before.
    pub async fn mark_workspace_removed(
        &self,
        id: &SessionId,
        time: Timestamp,
    ) -> Result<bool, StoreError> {
        let marked = self
            .write_at_once(|connection| async move {
                Ok(Entity::update_many()
                    .col_expr(Column::WorkspaceRemovedAt, Expr::value(micros(time)))
                    .col_expr(Column::UncleanSince, Expr::value(None::<i64>))
                    .col_expr(Column::FilesDueSince, Expr::value(None::<i64>))
                    .col_expr(Column::Version, Expr::col(Column::Version).add(1))
                    .filter(Column::Id.eq(id.as_str()))
                    .filter(Column::IsOver.eq(true))
                    .filter(Column::WorkspaceRemovedAt.is_null())
                    .exec(&connection)
                    .await?)
            })
            .await;
        let marked = marked.map_err(|fault| self.explain(fault))?;
        Ok(marked.rows_affected == 1)
    }

    /// Deletes a session that is over, with its executions, their results and files, and its
    /// notices; whether its workspace was removed is not asked. One with many executions goes in
    /// several transactions, the session last: what is left when that is interrupted can be deleted
    /// again.
    pub async fn delete_session(&self, id: &SessionId) -> Result<(), StoreError> {
        while let Left::Some = self.write(|step| delete_some(step, id)).await? {}
        Ok(())
    }
}

/// Those that have a time before `time`, in its order.
fn ended(column: Column, time: Timestamp, after: Option<&Ended>, limit: u64) -> Select<Entity> {
    let mut select = Entity::find().filter(column.lt(micros(time)));
    if let Some(Ended { id, at }) = after {
        // In this form all three databases walk an index.
        let later = Condition::any()
            .add(column.gt(micros(*at)))
            .add(Column::Id.gt(id.as_str()));
        select = select.filter(column.gte(micros(*at))).filter(later);
    }
    select
        .select_only()
        .column(Column::Id)
        .column_as(column, "at")
        .order_by_asc(column)
        .order_by_asc(Column::Id)
        .limit(limit)
}

async fn delete_some(step: Step, id: &SessionId) -> Result<Left, Fault> {
    let id = id.as_str();
    let session = hold(&step, id).await?;
    let executions: Vec<(String, String, bool)> = execution::Entity::find()
        .filter(execution::Column::SessionId.eq(id))
        .select_only()
        .columns([
            execution::Column::Id,
            execution::Column::Status,
            execution::Column::IsOver,
        ])
        .limit(u64::try_from(AT_ONCE).unwrap_or(u64::MAX))
        .into_tuple()
        .all(&step)
        .await?;
    let mut gone: Vec<Key> = Vec::new();
    let mut ids = Vec::new();
    for (execution, status, is_over) in &executions {
        gone.extend(execution::counts(execution, id, status, *is_over));
        ids.push(execution.as_str());
    }
    delete_executions(&step, &ids).await?;
    if executions.len() == AT_ONCE {
        count::shift(&step, gone, []).await?;
        return step.commit(Left::Some).await;
    }
    notice::Entity::delete_many()
        .filter(notice::Column::SessionId.eq(id))
        .exec(&step)
        .await?;
    Entity::delete_by_id(id).exec(&step).await?;
    gone.extend(session::counts(&session));
    count::shift(&step, gone, []).await?;
    count::forget(&step, Counted::Executions, id).await?;
    step.commit(Left::Nothing).await
}

/// Nobody changes it or adds to it before the transaction ends.
async fn hold(step: &Step, id: &str) -> Result<Session, Fault> {
    let named = Named { kind: KIND, id };
    let mut select = Entity::find_by_id(id);
    if step.get_database_backend() != DbBackend::Sqlite {
        select = select.lock(LockType::Update);
    }
    let session = select.one(step).await?.ok_or_else(|| named.missing())?;
    match session.is_over {
        true => Ok(session.read()?.value),
        false => Err(StoreError::NotOver { id: session.id }.into()),
    }
}

async fn delete_executions(step: &Step, ids: &[&str]) -> Result<(), Fault> {
    if ids.is_empty() {
        return Ok(());
    }
    let ids = || ids.iter().copied();
    result::Entity::delete_many()
        .filter(result::Column::ExecutionId.is_in(ids()))
        .exec(step)
        .await?;
    artifact::Entity::delete_many()
        .filter(artifact::Column::ExecutionId.is_in(ids()))
        .exec(step)
        .await?;
    execution::Entity::delete_many()
        .filter(execution::Column::Id.is_in(ids()))
        .exec(step)
        .await?;
    Ok(())
}
