//! Files that executions made.
//!
//! An executor tells of a file as soon as it is there, and may tell of it again, at the latest with
//! the result. So a file is known by its path: one that is told again keeps the identifier it has,
//! and is otherwise as it was told last. Those of one execution are written one at a time, each
//! writer holding the execution's row.

use std::collections::BTreeMap;

use sandbox_model::ExecutionId;
use sandbox_model::execution::Artifact;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder,
    QuerySelect,
};

use super::Records;
use super::error::{Fault, StoreError};
use super::rows::artifact::{Column, Entity, Model};
use super::rows::{execution, result};
use super::transaction::Step;
use super::versioned::Named;

/// How many rows one statement adds; SQLite takes 32,766 values.
const AT_ONCE: usize = 500;

/// The rows of what an execution is said to have made, one for each path.
pub(super) fn rows(
    execution: &ExecutionId,
    artifacts: &[Artifact],
) -> Result<Vec<Model>, StoreError> {
    let mut rows: Vec<Model> = Vec::new();
    let mut places = BTreeMap::new();
    for artifact in artifacts {
        if artifact.execution_id != *execution {
            return Err(StoreError::Unkeepable {
                field: "execution_id",
                problem: "of an artifact is that of another execution",
            });
        }
        let row = Model::of(artifact)?;
        let place = *places.entry(&*artifact.path).or_insert(rows.len());
        match rows.get_mut(place) {
            Some(known) => *known = row.in_place_of(known),
            None => rows.push(row),
        }
    }
    Ok(rows)
}

/// What files that were told of come to, beside those that are known.
struct Change {
    /// How many are known.
    known: usize,
    /// Those that are not.
    new: Vec<Model>,
    /// Those that are otherwise than they were.
    other: Vec<Model>,
    /// All that were told of, as they are kept when this is done.
    kept: Vec<Model>,
}

impl Change {
    /// What `told` comes to, within a transaction that holds the execution's row.
    async fn of(step: &Step, execution: &str, told: &[Model]) -> Result<Change, Fault> {
        let mut change = Change {
            known: 0,
            new: Vec::new(),
            other: Vec::new(),
            kept: Vec::new(),
        };
        if told.is_empty() {
            return Ok(change);
        }
        let known = Entity::find()
            .filter(Column::ExecutionId.eq(execution))
            .all(step)
            .await?;
        change.known = known.len();
        let known: BTreeMap<&str, &Model> = known.iter().map(|row| (&*row.path, row)).collect();
        for row in told {
            let kept = match known.get(&*row.path) {
                None => {
                    change.new.push(row.clone());
                    row.clone()
                }
                Some(known) if row.tells_the_same_as(known) => Model::clone(known),
                Some(known) => {
                    let row = row.clone().in_place_of(known);
                    change.other.push(row.clone());
                    row
                }
            };
            change.kept.push(kept);
        }
        Ok(change)
    }

    fn is_nothing(&self) -> bool {
        self.new.is_empty() && self.other.is_empty()
    }

    /// Does it. Gives those that were told of as they are kept.
    async fn write(self, step: &Step, execution: &str) -> Result<Vec<Model>, Fault> {
        for row in self.other {
            let id = row.id.clone();
            Entity::update_many()
                .set(row.into_active_model().reset_all())
                .filter(Column::Id.eq(id))
                .exec(step)
                .await?;
        }
        let taken = Named {
            kind: "an artifact of execution",
            id: execution,
        };
        for some in self.new.chunks(AT_ONCE) {
            let some = some.iter().map(|row| row.clone().into_active_model());
            let insert = Entity::insert_many(some);
            match insert
                .exec_without_returning(step)
                .await
                .map_err(Fault::from)
            {
                Ok(_) => {}
                Err(fault) if fault.is_duplicate() => return Err(taken.exists().into()),
                Err(fault) => return Err(fault),
            }
        }
        Ok(self.kept)
    }
}

/// Keeps files within a transaction that holds their execution's row.
pub(super) async fn keep(step: &Step, execution: &str, told: &[Model]) -> Result<(), Fault> {
    let change = Change::of(step, execution, told).await?;
    change.write(step, execution).await?;
    Ok(())
}

/// What became of files that were told of.
#[derive(Debug, Clone, PartialEq)]
pub enum Added {
    /// They are kept, like this.
    New(Vec<Artifact>),
    /// They were kept already, like this.
    Known(Vec<Artifact>),
    /// They are not what is kept, and the execution's result is there: nothing changes any more.
    Late,
    /// The execution would have more files than it may.
    TooMany,
}

impl Records {
    /// Adds files that an execution made, until its result is there and as long as it has no more than `most`. One
    /// whose path is known is not added: it replaces what is known of that path but its identifier.
    pub async fn add_artifacts(
        &self,
        execution: &ExecutionId,
        artifacts: &[Artifact],
        most: usize,
    ) -> Result<Added, StoreError> {
        let told = &rows(execution, artifacts)?;
        let id = execution.as_str();
        let named = Named {
            kind: execution::KIND,
            id,
        };
        let read = |rows: Vec<Model>| -> Result<Vec<Artifact>, StoreError> {
            rows.into_iter().map(Model::read).collect()
        };
        self.write(|step| async move {
            let found = execution::Entity::find_by_id(id)
                .select_only()
                .column(execution::Column::IsOver);
            let found: Option<bool> = step.hold(found).into_tuple().one(&step).await?;
            let is_over = found.ok_or_else(|| named.missing())?;
            let change = Change::of(&step, id, told).await?;
            let added = if change.is_nothing() {
                Added::Known(read(change.kept)?)
            } else if is_over && has_result(&step, id).await? {
                Added::Late
            } else if change.known + change.new.len() > most {
                Added::TooMany
            } else {
                Added::New(read(change.write(&step, id).await?)?)
            };
            step.commit(added).await
        })
        .await
    }

    /// The files that an execution made, oldest first.
    pub async fn artifacts(&self, execution: &ExecutionId) -> Result<Vec<Artifact>, StoreError> {
        let rows = Entity::find()
            .filter(Column::ExecutionId.eq(execution.as_str()))
            .order_by_asc(Column::CreatedAt)
            .order_by_asc(Column::Id)
            .all(self.reader())
            .await;
        let rows = rows.map_err(|error| self.explain(error))?;
        rows.into_iter().map(Model::read).collect()
    }
}

async fn has_result(step: &Step, execution: &str) -> Result<bool, Fault> {
    let found: Option<String> = result::Entity::find_by_id(execution)
        .select_only()
        .column(result::Column::ExecutionId)
        .into_tuple()
        .one(step)
        .await?;
    Ok(found.is_some())
}
