//! Executions.
//!
//! A heartbeat comes every few seconds and says nothing about what an execution is, so it leaves the
//! version alone; in turn, an update leaves alone what heartbeats write.

use jiff::Timestamp;
use sandbox_model::{Execution, ExecutionId, ExecutionStatus, Language, SessionId};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};

use super::along::Along;
use super::count::{self, Counted, Key};
use super::error::{Fault, StoreError};
use super::notice::Row;
use super::page::{Order, Page, PageRequest};
use super::rows::count::Column as CountColumn;
use super::rows::execution::{self as row, Column, Entity, KIND, Model, SUMMARY, Summary};
use super::rows::session;
use super::transaction::Step;
use super::value::{Reading, micros, text};
use super::versioned::{self, FIRST, Named, Versioned};
use super::{Records, Stored};

const ORDER: Order<Column> = Order {
    list: "executions",
    at: Column::CreatedAt,
    id: Column::Id,
};
const VERSIONED: Versioned<Column> = Versioned {
    id: Column::Id,
    version: Column::Version,
};

/// Which executions of a session a list tells of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionFilter {
    /// Where they ran.
    pub session_id: SessionId,
    /// Where they are in their life.
    pub status: Option<ExecutionStatus>,
}

/// An execution without what can be long: its code and its event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is Execution's field of the same name")]
pub struct ExecutionSummary {
    pub id: ExecutionId,
    pub session_id: SessionId,
    pub status: ExecutionStatus,
    pub language: Language,
    pub timeout_seconds: u32,
    pub retry: bool,
    pub retry_count: u32,
    pub parent_execution_id: Option<ExecutionId>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
    pub crashed_at: Option<Timestamp>,
    pub timeout_at: Option<Timestamp>,
    pub last_heartbeat_at: Option<Timestamp>,
    pub progress: Option<String>,
    pub error: Option<String>,
}

/// Replaces an execution within a transaction. What else belongs to it comes after, and its numbers
/// last: see [`shift`].
pub(super) async fn replace(
    step: &Step,
    current: &Stored<Execution>,
    row: &Model,
) -> Result<(), Fault> {
    let named = Named {
        kind: KIND,
        id: &row.id,
    };
    let read = Model::of(&current.value, current.version)?;
    // What was heard since stays.
    let row = Model {
        last_heartbeat_at: read.last_heartbeat_at,
        heard_at: read.heard_at,
        progress: read.progress.clone(),
        ..row.clone()
    };
    let update = VERSIONED
        .change(read, row)
        // What its numbers depend on is as it was read, or they would be wrong.
        .filter(Column::SessionId.eq(current.value.session_id.as_str()))
        .filter(Column::Status.eq(current.value.status.as_str()));
    match step.change(&update, 1).await? {
        true => Ok(()),
        false => Err(VERSIONED.refusal::<Entity>(step, named).await?.into()),
    }
}

/// Moves the numbers after [`replace`], and those that move with what came along.
pub(super) async fn shift(
    step: &Step,
    current: &Stored<Execution>,
    row: &Model,
    more: Option<Key>,
) -> Result<(), Fault> {
    let (session, status) = (&current.value.session_id, current.value.status);
    let before = row::counts(&row.id, session.as_str(), status.as_str(), status.is_over());
    count::shift(step, before, row.counts().into_iter().chain(more)).await
}

impl Records {
    /// Adds an execution. Its session must be there.
    pub async fn insert_execution(
        &self,
        execution: &Execution,
    ) -> Result<Stored<Execution>, StoreError> {
        let nothing = Along::default();
        self.insert_execution_along(execution, &nothing).await
    }

    /// The same, with what comes along.
    pub async fn insert_execution_along(
        &self,
        execution: &Execution,
        along: &Along<'_>,
    ) -> Result<Stored<Execution>, StoreError> {
        let row = &Model::of(execution, FIRST)?;
        let named = Named {
            kind: KIND,
            id: &row.id,
        };
        let session = Named {
            kind: session::KIND,
            id: &row.session_id,
        };
        self.write(|step| async move {
            versioned::add(&step, row.clone(), named, Some(session)).await?;
            let more = along.write(&step, Row::Free).await?;
            count::shift(&step, [], row.counts().into_iter().chain(more)).await?;
            step.commit(()).await
        })
        .await?;
        row.clone().read()
    }

    /// The execution of that name.
    pub async fn execution(
        &self,
        id: &ExecutionId,
    ) -> Result<Option<Stored<Execution>>, StoreError> {
        let row = Entity::find_by_id(id.as_str()).one(self.reader()).await;
        row.map_err(|error| self.explain(error))?
            .map(Model::read)
            .transpose()
    }

