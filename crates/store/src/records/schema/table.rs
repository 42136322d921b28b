//! A table in the words that the three databases share, and the few where they differ.

use sea_orm::{ConnectionTrait, DbBackend, DbErr, Statement};
use sea_orm_migration::SchemaManager;

/// A table, as a migration describes it. Columns are SQL, with `{id}`, `{short}`, `{text}`,
/// `{bytes}` and `{serial}` standing for types that have no common name.
pub(super) struct Table {
    pub name: &'static str,
    pub columns: &'static str,
    /// Name and columns of each.
    pub indexes: &'static [(&'static str, &'static str)],
}

/// What a later migration adds to a table.
pub(super) struct Addition {
    pub table: &'static str,
    /// Each may be null.
    pub columns: &'static [&'static str],
    /// Name and columns of each.
    pub indexes: &'static [(&'static str, &'static str)],
}

/// How one database writes what has no common name.
pub(super) struct Dialect {
    backend: DbBackend,
    words: [(&'static str, &'static str); 5],
    /// What follows the columns.
    tail: &'static str,
}

impl Dialect {
    pub(super) async fn of(manager: &SchemaManager<'_>) -> Result<Dialect, DbErr> {
        let backend = manager.get_database_backend();
        Ok(match backend {
            DbBackend::Postgres => Dialect {
                backend,
                // Compared byte by byte, as the others do, and independent of the system's locales.
                words: [
                    ("{id}", "varchar(64) COLLATE \"C\""),
                    ("{short}", "varchar(255) COLLATE \"C\""),
                    ("{text}", "text"),
                    ("{bytes}", "bytea"),
                    ("{serial}", "bigint GENERATED ALWAYS AS IDENTITY"),
                ],
                tail: "",
            },
            DbBackend::MySql => Dialect {
                backend,
                words: [
                    ("{id}", "varchar(64)"),
                    ("{short}", "varchar(255)"),
                    ("{text}", "mediumtext"),
                    ("{bytes}", "mediumblob"),
                    ("{serial}", "bigint AUTO_INCREMENT"),
                ],
                tail: mysql_tail(manager).await?,
            },
            _ => Dialect {
                backend,
                words: [
                    ("{id}", "varchar(64)"),
                    ("{short}", "varchar(255)"),
                    ("{text}", "text"),
                    ("{bytes}", "blob"),
                    ("{serial}", "integer"),
                ],
                tail: "",
            },
        })
    }

    /// Makes the table where there is none. Can be run again when it was interrupted: MySQL makes
    /// a table with its indexes at once, and the others are in a transaction.
    pub(super) async fn create(
        &self,
        manager: &SchemaManager<'_>,
        table: &Table,
    ) -> Result<(), DbErr> {
        let connection = manager.get_connection();
        let mut columns = table.columns.trim().to_owned();
        for (word, meaning) in self.words {
            columns = columns.replace(word, meaning);
        }
        if self.backend == DbBackend::Sqlite {
            // Without the word, the number of a deleted row is given out again.
            columns = columns.replace(
                "id integer PRIMARY KEY",
                "id integer PRIMARY KEY AUTOINCREMENT",
            );
        }
        let (name, tail) = (table.name, self.tail);
        if self.backend == DbBackend::MySql {
            for (index, on) in table.indexes {
                columns.push_str(&format!(", INDEX {index} ({on})"));
            }
        }
        let create = format!("CREATE TABLE IF NOT EXISTS {name} ({columns}) {tail}");
        connection.execute_unprepared(&create).await?;
        if self.backend == DbBackend::MySql {
            return Ok(());
        }
        self.create_indexes(manager, name, table.indexes).await
    }

    /// Adds columns and indexes where they are not there. Can be run again when it was interrupted:
    /// MySQL does all of it at once, and the others are in a transaction.
    pub(super) async fn add(
        &self,
        manager: &SchemaManager<'_>,
        addition: &Addition,
    ) -> Result<(), DbErr> {
        let connection = manager.get_connection();
        let table = addition.table;
        if self.backend != DbBackend::MySql {
            for column in addition.columns {
                let add = format!("ALTER TABLE {table} ADD COLUMN {column}");
                connection.execute_unprepared(&add).await?;
            }
            return self.create_indexes(manager, table, addition.indexes).await;
        }
        let first = addition
            .columns
            .first()
            .and_then(|first| first.split_once(' '));
        if let Some((first, _)) = first
            && manager.has_column(table, first).await?
        {
            return Ok(());
        }
        let columns = addition.columns.iter();
        let columns = columns.map(|column| format!("ADD COLUMN {column}"));
        let indexes = addition.indexes.iter();
        let indexes = indexes.map(|(index, on)| format!("ADD INDEX {index} ({on})"));
        let all: Vec<String> = columns.chain(indexes).collect();
        let add = format!("ALTER TABLE {table} {}", all.join(", "));
        connection.execute_unprepared(&add).await?;
        Ok(())
    }

    async fn create_indexes(
        &self,
        manager: &SchemaManager<'_>,
        table: &str,
        indexes: &[(&str, &str)],
    ) -> Result<(), DbErr> {
        for (index, on) in indexes {
            let create = format!("CREATE INDEX IF NOT EXISTS {index} ON {table} ({on})");
            manager.get_connection().execute_unprepared(&create).await?;
        }
        Ok(())
    }
}

/// Text is compared byte by byte, and trailing spaces count. MariaDB and MySQL have each their own
/// name for that.
async fn mysql_tail(manager: &SchemaManager<'_>) -> Result<&'static str, DbErr> {
    let sql = "SELECT VERSION() AS version";
    let statement = Statement::from_string(DbBackend::MySql, sql);
    let row = manager.get_connection().query_one_raw(statement).await?;
    let version: String = match row {
        Some(row) => row.try_get("", "version")?,
        None => String::new(),
    };
    Ok(match version.contains("MariaDB") {
        true => "ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
        false => "ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin",
    })
}
