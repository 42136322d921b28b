//! Rows with a version: adding them, and replacing them if nobody else did.

use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, ModelTrait,
    QueryFilter, QuerySelect, UpdateMany,
};

use super::error::{Fault, StoreError};
use super::transaction::Step;

/// The version of what was just added.
pub(super) const FIRST: i64 = 1;

/// A record, by what it is and what it is called.
#[derive(Clone, Copy)]
pub(super) struct Named<'a> {
    pub kind: &'static str,
    pub id: &'a str,
}

impl Named<'_> {
    pub(super) fn exists(self) -> StoreError {
        let (kind, id) = (self.kind, self.id.to_owned());
        StoreError::Exists { kind, id }
    }

    pub(super) fn missing(self) -> StoreError {
        let (kind, id) = (self.kind, self.id.to_owned());
        StoreError::Missing { kind, id }
    }

    pub(super) fn stale(self) -> StoreError {
        let (kind, id) = (self.kind, self.id.to_owned());
        StoreError::Stale { kind, id }
    }

    /// Identifiers do not change.
    pub(super) fn stays(self, id: &str) -> Result<(), StoreError> {
        let (kind, own) = (self.kind, self.id.to_owned());
        match own == id {
            true => Ok(()),
            false => Err(StoreError::Renamed { kind, id: own }),
        }
    }
}

/// Adds a row by itself. One of its name is told by name.
pub(super) async fn insert<M, A>(
    connection: &impl ConnectionTrait,
    row: M,
    named: Named<'_>,
) -> Result<(), Fault>
where
    M: IntoActiveModel<A>,
    A: ActiveModelTrait + Send,
{
    let insert = A::Entity::insert(row.into_active_model());
    let outcome = insert.exec_without_returning(connection).await;
    match outcome.map_err(Fault::from) {
        Ok(_) => Ok(()),
        Err(fault) if fault.is_duplicate() => Err(named.exists().into()),
        Err(fault) => Err(fault),
    }
}

/// Adds a row within a transaction. One of its name, or the lack of the `parent` it refers to, is told by
/// name.
pub(super) async fn add<M, A>(
    step: &Step,
    row: M,
    named: Named<'_>,
    parent: Option<Named<'_>>,
) -> Result<(), Fault>
where
    M: IntoActiveModel<A>,
    A: ActiveModelTrait,
{
    let insert = A::Entity::insert(row.into_active_model());
    match (step.change(&insert, 1).await, parent) {
        (Ok(_), _) => Ok(()),
        (Err(fault), _) if fault.is_duplicate() => Err(named.exists().into()),
        (Err(fault), Some(parent)) if fault.is_broken_reference() => Err(parent.missing().into()),
        (Err(fault), _) => Err(fault),
    }
}

/// The columns of a table by which a row is found.
pub(super) struct Versioned<C> {
    pub id: C,
    pub version: C,
}

impl<C: ColumnTrait> Versioned<C> {
    /// Replaces the row if it still has the version that `expected` says; `false` if not. What is
    /// not set in `row` stays.
    pub(super) async fn replace<A>(
        &self,
        connection: &impl ConnectionTrait,
        mut row: A,
        id: &str,
        expected: i64,
    ) -> Result<bool, Fault>
    where
        A: ActiveModelTrait,
        A::Entity: EntityTrait<Column = C>,
    {
        row.not_set(self.id);
        row.set(self.version, (expected + 1).into());
        let updated = A::Entity::update_many()
            .set(row)
            .filter(self.id.eq(id))
            .filter(self.version.eq(expected))
            .exec(connection)
            .await?;
        Ok(updated.rows_affected == 1)
    }

    /// Why a row was not replaced.
    pub(super) async fn refusal<E: EntityTrait<Column = C>>(
        &self,
        connection: &impl ConnectionTrait,
        named: Named<'_>,
    ) -> Result<StoreError, Fault> {
        let version: Option<i64> = E::find()
            .filter(self.id.eq(named.id))
            .select_only()
            .column(self.version)
            .into_tuple()
            .one(connection)
            .await?;
        Ok(match version {
            Some(_) => named.stale(),
            None => named.missing(),
        })
    }

    /// The statement that makes `after` of a row that was read as `before`, if it still has the
    /// version it had then. Only what differs is written: an index of what stays is left alone.
    pub(super) fn change<M, A>(&self, before: M, after: M) -> UpdateMany<M::Entity>
    where
        M: ModelTrait + IntoActiveModel<A>,
        M::Entity: EntityTrait<Column = C>,
        A: ActiveModelTrait<Entity = M::Entity>,
    {
        let mut change = A::default();
        for column in C::iter() {
            let value = after.get(column);
            if value != before.get(column) {
                change.set(column, value);
            }
        }
        M::Entity::update_many()
            .set(change)
            .filter(self.id.eq(before.get(self.id)))
            .filter(self.version.eq(before.get(self.version)))
    }
}
