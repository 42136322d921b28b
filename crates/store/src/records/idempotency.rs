//! Requests that a client marked with a key of its own, so that it may send them again.
//!
//! Whoever adds the row first does the work; the row's unique key decides who that is. The others are
//! given what came of it, or told that it is still being done.

use jiff::Timestamp;
use sea_orm::sea_query::Expr;
use sea_orm::{ActiveValue, ColumnTrait, EntityTrait, QueryFilter};

use super::Records;
use super::clock;
use super::error::{Fault, StoreError};
use super::rows::idempotency::{ActiveModel, Column, Entity};
use super::value::{micros, short};
use super::versioned::Named;

/// What is known of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remembered {
    /// Nothing: it is for whoever asked to do it.
    Fresh,
    /// It was done, with this answer.
    Replay {
        /// The HTTP status.
        status: u16,
        /// The body.
        body: Vec<u8>,
    },
    /// Somebody is doing it.
    InProgress,
    /// The key was used for another request.
    Mismatch,
}

const KIND: &str = "request";

impl Records {
    /// Asks for what is known of the request that the client calls `key`, and remembers it if that is
    /// nothing. `scope` keeps clients apart, `digest` one request from another.
    pub async fn remember(
        &self,
        scope: &str,
        key: &str,
        digest: &str,
    ) -> Result<Remembered, StoreError> {
        let (scope, key) = (&short("scope", scope)?, &short("key", key)?);
        let digest = &short("digest", digest)?;
        let remembered = async {
            loop {
                if self.is_new(scope, key, digest).await? {
                    return Ok::<_, Fault>(Remembered::Fresh);
                }
                let id = (scope.clone(), key.clone());
                let row = Entity::find_by_id(id).one(&self.database.writer).await?;
                // None when it was forgotten a moment ago: then it is new after all.
                let Some(row) = row else { continue };
                if row.digest != *digest {
                    return Ok(Remembered::Mismatch);
                }
                let status = row.status.and_then(|status| u16::try_from(status).ok());
                return Ok(match status {
                    Some(status) => Remembered::Replay {
                        status,
                        body: row.body.unwrap_or_default(),
                    },
                    None => Remembered::InProgress,
                });
            }
        };
        remembered.await.map_err(|fault| self.explain(fault))
    }

    async fn is_new(&self, scope: &str, key: &str, digest: &str) -> Result<bool, Fault> {
        let inserted = self
            .write_at_once(|connection| async move {
                let now = clock::now(&connection).await?;
                let row = ActiveModel {
                    scope: ActiveValue::Set(scope.to_owned()),
                    name: ActiveValue::Set(key.to_owned()),
                    digest: ActiveValue::Set(digest.to_owned()),
                    status: ActiveValue::Set(None),
                    created_at: ActiveValue::Set(micros(now)),
                    body: ActiveValue::Set(None),
                };
                let insert = Entity::insert(row);
                Ok(insert.exec_without_returning(&connection).await?)
            })
            .await;
        match inserted {
            Ok(_) => Ok(true),
            Err(fault) if fault.is_duplicate() => Ok(false),
            Err(fault) => Err(fault),
        }
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
