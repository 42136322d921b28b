//! `promote --interactive`: one question per file, and per hunk where that is wanted.
//!
//! What is not chosen is skipped: it stays in the sandbox's change set. Directories are not asked
//! about; they follow what is in them.

use std::io::{self, Read, Write};

use sandbox_model::{EntryKind, RelPath};
use sandbox_workspace::View;
use sandbox_workspace::changes::{ChangeOptions, change_set};
use sandbox_workspace::diff::hunk::{Comparison, Hunk, Line};
use sandbox_workspace::diff::{self, Colour};
use sandbox_workspace::progress::Silent;
use sandbox_workspace::promote::{Action, Plan, Resolution, Step};
use sandbox_workspace::side::Side;

use crate::narration::{self, Paint};
use crate::preview;
use crate::promotion::Wishes;
use crate::prompt;
use crate::report::{Problem, Refusal};

/// Files larger than this are promoted whole or not at all.
const LARGEST: u64 = 16 << 20;

/// Asks about every step and writes the answers into `wishes`.
pub(crate) fn choose(view: &View<'_>, plan: &Plan, wishes: &mut Wishes) -> Result<(), Problem> {
    if !prompt::is_interactive() {
        return Err(Refusal::new("cannot choose without a terminal")
            .hint("name the paths to promote instead, or use --resolve PATH=skip")
            .into());
    }
    let mut rest = Rest::Asked;
    for (index, step) in plan.steps.iter().enumerate() {
        let follows = is_directory_step(step)
            && plan
                .steps
                .iter()
                .any(|other| other.path != step.path && other.path.starts_with(&step.path));
        if follows || !preview::changes_source(step) {
            continue;
        }
        let place = format!("({}/{})", index + 1, plan.steps.len());
        let taken = match rest {
            Rest::Asked => ask(view, step, &place, wishes, &mut rest)?,
            Rest::Taken => true,
            Rest::Skipped => false,
        };
        if !taken {
            wishes
                .resolutions
                .paths
                .insert(step.path.clone(), Resolution::Skip);
        }
    }
    skip_empty_directories(plan, wishes);
    Ok(())
}

/// What becomes of the steps that were not asked about yet.
enum Rest {
    Asked,
    Taken,
    Skipped,
}

fn is_directory_step(step: &Step) -> bool {
    matches!(step.action, Action::MakeDirectory | Action::DeleteDirectory)
}

/// A new directory of which nothing was chosen is not made.
fn skip_empty_directories(plan: &Plan, wishes: &mut Wishes) {
    let skipped = |wishes: &Wishes, path: &RelPath| {
        wishes.resolutions.paths.get(path) == Some(&Resolution::Skip)
    };
    for step in plan
        .steps
        .iter()
        .rev()
        .filter(|step| step.action == Action::MakeDirectory)
    {
        let mut below = plan
            .steps
            .iter()
            .filter(|other| other.path != step.path && other.path.starts_with(&step.path))
            .peekable();
        if below.peek().is_some() && below.all(|other| skipped(wishes, &other.path)) {
            wishes
                .resolutions
                .paths
                .insert(step.path.clone(), Resolution::Skip);
        }
    }
}

/// One file's question; true when it, or some of its hunks, is to be promoted.
fn ask(
    view: &View<'_>,
    step: &Step,
    place: &str,
    wishes: &mut Wishes,
    rest: &mut Rest,
) -> Result<bool, Problem> {
    narration::say(format_args!(
        "{}",
        preview::step_line(step, Paint::stderr())
    ));
    let question =
        format!("{place} Promote it? [y]es / [n]o / [d]iff / [h]unks / [a]ll the rest / [q]uit? ");
    loop {
        match prompt::choose(&question, &["yes", "no", "diff", "hunks", "all", "quit"]) {
            Some('y') => return Ok(true),
            Some('n') => return Ok(false),
            Some('d') => show_diff(view, &step.path)?,
            Some('h') => match choose_hunks(view, step)? {
                Chosen::All => return Ok(true),
                Chosen::None => return Ok(false),
                Chosen::Some(contents) => {
                    wishes
                        .selection
                        .contents
                        .insert(step.path.clone(), contents);
                    return Ok(true);
                }
                Chosen::Unsplittable => {
                    narration::say(format_args!("It has no hunks to choose from."));
                }
            },
            Some('a') => {
                *rest = Rest::Taken;
                return Ok(true);
            }
            _ => {
                *rest = Rest::Skipped;
                return Ok(false);
            }
        }
    }
}

