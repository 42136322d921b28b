//! Requests that a client marked with a key of its own, so that it may send them again.
//!
//! Whoever adds the row first does the work; the row's unique key decides who that is. The others are
//! given what came of it, or told that it is still being done. Whoever does it promises what it will make
//! before that is made: should they end half-way, the others can look whether it is there.

use jiff::Timestamp;
use sea_orm::sea_query::Expr;
use sea_orm::{ActiveValue, ColumnTrait, EntityTrait, QueryFilter};
use serde::{Deserialize, Serialize};

use super::Records;
use super::clock;
use super::error::{Fault, StoreError};
use super::rows::idempotency::{ActiveModel, Column, Entity, Model};
use super::value::{Reading, micros, short};
use super::versioned::Named;

/// What is known of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remembered {
    /// Nothing: it is for whoever asked to do it, who began it at this time.
    Fresh(Timestamp),
    /// It was done, with this answer.
    Replay {
        /// The HTTP status.
        status: u16,
        /// The body.
        body: Vec<u8>,
    },
    /// Somebody is doing it, or was.
    InProgress(Doing),
    /// The key was used for another request.
    Mismatch,
}

/// A request that is being done, or was when whoever did it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doing {
    /// Who does it.
    pub by: String,
    /// What it makes, once that is promised. Nothing was made before.
    pub object: Option<String>,
    /// Since when, by the clock of the database.
    pub begun_at: Timestamp,
}

/// What the row of a request that is being done has for a body.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    by: String,
    object: Option<String>,
}

const KIND: &str = "request";

impl Records {
    /// Asks for what is known of the request that the client calls `key`, and remembers it if that is
    /// nothing: then `by` does it. `scope` keeps clients apart, `digest` one request from another.
    pub async fn remember(
        &self,
        scope: &str,
        key: &str,
        digest: &str,
        by: &str,
    ) -> Result<Remembered, StoreError> {
        let (scope, key) = (&short("scope", scope)?, &short("key", key)?);
        let digest = &short("digest", digest)?;
        let remembered = async {
            loop {
                if let Some(begun_at) = self.begin_request(scope, key, digest, by).await? {
                    return Ok::<_, Fault>(Remembered::Fresh(begun_at));
                }
                // None when it was forgotten a moment ago: then it is new after all.
                if let Some(known) = self.find_request(scope, key, digest).await? {
                    return Ok(known);
                }
            }
        };
        remembered.await.map_err(|fault| self.explain(fault))
    }

    /// The same, and remembers nothing.
    pub async fn recall(
        &self,
        scope: &str,
        key: &str,
        digest: &str,
    ) -> Result<Option<Remembered>, StoreError> {
        let known = self.find_request(scope, key, digest).await;
        known.map_err(|fault| self.explain(fault))
    }

    async fn find_request(
        &self,
        scope: &str,
        key: &str,
        digest: &str,
    ) -> Result<Option<Remembered>, Fault> {
        let id = (scope.to_owned(), key.to_owned());
        let row = Entity::find_by_id(id).one(&self.database.writer).await?;
        let Some(row) = row else { return Ok(None) };
        if row.digest != *digest {
            return Ok(Some(Remembered::Mismatch));
        }
        let status = row.status.and_then(|status| u16::try_from(status).ok());
        Ok(Some(match status {
            Some(status) => Remembered::Replay {
                status,
                body: row.body.unwrap_or_default(),
            },
            None => Remembered::InProgress(doing(row)?),
        }))
    }

