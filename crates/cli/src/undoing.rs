//! `promote --undo` and `--redo`: taking a promote back, and applying it again. Both belong to the
//! source, so the sandbox may be long gone.

use std::path::{Path, PathBuf};

use sandbox_model::{Class, Operation, Outcome};
use sandbox_workspace::promote::GitControl;
use sandbox_workspace::undo::{
    self, Changed, Direction, Outlook, UndoError, UndoOptions, UndoRecord, Undone, Which,
};
use sandbox_workspace::{Root, history};
use serde::Serialize;

use crate::ages;
use crate::command::create::shown;
use crate::ending::Ending;
use crate::interruption::{self, Interruptible};
use crate::narration;
use crate::output::{self, Output};
use crate::promotion::{Consent, Form};
use crate::prompt;
use crate::reading;
use crate::record::recorded;
use crate::repair;
use crate::report::{Problem, Refusal};
use crate::summary::counted;
use crate::surroundings;

/// What to take back.
pub(crate) struct Request<'a> {
    /// The sandbox, or the current directory.
    pub(crate) name: Option<&'a str>,
    /// Only these paths, as typed.
    pub(crate) typed: &'a [PathBuf],
    /// What was applied, for an undo; or what was taken back, for a redo.
    pub(crate) direction: Direction,
    /// What becomes of paths that changed since.
    pub(crate) changed: Changed,
    /// Whether what steers git may be put into the source.
    pub(crate) git_control: GitControl,
}

/// What `--dry-run --json` prints.
#[derive(Serialize)]
struct Plan<'p> {
    #[serde(flatten)]
    record: &'p UndoRecord,
    restore: &'p [sandbox_model::RelPath],
    changed: &'p [sandbox_model::RelPath],
}

/// Takes the last promote back, or the last undo: of the sandbox named, or into the current
/// directory.
pub(crate) fn undo(request: &Request<'_>, consent: Consent, form: Form) -> Result<Ending, Problem> {
    let root = surroundings::root_unrepaired()?;
    let source = source_of(&root, request.name)?;
    repair::source_thoroughly(&root, &source);
    let options = UndoOptions {
        paths: reading::below(&source, request.typed)?,
        changed: request.changed,
        git_control: request.git_control,
    };
    let record = undo::find(
        &root,
        &source,
        request.direction,
        request.name,
        &options.paths,
    )?;
    let which = Which::Id(record.id.clone());
    let outlook = undo::outlook(&root, &source, &which, &options)?;
    if consent == Consent::DryRun {
        show(request.direction, &record, &outlook, form)?;
    }
    if !outlook.changed.is_empty()
        && (request.changed == Changed::Refuse || outlook.restore.is_empty())
    {
        return Err(UndoError::Changed {
            id: record.id,
            paths: outlook.changed,
            rest: !outlook.restore.is_empty(),
        }
        .into());
    }
    if consent == Consent::DryRun {
        return Ok(Ending::DONE);
    }
    let subject = (record.sandbox.clone(), shown(&source));
    let operation = match request.direction {
        Direction::Apply => Operation::Undo,
        Direction::TakeBack => Operation::Redo,
    };
    recorded(&root, operation, |detail| {
        detail.named(subject);
        detail.text = counted(outlook.restore.len(), "path", "paths");
        if !agreed(request.direction, &record, &outlook, &source, consent)? {
            narration::say(format_args!("Aborted."));
            detail.outcome = Some(Outcome::Declined);
            return Ok(Ending::DONE);
        }
        interruption::hold();
        let mut progress = Interruptible::default();
        let undone = undo::undo_with(&root, &source, &which, &options, &mut progress)?;
        tell(request.direction, &undone, &source, form)
    })
}

