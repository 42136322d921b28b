//! What can go wrong with a record, and how a driver's error is told apart.
//!
//! Callers get a [`StoreError`]. Within the crate an error travels as a [`Fault`] until somebody who
//! knows the database's name can turn it into one. No error holds a password or a record's content.

use std::fmt;
use std::ops::Deref;

use sandbox_model::{Class, Failure};
use sea_orm::sqlx;
use sea_orm::{ConnAcquireErr, DbErr, RuntimeErr, SqlErr};
use thiserror::Error;

/// Why a record could not be read or written.
#[derive(Debug, Clone, Error)]
pub enum StoreError {
    /// The text is not a database's URL.
    #[error("{0}; write sqlite:PATH, postgres://USER@HOST/NAME or mysql://USER@HOST/NAME")]
    BadUrl(&'static str),
    /// The SQLite file can be neither opened nor made.
    #[error("cannot open the database file of {database}")]
    File {
        /// Which one.
        database: String,
        /// Why.
        source: Cause,
    },
    /// Nobody answers. It may answer later.
    #[error("the database {database} does not answer")]
    Unavailable {
        /// Which one.
        database: String,
        /// Why.
        source: Cause,
    },
    /// It has no room for more. It may have later.
    #[error("the disk of the database {database} is full")]
    Full {
        /// Which one.
        database: String,
        /// Why.
        source: Cause,
    },
    /// Its tables were made by a later version of this program.
    #[error("the database {database} was brought up to date by a later version; run that one")]
    Later {
        /// Which one.
        database: String,
    },
    /// It answered, but not with what was asked for.
    #[error("the database {database} refused")]
    Failed {
        /// Which one.
        database: String,
        /// Why.
        source: Cause,
    },
    /// There is one of that name.
    #[error("{kind} {id} exists already")]
    Exists {
        /// What it is.
        kind: &'static str,
        /// Which.
        id: String,
    },
    /// There is none of that name.
    #[error("there is no {kind} {id}")]
    Missing {
        /// What it should have been.
        kind: &'static str,
        /// Which.
        id: String,
    },
    /// Somebody else changed it since it was read.
    #[error("{kind} {id} was changed by somebody else meanwhile")]
    Stale {
        /// What it is.
        kind: &'static str,
        /// Which.
        id: String,
    },
    /// A change of what never changes.
    #[error("the identifier of {kind} {id} cannot change")]
    Renamed {
        /// What it is.
        kind: &'static str,
        /// Which.
        id: String,
    },
    /// Sessions that have not ended use it.
    #[error("template {id} is used by {sessions} live sessions")]
    InUse {
        /// Which template.
        id: String,
        /// How many.
        sessions: u64,
    },
    /// A session that is to be deleted but lives.
    #[error("session {id} is not over")]
    NotOver {
        /// Which.
        id: String,
    },
    /// A value that not every database can keep.
    #[error("{field} {problem}")]
    Unkeepable {
        /// Which field.
        field: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// What was read back is not a record of ours.
    #[error("the {field} of {kind} {id} is not readable: {problem}")]
    Unreadable {
        /// What it is.
        kind: &'static str,
        /// Which.
        id: String,
        /// Which part of it.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// Not a cursor that this list gave out.
    #[error("the cursor is not one that this list gave out")]
    BadCursor,
    /// A page that is empty or too long.
    #[error("limit {0} is not between 1 and 200")]
    BadLimit(u64),
}

impl Failure for StoreError {
    fn class(&self) -> Class {
        match self {
            StoreError::Missing { .. } => Class::NotFound,
            StoreError::Exists { .. }
            | StoreError::Stale { .. }
            | StoreError::InUse { .. }
            | StoreError::NotOver { .. } => Class::Conflict,
            _ => Class::General,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            StoreError::File { .. } => "the directory must be there, and be yours to write to",
            StoreError::Full { .. } => "make room where the database is",
            StoreError::Unavailable { .. } => "is the server running, and does the URL name it?",
            StoreError::InUse { .. } => "make it inactive: no new session will use it",
            StoreError::NotOver { .. } => "terminate it first",
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

/// What a database or its driver said.
#[derive(Debug, Clone, Error)]
#[error("{0}")]
pub struct Cause(String);

impl Cause {
    pub(super) fn new(error: impl fmt::Display) -> Cause {
        Cause(error.to_string())
    }
}

/// An error on its way out.
#[derive(Debug)]
pub(super) enum Fault {
    /// The database's.
    Driver(DbErr),
    /// Ours.
    Ours(StoreError),
}

impl From<DbErr> for Fault {
    fn from(error: DbErr) -> Fault {
        Fault::Driver(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Fault {
        Fault::Ours(error)
    }
}

impl Fault {
    /// The transaction met another one, and may do better next time.
    pub(super) fn is_collision(&self) -> bool {
        let Fault::Driver(error) = self else {
            return false;
        };
        match code(error).as_deref() {
            // PostgreSQL: serialization failure, deadlock.
            Some("40001" | "40P01") => true,
            _ => matches!(
                mysql_number(error),
                // Deadlock, record changed since last read.
                Some(1213 | 1020)
            ),
        }
    }

    /// Somebody else holds what it waited for, and goes on holding it.
    pub(super) fn is_lock_timeout(&self) -> bool {
        let Fault::Driver(error) = self else {
            return false;
        };
        code(error).as_deref() == Some("55P03") || mysql_number(error) == Some(1205)
    }

    /// The key is taken.
    pub(super) fn is_duplicate(&self) -> bool {
        let Fault::Driver(error) = self else {
            return false;
        };
        matches!(error.sql_err(), Some(SqlErr::UniqueConstraintViolation(_)))
    }

    /// What it refers to is not there, or is referred to.
    pub(super) fn is_broken_reference(&self) -> bool {
        let Fault::Driver(error) = self else {
            return false;
        };
        matches!(
            error.sql_err(),
            Some(SqlErr::ForeignKeyConstraintViolation(_))
        )
    }

    /// Is it about what was asked? SQLite's number for that is 1, and 19 with another before it.
    pub(super) fn is_refusal(error: &DbErr) -> bool {
        let number = code(error).and_then(|code| code.parse::<u32>().ok());
        number.is_some_and(|number| number == 1 || number & 0xff == 19)
    }

    pub(super) fn explain(self, database: &str) -> StoreError {
        let database = database.to_owned();
        match self {
            Fault::Ours(error) => error,
            Fault::Driver(error) if is_full(&error) => StoreError::Full {
                database,
                source: Cause::new(error),
            },
            Fault::Driver(error) if is_unavailable(&error) => StoreError::Unavailable {
                database,
                source: Cause::new(error),
            },
            Fault::Driver(error) => StoreError::Failed {
                database,
                source: Cause::new(error),
            },
        }
    }
}

fn sqlx_error(error: &DbErr) -> Option<&sqlx::Error> {
    match error {
        DbErr::Conn(RuntimeErr::SqlxError(error))
        | DbErr::Exec(RuntimeErr::SqlxError(error))
        | DbErr::Query(RuntimeErr::SqlxError(error)) => Some(error.deref()),
        _ => None,
    }
}

fn code(error: &DbErr) -> Option<String> {
    let answer = sqlx_error(error)?.as_database_error()?;
    Some(answer.code()?.into_owned())
}

fn mysql_number(error: &DbErr) -> Option<u16> {
    let answer = sqlx_error(error)?.as_database_error()?;
    let answer = answer.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>()?;
    Some(answer.number())
}

/// Has the database no room?
fn is_full(error: &DbErr) -> bool {
    // MySQL: disk full, table full; PostgreSQL: disk full; SQLite: full, and what it says when the files
    // beside its own cannot grow.
    matches!(mysql_number(error), Some(1021 | 1114))
        || matches!(
            code(error).as_deref(),
            Some("53100" | "13" | "778" | "4874")
        )
}

fn is_unavailable(error: &DbErr) -> bool {
    if let DbErr::ConnectionAcquire(ConnAcquireErr::Timeout | ConnAcquireErr::ConnectionClosed) =
        error
    {
        return true;
    }
    match sqlx_error(error) {
        Some(sqlx::Error::Database(_)) => {
            // MySQL: too many connections, shutting down, killed, waited too long for a lock;
            // PostgreSQL: connection exceptions, out of connections, shutting down, starting;
            // SQLite: waited too long for another process.
            matches!(mysql_number(error), Some(1040 | 1053 | 1203 | 1205 | 1927))
                || code(error).is_some_and(|code| {
                    code.starts_with("08")
                        || code.starts_with("57P")
                        || code == "53300"
                        || code == "5"
                })
        }
        Some(sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::WorkerCrashed) => true,
        Some(sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed) => true,
        // What a connection that breaks in the middle of an answer looks like.
        Some(sqlx::Error::Protocol(_)) => true,
        _ => false,
    }
}
