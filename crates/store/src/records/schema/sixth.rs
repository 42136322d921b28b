//! What an execution failed for that its session had too little of.

use sea_orm::DbErr;
use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager};

use super::table::{Addition, Dialect};

pub(super) struct Sixth;

impl MigrationName for Sixth {
    fn name(&self) -> &str {
        "m0006_sixth"
    }
}

#[sea_orm_migration::async_trait::async_trait]
impl MigrationTrait for Sixth {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let dialect = Dialect::of(manager).await?;
        dialect.add(manager, &CAUSE).await
    }

    /// Everything around it is one transaction already.
    fn use_transaction(&self) -> Option<bool> {
        Some(false)
    }
}

const CAUSE: Addition = Addition {
    table: "results",
    columns: &["cause varchar(64)"],
    indexes: &[],
};
