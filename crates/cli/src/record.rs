//! The record that every operation leaves in the history.

use std::time::Instant;

use jiff::Timestamp;
use sandbox_model::{HistoryRecord, Operation, Outcome, SandboxName};
use sandbox_workspace::{Root, Sandbox, history};

use crate::command::create::shown;
use crate::narration;
use crate::report::Problem;

/// What an operation adds to its record as it learns it.
#[derive(Debug, Default)]
pub(crate) struct Detail {
    subject: Option<(SandboxName, String)>,
    /// The rest: a command, a label, a number of paths.
    pub(crate) text: String,
    /// How it ended, where that is more than done.
    pub(crate) outcome: Option<Outcome>,
}

impl Detail {
    /// The operation is on this sandbox.
    pub(crate) fn about(&mut self, sandbox: &Sandbox) {
        self.subject = Some((sandbox.name().clone(), shown(sandbox.source())));
    }
}

impl Detail {
    /// The operation is on a sandbox that may be gone: its name and its source.
    pub(crate) fn named(&mut self, subject: (SandboxName, String)) {
        self.subject = Some(subject);
    }
}

/// Does `work` and appends what became of it. Without a sandbox there is nothing to record.
pub(crate) fn recorded<T>(
    root: &Root,
    operation: Operation,
    work: impl FnOnce(&mut Detail) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let (at, began) = (Timestamp::now(), Instant::now());
    let mut detail = Detail::default();
    let result = work(&mut detail);
    if let Some((sandbox, source)) = detail.subject {
        let outcome = match &result {
            Ok(_) => detail.outcome.unwrap_or(Outcome::Done),
            Err(problem) => Outcome::Failed {
                error: problem.line(),
            },
        };
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let user = rustix::process::getuid().as_raw();
        let text = detail.text;
        append(
            root,
            &HistoryRecord {
                at,
                operation,
                sandbox,
                source,
                user,
                outcome,
                detail: text,
                took_ms,
            },
        );
    }
    result
}

/// A history that cannot be written must not undo what was done: it is said, and that is all.
fn append(root: &Root, record: &HistoryRecord) {
    if let Err(error) = history::append(root.path(), record) {
        narration::warn(format_args!("cannot write the history: {error}"));
    }
}
