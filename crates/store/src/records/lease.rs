//! Leases: who of several servers does a thing, for a while.
//!
//! A lease has an epoch that grows each time somebody takes it. To take it is to move the row from
//! the epoch at which it was seen to have ended to the next one, in a statement that looks again;
//! of two that saw the same epoch one moves it, the other finds it moved. Time is the database's,
//! so it does not matter whose clock is wrong. Whoever acts under a lease can put the epoch to what
//! it writes: a server that slept through the end of its lease carries an old one.

use std::time::Duration;

use sea_orm::sea_query::{Expr, ExprTrait, SimpleExpr};
use sea_orm::{
    ActiveValue, ColumnTrait, ConnectionTrait, EntityTrait, FromQueryResult, QueryFilter,
    QuerySelect,
};

use super::Records;
use super::clock;
use super::error::{Fault, StoreError};
use super::rows::lease::{ActiveModel, Column, Entity};
use super::value::{micros, number, short};

/// A lease that was held when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Of what.
    pub name: String,
    /// Whose.
    pub holder: String,
    /// How often it had been taken by then.
    pub epoch: i64,
}

/// A lease's row, and whether it has ended by the database's clock.
#[derive(FromQueryResult)]
struct Seen {
    holder: String,
    epoch: i64,
    is_over: bool,
}

impl Records {
    /// Takes a lease that nobody holds, for `term`. None when somebody does, be it `holder` itself.
    pub async fn acquire_lease(
        &self,
        name: &str,
        holder: &str,
        term: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        let (name, holder) = (&short("name", name)?, &short("holder", holder)?);
        let term = micros_of(term)?;
        let taken = self.write_at_once(|connection| async move {
            let epoch = match see(&connection, name).await? {
                None => add(&connection, name, holder, term).await?,
                Some(seen) if !seen.is_over => None,
                Some(seen) => take(&connection, name, holder, term, seen.epoch).await?,
            };
            Ok(epoch.map(|epoch| Lease {
                name: name.clone(),
                holder: holder.clone(),
                epoch,
            }))
        });
        taken.await.map_err(|fault| self.explain(fault))
    }

    /// Holds a lease for `term` from now on. `false` when it has ended or somebody else took it: then
    /// it must be acquired anew.
    pub async fn renew_lease(&self, lease: &Lease, term: Duration) -> Result<bool, StoreError> {
        let term = micros_of(term)?;
        let renewed = self.write_at_once(|connection| async move {
            let now = clock::expression(connection.get_database_backend());
            let updated = Entity::update_many()
                .col_expr(Column::ExpiresAt, now.clone().add(term))
                .filter(Column::Name.eq(&*lease.name))
                .filter(Column::Holder.eq(&*lease.holder))
                .filter(Column::Epoch.eq(lease.epoch))
                .filter(Expr::col(Column::ExpiresAt).gt(now))
                .exec(&connection)
                .await?;
            Ok(updated.rows_affected == 1)
        });
        renewed.await.map_err(|fault| self.explain(fault))
    }

    /// Gives a lease back before it ends. One that is no longer held is left to whoever holds it.
    pub async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        let released = self.write_at_once(|connection| async move {
            Ok(Entity::update_many()
                .col_expr(Column::ExpiresAt, Expr::value(0i64))
                .filter(Column::Name.eq(&*lease.name))
                .filter(Column::Holder.eq(&*lease.holder))
                .filter(Column::Epoch.eq(lease.epoch))
                .exec(&connection)
                .await?)
        });
        released.await.map_err(|fault| self.explain(fault))?;
        Ok(())
    }

    /// Who holds a lease.
    pub async fn lease_holder(&self, name: &str) -> Result<Option<Lease>, StoreError> {
        let seen = see(self.reader(), name).await;
        let seen = seen.map_err(|fault| self.explain(fault))?;
        Ok(seen.filter(|seen| !seen.is_over).map(|seen| Lease {
            name: name.to_owned(),
            holder: seen.holder,
            epoch: seen.epoch,
        }))
    }
}

fn micros_of(term: Duration) -> Result<i64, StoreError> {
    let most = u64::try_from(term.as_micros()).unwrap_or(u64::MAX);
    // Half of what fits, so that the time it ends at fits, too.
    Ok(Ord::min(number("term", most)?, i64::MAX / 2))
}

async fn see(connection: &impl ConnectionTrait, name: &str) -> Result<Option<Seen>, Fault> {
    let now = clock::expression(connection.get_database_backend());
    let is_over: SimpleExpr = Expr::col(Column::ExpiresAt).lte(now);
    Ok(Entity::find_by_id(name)
        .select_only()
        .columns([Column::Holder, Column::Epoch])
        .column_as(is_over, "is_over")
        .into_model::<Seen>()
        .one(connection)
        .await?)
}

/// Takes a lease that nobody ever held.
async fn add(
    connection: &impl ConnectionTrait,
    name: &str,
    holder: &str,
    term: i64,
) -> Result<Option<i64>, Fault> {
    let now = clock::now(connection).await?;
    let row = ActiveModel {
        name: ActiveValue::Set(name.to_owned()),
        holder: ActiveValue::Set(holder.to_owned()),
        epoch: ActiveValue::Set(1),
        expires_at: ActiveValue::Set(micros(now).saturating_add(term)),
    };
    let insert = Entity::insert(row);
    match insert
        .exec_without_returning(connection)
        .await
        .map_err(Fault::from)
    {
        Ok(_) => Ok(Some(1)),
        Err(fault) if fault.is_duplicate() => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// Takes a lease that ended at `epoch`, unless somebody did meanwhile.
async fn take(
    connection: &impl ConnectionTrait,
    name: &str,
    holder: &str,
    term: i64,
    epoch: i64,
) -> Result<Option<i64>, Fault> {
    let now = clock::expression(connection.get_database_backend());
    let updated = Entity::update_many()
        .col_expr(Column::Holder, Expr::value(holder))
        .col_expr(Column::Epoch, Expr::value(epoch + 1))
        .col_expr(Column::ExpiresAt, now.clone().add(term))
        .filter(Column::Name.eq(name))
        .filter(Column::Epoch.eq(epoch))
        .filter(Expr::col(Column::ExpiresAt).lte(now))
        .exec(connection)
        .await?;
    Ok((updated.rows_affected == 1).then_some(epoch + 1))
}