/// The source of a sandbox, of a discarded one from the history, or the current directory.
fn source_of(root: &Root, name: Option<&str>) -> Result<PathBuf, Problem> {
    let Some(name) = name else {
        return surroundings::current_dir();
    };
    let problem = match root.sandbox(name) {
        Ok(sandbox) => return Ok(sandbox.source().to_owned()),
        Err(error) => Problem::from(error),
    };
    if !problem.is(Class::NotFound) {
        return Err(problem);
    }
    let records = history::read(root.path())
        .map_err(|error| Refusal::io("cannot read the history", error))?;
    let last = records
        .iter()
        .rev()
        .find(|record| record.sandbox.as_str() == name);
    let source = last.and_then(|record| sandbox_model::path::unescape(&record.source).ok());
    match source {
        Some(bytes) => {
            use std::os::unix::ffi::OsStringExt;
            Ok(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
        }
        None => Err(problem),
    }
}

fn agreed(
    direction: Direction,
    record: &UndoRecord,
    outlook: &Outlook,
    source: &Path,
    consent: Consent,
) -> Result<bool, Problem> {
    if consent == Consent::Given {
        return Ok(true);
    }
    let count = counted(outlook.restore.len(), "path", "paths");
    let (source, sandbox) = (shown(source), &record.sandbox);
    let ago = ages::ago(record.at, jiff::Timestamp::now());
    let (verb, question) = match direction {
        Direction::Apply => (
            "undo",
            format!("Take back {count} promoted to {source} by '{sandbox}' {ago}?"),
        ),
        Direction::TakeBack => (
            "redo",
            format!("Apply {count} of '{sandbox}' to {source} again, taken back {ago}?"),
        ),
    };
    if !prompt::is_interactive() {
        return Err(
            Refusal::new(format!("confirmation needed to {verb}: {question}"))
                .hint(format!(
                    "there is no terminal to ask at; give --yes to {verb}, --dry-run to look"
                ))
                .into(),
        );
    }
    Ok(prompt::confirm(&question))
}

fn show(
    direction: Direction,
    record: &UndoRecord,
    outlook: &Outlook,
    form: Form,
) -> Result<(), Problem> {
    if form == Form::Json {
        return output::print_json(&Plan {
            record,
            restore: &outlook.restore,
            changed: &outlook.changed,
        });
    }
    let verb = match direction {
        Direction::Apply => "restore",
        Direction::TakeBack => "apply",
    };
    let mut out = Output::open();
    for path in &outlook.restore {
        out.line(format!("  {verb:<9} {path}"))?;
    }
    for path in &outlook.changed {
        out.line(format!("  changed   {path}"))?;
    }
    Ok(out.finish()?)
}

fn tell(
    direction: Direction,
    undone: &Undone,
    source: &Path,
    form: Form,
) -> Result<Ending, Problem> {
    if form == Form::Json {
        output::print_json(undone)?;
    }
    for path in &undone.left {
        narration::warn(format_args!("{path} was changed since and left as it is"));
    }
    let count = counted(undone.restored.len(), "path", "paths");
    let (source, name) = (shown(source), &undone.sandbox);
    match direction {
        Direction::TakeBack => {
            narration::say(format_args!("Applied {count} to {source} again."));
            narration::say(format_args!(
                "Take it back with: sandbox promote {name} --undo"
            ));
        }
        Direction::Apply => {
            narration::say(format_args!("Restored {count} in {source}."));
            if !undone.returned.is_empty() {
                let count = counted(undone.returned.len(), "change is", "changes are");
                narration::say(format_args!("{count} in sandbox '{name}' again."));
            }
            if !undone.kept.is_empty() {
                let count = counted(undone.kept.len(), "change is", "changes are");
                narration::say(format_args!(
                    "{count} not in sandbox '{name}': it is gone, has changed the path since, or cannot be written to."
                ));
            }
            if !undone.restored.is_empty() {
                narration::say(format_args!(
                    "Apply it again with: sandbox promote {name} --redo"
                ));
            }
        }
    }
    Ok(Ending::DONE)
}
