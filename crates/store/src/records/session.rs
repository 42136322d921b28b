//! Sessions.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use sandbox_model::{NodeId, Session, SessionId, SessionMode, SessionStatus, TemplateId};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select, UpdateMany};

use super::activity;
use super::along::Along;
use super::count::{self, Counted};
use super::error::{Fault, StoreError};
use super::notice::Row;
use super::page::{Order, Page, PageRequest};
use super::rows::count::{Column as CountColumn, Entity as CountEntity};
use super::rows::session::{self as row, Column, Entity, KIND, Model};
use super::rows::template;
use super::value::{Reading, micros};
use super::versioned::{self, FIRST, Named, Versioned};
use super::{Records, Stored};

const ORDER: Order<Column> = Order {
    list: "sessions",
    at: Column::CreatedAt,
    id: Column::Id,
};
const VERSIONED: Versioned<Column> = Versioned {
    id: Column::Id,
    version: Column::Version,
};

/// How many sessions one statement names.
const AT_ONCE: usize = 200;

/// Which sessions a list tells of: those that are all of this.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Where they are in their life.
    pub status: Option<SessionStatus>,
    /// What they were made from.
    pub template_id: Option<TemplateId>,
    /// Whose they are.
    pub agent_id: Option<String>,
}

impl SessionFilter {
    fn rows(&self) -> Select<Entity> {
        let mut select = Entity::find();
        if let Some(agent) = &self.agent_id {
            select = select.filter(Column::AgentId.eq(agent.as_str()));
        }
        if let Some(template) = &self.template_id {
            select = select.filter(Column::TemplateId.eq(template.as_str()));
        }
        if let Some(status) = self.status {
            select = select.filter(Column::Status.eq(status.as_str()));
        }
        select
    }

    fn numbers(&self) -> Select<CountEntity> {
        let (counted, owner) = match &self.agent_id {
            Some(agent) => (Counted::AgentSessions, agent.as_str()),
            None => (Counted::Sessions, ""),
        };
        let mut numbers = count::all(counted).filter(CountColumn::Owner.eq(owner));
        if let Some(template) = &self.template_id {
            numbers = numbers.filter(CountColumn::Subject.eq(template.as_str()));
        }
        if let Some(status) = self.status {
            numbers = numbers.filter(CountColumn::Status.eq(status.as_str()));
        }
        numbers
    }
}

/// Makes `row` of what was read. What touches write is theirs, and changes only if it is meant to.
fn change(row: &Model, current: &Stored<Session>) -> Result<UpdateMany<Entity>, StoreError> {
    let read = Model::of(&current.value, current.version)?;
    let (read_use, new_use) = (read.last_activity_at, row.last_activity_at);
    let row = Model {
        last_activity_at: read_use,
        ..row.clone()
    };
    let mut update = VERSIONED.change(read, row);
    if new_use != read_use {
        let used = activity::later(Column::LastActivityAt, new_use);
        update = update.col_expr(Column::LastActivityAt, used);
    }
    let agent = match &current.value.agent_id {
        Some(agent) => Column::AgentId.eq(agent.as_str()),
        None => Column::AgentId.is_null(),
    };
    Ok(update
        // What its numbers depend on is as it was read, or they would be wrong.
        .filter(Column::TemplateId.eq(current.value.template_id.as_str()))
        .filter(Column::Status.eq(current.value.status.as_str()))
        .filter(Column::NodeId.eq(current.value.node_id.as_str()))
        .filter(agent))
}

impl Records {
    /// Adds a session. Its template must be there.
    pub async fn insert_session(&self, session: &Session) -> Result<Stored<Session>, StoreError> {
        self.insert_session_along(session, &Along::default()).await
    }