    /// Since when it is begun; none when it was already.
    async fn begin_request(
        &self,
        scope: &str,
        key: &str,
        digest: &str,
        by: &str,
    ) -> Result<Option<Timestamp>, Fault> {
        let note = &note(by, None)?;
        let inserted = self
            .write_at_once(|connection| async move {
                let now = clock::now(&connection).await?;
                let row = ActiveModel {
                    scope: ActiveValue::Set(scope.to_owned()),
                    name: ActiveValue::Set(key.to_owned()),
                    digest: ActiveValue::Set(digest.to_owned()),
                    status: ActiveValue::Set(None),
                    created_at: ActiveValue::Set(micros(now)),
                    body: ActiveValue::Set(Some(note.clone())),
                };
                let insert = Entity::insert(row);
                insert.exec_without_returning(&connection).await?;
                Ok(now)
            })
            .await;
        match inserted {
            Ok(now) => Ok(Some(now)),
            Err(fault) if fault.is_duplicate() => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Writes down that a request which `by` began at `begun_at` is going to make `object`. `false` when it is
    /// theirs no longer: then it must not be made.
    pub async fn promise(
        &self,
        scope: &str,
        key: &str,
        by: &str,
        begun_at: Timestamp,
        object: &str,
    ) -> Result<bool, StoreError> {
        let note = &note(by, Some(object))?;
        let promised = self
            .write_at_once(|connection| async move {
                Ok(Entity::update_many()
                    .col_expr(Column::Body, Expr::value(note.clone()))
                    .filter(Column::Scope.eq(scope))
                    .filter(Column::Name.eq(key))
                    .filter(Column::CreatedAt.eq(micros(begun_at)))
                    .filter(Column::Status.is_null())
                    .exec(&connection)
                    .await?)
            })
            .await;
        let promised = promised.map_err(|fault| self.explain(fault))?;
        Ok(promised.rows_affected == 1)
    }

    /// Forgets a request that was begun and never finished, so that it can be begun again; but not one of which
    /// there is more to know by now than `doing`.
    pub async fn abandon(&self, scope: &str, key: &str, doing: &Doing) -> Result<(), StoreError> {
        let note = &note(&doing.by, doing.object.as_deref())?;
        let abandoned = self
            .write_at_once(|connection| async move {
                Ok(Entity::delete_many()
                    .filter(Column::Scope.eq(scope))
                    .filter(Column::Name.eq(key))
                    .filter(Column::CreatedAt.eq(micros(doing.begun_at)))
                    .filter(Column::Body.eq(note.clone()))
                    .filter(Column::Status.is_null())
                    .exec(&connection)
                    .await?)
            })
            .await;
        abandoned.map_err(|fault| self.explain(fault))?;
        Ok(())
    }

    /// Keeps the answer to a request, for when it is sent again.
    pub async fn complete(
        &self,
        scope: &str,
        key: &str,
        status: u16,
        body: &[u8],
    ) -> Result<(), StoreError> {
        let completed = self
            .write_at_once(|connection| async move {
                Ok(Entity::update_many()
                    .col_expr(Column::Status, Expr::value(i32::from(status)))
                    .col_expr(Column::Body, Expr::value(body.to_vec()))
                    .filter(Column::Scope.eq(scope))
                    .filter(Column::Name.eq(key))
                    .exec(&connection)
                    .await?)
            })
            .await;
        let completed = completed.map_err(|fault| self.explain(fault))?;
        match completed.rows_affected {
            0 => Err(Named {
                kind: KIND,
                id: key,
            }
            .missing()),
            _ => Ok(()),
        }
    }

    /// Forgets a request, so that it can be made again under the same key.
    pub async fn forget(&self, scope: &str, key: &str) -> Result<(), StoreError> {
        let forgotten = self
            .write_at_once(|connection| async move {
                let id = (scope.to_owned(), key.to_owned());
                Ok(Entity::delete_by_id(id).exec(&connection).await?)
            })
            .await;
        forgotten.map_err(|fault| self.explain(fault))?;
        Ok(())
    }

    /// Forgets every request that was first made before `time`, and tells how many.
    pub async fn forget_requests_before(&self, time: Timestamp) -> Result<u64, StoreError> {
        let forgotten = self
            .write_at_once(|connection| async move {
                Ok(Entity::delete_many()
                    .filter(Column::CreatedAt.lt(micros(time)))
                    .exec(&connection)
                    .await?)
            })
            .await;
        Ok(forgotten
            .map_err(|fault| self.explain(fault))?
            .rows_affected)
    }
}

fn note(by: &str, object: Option<&str>) -> Result<Vec<u8>, StoreError> {
    let note = Note {
        by: short("by", by)?,
        object: object.map(str::to_owned),
    };
    Ok(serde_json::to_vec(&note).unwrap_or_default())
}

fn doing(row: Model) -> Result<Doing, StoreError> {
    let reading = Reading {
        kind: KIND,
        id: &row.name,
    };
    let text = String::from_utf8_lossy(row.body.as_deref().unwrap_or_default());
    let note: Note = reading.json("body", &text)?;
    Ok(Doing {
        by: note.by,
        object: note.object,
        begun_at: reading.time("created_at", row.created_at)?,
    })
}
