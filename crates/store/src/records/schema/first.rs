//! The tables of the first release.
//!
//! Times are microseconds since 1970. What is long comes last in its row, so that reading the rest
//! does not touch it. Every index is there for a query; the test `plans` holds them together.

use sea_orm::DbErr;
use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager};

use super::table::{Dialect, Table};

pub(super) struct First;

impl MigrationName for First {
    fn name(&self) -> &str {
        "m0001_first"
    }
}

#[sea_orm_migration::async_trait::async_trait]
impl MigrationTrait for First {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let dialect = Dialect::of(manager).await?;
        for table in TABLES {
            dialect.create(manager, table).await?;
        }
        Ok(())
    }

    /// Everything around it is one transaction already.
    fn use_transaction(&self) -> Option<bool> {
        Some(false)
    }
}

const TABLES: &[&Table] = &[
    &TEMPLATES,
    &SESSIONS,
    &EXECUTIONS,
    &RESULTS,
    &ARTIFACTS,
    &NOTICES,
    &AUDIT,
    &API_KEYS,
    &IDEMPOTENCY,
    &LEASES,
    &POOL,
    &NODES,
    &CONTAINERS,
    &COUNTS,
];

const TEMPLATES: Table = Table {
    name: "templates",
    columns: "
        id {id} NOT NULL PRIMARY KEY,
        version bigint NOT NULL,
        name {short} NOT NULL,
        runtime {id} NOT NULL,
        is_active boolean NOT NULL,
        cpu_thousandths bigint NOT NULL,
        memory_bytes bigint NOT NULL,
        disk_bytes bigint NOT NULL,
        max_processes bigint NOT NULL,
        created_at bigint NOT NULL,
        updated_at bigint NOT NULL,
        image {text} NOT NULL,
        base_image {text},
        packages {text} NOT NULL,
        security_context {text} NOT NULL",
    indexes: &[
        ("templates_by_age", "created_at, id"),
        ("templates_active_by_age", "is_active, created_at, id"),
    ],
};

/// A session refers to its template as long as it is not over (`live_template_id`), so that a
/// template can be deleted once nothing runs from it, and what ran from it stays on record.
const SESSIONS: Table = Table {
    name: "sessions",
    columns: "
        id {id} NOT NULL PRIMARY KEY,
        version bigint NOT NULL,
        template_id {id} NOT NULL,
        live_template_id {id},
        status {id} NOT NULL,
        is_over boolean NOT NULL,
        mode {id} NOT NULL,
        agent_id {short},
        runtime {id} NOT NULL,
        node_id {id} NOT NULL,
        cpu_thousandths bigint NOT NULL,
        memory_bytes bigint NOT NULL,
        disk_bytes bigint NOT NULL,
        max_processes bigint NOT NULL,
        timeout_seconds bigint NOT NULL,
        created_at bigint NOT NULL,
        started_at bigint,
        updated_at bigint NOT NULL,
        last_activity_at bigint NOT NULL,
        expires_at bigint NOT NULL,
        terminated_at bigint,
        container_id {text},
        executor_url {text},
        workspace_path {text} NOT NULL,
        limits_enforced {text} NOT NULL,
        walls {text} NOT NULL,
        env_vars {text} NOT NULL,
        network {text} NOT NULL,
        error {text},
        FOREIGN KEY (live_template_id) REFERENCES templates (id)",
    indexes: &[
        ("sessions_by_age", "created_at, id"),
        ("sessions_by_status", "status, created_at, id"),
        ("sessions_by_template", "template_id, created_at, id"),
        (
            "sessions_by_template_and_status",
            "template_id, status, created_at, id",
        ),
        ("sessions_by_agent", "agent_id, created_at, id"),
        (
            "sessions_by_agent_and_status",
            "agent_id, status, created_at, id",
        ),
        (
            "sessions_by_agent_and_template",
            "agent_id, template_id, created_at, id",
        ),
        ("sessions_by_activity", "is_over, last_activity_at"),
        ("sessions_by_expiry", "is_over, expires_at"),
        ("sessions_by_beginning", "is_over, created_at"),
        ("sessions_by_node", "node_id, is_over"),
        (
            "sessions_by_agent_and_mode",
            "agent_id, mode, created_at, id",
        ),
        ("sessions_by_live_template", "live_template_id"),
    ],
};

const EXECUTIONS: Table = Table {
    name: "executions",
    columns: "
        id {id} NOT NULL PRIMARY KEY,
        version bigint NOT NULL,
        session_id {id} NOT NULL,
        status {id} NOT NULL,
        is_over boolean NOT NULL,
        language {id} NOT NULL,
        timeout_seconds bigint NOT NULL,
        retry boolean NOT NULL,
        retry_count bigint NOT NULL,
        parent_execution_id {id},
        created_at bigint NOT NULL,
        started_at bigint,
        completed_at bigint,
        crashed_at bigint,
        timeout_at bigint,
        last_heartbeat_at bigint,
        heard_at bigint NOT NULL,
        error {text},
        progress {text},
        code {text} NOT NULL,
        event {text} NOT NULL,
        FOREIGN KEY (session_id) REFERENCES sessions (id)",
    indexes: &[
        ("executions_by_session", "session_id, created_at, id"),
        (
            "executions_by_session_and_status",
            "session_id, status, created_at, id",
        ),
        ("executions_live_by_session", "session_id, is_over"),
        ("executions_by_silence", "is_over, heard_at"),
    ],
};