    /// Whose execution it is, without the rest of it.
    pub async fn session_of(&self, id: &ExecutionId) -> Result<Option<SessionId>, StoreError> {
        let found: Option<String> = Entity::find_by_id(id.as_str())
            .select_only()
            .column(Column::SessionId)
            .into_tuple()
            .one(self.reader())
            .await
            .map_err(|error| self.explain(error))?;
        let reading = Reading {
            kind: KIND,
            id: id.as_str(),
        };
        found
            .map(|found| reading.parse("session_id", &found))
            .transpose()
    }

    /// A session's executions, newest first.
    pub async fn executions(
        &self,
        filter: &ExecutionFilter,
        page: &PageRequest,
    ) -> Result<Page<Stored<ExecutionSummary>>, StoreError> {
        let session = filter.session_id.as_str();
        let mut found = Entity::find().filter(Column::SessionId.eq(session));
        let mut numbers = count::all(Counted::Executions).filter(CountColumn::Owner.eq(session));
        if let Some(status) = filter.status {
            found = found.filter(Column::Status.eq(status.as_str()));
            // An empty subject is part of the numbers' key, which is then used to its end.
            numbers = numbers
                .filter(CountColumn::Subject.eq(""))
                .filter(CountColumn::Status.eq(status.as_str()));
        }
        let select = ORDER.page::<_, String>(found, page)?;
        let read = async {
            let rows = summaries(select).all(self.reader()).await?;
            Ok::<_, Fault>((rows, count::total(self.reader(), numbers).await?))
        };
        let (rows, total) = read.await.map_err(|fault| self.explain(fault))?;
        let key = |row: &Summary| (row.created_at, row.id.clone());
        ORDER.assemble(rows, total, page, key, Summary::read)
    }

    /// Replaces an execution, if nobody else did since it was read. Its heartbeat and progress stay
    /// as [`Records::heartbeat`] left them.
    pub async fn update_execution(
        &self,
        current: &Stored<Execution>,
        new: &Execution,
    ) -> Result<Stored<Execution>, StoreError> {
        let row = &Model::of(new, current.version + 1)?;
        let named = Named {
            kind: KIND,
            id: current.value.id.as_str(),
        };
        named.stays(&row.id)?;
        self.write(|step| async move {
            replace(&step, current, row).await?;
            shift(&step, current, row, None).await?;
            step.commit(()).await
        })
        .await?;
        row.clone().read()
    }

    /// Notes that an execution's executor was heard of at `time`, and what it said of its progress.
    /// `false` when there is no such execution, or it is over.
    pub async fn heartbeat(
        &self,
        id: &ExecutionId,
        time: Timestamp,
        progress: Option<&str>,
    ) -> Result<bool, StoreError> {
        let progress = progress.map(|said| text("progress", said)).transpose()?;
        let mut update = Entity::update_many()
            .col_expr(Column::LastHeartbeatAt, Expr::value(micros(time)))
            .col_expr(Column::HeardAt, Expr::value(micros(time)))
            .filter(Column::Id.eq(id.as_str()))
            .filter(Column::IsOver.eq(false));
        if let Some(progress) = progress {
            update = update.col_expr(Column::Progress, Expr::value(progress));
        }
        let update = &update;
        let updated = self
            .write_at_once(|connection| async move { Ok(update.clone().exec(&connection).await?) })
            .await;
        let updated = updated.map_err(|fault| self.explain(fault))?;
        Ok(updated.rows_affected == 1)
    }

    /// Up to `limit` executions that are not over and whose executor was not heard of since `time`,
    /// the longest silent first. One that was never heard of counts from when it was submitted.
    pub async fn executions_silent_since(
        &self,
        time: Timestamp,
        limit: u64,
    ) -> Result<Vec<Stored<ExecutionSummary>>, StoreError> {
        let select = Entity::find()
            .filter(Column::IsOver.eq(false))
            .filter(Column::HeardAt.lt(micros(time)))
            .order_by_asc(Column::HeardAt)
            .limit(limit);
        self.read_summaries(select).await
    }

    /// Every execution of a session that is not over.
    pub async fn live_executions(
        &self,
        session: &SessionId,
    ) -> Result<Vec<Stored<ExecutionSummary>>, StoreError> {
        let select = Entity::find()
            .filter(Column::SessionId.eq(session.as_str()))
            .filter(Column::IsOver.eq(false));
        self.read_summaries(select).await
    }

    /// How many executions are not over.
    pub async fn live_execution_count(&self) -> Result<u64, StoreError> {
        let numbers = count::all(Counted::LiveExecutions);
        let total = count::total(self.reader(), numbers).await;
        total.map_err(|fault| self.explain(fault))
    }

    async fn read_summaries(
        &self,
        select: Select<Entity>,
    ) -> Result<Vec<Stored<ExecutionSummary>>, StoreError> {
        let rows = summaries(select).all(self.reader()).await;
        let rows = rows.map_err(|error| self.explain(error))?;
        rows.into_iter().map(Summary::read).collect()
    }
}

fn summaries(select: Select<Entity>) -> sea_orm::Selector<sea_orm::SelectModel<Summary>> {
    select.select_only().columns(SUMMARY).into_model()
}
