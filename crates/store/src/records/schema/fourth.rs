//! Whether an execution made more files than are told.

use sea_orm::DbErr;
use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager};

use super::table::{Addition, Dialect};

pub(super) struct Fourth;

impl MigrationName for Fourth {
    fn name(&self) -> &str {
        "m0004_fourth"
    }
}

#[sea_orm_migration::async_trait::async_trait]
impl MigrationTrait for Fourth {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let dialect = Dialect::of(manager).await?;
        dialect.add(manager, &TRUNCATED).await
    }

    /// Everything around it is one transaction already.
    fn use_transaction(&self) -> Option<bool> {
        Some(false)
    }
}

const TRUNCATED: Addition = Addition {
    table: "results",
    columns: &["artifacts_truncated boolean"],
    indexes: &[],
};
