//! What happened to sessions, in the order in which their watchers are told.
//!
//! A watcher that lost its connection asks for what came after the last notice it saw. So no notice
//! may appear behind one that was seen: those of one session are written one at a time, each
//! holding the session's row until it is there for everybody.
//!
//! A server that follows what its peers write asks for those of all sessions, which are written at
//! the same time. There a number that is missing may still come. Only then are all who write waited
//! for, at the [`gate`]; a number that is missing after that never comes.

use sandbox_model::{SessionId, SessionNotice};
use sea_orm::{
    ActiveValue, ColumnTrait, ConnectionTrait, DbBackend, EntityTrait, QueryFilter, QueryOrder,
    QuerySelect, TryIntoModel,
};

use super::Records;
use super::along::Note;
use super::error::{Cause, Fault, StoreError};
use super::gate;
use super::rows::notice::{ActiveModel, Column, Entity, Model};
use super::rows::session;
use super::transaction::Step;
use super::value::{micros, short, text};
use super::versioned::Named;

/// How a transaction stands to the row of the session that a notice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    /// Somebody else may hold it, or change it.
    Free,
    /// The transaction has added it or changed it.
    Held,
}

/// Writes down what happened to a session within a transaction.
pub(super) async fn add(step: &Step, note: &Note<'_>, row: Row) -> Result<(), Fault> {
    let notice = Entity::insert(prepare(step, note, row).await?);
    match step.change(&notice, 1).await {
        Err(fault) if fault.is_broken_reference() => Err(missing(note.session).into()),
        outcome => outcome.map(drop),
    }
}

/// The row of a notice, for which everybody is waited for who has to be.
async fn prepare(step: &Step, note: &Note<'_>, row: Row) -> Result<ActiveModel, Fault> {
    let (kind, detail) = (short("kind", note.kind)?, text("detail", note.detail)?);
    let session = note.session;
    // SQLite has one writer at a time, and says itself when there is no such session.
    if row == Row::Free && step.get_database_backend() != DbBackend::Sqlite {
        let found = session::Entity::find_by_id(session.as_str())
            .select_only()
            .column(session::Column::Id);
        let found: Option<String> = step.hold(found).into_tuple().one(step).await?;
        found.ok_or_else(|| missing(session))?;
    }
    let at = gate::pass(step).await?;
    Ok(ActiveModel {
        id: ActiveValue::NotSet,
        session_id: ActiveValue::Set(session.to_string()),
        kind: ActiveValue::Set(kind),
        noted_at: ActiveValue::Set(micros(at)),
        detail: ActiveValue::Set(detail),
    })
}

fn missing(session: &SessionId) -> StoreError {
    let named = Named {
        kind: session::KIND,
        id: session.as_str(),
    };
    named.missing()
}