    /// The same, with what comes along.
    pub async fn insert_session_along(
        &self,
        session: &Session,
        along: &Along<'_>,
    ) -> Result<Stored<Session>, StoreError> {
        let row = &Model::of(session, FIRST)?;
        let named = Named {
            kind: KIND,
            id: &row.id,
        };
        let template = Named {
            kind: template::KIND,
            id: &row.template_id,
        };
        self.write(|step| async move {
            versioned::add(&step, row.clone(), named, Some(template)).await?;
            let more = along.write(&step, Row::Held).await?;
            let counts = row::counts(session).into_iter().chain(more);
            count::shift(&step, [], counts).await?;
            step.commit(()).await
        })
        .await?;
        row.clone().read()
    }

    /// The session of that name.
    pub async fn session(&self, id: &SessionId) -> Result<Option<Stored<Session>>, StoreError> {
        let row = Entity::find_by_id(id.as_str()).one(self.reader()).await;
        row.map_err(|error| self.explain(error))?
            .map(Model::read)
            .transpose()
    }

    /// Sessions, newest first.
    pub async fn sessions(
        &self,
        filter: &SessionFilter,
        page: &PageRequest,
    ) -> Result<Page<Stored<Session>>, StoreError> {
        let select = ORDER.page::<_, String>(filter.rows(), page)?;
        let read = async {
            let rows = select.all(self.reader()).await?;
            Ok::<_, Fault>((rows, count::total(self.reader(), filter.numbers()).await?))
        };
        let (rows, total) = read.await.map_err(|fault| self.explain(fault))?;
        let key = |row: &Model| (row.created_at, row.id.clone());
        ORDER.assemble(rows, total, page, key, Model::read)
    }

    /// Replaces a session, if nobody else did since it was read. A later use that
    /// [`Records::touch_session`] noted meanwhile stays, and so does an expiry that this does not
    /// change.
    pub async fn update_session(
        &self,
        current: &Stored<Session>,
        new: &Session,
    ) -> Result<Stored<Session>, StoreError> {
        let nothing = Along::default();
        self.update_session_along(current, new, &nothing).await
    }

    /// The same, with what comes along.
    pub async fn update_session_along(
        &self,
        current: &Stored<Session>,
        new: &Session,
        along: &Along<'_>,
    ) -> Result<Stored<Session>, StoreError> {
        let row = &Model::of(new, current.version + 1)?;
        let named = Named {
            kind: KIND,
            id: current.value.id.as_str(),
        };
        let template = Named {
            kind: template::KIND,
            id: &row.template_id,
        };
        named.stays(&row.id)?;
        let update = &change(row, current)?;
        self.write(|step| async move {
            match step.change(update, 1).await {
                Ok(true) => {}
                Ok(false) => return Err(VERSIONED.refusal::<Entity>(&step, named).await?.into()),
                Err(fault) if fault.is_broken_reference() => return Err(template.missing().into()),
                Err(fault) => return Err(fault),
            }
            let more = along.write(&step, Row::Held).await?;
            let counts = row::counts(new).into_iter().chain(more);
            count::shift(&step, row::counts(&current.value), counts).await?;
            step.commit(()).await
        })
        .await?;
        row.clone().read()
    }

    /// Up to `limit` sessions on a node that are not over and were last used before `time`, the longest
    /// idle first.
    pub async fn sessions_idle_since(
        &self,
        time: Timestamp,
        node: &NodeId,
        limit: u64,
    ) -> Result<Vec<Stored<Session>>, StoreError> {
        self.live_before(Column::LastActivityAt, time, node, limit)
            .await
    }

    /// Up to `limit` sessions on a node that are not over but expired before `time`, the longest
    /// expired first.
    pub async fn sessions_expired_before(
        &self,
        time: Timestamp,
        node: &NodeId,
        limit: u64,
    ) -> Result<Vec<Stored<Session>>, StoreError> {
        self.live_before(Column::ExpiresAt, time, node, limit).await
    }

    /// Up to `limit` sessions on a node that are not over and were made before `time`, the oldest
    /// first.
    pub async fn sessions_older_than(
        &self,
        time: Timestamp,
        node: &NodeId,
        limit: u64,
    ) -> Result<Vec<Stored<Session>>, StoreError> {
        self.live_before(Column::CreatedAt, time, node, limit).await
    }

