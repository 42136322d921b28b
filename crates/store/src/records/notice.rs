//! What happened to sessions, in the order in which their watchers are told.
//!
//! A watcher that lost its connection asks for what came after the last notice it saw. So no notice
//! may appear behind one that was seen: those of one session are written one at a time, each
//! holding the session's row until it is there for everybody.

use sandbox_model::{SessionId, SessionNotice};
use sea_orm::{ActiveValue, ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use super::Records;
use super::clock;
use super::error::StoreError;
use super::rows::notice::{ActiveModel, Column, Entity, Model};
use super::rows::session;
use super::value::{micros, short, text};
use super::versioned::Named;

impl Records {
    /// Writes down what happened to a session; `detail` is JSON text. Its number is greater than
    /// that of every notice the session had.
    pub async fn append_notice(
        &self,
        session: &SessionId,
        kind: &str,
        detail: &str,
    ) -> Result<SessionNotice, StoreError> {
        let (kind, detail) = (&short("kind", kind)?, &text("detail", detail)?);
        let named = Named {
            kind: session::KIND,
            id: session.as_str(),
        };
        self.write(|step| async move {
            let found = session::Entity::find_by_id(session.as_str())
                .select_only()
                .column(session::Column::Id);
            let found: Option<String> = step.hold(found).into_tuple().one(&step).await?;
            found.ok_or_else(|| named.missing())?;
            let at = clock::now(&step).await?;
            let row = ActiveModel {
                id: ActiveValue::NotSet,
                session_id: ActiveValue::Set(session.to_string()),
                kind: ActiveValue::Set(kind.clone()),
                noted_at: ActiveValue::Set(micros(at)),
                detail: ActiveValue::Set(detail.clone()),
            };
            let inserted = Entity::insert(row).exec(&step).await?;
            let notice = SessionNotice {
                id: inserted.last_insert_id,
                session_id: session.clone(),
                kind: kind.clone(),
                detail: detail.clone(),
                at,
            };
            step.commit(notice).await
        })
        .await
    }

    /// Up to `limit` notices of a session that came after the one numbered `after`, in their order.
    /// All come after 0.
    pub async fn notices(
        &self,
        session: &SessionId,
        after: i64,
        limit: u64,
    ) -> Result<Vec<SessionNotice>, StoreError> {
        let rows = Entity::find()
            .filter(Column::SessionId.eq(session.as_str()))
            .filter(Column::Id.gt(after))
            .order_by_asc(Column::Id)
            .limit(limit)
            .all(self.reader())
            .await;
        let rows = rows.map_err(|error| self.explain(error))?;
        rows.into_iter().map(Model::read).collect()
    }
}
