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
use super::rows::execution;
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

/// Keeps files within a transaction that holds their execution's row. Gives them as they are kept.
pub(super) async fn keep(
    step: &Step,
    execution: &str,
    told: &[Model],
) -> Result<Vec<Model>, Fault> {
    if told.is_empty() {
        return Ok(Vec::new());
    }
    let known = Entity::find()
        .filter(Column::ExecutionId.eq(execution))
        .all(step)
        .await?;
    let known: BTreeMap<&str, &Model> = known.iter().map(|row| (&*row.path, row)).collect();
    let mut new = Vec::new();
    let mut kept = Vec::new();
    for row in told {
        let Some(known) = known.get(&*row.path) else {
            new.push(row.clone().into_active_model());
            kept.push(row.clone());
            continue;
        };
        if row.tells_the_same_as(known) {
            kept.push(Model::clone(known));
            continue;
        }
        let row = row.clone().in_place_of(known);
        Entity::update_many()
            .set(row.clone().into_active_model().reset_all())
            .filter(Column::Id.eq(&*row.id))
            .exec(step)
            .await?;
        kept.push(row);
    }
    let taken = Named {
        kind: "an artifact of execution",
        id: execution,
    };
    for some in new.chunks(AT_ONCE) {
        let insert = Entity::insert_many(some.to_vec());
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
    Ok(kept)
}

impl Records {
    /// Adds files that an execution made, and gives them as they are kept. One whose path is known
    /// is not added: it replaces what is known of that path but its identifier.
    pub async fn add_artifacts(
        &self,
        execution: &ExecutionId,
        artifacts: &[Artifact],
    ) -> Result<Vec<Artifact>, StoreError> {
        let told = &rows(execution, artifacts)?;
        let named = Named {
            kind: execution::KIND,
            id: execution.as_str(),
        };
        let kept = self
            .write(|step| async move {
                let found = execution::Entity::find_by_id(execution.as_str())
                    .select_only()
                    .column(execution::Column::Id);
                let found: Option<String> = step.hold(found).into_tuple().one(&step).await?;
                found.ok_or_else(|| named.missing())?;
                let kept = keep(&step, execution.as_str(), told).await?;
                step.commit(kept).await
            })
            .await?;
        kept.into_iter().map(Model::read).collect()
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
