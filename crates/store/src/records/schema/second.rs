//! What sessions leave behind when they are over, how many live, and a gate for notices.
//!
//! Two of the columns follow from others, as `live_template_id` does. A session that is over ended
//! at `ended_at`, and from then until its workspace is removed it is `unclean_since` that time: what
//! is to be found by a range of times has a time in its index, and everything else none.

use sea_orm::{ConnectionTrait, DbErr};
use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager};

use super::table::{Addition, Dialect, Table};

pub(super) struct Second;

impl MigrationName for Second {
    fn name(&self) -> &str {
        "m0002_second"
    }
}

#[sea_orm_migration::async_trait::async_trait]
impl MigrationTrait for Second {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let dialect = Dialect::of(manager).await?;
        dialect.add(manager, &ENDED).await?;
        dialect.create(manager, &GATES).await?;
        for sql in FILL {
            manager.get_connection().execute_unprepared(sql).await?;
        }
        Ok(())
    }

    /// Everything around it is one transaction already.
    fn use_transaction(&self) -> Option<bool> {
        Some(false)
    }
}

const ENDED: Addition = Addition {
    table: "sessions",
    columns: &[
        "workspace_removed_at bigint",
        "ended_at bigint",
        "unclean_since bigint",
    ],
    indexes: &[
        ("sessions_by_end", "ended_at, id"),
        ("sessions_to_clean", "node_id, unclean_since, id"),
    ],
};

/// Rows to lock, where a database has no locks but those of rows.
const GATES: Table = Table {
    name: "gates",
    columns: "name {id} NOT NULL PRIMARY KEY",
    indexes: &[],
};

/// Each can be run again.
const FILL: &[&str] = &[
    "UPDATE sessions SET ended_at = COALESCE(terminated_at, updated_at) WHERE is_over",
    "UPDATE sessions SET unclean_since = ended_at WHERE workspace_removed_at IS NULL",
    "DELETE FROM counts WHERE counted IN ('live_sessions', 'live_executions')",
    "INSERT INTO counts (counted, owner, subject, status, slot, number)
        SELECT 'live_sessions', node_id, '', status, 0, COUNT(*) FROM sessions
        WHERE NOT is_over GROUP BY node_id, status",
    "INSERT INTO counts (counted, owner, subject, status, slot, number)
        SELECT 'live_executions', '', '', '', 0, COUNT(*) FROM executions WHERE NOT is_over",
    "DELETE FROM gates",
    "INSERT INTO gates (name) VALUES ('session_notices')",
];
