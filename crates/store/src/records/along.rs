//! What is written down together with a change.
//!
//! A change has its notice and its audit record in the same transaction: either all of it is there or
//! nothing, and it costs one transaction instead of three.

use sandbox_model::{AuditRecord, SessionId};

use super::audit;
use super::count::Key;
use super::error::Fault;
use super::notice::{self, Row};
use super::transaction::Step;

/// What comes along with a change. By default nothing does.
#[derive(Debug, Clone, Copy, Default)]
pub struct Along<'a> {
    /// What those who watch the session are told.
    pub notice: Option<Note<'a>>,
    /// Who changed what.
    pub audit: Option<&'a AuditRecord>,
}

/// What happened to a session; see [`super::Records::append_notice`].
#[derive(Debug, Clone, Copy)]
pub struct Note<'a> {
    /// To which.
    pub session: &'a SessionId,
    /// What sort of thing.
    pub kind: &'a str,
    /// JSON text.
    pub detail: &'a str,
}

impl Along<'_> {
    /// Writes it down after the change, and gives the numbers that move with it. `row` is how the
    /// transaction stands to the session that the notice is about.
    pub(super) async fn write(&self, step: &Step, row: Row) -> Result<Option<Key>, Fault> {
        if let Some(note) = &self.notice {
            notice::add(step, note, row).await?;
        }
        match self.audit {
            Some(record) => Ok(Some(audit::append(step, record).await?)),
            None => Ok(None),
        }
    }
}