    async fn live_before(
        &self,
        column: Column,
        time: Timestamp,
        node: &NodeId,
        limit: u64,
    ) -> Result<Vec<Stored<Session>>, StoreError> {
        let select = Entity::find()
            .filter(Column::NodeId.eq(node.as_str()))
            .filter(Column::IsOver.eq(false))
            .filter(column.lt(micros(time)))
            .order_by_asc(column)
            .limit(limit);
        self.read_sessions(select).await
    }

    /// Every session on a node that is not over.
    pub async fn live_sessions_on(
        &self,
        node: &NodeId,
    ) -> Result<Vec<Stored<Session>>, StoreError> {
        let select = Entity::find()
            .filter(Column::NodeId.eq(node.as_str()))
            .filter(Column::IsOver.eq(false));
        self.read_sessions(select).await
    }

    /// Which of these sessions are over.
    pub async fn over_among(
        &self,
        sessions: &[SessionId],
    ) -> Result<BTreeSet<SessionId>, StoreError> {
        let mut over = BTreeSet::new();
        for some in sessions.chunks(AT_ONCE) {
            let ids = some.iter().map(SessionId::as_str);
            let found = Entity::find()
                .filter(Column::Id.is_in(ids))
                .filter(Column::IsOver.eq(true))
                .select_only()
                .column(Column::Id)
                .into_tuple::<String>()
                .all(self.reader())
                .await;
            for id in found.map_err(|error| self.explain(error))? {
                let reading = Reading {
                    kind: KIND,
                    id: &id,
                };
                over.insert(reading.parse("id", &id)?);
            }
        }
        Ok(over)
    }

    /// How many sessions there are in each status that is not an end.
    pub async fn live_session_counts(&self) -> Result<BTreeMap<SessionStatus, u64>, StoreError> {
        let live = SessionStatus::ALL.into_iter();
        let live = live.filter(|status| !status.is_over());
        let mut counts: BTreeMap<SessionStatus, u64> = live.map(|status| (status, 0)).collect();
        for (_, status, number) in self.live_numbers().await? {
            *counts.entry(status).or_default() += number;
        }
        Ok(counts)
    }

    /// How many sessions that are not over each node has. One that has none may be absent.
    pub async fn live_session_counts_by_node(&self) -> Result<BTreeMap<NodeId, u64>, StoreError> {
        let mut counts = BTreeMap::new();
        for (node, _, number) in self.live_numbers().await? {
            *counts.entry(node).or_default() += number;
        }
        Ok(counts)
    }

    async fn live_numbers(&self) -> Result<Vec<(NodeId, SessionStatus, u64)>, StoreError> {
        let numbers = count::by_owner_and_status(self.reader(), Counted::LiveSessions).await;
        let numbers = numbers.map_err(|fault| self.explain(fault))?;
        let read = |(node, status, number): (String, String, u64)| {
            let reading = Reading {
                kind: "the number of sessions on node",
                id: &node,
            };
            let status = reading.parse("status", &status)?;
            Ok((reading.parse("node_id", &node)?, status, number))
        };
        numbers.into_iter().map(read).collect()
    }

    /// The agent's latest persistent session, over or not: where its workspace is.
    pub async fn latest_persistent_session(
        &self,
        agent: &str,
    ) -> Result<Option<Stored<Session>>, StoreError> {
        let select = Entity::find()
            .filter(Column::AgentId.eq(agent))
            .filter(Column::Mode.eq(SessionMode::Persistent.as_str()))
            .order_by_desc(Column::CreatedAt)
            .order_by_desc(Column::Id)
            .limit(1);
        Ok(self.read_sessions(select).await?.pop())
    }

    async fn read_sessions(
        &self,
        select: Select<Entity>,
    ) -> Result<Vec<Stored<Session>>, StoreError> {
        let rows = select.all(self.reader()).await;
        let rows = rows.map_err(|error| self.explain(error))?;
        rows.into_iter().map(Model::read).collect()
    }
}