/// What was chosen of a file's hunks.
enum Chosen {
    All,
    None,
    Some(Vec<u8>),
    Unsplittable,
}

fn choose_hunks(view: &View<'_>, step: &Step) -> Result<Chosen, Problem> {
    let is_text = |entry: &Option<sandbox_model::Entry>| {
        entry.is_some_and(|entry| entry.kind == EntryKind::File && entry.size <= LARGEST)
    };
    if step.action != Action::Replace || !is_text(&step.before) || !is_text(&step.after) {
        return Ok(Chosen::Unsplittable);
    }
    let old = read(&view.source, &step.path)?;
    let new = read(view.workspace(), &step.path)?;
    let comparison = Comparison::new(&old, &new);
    let hunks = comparison.hunks();
    if hunks.is_empty() || old.contains(&0) || new.contains(&0) {
        return Ok(Chosen::Unsplittable);
    }
    let mut taken = vec![false; hunks.len()];
    for (index, hunk) in hunks.iter().enumerate() {
        show_hunk(&comparison, hunk);
        let place = format!("({}/{})", index + 1, hunks.len());
        match prompt::choose(
            &format!("{place} Take this hunk? [y]es / [n]o / [q]uit? "),
            &["yes", "no", "quit"],
        ) {
            Some('y') => taken[index] = true,
            Some('n') => {}
            _ => break,
        }
    }
    Ok(match taken.iter().filter(|taken| **taken).count() {
        0 => Chosen::None,
        count if count == hunks.len() => Chosen::All,
        _ => Chosen::Some(comparison.apply(|number| taken[number])),
    })
}

fn read(side: &dyn Side, path: &RelPath) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    side.open(path)
        .and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes))
        .map_err(|error| Refusal::io(format!("cannot read {path}"), error))?;
    Ok(bytes)
}

fn show_hunk(comparison: &Comparison<'_>, hunk: &Hunk) {
    let paint = Paint::stderr();
    narration::say(format_args!("{}", paint.faint(&hunk.header())));
    for line in comparison.lines(hunk) {
        let line = match line {
            Line::Context(text) => format!(" {}", printable(text)),
            Line::Removed(text) => paint.bad(&format!("-{}", printable(text))),
            Line::Added(text) => paint.good(&format!("+{}", printable(text))),
        };
        narration::say(format_args!("{line}"));
    }
}

/// A line of a file as text that no terminal obeys; tabs stay.
fn printable(text: &[u8]) -> String {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let parts = text
        .split(|byte| *byte == b'\t')
        .map(|part| sandbox_model::path::escape(part).replace("\\\\", "\\"));
    parts.collect::<Vec<_>>().join("\t")
}

/// Shows one path's diff to the person at the terminal.
pub(crate) fn show_diff(view: &View<'_>, path: &RelPath) -> Result<(), Problem> {
    let options = ChangeOptions {
        paths: vec![path.clone()],
        ..ChangeOptions::default()
    };
    let changes = change_set(view, &options, &mut Silent)?;
    let mut text = Vec::new();
    let colour = if Paint::stderr().is_on() {
        Colour::Terminal
    } else {
        Colour::Monochrome
    };
    let mut beside = Vec::new();
    diff::unified(view, &changes, colour, &mut text, &mut beside)
        .and_then(|()| io::stderr().lock().write_all(&text))
        .and_then(|()| io::stderr().lock().write_all(&beside))
        .map_err(|error| Refusal::io(format!("cannot show the diff of {path}"), error).into())
}