impl Records {
    /// Writes down what happened to a session; `detail` is JSON text. Its number is greater than
    /// that of every notice the session had.
    pub async fn append_notice(
        &self,
        session: &SessionId,
        kind: &str,
        detail: &str,
    ) -> Result<SessionNotice, StoreError> {
        let note = &Note {
            session,
            kind,
            detail,
        };
        self.write(|step| async move {
            let row = prepare(&step, note, Row::Free).await?;
            let inserted = Entity::insert(row.clone()).exec(&step).await;
            let inserted = match inserted.map_err(Fault::from) {
                Err(fault) if fault.is_broken_reference() => return Err(missing(session).into()),
                outcome => outcome?,
            };
            let row = ActiveModel {
                id: ActiveValue::Set(inserted.last_insert_id),
                ..row
            };
            step.commit(row.try_into_model()?.read()?).await
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

    /// Up to `limit` notices of all sessions that came after the one numbered `after`, in their
    /// order. None ever appears behind one that was told: fewer are told as long as somebody is
    /// still writing one.
    pub async fn notices_since(
        &self,
        after: i64,
        limit: u64,
    ) -> Result<Vec<SessionNotice>, StoreError> {
        let mut rows = since(self.reader(), after, limit)
            .await
            .map_err(|fault| self.explain(fault))?;
        let certain = without_gap(after, &rows);
        if certain < rows.len() && self.reader().get_database_backend() != DbBackend::Sqlite {
            let last = rows.last().map_or(after, |row| row.id);
            let after_all = self.write(|step| async move {
                if !gate::close(&step).await? {
                    return Ok(None);
                }
                let mut rows = since(&step, after, limit).await?;
                rows.retain(|row| row.id <= last);
                step.commit(Some(rows)).await
            });
            match after_all.await? {
                Some(all) => rows = all,
                None => rows.truncate(certain),
            }
        }
        rows.into_iter().map(Model::read).collect()
    }

    /// The number of the last notice there is, for who wants to be told what comes after it.
    /// [`StoreError::Unavailable`] when somebody is still writing one before it: ask again.
    pub async fn last_notice(&self) -> Result<i64, StoreError> {
        let unfinished = || StoreError::Unavailable {
            database: self.name().to_owned(),
            source: Cause::new("somebody is still writing a notice"),
        };
        self.write(|step| async move {
            if !gate::close(&step).await? {
                return Err(unfinished().into());
            }
            let last: Option<i64> = Entity::find()
                .select_only()
                .column(Column::Id)
                .order_by_desc(Column::Id)
                .limit(1)
                .into_tuple()
                .one(&step)
                .await?;
            step.commit(last.unwrap_or(0)).await
        })
        .await
    }
}

async fn since(
    connection: &impl ConnectionTrait,
    after: i64,
    limit: u64,
) -> Result<Vec<Model>, Fault> {
    Ok(Entity::find()
        .filter(Column::Id.gt(after))
        .order_by_asc(Column::Id)
        .limit(limit)
        .all(connection)
        .await?)
}

/// How many rows there are before the first number that is missing.
fn without_gap(after: i64, rows: &[Model]) -> usize {
    let numbers = rows.iter().zip(after.saturating_add(1)..);
    numbers
        .take_while(|(row, number)| row.id == *number)
        .count()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sandbox_model::runtime::{LimitsEnforced, Walls};
    use sandbox_model::{RuntimeKind, Session, SessionMode, SessionStatus, Template};
    use sandbox_test_servers::Database;
    use tokio::sync::{mpsc, oneshot};

    use super::super::Pool;
    use super::*;

    fn session(template: &Template, letter: u16) -> Session {
        let now = template.created_at;
        Session {
            id: SessionId::random([letter; 16]),
            template_id: template.id.clone(),
            status: SessionStatus::Running,
            mode: SessionMode::Ephemeral,
            agent_id: None,
            runtime: RuntimeKind::Local,
            node_id: "node-1".parse().unwrap(),
            container_id: None,
            executor_url: None,
            workspace_path: String::new(),
            resources: template.default_resources,
            limits_enforced: LimitsEnforced::default(),
            walls: Walls::default(),
            env_vars: Default::default(),
            network: Default::default(),
            timeout_seconds: 1,
            created_at: now,
            started_at: None,
            updated_at: now,
            last_activity_at: now,
            expires_at: now,
            terminated_at: None,
            error: None,
            workspace_removed_at: None,
            image: None,
        }
    }

    enum End {
        Commit,
        Undo,
    }

    /// Somebody who has got a number for a notice, and takes their time.
    struct Slow {
        end: oneshot::Sender<End>,
        writing: tokio::task::JoinHandle<()>,
    }

    impl Slow {
        async fn begin(records: &Records, session: &SessionId) -> Slow {
            let (end, ended) = oneshot::channel();
            let (begun, mut has_begun) = mpsc::channel(1);
            let (records, session) = (records.clone(), session.to_string());
            let writing = tokio::spawn(async move {
                let ended = Arc::new(tokio::sync::Mutex::new(ended));
                let write = records.write(|step| {
                    let (begun, session, ended) = (begun.clone(), session.clone(), ended.clone());
                    async move {
                        let at = gate::pass(&step).await?;
                        let row = ActiveModel {
                            id: ActiveValue::NotSet,
                            session_id: ActiveValue::Set(session),
                            kind: ActiveValue::Set("slow".to_owned()),
                            noted_at: ActiveValue::Set(micros(at)),
                            detail: ActiveValue::Set("{}".to_owned()),
                        };
                        Entity::insert(row).exec(&step).await?;
                        begun.send(()).await.unwrap();
                        let mut ended = ended.lock().await;
                        match (&mut *ended).await.unwrap() {
                            End::Commit => step.commit(()).await,
                            End::Undo => Ok(()),
                        }
                    }
                });
                write.await.unwrap();
            });
            has_begun.recv().await.unwrap();
            Slow { end, writing }
        }

        async fn end(self, how: End) {
            assert!(self.end.send(how).is_ok());
            self.writing.await.unwrap();
        }
    }

    async fn a_notice_that_is_being_written_is_waited_for(server: Database) {
        let url = server.fresh_database();
        let records = Records::open(&url, &Pool::default()).await.unwrap();
        let [template, ..] = Template::seeds(jiff::Timestamp::UNIX_EPOCH);
        records.insert_template(&template).await.unwrap();
        let (one, other) = (session(&template, 1), session(&template, 2));
        records.insert_session(&one).await.unwrap();
        records.insert_session(&other).await.unwrap();
        let quick = |session: &Session| {
            let (records, id) = (records.clone(), session.id.clone());
            async move { records.append_notice(&id, "quick", "{}").await.unwrap() }
        };
        let first = quick(&one).await;
        assert_eq!(records.last_notice().await.unwrap(), first.id);

        let slow = Slow::begin(&records, &one.id).await;
        let second = quick(&other).await;
        let told = records.notices_since(0, 9).await.unwrap();
        assert_eq!((told.len(), told.first()), (1, Some(&first)));
        let unknown = records.last_notice().await;
        assert!(
            matches!(unknown, Err(StoreError::Unavailable { .. })),
            "{unknown:?}"
        );
        slow.end(End::Commit).await;
        let told = records.notices_since(0, 9).await.unwrap();
        let kinds: Vec<&str> = told.iter().map(|notice| &*notice.kind).collect();
        assert_eq!(kinds, ["quick", "slow", "quick"]);
        assert_eq!(told[2], second);

        let slow = Slow::begin(&records, &one.id).await;
        let third = quick(&other).await;
        slow.end(End::Undo).await;
        let told = records.notices_since(second.id, 9).await.unwrap();
        assert_eq!((told.len(), told.first()), (1, Some(&third)));
        assert!(third.id > second.id + 1);
        assert_eq!(records.last_notice().await.unwrap(), third.id);
    }

    #[tokio::test]
    async fn a_notice_that_is_being_written_is_waited_for_in_postgres() {
        a_notice_that_is_being_written_is_waited_for(Database::postgres()).await;
    }

    #[tokio::test]
    async fn a_notice_that_is_being_written_is_waited_for_in_mariadb() {
        a_notice_that_is_being_written_is_waited_for(Database::mariadb()).await;
    }
}
