//! When sessions were last used.
//!
//! Whatever is asked of a session is a use of it, so this is written often, and it says nothing
//! else about the session: the version stays. Times move forward only, in whatever order they
//! arrive; [`Records::update_session`] takes part in that.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sandbox_model::SessionId;
use sea_orm::sea_query::{
    CaseStatement, Expr, ExprTrait, Func, LockType, SelectStatement, SimpleExpr,
};
use sea_orm::{
    ColumnTrait, DbBackend, EntityTrait, QueryFilter, QueryOrder, QuerySelect, UpdateMany,
};

use super::Records;
use super::error::StoreError;
use super::rows::session::{Column, Entity};
use super::value::micros;

/// How many sessions one statement touches. The databases take more, but look through the list of
/// times for each session.
const AT_ONCE: usize = 200;

/// The later one of the time that a column has and another one.
pub(super) fn later(column: Column, time: impl Into<SimpleExpr>) -> SimpleExpr {
    Func::greatest([Expr::col(column), time.into()]).into()
}

impl Records {
    /// Notes that a session was used at `time`, and that it does not expire before `expires_at`.
    /// `false` when there is no such session, or it is over.
    pub async fn touch_session(
        &self,
        id: &SessionId,
        time: Timestamp,
        expires_at: Option<Timestamp>,
    ) -> Result<bool, StoreError> {
        let mut update = Entity::update_many()
            .col_expr(
                Column::LastActivityAt,
                later(Column::LastActivityAt, micros(time)),
            )
            .filter(Column::Id.eq(id.as_str()))
            .filter(Column::IsOver.eq(false));
        if let Some(expires_at) = expires_at {
            let expiry = later(Column::ExpiresAt, micros(expires_at));
            update = update.col_expr(Column::ExpiresAt, expiry);
        }
        Ok(self.touch(update).await? == 1)
    }

    /// Notes when each of many sessions was used, a statement for every two hundred of them, and
    /// tells how many of them were there and not over. One that is named twice was used at the
    /// later time.
    pub async fn touch_sessions(&self, uses: &[(SessionId, Timestamp)]) -> Result<u64, StoreError> {
        let mut latest: BTreeMap<&str, i64> = BTreeMap::new();
        for (id, time) in uses {
            let known = latest.entry(id.as_str()).or_insert(i64::MIN);
            *known = Ord::max(*known, micros(*time));
        }
        let latest: Vec<(&str, i64)> = latest.into_iter().collect();
        let mut touched = 0;
        for some in latest.chunks(AT_ONCE) {
            let mut time = CaseStatement::new();
            for (id, at) in some {
                time = time.case(Expr::col(Column::Id).eq(*id), *at);
            }
            let time = later(
                Column::LastActivityAt,
                time.finally(Expr::col(Column::LastActivityAt)),
            );
            let ids = some.iter().map(|(id, _)| *id);
            let live = Column::Id.is_in(ids).and(Column::IsOver.eq(false));
            let mut update = Entity::update_many()
                .col_expr(Column::LastActivityAt, time)
                .filter(live.clone());
            if self.reader().get_database_backend() == DbBackend::Postgres {
                update = update.filter(Column::Id.in_subquery(locked_in_order(live)));
            }
            touched += self.touch(update).await?;
        }
        Ok(touched)
    }

    async fn touch(&self, update: UpdateMany<Entity>) -> Result<u64, StoreError> {
        let update = &update;
        let updated = self
            .write_at_once(|connection| async move { Ok(update.clone().exec(&connection).await?) })
            .await;
        let updated = updated.map_err(|fault| self.explain(fault))?;
        Ok(updated.rows_affected)
    }
}

/// Locks the rows from the first identifier to the last, so that two servers that touch the same
/// sessions do not wait for each other. The other databases go in that order by themselves.
fn locked_in_order(rows: SimpleExpr) -> SelectStatement {
    let mut select = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(rows)
        .order_by_asc(Column::Id)
        .lock(LockType::NoKeyUpdate);
    QuerySelect::query(&mut select).to_owned()
}
