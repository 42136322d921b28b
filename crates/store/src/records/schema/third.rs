//! Which image a session was made from.
//!
//! A session keeps what it was made with: its template may get another image later.

use sea_orm::{ConnectionTrait, DbErr};
use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager};

use super::table::{Addition, Dialect};

pub(super) struct Third;

impl MigrationName for Third {
    fn name(&self) -> &str {
        "m0003_third"
    }
}

#[sea_orm_migration::async_trait::async_trait]
impl MigrationTrait for Third {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let dialect = Dialect::of(manager).await?;
        dialect.add(manager, &IMAGE).await?;
        manager.get_connection().execute_unprepared(FILL).await?;
        Ok(())
    }

    /// Everything around it is one transaction already.
    fn use_transaction(&self) -> Option<bool> {
        Some(false)
    }
}

const IMAGE: Addition = Addition {
    table: "sessions",
    columns: &["image text"],
    indexes: &[],
};

/// What they would have been raised from until now. Those that are over need it for copies of them, as long as they
/// have a workspace. Can be run again.
const FILL: &str = "UPDATE sessions SET image =
    (SELECT image FROM templates WHERE templates.id = sessions.template_id)
    WHERE image IS NULL AND workspace_removed_at IS NULL";
