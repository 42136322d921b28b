//! Whose files are still to be copied to where every server finds them.
//!
//! A session that ended has them due since then, until they are there or its workspace is gone. It is written with
//! the end itself, so that whoever is killed before they were copied leaves that to the next.

use sea_orm::{ConnectionTrait, DbErr};
use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager};

use super::table::{Addition, Dialect};

pub(super) struct Fifth;

impl MigrationName for Fifth {
    fn name(&self) -> &str {
        "m0005_fifth"
    }
}

#[sea_orm_migration::async_trait::async_trait]
impl MigrationTrait for Fifth {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let dialect = Dialect::of(manager).await?;
        dialect.add(manager, &DUE).await?;
        manager.get_connection().execute_unprepared(FILL).await?;
        Ok(())
    }

    /// Everything around it is one transaction already.
    fn use_transaction(&self) -> Option<bool> {
        Some(false)
    }
}

const DUE: Addition = Addition {
    table: "sessions",
    columns: &["files_due_since bigint"],
    indexes: &[("sessions_with_files_due", "node_id, files_due_since, id")],
};

/// Nobody wrote down whose were copied: copying them again does no harm. Can be run again.
const FILL: &str =
    "UPDATE sessions SET files_due_since = unclean_since WHERE unclean_since IS NOT NULL";