/// What is printed is bytes to the database: it may hold a NUL.
const RESULTS: Table = Table {
    name: "results",
    columns: "
        execution_id {id} NOT NULL PRIMARY KEY,
        digest {short} NOT NULL,
        stdout_truncated boolean NOT NULL,
        stderr_truncated boolean NOT NULL,
        exit_code integer NOT NULL,
        execution_time double precision NOT NULL,
        duration_ms double precision NOT NULL,
        cpu_time_ms double precision NOT NULL,
        peak_memory_mb double precision NOT NULL,
        io_read_bytes bigint NOT NULL,
        io_write_bytes bigint NOT NULL,
        return_value {text},
        stdout {bytes} NOT NULL,
        stderr {bytes} NOT NULL,
        FOREIGN KEY (execution_id) REFERENCES executions (id)",
    indexes: &[],
};

const ARTIFACTS: Table = Table {
    name: "artifacts",
    columns: "
        id {id} NOT NULL PRIMARY KEY,
        execution_id {id} NOT NULL,
        kind {id} NOT NULL,
        size_bytes bigint NOT NULL,
        mime_type {short} NOT NULL,
        sha256 {id} NOT NULL,
        created_at bigint NOT NULL,
        name {text} NOT NULL,
        path {text} NOT NULL,
        FOREIGN KEY (execution_id) REFERENCES executions (id)",
    indexes: &[("artifacts_by_execution", "execution_id, created_at, id")],
};

const NOTICES: Table = Table {
    name: "session_notices",
    columns: "
        id {serial} PRIMARY KEY,
        session_id {id} NOT NULL,
        kind {short} NOT NULL,
        noted_at bigint NOT NULL,
        detail {text} NOT NULL,
        FOREIGN KEY (session_id) REFERENCES sessions (id)",
    indexes: &[("session_notices_in_order", "session_id, id")],
};

const AUDIT: Table = Table {
    name: "audit",
    columns: "
        id {serial} PRIMARY KEY,
        done_at bigint NOT NULL,
        key_id {id},
        action {short} NOT NULL,
        object {short} NOT NULL,
        request_id {id},
        detail {text} NOT NULL",
    indexes: &[("audit_by_age", "done_at, id")],
};

const API_KEYS: Table = Table {
    name: "api_keys",
    columns: "
        id {id} NOT NULL PRIMARY KEY,
        name {short} NOT NULL,
        hash {short} NOT NULL UNIQUE,
        scope {id} NOT NULL,
        created_at bigint NOT NULL,
        revoked_at bigint",
    indexes: &[],
};

const IDEMPOTENCY: Table = Table {
    name: "idempotency",
    columns: "
        scope {short} NOT NULL,
        name {short} NOT NULL,
        digest {short} NOT NULL,
        status integer,
        created_at bigint NOT NULL,
        body {bytes},
        PRIMARY KEY (scope, name)",
    indexes: &[("idempotency_by_age", "created_at")],
};

/// A row stays when its lease ends, so that epochs never go back.
const LEASES: Table = Table {
    name: "leases",
    columns: "
        name {short} NOT NULL PRIMARY KEY,
        holder {short} NOT NULL,
        epoch bigint NOT NULL,
        expires_at bigint NOT NULL",
    indexes: &[],
};

const POOL: Table = Table {
    name: "pool",
    columns: "
        id {id} NOT NULL PRIMARY KEY,
        template_id {id} NOT NULL,
        node_id {id} NOT NULL,
        created_at bigint NOT NULL,
        container_id {text} NOT NULL,
        executor_url {text} NOT NULL,
        workspace_path {text} NOT NULL",
    indexes: &[
        ("pool_by_template", "template_id, created_at, id"),
        (
            "pool_by_template_and_node",
            "template_id, node_id, created_at, id",
        ),
        ("pool_by_node", "node_id, created_at, id"),
    ],
};

const NODES: Table = Table {
    name: "nodes",
    columns: "
        id {id} NOT NULL PRIMARY KEY,
        version bigint NOT NULL,
        hostname {short} NOT NULL,
        runtime {id} NOT NULL,
        status {id} NOT NULL,
        total_cpu_thousandths bigint NOT NULL,
        total_memory_bytes bigint NOT NULL,
        total_disk_bytes bigint NOT NULL,
        allocated_cpu_thousandths bigint NOT NULL,
        allocated_memory_bytes bigint NOT NULL,
        allocated_disk_bytes bigint NOT NULL,
        last_heartbeat_at bigint NOT NULL,
        api_endpoint {text} NOT NULL,
        cached_images {text} NOT NULL,
        labels {text} NOT NULL",
    indexes: &[],
};

const CONTAINERS: Table = Table {
    name: "containers",
    columns: "
        id {short} NOT NULL PRIMARY KEY,
        version bigint NOT NULL,
        name {short} NOT NULL,
        session_id {id},
        template_id {id} NOT NULL,
        node_id {id} NOT NULL,
        ip_address {id},
        executor_port bigint,
        cpu_thousandths bigint NOT NULL,
        memory_bytes bigint NOT NULL,
        disk_bytes bigint NOT NULL,
        max_processes bigint NOT NULL,
        status {id} NOT NULL,
        runtime {id} NOT NULL,
        created_at bigint NOT NULL,
        started_at bigint,
        exited_at bigint,
        exit_code integer,
        image {text} NOT NULL",
    indexes: &[
        ("containers_by_age", "created_at, id"),
        ("containers_by_status", "status, created_at, id"),
        ("containers_by_runtime", "runtime, created_at, id"),
        (
            "containers_by_runtime_and_status",
            "runtime, status, created_at, id",
        ),
    ],
};

const COUNTS: Table = Table {
    name: "counts",
    columns: "
        counted {id} NOT NULL,
        owner {short} NOT NULL,
        subject {id} NOT NULL,
        status {id} NOT NULL,
        slot bigint NOT NULL,
        number bigint NOT NULL,
        PRIMARY KEY (counted, owner, subject, status, slot)",
    indexes: &[],
};
