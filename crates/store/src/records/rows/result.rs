//! What executions printed, returned and used.

use sandbox_model::execution::{ExecutionResult, Metrics};
use sea_orm::entity::prelude::*;

use crate::records::error::StoreError;
use crate::records::value::{Reading, finite, maybe_text, number, short};

pub const KIND: &str = "the result of execution";

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "results")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub execution_id: String,
    pub digest: String,
    pub stdout_truncated: bool,
    pub stderr_truncated: bool,
    pub exit_code: i32,
    pub execution_time: f64,
    pub duration_ms: f64,
    pub cpu_time_ms: f64,
    pub peak_memory_mb: f64,
    pub io_read_bytes: i64,
    pub io_write_bytes: i64,
    pub return_value: Option<String>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// None where it was kept before this was told.
    pub artifacts_truncated: Option<bool>,
    pub cause: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Model {
    pub fn of(
        execution: &str,
        digest: &str,
        result: &ExecutionResult,
    ) -> Result<Model, StoreError> {
        let metrics = &result.metrics;
        Ok(Model {
            execution_id: execution.to_owned(),
            digest: short("digest", digest)?,
            stdout_truncated: result.stdout_truncated,
            stderr_truncated: result.stderr_truncated,
            exit_code: result.exit_code,
            execution_time: finite("execution_time", result.execution_time)?,
            duration_ms: finite("metrics.duration_ms", metrics.duration_ms)?,
            cpu_time_ms: finite("metrics.cpu_time_ms", metrics.cpu_time_ms)?,
            peak_memory_mb: finite("metrics.peak_memory_mb", metrics.peak_memory_mb)?,
            io_read_bytes: number("metrics.io_read_bytes", metrics.io_read_bytes)?,
            io_write_bytes: number("metrics.io_write_bytes", metrics.io_write_bytes)?,
            return_value: maybe_text("return_value", &result.return_value)?,
            stdout: result.stdout.clone().into_bytes(),
            stderr: result.stderr.clone().into_bytes(),
            artifacts_truncated: Some(result.artifacts_truncated),
            cause: result.cause.map(|cause| cause.as_str().to_owned()),
        })
    }

    pub fn read(self) -> Result<ExecutionResult, StoreError> {
        let reading = Reading {
            kind: KIND,
            id: &self.execution_id,
        };
        Ok(ExecutionResult {
            stdout: reading.utf8("stdout", self.stdout)?,
            stderr: reading.utf8("stderr", self.stderr)?,
            stdout_truncated: self.stdout_truncated,
            stderr_truncated: self.stderr_truncated,
            exit_code: self.exit_code,
            execution_time: self.execution_time,
            return_value: self.return_value,
            metrics: Metrics {
                duration_ms: self.duration_ms,
                cpu_time_ms: self.cpu_time_ms,
                peak_memory_mb: self.peak_memory_mb,
                io_read_bytes: reading.number("io_read_bytes", self.io_read_bytes)?,
                io_write_bytes: reading.number("io_write_bytes", self.io_write_bytes)?,
            },
            artifacts_truncated: self.artifacts_truncated.unwrap_or_default(),
            cause: reading.maybe_parse("cause", self.cause.as_deref())?,
        })
    }
}
