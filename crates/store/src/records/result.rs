//! What executions came to.
//!
//! A result is reported once. The executor may report it again when it did not hear our answer, so a
//! result is kept with the digest of its report: the same one again is welcome, another one is not.

use sandbox_model::execution::Artifact;
use sandbox_model::{Execution, ExecutionId, ExecutionResult};
use sea_orm::{ConnectionTrait, EntityTrait, QuerySelect};

use super::along::Along;
use super::artifact;
use super::error::{Fault, StoreError};
use super::notice::Row;
use super::rows::{execution, result};
use super::versioned::{self, Named};
use super::{Records, Stored};

/// What an executor reported.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// What tells this report from another one.
    pub digest: &'a str,
    /// What the execution printed, returned and used.
    pub result: &'a ExecutionResult,
    /// The files it made, also those that were told of before.
    pub artifacts: &'a [Artifact],
}

/// What a report was.
#[derive(Debug, Clone, PartialEq)]
pub enum Reported {
    /// The first: now kept, with the execution as it ended.
    First(Box<Stored<Execution>>),
    /// The one that is kept already.
    Same,
    /// Not the one that is kept.
    Different,
}

impl Records {
    /// Ends an execution with what was reported, all of it or nothing. Of two reports at once one is
    /// the first; the other is told which it was. [`StoreError::Stale`] when the execution was
    /// changed meanwhile by something that is not a report.
    pub async fn finish(
        &self,
        current: &Stored<Execution>,
        ended: &Execution,
        report: &Report<'_>,
    ) -> Result<Reported, StoreError> {
        let nothing = Along::default();
        self.finish_along(current, ended, report, &nothing).await
    }

    /// The same, with what comes along where this report is the first.
    pub async fn finish_along(
        &self,
        current: &Stored<Execution>,
        ended: &Execution,
        report: &Report<'_>,
        along: &Along<'_>,
    ) -> Result<Reported, StoreError> {
        let row = &execution::Model::of(ended, current.version + 1)?;
        let id = current.value.id.as_str();
        let named = Named {
            kind: execution::KIND,
            id,
        };
        named.stays(&row.id)?;
        let kept = &result::Model::of(id, report.digest, report.result)?;
        let files = &artifact::rows(&current.value.id, report.artifacts)?;
        let outcome = self
            .write(|step| async move {
                super::execution::replace(&step, current, row).await?;
                let named = Named {
                    kind: result::KIND,
                    id,
                };
                versioned::add(&step, kept.clone(), named, None).await?;
                artifact::keep(&step, id, files).await?;
                let more = along.write(&step, Row::Free).await?;
                super::execution::shift(&step, current, row, more).await?;
                let first = Reported::First(Box::new(row.clone().read()?));
                step.commit(first).await
            })
            .await;
        match outcome {
            // Perhaps by a report that was there before.
            Err(error) if is_late(&error) => {
                let known = self.reported(&current.value.id, report.digest).await?;
                known.ok_or(error)
            }
            outcome => outcome,
        }
    }

    /// Whether an execution's report is kept, and whether it is the one with this digest.
    pub async fn reported(
        &self,
        id: &ExecutionId,
        digest: &str,
    ) -> Result<Option<Reported>, StoreError> {
        let known = known(self.reader(), id.as_str(), digest).await;
        known.map_err(|fault| self.explain(fault))
    }

    /// What an execution printed, returned and used.
    pub async fn result(&self, id: &ExecutionId) -> Result<Option<ExecutionResult>, StoreError> {
        let row = result::Entity::find_by_id(id.as_str())
            .one(self.reader())
            .await;
        row.map_err(|error| self.explain(error))?
            .map(result::Model::read)
            .transpose()
    }
}

fn is_late(error: &StoreError) -> bool {
    match error {
        StoreError::Stale { .. } => true,
        StoreError::Exists { kind, .. } => *kind == result::KIND,
        _ => false,
    }
}

async fn known(
    connection: &impl ConnectionTrait,
    execution: &str,
    digest: &str,
) -> Result<Option<Reported>, Fault> {
    let kept: Option<String> = result::Entity::find_by_id(execution)
        .select_only()
        .column(result::Column::Digest)
        .into_tuple()
        .one(connection)
        .await?;
    Ok(kept.map(|kept| match kept == digest {
        true => Reported::Same,
        false => Reported::Different,
    }))
}
