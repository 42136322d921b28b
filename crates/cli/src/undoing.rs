//! `promote --undo`: taking a promote back. It belongs to the source, so the sandbox may be long gone.

use std::path::{Path, PathBuf};

use sandbox_model::{Class, Operation, Outcome, RelPath, SandboxName};
use sandbox_workspace::undo::{self, UndoKind, UndoRecord, Undone, Which};
use sandbox_workspace::{Root, history};

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

/// Takes the last promote back: of the sandbox named, or into the current directory.
pub(crate) fn undo(
    name: Option<&str>,
    typed: &[PathBuf],
    consent: Consent,
    form: Form,
) -> Result<Ending, Problem> {
    let root = surroundings::root_unrepaired()?;
    let source = source_of(&root, name)?;
    repair::source_thoroughly(&root, &source);
    let paths = reading::below(&source, typed)?;
    let record = latest(&root, &source, name)?;
    let affected: Vec<&RelPath> = record
        .paths
        .iter()
        .filter(|path| is_selected(path, &paths))
        .collect();
    if consent == Consent::DryRun {
        return show(&record, &affected, form);
    }
    let subject = (record.sandbox.clone(), shown(&source));
    recorded(&root, Operation::Undo, |detail| {
        detail.named(subject);
        detail.text = counted(affected.len(), "path", "paths");
        if !agreed(&record, &affected, &source, consent)? {
            narration::say(format_args!("Aborted."));
            detail.outcome = Some(Outcome::Declined);
            return Ok(Ending::DONE);
        }
        let which = Which::Id(record.id.clone());
        interruption::hold();
        let mut progress = Interruptible::default();
        let undone = undo::undo(&root, &source, &which, &paths, &mut progress)?;
        tell(&undone, &source, form)
    })
}

fn is_selected(path: &RelPath, selected: &[RelPath]) -> bool {
    selected.is_empty() || selected.iter().any(|wanted| path.starts_with(wanted))
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

/// The newest promote of this source, by this sandbox where one is named, that still stands.
fn latest(root: &Root, source: &Path, name: Option<&str>) -> Result<UndoRecord, Problem> {
    let named = |sandbox: &SandboxName| name.is_none_or(|name| sandbox.as_str() == name);
    let records = undo::list(root, source)?;
    let found = records.into_iter().find(|record| {
        record.kind == UndoKind::Promote && !record.undone && named(&record.sandbox)
    });
    found.ok_or_else(|| {
        undo::UndoError::Nothing {
            path: source.to_owned(),
        }
        .into()
    })
}

fn agreed(
    record: &UndoRecord,
    affected: &[&RelPath],
    source: &Path,
    consent: Consent,
) -> Result<bool, Problem> {
    if consent == Consent::Given {
        return Ok(true);
    }
    let question = format!(
        "Take back {} promoted to {} by '{}' {}?",
        counted(affected.len(), "path", "paths"),
        shown(source),
        record.sandbox,
        ages::ago(record.at, jiff::Timestamp::now())
    );
    if !prompt::is_interactive() {
        return Err(Refusal::new(format!("not undoing unasked: {question}"))
            .hint("there is no terminal to ask at; give --yes to undo, --dry-run to look")
            .into());
    }
    Ok(prompt::confirm(&question))
}

fn show(record: &UndoRecord, affected: &[&RelPath], form: Form) -> Result<Ending, Problem> {
    if form == Form::Json {
        output::print_json(record)?;
        return Ok(Ending::DONE);
    }
    let mut out = Output::open();
    for path in affected {
        out.line(format!("  restore   {path}"))?;
    }
    out.finish()?;
    Ok(Ending::DONE)
}

fn tell(undone: &Undone, source: &Path, form: Form) -> Result<Ending, Problem> {
    if form == Form::Json {
        output::print_json(undone)?;
    }
    for path in &undone.left {
        narration::warn(format_args!("{path} was changed since and left as it is"));
    }
    let count = counted(undone.restored.len(), "path", "paths");
    narration::say(format_args!("Restored {count} in {}.", shown(source)));
    Ok(Ending::DONE)
}
