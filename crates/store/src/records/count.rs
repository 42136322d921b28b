//! How many records there are of each kind.
//!
//! To count rows takes as long as there are rows, and every list tells its total. So the numbers
//! are kept: each transaction that adds a record or moves it from one status to another also moves
//! the number. The numbers that everybody moves are spread over a few slots, chosen by the record's
//! identifier, so that not every writer waits for the same row.

use std::collections::BTreeMap;

use sea_orm::sea_query::{Expr, ExprTrait, Func, OnConflict, SimpleExpr};
use sea_orm::{ActiveValue, ColumnTrait, ConnectionTrait, DbBackend, EntityTrait, QueryFilter};
use sea_orm::{QuerySelect, Select};

use super::error::Fault;
use super::page::sum;
use super::rows::count::{ActiveModel, Column, Entity};
use super::transaction::Step;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Counted {
    /// Sessions, by template and status.
    Sessions,
    /// Sessions of an agent, by template and status.
    AgentSessions,
    /// Executions of a session, by status.
    Executions,
    /// Containers, by runtime and status.
    Containers,
    /// What is in the audit.
    Audit,
    /// Sessions on a node that are not over, by status.
    LiveSessions,
    /// Executions that are not over.
    LiveExecutions,
}

impl Counted {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Counted::Sessions => "sessions",
            Counted::AgentSessions => "agent_sessions",
            Counted::Executions => "executions",
            Counted::Containers => "containers",
            Counted::Audit => "audit",
            Counted::LiveSessions => "live_sessions",
            Counted::LiveExecutions => "live_executions",
        }
    }

    fn slots(self) -> u32 {
        match self {
            Counted::AgentSessions | Counted::Executions => 1,
            _ => 8,
        }
    }
}

/// One of the numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    counted: Counted,
    owner: String,
    subject: String,
    status: String,
    slot: i64,
}

impl Key {
    /// The number that the record `id` is part of. `owner` and `subject` are empty where there is
    /// none.
    pub(super) fn of(id: &str, counted: Counted, owner: &str, subject: &str, status: &str) -> Key {
        Key {
            counted,
            owner: owner.to_owned(),
            subject: subject.to_owned(),
            status: status.to_owned(),
            slot: i64::from(sum(id.as_bytes()) % counted.slots()),
        }
    }

    fn row(self, number: i64) -> ActiveModel {
        ActiveModel {
            counted: ActiveValue::Set(self.counted.as_str().to_owned()),
            owner: ActiveValue::Set(self.owner),
            subject: ActiveValue::Set(self.subject),
            status: ActiveValue::Set(self.status),
            slot: ActiveValue::Set(self.slot),
            number: ActiveValue::Set(number),
        }
    }
}

/// Takes a record out of the numbers `before` and puts it into those `after`.
///
/// This comes last in a transaction, because others wait for these rows; and always in the same
/// order, because two that wait for each other wait for ever.
pub(super) async fn shift(
    step: &Step,
    before: impl IntoIterator<Item = Key>,
    after: impl IntoIterator<Item = Key>,
) -> Result<(), Fault> {
    let mut changes: BTreeMap<Key, i64> = BTreeMap::new();
    for key in before {
        *changes.entry(key).or_default() -= 1;
    }
    for key in after {
        *changes.entry(key).or_default() += 1;
    }
    changes.retain(|_, change| *change != 0);
    if changes.is_empty() {
        return Ok(());
    }
    let sum = match step.get_database_backend() {
        DbBackend::MySql => "number + VALUES(number)",
        _ => "counts.number + excluded.number",
    };
    let or_add = OnConflict::columns([
        Column::Counted,
        Column::Owner,
        Column::Subject,
        Column::Status,
        Column::Slot,
    ])
    .value(Column::Number, Expr::cust(sum))
    .to_owned();
    let rows = changes.len() as u64;
    let rows_changed = changes.into_iter().map(|(key, change)| key.row(change));
    let shift = Entity::insert_many(rows_changed).on_conflict(or_add);
    // MySQL counts a row that was there twice.
    step.change(&shift, rows).await?;
    Ok(())
}

/// Drops the numbers of an owner who is gone. By then they are zero.
pub(super) async fn forget(step: &Step, counted: Counted, owner: &str) -> Result<(), Fault> {
    Entity::delete_many()
        .filter(Column::Counted.eq(counted.as_str()))
        .filter(Column::Owner.eq(owner))
        .exec(step)
        .await?;
    Ok(())
}

/// Which numbers to add up.
pub(super) fn all(counted: Counted) -> Select<Entity> {
    Entity::find().filter(Column::Counted.eq(counted.as_str()))
}

/// What the numbers add up to.
pub(super) async fn total(
    connection: &impl ConnectionTrait,
    numbers: Select<Entity>,
) -> Result<u64, Fault> {
    let total: Option<i64> = numbers
        .select_only()
        .column_as(whole_sum(connection), "total")
        .into_tuple()
        .one(connection)
        .await?;
    Ok(unsigned(total.unwrap_or(0)))
}

/// What the numbers of each owner and status add up to, where that is not zero.
pub(super) async fn by_owner_and_status(
    connection: &impl ConnectionTrait,
    counted: Counted,
) -> Result<Vec<(String, String, u64)>, Fault> {
    // In the order of the key, so that nothing has to be sorted.
    let key = [Column::Owner, Column::Subject, Column::Status];
    let mut select = all(counted)
        .select_only()
        .columns([Column::Owner, Column::Status])
        .column_as(whole_sum(connection), "total");
    for column in key {
        select = select.group_by(column);
    }
    let rows: Vec<(String, String, i64)> = select.into_tuple().all(connection).await?;
    let rows = rows.into_iter();
    let rows = rows.map(|(owner, status, total)| (owner, status, unsigned(total)));
    Ok(rows.filter(|(_, _, total)| *total > 0).collect())
}

/// PostgreSQL and MySQL add whole numbers up to a decimal.
fn whole_sum(connection: &impl ConnectionTrait) -> SimpleExpr {
    let whole = match connection.get_database_backend() {
        DbBackend::MySql => "signed",
        _ => "bigint",
    };
    let sum = Func::coalesce([Expr::col(Column::Number).sum(), Expr::value(0i64)]);
    Expr::expr(sum).cast_as(whole)
}

fn unsigned(total: i64) -> u64 {
    u64::try_from(total).unwrap_or(0)
}
