//! Executions.

use sandbox_model::Execution;
use sea_orm::FromQueryResult;
use sea_orm::entity::prelude::*;

use crate::records::Stored;
use crate::records::count::{Counted, Key};
use crate::records::error::StoreError;
use crate::records::execution::ExecutionSummary;
use crate::records::value::{Reading, maybe_micros, maybe_text, micros, text};

pub const KIND: &str = "execution";

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "executions")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub version: i64,
    pub session_id: String,
    pub status: String,
    pub is_over: bool,
    pub language: String,
    pub timeout_seconds: i64,
    pub retry: bool,
    pub retry_count: i64,
    pub parent_execution_id: Option<String>,
    pub created_at: i64,
    pub started_at: Option<i64>,
    pub completed_at: Option<i64>,
    pub crashed_at: Option<i64>,
    pub timeout_at: Option<i64>,
    pub last_heartbeat_at: Option<i64>,
    pub heard_at: i64,
    pub error: Option<String>,
    pub progress: Option<String>,
    pub code: String,
    pub event: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// A row without what is long.
#[derive(Debug, FromQueryResult)]
pub struct Summary {
    pub id: String,
    pub version: i64,
    pub session_id: String,
    pub status: String,
    pub language: String,
    pub timeout_seconds: i64,
    pub retry: bool,
    pub retry_count: i64,
    pub parent_execution_id: Option<String>,
    pub created_at: i64,
    pub started_at: Option<i64>,
    pub completed_at: Option<i64>,
    pub crashed_at: Option<i64>,
    pub timeout_at: Option<i64>,
    pub last_heartbeat_at: Option<i64>,
    pub error: Option<String>,
    pub progress: Option<String>,
}

/// Its columns.
pub const SUMMARY: [Column; 17] = [
    Column::Id,
    Column::Version,
    Column::SessionId,
    Column::Status,
    Column::Language,
    Column::TimeoutSeconds,
    Column::Retry,
    Column::RetryCount,
    Column::ParentExecutionId,
    Column::CreatedAt,
    Column::StartedAt,
    Column::CompletedAt,
    Column::CrashedAt,
    Column::TimeoutAt,
    Column::LastHeartbeatAt,
    Column::Error,
    Column::Progress,
];

/// The numbers that an execution is part of.
pub fn counts(id: &str, session: &str, status: &str, is_over: bool) -> Vec<Key> {
    let mut keys = vec![Key::of(id, Counted::Executions, session, "", status)];
    if !is_over {
        keys.push(Key::of(id, Counted::LiveExecutions, "", "", ""));
    }
    keys
}

impl Model {
    pub fn of(execution: &Execution, version: i64) -> Result<Model, StoreError> {
        let heard = execution.last_heartbeat_at.unwrap_or(execution.created_at);
        let parent = execution.parent_execution_id.as_ref();
        Ok(Model {
            id: execution.id.to_string(),
            version,
            session_id: execution.session_id.to_string(),
            status: execution.status.to_string(),
            is_over: execution.status.is_over(),
            language: execution.language.as_str().to_owned(),
            timeout_seconds: i64::from(execution.timeout_seconds),
            retry: execution.retry,
            retry_count: i64::from(execution.retry_count),
            parent_execution_id: parent.map(ToString::to_string),
            created_at: micros(execution.created_at),
            started_at: maybe_micros(execution.started_at),
            completed_at: maybe_micros(execution.completed_at),
            crashed_at: maybe_micros(execution.crashed_at),
            timeout_at: maybe_micros(execution.timeout_at),
            last_heartbeat_at: maybe_micros(execution.last_heartbeat_at),
            heard_at: micros(heard),
            error: maybe_text("error", &execution.error)?,
            progress: maybe_text("progress", &execution.progress)?,
            code: text("code", &execution.code)?,
            event: text("event", &execution.event)?,
        })
    }

    pub fn counts(&self) -> Vec<Key> {
        counts(&self.id, &self.session_id, &self.status, self.is_over)
    }

    pub fn read(self) -> Result<Stored<Execution>, StoreError> {
        let (code, event) = (self.code, self.event);
        let summary = Summary {
            id: self.id,
            version: self.version,
            session_id: self.session_id,
            status: self.status,
            language: self.language,
            timeout_seconds: self.timeout_seconds,
            retry: self.retry,
            retry_count: self.retry_count,
            parent_execution_id: self.parent_execution_id,
            created_at: self.created_at,
            started_at: self.started_at,
            completed_at: self.completed_at,
            crashed_at: self.crashed_at,
            timeout_at: self.timeout_at,
            last_heartbeat_at: self.last_heartbeat_at,
            error: self.error,
            progress: self.progress,
        };
        let Stored { value, version } = summary.read()?;
        let value = Execution {
            id: value.id,
            session_id: value.session_id,
            status: value.status,
            code,
            language: value.language,
            event,
            timeout_seconds: value.timeout_seconds,
            retry: value.retry,
            retry_count: value.retry_count,
            parent_execution_id: value.parent_execution_id,
            created_at: value.created_at,
            started_at: value.started_at,
            completed_at: value.completed_at,
            crashed_at: value.crashed_at,
            timeout_at: value.timeout_at,
            last_heartbeat_at: value.last_heartbeat_at,
            progress: value.progress,
            error: value.error,
        };
        Ok(Stored { value, version })
    }
}

impl Summary {
    pub fn read(self) -> Result<Stored<ExecutionSummary>, StoreError> {
        let reading = Reading {
            kind: KIND,
            id: &self.id,
        };
        let parent = self.parent_execution_id.as_deref();
        let value = ExecutionSummary {
            id: reading.parse("id", &self.id)?,
            session_id: reading.parse("session_id", &self.session_id)?,
            status: reading.parse("status", &self.status)?,
            language: reading.parse("language", &self.language)?,
            timeout_seconds: reading.number("timeout_seconds", self.timeout_seconds)?,
            retry: self.retry,
            retry_count: reading.number("retry_count", self.retry_count)?,
            parent_execution_id: reading.maybe_parse("parent_execution_id", parent)?,
            created_at: reading.time("created_at", self.created_at)?,
            started_at: reading.maybe_time("started_at", self.started_at)?,
            completed_at: reading.maybe_time("completed_at", self.completed_at)?,
            crashed_at: reading.maybe_time("crashed_at", self.crashed_at)?,
            timeout_at: reading.maybe_time("timeout_at", self.timeout_at)?,
            last_heartbeat_at: reading.maybe_time("last_heartbeat_at", self.last_heartbeat_at)?,
            progress: self.progress,
            error: self.error,
        };
        Ok(Stored {
            value,
            version: self.version,
        })
    }
}
